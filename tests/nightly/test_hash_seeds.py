"""Keys and drafts that depend on how Python hashes texts are found."""

from __future__ import annotations

import pytest
from tests.unit.testing.checkpointed_connector import DraftFromASetContract, KeyFromHashContract
from tests.unit.testing.reference_connector import OrdersContract

from crossdock.testing.hash_seeds import SEEDS, readings


def test_each_process_reads_every_record() -> None:
    """A reading has the key, the rows and the draft of each record."""
    first, second = readings(OrdersContract)
    assert len(SEEDS) == 2
    assert first == second
    assert [key for key, *_ in first] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("case", [KeyFromHashContract, DraftFromASetContract])
def test_a_seeded_bug_is_found(case: type[OrdersContract]) -> None:
    """A key from ``hash()``, and a draft from the order of a set, differ between processes."""
    with pytest.raises(AssertionError, match="in another"):
        case().test_keys_and_drafts_are_the_same_in_every_process()


def test_a_process_that_cannot_read_says_why() -> None:
    """The error contains what the process printed."""

    class Local(OrdersContract):
        """Not at the top level of its module, so that another process cannot find it."""

    with pytest.raises(AssertionError, match="a new process cannot read the stream:\n.*Traceback"):
        readings(Local)
