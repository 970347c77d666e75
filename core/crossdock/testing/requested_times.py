"""The times that requests ask for and that answers contain, in the forms that APIs use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import unquote

_ISO = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)\d*(Z|[+-]\d\d:?\d\d)?)?(?!\d)")
_UNIX = re.compile(r"(?<![\d.-])(\d{10})(\d{3})?(?![\d-])")
_ZONES = timedelta(hours=14)  # so far a local time may be from UTC
_LATEST_S = 4_102_444_800  # of UNIX time: the year 2100


class Moment(NamedTuple):
    """A time, as early and as late as it can be: a text may lack the time zone, or the time of the day."""

    earliest: datetime
    latest: datetime


def moments_in(text: str) -> Iterator[Moment]:
    """Yield the times in a URL or a body: ISO 8601, dates, and UNIX time in seconds or milliseconds."""
    for day, clock, zone in _ISO.findall(unquote(text)):
        with suppress(ValueError):  # no time of a calendar
            moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}{zone or 'Z'}")
            spread = timedelta() if zone else _ZONES
            yield Moment(moment - spread, moment + spread + (timedelta() if clock else timedelta(days=1)))
    for seconds, _ in _UNIX.findall(unquote(text)):
        if 946_684_800 <= int(seconds) < _LATEST_S:
            moment = datetime.fromtimestamp(int(seconds), UTC)
            yield Moment(moment, moment + timedelta(seconds=1))


def instant_of(text: str | None) -> datetime | None:
    """Return the instant that a cursor is; None if it is none."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else None
