"""Delivers the records named by webhooks, in a session that scheduled runs may share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from crossdock.planning.removals import still_withheld
from crossdock.runs.named_records import Delivered, NamedRecords
from crossdock.runs.open_run import OpenRun
from crossdock.runs.refused_runs import Attempt
from crossdock.runs.state_session import Session
from crossdock.state import HintedRecord, NamedRecord, Transaction
from crossdock.values.clock import Clock
from crossdock.values.progress import Progress

JOB = "listen"
"""The name of its runs among those of jobs."""
TOGETHER = 100  # records fetched in one part; records that arrive meanwhile wait for its end
IDLE_S = 2.0  # without hints; then the lease is released for other processes
WORKS_S = 600.0  # at most; then retention and other processes have a chance
FAILED_ALONE = 3  # in a row; then the failure is not caused by single records
SOON = timedelta(milliseconds=250)  # after which a record is looked at again whose operation another run sends
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(hours=1)  # after failures; each is twice as long
LONGEST_UNTRIED = timedelta(seconds=30)  # for a record that failed only together with others
_DOUBLED = 12  # at most


@dataclass(frozen=True, slots=True)
class Worked:
    """The processed hints.

    Attributes:
        fetched: The number of fetched records.
        failed: The number of those that failed.
        requests: The number of requests to targets.
        throttled: The number of those that were answered 429.
    """

    fetched: int = 0
    failed: int = 0
    requests: int = 0
    throttled: int = 0


class HintWorker:
    """Works while there are hints, in one thread at a time.

    Args:
        progress: Makes the listener of a run.
        interrupt: Set when the process is to end.
        on_end: Called after each work.
    """

    def __init__(
        self,
        clock: Clock,
        progress: Callable[[], Progress],
        interrupt: threading.Event,
        on_end: Callable[[Worked], None],
    ) -> None:
        self._clock, self._progress, self._interrupt, self._on_end = clock, progress, interrupt, on_end
        self._news, self._is_to_stop, self._works = threading.Event(), False, False

    def wake(self) -> bool:
        """Announce new hints. Return False if it does not work, so that `work` must be called."""
        self._news.set()
        return self._works

    def stop(self) -> None:
        """End the work soon, so that it can start again with another config."""
        self._is_to_stop = True
        self._news.set()

    def work(self, session: Session) -> None:
        """Deliver hints until there were none for `IDLE_S`, for at most `WORKS_S`, or until `stop` is called.

        Raises:
            CrossdockError: If the run could not begin, or the state failed.
        """
        self._is_to_stop, self._works = False, True
        try:
            self._work(session)
        finally:
            self._works = False

    def _work(self, session: Session) -> None:
        attempt = Attempt(job=JOB, continues=True)
        run = OpenRun(session, self._progress(), self._interrupt, "live", attempt=attempt)
        with run.opened(session.project.fetching):
            run.report.messages.forget_errors()  # of earlier work; what still fails is found again
            part, before = _Part(session, run, self._clock, self._interrupt), replace(run.report.counters)
            began = idle_since = self._clock.monotonic()
            while not self._is_over(began):
                self._news.clear()
                if part.deliver():
                    idle_since = self._clock.monotonic()
                elif (idle_s := self._clock.monotonic() - idle_since) < IDLE_S:
                    run.idle("waiting for webhooks")
                    self._news.wait(min(IDLE_S - idle_s, part.next_due_s()))
                else:
                    break
            part.report_withheld()
        sent = run.report.counters
        requests, throttled = sent.requests - before.requests, sent.throttled - before.throttled
        self._on_end(Worked(part.fetched, part.failed, requests, throttled))

    def _is_over(self, began: float) -> bool:
        return self._is_to_stop or self._interrupt.is_set() or self._clock.monotonic() - began >= WORKS_S


class _Part:
    """Delivers the hints that are due, a part at a time."""

    def __init__(self, session: Session, run: OpenRun, clock: Clock, interrupt: threading.Event) -> None:
        self._state, self._run, self._clock, self._interrupt = session.state, run, clock, interrupt
        self._named = NamedRecords(session, run)
        self.fetched = self.failed = 0
        self._able = {bound.name for bound in run.streams} | run.refused.keys()

    def next_due_s(self) -> float:
        """Return the seconds until a record is due; `IDLE_S` without any."""
        with self._state.look() as tx:
            due = tx.inbox.next_due()
        return IDLE_S if due is None else max(0.0, (due - self._clock.now()).total_seconds())

    def deliver(self) -> bool:
        now = self._clock.now()
        due = self._state.ask(lambda tx: tx.inbox.due(now, limit=TOGETHER))
        if not due:
            return False
        fewest = sorted(due, key=attrgetter("attempts"))  # those that were not tried alone come first
        result, untried = self._delivered([hint.record for hint in fewest if hint.stream in self._able])
        for hint in due:
            if hint.stream not in self._able:
                result.failed[hint.record] = f"the config has no stream {hint.stream} that can fetch named records"
        self.fetched += len(due) - len(untried)
        self.failed += sum(hint.record in result.failed for hint in due)
        if not self._interrupt.is_set():  # otherwise stopped records are due again at once
            self._settle(due, result, untried)
        return True

    def report_withheld(self) -> None:
        """Report removals that need approval as errors of the run."""
        with self._state.look() as tx:
            found = [(bound.name, still_withheld(tx, bound)) for bound in self._run.streams]
        for name, error in found:
            if error is not None:
                self._run.report.messages.fail(name, error)

    def _delivered(self, records: Sequence[NamedRecord]) -> tuple[Delivered, set[NamedRecord]]:
        """Deliver *records*, and return the results and those that failed only together with others."""
        result, errors = self._deliver(records)
        untried = set[NamedRecord]()
        failed, by_stream = result.failed.keys() - result.withheld, attrgetter("stream")
        if len(failed) > 1 and errors <= self._able:  # the error of a target is that of all its records
            for name, group in groupby(sorted(filter(failed.__contains__, records), key=by_stream), key=by_stream):
                if name not in self._run.refused:
                    untried.update(self._one_by_one(list(group), result))
        return result, untried

    def _one_by_one(self, records: Sequence[NamedRecord], result: Delivered) -> Iterator[NamedRecord]:
        """Deliver the records separately: one that cannot be fetched must not block the others. Yield those that are
        left when several have failed in a row, since the source may be away.
        """
        failed_alone = 0
        for record in records:
            del result.failed[record]  # the error may be that of another record
            if failed_alone == FAILED_ALONE or self._interrupt.is_set():
                yield record
                continue
            again, _ = self._deliver([record])
            failed_alone = failed_alone + 1 if again.failed else 0
            result.failed |= {each: error for each, error in again.failed.items() if each == record}
            result.blocked |= again.blocked

    def _deliver(self, records: Sequence[NamedRecord]) -> tuple[Delivered, set[str]]:
        """Deliver *records*, and return the results and the names under which the run had errors."""
        if not records:
            return Delivered(), set()
        result, messages = self._named.deliver(records), self._run.report.messages
        names = set(messages.errors)
        messages.forget_errors()  # the hints keep them
        if names - self._able:
            self._run.reset()
        return result, names

    def _settle(self, due: Sequence[HintedRecord], result: Delivered, untried: Collection[NamedRecord]) -> None:
        now = self._clock.now()
        again, done = list[HintedRecord](), list[HintedRecord]()
        for hint in due:
            if hint.record in untried:
                again.append(_untried(hint, now))
            elif hint.record in result.failed:
                again.append(_failed(hint, result.failed[hint.record], now))
            elif hint.record in result.blocked:
                again.append(replace(hint, due_at=now + SOON))
            else:
                done.append(hint)

        def settle(tx: Transaction) -> None:
            tx.inbox.fetched(done)
            tx.inbox.again(again)

        self._state.apply(settle)


def _untried(hint: HintedRecord, now: datetime) -> HintedRecord:
    """Return the hint, which counts no attempt, with a pause as long as it has waited: the source may be away."""
    return replace(hint, due_at=now + min(LONGEST_UNTRIED, max(FIRST_PAUSE, now - hint.last_at)))


def _failed(hint: HintedRecord, error: str, now: datetime) -> HintedRecord:
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(hint.attempts, _DOUBLED))
    return replace(hint, due_at=now + pause, attempts=hint.attempts + 1, error=error)
