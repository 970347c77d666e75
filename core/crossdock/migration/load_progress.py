"""The progress of a wave and the remaining time of a load, over all runs of the migration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from crossdock.config.project.migration_config import MigrationConfig
from crossdock.migration.delivery_rate import DeliveryRate
from crossdock.migration.time_left import time_left
from crossdock.migration.wave_numbers import WaveNumbers
from crossdock.migration.waves import NumberedWave
from crossdock.values.clock import Clock
from crossdock.values.progress import Progress, Unit

SHOWN_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class WaveProgress:
    """The progress of one wave.

    Attributes:
        done: Records that are delivered, by this run and earlier ones.
        expected: All records, as far as they are known.
        left: The remaining time, at the rate of the last minute or at the allowance; None if that is unknown.
        all_left: The same including the following waves; None without a rehearsal.
    """

    wave: NumberedWave
    done: int
    expected: int
    left: timedelta | None
    all_left: timedelta | None


class LoadListener(Progress, Protocol):
    """A listener for the progress of a load. Every call returns at once."""

    def proceeding(self, progress: WaveProgress) -> None:
        """Report that a wave begins, or has proceeded."""

    def tell(self, text: str) -> None:
        """Report something that a waiting person wants to know."""


class LoadProgress:
    """Passes on the progress of the runs of one wave, with the sums of `WaveProgress`.

    Args:
        rate_per_s: Returns the present rate of the whole allowance; None while it is unknown.
        delivery: The actual rate in this wave and those before.
        most: The used percentage of it, unless the hours permit less.
    """

    def __init__(
        self,
        listener: LoadListener,
        clock: Clock,
        config: MigrationConfig,
        wave: NumberedWave,
        numbers: WaveNumbers,
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
        self._listener.proceeding(self.present())

    def present(self) -> WaveProgress:
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
        allowed = rate_per_s * min(self._most, self._config.percent(now)) / 100
        taken = self._delivery.slower_than(allowed) or math.inf
        return time_left(requests, rate_per_s, self._config, now, most=self._most, taken_per_s=taken)

    def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
        self._listener.begin(stage, total, unit)
        if total is not None and unit != "records":  # part of the present stage, which continues after it
            self._others_left = total
            return
        self._others_left, self._counts = 0, total is not None  # only where records are sent, not where they are read
        self._measured_at = self._clock.monotonic()
        self._announced += total or 0
        self._listener.proceeding(self.present())

    def advance(self, steps: int = 1) -> None:
        self._listener.advance(steps)
        if self._others_left > 0:
            self._others_left -= steps
            return
        if not self._counts:
            return
        self._done += steps
        now = self._clock.monotonic()
        self._delivery.add(now - self._measured_at, steps)
        self._measured_at = now
        if self._clock.monotonic() - self._shown_at >= SHOWN_EVERY_S:
            self._shown_at = self._clock.monotonic()
            self._listener.proceeding(self.present())

    def allowance(self, tokens: int | None) -> None:
        self._listener.allowance(tokens)

    def waiting(self, wait: timedelta) -> None:
        self._listener.waiting(wait)

    def warn(self, text: str) -> None:
        self._listener.warn(text)
