"""The tests of whole syncs accept a correct connector, and find seeded bugs."""

from __future__ import annotations

import pytest
from tests.unit.testing import checkpointed_connector as seeded
from tests.unit.testing.checkpointed_connector import CheckpointedContract, CheckpointedOrders
from tests.unit.testing.reference_connector import passes

from crossdock.testing.sync_contract import _items_to_stop_after


@pytest.mark.nightly
class TestCheckpointed(CheckpointedContract):
    """The contract itself, inherited as authors do."""


CONTINUES = "a_sync_continues_after_any_batch"
SENDS_NOTHING = "a_second_sync_sends_nothing"
BUGS: dict[type[CheckpointedOrders], str] = {
    seeded.CheckpointBeforeItsBatch: CONTINUES,
    seeded.CheckpointOfTheWholeRead: CONTINUES,
    seeded.LastPageSkippedOnResume: CONTINUES,
    seeded.FirstRecordSkippedOnResume: CONTINUES,
    seeded.OtherKeysOnResume: CONTINUES,
    seeded.RememberedInTheModule: CONTINUES,
    seeded.OtherRowsOnResume: SENDS_NOTHING,
    seeded.TimeOfTheRunInTheRows: SENDS_NOTHING,
    seeded.TokenInTheDraft: SENDS_NOTHING,
}


@pytest.mark.nightly(but=["CheckpointBeforeItsBatch", "TokenInTheDraft"])
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_is_found(bug: type[CheckpointedOrders]) -> None:
    """The test of the contract that is meant for it fails; without the bug it passes, as `TestCheckpointed` shows."""
    assert not passes(bug, BUGS[bug])


@pytest.mark.parametrize(
    ("number", "with_rows", "stops"),
    [
        (3, [], [1, 2, 3]),
        (228, [101, 150], [100, 101, 102, 149, 150, 151]),
        (60, [*range(1, 61, 2)], [1, 6, 11, 17, 22, 27, 33, 38, 43, 49, 54, 60]),
    ],
)
def test_runs_end_where_records_are(number: int, with_rows: list[int], stops: list[int]) -> None:
    """After all items, or around those with rows, of which there may be too many."""
    assert _items_to_stop_after(number, with_rows) == stops
