"""Loads the waves of a migration in order. Each wave is a run, and its gate decides whether the next one begins.

The state is the checkpoint. The same call continues after a kill, and later loads what has changed since. A finished
wave costs only the comparison. A load waits while a person has paused it, and in hours when nothing may be sent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from msgspec import Struct, field

from crossdock.config.project.migration_config import MigrationConfig
from crossdock.config.project.project import Project
from crossdock.errors import ConfigError, CrossdockError, RefusedError, StateError, StoppedError
from crossdock.migration.load_progress_and_duration import (
    DeliveryRate,
    LoadListener,
    LoadProgress,
    delivered_and_rehearsed_counts,
    next_start_of_allowed_hours,
)
from crossdock.migration.rehearsal_file_and_load_check import (
    Rehearsal,
    input_factory_or_raise_if_rehearsal_differs,
    parse_stored_rehearsal,
    raise_if_rehearsal_differs_from_config,
)
from crossdock.migration.waves import (
    NumberedWave,
    WaveStatus,
    find_wave_or_raise,
    migration_config_or_raise,
    wave_status,
    waves_numbered_in_config_order,
)
from crossdock.runs.active_run import ActiveRun
from crossdock.runs.run_report import Report
from crossdock.runs.run_start_and_stop_requests import RunRequest
from crossdock.runs.session_shared_by_runs import Session, open_session
from crossdock.state import Migration, MigrationPart, State, Transaction
from crossdock.values.clock import Clock, call_periodically_in_thread
from crossdock.values.run_states_and_tally import NOTHING_OPEN, OpenCounts
from crossdock.values.texts_of_numbers_and_times import instant_text

LOOKS_EVERY_S = 1.0
_NOTICES_S = 0.1  # an interrupt


def reason_load_must_wait(migration: Migration | None, config: MigrationConfig, at: datetime) -> str | None:
    if migration is not None and migration.paused_at is not None:
        since = instant_text(migration.paused_at)
        return f"paused by {migration.paused_by} since {since}; 'crossdock migrate resume' lets it go on"
    if config.allowance_percent(at) > 0:
        return None
    until = next_start_of_allowed_hours(config, at)
    if until is None:
        return "the hours of the config allow no requests at any time"
    return (
        f"the hours of the config allow no requests until {instant_text(until.astimezone(ZoneInfo(config.time_zone)))}"
    )


class LoadPause(Struct):
    """Stops a run in order. *why* is the reason for which the load waits; None if a person wants it to end."""

    stop: threading.Event = field(default_factory=threading.Event)
    why: str | None = None


class LoadPauseWatcher:
    def __init__(self, project: Project, config: MigrationConfig, clock: Clock, interrupt: threading.Event) -> None:
        self._project, self._config, self._clock, self._interrupt = project, config, clock, interrupt

    def reason(self, tx: Transaction) -> str | None:
        return reason_load_must_wait(tx.migrations.current(), self._config, self._clock.now())

    @contextmanager
    def watch_for_pause_and_stop_run(self, state: State) -> Iterator[LoadPause]:
        """Look every second during the block. The first reason to wait, or the interrupt, stops the run."""
        pause, looked_at = LoadPause(), self._clock.monotonic()

        def goes_on() -> bool:
            nonlocal looked_at
            if not self._interrupt.is_set():
                if self._clock.monotonic() - looked_at < LOOKS_EVERY_S:
                    return True
                looked_at = self._clock.monotonic()
                pause.why = self._read_reason_from_state(state)
            if pause.why is not None or self._interrupt.is_set():
                pause.stop.set()
            return not pause.stop.is_set()

        with call_periodically_in_thread(goes_on, _NOTICES_S, "load-pauses"):
            yield pause

    def _read_reason_from_state(self, state: State) -> str | None:
        try:
            return state.run_read_only(self.reason)
        except StateError:
            return None  # the run has the same error, and ends

    def wait_until_allowed(self, tell: Callable[[str], None]) -> None:
        """Return once requests may be sent. Call *tell* once with each reason. Others may use the state meanwhile."""
        told = None
        with closing(self._project.open_state(read_only=True)) as state:
            while (why := state.run_read_only(self.reason)) is not None:
                if why != told:
                    tell(why)
                    told = why
                if self._interrupt.wait(LOOKS_EVERY_S):
                    raise StoppedError(f"stopped while it waited: {why}", hint="load again to continue")


class LoadChoice(Struct, frozen=True):
    """The choices of a person for a load. Without *until*, all waves are loaded.

    *percent* of the allowance is used, 1 to 100, unless the hours permit less. Without *rehearsal*, the sources must
    match the one in the state, if any.
    """

    by: str
    until: str | None = None
    percent: int = 100
    rehearsal: Rehearsal | None = None
    again: bool = False


class LoadedWave(Struct, frozen=True):
    """One run of a wave. A paused wave has several runs."""

    report: Report
    status: WaveStatus


class LoadResult(Struct):
    """The result of a load. *wave* is where it ended; None if all were loaded and their gates passed.

    *error* is why it ended there, unless the report of its last run has the reason.
    """

    runs: list[LoadedWave] = field(default_factory=list)
    wave: NumberedWave | None = None
    error: CrossdockError | None = None

    @property
    def exit_code(self) -> int:
        """As `Report.exit_code`; 1 if every gate passed, but records are open."""
        if self.error is not None:
            return self.error.exit_code
        if self.wave is not None:
            return self.runs[-1].report.exit_code
        return 1 if self.total_open_counts.total else 0

    @property
    def total_open_counts(self) -> OpenCounts:
        last = {each.status.wave.name: each.status.open for each in self.runs}
        return sum(last.values(), NOTHING_OPEN)


def load_migration_waves(
    project: Project, choice: LoadChoice, *, clock: Clock, listener: LoadListener, interrupt: threading.Event
) -> LoadResult:
    """Load the waves up to the chosen one. Raise RefusedError for a rehearsal of other waves or another platform."""
    waves = waves_numbered_in_config_order(project)
    if choice.until is not None:
        waves = waves[: find_wave_or_raise(waves, choice.until).number]
    if choice.rehearsal is not None:
        raise_if_rehearsal_differs_from_config(project, choice.rehearsal)
    return _Loader(project, choice, clock, listener, interrupt).load_waves_in_order(waves)


_Outcome = Literal["done", "waits", "incomplete"]


class _Loader:
    def __init__(
        self,
        project: Project,
        choice: LoadChoice,
        clock: Clock,
        listener: LoadListener,
        interrupt: threading.Event,
    ) -> None:
        self._project, self._choice, self._clock, self._listener = project, choice, clock, listener
        self._config, self._interrupt = migration_config_or_raise(project), interrupt
        self._pauses = LoadPauseWatcher(project, self._config, clock, interrupt)
        self._loaded, self._delivery = LoadResult(), DeliveryRate()
        self._has_begun_another = False

    def load_waves_in_order(self, waves: Sequence[NumberedWave]) -> LoadResult:
        left = list(waves)
        try:
            while left:
                self._pauses.wait_until_allowed(lambda why: self._listener.show_message(f"waiting: {why}"))
                with self._open_session() as (session, migration, pause):
                    while left:
                        self._loaded.wave = left[0]
                        outcome = self._load_wave(session, migration, left[0], pause)
                        if outcome == "incomplete":
                            return self._loaded
                        if outcome == "waits":
                            break
                        left.pop(0)
            self._loaded.wave = None
        except CrossdockError as error:
            self._loaded.error = error
        return self._loaded

    @contextmanager
    def _open_session(self) -> Iterator[tuple[Session, Migration, LoadPause]]:
        """Hold the state, which is released while the load waits."""
        with open_session(
            self._project,
            self._clock,
            percent=self._usable_allowance_percent,
            attempt=RunRequest(command="migrate load", action="migrate load"),
        ) as session:
            migration = self._begin_or_continue_migration(session)
            with self._pauses.watch_for_pause_and_stop_run(session.state) as pause:
                yield session, migration, pause

    def _raise_if_again_while_migration_is_open(self, current: Migration | None) -> None:
        """Refuse ``--again`` while a migration is open, unless this load has begun it before a wait."""
        if current is not None and self._choice.again and not self._has_begun_another:
            hint = "leave --again out to go on with it, or sign it off first: crossdock migrate sign-off"
            raise ConfigError(
                f"the migration {current.name} is open, so --again cannot begin another one",
                hint=hint,
                code="migration_open",
            )

    def _usable_allowance_percent(self) -> int:
        return min(self._choice.percent, self._config.allowance_percent(self._clock.now()))

    def _begin_or_continue_migration(self, session: Session) -> Migration:
        with session.state.begin() as tx:
            current, last = tx.migrations.current(), tx.migrations.last()
            self._raise_if_again_while_migration_is_open(current)
            if current is None and last is not None and last.signed_off_at is not None and not self._choice.again:
                when = instant_text(last.signed_off_at)
                hint = "'crossdock sync' delivers changes; 'crossdock migrate load --again' begins another migration"
                raise RefusedError(
                    f"the migration {last.name} was signed off {when} by {last.signed_off_by}",
                    hint=hint,
                    code="migration_ended",
                )
            if current is None:
                self._has_begun_another = True
                tx.migrations.begin(self._config.name, at=self._clock.now(), by=self._choice.by)
                current = tx.migrations.current()
            assert current is not None
            if self._choice.rehearsal is not None:
                tx.migrations.store_rehearsal(current.id, self._choice.rehearsal.model_dump(mode="json"))
                current = tx.migrations.current()
            assert current is not None
        stored = parse_stored_rehearsal(current.rehearsal)
        if stored is not None:
            raise_if_rehearsal_differs_from_config(self._project, stored)  # the config may have changed since
        return current

    def _load_wave(self, session: Session, migration: Migration, wave: NumberedWave, pause: LoadPause) -> _Outcome:
        """Load *wave*. The outcome ``waits`` means that it was stopped in order, and must be loaded again later."""
        run = ActiveRun(
            session,
            self._start_wave_progress(session, migration, wave),
            pause.stop,
            attempt=RunRequest(command=f"migrate load: {wave.name}", action="migrate load"),
            part=MigrationPart(migration.id, "load", wave.name),
        )
        try:
            report = run.execute(
                set(wave.streams), input_factory_or_raise_if_rehearsal_differs(session, migration, wave, pause.stop)
            )
        except StoppedError:
            if pause.why is not None:
                return "waits"
            raise
        with session.state.begin_read_only() as tx:
            status = wave_status(tx, self._project, migration, wave)
        self._loaded.runs.append(LoadedWave(report, status))
        if pause.why is not None and _was_stopped(report):
            self._listener.show_message(f"{wave}: stopped in order, {status.delivered:,} records delivered")
            return "waits"
        if not report.completed:
            return "incomplete"
        _raise_unless_gate_passed(status)
        self._listener.show_message(f"{wave}: loaded, {status.delivered:,} records delivered, open: {status.open}")
        return "done"

    def _start_wave_progress(self, session: Session, migration: Migration, wave: NumberedWave) -> LoadProgress:
        with session.state.begin_read_only() as tx:
            numbers = delivered_and_rehearsed_counts(tx, self._project, migration, wave)

        def rate_per_s() -> float | None:
            return _lowest_rate_of_targets(session, wave)

        arguments = self._listener, self._clock, self._config, wave, numbers, rate_per_s, self._delivery
        return LoadProgress(*arguments, most=self._choice.percent)


def _lowest_rate_of_targets(session: Session, wave: NumberedWave) -> float | None:
    scopes = session.project.scope_by_stream
    targets = {scopes[name].target for name in wave.streams}
    estimates = (session.bucket(session.targets[name]).take_available(0, 0).bucket_state.estimate for name in targets)
    return min((each.rate_per_s for each in estimates if each.rate_per_s is not None), default=None)


def _was_stopped(report: Report) -> bool:
    errors = report.errors.values()
    return report.balanced is not False and bool(errors) and all(isinstance(error, StoppedError) for error in errors)


def _raise_unless_gate_passed(status: WaveStatus) -> None:
    assert status.gate is not None
    if status.gate.passes:
        return
    wave, look = status.wave, "'crossdock records list' shows what is open"
    go = f"'crossdock migrate go {wave.name}' lets it go on"
    if status.gate.state == "closed":
        raise RefusedError(
            f"the gate is closed: {status.gate.why}", hint=f"{look}; fix it and load again, or {go}", code="gate_closed"
        )
    raise RefusedError(
        f"a person must let the migration go on: {status.gate.why}", hint=f"{look}; {go}", code="gate_closed"
    )
