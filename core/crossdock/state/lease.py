"""One run at a time on one state: a lock that ends with its process, and a lease with a fence for processes that sleep.

The lock frees the state at once when its holder is killed. A holder that is only paused (a suspended machine, a lost
network) keeps it; its lease runs out all the same, whoever comes next takes over under a higher fence, and from then on
every write of the paused one is refused. So nothing is written by two.
"""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, Interval, bindparam, func, select, text, update
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from crossdock.errors import StateBusyError, StateError
from crossdock.state import sql
from crossdock.state.schema import leases as table

LEASE_S = 60.0
NAME = "run"  # one lease for all runs of a state
_ADVISORY = 0x63726F7373  # any number will do, as long as every crossdock uses it
_HELD = update(table).where(table.c.name == NAME, table.c.fence == bindparam("held"))
_RENEW = {
    "sqlite": sql.Bulk(_HELD.values(until=bindparam("later"))),
    "postgresql": sql.Bulk(_HELD.values(until=func.clock_timestamp() + bindparam("length", type_=Interval))),
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
                where=_place(self.url),
                hint="nothing more was written; 'crossdock runs' shows the other one",
            )


@contextmanager
def held(engine: Engine, url: URL, owner: str) -> Iterator[Lease]:
    """Hold the lease of a state for as long as the block lasts.

    Raises:
        StateError: If another run is at work on it.
    """
    with _lock(engine, url) as alone:
        with engine.begin() as connection:
            lease = Lease(url, _take(connection, url, owner, alone=alone))
        with _kept_alive(engine, lease):
            yield lease
        with engine.begin() as connection:
            held = update(table).where(table.c.name == NAME, table.c.fence == lease.fence)
            connection.execute(held.values(until=_now(connection), locked=False))


def _take(connection: Connection, url: URL, owner: str, *, alone: bool) -> int:
    """Take over from whoever had it last, if that one is gone or asleep; the new fence."""
    last = connection.execute(select(table).where(table.c.name == NAME).with_for_update()).one()
    now = _now(connection)
    gone = alone and last.locked  # its lock is ours now, so its process has ended
    if last.until > now and not gone:
        raise StateBusyError(
            f"another run is at work on this state ({last.owner})",
            where=_place(url),
            hint="wait for its end; 'crossdock runs' shows it",
        )
    facts: dict[str, Any] = {
        "fence": last.fence + 1,
        "owner": owner,
        "locked": alone,
        "until": now + timedelta(seconds=LEASE_S),
    }
    connection.execute(update(table).where(table.c.name == NAME).values(facts))
    return int(facts["fence"])


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
def _lock(engine: Engine, url: URL) -> Iterator[bool]:
    """Try for the lock; False if another process has it."""
    if url.drivername == "sqlite":
        with open(f"{url.database}.lock", "w", encoding="ascii") as file:  # noqa: PTH123  a path made of a URL
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
        return
    # a connection of its own in autocommit: the lock belongs to its session, and no transaction stays open all night
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        alone = bool(connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _ADVISORY}).scalar())
        yield alone
        if alone:
            with suppress(DBAPIError):  # a session that broke off meanwhile has lost its lock with itself
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _ADVISORY})


def _now(connection: Connection) -> datetime:
    """The clock that all holders share: the database's, or for a file this machine's."""
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    told: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return told


def _place(url: URL) -> str:
    return url.render_as_string(hide_password=True)
