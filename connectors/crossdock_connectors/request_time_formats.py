"""Formatting of times in requests."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator

UNIX, UNIX_MS = "unix", "unix_ms"
_OFFSET = re.compile(r"%:?z|%Z|(Z|GMT|UTC)$|[+-]00:?00$")  # GMT in a date of HTTP (RFC 9110, 5.6.7)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)
_REPEATED = 180  # minutes; longer than any clock is set back


def _checked_time_format(layout: str) -> str:
    try:
        is_fixed = datetime(2001, 2, 3, tzinfo=UTC).strftime(layout) == layout
    except ValueError:
        is_fixed = True
    if layout not in {UNIX, UNIX_MS} and is_fixed:
        raise ValueError("must be unix, unix_ms, or a format such as %Y-%m-%d")
    return layout


TimeLayout = Annotated[str, AfterValidator(_checked_time_format)]
"""A strftime format, `UNIX` or `UNIX_MS`."""


def has_seconds(layout: str | None) -> bool:
    """Return whether times in *layout* have seconds; None stands for ISO 8601."""
    return layout is None or layout in {UNIX, UNIX_MS} or re.search("%[STsXcr]", layout) is not None


def format_range_bound(moment: datetime, layout: str, timezone: str | None, *, excluded: bool = False) -> str:
    """Format *moment* in *layout*, a strftime format, `UNIX` or `UNIX_MS`.

    While a local clock repeats an hour, texts do not sort as times. So a time is written early enough that the text of
    no later time is less; an *excluded* end is written late enough that the text of no earlier time reaches it.
    """
    if timezone is None or layout in {UNIX, UNIX_MS} or _OFFSET.search(layout):
        return format_time(moment, layout, UTC)
    local = (
        _latest_local_time_before(moment, ZoneInfo(timezone))
        if excluded
        else _earliest_local_time_after(moment, ZoneInfo(timezone))
    )
    return format_time(local.replace(tzinfo=UTC), layout, UTC)


def format_time(moment: datetime, layout: str, zone: tzinfo) -> str:
    """Format *moment* in *layout* in the time of *zone*."""
    if layout == UNIX:
        return str(math.floor(moment.timestamp()))
    if layout == UNIX_MS:
        return str((moment - _EPOCH) // timedelta(milliseconds=1))
    local = moment.astimezone(zone)
    return local.strftime(_layout_with_zero_padded_year(layout, local.year))


def _earliest_local_time_after(moment: datetime, zone: ZoneInfo) -> datetime:
    whole = moment.replace(second=0, microsecond=0)
    later = (whole + number * _MINUTE for number in range(1, _REPEATED + 1))
    return min(_local(each, zone) for each in (moment, *later))


def _latest_local_time_before(moment: datetime, zone: ZoneInfo) -> datetime:
    """Return the latest local time before *moment*, rounded up to the minute, or *moment* itself."""
    whole = moment.replace(second=0, microsecond=0)
    earlier = (_local(whole - number * _MINUTE, zone) + _MINUTE for number in range(1, _REPEATED + 1))
    return max(_local(moment, zone), *earlier)


def _local(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None)


def _layout_with_zero_padded_year(layout: str, year: int) -> str:
    """Write the year in *layout* with four digits: strftime writes fewer for years before 1000."""
    text = f"{year:04}"
    written_as = {"%Y": text, "%F": f"{text}-%m-%d"}
    return re.sub("%.", lambda found: written_as.get(found[0], found[0]), layout)
