"""One run of a project: resume, read, decide, deliver, balance."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossdock.clock import Clock
from crossdock.delivery.dispatcher import Counters, Dispatcher
from crossdock.delivery.senders import Senders
from crossdock.delivery.settling import Settled
from crossdock.errors import CrossdockError, InternalError, StateError, StoppedError
from crossdock.pacing.allowance import Allowance
from crossdock.platform.target import PlatformTarget
from crossdock.progress import Progress
from crossdock.sources.workplace import Workplace
from crossdock.state import Intent, State
from crossdock.sync.intake import StateIntake
from crossdock.sync.plan import Decided, Planner
from crossdock.sync.project import BoundStream, Project
from crossdock.sync.reading import Reading
from crossdock.sync.references import References
from crossdock.sync.tally import Tally, Term
from crossdock.sync.work import work_folder


@dataclass(slots=True)
class Report:
    """What a run did.

    Attributes:
        tallies: By stream, in the order they ran.
        errors: What stopped a stream, by its name, or the run, under an empty name.
        still_refused: Dead letters of earlier runs that this one did not meet again.
    """

    run: int
    business_date: str
    seconds: float = 0.0
    counters: Counters = field(default_factory=Counters)
    tallies: dict[str, Tally] = field(default_factory=dict)
    errors: dict[str, CrossdockError] = field(default_factory=dict)
    still_refused: int = 0

    @property
    def balanced(self) -> bool:
        return all(tally.balanced for tally in self.tallies.values())

    @property
    def status(self) -> str:
        if self.exit_code == InternalError.exit_code:
            return "failed"
        return "incomplete" if self.errors else "done"

    @property
    def exit_code(self) -> int:
        """The gravest of what happened; ``crossdock sync --help`` tells their meaning."""
        if not self.balanced:
            return InternalError.exit_code
        codes = {error.exit_code for error in self.errors.values()}
        for code in (70, 130, 3, 4, 2):
            if code in codes:
                return code
        return 1 if any(tally.unfinished for tally in self.tallies.values()) else 0

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "business_date": self.business_date,
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "requests": self.counters.requests,
            "throttled": self.counters.throttled,
            "balanced": self.balanced,
            "streams": {name: tally.as_json() for name, tally in self.tallies.items()},
            "still_refused": self.still_refused,
            "errors": {name or "run": str(error) for name, error in self.errors.items()},
        }


def sync(
    project: Project, selection: list[str], *, clock: Clock, progress: Progress, interrupt: threading.Event
) -> Report:
    """Bring the selected streams to the platform.

    Raises:
        CrossdockError: If the run could not begin. What stops it later is in the report.
    """
    with ExitStack() as stack:
        state = project.open_state()
        stack.callback(state.close)
        stack.enter_context(state.exclusive())
        work = work_folder(stack, project.spool)
        return _Run(project, state, clock, progress, interrupt).execute(selection, work)


class _Run:
    def __init__(
        self, project: Project, state: State, clock: Clock, progress: Progress, interrupt: threading.Event
    ) -> None:
        self._project, self._state, self._clock = project, state, clock
        self._progress, self._interrupt = progress, interrupt
        self._target = PlatformTarget(project.platform)
        self._references = References(self._target.name)

    def execute(self, selection: list[str], work: Path) -> Report:
        now = self._clock.now()
        date = now.astimezone().date().isoformat()
        started = self._clock.monotonic()
        owner = f"{socket.gethostname()}:{os.getpid()}"
        names = self._project.selected(selection)
        self._target.client().close()  # a credential that cannot be read is told before anything begins
        with self._state.begin() as tx:
            tx.runs.abandon(at=now)
            run_id = tx.runs.start(business_date=date, owner=owner, at=now)
            spent_until = tx.buckets.get(self._target.name)
        self._report = report = Report(run_id, date)
        intake = StateIntake(self._state, self._clock, run_id)
        place = Workplace(self._clock, self._progress, intake, self._project.spool, work, self._project.spool)
        streams = self._project.bind(names, target=self._target.name, place=place)
        rate = self._project.platform.rate
        self._allowance = Allowance(self._clock, rate.per_minute / 60, rate.burst, spent_until)
        try:
            with Senders(self._target, self._project.platform.in_flight) as senders:
                self._dispatcher = Dispatcher(
                    self._state,
                    self._target,
                    self._allowance,
                    senders,
                    self._clock,
                    run_id=run_id,
                    settled=self._settled,
                    interrupt=self._interrupt,
                )
                report.counters = self._dispatcher.counters
                self._all(streams)
        except BaseException as error:
            report.errors[""] = _ended_by(error)
            raise
        finally:
            report.seconds = self._clock.monotonic() - started
            self._finish(report)
        return report

    def _all(self, streams: list[BoundStream]) -> None:
        with self._state.begin() as tx:
            unsettled = tx.intents.unsettled()
        doubtful = self._dispatcher.park(unsettled)
        if not self._resume(unsettled, doubtful):
            return
        for bound in streams:
            if not self._one(bound, doubtful) or self._interrupt.is_set():
                return

    def _resume(self, unsettled: list[Intent], doubtful: list[Intent]) -> bool:
        """Deliver what the last run left; False if the run must end."""
        for intent in unsettled:
            self._tally(intent.stream).count("carried_over")
        for intent in doubtful:
            self._tally(intent.stream).count("carried_on")
        parked = {intent.id for intent in doubtful}
        left = [intent for intent in unsettled if intent.id not in parked]
        self._progress.begin("sending what the last run left", len(left))
        return self._deliver(lambda: self._dispatcher.resume(left))

    def _one(self, bound: BoundStream, doubtful: list[Intent]) -> bool:
        """Run one stream; False if the run must end."""
        tally = self._tally(bound.name)
        reading = Reading(bound, self._state, tally, self._report.run)
        try:
            reading.read([intent for intent in doubtful if intent.stream == bound.name], self._advance)
        except StateError:
            raise
        except CrossdockError as error:
            self._report.errors[bound.name] = error
            reading.give_up()
            return True
        planner = Planner(bound, self._state, self._references, tally, run_id=self._report.run, target=self._target)
        reads = reading.records()
        self._progress.begin(bound.name, reading.expected)
        if not self._deliver(lambda: self._dispatcher.deliver(self._watched(planner.decide(reads)))):
            tally.count("carried_on", sum(1 for _ in reads))  # they stay in files that are not worked through
            return False
        reading.finish()
        return True

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
        self._tally(intent.stream).count(_term(intent))
        self._progress.advance()
        self._progress.allowance(self._allowance.tokens)

    def _tally(self, stream: str) -> Tally:
        return self._report.tallies.setdefault(stream, Tally())

    def _finish(self, report: Report) -> None:
        error = next(iter(report.errors.values()), None)
        with self._state.begin() as tx:
            report.still_refused = tx.refused.count_before(report.run)
            tx.runs.finish(
                report.run,
                status=report.status,
                requests=report.counters.requests,
                throttled=report.counters.throttled,
                tally={name: tally.as_json() for name, tally in report.tallies.items()},
                error=str(error) if error else None,
                at=self._clock.now(),
            )


def _term(intent: Intent) -> Term:
    if intent.status == "delivered":
        return "created" if intent.operation == "create" else "updated"
    return "rejected" if intent.status == "rejected" else "carried_on"


def _ended_by(error: BaseException) -> CrossdockError:
    if isinstance(error, CrossdockError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return StoppedError("interrupted twice", hint="run again: it goes on from what was delivered")
    return InternalError(f"unforeseen: {type(error).__name__}")
