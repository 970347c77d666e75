"""The only door to SQLAlchemy's engines: how the state is made, opened, checked and migrated.

SQLite keeps its defaults from losing data: WAL, ``synchronous=FULL``, foreign keys, and ``BEGIN IMMEDIATE`` for
writers, since a deferred transaction that turns into a writer loses updates or fails at once.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, func, insert, inspect, select
from sqlalchemy.engine import URL

from crossdock.errors import StateError
from crossdock.local_files import create_private
from crossdock.state.db import migrations, schema
from crossdock.state.db.database_errors import filing, place_of, translated

StateUrl = URL
BUSY_S = 5.0  # how long a writer waits for another
LOG_PAGES = 32_000  # of SQLite's write-ahead log: the longer, the fewer times a first load copies the same index pages
_SEEK_BYTES = 100_000  # what a disk reads in order while it fetches one page from somewhere
_ADVISED_BYTES = 128 << 10  # Linux may leave the rest of a larger request alone
CACHE_KIB = 32_768  # of pages in memory; hashes land anywhere in an index, and 2 MiB are soon too few
_MAKING = 0x6D616B65  # any number but the one that `crossdock.state.db.run_lease` has for runs
_READONLY = "postgresql_readonly"  # the option of that dialect, which ours for SQLite heeds too


@dataclass(frozen=True, slots=True)
class Pin:
    """The one platform and tenant that a state belongs to (law 1)."""

    base_url: str
    tenant: str


def create(url: URL, pin: Pin) -> bool:
    """Make the state, or bring an existing one of the same platform up to date.

    Returns:
        True if it was made, False if it was there.

    Raises:
        StateError: If it belongs to another platform or tenant, or cannot be made.
    """
    if url.drivername == "sqlite":
        _make_file(url, mend=True)
    engine = _engine(url, read_only=False)
    try:
        with translated(url), making(engine) as connection:
            made = not inspect(connection).has_table(schema.meta.name)
            if made:
                schema.metadata.create_all(connection)
                facts = {"version": str(schema.VERSION), "base_url": pin.base_url, "tenant": pin.tenant}
                connection.execute(insert(schema.meta), [{"name": n, "value": v} for n, v in facts.items()])
                migrations.seed(connection)
            else:
                _check(connection, url, pin)
                migrations.migrate(connection, migrations.MIGRATIONS)
    finally:
        engine.dispose()
    return made


def _make_file(url: URL, *, mend: bool) -> None:
    """Make the file of a SQLite database if it is missing, for its owner only; SQLite gives its log the same mode.

    Args:
        mend: Whether a file that is there gets this mode too. A shared bucket may be for several users.

    Raises:
        StateError: If that cannot be done.
    """
    path = Path(os.path.realpath(url.database or ""))  # SQLite would make what a link leads to
    with filing(url):
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            create_private(path).close()
        if not path.is_file():
            raise StateError("is not a regular file", where=place_of(url))
        if mend:
            path.chmod(0o600)


def open_engine(url: URL, pin: Pin, *, read_only: bool) -> Engine:
    """Open a state that `create` made.

    Raises:
        StateError: If there is none, it is another platform's, or this crossdock is too old or too new for it.
    """
    if url.drivername == "sqlite" and not Path(url.database or "").is_file():
        raise _missing(url)
    engine = _engine(url, read_only=read_only)
    try:
        with translated(url), engine.begin() as connection:
            if not inspect(connection).has_table(schema.meta.name):
                raise _missing(url)
            version = _check(connection, url, pin)
            if version < schema.VERSION:
                raise StateError(
                    f"is of version {version}, this crossdock works with {schema.VERSION}",
                    where=place_of(url),
                    hint="'crossdock init' upgrades it and keeps what it knows",
                )
    except BaseException:
        engine.dispose()
        raise
    return engine


def identity(engine: Engine, url: URL) -> str:
    """What tells this state from any other one, and not from copies of itself."""
    with translated(url), reading(engine) as connection:
        return _facts(connection)[migrations.IDENTITY]


def read_ahead(url: URL, rows: int) -> None:
    """Have the system fetch a state that is a file from its disk in one go, if that is faster than *rows* one by one.

    A nightly run finds nothing of it in memory, and would wait for the disk twice for each row, at its index and at it.
    """
    if url.drivername != "sqlite" or not hasattr(os, "posix_fadvise"):
        return
    with suppress(OSError):
        state = Path(url.database or "").stat()
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if state.st_size < min(2 * rows * _SEEK_BYTES, memory // 2) and (descriptor := _opened(state)) is not None:
            for start in range(0, state.st_size, _ADVISED_BYTES):
                os.posix_fadvise(descriptor, start, _ADVISED_BYTES, os.POSIX_FADV_WILLNEED)


def _opened(file: os.stat_result) -> int | None:
    """The descriptor that SQLite has of *file*.

    It is not to be opened here: when any descriptor of it is closed, all locks that this process holds on it are gone,
    and with them the state (sqlite.org/howtocorrupt.html, 2.2).
    """
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # it was closed meanwhile
            if os.path.samestat(file, os.fstat(int(entry.name))):
                return int(entry.name)
    return None


# at DEBUG it logs rows, whatever it is told to hide
logging.getLogger("sqlalchemy.engine.Engine").addFilter(lambda record: record.levelno > logging.DEBUG)


def _engine(url: URL, *, read_only: bool) -> Engine:
    if url.drivername == "sqlite":
        return _sqlite_engine(url, read_only=read_only)
    options = "-c default_transaction_read_only=on" if read_only else ""
    arguments = {"options": options, "connect_timeout": 10}
    with translated(url):
        return create_engine(url, hide_parameters=True, pool_pre_ping=True, connect_args=arguments)


def open_shared(url: URL) -> Engine:
    """Open a database for what a power cut may lose, but no crash of ours; it is made where it is missing."""
    if url.drivername != "sqlite":
        return _engine(url, read_only=False)
    _make_file(url, mend=False)
    return _sqlite_engine(url, read_only=False, synchronous="NORMAL")


def _sqlite_engine(url: URL, *, read_only: bool, synchronous: str = "FULL") -> Engine:
    if read_only:
        uri = Path(url.database or "").absolute().as_uri()  # in which #, ? and % are escaped
        url = url.set(database=uri, query={"mode": "ro", "uri": "true"})
    engine = create_engine(url, hide_parameters=True, connect_args={"timeout": BUSY_S})

    @event.listens_for(engine, "connect")
    def _configure(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves
        if not read_only:
            _write_ahead(connection)
            connection.execute(f"PRAGMA synchronous={synchronous}")
            connection.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
            connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        only_reads = read_only or connection.get_execution_options().get(_READONLY)
        connection.exec_driver_sql("BEGIN" if only_reads else "BEGIN IMMEDIATE")

    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch a new file to its log. While another does so, SQLite refuses at once, however long it waits elsewhere."""
    refused_until = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > refused_until:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def making(engine: Engine) -> Iterator[Connection]:
    """A transaction that makes or changes tables, one at a time: PostgreSQL lets two find that one is missing."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_MAKING)))
        yield connection


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that can write nothing: it waits for no writer and none for it, and no disk is flushed for it."""
    with engine.connect().execution_options(**{_READONLY: True}) as connection, connection.begin():
        if engine.dialect.name != "sqlite":
            yield connection
            return
        connection.exec_driver_sql("PRAGMA query_only=ON")
        try:
            yield connection
        finally:
            connection.exec_driver_sql("PRAGMA query_only=OFF")


def _facts(connection: Connection) -> dict[str, str]:
    return {name: value for name, value in connection.execute(select(schema.meta.c.name, schema.meta.c.value))}


def _check(connection: Connection, url: URL, pin: Pin) -> int:
    facts = _facts(connection)
    kept = Pin(facts["base_url"], facts["tenant"])
    if kept != pin:
        raise StateError(
            f"belongs to tenant {kept.tenant!r} of {kept.base_url}, not to tenant {pin.tenant!r} of {pin.base_url}",
            where=place_of(url),
            hint="each platform and tenant has a state of its own: change 'state:' or 'platform:' in the config",
        )
    version = int(facts["version"])
    if version > schema.VERSION:
        raise StateError(
            f"is of version {version}, newer than this crossdock knows ({schema.VERSION})",
            where=place_of(url),
            hint="use the crossdock that wrote it, or a later one",
        )
    return version


def _missing(url: URL) -> StateError:
    return StateError(
        "there is no state here",
        where=place_of(url),
        hint="'crossdock init' makes it; if there was one, restore it: an empty state would send everything again",
    )
