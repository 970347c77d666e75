"""One run of a project: resume, read, decide, deliver, balance."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

from crossdock.clock import Clock
from crossdock.delivery.dispatcher import Dispatcher
from crossdock.delivery.senders import Senders
from crossdock.delivery.settlement import Settlement
from crossdock.errors import ConfigError, CrossdockError, InternalError, StateError, StoppedError
from crossdock.pacing.allowance import Allowance, Priority
from crossdock.planning.planned_chunk import PlannedChunk
from crossdock.planning.planner import Planner
from crossdock.planning.references import References
from crossdock.platform.platform_target import PlatformTarget
from crossdock.progress import Progress
from crossdock.project.project import BoundStream, Project, this_process
from crossdock.resources import RESOURCES
from crossdock.runs.intake_logs import StateIntake
from crossdock.runs.record_source import Source
from crossdock.runs.replay import Replay
from crossdock.runs.run_folder import run_folder
from crossdock.runs.run_report import Report
from crossdock.runs.session import Session, opened
from crossdock.runs.stream_input import StreamInput
from crossdock.runs.stream_order import StreamOrder
from crossdock.runs.timings import Timings
from crossdock.sources.late_files import LateError
from crossdock.sources.source_context import Patience, SourceContext
from crossdock.state import DeadLetterFilter, DueRun, Transaction
from crossdock.tally import Tally, Term


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
    """Bring the selected streams to the platform.

    Args:
        priority: ``live`` takes its tokens before the batches that share the bucket.
        patience: To wait for late files as the streams say; without it, what is there is all there is.

    Raises:
        CrossdockError: If the run could not begin. What stops it later is in the report.
    """
    with opened(project, clock) as session:
        run = Run(session, progress, interrupt, priority, patience)
        return run.execute(project.selected(selection))


def night(session: Session, due_run: DueRun, *, progress: Progress, interrupt: threading.Event) -> Report | None:
    """Run the night of *due_run*, once: None if it has been run already.

    Raises:
        CrossdockError: If the run could not begin. What stops it later is in the report.
    """
    job = session.project.jobs[due_run.job]
    patience = Patience(due_run.due, job.schedule.zone)
    run = Run(session, progress, interrupt, patience=patience, due_run=due_run)
    names = session.project.selected(job.streams)
    return run.execute(names) if run.begin() else None


def replay(
    project: Project, choice: DeadLetterFilter, *, clock: Clock, progress: Progress, interrupt: threading.Event
) -> Report:
    """Map the chosen dead letters again, as the mapping is today, and deliver them; no source is read.

    Raises:
        ConfigError: If a stream or a record is chosen that is not there.
        CrossdockError: If the run could not begin. What stops it later is in the report.
    """
    with opened(project, clock) as session:
        known = project.selected([choice.stream] if choice.stream else [])
        with session.state.look() as tx:
            names = {dead_letter.identity.stream for dead_letter in tx.dead_letters.chosen(choice)} & known
        if not names and choice.key is not None:
            hint = "'crossdock records list --state rejected' shows what there is"
            raise ConfigError(f"no rejected record {choice.key!r} of {choice.stream}", hint=hint)
        run = Run(session, progress, interrupt, "live")
        return run.execute(names, lambda bound, tally: Replay(bound, session.state, tally, choice), reads=False)


class Run:
    """One execution: resume, read, decide, deliver, balance."""

    def __init__(
        self,
        session: Session,
        progress: Progress,
        interrupt: threading.Event,
        priority: Priority = "batch",
        patience: Patience | None = None,
        due_run: DueRun | None = None,
    ) -> None:
        self._session, self._project, self._state, self._clock = session, session.project, session.state, session.clock
        self._progress, self._interrupt, self._patience = Timings.over(progress, session.clock), interrupt, patience
        self._priority, self._due_run = priority, due_run
        self._target = PlatformTarget(session.project.platform)
        self._references = References(self._target.name)
        self._opened: set[tuple[str, int]] = set()
        self._resuming = False
        self.id = 0

    def begin(self) -> bool:
        """Begin the night that this run is for; False if it has ended already."""
        due_run, now = self._due_run, self._clock.now()
        assert due_run is not None
        with self._state.begin() as tx:
            return tx.scheduled_runs.begin(due_run, at=now)

    def execute(
        self,
        names: set[str],
        source: Callable[[BoundStream, Tally], Source] | None = None,
        *,
        reads: bool = True,
    ) -> Report:
        """Run streams.

        Args:
            names: Of the streams; without any, only what the last run left is sent.
            source: Where the records of a stream come from; by default from its own source.
            reads: False if that is not the streams' own sources.
        """
        whole = reads and names == self._project.selected([])
        self._source, now, night = source or self._reading, self._clock.now(), self._due_run
        business_date = night.business_date if night else now.astimezone().date()
        date, job = business_date.isoformat(), night.job if night else None
        self._target.client().close()  # a credential that cannot be read is told before anything begins
        with self._state.begin() as tx:
            self.id = tx.runs.start(business_date=date, owner=this_process(), fence=self._state.fence, at=now, job=job)
            restored = tx.runs.restored()
        self._report = report = Report(self.id, date)
        self._progress.start(report, job)
        intake, spool, session = StateIntake(self._state, self._clock, self.id), self._project.spool, self._session
        try:
            with ExitStack() as stack, Senders(self._target, session.in_flight, self._project.masks) as senders:
                work = run_folder(stack, spool)
                place = SourceContext(
                    self._clock, self._progress, intake, spool, work, spool, self._patience, report.notes
                )
                streams = self._project.bind(names, target=self._target.name, place=place)
                self._allowance = Allowance(
                    self._clock, session.bucket, ceiling=session.in_flight, priority=self._priority
                )
                self._dispatcher = Dispatcher(
                    self._state,
                    self._target,
                    self._allowance,
                    senders,
                    self._clock,
                    run_id=self.id,
                    settled=self._settled,
                    interrupt=self._interrupt,
                    warn=self._progress.warn,
                    adopting=self._project.adopting,
                    state_restored=restored,
                )
                report.counters = self._dispatcher.counters
                self._all(streams, whole=whole)
        except BaseException as error:
            report.errors[""] = _ended_by(error)
            raise
        finally:
            report.seconds = self._progress.end().total_seconds()
            self._finish(report)
        return report

    def _all(self, streams: list[BoundStream], *, whole: bool) -> None:
        with self._session.resuming:
            if not self._resume(streams):
                return
            self._session.resumed = True
        if not (self._each(streams) and self._deliver(self._dispatcher.release)):
            self._dispatcher.put_back()
            return
        tallies = self._report.tallies.values()
        looked = any(tally.rows_read for tally in tallies) and not any(t.records["carried_on"] for t in tallies)
        if whole and looked and not self._report.errors:  # a restored state was compared, and nothing is open
            self._state.apply(lambda tx: tx.runs.trusted_again())

    def _each(self, streams: list[BoundStream]) -> bool:
        """Run one stream after the other; False if the run must end."""
        stream_order = StreamOrder(streams, self._clock, self._progress, self._interrupt)
        for bound in stream_order:
            if self._interrupt.is_set():
                hint = "what was in flight is settled; run again to go on"
                self._report.errors[""] = StoppedError(f"stopped before {bound.name}", hint=hint)
                return False
            if RESOURCES[bound.stream.resource].write_once and not self._deliver(self._dispatcher.release):
                return False
            try:
                if not self._one(bound):
                    return False
            except LateError as late:
                stream_order.put_off(bound, late)
        return True

    def _reading(self, bound: BoundStream, tally: Tally) -> Source:
        return StreamInput(bound, self._state, tally, self.id)

    def _resume(self, streams: list[BoundStream]) -> bool:
        """Deliver what earlier runs left; False if the run must end."""
        unsettled = self._session.left(streams)
        for intent in unsettled:
            if intent.step != "open":  # its record waits, and is counted there
                self._tally(intent.identity.stream).count("carried_over")
        self._progress.proceed("sending what the last run left", len(unsettled))
        self._resuming = True
        names = {bound.name for bound in streams}
        done = self._deliver(lambda: self._dispatcher.resume(unsettled, later=names))
        self._resuming = False
        return done

    def _one(self, bound: BoundStream) -> bool:
        """Run one stream; False if the run must end. Nothing of it is read or counted when its file is late."""
        tally = self._tally(bound.name)
        source = self._source(bound, tally)
        with self._state.look() as tx:
            unsettled = tx.intents.unsettled(bound.scope)
        try:
            source.read(unsettled, self._advance)
        except (StateError, LateError):
            raise
        except CrossdockError as error:
            self._report.errors[bound.name] = error
            source.give_up()
            return True
        planner = Planner(
            bound,
            self._state,
            self._references,
            tally,
            run_id=self.id,
            target=self._target,
            gone=source.gone,
            failing=source.failing(),
        )
        reads = source.records()
        self._progress.proceed(f"sending {bound.name}", source.expected)
        chunks: Iterator[PlannedChunk] | None = planner.decide(reads)
        try:
            while chunks is not None:
                if not self._deliver(partial(self._dispatcher.deliver, self._watched(chunks))):
                    planner.pass_over(reads)  # they stay in files that are not worked through
                    return False
                chunks = planner.next_round()
            planner.pass_over(reads)
        finally:
            planner.finish()
        if planner.stopped is not None:
            self._report.errors[bound.name] = planner.stopped
            return True
        self._progress.proceed(f"remembering {bound.name}", None)
        self._finish_stream(source, bound.name)
        return True

    def _finish_stream(self, source: Source, name: str) -> None:
        try:
            source.finish()
        except StateError:
            raise
        except CrossdockError as error:
            self._report.errors[name] = error
        if source.gone.refusal is not None:
            self._report.errors[name] = source.gone.refusal

    def _deliver(self, work: Callable[[], None]) -> bool:
        try:
            work()
        except StateError:
            raise
        except CrossdockError as error:
            self._report.errors[""] = error
            return False
        return True

    def _advance(self, rows: int) -> None:
        if self._interrupt.is_set():
            raise StoppedError("stopped while reading", hint="nothing of this source has entered; run again to go on")
        self._progress.advance(rows)

    def _watched(self, chunks: Iterator[PlannedChunk]) -> Iterator[PlannedChunk]:
        for chunk in chunks:
            self._progress.advance(chunk.size - len(chunk.operations))
            yield chunk

    def _settled(self, item: Settlement) -> None:
        intent = item.intent
        if intent.step == "open":  # the first of two steps: unless it was refused, its record still waits
            self._opened.add((intent.identity.stream, intent.identity.key_hash))
            if intent.status == "rejected":
                self._tally(intent.identity.stream).count("carried_over", self._resuming)
                self._tally(intent.identity.stream).count("rejected")
            return
        first_time = intent.operation == "create" or (intent.identity.stream, intent.identity.key_hash) in self._opened
        self._tally(intent.identity.stream).count(_term(item, first_time=first_time))
        self._progress.advance()
        self._progress.allowance(self._allowance.tokens)

    def _tally(self, stream: str) -> Tally:
        return self._report.tallies.setdefault(stream, Tally())

    def _finish(self, report: Report) -> None:
        error = next(map(str, report.errors.values()), None)

        def finish(tx: Transaction) -> None:
            report.still_refused = tx.dead_letters.count_before(report.run)
            tx.runs.finish(
                report.run,
                status=report.status,
                requests=report.counters.requests,
                throttled=report.counters.throttled,
                tally=report.accounts(),
                error=error,
                timings=self._progress.as_json(),
                at=self._clock.now(),
            )
            stopped = self._interrupt.is_set() and report.status != "done"
            if self._due_run and not stopped:  # a night that was asked to end goes on with the next scheduler
                tx.scheduled_runs.finish(self._due_run, report.status, report.run, error, at=self._clock.now())

        self._state.apply(finish)


def _term(item: Settlement, *, first_time: bool) -> Term:
    intent = item.intent
    if intent.status != "delivered":
        return "rejected" if intent.status == "rejected" else "carried_on"
    if item.untouched:
        return "suppressed"
    if intent.operation == "delete":
        return "deleted"
    return "created" if first_time else "updated"


def _ended_by(error: BaseException) -> CrossdockError:
    if isinstance(error, CrossdockError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return StoppedError("interrupted twice", hint="run again: it goes on from what was delivered")
    return InternalError(f"unforeseen: {type(error).__name__}")
