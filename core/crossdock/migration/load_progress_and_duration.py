"""The progress of a wave, the rate of delivery, and the remaining time of a load, over all runs of the migration.

A load lasts as long as its requests at the rate of the allowance, reduced by the hours of the config.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable
from datetime import datetime, time, timedelta
from itertools import pairwise
from typing import NamedTuple, Protocol, Self
from zoneinfo import ZoneInfo

from msgspec import Struct

from crossdock.config.project.migration_config import MigrationConfig
from crossdock.config.project.project import Project
from crossdock.migration.rehearsal_file_and_load_check import parse_stored_rehearsal
from crossdock.migration.waves import NumberedWave, delivered_count, waves_numbered_in_config_order
from crossdock.state import Migration, Transaction
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import Progress, Unit
from crossdock.values.time_formats_and_zones import first_instant_of_local_time, naive_local_time_at

LONGEST = timedelta(days=3650)


def next_change_of_hours(config: MigrationConfig, at: datetime) -> datetime | None:
    """Return the first instant after *at* at which other hours may begin, in UTC."""
    zone = ZoneInfo(config.time_zone)
    today = naive_local_time_at(at, zone).date()
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


SHOWN_EVERY_S = 0.5
WINDOW_S = 60.0
LEAST_S = 3.0  # shorter times say nothing
NEARLY = 0.9  # of the allowance; above that share, the allowance limits the load


class WaveProgress(Struct, frozen=True):
    """The progress of one wave.

    Attributes:
        done: Records that are delivered, by this run and earlier ones.
        left: The remaining time, at the rate of the last minute or at the allowance; None if that is unknown.
        all_left: The same including the following waves; None without a rehearsal.
    """

    wave: NumberedWave
    done: int
    expected: int
    left: timedelta | None
    all_left: timedelta | None


class LoadListener(Progress, Protocol):
    """Receives the progress of a load. Every call returns at once."""

    def show_progress(self, progress: WaveProgress) -> None: ...

    def show_message(self, text: str) -> None:
        """Report something that a waiting person wants to know."""


class LoadProgress:
    """Passes on the progress of the runs of one wave, with the sums of `WaveProgress`."""

    def __init__(
        self,
        listener: LoadListener,
        clock: Clock,
        config: MigrationConfig,
        wave: NumberedWave,
        numbers: WaveCounts,
        rate_per_s: Callable[[], float | None],
        delivery: DeliveryRate,
        *,
        most: int,
    ) -> None:
        self._listener, self._clock, self._config, self._wave = listener, clock, config, wave
        self._numbers, self._rate_per_s, self._delivery, self._most = numbers, rate_per_s, delivery, most
        self._done, self._announced = numbers.delivered, 0
        self._counts, self._others_left = False, 0
        self._shown_at = self._measured_at = clock.monotonic()
        self._listener.show_progress(self.current())

    def current(self) -> WaveProgress:
        expected = max(self._numbers.rehearsed, self._numbers.delivered + self._announced)
        left, later = max(0, expected - self._done), self._numbers.later
        known = expected > 0
        return WaveProgress(
            self._wave,
            self._done,
            expected,
            self._time_left(left) if known else None,
            None if later is None else self._time_left(left + later),
        )

    def _time_left(self, requests: int) -> timedelta | None:
        rate_per_s = self._rate_per_s()
        if rate_per_s is None:
            return None
        now = self._clock.now()
        allowed = rate_per_s * min(self._most, self._config.allowance_percent(now)) / 100
        taken = self._delivery.rate_if_below_allowance(allowed) or math.inf
        return time_to_send_requests(requests, rate_per_s, self._config, now, most=self._most, taken_per_s=taken)

    def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
        self._listener.begin(stage, total, unit)
        if total is not None and unit != "records":  # part of the present stage, which continues after it
            self._others_left = total
            return
        self._others_left, self._counts = 0, total is not None  # only where records are sent, not where they are read
        self._measured_at = self._clock.monotonic()
        self._announced += total or 0
        self._listener.show_progress(self.current())

    def advance(self, steps: int = 1) -> None:
        self._listener.advance(steps)
        if self._others_left > 0:
            self._others_left -= steps
            return
        if not self._counts:
            return
        self._done += steps
        now = self._clock.monotonic()
        self._delivery.record_delivered(now - self._measured_at, steps)
        self._measured_at = now
        if self._clock.monotonic() - self._shown_at >= SHOWN_EVERY_S:
            self._shown_at = self._clock.monotonic()
            self._listener.show_progress(self.current())

    def allowance(self, tokens: int | None) -> None:
        self._listener.allowance(tokens)

    def waiting(self, wait: timedelta) -> None:
        self._listener.waiting(wait)

    def warn(self, text: str) -> None:
        self._listener.warn(text)


class WaveCounts(Struct, frozen=True):
    """The numbers of a wave, and the requests of *later* waves. Without a rehearsal, they are 0 and None."""

    delivered: int
    rehearsed: int
    later: int | None


def delivered_and_rehearsed_counts(
    tx: Transaction, project: Project, migration: Migration, wave: NumberedWave
) -> WaveCounts:
    rehearsal = parse_stored_rehearsal(migration.rehearsal)
    if rehearsal is None:
        return WaveCounts(delivered_count(tx, project, wave), 0, None)
    later = 0
    for each in waves_numbered_in_config_order(project)[wave.number :]:
        later += max(0, rehearsal.waves[each.name].requests - delivered_count(tx, project, each))
    records = sum(stream.records for stream in rehearsal.waves[wave.name].streams.values())
    return WaveCounts(delivered_count(tx, project, wave), records, later)


class _Point(NamedTuple):
    at_s: float
    done: int


class DeliveryRate:
    """The rate of settled records in the last `WINDOW_S` of sending. Times of reading or waiting do not count."""

    def __init__(self) -> None:
        self._points = deque([_Point(0.0, 0)])

    @classmethod
    def from_settled_times(cls, settled_at: Iterable[datetime]) -> Self:
        """Return the rate for records settled at these times, in any order, since the first of them."""
        rate, settled = cls(), sorted(Counter(settled_at).items())
        for (before, _), (at, records) in pairwise(settled):
            rate.record_delivered((at - before).total_seconds(), records)
        return rate

    def record_delivered(self, elapsed_s: float, records: int) -> None:
        last = self._points[-1]
        if elapsed_s <= 0 and records <= 0:
            return
        point = _Point(last.at_s + max(0.0, elapsed_s), last.done + records)
        if len(self._points) > 1 and point.at_s - self._points[-2].at_s < WINDOW_S / 60:
            self._points[-1] = point  # so that there are never more than about 60
        else:
            self._points.append(point)
        while point.at_s - self._points[1].at_s > WINDOW_S:
            self._points.popleft()

    def rate_if_below_allowance(self, allowed_per_s: float) -> float | None:
        """Return the rate if the target takes less than *allowed_per_s*; None if the allowance is the limit."""
        first, last = self._points[0], self._points[-1]
        lasted_s, done = last.at_s - first.at_s, last.done - first.done
        if lasted_s < LEAST_S or not done:
            return None
        per_s = done / lasted_s
        return per_s if per_s < allowed_per_s * NEARLY else None
