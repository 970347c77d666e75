"""The duration of a load: requests at the rate of the allowance, reduced by the hours of the config."""

from __future__ import annotations

import math
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from crossdock.config.project.migration_config import MigrationConfig
from crossdock.values.time_formats_and_zones import first_instant_of_local_time, local_time

LONGEST = timedelta(days=3650)


def next_change_of_hours(config: MigrationConfig, at: datetime) -> datetime | None:
    """Return the first instant after *at* at which other hours may begin, in UTC."""
    zone = ZoneInfo(config.time_zone)
    today = local_time(at, zone).date()
    times = {time.fromisoformat(text) for each in config.hours for text in (each.from_, each.to)}
    days = [today + timedelta(days=number) for number in range(3)]
    instants = (first_instant_of_local_time(datetime.combine(day, each), zone) for day in days for each in times)
    return min((instant for instant in instants if instant > at), default=None)


def next_start_of_allowed_hours(config: MigrationConfig, at: datetime) -> datetime | None:
    """Return the first instant after *at* at which the hours allow requests; None if they never do."""
    end, present = at + timedelta(days=2), next_change_of_hours(config, at)
    while present is not None and present <= end:
        if config.allowance_percent(present) > 0:
            return present
        present = next_change_of_hours(config, present)
    return None


def time_to_send_requests(
    requests: int,
    rate_per_s: float,
    config: MigrationConfig,
    now: datetime,
    *,
    most: int = 100,
    taken_per_s: float = math.inf,
) -> timedelta | None:
    """Return how long it takes from *now* to send *requests*; None if it is longer than `LONGEST`.

    *most* percent of the rate of the whole allowance are used, unless the hours permit less.
    """
    left, at = float(requests), now
    while left > 0:
        until = min(next_change_of_hours(config, at) or now + LONGEST, now + LONGEST)
        per_s = min(taken_per_s, rate_per_s * min(most, config.allowance_percent(at)) / 100)
        capacity = per_s * (until - at).total_seconds()
        if capacity >= left:
            return at - now + timedelta(seconds=left / per_s)
        if until >= now + LONGEST:
            return None
        left, at = left - capacity, until
    return timedelta()
