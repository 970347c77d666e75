"""The remaining work of a rehearsed migration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from crossdock.config.project.project import Project
from crossdock.migration.load_duration import time_left
from crossdock.migration.load_progress import WINDOW_S, DeliveryRate
from crossdock.migration.rehearsal_check import stored_rehearsal
from crossdock.migration.wave_status import WaveStatus
from crossdock.migration.waves import migration_config
from crossdock.state import Migration, Transaction
from crossdock.values.clock import SystemClock

_SETTLED = 10_000  # operations from whose times the rate is computed, so that a status is quick


@dataclass(frozen=True, slots=True)
class RemainingWork:
    """The remaining requests of all waves. *lasts* is None if a rate is unknown, or if the hours never allow requests.

    *taken_per_s* is the rate at which the targets took requests in the last minute, if it is below the allowance.
    """

    requests: int
    lasts: timedelta | None
    taken_per_s: float | None = None


def remaining_work_of(
    tx: Transaction, project: Project, migration: Migration | None, waves: Sequence[WaveStatus], now: datetime
) -> RemainingWork | None:
    rehearsal = stored_rehearsal(migration.rehearsal) if migration else None
    if rehearsal is None:
        return None
    requests, targets, scopes = 0, set[str](), project.scopes
    for each in waves:
        if each.state != "done" and (rehearsed := rehearsal.waves.get(each.wave.name)) is not None:
            requests += max(0, rehearsed.requests - each.delivered)
            targets.update(scopes[name].target for name in each.wave.streams)
    rate_per_s = _lowest_rate(tx, project, targets)
    if rate_per_s is None:
        return RemainingWork(requests, None)
    config, streams = migration_config(project), {name for each in waves for name in each.wave.streams}
    since = now - timedelta(seconds=WINDOW_S)
    delivery = DeliveryRate.of_settled_times(tx.migration_outcome.settled_times(streams, since, limit=_SETTLED))
    taken_per_s = delivery.rate_if_below(rate_per_s * config.percent(now) / 100)
    lasts = time_left(requests, rate_per_s, config, now, taken_per_s=taken_per_s or math.inf)
    return RemainingWork(requests, lasts, taken_per_s)


def _lowest_rate(tx: Transaction, project: Project, names: set[str]) -> float | None:
    """Return the lowest rate of targets in the last run or in the config."""
    rates = []
    for name, target in project.targets(SystemClock()).items():
        if name in names:
            rates.append(target.estimate(tx.buckets.get(name)).rate_per_s)
    return min((rate for rate in rates if rate is not None), default=None)
