"""Which run gets the lease when several start together, and after one was killed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, func, select, text
from tests.conftest import PIN
from tests.unit.state.samples import start
from tests.waiting import WITHIN_S, eventually

from crossdock.errors import StateBusyError
from crossdock.state import State, StateUrl, create_or_upgrade_state, parse_database_url
from crossdock.state.db import run_lease, schema
from crossdock.values.acting_person_and_process import own_process_name


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a run waits for the lock; none gives up."""
    waits = threading.Event()
    monkeypatch.setattr(run_lease, "_GRACE_S", WITHIN_S)
    monkeypatch.setattr("crossdock.state.db.run_lease.time.sleep", lambda _: waits.set())
    return waits


@contextmanager
def lock_alone(url: StateUrl) -> Iterator[None]:
    """Another process that is starting or ending: it has the lock and no lease."""
    engine = create_engine(url)
    try:
        with run_lease._open_lock_without_taking(engine, url) as lock:
            assert lock.try_to_take()
            yield
    finally:
        engine.dispose()


def enter(url: StateUrl) -> bool:
    """Whether a run that gets the lease also has the lock."""
    engine = create_engine(url)
    try:
        with closing(State(url, PIN)) as state, state.hold_run_lease("late"), engine.connect() as connection:
            return bool(connection.execute(select(schema.leases.c.locked)).scalar_one())
    finally:
        engine.dispose()


def test_a_run_that_starts_as_another_ends_gets_the_lock(state_url: StateUrl, waits: threading.Event) -> None:
    """It waits for it: without the lock, no run could follow for a minute if it was killed."""
    create_or_upgrade_state(state_url, PIN)
    with ThreadPoolExecutor(1) as pool:
        with lock_alone(state_url):
            late = pool.submit(enter, state_url)
            assert waits.wait(WITHIN_S)
        assert late.result(WITHIN_S)


def test_of_two_runs_the_one_with_the_lock_wins(state_url: StateUrl, waits: threading.Event) -> None:
    """Of two that start together, the one without the lock is refused."""
    create_or_upgrade_state(state_url, PIN)
    engine = create_engine(state_url)
    with ThreadPoolExecutor(1) as pool, lock_alone(state_url):
        late = pool.submit(enter, state_url)
        assert waits.wait(WITHIN_S)
        with engine.begin() as connection:
            run_lease._take_over_lease(connection, state_url, "first", locked=True)
        with pytest.raises(StateBusyError, match="first"):
            late.result(WITHIN_S)
    engine.dispose()


def test_who_waits_gets_the_lease_at_the_end_of_the_other_run(state_url: StateUrl) -> None:
    """It is not refused, as it would be at once without a wait."""
    create_or_upgrade_state(state_url, PIN)
    with closing(State(state_url, PIN)) as first, closing(State(state_url, PIN)) as second, ExitStack() as run:
        run.enter_context(first.hold_run_lease("first"))
        with pytest.raises(StateBusyError), second.hold_run_lease("second"):
            pass

        def wait() -> None:
            with second.hold_run_lease("second", waits_s=WITHIN_S):
                pass

        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(wait)
            run.close()
            waiting.result(WITHIN_S)


def test_who_is_refused_is_told_which_run_is_in_progress(state_url: StateUrl) -> None:
    """With its job, since when, and how to end it; and how long the wait was."""
    create_or_upgrade_state(state_url, PIN)
    with closing(State(state_url, PIN)) as first, closing(State(state_url, PIN)) as second, first.hold_run_lease("a:1"):
        with first.begin() as tx:
            run = tx.runs.start(business_date="2026-03-14", at=datetime(2026, 3, 15, 2, 30, tzinfo=UTC), job="nightly")
        with pytest.raises(StateBusyError) as refused, second.hold_run_lease("second", waits_s=0.2):
            pass
    named = f"run {run} of the job nightly, in progress since 2026-03-15 02:30:00Z"
    assert refused.value.message == f"another run is using this state (a:1); it did not end within 0.2 s: {named}"
    assert f"'crossdock stop {run}'" in str(refused.value.hint)


def test_a_paused_process_without_a_lease_blocks_no_run(state_url: StateUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run waits for its lock for a moment, then starts without it."""
    create_or_upgrade_state(state_url, PIN)
    monkeypatch.setattr(run_lease, "_GRACE_S", 0.1)
    with lock_alone(state_url):
        assert not enter(state_url)


def test_a_run_whose_lock_session_is_ended_takes_the_lock_again(
    new_database: Callable[..., StateUrl], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server ends idle sessions, and administrators end any: the run goes on, and no other one takes over."""
    url = new_database()
    create_or_upgrade_state(url, PIN)
    monkeypatch.setattr(run_lease, "LEASE_S", 0.6)
    holders = text(
        "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM"
        " pg_database WHERE datname = current_database())"
    )
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with closing(State(url, PIN)) as first, closing(State(url, PIN)) as second, engine.connect() as admin:
        with first.hold_run_lease("first"):
            (ended,) = admin.execute(holders).scalars()
            admin.execute(select(func.pg_terminate_backend(ended)))
            eventually(lambda: bool(set(admin.execute(holders).scalars()) - {ended}))
            monkeypatch.setattr(run_lease, "LEASE_S", 60.0)
            with pytest.raises(StateBusyError), second.hold_run_lease("second"):
                pass
            with first.begin() as tx:
                tx.runs.start(business_date="2026-03-14", at=datetime(2026, 3, 15, 2, 30, tzinfo=UTC), job="nightly")
        with second.hold_run_lease("second"):
            pass
    engine.dispose()


def test_a_lock_through_a_pooler_does_not_end_a_run(
    new_database: Callable[..., StateUrl], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PgBouncer can lend one session to two processes: that the second one gets its lock proves nothing."""
    url = new_database()
    create_or_upgrade_state(url, PIN)
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    monkeypatch.setattr(run_lease, "_GRACE_S", 0.1)
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", property(lambda _: 4711))  # a pooler's own number
    with closing(State(url, PIN)) as first, closing(State(url, PIN)) as second, engine.connect() as lent:
        monkeypatch.setattr(run_lease._SessionLock, "_opened_session", lambda _: lent)
        monkeypatch.setattr(run_lease._SessionLock, "close", lambda _: None)
        with first.hold_run_lease("first"):
            with pytest.raises(StateBusyError, match="first"), second.hold_run_lease("second"):
                pass
            start(first)
        with second.hold_run_lease("second"):
            start(second)
    engine.dispose()


@pytest.mark.parametrize("is_removed", [True, False], ids=["removed", "of another path"])
def test_another_file_of_the_lock_does_not_end_a_run(tmp_path: Path, is_removed: bool) -> None:
    """Somebody removed the file as if it were left over, or a link leads to the state: its process is still running."""
    url, link = parse_database_url("sqlite:///state.db", tmp_path), parse_database_url("sqlite:///link.db", tmp_path)
    create_or_upgrade_state(url, PIN)
    (tmp_path / "link.db").symlink_to("state.db")
    running = f"{own_process_name()}".replace(f":{os.getpid()}#", f":{os.getppid()}#")
    with closing(State(url, PIN)) as first, closing(State(url if is_removed else link, PIN)) as second:
        with first.hold_run_lease(running):
            if is_removed:
                (tmp_path / "state.db.lock").unlink()
            with (
                pytest.raises(StateBusyError, match="another run is using this state"),
                second.hold_run_lease("second"),
            ):
                pass
            start(first)
        with second.hold_run_lease("second"):
            start(second)
