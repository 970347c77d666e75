"""One run at a time on one state."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, text
from sqlalchemy.engine import URL

from crossdock.errors import StateError

_ADVISORY = 0x63726F7373  # any number will do, as long as every crossdock uses it


@contextmanager
def run_lock(engine: Engine, url: URL) -> Iterator[None]:
    """Hold the lock of a state; it ends with the process that holds it, so nothing is left after a kill."""
    busy = StateError(
        "another run is at work on this state",
        where=url.render_as_string(hide_password=True),
        hint="wait for its end; 'crossdock runs' shows it",
    )
    if url.drivername == "sqlite":
        with open(f"{url.database}.lock", "w", encoding="ascii") as file:  # noqa: PTH123  a path made of a URL
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise busy from None
            yield
        return
    # a connection of its own in autocommit: the lock belongs to its session, and no transaction stays open all night
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _ADVISORY}).scalar():
            raise busy
        yield
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _ADVISORY})
