"""``crossdock migrate status``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.config_loading import load
from crossdock.cli.plain_text import say
from crossdock.cli.shared_options import common_options, example
from crossdock.values.display_texts import counted
from crossdock.values.display_times import duration_text, instant_text

if TYPE_CHECKING:
    from crossdock.migration.remaining_work import Left
    from crossdock.migration.wave_status import WaveStatus
    from crossdock.state import Migration

COLUMNS = ("wave", "state", "run", "delivered", "open", "gate")
_FACTS = (
    *("name", "started_at", "started_by", "paused_at", "paused_by", "freeze", "reconciliation"),
    *("signed_off_at", "signed_off_by", "report_sha256"),
)
NUMBERS = ("run", "delivered", "open")


@click.command(epilog=example("crossdock migrate status", "crossdock migrate status --json"))
@common_options
def status(config: Path, *, as_json: bool) -> None:
    """Show how far the migration is.

    Its waves with their gates, what people decided, and the last checks.
    """
    from crossdock.migration.remaining_work import remaining_work_of
    from crossdock.migration.wave_status import wave_status
    from crossdock.migration.waves import numbered_waves
    from crossdock.values.clock import SystemClock

    loaded = load(config)
    waves = numbered_waves(loaded)
    with loaded.read_state() as tx:
        migration = tx.migrations.current() or tx.migrations.last()
        found = [wave_status(tx, loaded, migration, wave) for wave in waves]
        left = remaining_work_of(tx, loaded, migration, found, SystemClock().now())
    if as_json:
        terminal_output.print_json(_document(migration, found, left))
    else:
        _show(migration, found, left)


def wave_document(status: WaveStatus) -> dict[str, Any]:
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


def _document(migration: Migration | None, waves: list[WaveStatus], left: Left | None) -> dict[str, Any]:
    facts = {name: getattr(migration, name) for name in _FACTS} if migration else None
    following = _next(waves)
    return {
        "migration": facts,
        "rehearsed": migration is not None and migration.rehearsal is not None,
        "requests_left": left and left.requests,
        "seconds_left": left and left.lasts and int(left.lasts.total_seconds()),
        "taken_per_s": left and left.taken_per_s and round(left.taken_per_s, 3),
        "next": following and following.wave.name,
        "waves": [wave_document(each) for each in waves],
    }


def _next(waves: list[WaveStatus]) -> WaveStatus | None:
    return next((each for each in waves if not each.passes), None)


def _show(migration: Migration | None, waves: list[WaveStatus], left: Left | None) -> None:
    say(*_sentences(migration))
    rows = [
        (
            each.wave.name,
            each.state,
            each.run and each.run.id,
            each.delivered,
            each.open.total,
            each.gate and each.gate.word,
        )
        for each in waves
    ]
    terminal_output.out().print(terminal_output.table("Waves", COLUMNS, rows, numbers=NUMBERS))
    for each in waves:
        say(f"{each.wave.name}: {', '.join(sorted(each.wave.streams))}", *_details(each))
    following = _next(waves)
    say("all waves are done" if following is None else f"next: {following.wave}")
    if left is not None and left.requests:
        rate = "the rate of the last minute" if left.taken_per_s is not None else "the allowance"
        lasts = f", {duration_text(left.lasts)} at {rate}" if left.lasts else ""
        say(f"left of what was rehearsed: {counted(left.requests, 'request')}{lasts}")


def _details(status: WaveStatus) -> list[str]:
    lines = []
    if status.run is not None:
        ended, is_running = status.run.finished_at, status.run.status == "running"
        when = f"ended {instant_text(ended)}" if ended else "is running" if is_running else "was killed"
        lines.append(f"  run {status.run.id} {when} ({status.run.status})")
    if status.gate is not None:
        lines.append(f"  gate {status.gate.word}: {status.gate.why}")
    return lines


def _sentences(migration: Migration | None) -> list[str]:
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
        lines.append(f"last reconciliation {at}: {counted(differences, 'difference')}")
    if migration.signed_off_at is not None:
        lines.append(f"signed off {instant_text(migration.signed_off_at)} by {migration.signed_off_by}")
    return lines
