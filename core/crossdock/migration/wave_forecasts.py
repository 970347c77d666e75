"""The forecast of when each wave will have sent its requests, if the load begins now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from crossdock.config.project.migration_config import MigrationConfig
from crossdock.mapping.stream_facts import PLATFORM
from crossdock.migration.time_left import allowed_again, time_left
from crossdock.migration.waves import NumberedWave
from crossdock.pacing.forecast import Forecast
from crossdock.runs.plan_results import Planned


@dataclass(frozen=True, slots=True)
class WaveForecast:
    """The forecast of one wave.

    Attributes:
        requests: The requests to all targets. The first wave sends the operations of earlier runs. begins, ends: When
            its first and last request can be sent, in UTC; None if that cannot be known.
    """

    wave: NumberedWave
    requests: int
    begins: datetime | None
    ends: datetime | None


def wave_forecasts(
    migration: MigrationConfig, waves: Sequence[NumberedWave], planned: Planned, began: datetime
) -> Iterator[WaveForecast]:
    """Yield a forecast for each of *waves*, which are loaded in sequence from *began* on."""
    wave_of = {stream: wave.name for wave in waves for stream in wave.streams}
    needed: dict[str, Counter[str]] = {wave.name: Counter() for wave in waves}
    for (target, stream), requests in planned.requests.items():
        needed[wave_of.get(stream, waves[0].name)][target] += requests
    forecasts = {PLATFORM: planned.forecast} | planned.other_forecasts
    loads = {name: _Load(migration, forecast) for name, forecast in forecasts.items()}
    begins: datetime | None = began
    for wave in waves:
        ends = _last(begins, [(loads[target], requests) for target, requests in needed[wave.name].items()])
        yield WaveForecast(wave, needed[wave.name].total(), begins, ends)
        begins = ends


def _last(begins: datetime | None, loads: Sequence[tuple[_Load, int]]) -> datetime | None:
    ends = [None if begins is None else load.end(requests, begins) for load, requests in loads]
    known = [each for each in ends if each is not None]
    return max(known, default=begins) if len(known) == len(ends) else None


class _Load:
    """All requests to one target. The first can be sent at once; none if its burst is unknown."""

    def __init__(self, migration: MigrationConfig, forecast: Forecast) -> None:
        self._migration, self._rate_per_s = migration, forecast.rate_per_s
        self._at_once = forecast.at_once or 0

    def end(self, requests: int, begins: datetime) -> datetime | None:
        """Return when *requests* more are sent, the first of them at *begins* or later."""
        if self._rate_per_s is None:
            return None
        allowed = begins if self._migration.percent(begins) else allowed_again(self._migration, begins)
        if allowed is None:
            return None
        at_once = min(requests, self._at_once)
        self._at_once -= at_once
        left = time_left(requests - at_once, self._rate_per_s, self._migration, allowed)
        return None if left is None else allowed + left
