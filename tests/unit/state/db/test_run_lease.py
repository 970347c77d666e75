"""Who stays when several runs come at the same moment, and who comes after one that was killed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from sqlalchemy import create_engine, select
from tests.conftest import PIN
from tests.waiting import WITHIN_S

from crossdock.errors import StateBusyError
from crossdock.state import State, StateUrl, create
from crossdock.state.db import run_lease, schema


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once somebody waits for the lock; nobody gives it up."""
    waits = threading.Event()
    monkeypatch.setattr(run_lease, "_GRACE_S", WITHIN_S)
    monkeypatch.setattr("crossdock.state.db.run_lease.time.sleep", lambda _: waits.set())
    return waits


@contextmanager
def lock_alone(url: StateUrl) -> Iterator[None]:
    """Another process that has just come, or is about to leave: it has the lock and no lease."""
    engine = create_engine(url)
    try:
        with run_lease._lock(engine, url) as try_lock:
            assert try_lock()
            yield
    finally:
        engine.dispose()


def enter(url: StateUrl) -> bool:
    """Whether a run that gets in has the lock."""
    engine = create_engine(url)
    try:
        with closing(State(url, PIN)) as state, state.exclusive("late"), engine.connect() as connection:
            return bool(connection.execute(select(schema.leases.c.locked)).scalar_one())
    finally:
        engine.dispose()


def test_who_comes_as_another_leaves_gets_the_lock(state_url: StateUrl, waits: threading.Event) -> None:
    """It does not begin without it, since nobody could follow it for a minute if it was killed then."""
    create(state_url, PIN)
    with ThreadPoolExecutor(1) as pool:
        with lock_alone(state_url):
            late = pool.submit(enter, state_url)
            assert waits.wait(WITHIN_S)
        assert late.result(WITHIN_S)


def test_who_comes_with_another_leaves_it_to_the_one_with_the_lock(state_url: StateUrl, waits: threading.Event) -> None:
    """Of two that come at the same moment, one is told that the other is at work."""
    create(state_url, PIN)
    engine = create_engine(state_url)
    with ThreadPoolExecutor(1) as pool, lock_alone(state_url):
        late = pool.submit(enter, state_url)
        assert waits.wait(WITHIN_S)
        with engine.begin() as connection:
            run_lease._take(connection, state_url, "first", locked=True)
        with pytest.raises(StateBusyError, match="first"):
            late.result(WITHIN_S)
    engine.dispose()


def test_who_is_paused_without_a_lease_holds_nobody_up(state_url: StateUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lock is waited for a moment, and then not needed."""
    create(state_url, PIN)
    monkeypatch.setattr(run_lease, "_GRACE_S", 0.1)
    with lock_alone(state_url):
        assert not enter(state_url)
