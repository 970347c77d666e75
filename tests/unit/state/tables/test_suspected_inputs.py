"""Which inputs are set aside after processes were killed while they read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crossdock.state import State
from crossdock.state.sidecar_files.reading_marks import ReadingMark

AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


def killed_at(*places: int, alone: bool = True) -> list[ReadingMark]:
    return [ReadingMark("wms.p", "P.csv", "a5", place, alone) for place in places]


@pytest.mark.parametrize(
    ("marks", "is_set_aside"),
    [
        (killed_at(3), False),
        (killed_at(3, 3), True),
        (killed_at(3, 4, 9), False),
        (killed_at(3, 4, 9, 1), True),
        (killed_at(3, 3, 3, 3, alone=False), False),
    ],
    ids=["once", "twice at one place", "at three places", "at four places", "never alone"],
)
def test_an_input_is_set_aside_if_it_has_killed_repeatedly(
    state: State, marks: list[ReadingMark], *, is_set_aside: bool
) -> None:
    """Somebody who kills a process seldom meets the same place twice."""
    with state.begin() as tx:
        for mark in marks:
            tx.suspected_inputs.killed(mark, at=AT)
        found = tx.suspected_inputs.get(marks[0])
        assert found
        assert (found.killed, found.set_aside_at is not None) == (len(marks), is_set_aside)
        other = ReadingMark("wms.p", "P.csv", "b6")
        assert tx.suspected_inputs.get(other) is None
        assert tx.suspected_inputs.get(ReadingMark("wms.p", "Q.csv", "a5")) == found  # the same under another name
        assert tx.suspected_inputs.readmit("wms.p") == is_set_aside
        tx.suspected_inputs.survived(marks[0])
        assert not tx.suspected_inputs.any()
