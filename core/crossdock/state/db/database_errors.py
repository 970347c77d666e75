"""What a database reports when it fails, as a sentence with the place and what to do."""

from __future__ import annotations

import errno
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, OperationalError

from crossdock.errors import StateError

_AGAIN = "then run again: it goes on from what was delivered"
_ROOM = f"make room on its disk, {_AGAIN}"
_DISK = f"check its disk, and the room and the quota there, {_AGAIN}"
_WRITABLE = f"let this user write the file and its folder, on a disk that takes writes, {_AGAIN}"
_REGULAR = f"it and its lock must be regular files in a folder, not links: mend that, {_AGAIN}"
_BACKUP = "it is damaged: restore it from a backup, and declare that: 'crossdock state restored'"
_AWAY = f"check the address and that the server is up, {_AGAIN}"
_OTHERWISE = f"find the cause at the database, {_AGAIN}"
_SHARED = "is another crossdock at work on it?"

_SQLITE = {  # by primary result code: sqlite.org/rescode.html
    sqlite3.SQLITE_BUSY: _SHARED,
    sqlite3.SQLITE_LOCKED: _SHARED,
    sqlite3.SQLITE_PROTOCOL: _SHARED,
    sqlite3.SQLITE_FULL: _ROOM,
    sqlite3.SQLITE_READONLY: _WRITABLE,
    sqlite3.SQLITE_PERM: _WRITABLE,
    sqlite3.SQLITE_CANTOPEN: _WRITABLE,
    sqlite3.SQLITE_IOERR: _DISK,
    sqlite3.SQLITE_CORRUPT: _BACKUP,
    sqlite3.SQLITE_NOTADB: _BACKUP,
}
_POSTGRESQL = {  # by SQLSTATE, or its class: PostgreSQL's manual, appendix A
    "08": _AWAY,
    "25006": f"it takes no writes: name the primary server in 'state:', or end its read-only mode, {_AGAIN}",
    "40": f"other sessions were in the way, {_AGAIN}",
    "42501": f"grant its user the right to read and write these tables, {_AGAIN}",
    "53100": _ROOM,
    "53200": f"the server is out of memory: give it more, or less to do at once, {_AGAIN}",
    "53300": f"the server takes no more connections: end some, or raise max_connections, {_AGAIN}",
    "55P03": f"another session holds a lock: end it, or raise lock_timeout, {_AGAIN}",
    "57014": f"end whoever cancels statements, or raise statement_timeout, {_AGAIN}",
    "57": f"the server ended the session: when it is up, {_AGAIN.removeprefix('then ')}",
    "58": _DISK,
    "XX001": _BACKUP,
    "XX002": _BACKUP,
}
_SYSTEM = {errno.ENOSPC: _ROOM, errno.EDQUOT: _ROOM, errno.EACCES: _WRITABLE, errno.EPERM: _WRITABLE} | {
    errno.EROFS: _WRITABLE,
    errno.ELOOP: _REGULAR,
    errno.EEXIST: _REGULAR,
    errno.ENOTDIR: _REGULAR,
    errno.ENOENT: _WRITABLE,
}
_PASSING = frozenset({"40001", "40P01", "53300", "57P01", "57P02", "57P03"})
"""Given up for the sake of other sessions, or a server that ends and may be back at once."""

for _name in ("sqlalchemy", "psycopg"):  # they log what they also raise; without a handler Python shows it on stderr
    logging.getLogger(_name).addHandler(logging.NullHandler())


def place_of(url: URL) -> str:
    """The address without its password, for errors."""
    return url.render_as_string(hide_password=True)


@contextmanager
def translated(url: URL) -> Iterator[None]:
    """Turn the database library's failures into `StateError`, without SQL and without values."""
    try:
        yield
    except (DBAPIError, NoSuchModuleError, ModuleNotFoundError) as error:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        if isinstance(cause, ModuleNotFoundError):
            raise StateError(
                "PostgreSQL needs its driver", where=place_of(url), hint="pip install 'crossdock[postgres]'"
            ) from error
        reason = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
        raise _unusable(url, reason, _advice(cause)) from None


@contextmanager
def filing(url: URL) -> Iterator[None]:
    """Turn what the system says of a SQLite state's files into `StateError`."""
    try:
        yield
    except OSError as error:
        raise _unusable(url, error.strerror or str(error), _SYSTEM.get(error.errno or 0, _DISK)) from error


def passes(error: DBAPIError) -> bool:
    """True for what may go well the next time: a lost connection, a deadlock, a server that restarts."""
    code = _sqlstate(error.orig)
    if isinstance(error.orig, sqlite3.Error):
        return "locked" in str(error.orig)
    unreached = isinstance(error, OperationalError) and not code
    return error.connection_invalidated or unreached or code in _PASSING or code.startswith("08")


def _unusable(url: URL, reason: str, hint: str) -> StateError:
    return StateError(f"the state cannot be used: {reason}", where=place_of(url), hint=hint)


def _advice(cause: BaseException) -> str:
    if isinstance(cause, sqlite3.Error):
        return _SQLITE.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF, _OTHERWISE)
    code = _sqlstate(cause)
    return _POSTGRESQL.get(code) or _POSTGRESQL.get(code[:2]) or (_OTHERWISE if code else _AWAY)


def _sqlstate(cause: BaseException | None) -> str:
    """Empty where the server gave none: it was not reached, refused the session, or broke it off."""
    return getattr(cause, "sqlstate", None) or ""
