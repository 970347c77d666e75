"""Texts of records -> days and instants; errors never quote the text."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from crossdock.errors import RecordError

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_INSTANT = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2})?)(?:[.,](\d{1,9}))?(Z|[+-]\d{2}(?::?\d{2})?)?", re.ASCII
)


def day_of(text: str, place: str, layout: str | None) -> date:
    """The day that *text* is.

    Args:
        place: The column or JSON pointer, for errors.
        layout: A format of `datetime.strptime`; None for ISO 8601, ``2026-03-01``.

    Raises:
        RecordError: If it is none.
    """
    try:
        if layout is not None:
            return datetime.strptime(text, layout).date()  # noqa: DTZ007  a day has no zone
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise _not("a date", place, layout)


def instant_of(text: str, place: str, layout: str | None, timezone: str | None) -> datetime:
    """The instant in UTC that *text* is, to the microsecond.

    Args:
        place: The column or JSON pointer, for errors.
        layout: A format of `datetime.strptime`; None for ISO 8601, ``2026-03-01T05:00:00+01:00``.
        timezone: See `in_utc`.

    Raises:
        RecordError: If it is none, or see `in_utc`.
    """
    if layout is None:
        moment, fraction = iso_time(text, place)
        return in_utc(moment.replace(microsecond=int(f"{fraction or '':0<6}"[:6])), place, timezone)
    try:
        moment = datetime.strptime(text, layout)  # noqa: DTZ007  the offset is checked below
    except ValueError:
        raise _not("a time", place, layout) from None
    return in_utc(moment, place, timezone)


def iso_time(text: str, place: str) -> tuple[datetime, str | None]:
    """A date and time in ISO 8601 to the second, and the digits of the fraction of a second, at most nine.

    Raises:
        RecordError: If it is none.
    """
    match = _INSTANT.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        return datetime.fromisoformat(f"{match[1]}T{match[2]}{match[4] or ''}"), match[3]
    except ValueError:
        raise _not("a time", place, None) from None


def in_utc(moment: datetime, place: str, timezone: str | None) -> datetime:
    """*moment*, read from *place*, in UTC.

    Args:
        timezone: The IANA zone of a moment without an offset.

    Raises:
        RecordError: Without an offset and a zone; or outside of the years 1 to 9999 in UTC, such as
            ``9999-12-31 23:59:59`` in New York.
    """
    if moment.tzinfo is None:
        if timezone is None:
            raise RecordError("bad_value", "has no offset, and no timezone is declared", pointer=place)
        moment = moment.replace(tzinfo=ZoneInfo(timezone))
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise RecordError("bad_value", "is outside the years 1 to 9999 in UTC", pointer=place) from None


def _not(kind: str, place: str, layout: str | None) -> RecordError:
    form = f"a date in the format {layout!r}" if layout else f"{kind} in ISO 8601, and no format is declared"
    return RecordError("bad_value", f"is not {form}", pointer=place)
