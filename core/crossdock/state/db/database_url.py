"""The address of a database in a config file. It never contains a password, and no error repeats it."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from crossdock.errors import ConfigError
from crossdock.values.addresses import names_secret

_FORMS = "sqlite:///acme.db or postgresql://user@host/database"


def parse_url(text: str, folder: Path, *, where: str = "state") -> URL:
    """Parse the database address at *where* in the config. A SQLite path is relative to *folder*."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise ConfigError(
            "is not a database URL", where=where, hint=f"for example {_FORMS}", code="database_address_invalid"
        ) from error
    if url.password or ":" in (url.username or "") or names_secret(text):
        raise ConfigError(
            "must not contain a secret",
            where=where,
            hint="use ~/.pgpass or PGPASSWORD",
            code="database_address_invalid",
        )
    if url.drivername == "sqlite":
        return _checked_sqlite_url(url, folder, where)
    if url.drivername in {"postgresql", "postgresql+psycopg"}:
        return _checked_postgresql_url(url.set(drivername="postgresql+psycopg"), where)
    raise ConfigError(
        "must be a SQLite file or a PostgreSQL database", where=where, hint=_FORMS, code="database_address_invalid"
    )


def _checked_sqlite_url(url: URL, folder: Path, where: str) -> URL:
    name = url.database or ""
    if name in {"", ":memory:"} or "\0" in name or url.host or url.port or url.username or url.query:
        problem = "must be a SQLite file, three slashes before its path and no parameters, or a PostgreSQL database"
        raise ConfigError(problem, where=where, hint=_FORMS, code="database_address_invalid")
    try:
        return url.set(database=str(folder / Path(name).expanduser()))
    except RuntimeError:
        raise ConfigError(
            "begins with ~ and the name of an unknown user", where=where, code="database_address_invalid"
        ) from None


def _checked_postgresql_url(url: URL, where: str) -> URL:
    try:
        url.get_dialect()().create_connect_args(url)
    except (ArgumentError, ValueError, TypeError):
        raise ConfigError(
            "has parameters that PostgreSQL does not know", where=where, hint=_FORMS, code="database_address_invalid"
        ) from None
    return url
