"""The sandbox's SQLite file, and its writer, which groups writes into shared commits."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from crossdock.values.safe_local_files import create_private_file

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

DATABASE_FILE_NAME = "sandbox.sqlite3"
MAX_GROUP = 256

SCHEMA = """
CREATE TABLE IF NOT EXISTS credentials (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, key_hash BLOB NOT NULL, scopes TEXT NOT NULL DEFAULT '*:write',
    created_at TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS stored (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, resource TEXT NOT NULL, external_id TEXT,
    updated_at TEXT NOT NULL, changed INTEGER NOT NULL, body TEXT NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS stored_external ON stored (tenant, resource, external_id)
    WHERE external_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS stored_changed ON stored (tenant, resource, updated_at, changed);
CREATE INDEX IF NOT EXISTS stored_lots
    ON stored (tenant, json_extract(body, '$.binId'), json_extract(body, '$.productId'))
    WHERE resource = 'inventory_lot';
CREATE TABLE IF NOT EXISTS entries (seq INTEGER PRIMARY KEY, account TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS entries_account ON entries (account, seq);
CREATE TABLE IF NOT EXISTS effects (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, tenant TEXT NOT NULL, credential TEXT NOT NULL,
    request_id TEXT NOT NULL, idempotency_key TEXT, resource TEXT NOT NULL, operation TEXT NOT NULL,
    id TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS answers (
    tenant TEXT NOT NULL, credential TEXT NOT NULL, key TEXT NOT NULL, at REAL NOT NULL, fingerprint BLOB NOT NULL,
    status INTEGER NOT NULL, headers TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (tenant, credential, key));
CREATE INDEX IF NOT EXISTS answers_at ON answers (at);
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, tenant TEXT NOT NULL, type TEXT NOT NULL,
    body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS events_tenant ON events (tenant, seq);
CREATE TABLE IF NOT EXISTS subscriptions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, url TEXT NOT NULL,
    events TEXT NOT NULL, concurrency INTEGER NOT NULL, status TEXT NOT NULL, disabled_reason TEXT,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, secret TEXT NOT NULL, previous_secret TEXT,
    previous_until REAL NOT NULL DEFAULT 0, cursor INTEGER NOT NULL, healthy_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, subscription TEXT NOT NULL, event INTEGER NOT NULL,
    status TEXT NOT NULL, tries INTEGER NOT NULL DEFAULT 0, since REAL NOT NULL, due REAL NOT NULL,
    reordered INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS deliveries_due ON deliveries (subscription, due, seq) WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS deliveries_of ON deliveries (subscription, seq);
CREATE TABLE IF NOT EXISTS attempts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, delivery TEXT NOT NULL, at TEXT NOT NULL, duration_ms INTEGER NOT NULL,
    status INTEGER, problem TEXT);
CREATE INDEX IF NOT EXISTS attempts_of ON attempts (delivery, seq);
CREATE TABLE IF NOT EXISTS clock (one INTEGER PRIMARY KEY CHECK (one = 1), offset_s REAL NOT NULL);
"""


def open_database(path: Path) -> sqlite3.Connection:
    """Open a connection with explicit transactions and durable commits. Only the owner can read its files."""
    with contextlib.suppress(FileExistsError):  # opened here, it would lose the locks that SQLite holds on it
        create_private_file(path).close()
    path.chmod(0o600)  # SQLite gives its log the same mode
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


class GroupCommitWriter:
    """Runs writes in sequence. Those that arrive during a commit share the next one.

    Each write is a savepoint. The statements run on the event loop, because two busy threads would pass the interpreter
    lock back and forth at every statement. Only the commit, which waits for the disk, runs in a thread.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._queue: list[tuple[Work[Any], asyncio.Future[Any]]] = []
        self._task: asyncio.Task[None] | None = None

    async def run_in_transaction(self, work: Work[T]) -> T:
        """Run *work* in a transaction and return once that is on disk. If *work* raises, nothing is written."""
        future: asyncio.Future[T | Exception] = asyncio.get_running_loop().create_future()
        self._queue.append((work, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._commit_queued_writes())
        result = await future
        if isinstance(result, Exception):
            raise result
        return result

    async def _commit_queued_writes(self) -> None:
        while self._queue:
            group, self._queue = self._queue[:MAX_GROUP], self._queue[MAX_GROUP:]
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                results = [self._run_in_savepoint(work) for work, _ in group]
                await asyncio.to_thread(self._connection.execute, "COMMIT")
            except sqlite3.Error as error:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                results = [error] * len(group)
            for (_, future), result in zip(group, results, strict=True):
                if not future.done():  # it is if its request was cancelled
                    future.set_result(result)

    def _run_in_savepoint(self, work: Work[Any]) -> Any:
        self._connection.execute("SAVEPOINT one")
        try:
            return work(self._connection)
        except Exception as error:  # noqa: BLE001  the error of one request, not of the group
            self._connection.execute("ROLLBACK TO one")
            return error
        finally:
            self._connection.execute("RELEASE one")
