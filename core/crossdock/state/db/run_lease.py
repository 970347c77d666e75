"""One run at a time on one state: a lock that ends with its process, and a lease with a fence for processes that sleep.

The lock frees the state at once when its holder is killed. A holder that is only paused (a suspended machine, a lost
network) keeps it; its lease runs out all the same, whoever comes next takes over under a higher fence, and from then on
every write of the paused one is refused. So nothing is written by two.

Of several that come at the same moment the one with the lock stays, so that it is followed at once if it is killed.
"""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import Connection, Engine, Interval, Row, bindparam, func, select, update
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from crossdock.clock import SystemClock
from crossdock.errors import StateBusyError, StateError
from crossdock.local_files import open_private
from crossdock.state.db import sql_statements
from crossdock.state.db.database_errors import filing, place_of
from crossdock.state.db.engine import reading
from crossdock.state.db.migrations import LONG_AGO
from crossdock.state.db.schema import leases as table

LEASE_S = 60.0
NAME = "run"  # one lease for all runs of a state
_MEET_S = 1.0  # whoever has the lock and no lease after so long is paused, and did not come at the same moment
_ADVISORY = 0x63726F7373  # any number will do, as long as every crossdock uses it
_HELD = update(table).where(table.c.name == NAME, table.c.fence == bindparam("held"))
_LAST = select(table).where(table.c.name == NAME)
_RENEW = {
    "sqlite": sql_statements.Bulk(_HELD.values(until=bindparam("later"))),
    "postgresql": sql_statements.Bulk(_HELD.values(until=func.clock_timestamp() + bindparam("length", type_=Interval))),
}


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write, as long as nobody took over; *fence* grows with every holder."""

    url: URL
    fence: int

    def confirm(self, connection: Connection) -> None:
        """Renew it in the caller's transaction, which nobody can overtake from here to its end.

        Raises:
            StateError: If another run has taken over.
        """
        facts: dict[str, list[Any]] = {"held": [self.fence]}
        length = timedelta(seconds=LEASE_S)
        if connection.dialect.name == "sqlite":
            facts["later"] = [_now(connection) + length]
        else:
            facts["length"] = [length]
        if _RENEW[connection.dialect.name].run(connection, facts) != 1:
            raise StateError(
                "another run has taken over, since this one was asleep for too long",
                where=place_of(self.url),
                hint="nothing more was written; 'crossdock runs' shows the other one",
            )


def fence(engine: Engine) -> int:
    """The fence of whoever had the lease last."""
    with reading(engine) as connection:
        return int(connection.execute(_LAST).one().fence)


@contextmanager
def held(engine: Engine, url: URL, owner: str, *, above: int = 0) -> Iterator[Lease]:
    """Hold the lease of a state for as long as the block lasts.

    Args:
        above: The new fence is higher than this and than the last one.

    Raises:
        StateError: If another run is at work on it.
    """
    with _lock(engine, url) as try_lock:
        lease = Lease(url, _taken(engine, url, owner, above, try_lock))
        with _kept_alive(engine, lease):
            yield lease
        with engine.begin() as connection:
            held = update(table).where(table.c.name == NAME, table.c.fence == lease.fence)
            connection.execute(held.values(until=LONG_AGO, locked=False))


def _taken(engine: Engine, url: URL, owner: str, above: int, try_lock: Callable[[], bool]) -> int:
    """Take the lease; the new fence. Whoever has the lock and no lease is about to take it, to leave, or is paused."""
    paused_from = time.monotonic() + _MEET_S
    while True:
        alone = try_lock()
        if alone or time.monotonic() >= paused_from:
            with engine.begin() as connection:
                return _take(connection, url, owner, above=above, alone=alone)
        with reading(engine) as connection:
            _refuse_if_held(connection.execute(_LAST).one(), _now(connection), url)
        time.sleep(0.02)


def _take(connection: Connection, url: URL, owner: str, *, above: int = 0, alone: bool) -> int:
    """Take over from whoever had it last, if that one is gone or asleep; the new fence."""
    last = connection.execute(_LAST.with_for_update()).one()
    now = _now(connection)
    if not (alone and last.locked):  # else its lock is ours now, so its process has ended
        _refuse_if_held(last, now, url)
    facts: dict[str, Any] = {
        "fence": max(last.fence, above) + 1,
        "owner": owner,
        "locked": alone,
        "until": now + timedelta(seconds=LEASE_S),
    }
    connection.execute(update(table).where(table.c.name == NAME).values(facts))
    return int(facts["fence"])


def _refuse_if_held(last: Row[Any], now: datetime, url: URL) -> None:
    """A lease is never longer than `LEASE_S`; one that ends later was given before the clock was set back."""
    if now < last.until <= now + timedelta(seconds=LEASE_S):
        raise StateBusyError(
            f"another run is at work on this state ({last.owner})",
            where=place_of(url),
            hint="wait for its end; 'crossdock runs' shows it",
        )


@contextmanager
def _kept_alive(engine: Engine, lease: Lease) -> Iterator[None]:
    """Renew the lease from a thread, since a long download writes nothing for minutes."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(LEASE_S / 3):
            try:
                with engine.begin() as connection:
                    lease.confirm(connection)
            except StateError:
                return  # the run's next write meets the same and tells it
            except DBAPIError:
                continue  # a database that is busy or away may be back before the lease is over

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _lock(engine: Engine, url: URL) -> Iterator[Callable[[], bool]]:
    """What tries for the lock, and tells whether it has it; it is free again at the end."""
    if url.drivername == "sqlite":
        with filing(url):
            file = open_private(Path(f"{url.database}.lock"))
        with file:
            yield lambda: _locked(file, url)
        return
    # a connection of its own in autocommit: the lock belongs to its session, and no transaction stays open all night
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        try:
            yield lambda: bool(connection.execute(select(func.pg_try_advisory_lock(_ADVISORY))).scalar())
        finally:
            with suppress(DBAPIError):  # a session that broke off meanwhile has lost its lock with itself
                connection.execute(select(func.pg_advisory_unlock_all()))


def _locked(file: BinaryIO, url: URL) -> bool:
    with filing(url):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _now(connection: Connection) -> datetime:
    """The clock that all holders share: the database's, or for a file the time since this machine started.

    The latter goes on while the machine is suspended, and is not touched when its time of day is set.
    """
    if connection.dialect.name == "sqlite":
        return datetime.fromtimestamp(SystemClock().monotonic(), UTC)
    told: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return told
