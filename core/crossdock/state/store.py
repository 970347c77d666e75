"""The state as the engine uses it: one object, short transactions, each table's questions in a module of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import polars as pl
from sqlalchemy import Connection
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from crossdock.state.db import run_lease
from crossdock.state.db.database_errors import passes, place_of, translated
from crossdock.state.db.engine import Pin, identity, open_engine, read_ahead, reading
from crossdock.state.db.watermark import Watermark
from crossdock.state.tables.bindings import Bindings
from crossdock.state.tables.buckets import Buckets
from crossdock.state.tables.dead_letters import DeadLetters
from crossdock.state.tables.file_intake import Intake
from crossdock.state.tables.intents import Intents
from crossdock.state.tables.key_index import ORDERED, KeyIndex, Stamps, from_bindings, stamp_of
from crossdock.state.tables.record_history import RecordHistory
from crossdock.state.tables.retention import Retention
from crossdock.state.tables.run_details import RunDetails
from crossdock.state.tables.run_history import Cursors, Runs
from crossdock.state.tables.scheduled_runs import ScheduledRuns
from crossdock.state.tables.scopes import Scope
from crossdock.state.tables.snapshot_history import SnapshotHistory
from crossdock.state.tables.state_size import StateSize
from crossdock.state.tables.waiting_records import WaitingRecords

T = TypeVar("T")
TRIES = 6  # a server that restarts is back within their pauses, 0.1 s doubling to 3.2 s


@dataclass(frozen=True, slots=True)
class Transaction:
    """What can be read and written together; committed as a whole when its block ends."""

    runs: Runs
    bindings: Bindings
    intents: Intents
    intake: Intake
    dead_letters: DeadLetters
    waiting_records: WaitingRecords
    cursors: Cursors
    buckets: Buckets
    tracing: RecordHistory
    reporting: RunDetails
    retention: Retention
    scheduled_runs: ScheduledRuns
    snapshots: SnapshotHistory
    stamps: Stamps
    statistics: StateSize


class State:
    """An open state; threads that work with it write one after the other.

    Attributes:
        fence: Of the lease that this process holds, 0 without one.

    Args:
        keys: Folder of the key index and of the watermark; without it every comparison reads the bindings, and a
            restored backup is not recognised.

    Raises:
        StateError: From every block, if the database fails.
    """

    def __init__(self, url: URL, pin: Pin, *, read_only: bool = False, keys: Path | None = None) -> None:
        self._url = url
        self._keys = KeyIndex(keys) if keys else None
        self._engine = open_engine(url, pin, read_only=read_only)
        self._folder = keys
        self._unmarked: Watermark | None = None  # of the lease that is held, until something is sent
        self._lease: run_lease.Lease | None = None
        self._pen = threading.Lock()  # both databases have one writer of a state anyway; here threads queue in order

    @property
    def fence(self) -> int:
        return self._lease.fence if self._lease else 0

    @contextmanager
    def exclusive(self, owner: str, *, restored: bool = False) -> Iterator[None]:
        """Keep other runs off this state: every transaction of the block confirms that nobody took over.

        Args:
            owner: Who works on it, for whoever comes meanwhile.
            restored: It was declared as a restored backup, so it may be older than the last run.

        Raises:
            StateError: If another run is at work on it.
            RefusedError: If it is older than the last run here that sent something, and was not declared as restored.
        """
        mark = Watermark(self._folder / "fence.json", identity(self._engine, self._url)) if self._folder else None
        above = mark.fence if mark and restored else 0
        with translated(self._url), ExitStack() as stack:
            if mark and not restored:
                mark.check(run_lease.fence(self._engine), place_of(self._url))
            held = stack.enter_context(run_lease.held(self._engine, self._url, owner, above=above))
            self._lease, self._unmarked = held, mark
            try:
                yield
            finally:
                self._lease = self._unmarked = None

    def mark_sending(self) -> None:
        """Keep beside the state that requests leave in this run, before the first one does."""
        if self._lease and self._unmarked:
            self._unmarked.note(self._lease.fence)
            self._unmarked = None

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        """A transaction; rolled back when the block raises."""
        with translated(self._url), self._writing() as tx:
            yield tx

    @contextmanager
    def look(self) -> Iterator[Transaction]:
        """A transaction that only reads, so it costs no flush of the disk; a write in it fails."""
        with translated(self._url), self._reading() as tx:
            yield tx

    def apply(self, work: Callable[[Transaction], T]) -> T:
        """What *work* gives, in a transaction that is tried again if the database broke it off.

        A commit whose answer was lost may have happened, so *work* must come to the same when it is done twice.
        """
        return self._patiently(work, self._writing)

    def ask(self, work: Callable[[Transaction], T]) -> T:
        """What *work*, which only reads, gives; tried again as in `apply`."""
        return self._patiently(work, self._reading)

    def _patiently(
        self, work: Callable[[Transaction], T], transaction: Callable[[], AbstractContextManager[Transaction]]
    ) -> T:
        with translated(self._url):
            for attempt in range(TRIES - 1):
                try:
                    with transaction() as tx:
                        return work(tx)
                except DBAPIError as error:
                    if not passes(error):
                        raise
                time.sleep(0.1 * 2.0**attempt)
            with transaction() as tx:
                return work(tx)

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        with self._pen:
            with self._engine.begin() as connection:
                if self._lease:
                    self._lease.confirm(connection)
                tx = self._transaction(connection)
                yield tx
            if self._keys:
                self._keys.committed(tx.stamps.touched)

    @contextmanager
    def _reading(self) -> Iterator[Transaction]:
        with reading(self._engine) as connection:
            yield self._transaction(connection)

    def known(self, scope: Scope) -> pl.DataFrame:
        """What the state knows of each key of *scope*: see `crossdock.state.tables.key_index.from_bindings`."""
        with translated(self._url), reading(self._engine) as connection:
            return self._known(connection, scope, stamp_of(connection, scope))

    def known_in_order(self, scope: Scope) -> pl.DataFrame | None:
        """As `known`; None where there are more keys than are put in order, at once if the key index tells."""
        with translated(self._url), reading(self._engine) as connection:
            stamp = stamp_of(connection, scope)
            if self._keys and self._keys.height(scope, stamp) > ORDERED:
                return None
            frame = self._known(connection, scope, stamp)
            return frame if frame.height <= ORDERED else None

    def _known(self, connection: Connection, scope: Scope, stamp: int) -> pl.DataFrame:
        frame = self._keys.load(scope, stamp) if self._keys else None
        return from_bindings(connection, scope) if frame is None else frame

    def read_ahead(self, rows: int) -> None:
        """Say that so many bindings are looked at next, wherever they are: it may be faster to fetch them all."""
        read_ahead(self._url, rows)

    def publish(self, scope: Scope, order: pl.Series | None = None) -> None:
        """Bring the key index of *scope* up to date; what fails there costs time in the next run, and nothing else.

        Args:
            order: Key hashes as they were listed last, if it is not in this order: see `key_index.KeyIndex.publish`.
        """
        if self._keys is None:
            return
        with translated(self._url), reading(self._engine) as connection:
            self._keys.publish(scope, stamp_of(connection, scope), lambda: from_bindings(connection, scope), order)

    def _transaction(self, connection: Connection) -> Transaction:
        stamps = Stamps(connection, self._keys.expected if self._keys else lambda _: 0)
        bindings = Bindings(connection, stamps)
        return Transaction(
            Runs(connection),
            bindings,
            Intents(connection),
            Intake(connection),
            DeadLetters(connection),
            WaitingRecords(connection),
            Cursors(connection),
            Buckets(connection),
            RecordHistory(connection),
            RunDetails(connection),
            Retention(connection),
            ScheduledRuns(connection),
            SnapshotHistory(connection),
            stamps,
            StateSize(connection, bindings),
        )

    def close(self) -> None:
        self._engine.dispose()
