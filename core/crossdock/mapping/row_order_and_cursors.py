"""The order of rows, by positions: texts that sort as the values of a column do; and cursors, by which streams go on.

A position is stored with each record, so its form never changes. A cursor is where an incremental stream continues,
with checkpoints while it reads and windows of time.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock.mapping import convert
from crossdock.mapping.convert import Row
from crossdock.mapping.from_column import DateFormat
from crossdock.values import exact_json
from crossdock.values.config_base_types import ConfigModel, make_pydantic_error_at_key
from crossdock.values.field_types import EXACT_DECIMAL_CONTEXT, MAX_DIGITS_AFTER_POINT, MAX_DIGITS_BEFORE_POINT
from crossdock.values.time_formats_and_zones import Ambiguous, TimeFormat, check_zone_name

KIND_LENGTH = 8
_SHIFT = 10 ** (MAX_DIGITS_BEFORE_POINT + MAX_DIGITS_AFTER_POINT)  # makes every number positive


class OrderBy(ConfigModel):
    """A column that orders the rows of a record, and what its text means. An empty cell is the oldest."""

    column: str
    """The column or, of the cursor of an API, the dotted path of the member."""
    as_: Annotated[Literal["text", "instant", "decimal", "integer"], Field(alias="as")] = "text"
    """What it holds, by which its values are compared."""
    format: DateFormat | None = None
    """The format of an instant, as in a map; ISO 8601 by default."""
    timezone: Annotated[str, AfterValidator(check_zone_name)] | None = None
    """IANA time zone of an instant without offset."""
    ambiguous: Ambiguous | None = None
    """What is read of a local time that occurs twice, or never, as in a map. Default: ``reject``; of the cursor of an
    API ``earlier``, so that records are read again and none is missed."""
    hour_24: bool | None = None
    """Whether the time 24:00 is the end of a day, as in a map; refused by default."""

    @model_validator(mode="after")
    def _check_options_of_instant(self) -> Self:
        for name in ("format", "timezone", "ambiguous", "hour_24"):
            if getattr(self, name) is not None and self.as_ != "instant":
                raise make_pydantic_error_at_key((name,), "needs as: instant")
        return self

    def position(self, row: Row) -> str:
        """Return text that sorts as the values of the column do."""
        cell = row.get(self.column)  # a record of an earlier version may lack it
        if not cell:
            return ""
        match self.as_:
            case "text":
                return cell
            case "instant":
                moment, fraction = self._time_format.parse_instant_and_fraction(cell, self.column)
                return _sortable_instant_text(moment, fraction)
            case "decimal":
                return _sortable_number_text(convert.decimal(row, self.column))
            case "integer":
                return _sortable_number_text(Decimal(convert.integer(row, self.column)))

    @property
    def _time_format(self) -> TimeFormat:
        return TimeFormat(self.format, self.timezone, self.ambiguous, self.hour_24)


def as_order_by_objects(order_by: Sequence[str | OrderBy] | None) -> list[OrderBy]:
    return [OrderBy(column=item) if isinstance(item, str) else item for item in order_by or ()]


def position_prefix_from_order_hash(columns: Sequence[OrderBy]) -> str:
    """Return the prefix of a position, empty for text. Positions with different prefixes are not comparable."""
    if all(item.as_ == "text" for item in columns):
        return ""
    declarations = [item.model_dump(by_alias=True, exclude_none=True) for item in columns]
    return f"\x1e{hashlib.sha256(exact_json.dumps(declarations)).hexdigest()[:KIND_LENGTH]}\x1f"


def _sortable_instant_text(moment: datetime, fraction: str) -> str:
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}.{fraction:0<9}Z"


def _sortable_number_text(number: Decimal) -> str:
    """Format the number as twenty digits that sort as numbers do, including negative ones."""
    return f"{int(EXACT_DECIMAL_CONTEXT.scaleb(number, MAX_DIGITS_AFTER_POINT)) + _SHIFT:020}"


OVERLAP_S = 600.0  # clocks differ, timestamps are coarse, and sources show some changes late
ANY_TIME_ZONE = timedelta(hours=26)  # the most that two time zones differ
OverlapS = Annotated[float, Field(ge=0, le=30 * 86_400)]
OVERLAP = (
    1_000  # a sequence's number is taken before its record can be seen; also some seconds, if the cursor has those
)


class Cursor(OrderBy):
    """The column that tells how far a stream has read.

    `pull` gets the value to continue from, as text: an instant in UTC as ISO 8601, a number less `overlap`, other
    values as the source wrote them. It must ask for records from that value on, the value itself included: records
    that an earlier run has read are recognised.
    """

    sorted: bool = True
    """Whether the source lists its records by this column, ascending. Then a run stores the cursor while it reads;
    otherwise only at the end, to a time before the reading began."""
    overlap_s: OverlapS = OVERLAP_S
    """How many seconds before the latest instant of a list the next run continues: the source may show a record with an
    earlier one late. More than the difference of the clocks and the delay with which the source shows changes."""
    overlap: Annotated[int, Field(ge=0)] = OVERLAP
    """How far before the last value the next run continues with ``as: integer`` or ``as: decimal``: a source that
    counts takes a number before its record can be seen, so that a later number may be seen first."""

    @model_validator(mode="after")
    def _check_options_fit_type(self) -> Self:
        if self.as_ != "instant" and not self.sorted:
            raise make_pydantic_error_at_key(("sorted",), "a source that does not sort needs a cursor with as: instant")
        if self.as_ != "instant" and self.overlap_s != OVERLAP_S:
            raise make_pydantic_error_at_key(("overlap_s",), "needs as: instant")
        if self.as_ not in {"integer", "decimal"} and self.overlap != OVERLAP:
            raise make_pydantic_error_at_key(("overlap",), "needs as: integer or as: decimal")
        return self

    @property
    def _time_format(self) -> TimeFormat:
        """Read the earlier of two possible instants, so that records are read again and none is missed."""
        return TimeFormat(self.format, self.timezone, self.ambiguous or "earlier", self.hour_24)

    def value(self, row: dict[str, str | None]) -> str:
        """Return the text that the state stores for *row*; empty if the column is."""
        return self.position(row) if self.as_ == "instant" else row.get(self.column) or ""

    def pull_since(self, stored: str | None) -> str | None:
        """Return the argument of `pull` for a stored value."""
        if stored is None or self.as_ == "text":
            return stored
        if self.as_ != "instant":
            return self._number_minus_overlap(stored)
        return format_iso_instant_cursor(parse_stored_instant(stored))

    def reread_to(self, stored: str) -> str:
        """Return the position up to which `pull_since` lets rows be read again; empty for instants and texts."""
        return self.position({self.column: stored}) if self.as_ in {"integer", "decimal"} else ""

    def _number_minus_overlap(self, stored: str) -> str:
        """Return the number *overlap* before a stored one, not below zero and with the zeros that fill it up."""
        number = convert.decimal({self.column: stored}, self.column)
        earlier = max(EXACT_DECIMAL_CONTEXT.subtract(number, self.overlap), min(number, Decimal(0)))
        return stored if earlier == number else f"{earlier:f}".zfill(len(stored) if stored.startswith("0") else 0)


def format_stored_instant(moment: datetime) -> str:
    """Return *moment* in the form of `Cursor.value`."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}000Z"


def parse_stored_instant(stored: str) -> datetime:
    """Return the moment of `Cursor.value`, whose nanoseconds are left out."""
    seconds, _, fraction = stored.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{seconds}.{fraction[:6] or '0'}").replace(tzinfo=UTC)


def format_iso_instant_cursor(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def latest_time_of_change(asked_at: datetime, overlap: timedelta = timedelta()) -> datetime:
    """Return the latest time that a change has in a list that was requested *asked_at*.

    Later times are of what is to come, such as a delivery, or are wrong. They show nothing of the source's clock.
    """
    return asked_at + max(overlap, timedelta(seconds=OVERLAP_S))


class LateRecordTracker:
    """Tells from what time on records may be missing in a list whose source shows them up to *overlap* late.

    The source may write local times as UTC, so that its times are behind its clock: by no more than the least
    difference that was seen between its clock and the latest time of the list. One in the future shows no difference.
    """

    def __init__(self, overlap: timedelta) -> None:
        self._overlap = overlap
        self._least: timedelta | None = None
        self._requests = deque[tuple[timedelta, datetime]]()  # those that may have come too early for some record

    def add_request(self, latest: datetime, asked_at: datetime) -> None:
        """Take into account that *latest* is the latest time of the list as far as it was read by a request."""
        is_future = latest > latest_time_of_change(asked_at, self._overlap)
        behind = ANY_TIME_ZONE if is_future else max(asked_at - latest, timedelta())
        if self._least is None or behind < self._least:  # otherwise an earlier request counts before this one
            self._least = behind
            self._requests.append((behind, asked_at))
        while self._requests[0][0] > self._least + self._overlap:
            self._requests.popleft()

    @property
    def times_are_old(self) -> bool:
        """Whether all times are so old that the source has shown all records with them, whatever its zone is."""
        return self._least is not None and self._least > ANY_TIME_ZONE + self._overlap

    def missing_from(self, asked_at: datetime | None = None) -> datetime:
        """Return that time.

        Args:
            asked_at: When the list was requested if it is not sorted; otherwise the requests tell that.
        """
        first = asked_at or self._requests[0][1]
        return first - (self._least or timedelta()) - self._overlap


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Yielded by `pull`: everything up to *cursor* has been yielded, and the next run may continue there.

    An instant of the last seven days moves the cursor only if a row or a deleted key was yielded since the checkpoint
    before: a source that is out of order may list nothing.

    Attributes:
        needs_whole_list: Whether *cursor* is right only if the lists before it were whole, as at the end of a span of
            time. It is then not reached if one is in doubt. The place of a record in a sorted list is right anyway.
    """

    cursor: str
    needs_whole_list: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time to request from a source; *end* is excluded."""

    start: datetime
    end: datetime

    @property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint(format_iso_instant_cursor(self.end), needs_whole_list=True)


def windows(
    since: str | None,
    until: datetime,
    *,
    size: timedelta,
    first: datetime,
    overlap: timedelta = timedelta(seconds=OVERLAP_S),
) -> Iterator[Window]:
    """Yield consecutive windows from *since* to *until*.

    Args:
        since: The argument of `pull`: an instant as ISO 8601, or None at first.
        size: The length of each window; the last one may be shorter.
        first: Where the first run begins.
        overlap: How long before *since* the first window begins: more than the difference of the clocks and the delay
            with which the source shows changes. Nothing is sent for records that are read again unchanged.

    Raises:
        ValueError: If *since* is not an instant, or *size* is not positive.
    """
    if size <= timedelta():
        raise ValueError("the size of a window must be positive")
    start = first if since is None else datetime.fromisoformat(since) - overlap
    if start.tzinfo is None:
        raise ValueError("the first instant and the cursor need a UTC offset")
    while start < until:
        end = min(start + size, until)
        yield Window(start, end)
        start = end
