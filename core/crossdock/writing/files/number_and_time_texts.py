"""Numbers and times as texts: exact, and the same on every machine. What does not fit raises ValueError."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct, field

from crossdock.reading.formats.fixed_width_columns import digits_by_overpunched_character
from crossdock.values import exact_json

WrittenSign = Literal["leading", "trailing", "parentheses", "overpunch", "leading_overpunch", "none"]
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNIX = "unix"
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)


def _century_digit(at: datetime) -> int:
    if not 1900 <= at.year < 2900:
        raise ValueError("is outside the years 1900 to 2899")
    return at.year // 100 - 19


def _utc_offset_text(at: datetime) -> str:
    seconds = int((at.utcoffset() or at - at).total_seconds())
    return f"{'-' if seconds < 0 else '+'}{abs(seconds) // 3600:02}{abs(seconds) // 60 % 60:02}"


_DIRECTIVES: Mapping[str, Callable[[datetime], str]] = {
    "Y": lambda at: f"{at.year:04}",
    "y": lambda at: f"{at.year % 100:02}",
    "m": lambda at: f"{at.month:02}",
    "d": lambda at: f"{at.day:02}",
    "j": lambda at: f"{at.timetuple().tm_yday:03}",
    "H": lambda at: f"{at.hour:02}",
    "M": lambda at: f"{at.minute:02}",
    "S": lambda at: f"{at.second:02}",
    "f": lambda at: f"{at.microsecond:06}",
    "z": _utc_offset_text,
    "%": lambda _: "%",
}
_WHOLE: Mapping[str, Callable[[datetime], str]] = {
    "cyymmdd": lambda at: f"{_century_digit(at)}{at.year % 100:02}{at.month:02}{at.day:02}",
    "cyyddd": lambda at: f"{_century_digit(at)}{at.year % 100:02}{at.timetuple().tm_yday:03}",
    UNIX: lambda at: str((at - _EPOCH) // timedelta(seconds=1)),
}


def time_format_or_raise(text: str) -> str:
    """Check the format of a date or time that is written. Raises ValueError."""
    if text in _WHOLE:
        return text
    found = _DIRECTIVE.findall(text)
    unknown = [each for each in found if each not in _DIRECTIVES]
    if not found or unknown:
        known = " ".join(f"%{each}" for each in _DIRECTIVES)
        raise ValueError(f"is made of {known} and other text, or is one of {', '.join(_WHOLE)}")
    return text


def formatted_time_text(at: date, form: str) -> str:
    """Return a day, or an aware instant, in the format *form*, which `time_format_or_raise` has checked."""
    moment = at if isinstance(at, datetime) else datetime(at.year, at.month, at.day)  # noqa: DTZ001  a day
    if form in _WHOLE:
        return _WHOLE[form](moment)
    return _DIRECTIVE.sub(lambda found: _DIRECTIVES[found[1]](moment), form)


def exact_number_or_raise(value: Any) -> Decimal:
    """Return a number, or the text of one, as it is. Raises ValueError for anything else."""
    if isinstance(value, Decimal) and value.is_finite():
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return Decimal(value)
    raise ValueError("is not a number")


class NumberNotation(Struct, frozen=True):
    """How a number is written.

    Attributes:
        places: How many digits follow the decimal mark; None for as many as the number has.
        decimals: How many of the last digits come after the decimal mark, which is not written. Negative: how many
            zeros at the end are not written. None if the mark is.
        digits: The fewest digits, with zeros before them.
        sign: Where the sign is; ``none`` refuses negative numbers.
        encoding: Whose overpunched digits are meant.
    """

    decimal_mark: str = "."
    places: int | None = None
    decimals: int | None = None
    digits: int = 1
    sign: WrittenSign = "leading"
    encoding: str = field(default="ascii")

    def text(self, number: Decimal, width: int | None = None) -> str:
        """Return the exact number, filled up with zeros to *width* characters with its sign if it is given.

        Raises ValueError if it has more decimals than the notation, or is negative and the notation has no sign.
        """
        plain = exact_json.decimal_text(number)
        is_negative, unsigned = plain.startswith("-"), plain.removeprefix("-")
        if is_negative and self.sign == "none":
            raise ValueError("is negative, and no sign is declared")
        digits = self._digits_without_sign(unsigned)
        if width is not None:
            digits = digits.zfill(width - self._sign_width(is_negative=is_negative))
        return self._with_sign(digits, "" if width is None else "+", is_negative=is_negative)

    def _digits_without_sign(self, unsigned: str) -> str:
        whole, _, fraction = unsigned.partition(".")
        if self.decimals is not None:
            digits = self._with_implied_decimals(whole, fraction, self.decimals)
            return (digits.lstrip("0") or "0").zfill(self.digits)
        if self.places is not None:
            _raise_if_too_many_decimals(fraction, self.places)
            fraction = fraction.ljust(self.places, "0")
        return whole.zfill(self.digits) + (f"{self.decimal_mark}{fraction}" if fraction else "")

    @staticmethod
    def _with_implied_decimals(whole: str, fraction: str, decimals: int) -> str:
        _raise_if_too_many_decimals(fraction, max(decimals, 0))
        if decimals >= 0:
            return whole + fraction.ljust(decimals, "0")
        if whole != "0" and not whole.endswith("0" * -decimals):
            raise ValueError(f"does not end with {-decimals} zeros, which are not written")
        return whole[:decimals]

    def _sign_width(self, *, is_negative: bool) -> int:
        if self.sign == "parentheses":
            return 2 * is_negative
        return self.sign == "trailing" or (self.sign == "leading" and is_negative)

    def _with_sign(self, digits: str, plus: str, *, is_negative: bool) -> str:
        match self.sign:
            case "trailing":
                return digits + ("-" if is_negative else plus)
            case "parentheses" if is_negative:
                return f"({digits})"
            case "overpunch":
                return digits[:-1] + self._overpunched_digit(digits[-1], is_negative=is_negative)
            case "leading_overpunch":
                return self._overpunched_digit(digits[0], is_negative=is_negative) + digits[1:]
        return f"-{digits}" if is_negative else digits

    def _overpunched_digit(self, digit: str, *, is_negative: bool) -> str:
        marks = [
            mark
            for mark, found in digits_by_overpunched_character(self.encoding).items()
            if found == (digit, is_negative)
        ]
        return next(mark for mark in reversed(marks) if mark not in _PLAIN)


_PLAIN = frozenset("0123456789pqrstuvwxy")


def _raise_if_too_many_decimals(fraction: str, most: int) -> None:
    if len(fraction) > most:
        raise ValueError(f"has more than {most} digits after the decimal mark, and is never rounded")
