"""The waves of a config, numbered, with their streams by name, and the status and gate of each, from the state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from crossdock.config.project.migration_config import Gate, MigrationConfig
from crossdock.config.project.project import Project
from crossdock.errors import ConfigError
from crossdock.state import Migration, RunRecord, Transaction, WaveApproval
from crossdock.state.tables.run_history import COMPLETED
from crossdock.values import config_file
from crossdock.values.run_states_and_tally import NOTHING_OPEN, OpenCounts


class NumberedWave(Struct, frozen=True):
    """One wave, numbered from 1. Its text is for people, such as ``wave 2 of 7: lots``."""

    name: str
    number: int
    of: int
    streams: frozenset[str]
    gate: Gate

    def __str__(self) -> str:
        return f"wave {self.number} of {self.of}: {self.name}"


def migration_config_or_raise(project: Project) -> MigrationConfig:
    if project.migration is None:
        hint = "add 'migration: {waves: {NAME: {streams: [...]}}}'; see docs/how_to/migrate/"
        raise ConfigError(
            "the config has no section 'migration'", where=str(project.path), hint=hint, code="migration_not_configured"
        )
    return project.migration


def waves_numbered_in_config_order(project: Project) -> list[NumberedWave]:
    """Return the waves in the order in which they are loaded."""
    waves = migration_config_or_raise(project).waves
    return [
        NumberedWave(name, number, len(waves), frozenset(project.selected_streams(wave.streams)), wave.gate)
        for number, (name, wave) in enumerate(waves.items(), 1)
    ]


def streams_of_all_waves(project: Project) -> set[str]:
    """Return the streams of all waves. Raise ConfigError if the config has no migration."""
    migration_config_or_raise(project)
    return project.names_of_migrated_streams


def find_wave_or_raise(waves: Sequence[NumberedWave], name: str) -> NumberedWave:
    for wave in waves:
        if wave.name == name:
            return wave
    advice = config_file.unknown_key_message(name, [wave.name for wave in waves]).removeprefix("unknown key; ")
    raise ConfigError(f"no wave is called {name!r}; {advice}", code="wave_unknown")


WaveState = Literal["not begun", "running", "incomplete", "done"]


class WaveStatus(Struct, frozen=True):
    """The status of one wave. *delivered* counts the records of its streams at their targets, whoever sent them.

    Streams *without_file* read files, and none of theirs was read, at least since the wave was undone.
    """

    wave: NumberedWave
    run: RunRecord | None
    delivered: int
    records: int
    open: OpenCounts
    gate: GateVerdict | None
    without_file: Sequence[str] = ()

    @property
    def state(self) -> WaveState:
        if self.run is None:
            return "not begun"
        if self.run.status == "running":
            return "running"
        return "done" if self.run.status in COMPLETED else "incomplete"

    @property
    def has_passed_gate(self) -> bool:
        return self.gate is not None and self.gate.passes


def delivered_count(tx: Transaction, project: Project, wave: NumberedWave) -> int:
    scopes = project.scope_by_stream
    return sum(tx.known_record_counts.delivered(scopes[name]) for name in wave.streams)


def wave_status(tx: Transaction, project: Project, migration: Migration | None, wave: NumberedWave) -> WaveStatus:
    """Return the status of *wave* of *migration*; without a migration, of deliveries without one."""
    scopes = project.scope_by_stream
    writers = {scope: name for name, scope in scopes.items()}
    opened = sum(tx.open_record_counts.by_stream(wave.streams, writers).values(), NOTHING_OPEN)
    has = delivered_count(tx, project, wave)
    records = has + sum(tx.known_record_counts.not_delivered(name, scopes[name]) for name in wave.streams)
    loads = [tx.runs.get(run_id) for run_id in _loads_since_undo(tx, migration, wave)]
    run = loads[-1] if loads else None
    approval = tx.migrations.approval_by_wave(migration.id).get(wave.name) if migration else None
    is_done = run is not None and run.status in COMPLETED
    without = _streams_without_file(tx, project, wave, loads) if is_done else []
    gate = gate_verdict(wave.gate, opened, records, approval, without) if is_done else None
    return WaveStatus(wave, run, has, records, opened, gate, without)


def _loads_since_undo(tx: Transaction, migration: Migration | None, wave: NumberedWave) -> list[int]:
    return tx.migrations.loads_since_undo(migration.id).get(wave.name, []) if migration else []


def _streams_without_file(
    tx: Transaction, project: Project, wave: NumberedWave, loads: Iterable[RunRecord | None]
) -> list[str]:
    """Return the streams of *wave* that read files and have read none. A connector may keep no log of its files."""
    tallies = [run.tally or {} for run in loads if run is not None]
    with_rows = {name for each in tallies for name, tally in each.items() if tally["rows"]["read"]}
    reading = (name for name in wave.streams if project.stream(name).reads_files)
    return sorted(name for name in reading if name not in with_rows and not tx.intake.has_files(name))


GateState = Literal["open", "closed", "waits for a person", "approved"]


class GateVerdict(Struct, frozen=True):
    state: GateState
    why: str

    @property
    def display_word(self) -> str:
        """The decision for people, in a word that does not resemble an open record."""
        return "passed" if self.state == "open" else self.state

    @property
    def passes(self) -> bool:
        return self.state in {"open", "approved"}


def gate_verdict(
    gate: Gate,
    open_records: OpenCounts,
    records: int,
    approval: WaveApproval | None,
    without_file: Sequence[str] = (),
) -> GateVerdict:
    """Decide about a wave that was loaded to its end. An approval holds until more is open than when it was given."""
    found = f"{open_records.total:,} of {records:,} records open ({open_records})"
    if without_file:
        found = f"{found}; no file was read: {', '.join(without_file)}"
    if approval is not None and not open_records.has_any_more_than(approval.open):
        return GateVerdict("approved", f"{found}; {approval.approved_by} let it go on")
    if not _is_within_limits(gate, open_records.total, records):
        more = "; more than when a person let it go on" if approval is not None else ""
        return GateVerdict("closed", f"{found}; {_open_record_limit_text(gate)} may be{more}")
    if without_file:
        return GateVerdict("closed", found)
    if gate.person:
        return GateVerdict("waits for a person", found)
    return GateVerdict("open", found)


def _open_record_limit_text(gate: Gate) -> str:
    """Describe how many records may be open. A limit of 0 is left out if there is another one."""
    number, percent = gate.rejected_at_most, gate.rejected_at_most_percent
    given = [text for limit, text in ((number, f"{number:,}"), (percent, f"{percent:g} %")) if limit]
    return "at most " + " or ".join(given) if given else "none"


def _is_within_limits(gate: Gate, number: int, records: int) -> bool:
    return number <= gate.rejected_at_most or number * 100 <= gate.rejected_at_most_percent * records
