"""The records that the runs of a session work on, so that none overwrites what another has written since it read.

For each target one run plans at a time, and its operations are stored before the next run plans. A run leaves out
records that another run works on, or has worked on since the run began to read: it may have read an older version.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from msgspec import Struct

from crossdock.state import Intent, Scope

Record = tuple[Scope, int]
"""A record's scope and key hash."""


class _Mark(Struct):
    """The last run that worked on a record. *ended* is None while it does."""

    run: RecordsOfRun
    ended: int | None = None


class RecordsOfSession:
    """The records of one session. Times are increasing numbers, since a clock may show the same time twice."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.turns: dict[str, threading.Lock] = {}  # by target; held while planning, which may read the target
        self.time = 0
        self.runs: list[RecordsOfRun] = []
        self.marks: dict[Record, _Mark] = {}

    def begin_run(self) -> RecordsOfRun:
        run = RecordsOfRun(self)
        with self.lock:
            self.runs.append(run)
        return run


class RecordsOfRun:
    """The records of one run, which only its own thread changes."""

    def __init__(self, all_records: RecordsOfSession) -> None:
        self._all = all_records
        self._since: int | None = None  # when it began to read what it plans; None while it reads nothing
        self._own: set[Record] = set()
        self._turn: threading.Lock | None = None  # while it is held

    def end_run(self) -> None:
        self.end_planning()
        self._since = None
        with self._all.lock:
            self._all.runs.remove(self)
            for record in self._own:
                self._mark_ended(record)
            self._remove_unneeded_marks()

    def begin_reading_for_planning(self) -> None:
        """Record that the run begins to read what it will plan."""
        with self._all.lock:
            self._all.time += 1
            self._since = self._all.time
            self._remove_unneeded_marks()

    def note_all_read_is_planned(self) -> None:
        """Record that everything read is planned."""
        with self._all.lock:
            self._since = None
            self._remove_unneeded_marks()

    def begin_planning_and_find_busy(self, scope: Scope, key_hashes: Iterable[int]) -> set[int]:
        """Return what this run must not plan now. No other run plans for the target until `end_planning`."""
        if self._turn is None:
            with self._all.lock:
                turn = self._all.turns.setdefault(scope.target, threading.Lock())
            turn.acquire()
            self._turn = turn
        with self._all.lock:
            if not self._all.marks:
                return set()
            return {key_hash for key_hash in key_hashes if self._belongs_to_another_run((scope, key_hash))}

    def _belongs_to_another_run(self, record: Record) -> bool:
        mark = self._all.marks.get(record)
        return mark is not None and mark.run is not self and self.may_have_read_older_version(mark)

    def may_have_read_older_version(self, mark: _Mark) -> bool:
        """Return whether this run may have read an older version of the record."""
        return mark.ended is None or (self._since is not None and mark.ended > self._since)

    def is_busy_in_other_run(self, scope: Scope, key_hash: int) -> bool:
        with self._all.lock:
            mark = self._all.marks.get((scope, key_hash))
            return mark is not None and mark.run is not self and mark.ended is None

    def begin_work_on(self, intents: Iterable[Intent]) -> None:
        """Record that the run is about to store *intents*."""
        with self._all.lock:
            for intent in intents:
                record = intent.scope, intent.identity.key_hash
                self._all.marks[record] = _Mark(self)
                self._own.add(record)

    def end_planning(self) -> None:
        if self._turn is not None:
            turn, self._turn = self._turn, None
            turn.release()

    def end_work_on(self, intent: Intent) -> None:
        record = intent.scope, intent.identity.key_hash
        with self._all.lock:
            self._own.discard(record)
            self._mark_ended(record)

    def without_records_of_other_runs(self, unsettled: Iterable[Intent]) -> list[Intent]:
        with self._all.lock:
            marks = ((intent, self._all.marks.get((intent.scope, intent.identity.key_hash))) for intent in unsettled)
            return [intent for intent, mark in marks if mark is None or mark.run is self or mark.ended is not None]

    def _mark_ended(self, record: Record) -> None:
        mark = self._all.marks.get(record)
        if mark is None or mark.run is not self:
            return
        self._all.time += 1
        mark.ended = self._all.time
        if not self._is_mark_needed(mark):
            del self._all.marks[record]

    def _is_mark_needed(self, mark: _Mark) -> bool:
        return any(run is not mark.run and run.may_have_read_older_version(mark) for run in self._all.runs)

    def _remove_unneeded_marks(self) -> None:
        done = [record for record, mark in self._all.marks.items() if not self._is_mark_needed(mark)]
        for record in done:
            if self._all.marks[record].ended is not None:
                del self._all.marks[record]
