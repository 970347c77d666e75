"""Conversion of texts to days and instants, and time zones, whose clocks change. Errors never quote the text.

What was parsed is formatted again and compared with the text, because `datetime.strptime` accepts too much: digits of
the next number, days that a year does not have, wrong names of weekdays.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from functools import cache
from typing import Literal
from zoneinfo import ZoneInfo, available_timezones

from msgspec import Struct

from crossdock.errors import RecordError

_NOT_ZONES = {"localtime", "posixrules", "Factory"}  # the machine's own settings, and a placeholder


@cache
def _known_zones() -> frozenset[str]:
    # `ZoneInfo` also opens the files below right/, which count leap seconds.
    return frozenset(available_timezones() - _NOT_ZONES)


def check_zone_name(name: str) -> str:
    """Check that *name* is an IANA time zone. Raises ValueError if it is not, with the nearest names."""
    if name in _known_zones():
        return name
    near = get_close_matches(name, sorted(_known_zones()))
    advice = f"did you mean {' or '.join(near)}?" if near else "write it like Europe/Berlin"
    raise ValueError(f"{name!r} is not an IANA time zone known to this machine; {advice}")


def naive_local_time_at(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the local time in *zone* at *instant*, without a zone."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def first_instant_of_local_time(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant at which clocks show *local*, in whole seconds; the end of the gap if they skip it."""
    instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if naive_local_time_at(instant, zone) == local:
        return instant
    # Skipped: with the offset after the gap it lies before the gap, with the one before, as in `instant`, behind it.
    before = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    seconds = range((instant - before) // timedelta(seconds=1))
    return before + timedelta(
        seconds=bisect_left(
            seconds, local, key=lambda second: naive_local_time_at(before + timedelta(seconds=second), zone)
        )
    )


def last_instant_of_local_time(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the last instant at which the clocks show *local*, in UTC; for a skipped time, the end of the gap."""
    instant = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return instant if naive_local_time_at(instant, zone) == local else first_instant_of_local_time(local, zone)


def clock_change_instants_and_shifts(
    zone: ZoneInfo, since: datetime, until: datetime
) -> Iterator[tuple[datetime, timedelta]]:
    """Yield the instants after *since* and not after *until* at which clocks change, each with how far they go on."""
    at, end = since.astimezone(UTC).replace(microsecond=0), until.astimezone(UTC)
    while at < end:
        later = min(at + timedelta(hours=1), end)
        if change := _utc_offset_at(later, zone) - _utc_offset_at(at, zone):
            yield _first_change(at, later, zone), change
        at = later


def _first_change(since: datetime, until: datetime, zone: ZoneInfo) -> datetime:
    before = _utc_offset_at(since, zone)

    def is_changed(seconds: int) -> bool:
        return _utc_offset_at(since + timedelta(seconds=seconds), zone) != before

    return since + timedelta(seconds=bisect_left(range(int((until - since).total_seconds())), True, key=is_changed))


def _utc_offset_at(instant: datetime, zone: ZoneInfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


Ambiguous = Literal["earlier", "later", "reject"]

UNIX = {"unix": 1, "unix_ms": 1_000}
"""Formats that count from 1970 in UTC, with their units in a second."""
_UNIT_ADVICE = {
    "unix": ", which are seconds; milliseconds are 'unix_ms'",
    "unix_ms": ", which are milliseconds; seconds are 'unix'",
}
CENTURY_DIGIT = {
    "cyymmdd": (re.compile(r"([0-9])([0-9]{2})([0-9]{4})"), "%m%d"),  # IBM i
    "cyyddd": (re.compile(r"([0-9])([0-9]{2})([0-9]{3})"), "%j"),  # JD Edwards
}
"""Formats whose first digit is the number of centuries after 1900, with the part after the year."""
MICROSOFT_JSON = "microsoft_json"
"""``/Date(1518685950940+0000)/``: milliseconds since 1970 in UTC, and the offset of the local time, if it has one."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_INSTANT = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2})?)(?:[.,](\d{1,9}))?(Z|[+-]\d{2}(?::?\d{2})?)?", re.ASCII
)
_MICROSOFT_JSON = re.compile(r"/Date\((-?[0-9]{1,15})([+-][0-9]{4})?\)/")
_UNIX = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?")
_SECONDS = re.compile(r"1[0-9]{9}")  # as milliseconds, they would be of January 1970; as seconds, of 2001 to 2033
_TOKEN = re.compile(r"%(?P<directive>.?)|(?P<space>\s+)|(?P<text>[^%\s]+)", re.DOTALL)
_DIGITS = {**dict.fromkeys("mdHIMSyUWV", 2), **dict.fromkeys("YG", 4), **dict.fromkeys("wu", 1), "j": 3, "f": 6}
_NAMES = "aAbBp"
_OFFSET = r"Z|[+-][0-9]{2}:?[0-9]{2}(?::?[0-9]{2}(?:\.[0-9]{1,6})?)?"
_DAY_LENGTH = timedelta(days=1)


class TimeFormat(Struct, frozen=True):
    """The notation of the days or instants in a column. Nothing is guessed.

    Attributes:
        layout: A format of `datetime.strptime`, ``unix``, ``unix_ms``, ``microsoft_json``, ``cyymmdd`` or ``cyyddd``;
            None for ISO 8601.
        timezone: The IANA zone of a time without an offset.
        ambiguous: Which of the two possible instants is read for a local time that occurs twice, or never, when clocks
            change; by default it is refused.
        hour_24: Whether 24:00 is the end of a day.
    """

    layout: str | None = None
    timezone: str | None = None
    ambiguous: Ambiguous | None = None
    hour_24: bool | None = None

    def parse_day(self, text: str, place: str) -> date:
        """Convert *text* to a day, or raise RecordError at *place*, a column or JSON pointer."""
        try:
            if self.layout is not None:
                return _parse_by_layout(text, self.layout).date()
            if _DAY.fullmatch(text):
                return date.fromisoformat(text)
        except (ValueError, OverflowError):
            pass
        raise self._wrong_format_error("a date", place)

    def parse_instant(self, text: str, place: str) -> datetime:
        """Convert *text* to an instant in UTC, to the microsecond; see `parse_instant_and_fraction`."""
        return self.parse_instant_and_fraction(text, place)[0]

    def parse_instant_and_fraction(self, text: str, place: str) -> tuple[datetime, str]:
        """Convert *text* to an instant in UTC. Also return the digits of the fraction of its second, at most nine.

        Raises RecordError if *text* is not a time, has neither offset nor zone, is ambiguous, or is outside the years 1
        to 9999 in UTC, such as ``9999-12-31 23:59:59`` in New York.
        """
        try:
            moment, fraction = self._parse_moment_and_fraction(text)
        except (ValueError, OverflowError):
            raise self._wrong_format_error("a time", place) from None
        try:
            return self._in_utc(moment, place), fraction
        except OverflowError:
            raise RecordError("bad_value", "is outside the years 1 to 9999 in UTC", pointer=place) from None

    def _parse_moment_and_fraction(self, text: str) -> tuple[datetime, str]:
        if self.layout in UNIX:
            return _parse_unix_time_and_fraction(text, self.layout)
        if self.layout is not None:
            moment = _parse_by_layout(text, self.layout, hour_24=bool(self.hour_24))
            return moment, f"{moment.microsecond:06}"
        match = _INSTANT.fullmatch(text)
        if match is None:
            raise ValueError
        day, clock, fraction, offset = match[1], match[2], match[3] or "", match[4] or ""
        ends_day = bool(self.hour_24) and clock in {"24:00", "24:00:00"} and not fraction.strip("0")
        moment = datetime.fromisoformat(f"{day}T{'00:00' if ends_day else _refuse_hour_24(clock)}{offset}")
        moment = moment.replace(microsecond=int(f"{fraction:0<6}"[:6]))
        return (moment + _DAY_LENGTH if ends_day else moment), fraction

    def _in_utc(self, moment: datetime, place: str) -> datetime:
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
        if self.timezone is None:
            raise RecordError("bad_value", "has no offset, and no timezone is declared", pointer=place)
        local = moment.replace(tzinfo=ZoneInfo(self.timezone))
        other = local.replace(fold=1)
        if local.utcoffset() == other.utcoffset():
            return local.astimezone(UTC)
        both = sorted([local.astimezone(UTC), other.astimezone(UTC)])
        match self.ambiguous:
            case "earlier":
                return both[0]
            case "later":
                return both[1]
        repeated = both[0].astimezone(local.tzinfo).replace(tzinfo=None) == moment
        when = "occurs twice" if repeated else "does not occur"
        message = f"{when} in {self.timezone}, where the clocks change, and no rule says which instant is meant"
        raise RecordError("bad_value", message, pointer=place)

    def _wrong_format_error(self, kind: str, place: str) -> RecordError:
        form = (
            f"a date in the format {self.layout!r}{_UNIT_ADVICE.get(self.layout, '')}"
            if self.layout
            else f"{kind} in ISO 8601, and no format is declared"
        )
        return RecordError("bad_value", f"is not {form}", pointer=place)


def raise_if_invalid_time_format(layout: str) -> None:
    """Check a format of a date or time. Raises ValueError if it is not one, or lacks the year."""
    if layout in UNIX or layout in CENTURY_DIGIT or layout == MICROSOFT_JSON:
        return
    if "%" not in layout:
        others = ", ".join([*UNIX, MICROSOFT_JSON, *CENTURY_DIGIT])
        raise ValueError(f"is not a date format such as %Y-%m-%d, nor one of {others}")
    _, directives = _pattern_and_directives_of_layout(layout)
    if not set("YyG") & set(directives):
        raise ValueError(f"{layout!r} has no year, and no date is complete without one; use %Y")
    if "I" in directives and "p" not in directives:
        raise ValueError(f"{layout!r} has hours of 12 without AM or PM; add %p, or use %H")
    trial = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
    try:
        datetime.strptime(trial.strftime(layout), layout)  # noqa: DTZ007  a trial
    except (ValueError, TypeError, LookupError, re.error):  # strptime compiles it to a regular expression
        message = f"{layout!r} is not a valid date format for reading; use each directive, such as %Y, only once"
        raise ValueError(message) from None


def _parse_by_layout(text: str, layout: str, *, hour_24: bool = False) -> datetime:
    """Parse *text*. Raises ValueError if formatting the moment in the layout does not give *text* again.

    Case, the number of spaces, and a zero before a separate single digit do not matter.
    """
    if layout in CENTURY_DIGIT:
        form, rest = CENTURY_DIGIT[layout]
        if not (match := form.fullmatch(text)):
            raise ValueError
        text, layout = f"{19 + int(match[1])}{match[2]}{match[3]}", f"%Y{rest}"
    elif layout in UNIX:
        return _parse_unix_time_and_fraction(text, layout)[0]
    elif layout == MICROSOFT_JSON:
        return _parse_microsoft_json(text)
    ends_day = False
    if hour_24 and "24" in text:
        text, ends_day = _replace_hour_24(text, layout)
    moment = datetime.strptime(text, layout)  # noqa: DTZ007  the offset is checked by who calls
    if moment.strftime(layout) != text and not _text_matches_formatted_moment(text, layout, moment):
        raise ValueError
    return moment + _DAY_LENGTH if ends_day else moment


def _text_matches_formatted_moment(text: str, layout: str, moment: datetime) -> bool:
    shape, directives = _pattern_and_directives_of_layout(layout)
    if (match := shape.fullmatch(text)) is None:
        return False
    for found, directive in zip(match.groups(), directives, strict=True):
        if directive == "z":
            continue
        formatted = moment.strftime(f"%{directive}")
        if directive == "f":
            same = found.ljust(6, "0") == formatted
        elif directive in _DIGITS:
            same = int(found) == int(formatted)
        else:
            same = found.casefold() == formatted.casefold()
        if not same:
            return False
    return True


def _replace_hour_24(text: str, layout: str) -> tuple[str, bool]:
    shape, directives = _pattern_and_directives_of_layout(layout)
    match = shape.fullmatch(text)
    if match is None or "H" not in directives or match[directives.index("H") + 1] != "24":
        return text, False
    if any(int(found) for found, each in zip(match.groups(), directives, strict=True) if each in "MSf"):
        raise ValueError
    start, end = match.span(directives.index("H") + 1)
    return f"{text[:start]}00{text[end:]}", True


@cache
def _pattern_and_directives_of_layout(layout: str) -> tuple[re.Pattern[str], Sequence[str]]:
    """Compile the form of texts in *layout*. Adjacent numbers need all digits, to be read in one way only."""
    tokens = list(_TOKEN.finditer(layout))
    parts, directives = list[str](), list[str]()
    for number, token in enumerate(tokens):
        directive = token["directive"]
        if directive is None:
            parts.append(" +" if token["space"] else re.escape(token["text"]))
        elif directive == "%":
            parts.append("%")
        else:
            parts.append(
                f"({_directive_pattern(directive, alone=not any(_has_digits_before_and_after(tokens, number)))})"
            )
            directives.append(directive)
    return re.compile("".join(parts)), directives


def _has_digits_before_and_after(tokens: Sequence[re.Match[str]], number: int) -> Iterator[bool]:
    """Yield whether digits come directly before, and directly after, the directive *number*."""
    for other, end in ((number - 1, -1), (number + 1, 0)):
        if 0 <= other < len(tokens):
            token = tokens[other]
            yield token["directive"] in _DIGITS or (token["text"] or " ")[end].isdigit()


def _directive_pattern(directive: str, *, alone: bool) -> str:
    if directive == "z":
        return _OFFSET
    if directive and directive in _NAMES:
        return r"[^\W\d_]+"
    if directive not in _DIGITS:
        raise ValueError(f"%{directive} cannot be read alike on all machines; write such text as it is, or use others")
    digits = _DIGITS[directive]
    if directive == "f":
        return "[0-9]{1,6}"
    if alone and digits in {2, 3}:
        return f"[0-9]{{1,{digits}}}| [0-9]"
    return f"[0-9]{{{digits}}}"


def _parse_unix_time_and_fraction(text: str, layout: str) -> tuple[datetime, str]:
    """Return what `_moment_and_fraction_of_unix_count` does, but reject seconds in place of milliseconds."""
    if layout == "unix_ms" and _SECONDS.fullmatch(text):
        raise ValueError
    return _moment_and_fraction_of_unix_count(text, UNIX[layout])


def _moment_and_fraction_of_unix_count(text: str, units: int) -> tuple[datetime, str]:
    """Return the moment of a count, and the digits of the fraction of its second."""
    if not _UNIX.fullmatch(text) or (units > 1 and "." in text):
        raise ValueError
    whole, _, fraction = text.lstrip("-").partition(".")
    ticks = int(f"{whole}{fraction:0<9}") * (-1 if text.startswith("-") else 1) // units
    seconds, nanoseconds = divmod(ticks, 10**9)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=nanoseconds // 1_000)
    return moment, f"{nanoseconds:09}"


def _parse_microsoft_json(text: str) -> datetime:
    if not (match := _MICROSOFT_JSON.fullmatch(text)):
        raise ValueError
    moment = _moment_and_fraction_of_unix_count(match[1], UNIX["unix_ms"])[0]
    return moment if match[2] is None else moment.astimezone(datetime.strptime(match[2], "%z").tzinfo)


def _refuse_hour_24(clock: str) -> str:
    """Reject 24:00, which newer versions of Python also read."""
    if clock.startswith("24"):
        raise ValueError
    return clock
