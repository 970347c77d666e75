"""Clocks on the wall and instants: which instant a local time means where clocks jump forward or back."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

_NO_PLACE = {"localtime", "posixrules", "Factory"}  # the machine's own settings, and what stands for none


@cache
def _known() -> frozenset[str]:
    # Not every file that `ZoneInfo` would open is a zone of UTC: those below right/ count leap seconds.
    return frozenset(available_timezones() - _NO_PLACE)


def zone_name(name: str) -> str:
    """*name*, if it is an IANA time zone.

    Raises:
        ValueError: If this machine knows no such zone; with the nearest names.
    """
    if name in _known():
        return name
    near = get_close_matches(name, sorted(_known()))
    advice = f"did you mean {' or '.join(near)}?" if near else "write it like Europe/Berlin"
    raise ValueError(f"{name!r} is no IANA time zone that this machine knows; {advice}")


def shown(instant: datetime, zone: ZoneInfo) -> datetime:
    """What the clocks in *zone* show at *instant*, without a zone."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def first_showing(local: datetime, zone: ZoneInfo) -> datetime:
    """The first instant at which the clocks show *local* or later, in UTC.

    A time that exists twice means its first time; one that was skipped means the end of the gap.

    Args:
        local: Without a zone, in whole seconds.
    """
    instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if shown(instant, zone) == local:
        return instant
    # Skipped: read with the offset after the gap, it lies before the gap; with the one before, as here, behind it.
    before = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    seconds = range((instant - before) // timedelta(seconds=1))
    return before + timedelta(
        seconds=bisect_left(seconds, local, key=lambda second: shown(before + timedelta(seconds=second), zone))
    )


def last_showing(local: datetime, zone: ZoneInfo) -> datetime:
    """The last instant at which the clocks show *local*, in UTC; the end of the gap where it was skipped."""
    instant = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return instant if shown(instant, zone) == local else first_showing(local, zone)
