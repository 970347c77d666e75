"""Allows one run at a time on a state, by a lock that ends with its process and a lease with a fence.

The lock is free as soon as its holder is killed. A holder that is only paused (a suspended machine, a lost network)
keeps it, but its lease expires: the next run takes over with a higher fence, and the state refuses every later write of
the paused run.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from msgspec import Struct
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Interval,
    Row,
    bindparam,
    column,
    false,
    func,
    select,
    true,
    update,
)
from sqlalchemy import table as table_of_settings
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from crossdock.errors import StateBusyError, StateError
from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.database_opening_and_errors import (
    begin_read_only_connection,
    os_errors_as_state_errors,
    url_without_password,
)
from crossdock.state.db.schema import leases as table
from crossdock.state.db.schema_migrations import LONG_AGO
from crossdock.values.acting_person_and_process import (
    has_process_ended,
    host_and_process_number,
    is_other_process_running,
)
from crossdock.values.clock import SystemClock, call_periodically_in_thread
from crossdock.values.safe_local_files import open_or_create_private_file

LEASE_S = 60.0
_GRACE_S = 1.0  # a process that has the lock but no lease for longer than this is paused, not starting
_LOOKS_EVERY_S = 0.1  # while it waits for another run
_ADVISORY = 0x63726F7373  # any number, the same in every crossdock
_TAKE_ADVISORY_LOCK = select(func.pg_try_advisory_lock(_ADVISORY))
_SETTINGS = table_of_settings("pg_settings", column("name"))
_STAYS_OPEN = (  # a server may end sessions that are idle; PostgreSQL before 14 has no such setting
    select(func.set_config(_SETTINGS.c.name, "0", false())).where(_SETTINGS.c.name == "idle_session_timeout")
)
_LEASE = table.c.name == "run"  # one lease for all runs of a state
_HELD = update(table).where(_LEASE, table.c.fence == bindparam("held"))
_LAST = select(table).where(_LEASE)
FENCE = select(table.c.fence).where(_LEASE).scalar_subquery()
"""The fence of the last holder, in the transaction of the holder its own."""
_RENEW = {
    "sqlite": sql_types_and_statements.BulkStatement(_HELD.values(until=bindparam("later"))),
    "postgresql": sql_types_and_statements.BulkStatement(
        _HELD.values(until=func.clock_timestamp() + bindparam("length", type_=Interval))
    ),
}


class Lease(Struct, frozen=True):
    """The right to write until another run takes over. *fence* grows with every holder."""

    url: URL
    fence: int

    def renew(self, connection: Connection) -> None:
        """Renew the lease. No other run can take over before the transaction ends. Raises StateError if one has."""
        length = timedelta(seconds=LEASE_S)
        is_file = connection.dialect.name == "sqlite"
        until = {"later": [_shared_clock_time(connection) + length]} if is_file else {"length": [length]}
        if _RENEW[connection.dialect.name].run(connection, {"held": [self.fence], **until}) != 1:
            raise StateError(
                "another run has taken over because this one was suspended for too long",
                where=url_without_password(self.url),
                hint="this run has written nothing since; 'crossdock runs' shows the other one",
                code="run_taken_over",
            )


def fence_of_last_holder(connection: Connection) -> int:
    return int(connection.execute(_LAST).one().fence)


def killed_run_condition(connection: Connection, fence: Column[int]) -> ColumnElement[bool]:
    """Return the condition that what was begun under the lease with this *fence* cannot have its end recorded any more.

    It is met once the process has ended on this host, another process holds the lease, or the lease has expired.
    """
    last = connection.execute(_LAST).one()
    return fence.is_distinct_from(last.fence) if _is_lease_held(connection, last) else true()


def _is_lease_held(connection: Connection, last: Row[Any]) -> bool:
    now = _shared_clock_time(connection)
    if not now < last.until <= now + timedelta(seconds=LEASE_S):
        return False
    return not has_process_ended(last.owner)


@contextmanager
def hold_run_lease(engine: Engine, url: URL, owner: str, *, above: int = 0, waits_s: float = 0.0) -> Iterator[Lease]:
    """Hold the lease during the block, with a fence above *above*.

    Raises StateBusyError if another run holds it for longer than *waits_s*.
    """
    with _open_lock_without_taking(engine, url) as lock:
        lease = Lease(url, _acquire_lease_within(waits_s, engine, url, owner, above, lock.try_to_take))
        try:
            with _renew_lease_in_background(engine, lease, lock):
                yield lease
        except BaseException:
            with suppress(DBAPIError):  # what ended the block may be the database
                _release_lease(engine, lease)
            raise
        _release_lease(engine, lease)


def _release_lease(engine: Engine, lease: Lease) -> None:
    with engine.begin() as connection:
        connection.execute(_HELD.values(until=LONG_AGO, locked=False), {"held": lease.fence})


def _acquire_lease_within(
    waits_s: float, engine: Engine, url: URL, owner: str, above: int, try_lock: Callable[[], bool]
) -> int:
    deadline = time.monotonic() + waits_s
    while True:
        try:
            return _acquire_lease_after_grace(engine, url, owner, above, try_lock)
        except StateBusyError as error:
            if time.monotonic() >= deadline:
                if waits_s:
                    error.message = f"{error.message}; it did not end within {waits_s:g} s"
                raise
        time.sleep(_LOOKS_EVERY_S)


def _acquire_lease_after_grace(engine: Engine, url: URL, owner: str, above: int, try_lock: Callable[[], bool]) -> int:
    """A process that has the lock but no lease is starting, ending or paused: wait for it for a moment."""
    deadline = time.monotonic() + _GRACE_S
    while True:
        locked = try_lock()
        if locked or time.monotonic() >= deadline:
            with engine.begin() as connection:
                return _take_over_lease(connection, url, owner, above=above, locked=locked)
        with begin_read_only_connection(engine) as connection:
            _raise_if_lease_held(connection.execute(_LAST).one(), _shared_clock_time(connection), url)
        time.sleep(0.02)


def _take_over_lease(connection: Connection, url: URL, owner: str, *, above: int = 0, locked: bool) -> int:
    last = connection.execute(_LAST.with_for_update()).one()
    now = _shared_clock_time(connection)
    if not (locked and last.locked) or is_other_process_running(last.owner):
        _raise_if_lease_held(last, now, url)
    # otherwise this process got the last holder's lock, so its process has ended. One that is running has another lock:
    # its file was removed, or was found by another path of the state
    new = max(last.fence, above) + 1
    until = now + timedelta(seconds=LEASE_S)
    connection.execute(update(table).where(_LEASE).values(fence=new, owner=owner, locked=locked, until=until))
    return int(new)


def _raise_if_lease_held(last: Row[Any], now: datetime, url: URL) -> None:
    """A lease that ends more than `LEASE_S` from now is void: the clock was set back since."""
    if now < last.until <= now + timedelta(seconds=LEASE_S):
        raise _state_busy_error(last, url, "wait until it ends; 'crossdock runs' shows it")


def _state_busy_error(last: Row[Any], url: URL, hint: str) -> StateBusyError:
    message = f"another run is using this state ({host_and_process_number(last.owner)})"
    return StateBusyError(message, where=url_without_password(url), hint=hint)


def raise_if_run_prevents_schema_change(connection: Connection, url: URL) -> None:
    """Raise StateBusyError if a run is in progress: its process would go on with the tables that it knows."""
    last = connection.execute(_LAST).one()
    if _is_lease_held(connection, last):
        raise _state_busy_error(
            last, url, "end its process in order (SIGTERM), or wait until it ends, then upgrade the state"
        )


@contextmanager
def _renew_lease_in_background(engine: Engine, lease: Lease, lock: _ProcessLock) -> Iterator[None]:
    """Renew the lease in a thread, since a long download writes nothing for minutes.

    Without its lock, the lease says so: others then wait until it expires, and do not take the process for ended.
    """

    def renew() -> bool:
        try:
            is_locked = lock.is_still_held()
            with engine.begin() as connection:
                lease.renew(connection)
                if not is_locked:
                    connection.execute(_HELD.values(locked=False), {"held": lease.fence})
        except StateError:
            return False  # the next write of the run raises the error
        except DBAPIError:
            return True  # a busy or unavailable database may be back before the lease expires
        return True

    with call_periodically_in_thread(renew, LEASE_S / 3, "lease"):
        yield


class _ProcessLock(Protocol):
    """A lock that ends with its process."""

    def try_to_take(self) -> bool: ...

    def is_still_held(self) -> bool:
        """Return whether it is held, if need be because it was taken again."""


class _FileLock:
    def __init__(self, file: BinaryIO, url: URL) -> None:
        self._file, self._url = file, url

    def try_to_take(self) -> bool:
        with os_errors_as_state_errors(self._url):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def is_still_held(self) -> bool:
        return True


class _SessionLock:
    """A lock of a session of PostgreSQL, which a restart, a failover or an administrator may end."""

    def __init__(self, engine: Engine) -> None:
        # in autocommit: the lock belongs to the session, and no transaction stays open for the whole run
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._session = self._opened_session()

    def _opened_session(self) -> Connection:
        session = self._engine.connect()
        session.execute(_STAYS_OPEN)
        return session

    def try_to_take(self) -> bool:
        return self._is_session_not_pooled() and bool(self._session.execute(_TAKE_ADVISORY_LOCK).scalar())

    def _is_session_not_pooled(self) -> bool:
        """Return whether the session is that of this process alone.

        A pooler, such as PgBouncer, lends a session to several processes in turn, all of which get its lock. It tells
        its clients a number that is not the one of the session.
        """
        stated = self._session.connection.driver_connection.info.backend_pid  # type: ignore[union-attr]  # of psycopg
        return bool(stated == self._session.execute(select(func.pg_backend_pid())).scalar())

    def is_still_held(self) -> bool:
        if not self._session.closed:
            try:
                self._session.execute(select(true()))
            except DBAPIError:
                self._session.close()
            else:
                return True
        self._session = self._opened_session()
        return self.try_to_take()

    def close(self) -> None:
        if not self._session.closed:
            with suppress(DBAPIError):  # a lost session has lost its lock, too
                self._session.execute(select(func.pg_advisory_unlock_all()))
            self._session.close()


@contextmanager
def _open_lock_without_taking(engine: Engine, url: URL) -> Iterator[_ProcessLock]:
    if url.drivername == "sqlite":
        with os_errors_as_state_errors(url):
            file = open_or_create_private_file(Path(f"{url.database}.lock"))
        with file:
            yield _FileLock(file, url)
        return
    with closing(_SessionLock(engine)) as lock:
        yield lock


def _shared_clock_time(connection: Connection) -> datetime:
    """Return the time of the clock that all holders share; of a file, since the machine started, suspended or not."""
    if connection.dialect.name == "sqlite":
        return datetime.fromtimestamp(SystemClock().monotonic(), UTC)
    now: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return now
