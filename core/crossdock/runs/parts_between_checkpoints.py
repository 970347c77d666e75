"""Divides what `pull` yields into parts that can be delivered and stored before the rest is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise, takewhile

import polars as pl

from crossdock.errors import RecordError, RefusedError
from crossdock.mapping.row_order_and_cursors import (
    ANY_TIME_ZONE,
    OVERLAP_S,
    Checkpoint,
    Cursor,
    LateRecordTracker,
    format_iso_instant_cursor,
    format_stored_instant,
    latest_time_of_change,
    parse_stored_instant,
)
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError
from crossdock.values.clock import Clock
from crossdock.values.exact_json import is_cell_of_invalid_value
from crossdock.values.raw_rows_and_records import LINE, RawBatch, with_path_columns

PART_ROWS = 500
"""A part ends at the first checkpoint after this many rows, which a failure may cost. Smaller parts would cost more
time than they save.
"""
EMPTY_AGAIN = timedelta(days=7)
"""For so long, a time up to which nothing was listed is read again: an API that is out of order may list nothing."""


_HELD = (
    "what was read is delivered, and the next run reads the list again; read it in smaller windows or parts, or ask the"
    " API itself"
)
_SORT = "request the records in that order"
_SORT_INSTANTS = f"{_SORT}, or declare the cursor with sorted: false"
_SORT_OTHERS = f"{_SORT}; a cursor of numbers needs as: integer, one of times as: instant"
_READ_INSTANTS = "correct the format of the cursor; if many records have no such time, declare it with sorted: false"
_READ_NUMBERS = "declare as what the cursor is read: a time needs as: instant, and other texts as: text"
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_COMPACT = re.compile(r"([12][0-9]{3}|9999)(0[1-9]|1[0-2])([0-2][0-9]|3[01])([0-9]{2}){0,3}")
_FIRST_S, _LAST_S = 946_684_800, 253_402_300_799  # of UNIX time, from the year 2000 to 9999
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}")
_SINCE_1970 = re.compile(r"1[0-9]{9}([0-9]{3}|[0-9]{6})?(\.[0-9]+)?")  # from 2001 to 2033, in one of the units
_UNITS = 1, 1_000, 1_000_000  # a second is so many; no number is such a time in two of them

_Place = tuple[str, str, int]  # the position of a row, its stored form and its line
_NO_PLACE: _Place = ("", "", 0)


class UnsortedError(RefusedError):
    """The source does not list its records in the order that the stream declares."""

    code = "list_unsorted"


class CheckpointedReading:
    """The batches of one stream, up to a checkpoint at a time.

    Args:
        declared: The stream's cursor; None if `pull` yields checkpoints or batches with cursors itself.
        whole: Ignore checkpoints: there is one part.
        is_open: Returns whether a list is being read whose end must show that no record was missed. Nothing of it moves
            the cursor before.
        by_its_clock: Returns what the source's clock showed at a local moment, never later than that moment. Changes
            have the times of the source's clock.
        doubt_of_list: Returns why a list that was read may be cut or old; None if nothing shows that. A cursor that is
            right only if all was listed does not move past it.
        reread_to: The position up to which an earlier run has read. No part ends before it: versions of a record that
            were replaced since would be sent once more.

    Attributes:
        doubt: Why records may be missing although everything was read; None if there is no reason.
        held: Why the cursor is not moved although the list was read to its end; None if it is moved.
        latest: The latest cursor of a source that is not sorted; empty if there is none.
        late: What the times that were read show of records that may be missing.
        future: A remark about dates in the future; empty if there are none.
    """

    def __init__(
        self,
        items: Generator[RawBatch | Checkpoint, None, None],
        declared: Cursor | None,
        clock: Clock,
        *,
        whole: bool,
        is_open: Callable[[], bool] = lambda: False,
        by_its_clock: Callable[[datetime], datetime] = lambda moment: moment,
        doubt_of_list: Callable[[], str | None] = lambda: None,
        reread_to: str = "",
    ) -> None:
        self._items, self._declared, self._clock, self._whole = items, declared, clock, whole
        self._by_its_clock, self._reread_to = by_its_clock, reread_to
        self._is_open, self._reached = is_open, ""  # a cursor that may be stored once no list is open
        self._doubt_of_list, self._is_held = doubt_of_list, False
        self.doubt: DoubtfulListError | None = None
        self.held: DoubtfulListError | None = None
        self._asked_at = self._began = clock.now()
        self._highest = self._highest_position = ""
        self.latest = ""
        self._overlap = timedelta(seconds=declared.overlap_s if declared else OVERLAP_S)
        self.late = LateRecordTracker(self._overlap)
        self._without = self._unreadable = 0
        self._first_unreadable: RefusedError | None = None
        self.cursor: str | None = None
        self.ended = False
        self.rows = 0
        self.has_rows = False
        self.future = ""

    @property
    def reading_start_time(self) -> datetime:
        """When the reading began, by the source's clock if that is behind the local one."""
        return self._by_its_clock(self._began)

    @property
    def rows_without_cursor_remark(self) -> str:
        """A remark if everything was read and some rows have no readable value of the declared cursor; or empty."""
        cursor = self._declared
        if cursor is None or not self.ended or not self._without:
            return ""
        first = self._first_unreadable
        unreadable = f" ({self._unreadable:,} cannot be read: {first.where} {first.message})" if first else ""
        if not self._highest:
            check = "format" if first else "spelling"
            what = f"no record has the cursor {cursor.column!r}{unreadable}"
            return f"{what}: each run reads everything again; check its {check}"
        what = f"rows without the cursor {cursor.column!r}: {self._without:,}{unreadable}"
        return f"{what}; the source may not list such records among its changes: reread finds them"

    @property
    def cursor_without_overlap_remark(self) -> str:
        """A remark if the cursor has times, and is declared so that the next run reads no or too little time again."""
        cursor, value = self._declared, self._highest
        if cursor is None or cursor.as_ == "instant" or not self.ended:
            return ""
        is_time, is_number = cursor.as_ == "text" and _TIME.match(value), _SINCE_1970.fullmatch(value)
        if is_number and cursor.as_ != "text":  # of these, only seconds have a sufficient overlap by default
            unit = 10 ** len(is_number[1] or "")
            is_number = is_number if cursor.overlap < OVERLAP_S * unit else None
        if not is_time and not is_number:
            return ""
        remedy = "declare it with as: instant" + ("" if is_time else ", and format: unix or unix_ms")
        return f"the cursor {cursor.column!r} has times, and what the source shows late is not read: {remedy}"

    def batches_of_next_part(self) -> Iterator[RawBatch]:
        """Yield the batches until the next checkpoint that ends a part."""
        rows, is_shown = 0, False
        try:
            for item in self._items:
                is_checkpoint = isinstance(item, Checkpoint)
                if isinstance(item, Checkpoint):
                    self._is_held = self._is_held or (item.needs_whole_list and self._doubt_of_list() is not None)
                    is_checkpoint = is_shown or not self._is_in_reread_window(item.cursor)
                    if is_checkpoint and not self._is_held:
                        self._reached, is_shown = self._cursor_capped_at_start(item.cursor), False
                else:
                    read = item.rows.height if isinstance(item.rows, pl.DataFrame) else 0
                    rows, self.rows = rows + read, self.rows + read
                    has_rows = read > 0 or not isinstance(item.rows, pl.DataFrame)
                    self.has_rows, is_shown = self.has_rows or has_rows, is_shown or has_rows or bool(item.deleted)
                    yield item
                    is_checkpoint = self._declared is not None and self._move_cursor(item, self._declared)
                self._asked_at = self._clock.now()
                if not self._is_open():
                    self.cursor = self._reached or self.cursor
                is_new = self._highest_position >= self._reread_to
                if is_checkpoint and is_new and rows >= PART_ROWS and not self._whole:
                    return
            if self._declared is not None and self._declared.as_ == "instant" and self._highest:
                self._reached = min(self._reached, format_stored_instant(self.late.missing_from()))
            self.cursor = self._reached or self.cursor
            self.held = self._held_cursor_error()
        except DoubtfulListError as error:
            self.doubt = error
        self.ended = True

    def close(self) -> None:
        self._items.close()

    def _held_cursor_error(self) -> DoubtfulListError | None:
        text = self._doubt_of_list()
        is_unsorted = self._declared is not None and not self._declared.sorted
        return (
            DoubtfulListError(text, hint=_HELD, code="list_incomplete")
            if text is not None and (self._is_held or is_unsorted)
            else None
        )

    def _is_in_reread_window(self, cursor: str) -> bool:
        """Return whether *cursor* is an instant of the last `EMPTY_AGAIN`, or later."""
        try:
            return datetime.fromisoformat(cursor) > self.reading_start_time - EMPTY_AGAIN
        except (ValueError, TypeError):  # not an instant
            return False

    def _cursor_capped_at_start(self, cursor: str) -> str:
        """Return *cursor*, or the start of the reading if the source's clock is behind and *cursor* is later."""
        try:
            is_later = (
                self.reading_start_time < self._began and datetime.fromisoformat(cursor) > self.reading_start_time
            )
        except (ValueError, TypeError):  # not an instant
            return cursor
        return format_iso_instant_cursor(self.reading_start_time) if is_later else cursor

    def _latest_not_in_future(self, known: Sequence[_Place], cursor: Cursor) -> str:
        """Return the last of the values that are not in the future, and remark on those that are.

        The first of *known*, where the last batch ended, is not in the future.
        """
        future = (
            self._count_future_instants(known) if cursor.as_ == "instant" else self._count_future_dates(known, cursor)
        )
        if future:
            self.future = f"the cursor {cursor.column!r} has dates in the future; the next run begins before them"
        return known[-1 - future][1]

    def _count_future_instants(self, known: Sequence[_Place]) -> int:
        latest = latest_time_of_change(self._by_its_clock(self._asked_at), self._overlap)
        stored = format_stored_instant(latest)
        return sum(1 for _ in takewhile(lambda place: place[1] > stored, reversed(known)))

    def _count_future_dates(self, known: Sequence[_Place], cursor: Cursor) -> int:
        """Return how many of the last places have dates after tomorrow, from which no run may continue.

        Digits need not be a date. They count if those before them are a date that has come.
        """
        tomorrow = (self._clock.now() + timedelta(days=1)).date().isoformat()
        dates = (_date_text_in_cursor(value, cursor) for _, value, _ in reversed(known))
        future = sum(1 for _ in takewhile(lambda day: day > tomorrow, dates))
        before = known[-1 - future][1] if future < len(known) else ""
        return future if _DATE.match(known[-1][1]) or _date_text_in_cursor(before, cursor) else 0

    def _move_cursor(self, batch: RawBatch, cursor: Cursor) -> bool:
        """Move the cursor to the last row of *batch*. Return False if the source is not sorted."""
        if not cursor.sorted:
            positions = sorted(_readable_positions_in_batch(batch, cursor))
            known = [_NO_PLACE, *((each, each, 0) for each in positions)]
            self.latest = max(self.latest, known[-1][0])
            self._add_to_late_records(self._latest_not_in_future(known, cursor) or known[-1][1])
            return False
        places = [*self._places_of_rows(batch, cursor)]
        known = [(self._highest_position, self._highest, 0), *(place for place in places if place[0])]
        self._without += len(places) - len(known) + 1
        if self._first_unreadable is not None and self._unreadable > 1 and len(known) == 1 and not known[0][0]:
            raise self._first_unreadable  # it is not one bad record: the declaration is wrong
        for (before, _, _), (position, _, line) in pairwise(known):
            if position < before:
                raise UnsortedError(
                    f"is not sorted by {cursor.column!r}, as the stream declares",
                    where=f"{batch.source}:{line}",
                    hint=_SORT_INSTANTS if cursor.as_ == "instant" else _SORT_OTHERS,
                )
        self._highest_position = known[-1][0]
        self._highest = self._latest_not_in_future(known, cursor)
        latest = self._highest or (known[-1][1] if cursor.as_ == "instant" else "")
        if not latest:
            return self._reached != ""
        self._reached = latest
        if cursor.as_ == "instant":
            self._add_to_late_records(latest)
            if not self.late.times_are_old:
                self._reached = format_stored_instant(self.late.missing_from())
        return True

    def _places_of_rows(self, batch: RawBatch, cursor: Cursor) -> Iterator[_Place]:
        """Yield the place of each row. One whose cursor cannot be read is like one without: it stops no other."""
        name = cursor.column
        frame = with_path_columns(batch.load(), [name])
        if name not in frame.columns:
            raise RefusedError(
                f"missing column {name!r}, which is the cursor of the stream", where=batch.source, code="column_missing"
            )
        for cell, line in zip(frame[name], frame[LINE], strict=True):
            row = {name: None if is_cell_of_invalid_value(cell) else cell}  # its record is a dead letter
            try:
                yield cursor.position(row), cursor.value(row), line
            except RecordError as error:
                self._unreadable += 1
                self._first_unreadable = self._first_unreadable or RefusedError(
                    f"the cursor {name!r} {error.message}",
                    where=f"{batch.source}:{line}",
                    hint=_READ_INSTANTS if cursor.as_ == "instant" else _READ_NUMBERS,
                    code=error.code,
                )
                yield "", "", line

    def _add_to_late_records(self, latest: str) -> None:
        """Without a *latest* instant, nothing shows how far the source's times are behind its clock."""
        asked_at = self._by_its_clock(self._asked_at)
        self.late.add_request(parse_stored_instant(latest) if latest else asked_at - ANY_TIME_ZONE, asked_at)


def _date_text_in_cursor(value: str, cursor: Cursor) -> str:
    """Return the date of a cursor: at its beginning, as YYYYMMDD, or as a UNIX time; empty if there is none."""
    if cursor.as_ == "text":
        found = _DATE.match(value) or _COMPACT.fullmatch(value)
        return "-".join(found.groups()[:3]) if found else ""
    try:
        number = abs(Decimal(value))
    except InvalidOperation:
        return ""
    seconds = next((number / unit for unit in _UNITS if _FIRST_S <= number / unit <= _LAST_S), None)
    return "" if seconds is None else datetime.fromtimestamp(int(seconds), UTC).date().isoformat()


def _readable_positions_in_batch(batch: RawBatch, cursor: Cursor) -> Iterator[str]:
    frame = with_path_columns(batch.load(), [cursor.column])
    for cell in frame[cursor.column].unique() if cursor.column in frame.columns else ():
        with suppress(RecordError):  # no cell of such a source must have one
            yield cursor.position({cursor.column: cell})
