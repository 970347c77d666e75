"""The address of a state or a shared bucket: a SQLite file or a PostgreSQL database, without a secret in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from crossdock.errors import ConfigError
from crossdock.state import (
    parse_database_url,
)

CANARY = "hunter2"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("postgresql://u@[::1/db", "is not a database URL"),
        ("postgresql://u@h:port/db", "is not a database URL"),
        ("postgresql:///db?host=a:1&host=b:x", "PostgreSQL does not know"),
        ("sqlite:///~nobody-here/x.db", "of an unknown user"),
        ("sqlite:///x.db?timeout=soon", "no parameters"),
        ("sqlite:///x.db?mode=ro&uri=true", "no parameters"),
        ("sqlite://host/x.db", "three slashes"),
        ("sqlite:///a%00b", "must be a SQLite file"),
        ("sqlite:///:memory:", "must be a SQLite file"),
        ("oracle://h/d", "must be a SQLite file"),
    ],
)
def test_an_address_that_no_database_has(tmp_path: Path, address: str, message: str) -> None:
    """It is refused as a finding, when the config is loaded, not when the database is opened."""
    with pytest.raises(ConfigError, match=message):
        parse_database_url(address, tmp_path)


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://u:{CANARY}@h/d",
        f"postgresql://:{CANARY}@h/d",
        f"postgresql://u%3A{CANARY}@h/d",
        f"postgresql://u@h/d?password={CANARY}",
        f"postgresql://u@h/d?PASSWORD={CANARY}",
        f"postgresql://u@h/d?pass%77ord={CANARY}",
        f"postgresql://u@h/d?sslPassword={CANARY}",
        f"postgresql://u@h/password%3D{CANARY}",
        f"postgresql://u@h/d?options=-c%20app.secret%3D{CANARY}",
        f"sqlite://u:{CANARY}@/x.db",
        f"sqlite:///x.db?password={CANARY}",
    ],
)
def test_a_secret_in_an_address(tmp_path: Path, address: str) -> None:
    """Wherever it stands and however it is spelled, it is refused and not repeated; the hint says where to put it."""
    with pytest.raises(ConfigError, match="must not contain a secret") as refused:
        parse_database_url(address, tmp_path)
    assert CANARY not in str(refused.value)
    assert "PGPASSWORD" in str(refused.value)


def test_addresses_that_people_use(tmp_path: Path) -> None:
    """Paths with odd characters, hosts, ports, sockets, TLS and password files go through."""
    assert parse_database_url("sqlite:///a#b.db", tmp_path).database == str(tmp_path / "a#b.db")
    for address in (
        "postgresql://u@h:5432/d?sslmode=verify-full&sslkey=/k&passfile=/p",
        "postgresql+psycopg://u@[::1]:5432/d",
        "postgresql:///d?host=/run/postgresql",
        "postgresql://u@/d?host=a:1&host=b:2",
    ):
        assert parse_database_url(address, tmp_path).drivername == "postgresql+psycopg"


@pytest.mark.parametrize("address", ["mysql://h/d", "sqlite://", "nonsense", "sqlite:///:memory:"])
def test_other_addresses_are_refused(address: str, tmp_path: Path) -> None:
    """Only a SQLite file and PostgreSQL hold a state."""
    with pytest.raises(ConfigError):
        parse_database_url(address, tmp_path)
