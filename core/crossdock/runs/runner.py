"""One run of a project: settle what earlier runs left, run the streams, and check that the tally balances."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from datetime import date
from functools import partial

from crossdock.clock import Clock
from crossdock.delivery.dispatcher import Dispatcher
from crossdock.delivery.senders import Senders
from crossdock.delivery.settlement import Settlement
from crossdock.errors import ConfigError, CrossdockError, InternalError, StoppedError
from crossdock.pacing.allowance import Allowance, Priority
from crossdock.pacing.bucket_store import BucketState
from crossdock.progress import Progress
from crossdock.project.connector_instances import BoundStream
from crossdock.project.project import Project
from crossdock.runs import api_limits
from crossdock.runs.dead_letter_replay import Replay
from crossdock.runs.intake_logs import StateIntake
from crossdock.runs.run_report import Report
from crossdock.runs.settlement_count import SettlementCount
from crossdock.runs.source_or_replay import SourceFactory
from crossdock.runs.state_session import Session, open_session
from crossdock.runs.stream_input import StreamInput
from crossdock.runs.stream_runner import StreamRunner
from crossdock.runs.target_delivery import RunningStreams, TargetDelivery
from crossdock.runs.temporary_folder import run_folder
from crossdock.runs.timings import Timings
from crossdock.sources.source_context import JobRun, Patience, SourceContext
from crossdock.state import DeadLetterFilter, DueRun, Transaction
from crossdock.stream_facts import PLATFORM
from crossdock.tally import Tally
from crossdock.targets import Target


def sync(
    project: Project,
    selection: list[str],
    *,
    clock: Clock,
    progress: Progress,
    interrupt: threading.Event,
    priority: Priority = "batch",
    patience: Patience | None = None,
) -> Report:
    """Deliver the selected streams to the platform.

    Args:
        priority: ``live`` takes its tokens before the batches that share the bucket.
        patience: Wait for late files as the streams' ``wait`` says; without it, missing files are not waited for.

    Raises:
        CrossdockError: If the run could not begin. What stops it later is in the report.
    """
    with open_session(project, clock) as session:
        return Run(session, progress, interrupt, priority, patience).execute(project.selected(selection))


def run_scheduled(
    session: Session, due_run: DueRun, *, progress: Progress, interrupt: threading.Event
) -> Report | None:
    """Run a scheduled run, once; None if it has already finished.

    Raises:
        CrossdockError: If the run could not begin. What stops it later is in the report.
    """
    job = session.project.jobs[due_run.job]
    with session.state.begin() as tx:
        if not tx.scheduled_runs.begin(due_run, at=session.clock.now()):
            return None
    patience = Patience(due_run.due, job.schedule.zone)
    run = Run(session, progress, interrupt, patience=patience, due_run=due_run)
    return run.execute(session.project.selected(job.streams))


def replay(
    project: Project, choice: DeadLetterFilter, *, clock: Clock, progress: Progress, interrupt: threading.Event
) -> Report:
    """Map the chosen dead letters again with today's mapping, and deliver them. No source is read.

    Raises:
        ConfigError: If no such stream or dead letter exists.
        CrossdockError: If the run could not begin. What stops it later is in the report.
    """
    with open_session(project, clock) as session:
        known = project.selected([choice.stream] if choice.stream else [])
        with session.state.look() as tx:
            identities = (dead_letter.identity for dead_letter in tx.dead_letters.chosen(choice))
            found = {identity.stream for identity in identities if identity.key}
        for name in sorted(found - known):
            progress.warn(f"{name}: not replayed, because the config has no such stream")
        names = found & known
        if not names and choice.key is not None:
            hint = "'crossdock records list --state rejected' lists the rejected records"
            raise ConfigError(f"no rejected record {choice.key!r} of {choice.stream}", hint=hint)
        run = Run(session, progress, interrupt, "live")

        def dead_letters(bound: BoundStream, tally: Tally, _: int) -> Replay:
            return Replay(bound, session.state, tally, choice)

        return run.execute(names, dead_letters, reads=False, answers_for=known)


class Run:
    """One execution of some streams."""

    def __init__(
        self,
        session: Session,
        progress: Progress,
        interrupt: threading.Event,
        priority: Priority = "batch",
        patience: Patience | None = None,
        due_run: DueRun | None = None,
    ) -> None:
        self._session, self._interrupt, self._timings = session, interrupt, Timings.over(progress, session.clock)
        self._priority, self._patience, self._due_run = priority, patience, due_run
        self._api_limits: dict[str, BucketState] = {}

    def execute(
        self,
        names: set[str],
        source: SourceFactory | None = None,
        *,
        reads: bool = True,
        answers_for: set[str] | None = None,
    ) -> Report:
        """Run streams.

        Args:
            names: Of the streams; if empty, only what the last run left is sent.
            source: Where the records of a stream come from; by default from its own source.
            reads: False if that is not the streams' own sources.
            answers_for: Streams whose open records the report counts; None for *names*.
        """
        whole = reads and names == self._session.project.selected([])
        for target in self._used(names):
            target.client().close()  # a credential that cannot be read is reported before anything begins
        report, state_restored = self._start()
        try:
            with ExitStack() as stack, ExitStack() as others_wait:
                streams = self._bind(stack, names, report)
                others_wait.enter_context(self._session.resuming)
                running = self._running(stack, report, streams, state_restored=state_restored)
                running.run(source or self._stream_input, others_wait, whole=whole)
        except BaseException as error:
            report.errors[""] = _as_crossdock_error(error)
            raise
        finally:
            report.lasted = self._timings.end()
            self._finish(report, names if answers_for is None else answers_for)
        return report

    def _start(self) -> tuple[Report, bool]:
        """Write that the run begins. True if the state was restored from a backup and is not trusted yet."""
        session, now = self._session, self._session.clock.now()
        day: date = self._due_run.business_date if self._due_run else now.astimezone().date()
        job = self._due_run.job if self._due_run else None
        with session.state.begin() as tx:
            run_id = tx.runs.start(business_date=day.isoformat(), at=now, job=job)
            state_restored = tx.runs.restored()
        report = Report(run_id, day.isoformat())
        self._timings.start(report, job)
        return report, state_restored

    def _bind(self, stack: ExitStack, names: set[str], report: Report) -> list[BoundStream]:
        session, spool = self._session, self._session.project.spool
        with session.state.look() as tx:
            connections = {name.partition(".")[0] for name in names}
            self._api_limits = api_limits.read(tx, connections, session.project.reading_platform)
        context = SourceContext(
            session.clock,
            self._timings,
            StateIntake(session.state, session.clock),
            spool,
            run_folder(stack, spool),
            spool,
            self._patience,
            report.notes,
            self._job_run(),
            report.inputs,
            warnings=report.warnings,
            at_end=stack.enter_context(ExitStack()),
            limits=self._api_limits,
            api_usage=report.api_usage,
        )
        return session.project.bind(names, targets=session.targets, run=context)

    def _job_run(self) -> JobRun | None:
        if self._due_run is None:
            return None
        with self._session.state.look() as tx:
            return JobRun(self._due_run.due, tx.scheduled_runs.previous_end(self._due_run))

    def _used(self, names: set[str]) -> list[Target]:
        """The targets that the streams *names* write to; the platform if there are none."""
        scopes = self._session.project.scopes
        used = {scopes[name].target for name in names} or {PLATFORM}
        return [target for target in self._session.targets.values() if target.name in used]

    def _running(
        self, stack: ExitStack, report: Report, streams: list[BoundStream], *, state_restored: bool
    ) -> RunningStreams:
        session, counts, masks = self._session, SettlementCount(report), self._session.project.masks
        left = session.left(streams)
        used = {bound.scope.target for bound in streams} | {intent.scope.target for intent in left}
        for name in used - session.targets.keys():
            number = sum(intent.scope.target == name for intent in left)
            self._timings.warn(f"{number} unsettled operations of {name} are left: the config has no such target")
        deliveries: dict[str, TargetDelivery] = {}
        running = RunningStreams(session, deliveries, counts, report, self._timings, self._interrupt)
        targets = [target for target in session.targets.values() if target.name in used]
        for target in targets or [session.targets[PLATFORM]]:
            own = [bound for bound in streams if bound.scope.target == target.name]
            allowance = self._allowance(target)
            dispatcher = Dispatcher(
                session.state,
                target,
                allowance,
                stack.enter_context(Senders(target, session.in_flight(target), masks)),
                session.clock,
                run_id=report.run,
                settled=partial(self._settled, counts, allowance),
                interrupt=self._interrupt,
                warn=self._timings.warn,
                adopting=session.project.adopting,
                rejecting=session.project.rejecting,
                state_restored=state_restored,
                may_pause=lambda: running.has_others,
                counters=report.counters,
            )
            runner = StreamRunner(
                session.state,
                target,
                dispatcher,
                report,
                self._timings,
                self._interrupt,
                [bound.scope for bound in own],
                place=target.name if len(targets) > 1 else "",
            )
            mine = [intent for intent in left if intent.scope.target == target.name]
            deliveries[target.name] = TargetDelivery(dispatcher, runner, own, mine)
        return running

    def _allowance(self, target: Target) -> Allowance:
        session = self._session
        ceiling = session.in_flight(target)
        return Allowance(session.clock, session.bucket(target), ceiling=ceiling, priority=self._priority)

    def _settled(self, counts: SettlementCount, allowance: Allowance, item: Settlement) -> None:
        if counts.count(item):
            self._timings.advance()
            self._timings.allowance(allowance.tokens)

    def _stream_input(self, bound: BoundStream, tally: Tally, run_id: int) -> StreamInput:
        return StreamInput(bound, self._session.state, tally, run_id)

    def _finish(self, report: Report, names: set[str]) -> None:
        """Count what is open, and write how the run ended.

        A scheduled run that was asked to stop is continued by the next scheduler.
        """
        error, now = next(map(str, report.errors.values()), None), self._session.clock.now()
        streams = [name for name in report.tallies if name in names]  # without others that it only resumed
        streams += sorted(names.difference(report.tallies))
        writers = {scope: name for name, scope in self._session.project.scopes.items()}

        def finish(tx: Transaction) -> None:
            api_limits.write(tx, self._api_limits)
            report.open = tx.open_records.counts(streams, writers)
            for name in (name for name, counts in report.open.items() if counts.total):
                report.tally(name)  # also of a stream that was not reached
            tx.runs.finish(
                report.run,
                status=report.status,
                requests=report.counters.requests,
                throttled=report.counters.throttled,
                tally=report.accounts(),
                error=error,
                duration_ms=report.duration_ms,
                timings=self._timings.as_json() | {"apis": report.apis()},
                at=now,
            )
            stopped = self._interrupt.is_set() and not report.completed
            if self._due_run and not stopped:
                note = error or (f"open: {report.all_open}" if report.status == "degraded" else None)
                tx.scheduled_runs.finish(self._due_run, report.status, report.run, note, at=now)

        self._session.state.apply(finish)


def _as_crossdock_error(error: BaseException) -> CrossdockError:
    if isinstance(error, CrossdockError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return StoppedError("interrupted twice", hint="run again: it continues from what was delivered")
    return InternalError(f"unexpected {type(error).__name__}")
