"""Database failures as errors with the state's address, the database's reason and advice to the operator."""

from __future__ import annotations

import errno
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, OperationalError

from crossdock.errors import StateError

_AGAIN = "then run again; the run continues from what was delivered"
_ROOM = f"free space on its disk, {_AGAIN}"
_DISK = f"check its disk, free space and quota, {_AGAIN}"
_WRITABLE = f"make the file and its folder writable for this user, on a writable disk, {_AGAIN}"
_REGULAR = f"the file and its lock must be regular files in a folder, not links; {_AGAIN.removeprefix('then ')}"
_BACKUP = "the file is damaged: restore a backup, then run 'crossdock state restored'"
_BACKUP_ALONE = (  # SQLite would copy the log of the former file into the backup
    "the file is damaged, or the log beside it is that of a former one: remove its files -wal and -shm, restore a"
    " backup, then run 'crossdock state restored'"
)
_AWAY = f"check the address and that the server is running, {_AGAIN}"
_OTHER = f"fix the cause at the database, {_AGAIN}"
_SHARED = "is another crossdock process using it?"

_SQLITE = {  # by primary result code: sqlite.org/rescode.html
    sqlite3.SQLITE_BUSY: _SHARED,
    sqlite3.SQLITE_LOCKED: _SHARED,
    sqlite3.SQLITE_PROTOCOL: _SHARED,
    sqlite3.SQLITE_FULL: _ROOM,
    sqlite3.SQLITE_READONLY: _WRITABLE,
    sqlite3.SQLITE_PERM: _WRITABLE,
    sqlite3.SQLITE_CANTOPEN: _WRITABLE,
    sqlite3.SQLITE_IOERR: _DISK,
    sqlite3.SQLITE_CORRUPT: _BACKUP_ALONE,
    sqlite3.SQLITE_NOTADB: _BACKUP_ALONE,
}
_POSTGRESQL = {  # by SQLSTATE or its class: PostgreSQL manual, appendix A
    "08": _AWAY,
    "25006": f"the server is read-only: name the primary server in 'state:', or end its read-only mode, {_AGAIN}",
    "40": f"another session interfered; {_AGAIN.removeprefix('then ')}",
    "42501": f"grant its user the right to read and write these tables, {_AGAIN}",
    "53100": _ROOM,
    "53200": f"the server is out of memory: give it more or reduce its load, {_AGAIN}",
    "53300": f"the server has no free connections: close some or raise max_connections, {_AGAIN}",
    "55P03": f"another session holds a lock: end it or raise lock_timeout, {_AGAIN}",
    "57014": f"find out what cancels statements, or raise statement_timeout, {_AGAIN}",
    "57": f"the server closed the session: wait until it is running, {_AGAIN}",
    "58": _DISK,
    "XX001": _BACKUP,
    "XX002": _BACKUP,
}
_SYSTEM = {errno.ELOOP: _REGULAR, errno.EEXIST: _REGULAR, errno.ENOTDIR: _REGULAR}
_SYSTEM |= dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT), _WRITABLE)
_SYSTEM |= dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _ROOM)
_TRANSIENT = frozenset({"40001", "40P01", "53300", "57P01", "57P02", "57P03"})
"""Serialization failure, deadlock, too many connections, and a server that shuts down or starts."""

for _name in ("sqlalchemy", "psycopg"):  # they log what they also raise; without a handler Python prints it to stderr
    logging.getLogger(_name).addHandler(logging.NullHandler())


def url_without_password(url: URL) -> str:
    """Return the address without its password and driver, as in a config."""
    return url.set(drivername=url.get_backend_name()).render_as_string(hide_password=True)


@contextmanager
def translated_database_errors(url: URL) -> Iterator[None]:
    """Raise the database library's errors as `StateError`, without SQL and without values."""
    try:
        yield
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        hint = "pip install 'crossdock[postgres]'"
        raise StateError(
            "PostgreSQL needs its driver", where=url_without_password(url), hint=hint, code="library_missing"
        ) from error
    except DBAPIError as error:
        cause = error.orig or error
        reason = next(iter(str(cause).strip().splitlines()), type(cause).__name__)
        raise _unusable_state_error(url, reason, _advice(cause)) from None


@contextmanager
def translated_os_errors(url: URL) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _unusable_state_error(url, error.strerror or str(error), _SYSTEM.get(error.errno or 0, _DISK)) from error


def damaged_file_error(url: URL) -> StateError:
    return _unusable_state_error(url, "database disk image is malformed", _BACKUP_ALONE)


def is_transient(error: DBAPIError) -> bool:
    """Return whether a retry may succeed: after a lost connection, a deadlock or a restart of the server."""
    code = _sqlstate(error.orig)
    if isinstance(error.orig, sqlite3.Error):
        return "locked" in str(error.orig)
    unreached = isinstance(error, OperationalError) and not code
    return error.connection_invalidated or unreached or code in _TRANSIENT or code.startswith("08")


def _unusable_state_error(url: URL, reason: str, hint: str) -> StateError:
    return StateError(
        f"the state cannot be used: {reason}", where=url_without_password(url), hint=hint, code="state_unusable"
    )


def _advice(cause: BaseException) -> str:
    if isinstance(cause, sqlite3.Error):
        return _SQLITE.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF, _OTHER)
    code = _sqlstate(cause)
    return _POSTGRESQL.get(code) or _POSTGRESQL.get(code[:2]) or (_OTHER if code else _AWAY)


def _sqlstate(cause: BaseException | None) -> str:
    """Return an empty text if the server sent no state: it was not reached, refused the session or closed it."""
    return getattr(cause, "sqlstate", None) or ""
