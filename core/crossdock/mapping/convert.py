"""Text -> values, exact and strict; a failure is a dead letter with the column, never the cell's content."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TypeVar
from zoneinfo import ZoneInfo

from crossdock.errors import RecordError
from crossdock.mapping.number_format import DecimalMark, NumberFormat, Rounding, Sign, Thousands

Row = Mapping[str, str | None]
N = TypeVar("N", Decimal, int)
_ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:[.,]([0-9]{1,9}))?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?"
)


def text(row: Row, column: str) -> str:
    """The cell as it is.

    Raises:
        RecordError: If it is empty.
    """
    value = row[column]
    if value is None or value == "":
        raise RecordError("bad_value", "is empty", pointer=column)
    return value


def decimal(
    row: Row,
    column: str,
    *,
    decimal_mark: DecimalMark = ".",
    thousands: Thousands | None = None,
    sign: Sign = "leading",
    round: Rounding | None = None,  # noqa: A002  as in a map
) -> Decimal:
    """An exact number of at most 15 digits before and 4 after the mark, written as `NumberFormat` says.

    Zeros around these digits, and white space around the number, are ignored.
    """
    return _number(row, column, NumberFormat(decimal_mark, thousands, sign, round).decimal)


def integer(
    row: Row,
    column: str,
    *,
    decimal_mark: DecimalMark = ".",
    thousands: Thousands | None = None,
    sign: Sign = "leading",
) -> int:
    """A whole number of at most 15 digits, written as `NumberFormat` says; ``5.`` and ``5.000`` are whole."""
    return _number(row, column, NumberFormat(decimal_mark, thousands, sign).integer)


def _number(row: Row, column: str, read: Callable[[str], N]) -> N:
    try:
        return read(text(row, column))
    except ValueError as error:
        raise RecordError("bad_value", str(error), pointer=column) from None


def day(row: Row, column: str, *, layout: str = "%Y-%m-%d") -> date:
    """A calendar day written as *layout* says (`datetime.strptime`)."""
    return _moment(row, column, layout).date()


def instant(row: Row, column: str, *, layout: str | None = None, timezone: str | None = None) -> datetime:
    """An instant in UTC. Text without an offset needs *timezone*, the IANA zone of its writer.

    Args:
        layout: As for `datetime.strptime`; by default ISO 8601, of whose fraction of a second six digits count.

    Raises:
        RecordError: Also outside of the years 1 to 9999 in UTC, such as ``9999-12-31 23:59:59`` in New York.
    """
    if layout is not None:
        return in_utc(_moment(row, column, layout), column, timezone)
    moment, fraction = iso_time(row, column)
    return in_utc(moment.replace(microsecond=int(f"{fraction or '':0<6}"[:6])), column, timezone)


def iso_time(row: Row, column: str) -> tuple[datetime, str | None]:
    """A date and time in ISO 8601 to the second, and the digits of the fraction of a second, at most nine.

    Raises:
        RecordError: If it is none.
    """
    match = _ISO.fullmatch(text(row, column))
    try:
        if match is None:
            raise ValueError
        return datetime.fromisoformat(f"{match[1]}T{match[2]}{match[4] or ''}"), match[3]
    except ValueError:
        raise RecordError("bad_value", "is not a time in ISO 8601, and no format is declared", pointer=column) from None


def in_utc(moment: datetime, column: str, timezone: str | None) -> datetime:
    """*moment*, read from *column*, in UTC; see `instant`."""
    if moment.tzinfo is None:
        if timezone is None:
            raise RecordError("bad_value", "has no offset, and no timezone is declared", pointer=column)
        moment = moment.replace(tzinfo=ZoneInfo(timezone))
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise RecordError("bad_value", "is outside the years 1 to 9999 in UTC", pointer=column) from None


def boolean(row: Row, column: str, *, true: str, false: str) -> bool:
    """One of two declared texts."""
    value = text(row, column)
    if value not in {true, false}:
        raise RecordError("bad_value", f"is neither {true!r} nor {false!r}", pointer=column)
    return value == true


def _moment(row: Row, column: str, layout: str) -> datetime:
    try:
        return datetime.strptime(text(row, column), layout)  # noqa: DTZ007  the caller knows the zone
    except ValueError:
        raise RecordError("bad_value", f"is not a date in the format {layout!r}", pointer=column) from None
