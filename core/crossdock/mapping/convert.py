"""Exact and strict conversions of text to values, and the notation of numbers in a source.

A failure names the column, never the content of the cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, Inexact
from functools import cache
from typing import Literal, TypeVar

from msgspec import Struct

from crossdock.errors import RecordError
from crossdock.reading.formats.fixed_width_columns import digits_by_overpunched_character
from crossdock.values.field_types import MAX_DIGITS_AFTER_POINT, MAX_DIGITS_BEFORE_POINT
from crossdock.values.time_formats_and_zones import Ambiguous, TimeFormat

DecimalMark = Literal[".", ","]
Thousands = Literal[",", ".", " ", "'"]
Sign = Literal["leading", "trailing", "parentheses", "overpunch"]
Rounding = Literal["half_even", "half_up", "down"]

_ALSO = {" ": "\u00a0\u202f", "'": "\u2019"}  # no-break spaces, and the apostrophe of Swiss exports
_MODES = {"half_even": ROUND_HALF_EVEN, "half_up": ROUND_HALF_UP, "down": ROUND_DOWN}
_UNIT = Decimal(1).scaleb(-MAX_DIGITS_AFTER_POINT)
_ROUNDING = Context(prec=2 * MAX_DIGITS_BEFORE_POINT)  # more than any result has
_is_plain_number = re.compile(
    rf"[0-9]{{1,{MAX_DIGITS_BEFORE_POINT}}}(?:\.[0-9]{{0,{MAX_DIGITS_AFTER_POINT}}})?"
).fullmatch
_ISO_DAY, _MIDNIGHT = "%Y-%m-%d", "T00:00:00"
_OVERPUNCHES = digits_by_overpunched_character("utf-8")
MAX_DECIMALS = 18


class NumberFormat(Struct, frozen=True):
    """The notation of the numbers in a column. Nothing is guessed.

    Attributes:
        thousands: The mark between groups of three digits. Numbers without a mark are also read. A space also stands
            for no-break spaces, and an apostrophe for U+2019.
        sign: Where the sign is, ``+`` or ``-``; with ``parentheses``, ``(12.50)`` is negative and no sign is read; with
            ``overpunch``, the last digit has it: ``{`` and ``A`` to ``I`` are positive, ``}`` and ``J`` to ``R``
            negative.
        round: How digits after the fourth are rounded; None refuses them.
        decimals: How many of the last digits come after the mark, which is not written; None if it is.
    """

    decimal_mark: DecimalMark = "."
    thousands: Thousands | None = None
    sign: Sign = "leading"
    round: Rounding | None = None
    decimals: int | None = None
    factor: Decimal | int = 1

    def __post_init__(self) -> None:
        if self.thousands == self.decimal_mark:
            raise ValueError(f"thousands and decimal_mark are both {self.thousands!r}")

    def parse_decimal(self, text: str) -> Decimal:
        """Return the number without zeros after the fourth decimal. Raises ValueError if it cannot be read exactly."""
        text = text.strip()
        if self.decimal_mark == "." and self.decimals is None and self.factor == 1 and _is_plain_number(text):
            return Decimal(text)  # as most are written, read in a third of the time
        sign, unsigned = self._split_sign(text)
        whole, fraction = self._whole_and_fraction(unsigned)
        shown = fraction[:MAX_DIGITS_AFTER_POINT] + fraction[MAX_DIGITS_AFTER_POINT:].rstrip("0")
        number = Decimal(f"{sign}{whole or 0}.{shown}")
        if self.factor != 1:
            digits = len(whole) + len(shown) + len(Decimal(self.factor).as_tuple().digits) + 1
            number = _without_trailing_zeros(
                Context(prec=digits, traps=[Inexact]).multiply(number, Decimal(self.factor))
            )
        if number.as_tuple().exponent < -MAX_DIGITS_AFTER_POINT:  # type: ignore[operator]  # it is finite
            return self._rounded(number)
        if number.copy_abs() >= 10**MAX_DIGITS_BEFORE_POINT:
            raise ValueError(_TOO_LONG)
        return number

    def _whole_and_fraction(self, unsigned: str) -> tuple[str, str]:
        if self.decimals is not None:
            if not _DIGITS.fullmatch(unsigned):
                raise ValueError(f"is not a number with {self._description()}")
            digits = unsigned.lstrip("0").zfill(self.decimals)
            return digits[: len(digits) - self.decimals], digits[len(digits) - self.decimals :]
        match = _number_pattern(self.decimal_mark, self.thousands).fullmatch(unsigned)
        if not match or not (match["whole"] or match["fraction"]):
            raise ValueError(f"is not a number with {self._description()}")
        return re.sub("[^0-9]", "", match["whole"]).lstrip("0"), match["fraction"] or ""

    def parse_integer(self, text: str) -> int:
        """Return the whole number, which may have zeros after the decimal mark."""
        number = self.parse_decimal(text)
        if number != (whole := int(number)):
            raise ValueError("is not a whole number")
        return whole

    def _split_sign(self, text: str) -> tuple[str, str]:
        match self.sign:
            case "leading" if text[:1] in {"+", "-"}:
                return text[0], text[1:]
            case "trailing" if text[-1:] in {"+", "-"}:
                return text[-1], text[:-1]
            case "parentheses" if text[:1] == "(" and text[-1:] == ")":
                return "-", text[1:-1]
            case "overpunch" if text[-1:] in _OVERPUNCHES:
                digit, negative = _OVERPUNCHES[text[-1]]
                return ("-" if negative else ""), text[:-1] + digit
        return "", text

    def _rounded(self, number: Decimal) -> Decimal:
        if self.round is None:
            raise ValueError(f"has more than {MAX_DIGITS_AFTER_POINT} digits after the decimal mark, and no round")
        if number.copy_abs() >= 10**MAX_DIGITS_BEFORE_POINT:
            raise ValueError(_TOO_LONG)
        rounded = number.quantize(_UNIT, _MODES[self.round], _ROUNDING)
        if rounded.copy_abs() >= 10**MAX_DIGITS_BEFORE_POINT:
            raise ValueError(_TOO_LONG)
        return rounded

    def _description(self) -> str:
        thousands = f"thousands mark {self.thousands!r}" if self.thousands else "no thousands marks"
        signs = {
            "leading": "a leading sign",
            "trailing": "a trailing sign",
            "parentheses": "parentheses as its sign",
            "overpunch": "an overpunched sign",
        }
        marks = f"decimal mark {self.decimal_mark!r}, {thousands}"
        if self.decimals is not None:
            marks = f"digits alone, {self.decimals} of them decimals,"
        return f"{marks} and {signs[self.sign]}"


def _without_trailing_zeros(number: Decimal) -> Decimal:
    text = f"{number:f}"
    return Decimal(text.rstrip("0").rstrip(".")) if "." in text else number


_DIGITS = re.compile("[0-9]+")
_TOO_LONG = f"has more than {MAX_DIGITS_BEFORE_POINT} digits before the decimal mark"


@cache
def _number_pattern(decimal_mark: DecimalMark, thousands: Thousands | None) -> re.Pattern[str]:
    r"""Compile the pattern. It has ASCII digits only; \d would match those of every script."""
    mark = f"[{re.escape(thousands + _ALSO.get(thousands, ''))}]" if thousands else None
    grouped = f"[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+|" if mark else ""
    return re.compile(f"(?P<whole>{grouped}[0-9]*)(?:{re.escape(decimal_mark)}(?P<fraction>[0-9]*))?")


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
    return number(row, column, NumberFormat(decimal_mark, thousands, sign, round, decimals, factor).parse_decimal)


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
    return number(row, column, NumberFormat(decimal_mark, thousands, sign, None, decimals, factor).parse_integer)


def number(row: Row, column: str, read: Callable[[str], N]) -> N:
    """Return what *read*, a method of a `NumberFormat`, makes of the cell."""
    try:
        return read(text(row, column))
    except ValueError as error:
        raise RecordError("bad_value", str(error), pointer=column) from None


def day(row: Row, column: str, *, layout: str = _ISO_DAY) -> date:
    """Return a calendar day written as *layout* says: a format of `datetime.strptime`, ``cyymmdd`` or ``cyyddd``.

    In the default layout, a day may also be the time at which it begins, as sheets and databases have it.
    """
    cell = text(row, column)
    return TimeFormat(layout).parse_day(cell.removesuffix(_MIDNIGHT) if layout == _ISO_DAY else cell, column)


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
