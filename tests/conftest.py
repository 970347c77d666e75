"""Fixtures for every kind of test: the state on both databases, and compiled modules for the processes of tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from tests.servers import require

from crossdock.state import Pin, State, StateUrl, create, parse_url
from crossdock.testing.postgres_server import PostgresServer

# Making text strategies costs a second the first time; that is no fault of a test.
settings.register_profile("crossdock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("crossdock")

if os.environ.pop("PYTHONDONTWRITEBYTECODE", "") and not sys.pycache_prefix:
    # The variable keeps the source tree clean, but makes each process of a test compile all of crossdock. So they share
    # a folder of compiled modules. The workers of pytest-xdist inherit it.
    _compiled = TemporaryDirectory(prefix="crossdock-compiled-")
    os.environ["PYTHONPYCACHEPREFIX"] = _compiled.name

PIN = Pin("http://127.0.0.1:9", "acme")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    require(PostgresServer.available(), "PostgreSQL")
    with PostgresServer() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def state_url(request: pytest.FixtureRequest, tmp_path: Path) -> StateUrl:
    """The address of a state that does not exist yet, once on each database."""
    if request.param == "sqlite":
        return parse_url("sqlite:///state.db", tmp_path)
    server: PostgresServer = request.getfixturevalue("postgres")
    return parse_url(server.create_database(), tmp_path)


@pytest.fixture
def state(state_url: StateUrl) -> Iterator[State]:
    """An empty state, once on each database."""
    create(state_url, PIN)
    opened = State(state_url, PIN)
    yield opened
    opened.close()
