"""One run of a project: resume, read, decide, deliver, balance."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

from crossdock.clock import Clock
from crossdock.delivery.dispatcher import Dispatcher
from crossdock.delivery.operations import PARTIAL
from crossdock.delivery.senders import Senders
from crossdock.delivery.settlement import Settled
from crossdock.errors import ConfigError, CrossdockError, InternalError, StateError, StoppedError
from crossdock.pacing.allowance import Allowance, Lane
from crossdock.planning.planner import Decided, Planner
from crossdock.planning.references import References
from crossdock.platform.platform_target import PlatformTarget
from crossdock.progress import Progress
from crossdock.project.project import BoundStream, Project, this_process
from crossdock.resources import RESOURCES
from crossdock.runs.intake_logs import StateIntake
from crossdock.runs.record_source import Source
from crossdock.runs.replay import Replaying
from crossdock.runs.run_folder import work_folder
from crossdock.runs.run_report import Report
from crossdock.runs.session import Shift, opened
from crossdock.runs.stream_input import Reading
from crossdock.runs.stream_order import Turns
from crossdock.runs.timings import Course
from crossdock.sources.late_files import LateError
from crossdock.sources.source_context import Patience, Workplace
from crossdock.state import Choice, Occasion, Transaction
from crossdock.tally import Tally, Term


def sync(
    project: Project,
    selection: list[str],
    *,
    clock: Clock,
    progress: Progress,
    interrupt: threading.Event,
    lane: Lane = "batch",
    patience: Patience | None = None,
) -> Report:
    """Bring the selected streams to the platform.

    Args:
        lane: ``live`` takes its tokens before the batches that share the bucket.
        patience: To wait for late files as the streams say; without it, what is there is all there is.

    Raises:
        CrossdockError: If the run could not begin. What stops it later is in the report.
    """
    with opened(project, clock) as shift:
        run = Run(shift, progress, interrupt, lane, patience)
        return run.execute(project.selected(selection))


def night(shift: Shift, occasion: Occasion, *, progress: Progress, interrupt: threading.Event) -> Report | None:
    """Run the night of *occasion*, once: None if it has been run already.

    Raises:
        CrossdockError: If the run could not begin. What stops it later is in the report.
    """
    job = shift.project.jobs[occasion.job]
    patience = Patience(occasion.due, job.schedule.zone)
    run = Run(shift, progress, interrupt, patience=patience, occasion=occasion)
    names = shift.project.selected(job.streams)
    return run.execute(names) if run.begin() else None


def replay(project: Project, choice: Choice, *, clock: Clock, progress: Progress, interrupt: threading.Event) -> Report:
    """Map the chosen dead letters again, as the mapping is today, and deliver them; no source is read.

    Raises:
        ConfigError: If a stream or a record is chosen that is not there.
        CrossdockError: If the run could not begin. What stops it later is in the report.
    """
    with opened(project, clock) as shift:
        known = project.selected([choice.stream] if choice.stream else [])
        with shift.state.look() as tx:
            names = {letter.stream for letter in tx.refused.chosen(choice)} & known
        if not names and choice.key is not None:
            hint = "'crossdock records list --state rejected' shows what there is"
            raise ConfigError(f"no rejected record {choice.key!r} of {choice.stream}", hint=hint)
        run = Run(shift, progress, interrupt, "live")
        return run.execute(names, lambda bound, tally: Replaying(bound, shift.state, tally, choice), reads=False)


class Run:
    """One execution: resume, read, decide, deliver, balance."""

    def __init__(
        self,
        shift: Shift,
        progress: Progress,
        interrupt: threading.Event,
        lane: Lane = "batch",
        patience: Patience | None = None,
        occasion: Occasion | None = None,
    ) -> None:
        self._shift, self._project, self._state, self._clock = shift, shift.project, shift.state, shift.clock
        self._progress, self._interrupt, self._patience = Course.over(progress, shift.clock), interrupt, patience
        self._lane, self._occasion = lane, occasion
        self._target = PlatformTarget(shift.project.platform)
        self._references = References(self._target.name)
        self._opened: set[tuple[str, int]] = set()
        self._resuming = False
        self.id = 0

    def begin(self) -> bool:
        """Begin the night that this run is for; False if it has ended already."""
        occasion, now = self._occasion, self._clock.now()
        assert occasion is not None
        with self._state.begin() as tx:
            return tx.nights.begin(occasion, at=now)

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
        self._source, now, night = source or self._reading, self._clock.now(), self._occasion
        business_date = night.business_date if night else now.astimezone().date()
        date, job = business_date.isoformat(), night.job if night else None
        self._target.client().close()  # a credential that cannot be read is told before anything begins
        with self._state.begin() as tx:
            self.id = tx.runs.start(business_date=date, owner=this_process(), fence=self._state.fence, at=now, job=job)
            restored = tx.runs.restored()
        self._report = report = Report(self.id, date)
        self._progress.start(report, job)
        intake, spool, shift = StateIntake(self._state, self._clock, self.id), self._project.spool, self._shift
        try:
            with ExitStack() as stack, Senders(self._target, shift.in_flight, self._project.masks) as senders:
                work = work_folder(stack, spool)
                place = Workplace(self._clock, self._progress, intake, spool, work, spool, self._patience, report.notes)
                streams = self._project.bind(names, target=self._target.name, place=place)
                self._allowance = Allowance(self._clock, shift.bucket, ceiling=shift.in_flight, lane=self._lane)
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
                    suspicious=restored,
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
        with self._shift.resuming:
            if not self._resume(streams):
                return
            self._shift.resumed = True
        if not (self._each(streams) and self._deliver(self._dispatcher.release)):
            self._dispatcher.put_back()
            return
        tallies = self._report.tallies.values()
        looked = any(tally.rows_read for tally in tallies) and not any(t.records["carried_on"] for t in tallies)
        if whole and looked and not self._report.errors:  # a restored state was compared, and nothing is open
            self._state.apply(lambda tx: tx.runs.trusted_again())

    def _each(self, streams: list[BoundStream]) -> bool:
        """Run one stream after the other; False if the run must end."""
        turns = Turns(streams, self._clock, self._progress, self._interrupt)
        for bound in turns:
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
                turns.put_off(bound, late)
        return True

    def _reading(self, bound: BoundStream, tally: Tally) -> Source:
        return Reading(bound, self._state, tally, self.id)

    def _resume(self, streams: list[BoundStream]) -> bool:
        """Deliver what earlier runs left; False if the run must end."""
        unsettled = self._shift.left(streams)
        for intent in unsettled:
            if intent.record_fp != PARTIAL:  # its record waits, and is counted there
                self._tally(intent.stream).count("carried_over")
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
            doubtful = tx.intents.unsettled(bound.scope)
        try:
            source.read(doubtful, self._advance)
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
        chunks: Iterator[Decided] | None = planner.decide(reads)
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

    def _watched(self, chunks: Iterator[Decided]) -> Iterator[Decided]:
        for chunk in chunks:
            self._progress.advance(chunk.size - len(chunk.operations))
            yield chunk

    def _settled(self, item: Settled) -> None:
        intent = item.intent
        if intent.record_fp == PARTIAL:  # the first of two steps: unless it was refused, its record still waits
            self._opened.add((intent.stream, intent.key_hash))
            if intent.status == "rejected":
                self._tally(intent.stream).count("carried_over", self._resuming)
                self._tally(intent.stream).count("rejected")
            return
        first_time = intent.operation == "create" or (intent.stream, intent.key_hash) in self._opened
        self._tally(intent.stream).count(_term(item, first_time=first_time))
        self._progress.advance()
        self._progress.allowance(self._allowance.tokens)

    def _tally(self, stream: str) -> Tally:
        return self._report.tallies.setdefault(stream, Tally())

    def _finish(self, report: Report) -> None:
        error = next(map(str, report.errors.values()), None)

        def finish(tx: Transaction) -> None:
            report.still_refused = tx.refused.count_before(report.run)
            tx.runs.finish(
                report.run,
                status=report.status,
                requests=report.counters.requests,
                throttled=report.counters.throttled,
                tally=report.accounts(),
                error=error,
                course=self._progress.as_json(),
                at=self._clock.now(),
            )
            stopped = self._interrupt.is_set() and report.status != "done"
            if self._occasion and not stopped:  # a night that was asked to end goes on with the next scheduler
                tx.nights.finish(self._occasion, report.status, report.run, error, at=self._clock.now())

        self._state.apply(finish)


def _term(item: Settled, *, first_time: bool) -> Term:
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
