"""Delivers the records named by webhooks, in a session that scheduled runs may share.

Each pair of systems has a thread for the records that go between them: a system that does not answer, or that asks for
a long pause, delays no others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct, structs

from crossdock.config.project.project import Project
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.runs.active_run import ActiveRun
from crossdock.runs.named_record_delivery import NamedDeliveryResult, NamedRecordDelivery
from crossdock.runs.planning.removals import withheld_removals_error
from crossdock.runs.run_start_and_stop_requests import RunInterrupt, RunRequest
from crossdock.runs.session_shared_by_runs import Session
from crossdock.state import InboxRecord, NamedRecord, Transaction
from crossdock.state.tables.webhooks_and_records_to_fetch import LONGEST_PAUSE
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import Progress

LISTEN_JOB_NAME = "listen"
"""The name of its runs among those of jobs begins with it."""
WORKS_AT_ONCE = 32  # threads
TOGETHER = 100  # records fetched in one part; records that arrive meanwhile wait for its end
IDLE_S = 2.0  # without records to fetch; then the lease is released for other processes
WORKS_S = 600.0  # at most; then retention and other processes have a chance
BREAK_S = 2.0  # how long works wait for each other to end at the same time
SLOW_S = 60.0  # a part that takes longer is reported
FAILED_ALONE = 3  # in a row; then the failure is not caused by single records
SOON = timedelta(milliseconds=250)  # after which a record is looked at again whose operation another run sends
FIRST_PAUSE = timedelta(seconds=1)  # after a failure; each is twice as long, up to `LONGEST_PAUSE`
LONGEST_UNTRIED = timedelta(seconds=30)  # for a record that failed only together with others, or has to wait
_DOUBLED = 12  # at most


class ConnectionAndTarget(NamedTuple):
    """The two systems that records go between. Both are empty for records of streams that the config does not have."""

    connection: str = ""
    target: str = ""

    def __str__(self) -> str:
        return self.connection if self.target in {"", PLATFORM} else f"{self.connection} to {self.target}"

    @property
    def listen_job_name(self) -> str:
        return f"{LISTEN_JOB_NAME} {self}".strip()


def connection_and_target_by_stream(project: Project) -> dict[str, ConnectionAndTarget]:
    scopes = project.scope_by_stream
    return {
        name: ConnectionAndTarget(name.partition(".")[0], scopes[name].target)
        for name in sorted(project.streams_fetching_by_key)
    }


class InboxWorkResult(Struct, frozen=True):
    """The result of one work. *requests* went to targets, and *throttled* of them were answered 429."""

    fetched: int = 0
    failed: int = 0
    requests: int = 0
    throttled: int = 0


class _InboxWork:
    """One work in progress. *is_reported* is set once its present part was reported as slow."""

    def __init__(
        self, partners: ConnectionAndTarget, streams: Collection[str], interrupt: threading.Event, now: float
    ) -> None:
        self.partners, self.streams = partners, streams
        self.ending, self.news = RunInterrupt(interrupt), threading.Event()
        self.begin_part(now)

    def begin_part(self, now: float) -> None:
        self.began, self.is_reported = now, False

    def request_end(self) -> None:
        self.ending.set()
        self.news.set()


class InboxWorker:
    """Delivers the records of the inbox while there are some, with one thread for all between the same partners.

    Args:
        on_end: Called after each work, in its thread.
        look: Called if there may be records for which nothing works, so that `due_streams_by_partners` must be called.
    """

    def __init__(
        self,
        clock: Clock,
        progress: Callable[[], Progress],
        interrupt: threading.Event,
        on_end: Callable[[ConnectionAndTarget, InboxWorkResult], None],
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._clock, self._progress, self._interrupt, self._on_end = clock, progress, interrupt, on_end
        self._look = look
        self._changed = threading.Condition()  # of what follows
        self._works: list[_InboxWork] = []
        self._ready = 0  # works that wait for the others to end with them
        self._break_at = 0.0
        self._break_missed_at: float | None = None  # when a work did not come to the last break
        self._is_break = False

    def due_streams_by_partners(self, project: Project, tx: Transaction) -> dict[ConnectionAndTarget, Collection[str]]:
        """Return the streams of each work to start now, longest due first. Partners that have a work are left out."""
        known, found = connection_and_target_by_stream(project), dict[ConnectionAndTarget, set[str]]()
        for stream in tx.inbox.due_streams(self._clock.now()):
            found.setdefault(known.get(stream, ConnectionAndTarget()), set()).add(stream)
        for stream, partners in known.items():
            if partners in found:
                found[partners].add(stream)
        with self._changed:
            if self._is_break and self._works:
                return {}  # it is over in a moment, and then this is called again
            working = {work.partners for work in self._works}
        left = [partners for partners in found if partners not in working]
        return {partners: found[partners] for partners in left[: WORKS_AT_ONCE - len(working)]}

    def wake_works_on_streams(self, streams: Collection[str]) -> None:
        """Announce that webhooks have named records of *streams*."""
        left = set(streams)
        with self._changed:
            for work in self._works:
                if not left.isdisjoint(work.streams):
                    work.news.set()
                    left.difference_update(work.streams)
        if left:
            self._look()

    def end_work_soon(self) -> None:
        """End all works soon, so that they can start again with another config."""
        with self._changed:
            for work in self._works:
                work.request_end()

    def list_and_mark_slow_partners(self) -> list[tuple[ConnectionAndTarget, float, bool]]:
        """Return the partners whose records take longer than `SLOW_S`, how many seconds, and whether that is new."""
        now = self._clock.monotonic()
        with self._changed:
            found = [(work, now - work.began) for work in self._works if now - work.began >= SLOW_S]
            slow = [(work.partners, seconds, not work.is_reported) for work, seconds in found]
            for work, _ in found:
                work.is_reported = True
        return slow

    def deliver_until_idle(self, session: Session, partners: ConnectionAndTarget, streams: Collection[str]) -> None:
        """Deliver records of *streams* until there were none for `IDLE_S`, for about `WORKS_S`, or until
        `end_work_soon`.
        """
        with self._registering_work(partners, streams) as work:
            self._deliver_in_run(session, work)

    @contextmanager
    def _registering_work(self, partners: ConnectionAndTarget, streams: Collection[str]) -> Iterator[_InboxWork]:
        with self._changed:
            now = self._clock.monotonic()
            if not self._works:
                self._break_at, self._break_missed_at, self._is_break = now + WORKS_S, None, False
            work = _InboxWork(partners, streams, self._interrupt, now)
            self._works.append(work)
        try:
            yield work
        finally:
            with self._changed:
                self._works.remove(work)
                self._end_all_works_if_all_are_ready()

    def _deliver_in_run(self, session: Session, work: _InboxWork) -> None:
        known = connection_and_target_by_stream(session.project)
        others = {each for each in known.values() if each.target == work.partners.target}
        attempt = RunRequest(job=work.partners.listen_job_name, continues=True, shared_by=max(1, len(others)))
        run = ActiveRun(session, self._progress(), work.ending, "live", attempt=attempt)
        with run.recording_start_and_end(known.keys() & work.streams):
            run.report.messages.remove_errors()  # of earlier work; what still fails is found again
            part, before = _InboxDelivery(session, run, self._clock, work), replace(run.report.counters)
            idle_since = self._clock.monotonic()
            while not work.ending.is_set() and not self._wait_for_common_end_if_due(work):
                work.news.clear()
                if (elsewhere := part.deliver_due_and_list_affected_streams()) is not None:
                    self.wake_works_on_streams(elsewhere)
                    idle_since = self._clock.monotonic()
                elif (idle_s := self._clock.monotonic() - idle_since) < IDLE_S:
                    run.show_idle("waiting for webhooks")
                    work.news.wait(min(IDLE_S - idle_s, part.seconds_until_next_due()))
                else:
                    break
            part.report_withheld_removals()
        sent = run.report.counters
        requests, throttled = sent.requests - before.requests, sent.throttled - before.throttled
        self._on_end(work.partners, InboxWorkResult(part.fetched, part.failed, requests, throttled))

    # ---- breaks: a moment in which nothing works

    def _wait_for_common_end_if_due(self, work: _InboxWork) -> bool:
        """Return whether *work* ends now with all others, because they have worked for `WORKS_S`. Called between parts.

        Works wait for each other, but not for one whose part takes long. It asks for another break after that part.
        """
        with self._changed:
            now = self._clock.monotonic()
            if self._break_missed_at is not None and work.began < self._break_missed_at:
                self._break_at, self._break_missed_at = now, None
            if now >= self._break_at and not self._is_break:
                self._wait_until_all_works_are_ready()
            work.begin_part(self._clock.monotonic())
            return self._is_break

    def _wait_until_all_works_are_ready(self) -> None:
        self._ready += 1
        self._end_all_works_if_all_are_ready()
        for each in self._works:
            each.news.set()  # an idle one comes at once
        self._changed.wait_for(lambda: self._is_break, BREAK_S)
        self._ready -= 1
        now = self._clock.monotonic()
        if not self._is_break and now >= self._break_at:  # the first of those that have waited
            self._break_at, self._break_missed_at = now + WORKS_S, now

    def _end_all_works_if_all_are_ready(self) -> None:
        if self._ready == len(self._works) > 0:
            self._is_break = True
            self._changed.notify_all()


class _InboxDelivery:
    def __init__(self, session: Session, run: ActiveRun, clock: Clock, work: _InboxWork) -> None:
        self._state, self._run, self._clock = session.state, run, clock
        self._streams, self._interrupt = work.streams, work.ending
        self._named = NamedRecordDelivery(session, run)
        self.fetched = self.failed = 0
        self._able = {bound.name for bound in run.streams} | run.refused.keys()

    def seconds_until_next_due(self) -> float:
        with self._state.begin_read_only() as tx:
            due = tx.inbox.next_fetch_time(self._streams)
        return IDLE_S if due is None else max(0.0, (due - self._clock.now()).total_seconds())

    def deliver_due_and_list_affected_streams(self) -> Collection[str] | None:
        """Deliver a part. Return the streams of other records to fetch because of it; None if nothing is due."""
        now = self._clock.now()
        due = self._state.run_read_only(lambda tx: tx.inbox.records_to_fetch_now(now, self._streams, limit=TOGETHER))
        if not due:
            return None
        fewest = sorted(due, key=attrgetter("attempts"))  # those that were not tried alone come first
        result, untried = self._deliver_and_isolate_failures(
            [hint.named_record for hint in fewest if hint.stream in self._able]
        )
        for hint in due:
            if hint.stream not in self._able:
                result.failed[hint.named_record] = (
                    f"the config has no stream {hint.stream} that can fetch named records"
                )
        self.fetched += len(due) - len(untried)
        self.failed += sum(hint.named_record in result.failed for hint in due)
        if self._interrupt.is_set():
            return ()  # what was stopped is due again at once
        self._store_results(due, result, untried)
        return {record.stream for record in result.elsewhere}

    def report_withheld_removals(self) -> None:
        """Report removals that need approval as errors of the run."""
        with self._state.begin_read_only() as tx:
            found = [(bound.name, withheld_removals_error(tx, bound)) for bound in self._run.streams]
        for name, error in found:
            if error is not None:
                self._run.report.messages.add_error(name, error)

    def _deliver_and_isolate_failures(
        self, records: Sequence[NamedRecord]
    ) -> tuple[NamedDeliveryResult, set[NamedRecord]]:
        """Deliver *records*. Return the results, and the records that failed only together with others."""
        result, errors = self._deliver(records)
        untried = set[NamedRecord]()
        failed, by_stream = result.failed.keys() - result.withheld, attrgetter("stream")
        if len(failed) > 1 and errors <= self._able:  # the error of a target is that of all its records
            for name, group in groupby(sorted(filter(failed.__contains__, records), key=by_stream), key=by_stream):
                if name not in self._run.refused:
                    untried.update(self._deliver_one_by_one(list(group), result))
        return result, untried

    def _deliver_one_by_one(self, records: Sequence[NamedRecord], result: NamedDeliveryResult) -> Iterator[NamedRecord]:
        """Deliver each record separately. Yield the rest when several fail in a row: the source may be away."""
        failed_alone = 0
        for record in records:
            del result.failed[record]  # the error may be that of another record
            if failed_alone == FAILED_ALONE or self._interrupt.is_set():
                yield record
                continue
            again, _ = self._deliver([record])
            failed_alone = failed_alone + 1 if again.failed else 0
            result.failed |= {each: error for each, error in again.failed.items() if each == record}
            result.postponed |= again.postponed
            result.elsewhere |= again.elsewhere

    def _deliver(self, records: Sequence[NamedRecord]) -> tuple[NamedDeliveryResult, set[str]]:
        """Deliver *records*. Return the results, and the names under which the run had errors."""
        if not records:
            return NamedDeliveryResult(), set()
        result, messages = self._named.deliver(records), self._run.report.messages
        names = set(messages.first_exception_by_stream)
        messages.remove_errors()  # the records of the inbox keep them
        if names - self._able:
            self._run.close_dispatchers_after_failure()
        return result, names

    def _store_results(
        self, due: Sequence[InboxRecord], result: NamedDeliveryResult, untried: Collection[NamedRecord]
    ) -> None:
        now = self._clock.now()
        again, done = list[InboxRecord](), list[InboxRecord]()
        for hint in due:
            if hint.named_record in untried:
                again.append(_postponed_without_counting_attempt(hint, now, FIRST_PAUSE))
            elif hint.named_record in result.failed:
                again.append(_record_to_retry_later(hint, result.failed[hint.named_record], now))
            elif hint.named_record in result.postponed:
                again.append(_postponed_without_counting_attempt(hint, now, SOON))
            else:
                done.append(hint)

        def settle(tx: Transaction) -> None:
            tx.inbox.schedule_fetch_of_records(sorted(result.elsewhere), at=now)
            tx.inbox.remove_fetched(done)
            tx.inbox.store_next_fetch_times(again)

        self._state.run_transaction(settle)


def _postponed_without_counting_attempt(hint: InboxRecord, now: datetime, least: timedelta) -> InboxRecord:
    """Postpone *hint* by the time that it has waited, and count no attempt: the record may not be the cause."""
    return structs.replace(hint, due_at=now + min(LONGEST_UNTRIED, max(least, now - hint.last_at)))


def _record_to_retry_later(hint: InboxRecord, error: str, now: datetime) -> InboxRecord:
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(hint.attempts, _DOUBLED))
    return structs.replace(hint, due_at=now + pause, attempts=hint.attempts + 1, error=error)
