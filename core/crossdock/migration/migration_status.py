"""How far a migration is: its waves, what people decided, the last checks and the remaining work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from crossdock.config.project.project import Project
from crossdock.migration.load_progress_and_duration import WINDOW_S, DeliveryRate, time_to_send_requests
from crossdock.migration.rehearsal_file_and_load_check import parse_stored_rehearsal
from crossdock.migration.waves import WaveStatus, migration_config_or_raise, wave_status, waves_numbered_in_config_order
from crossdock.state import Migration, Transaction
from crossdock.values.clock import SystemClock
from crossdock.values.texts_of_numbers_and_times import count_with_noun, duration_text, instant_text

_SETTLED = 10_000  # operations from whose times the rate is computed, so that a status is quick


class RemainingWork(Struct, frozen=True):
    """The remaining requests of all waves. *lasts* is None if a rate is unknown, or if the hours never allow requests.

    *taken_per_s* is the rate at which the targets took requests in the last minute, if it is below the allowance.
    """

    requests: int
    lasts: timedelta | None
    taken_per_s: float | None = None


def remaining_requests_and_duration(
    tx: Transaction, project: Project, migration: Migration | None, waves: Sequence[WaveStatus], now: datetime
) -> RemainingWork | None:
    rehearsal = parse_stored_rehearsal(migration.rehearsal) if migration else None
    if rehearsal is None:
        return None
    requests, targets, scopes = 0, set[str](), project.scope_by_stream
    for each in waves:
        if each.state != "done" and (rehearsed := rehearsal.waves.get(each.wave.name)) is not None:
            requests += max(0, rehearsed.requests - each.delivered)
            targets.update(scopes[name].target for name in each.wave.streams)
    rate_per_s = _lowest_rate_of_targets(tx, project, targets)
    if rate_per_s is None:
        return RemainingWork(requests, None)
    config, streams = migration_config_or_raise(project), {name for each in waves for name in each.wave.streams}
    since = now - timedelta(seconds=WINDOW_S)
    delivery = DeliveryRate.from_settled_times(tx.migration_outcome.settled_times(streams, since, limit=_SETTLED))
    taken_per_s = delivery.rate_if_below_allowance(rate_per_s * config.allowance_percent(now) / 100)
    lasts = time_to_send_requests(requests, rate_per_s, config, now, taken_per_s=taken_per_s or math.inf)
    return RemainingWork(requests, lasts, taken_per_s)


def _lowest_rate_of_targets(tx: Transaction, project: Project, names: set[str]) -> float | None:
    """Return the lowest rate of targets in the last run or in the config."""
    rates = []
    for name, target in project.targets(SystemClock()).items():
        if name in names:
            rates.append(target.estimate(tx.buckets.get(name)).rate_per_s)
    return min((rate for rate in rates if rate is not None), default=None)


_FACTS = (
    *("name", "started_at", "started_by", "paused_at", "paused_by", "freeze", "reconciliation"),
    *("signed_off_at", "signed_off_by", "report_sha256"),
)


class MigrationStatus(Struct, frozen=True):
    """The open migration, or else the last one; *migration* is None before the first one began."""

    migration: Migration | None
    waves: Sequence[WaveStatus]
    left: RemainingWork | None

    @property
    def first_wave_not_past_gate(self) -> WaveStatus | None:
        return next((each for each in self.waves if not each.has_passed_gate), None)

    @property
    def decision_and_check_sentences(self) -> list[str]:
        """What people decided and what the last checks found."""
        return _decision_and_check_sentences(self.migration)

    @property
    def remaining_requests_and_duration_text(self) -> str:
        """What is left to send, and how long that takes; empty if nothing is left or nothing was rehearsed."""
        left = self.left
        if left is None or not left.requests:
            return ""
        rate = "the rate of the last minute" if left.taken_per_s is not None else "the allowance"
        lasts = f", {duration_text(left.lasts)} at {rate}" if left.lasts else ""
        return f"left of what was rehearsed: {count_with_noun(left.requests, 'request')}{lasts}"

    def as_json(self) -> dict[str, Any]:
        migration, following, left = self.migration, self.first_wave_not_past_gate, self.left
        return {
            "migration": {name: getattr(migration, name) for name in _FACTS} if migration else None,
            "rehearsed": migration is not None and migration.rehearsal is not None,
            "requests_left": left and left.requests,
            "seconds_left": left and left.lasts and int(left.lasts.total_seconds()),
            "taken_per_s": left and left.taken_per_s and round(left.taken_per_s, 3),
            "next": following and following.wave.name,
            "waves": [wave_status_as_json(each) for each in self.waves],
        }


def migration_status(tx: Transaction, project: Project, now: datetime) -> MigrationStatus:
    """Read the status, which counts all records of the waves. Raises ConfigError if the config has no migration."""
    waves = waves_numbered_in_config_order(project)
    migration = tx.migrations.current() or tx.migrations.last()
    found = [wave_status(tx, project, migration, wave) for wave in waves]
    return MigrationStatus(migration, found, remaining_requests_and_duration(tx, project, migration, found, now))


def wave_status_as_json(status: WaveStatus) -> dict[str, Any]:
    run, gate = status.run, status.gate
    return {
        "wave": status.wave.name,
        "streams": sorted(status.wave.streams),
        "state": status.state,
        "run": run and run.id,
        "run_status": run and run.status,
        "at": run and (run.finished_at or run.started_at),
        "records": status.records,
        "delivered": status.delivered,
        "open": status.open.as_json(),
        "gate": gate and {"state": gate.state, "why": gate.why},
    }


def _decision_and_check_sentences(migration: Migration | None) -> list[str]:
    if migration is None:
        return ["no migration has begun; 'crossdock migrate load' begins one"]
    lines = [f"{migration.name}: begun {instant_text(migration.started_at)} by {migration.started_by}"]
    if migration.paused_at is not None:
        lines.append(f"paused {instant_text(migration.paused_at)} by {migration.paused_by}")
    if migration.freeze is not None:
        at, since = (instant_text(datetime.fromisoformat(migration.freeze[name])) for name in ("at", "since"))
        lines.append(f"last freeze check {at}: unchanged since {since}")
    if migration.reconciliation is not None:
        at = instant_text(datetime.fromisoformat(migration.reconciliation["at"]))
        differences = sum(each["records"] for each in migration.reconciliation["differences"])
        lines.append(f"last reconciliation {at}: {count_with_noun(differences, 'difference')}")
    if migration.signed_off_at is not None:
        lines.append(f"signed off {instant_text(migration.signed_off_at)} by {migration.signed_off_by}")
    return lines
