"""Every failure of a database becomes one error with the reason and advice, without SQL and without values."""

from __future__ import annotations

import errno
import sqlite3
from typing import Any

import pytest
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, OperationalError

from crossdock.errors import StateError
from crossdock.state.db.database_opening_and_errors import (
    database_errors_as_state_errors,
    is_transient_database_error,
    os_errors_as_state_errors,
    url_without_password,
)

URL = make_url("postgresql+psycopg://u:hunter2@h/d")
AGAIN = "the run continues from what was delivered"


def sqlite_error(code: int, text: str = "it fails") -> DBAPIError:
    cause = sqlite3.OperationalError(text)
    cause.sqlite_errorcode = code
    return DBAPIError("INSERT secret", {"value": "secret"}, cause)


def postgresql_error(state: str | None, text: str = "it fails\nDETAIL: secret") -> DBAPIError:
    cause: Any = Exception(text)
    cause.sqlstate = state
    return OperationalError("INSERT secret", {"value": "secret"}, cause)


def refused(error: Exception) -> StateError:
    with pytest.raises(StateError) as caught, database_errors_as_state_errors(URL):
        raise error
    assert "secret" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (sqlite_error(sqlite3.SQLITE_BUSY), "another crossdock process"),
        (sqlite_error(sqlite3.SQLITE_FULL), "free space on its disk"),
        (sqlite_error(sqlite3.SQLITE_IOERR | 3 << 8), "check its disk"),
        (sqlite_error(sqlite3.SQLITE_READONLY), "make the file and its folder writable"),
        (sqlite_error(sqlite3.SQLITE_CORRUPT), "'crossdock state restored'"),
        (sqlite_error(sqlite3.SQLITE_ERROR), "fix the cause at the database"),
        (postgresql_error(None), "check the address and that the server is running"),
        (postgresql_error("08006"), "check the address and that the server is running"),
        (postgresql_error("25006"), "name the primary server"),
        (postgresql_error("40001"), "another session interfered"),
        (postgresql_error("57014"), "statement_timeout"),
        (postgresql_error("57P01"), "the server closed the session"),
        (postgresql_error("XX002"), "'crossdock state restored'"),
        (postgresql_error("22000"), "fix the cause at the database"),
    ],
)
def test_the_advice_fits_the_reason(error: DBAPIError, advice: str) -> None:
    """By SQLite's result code or PostgreSQL's SQLSTATE, else its class."""
    found = refused(error)
    assert "the state cannot be used: it fails" in str(found)
    assert advice in str(found.hint)


def test_an_error_without_text_shows_its_type() -> None:
    assert "Exception" in str(refused(postgresql_error("22000", "")))


@pytest.mark.parametrize("error", [ModuleNotFoundError("psycopg"), NoSuchModuleError("postgresql")])
def test_a_missing_driver_says_what_to_install(error: Exception) -> None:
    assert "pip install" in str(refused(error).hint)


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free space"),
        (errno.EROFS, "writable"),
        (errno.ELOOP, "regular files"),
        (errno.EIO, "check its disk"),
    ],
)
def test_the_systems_errors_get_advice(number: int, advice: str) -> None:
    """Errors about a SQLite state's files are as helpful as the database's own."""
    with pytest.raises(StateError) as caught, os_errors_as_state_errors(URL):
        raise OSError(number, "it fails")
    assert advice in str(caught.value.hint)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (sqlite_error(sqlite3.SQLITE_BUSY, "database is locked"), True),
        (sqlite_error(sqlite3.SQLITE_FULL, "database or disk is full"), False),
        (postgresql_error(None), True),
        (postgresql_error("08006"), True),
        (postgresql_error("40P01"), True),
        (postgresql_error("53100"), False),
    ],
)
def test_only_what_may_pass_is_tried_again(error: DBAPIError, expected: bool) -> None:
    assert is_transient_database_error(error) is expected


def test_an_address_is_shown_without_its_password() -> None:
    assert url_without_password(URL) == "postgresql://u:***@h/d"
