"""The open state: short transactions that give access to all tables, the run lease and the key index."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from crossdock.errors import StateBusyError, StateError
from crossdock.state.db import database_opening_and_errors, run_lease
from crossdock.state.db.database_opening_and_errors import (
    BUSY_S,
    PinnedTenant,
    begin_read_only_connection,
    database_errors_as_state_errors,
    identity_of_state,
    is_transient_database_error,
    open_engine_of_state,
    preload_database_file,
    raise_if_file_damaged,
    url_without_password,
)
from crossdock.state.queries.record_counts_and_state_size import (
    KnownRecordCounts,
    OpenRecordCounts,
    OpenRecordTotals,
    StateSizeAndContents,
)
from crossdock.state.queries.record_history import RecordHistory
from crossdock.state.queries.run_details_and_deliveries import DeliveredHistory, RunDetails
from crossdock.state.retention import RetentionSteps
from crossdock.state.sidecar_files import folder_owner_and_fence
from crossdock.state.sidecar_files.folder_owner_and_fence import (
    MARK_EVERY_S,
    FenceAndSentMark,
    FenceFiles,
    increase_mark_of_state,
    sent_mark_of_state,
)
from crossdock.state.state_after_planned_deliveries import (
    ExpectedBindings,
    ExpectedDeadLetters,
    ExpectedDeliveries,
    ExpectedSnapshotHistory,
    ExpectedWaitingRecords,
)
from crossdock.state.tables.audit_log import AuditLog
from crossdock.state.tables.dead_letters_and_waiting_records import DeadLetters, WaitingRecords
from crossdock.state.tables.inputs_of_streams import (
    CrashingInputs,
    CrashMarks,
    Cursors,
    FileIntake,
    FullListTimes,
    SnapshotHistory,
)
from crossdock.state.tables.intents_and_stored_batches import Intents, StoredBatches
from crossdock.state.tables.pending_approvals_and_begun_undos import BegunUndos, PendingApprovals
from crossdock.state.tables.record_bindings import (
    Bindings,
    KeyIndexStamps,
    UntrimmedKeys,
    UnverifiedParts,
    stamp_of_scope,
)
from crossdock.state.tables.record_identity_and_scope import Scope
from crossdock.state.tables.run_history import RunConfigs, Runs
from crossdock.state.tables.scheduled_runs import ScheduledRuns
from crossdock.state.tables.system_migrations import Migrations, MigrationSignOffFacts
from crossdock.state.tables.target_addresses_and_unrecorded_references import (
    TargetAddressesOfScopes,
    UnrecordedReferences,
)
from crossdock.state.tables.token_buckets import StateBuckets
from crossdock.state.tables.webhooks_and_records_to_fetch import FollowedRecords, Inbox
from crossdock.values.clock import SystemClock
from crossdock.values.texts_of_numbers_and_times import instant_text

if TYPE_CHECKING:
    import polars as pl

    from crossdock.state.sidecar_files.key_index_files import KeyIndex

T = TypeVar("T")
IN_ORDER_S = 10.0  # longer than any transaction of a run takes
TRIES = 6  # with pauses of 0.1 s doubling to 1.6 s, in which a restarting server is back


class Transaction:
    """All tables and queries in one transaction, which is committed at the end of its block."""

    def __init__(self, connection: Connection, expected: Callable[[Scope], int]) -> None:
        self.connection, self.stamps = connection, KeyIndexStamps(connection, expected)

    bindings = cached_property(lambda tx: Bindings(tx.connection, tx.stamps))
    written_addresses = cached_property(lambda tx: TargetAddressesOfScopes(tx.connection))
    unrecorded_references = cached_property(lambda tx: UnrecordedReferences(tx.connection))
    untrimmed_keys = cached_property(lambda tx: UntrimmedKeys(tx.connection))
    unverified = cached_property(lambda tx: UnverifiedParts(tx.connection, tx.bindings))
    runs = cached_property(lambda tx: Runs(tx.connection))
    run_configs = cached_property(lambda tx: RunConfigs(tx.connection))
    intents = cached_property(lambda tx: Intents(tx.connection))
    batches = cached_property(lambda tx: StoredBatches(tx.connection))
    intake = cached_property(lambda tx: FileIntake(tx.connection))
    dead_letters = cached_property(lambda tx: DeadLetters(tx.connection))
    waiting_records = cached_property(lambda tx: WaitingRecords(tx.connection))
    cursors = cached_property(lambda tx: Cursors(tx.connection))
    buckets = cached_property(lambda tx: StateBuckets(tx.connection))
    full_lists = cached_property(lambda tx: FullListTimes(tx.connection))
    followed_records = cached_property(lambda tx: FollowedRecords(tx.connection))
    open_record_counts = cached_property(lambda tx: OpenRecordCounts(tx.connection, tx.unverified))
    open_record_totals = cached_property(lambda tx: OpenRecordTotals(tx.connection))
    known_record_counts = cached_property(lambda tx: KnownRecordCounts(tx.connection))
    migration_outcome = cached_property(lambda tx: MigrationSignOffFacts(tx.connection))
    record_history = cached_property(lambda tx: RecordHistory(tx.connection))
    delivered_history = cached_property(lambda tx: DeliveredHistory(tx.connection))
    run_details = cached_property(lambda tx: RunDetails(tx.connection))
    retention = cached_property(lambda tx: RetentionSteps(tx.connection))
    scheduled_runs = cached_property(lambda tx: ScheduledRuns(tx.connection))
    pending_approvals = cached_property(lambda tx: PendingApprovals(tx.connection))
    snapshots = cached_property(lambda tx: SnapshotHistory(tx.connection))
    crashing_inputs = cached_property(lambda tx: CrashingInputs(tx.connection))
    inbox = cached_property(lambda tx: Inbox(tx.connection))
    migrations = cached_property(lambda tx: Migrations(tx.connection))
    begun_undos = cached_property(lambda tx: BegunUndos(tx.connection))
    audit_log = cached_property(lambda tx: AuditLog(tx.connection))
    state_size = cached_property(lambda tx: StateSizeAndContents(tx.connection, tx.bindings))


def create_or_upgrade_state(
    url: URL, pin: PinnedTenant, on_schema_change: Callable[[Transaction, int], None] = lambda _tx, _version: None
) -> bool:
    """Create the state and return True, or upgrade an existing one of the same pin.

    *on_schema_change* is called in the transaction, with the version that the state had before: 0 for a new one.
    Raises StateBusyError, and upgrades nothing, while a run of the former version uses the state.
    """

    def check_and_tell(connection: Connection, version: int) -> None:
        if version:
            run_lease.raise_if_run_prevents_schema_change(connection, url)
        on_schema_change(Transaction(connection, lambda _: 0), version)

    return database_opening_and_errors.create_or_upgrade_database(url, pin, check_and_tell)


def _device_and_inode(url: URL) -> tuple[int, int] | None:
    """Return device and number of a state's file; None for other states, and without a file."""
    if url.drivername != "sqlite" or not url.database:
        return None
    try:
        found = Path(url.database).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@cache
def _fair_lock_of_database(_database: str) -> FairLock:
    return FairLock()


def _write_lock_between_threads(url: URL) -> FairLock:
    """Return the lock of a SQLite file for this process: SQLite has one writer, and lets others wait out of order."""
    return _fair_lock_of_database(str(url.database)) if url.drivername == "sqlite" else FairLock()


@contextmanager
def _hold_write_turn_of_thread(lock: FairLock, most_s: float) -> Iterator[None]:
    """Let threads write in turn. A thread that has waited for *most_s* leaves the order to the database."""
    is_first = lock.acquire(most_s)
    try:
        yield
    finally:
        if is_first:
            lock.release()


class State:
    """An open state. Several threads may use it; they write one after the other.

    Without the folder *keys*, of the key index and the fence, every comparison reads the bindings, and a restored
    backup is not detected. Every block raises StateError if the database fails, or if other writers keep it locked for
    longer than about *waits_s*.
    """

    def __init__(
        self, url: URL, pin: PinnedTenant, *, read_only: bool = False, keys: Path | None = None, waits_s: float = BUSY_S
    ) -> None:
        self._url, self._waits_s = url, waits_s
        self._keys = _open_key_index(keys) if keys else None
        self._engine = open_engine_of_state(url, pin, read_only=read_only, waits_s=waits_s)
        self._folder = keys
        self._fence_files: FenceFiles | None = None  # while the lease is held
        self._marked_at: float | None = None  # when something was last sent under the lease
        self._mark = 0  # that the database has had under the lease
        self._lease: run_lease.Lease | None = None
        self._expected: ExpectedDeliveries | None = None
        self._write_lock = _write_lock_between_threads(url)
        self._file = _device_and_inode(url)

    def raise_if_file_was_replaced(self) -> None:
        """Raise StateError if the file of a SQLite state was removed or replaced since it was opened."""
        if not self.is_still_same_file():
            message = "the file was removed or replaced while it was in use, so that nothing of this run is recorded"
            hint = "put back the file or a backup of it, and declare it by 'crossdock state restored'"
            raise StateError(message, where=url_without_password(self._url), hint=hint, code="state_replaced")

    def is_still_same_file(self) -> bool:
        """Return whether the file of a SQLite state is the one that was opened."""
        return _device_and_inode(self._url) == self._file

    @property
    def fence_number(self) -> int:
        return self._lease.fence if self._lease else 0

    @contextmanager
    def hold_run_lease(self, owner: str, *, restored: bool = False, waits_s: float = 0.0) -> Iterator[None]:
        """Hold the run lease: every transaction of the block checks that no other run took over.

        Raises:
            StateBusyError: If another run uses it for longer than *waits_s*.
            StateError: If it is declared *restored*, and the file is damaged.
            RefusedError: If it is older than what was last sent from here, and was not declared *restored*.
        """
        if restored:
            raise_if_file_damaged(self._engine, self._url)
        files = self._fence_files_in(self._folder) if self._folder else None
        above = files.highest() if files and restored else FenceAndSentMark()
        with database_errors_as_state_errors(self._url), ExitStack() as stack:
            if files and not restored:
                files.raise_if_state_outdated(
                    self._fence_of_last_holder_and_state_mark(), url_without_password(self._url)
                )
            try:
                held = stack.enter_context(
                    run_lease.hold_run_lease(self._engine, self._url, owner, above=above.number, waits_s=waits_s)
                )
            except StateBusyError as error:
                self._add_blocking_run_to_error(error)
                raise
            self._lease, self._fence_files, self._marked_at, self._mark = held, files, None, 0
            try:
                yield
                if above.mark:  # once the block has declared it
                    self.run_transaction(lambda tx: increase_mark_of_state(tx.connection, above=above.mark))
            finally:
                self._increase_mark_at_end_of_sending()
                self._lease = self._fence_files = None

    def _add_blocking_run_to_error(self, error: StateBusyError) -> None:
        """Add to *error* which run is in progress, since when, and how to end it."""
        for run in self.run_read_only(lambda tx: tx.runs.listed(limit=1, status="running")):
            job = f" of the job {run.job}" if run.job else ""
            error.message += f": run {run.id}{job}, in progress since {instant_text(run.started_at)}"
            error.hint = f"wait until it ends, or end it in order: 'crossdock stop {run.id}'"

    def _fence_files_in(self, folder: Path) -> FenceFiles:
        name = identity_of_state(self._engine, self._url)
        paths = folder / folder_owner_and_fence.FENCE_FILE_NAME, *folder_owner_and_fence.fence_file_in_user_folder(name)
        return FenceFiles(paths, name)

    @contextmanager
    def assume_deliveries(self, deliveries: ExpectedDeliveries) -> Iterator[None]:
        """Show comparisons and look-ups the state as it is after *deliveries*. The block must not write."""
        self._expected = deliveries
        try:
            yield
        finally:
            self._expected = None

    def _fence_of_last_holder_and_state_mark(self) -> FenceAndSentMark:
        with begin_read_only_connection(self._engine) as connection:
            return FenceAndSentMark(run_lease.fence_of_last_holder(connection), sent_mark_of_state(connection))

    def crash_marks(self) -> CrashMarks | None:
        if self._folder is None:
            return None
        with database_errors_as_state_errors(self._url):
            return CrashMarks(self._folder / "reading.json", identity_of_state(self._engine, self._url))

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        with database_errors_as_state_errors(self._url), self._write_transaction() as tx:
            yield tx

    @contextmanager
    def begin_read_only(self) -> Iterator[Transaction]:
        """Begin a read-only transaction. It flushes nothing to disk, and a write in it fails."""
        with database_errors_as_state_errors(self._url), self._read_transaction() as tx:
            yield tx

    def run_transaction(self, work: Callable[[Transaction], T]) -> T:
        """Run *work* in a transaction, and retry it after transient errors of the database.

        A commit may have succeeded although its answer was lost, so running *work* twice must have the same result.
        """
        return self._run_with_retries(work, self._write_transaction)

    def run_transaction_before_sending(self, work: Callable[[Transaction], T]) -> T:
        """Run *work* as `run_transaction`, after which something is sent.

        Before the first request, and every `MARK_EVERY_S` from then on, it marks how far the state is.
        """
        if self._marked_at is not None and SystemClock().monotonic() < self._marked_at + MARK_EVERY_S:
            return self.run_transaction(work)
        mark, result = self.run_transaction(lambda tx: (self._increase_mark_or_raise_if_lost(tx), work(tx)))
        self._marked_at, self._mark = SystemClock().monotonic(), mark
        self._write_fence_to_files(mark)
        return result

    def _increase_mark_or_raise_if_lost(self, tx: Transaction) -> int:
        """Raise the mark. Raises StateError if the database has lost an earlier one that it had committed.

        A failover to a standby that lags loses commits, and so does a backup that is restored while a run goes on.
        """
        if sent_mark_of_state(tx.connection) < self._mark:
            message = (
                "the database was replaced by an older one while it was in use: it lacks what this run has written"
            )
            hint = "after a failover or a restored backup, run 'crossdock state restored', then sync"
            raise StateError(message, where=url_without_password(self._url), hint=hint, code="state_replaced")
        return increase_mark_of_state(tx.connection)

    def _increase_mark_at_end_of_sending(self) -> None:
        """Mark a state that has sent something, so that a copy which was made before that is older."""
        if self._marked_at is not None:
            with suppress(DBAPIError, StateError):  # taken over, or lost: the last mark stays
                with self._write_transaction() as tx:
                    mark = self._increase_mark_or_raise_if_lost(tx)
                self._write_fence_to_files(mark)

    def _write_fence_to_files(self, mark: int) -> None:
        if self._lease and self._fence_files:
            self._fence_files.write(FenceAndSentMark(self._lease.fence, mark))

    def run_read_only(self, work: Callable[[Transaction], T]) -> T:
        """Run *work* in a read-only transaction, retried as in `run_transaction`."""
        return self._run_with_retries(work, self._read_transaction)

    def _run_with_retries(
        self, work: Callable[[Transaction], T], transaction: Callable[[], AbstractContextManager[Transaction]]
    ) -> T:
        with database_errors_as_state_errors(self._url):
            for attempt in range(TRIES - 1):
                try:
                    with transaction() as tx:
                        return work(tx)
                except DBAPIError as error:
                    if not is_transient_database_error(error):
                        raise
                time.sleep(0.1 * 2.0**attempt)
            with transaction() as tx:
                return work(tx)

    @contextmanager
    def _write_transaction(self) -> Iterator[Transaction]:
        with _hold_write_turn_of_thread(self._write_lock, min(IN_ORDER_S, 2 * self._waits_s)):
            with self._engine.begin() as connection:
                if self._lease:
                    self._lease.renew(connection)
                tx = self._new_transaction(connection)
                yield tx
            if self._keys:
                self._keys.journal_committed_changes(tx.stamps.touched)

    @contextmanager
    def _read_transaction(self) -> Iterator[Transaction]:
        with begin_read_only_connection(self._engine) as connection:
            yield self._new_transaction(connection)

    def key_index_frame_of_scope(self, scope: Scope) -> pl.DataFrame:
        """Return what is known about each key of *scope*: see `key_index_files.key_index_frame_from_bindings`."""
        with database_errors_as_state_errors(self._url), begin_read_only_connection(self._engine) as connection:
            return self._key_index_frame(connection, scope, stamp_of_scope(connection, scope))

    def key_index_frame_of_keys(self, scope: Scope, key_hashes: Sequence[int]) -> pl.DataFrame:
        from crossdock.state.sidecar_files.key_index_files import key_index_frame_of_given_keys  # noqa: PLC0415  as in `_open_key_index`

        with database_errors_as_state_errors(self._url), begin_read_only_connection(self._engine) as connection:
            return key_index_frame_of_given_keys(connection, scope, key_hashes)

    def key_index_frame_unless_too_many(self, scope: Scope) -> pl.DataFrame | None:
        """Do as `key_index_frame_of_scope`, but return None, often unread, for more keys than `ORDERED`."""
        from crossdock.state.sidecar_files.key_index_files import ORDERED  # noqa: PLC0415  as in `_open_key_index`

        with database_errors_as_state_errors(self._url), begin_read_only_connection(self._engine) as connection:
            stamp = stamp_of_scope(connection, scope)
            if self._keys and self._keys.key_count(scope, stamp) > ORDERED:
                return None
            frame = self._key_index_frame(connection, scope, stamp)
            return frame if frame.height <= ORDERED else None

    def _key_index_frame(self, connection: Connection, scope: Scope, stamp: int) -> pl.DataFrame:
        from crossdock.state.sidecar_files.key_index_files import (  # noqa: PLC0415  as in `_open_key_index`
            key_index_frame_from_bindings,
            key_index_frame_with_changes,
        )

        frame = self._keys.load(scope, stamp) if self._keys else None
        frame = key_index_frame_from_bindings(connection, scope) if frame is None else frame
        changes = self._expected.key_index_changes(scope) if self._expected else []
        return key_index_frame_with_changes(frame, changes) if changes else frame

    def preload_database(self, rows: int) -> None:
        preload_database_file(self._url, rows)

    def update_key_index(self, scope: Scope, order: pl.Series | None = None) -> None:
        """Update the key index of *scope*, in a new *order*. A failure only makes the next run slower."""
        if self._keys is None:
            return
        from crossdock.state.sidecar_files.key_index_files import key_index_frame_from_bindings  # noqa: PLC0415  as in `_open_key_index`

        with database_errors_as_state_errors(self._url), begin_read_only_connection(self._engine) as connection:
            self._keys.update(
                scope,
                stamp_of_scope(connection, scope),
                lambda: key_index_frame_from_bindings(connection, scope),
                order,
            )

    def _new_transaction(self, connection: Connection) -> Transaction:
        tx = Transaction(connection, self._keys.last_own_stamp if self._keys else lambda _: 0)
        if self._expected:
            tx.bindings = ExpectedBindings(connection, tx.stamps, self._expected)
            tx.dead_letters = ExpectedDeadLetters(connection, self._expected)
            tx.waiting_records = ExpectedWaitingRecords(connection, self._expected)
            tx.snapshots = ExpectedSnapshotHistory(connection, self._expected)
        return tx

    def close(self) -> None:
        self._engine.dispose()


def _open_key_index(folder: Path) -> KeyIndex:
    from crossdock.state.sidecar_files.key_index_files import KeyIndex  # noqa: PLC0415  it imports polars: 0.2 s of CPU

    return KeyIndex(folder)


class FairLock:
    """A fair lock. `threading.Lock` lets a thread that releases and acquires again overtake one that has waited."""

    def __init__(self) -> None:
        self._inner = threading.Lock()
        self._is_held = False
        self._waiting: deque[threading.Lock] = deque()  # each is released when its thread may continue

    def acquire(self, timeout_s: float) -> bool:
        with self._inner:
            if not self._is_held:
                self._is_held = True
                return True
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        if turn.acquire(timeout=timeout_s):
            return True
        with self._inner:
            if turn not in self._waiting:
                return True  # the lock was released just now
            self._waiting.remove(turn)
            return False

    def release(self) -> None:
        with self._inner:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_held = False
