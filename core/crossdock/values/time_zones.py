"""Names of time zones, local times, and the instants at which clocks show them, including clock changes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

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


def local_time(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the local time in *zone* at *instant*, without a zone."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def first_instant_showing(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant at which clocks show *local*, in whole seconds; the end of the gap if they skip it."""
    instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if local_time(instant, zone) == local:
        return instant
    # Skipped: with the offset after the gap it lies before the gap, with the one before, as in `instant`, behind it.
    before = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    seconds = range((instant - before) // timedelta(seconds=1))
    return before + timedelta(
        seconds=bisect_left(seconds, local, key=lambda second: local_time(before + timedelta(seconds=second), zone))
    )


def last_instant_showing(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the last instant at which the clocks show *local*, in UTC; for a skipped time, the end of the gap."""
    instant = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return instant if local_time(instant, zone) == local else first_instant_showing(local, zone)


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
