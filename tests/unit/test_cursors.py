"""Cursors, checkpoints and windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from crossdock.mapping.row_order_and_cursors import (
    Checkpoint,
    Cursor,
    Window,
    format_iso_instant_cursor,
    format_stored_instant,
    parse_stored_instant,
    windows,
)

MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  zones follow
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(moment=MOMENTS, offset=OFFSETS)
def test_an_instant_continues_where_it_was_stored(moment: datetime, offset: timezone) -> None:
    """Whatever offset the source writes; `pull` gets UTC, no later than the value itself."""
    cursor = Cursor(column="at", as_="instant")
    stored = cursor.value({"at": moment.astimezone(offset).isoformat()})
    since = cursor.pull_since(stored)
    assert since is not None
    assert datetime.fromisoformat(since) == moment
    assert since.endswith("Z")


@given(moment=MOMENTS, other=MOMENTS, offset=OFFSETS)
def test_stored_instants_sort_as_time_does(moment: datetime, other: datetime, offset: timezone) -> None:
    """Also those of the start of a reading."""
    cursor = Cursor(column="at", as_="instant")
    first, second = cursor.value({"at": moment.isoformat()}), cursor.value({"at": other.astimezone(offset).isoformat()})
    assert (first < second) is (moment < other)
    assert (first <= format_stored_instant(other)) is (moment <= other)
    assert parse_stored_instant(first) == moment


def test_texts_are_given_back_as_the_source_wrote_them() -> None:
    """So are numbers without an overlap, with their zeros."""
    for cursor in (Cursor(column="id"), Cursor(column="id", as_="integer", overlap=0)):
        assert cursor.value({"id": "0042"}) == "0042"
        assert cursor.pull_since("0042") == "0042"
        assert cursor.value({"id": None}) == ""


def test_numbers_are_read_again_within_the_overlap() -> None:
    """A source that counts may show a later number first; the form of the number stays."""
    cursor = Cursor(column="id", as_="integer")
    asked = {"5042": "4042", "0005042": "0004042", "42": "0", "0042": "0000", "-42": "-42", "0": "0"}
    assert {stored: cursor.pull_since(stored) for stored in asked} == asked
    assert Cursor(column="at", as_="decimal", overlap=600).pull_since("1790000000.250") == "1789999400.250"


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"as": "integer", "sorted": False}, "needs a cursor with as: instant"),
        ({"as": "text", "overlap_s": 5}, "needs as: instant"),
        ({"as": "instant", "overlap_s": -1}, "greater than or equal to 0"),
        ({"as": "text", "overlap": 5}, "needs as: integer or as: decimal"),
    ],
)
def test_a_cursor_that_cannot_work_is_refused(facts: dict[str, object], message: str) -> None:
    """When it is declared."""
    with pytest.raises(ValidationError, match=message):
        Cursor.model_validate({"column": "at", **facts})


@given(
    since=st.none() | MOMENTS, length=st.timedeltas(timedelta(), timedelta(days=40)),
    size=st.timedeltas(timedelta(hours=1), timedelta(days=9)),
)  # fmt: skip
def test_windows_cover_the_time_without_gaps(since: datetime | None, length: timedelta, size: timedelta) -> None:
    """The first begins at the cursor less the overlap, each at the end of the one before."""
    first, overlap = datetime(2026, 1, 1, tzinfo=UTC), timedelta(minutes=5)
    begin = first if since is None else since - overlap
    until = begin + length
    given_since = None if since is None else format_iso_instant_cursor(since)
    found = list(windows(given_since, until, size=size, first=first, overlap=overlap))
    assert [window.start for window in found] == [*([begin] if found else []), *(each.end for each in found[:-1])]
    assert not found or found[-1].end == until
    assert all(window.end - window.start <= size for window in found)
    assert bool(found) is (length > timedelta())


def test_a_window_has_a_checkpoint() -> None:
    """Its end."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert Window(start, start + timedelta(days=1)).checkpoint == Checkpoint("2026-01-02T00:00:00Z")
    assert Window(start, start + timedelta(days=1)).checkpoint.needs_whole_list


@pytest.mark.parametrize(
    ("since", "size", "first"),
    [(None, timedelta(0), datetime(2026, 1, 1, tzinfo=UTC)), ("2026-01-01", timedelta(1), None)],
)
def test_windows_need_a_size_and_offsets(since: str | None, size: timedelta, first: datetime | None) -> None:
    """Otherwise they would never end, or begin at the wrong hour."""
    with pytest.raises(ValueError, match=r"must be positive|need a UTC offset"):
        list(
            windows(since, datetime(2026, 1, 2, tzinfo=UTC), size=size, first=first or datetime(2026, 1, 1, tzinfo=UTC))
        )
