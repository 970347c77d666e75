"""Exact and strict conversions of text to values. A failure names the column, never the content of the cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TypeVar

from crossdock.errors import RecordError
from crossdock.mapping.number_format import DecimalMark, NumberFormat, Rounding, Sign, Thousands
from crossdock.values.time_formats import Ambiguous, TimeFormat

Row = Mapping[str, str | None]
N = TypeVar("N", Decimal, int)


def text(row: Row, column: str) -> str:
    """Return the cell as it is. Raises RecordError if it is empty, as all conversions do."""
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
    decimals: int | None = None,
    factor: Decimal | int = 1,
) -> Decimal:
    """Return an exact number of at most 15 digits before and 4 after the mark, written as `NumberFormat` says.

    Zeros around these digits, and white space around the number, are ignored.
    """
    return _number(row, column, NumberFormat(decimal_mark, thousands, sign, round, decimals, factor).parse_decimal)


def integer(
    row: Row,
    column: str,
    *,
    decimal_mark: DecimalMark = ".",
    thousands: Thousands | None = None,
    sign: Sign = "leading",
    decimals: int | None = None,
    factor: Decimal | int = 1,
) -> int:
    """Return a whole number of at most 15 digits, written as `NumberFormat` says; ``5.`` and ``5.000`` are whole."""
    return _number(row, column, NumberFormat(decimal_mark, thousands, sign, None, decimals, factor).parse_integer)


def _number(row: Row, column: str, read: Callable[[str], N]) -> N:
    try:
        return read(text(row, column))
    except ValueError as error:
        raise RecordError("bad_value", str(error), pointer=column) from None


def day(row: Row, column: str, *, layout: str = "%Y-%m-%d") -> date:
    """Return a calendar day written as *layout* says: a format of `datetime.strptime`, ``cyymmdd`` or ``cyyddd``."""
    return TimeFormat(layout).parse_day(text(row, column), column)


def instant(
    row: Row,
    column: str,
    *,
    layout: str | None = None,
    timezone: str | None = None,
    ambiguous: Ambiguous | None = None,
    hour_24: bool = False,
) -> datetime:
    """Return an instant in UTC. Text without an offset needs *timezone*, the IANA zone of its writer.

    Args:
        layout: As for `datetime.strptime`, or ``unix`` or ``unix_ms``; by default ISO 8601, of whose fraction of a
            second six digits count.
        ambiguous: Which of two possible instants a local time means that occurs twice or never when clocks change:
            ``earlier`` or ``later``; it is refused by default.
        hour_24: Whether 24:00 is the end of a day.

    Raises:
        RecordError: Also outside of the years 1 to 9999 in UTC, such as ``9999-12-31 23:59:59`` in New York.
    """
    return TimeFormat(layout, timezone, ambiguous, hour_24).parse_instant(text(row, column), column)


def boolean(row: Row, column: str, *, true: str, false: str) -> bool:
    """Return True for the text *true* and False for the text *false*; other texts are refused."""
    value = text(row, column)
    if value not in {true, false}:
        raise RecordError("bad_value", f"is neither {true!r} nor {false!r}", pointer=column)
    return value == true
