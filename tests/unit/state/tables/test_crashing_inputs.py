"""Which inputs are set aside after processes were killed while they read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crossdock.state import State
from crossdock.state.tables.inputs_of_streams import CrashMark

AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


def killed_at(*places: int) -> list[CrashMark]:
    return [CrashMark("wms.p", "P.csv", "a5", place) for place in places]


@pytest.mark.parametrize(
    ("marks", "is_set_aside"),
    [
        (killed_at(3), False),
        (killed_at(3, 3, 3, 3, 3), False),
        (killed_at(3, 3, 3, 3, 3, 4, 4), False),
        (killed_at(1, 3, 3, 3, 3, 3, 3), True),
    ],
    ids=["once", "five times in a row", "at two places", "six times in a row"],
)
def test_an_input_at_which_processes_are_always_killed_is_set_aside(
    state: State, marks: list[CrashMark], *, is_set_aside: bool
) -> None:
    """Even if it kills no other process; people who kill a process seldom meet the same place so often."""
    with state.begin() as tx:
        for mark in marks:
            tx.crashing_inputs.record_kill(mark, at=AT)
        found = tx.crashing_inputs.get(marks[0])
        assert found
        assert (found.killed, found.set_aside_at is not None) == (len(marks), is_set_aside)
        other = CrashMark("wms.p", "P.csv", "b6")
        assert tx.crashing_inputs.get(other) is None
        assert tx.crashing_inputs.get(CrashMark("wms.p", "Q.csv", "a5")) == found  # the same under another name
        assert tx.crashing_inputs.readmit_inputs_of_stream("wms.p") == is_set_aside
        tx.crashing_inputs.forget(marks[0])
        assert not tx.crashing_inputs.has_any()
