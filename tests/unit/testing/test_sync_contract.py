"""The tests of whole syncs accept a correct connector, and find seeded bugs."""

from __future__ import annotations

import pytest
from tests.unit.testing import checkpointed_connector as seeded
from tests.unit.testing.checkpointed_connector import CheckpointedContract, CheckpointedOrders
from tests.unit.testing.reference_connector import passes


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
