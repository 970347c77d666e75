"""A state is created once, pinned, private, and opened only by a matching version."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs
from sqlalchemy import create_engine, inspect, text
from tests.conftest import PIN
from tests.unit.state.samples import start

from crossdock.errors import StateError
from crossdock.state import (
    PinnedTenant,
    State,
    StateUrl,
    create_or_upgrade_state,
    open_state,
    parse_database_url,
)
from crossdock.state.db import database_opening_and_errors
from crossdock.state.db import database_opening_and_errors as state_engine


def test_init_is_harmless_twice(state_url: StateUrl) -> None:
    """The second init of the same platform finds the state and keeps it."""
    assert create_or_upgrade_state(state_url, PIN)
    assert not create_or_upgrade_state(state_url, PIN)


@pytest.mark.parametrize("pin", [PinnedTenant("https://other.example", "acme"), PinnedTenant(PIN.base_url, "umbrella")])
def test_a_state_of_another_tenant_is_refused(state_url: StateUrl, pin: PinnedTenant) -> None:
    """A state is pinned to platform and tenant; neither opening nor init takes another's."""
    create_or_upgrade_state(state_url, PIN)
    with pytest.raises(StateError, match="belongs to tenant 'acme'"):
        State(state_url, pin)
    with pytest.raises(StateError, match="belongs to tenant 'acme'"):
        create_or_upgrade_state(state_url, pin)


@pytest.mark.postgres
@pytest.mark.parametrize(("of_server", "used"), [("off", "on"), ("local", "local")])
def test_what_is_committed_outlives_a_crash_of_the_server(
    new_database: Callable[..., StateUrl], of_server: str, used: str
) -> None:
    """Its commits wait for the disk also on a server that is set up not to wait; a request is sent after each."""
    url = new_database()
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f'ALTER DATABASE "{url.database}" SET synchronous_commit = {of_server}'))
    engine.dispose()
    create_or_upgrade_state(url, PIN)
    with closing(State(url, PIN)) as state:
        found = state.run_transaction(lambda tx: tx.connection.execute(text("SHOW synchronous_commit")).scalar())
    assert found == used


@pytest.mark.parametrize("is_in_address", [True, False], ids=["address", "PGOPTIONS"])
def test_states_in_two_schemas_of_a_database_are_two_states(
    new_database: Callable[..., StateUrl], monkeypatch: pytest.MonkeyPatch, is_in_address: bool
) -> None:
    """The settings of sessions that the address or libpq's variable has apply, also to those that only read."""
    url = new_database()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA acme; CREATE SCHEMA beta"))
    engine.dispose()

    def of_schema(name: str) -> StateUrl:
        settings = f"-csearch_path={name}"
        if is_in_address:
            return parse_database_url(url.update_query_dict({"options": settings}).render_as_string(), Path())
        monkeypatch.setenv("PGOPTIONS", settings)
        return url

    assert create_or_upgrade_state(of_schema("acme"), PIN)
    assert create_or_upgrade_state(of_schema("beta"), PIN)
    with closing(State(of_schema("beta"), PIN)) as state:
        start(state)
    for name, runs in (("acme", 0), ("beta", 1)):
        with closing(State(of_schema(name), PIN, read_only=True)) as state, state.begin_read_only() as tx:
            assert tx.runs.count_all() == runs
            with pytest.raises(StateError, match="(?i)read.?only"):
                start(state)


def test_a_state_that_is_in_the_default_schema_is_not_created_again(new_database: Callable[..., StateUrl]) -> None:
    """Earlier versions ignored the schema of the address: a second, empty state would have all records sent again."""
    url = new_database()
    assert create_or_upgrade_state(url, PIN)
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA acme"))
    engine.dispose()
    of_schema = url.update_query_dict({"options": "-csearch_path=acme"})
    with pytest.raises(StateError, match="(?s)in the schema public.*SET SCHEMA"):
        create_or_upgrade_state(of_schema, PIN)
    assert create_or_upgrade_state(of_schema, structs.replace(PIN, tenant="another"))


def test_a_database_of_another_program_is_not_made_a_state(state_url: StateUrl) -> None:
    """Many have a table of jobs or migrations, which would be used in place of ours; nothing is left in it."""
    engine = create_engine(state_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE jobs (id INTEGER, queue TEXT)"))
    with pytest.raises(StateError, match="has tables of another program: jobs"):
        create_or_upgrade_state(state_url, PIN)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["jobs"]
    engine.dispose()


def test_many_may_make_a_state_at_once(state_url: StateUrl) -> None:
    """One of them makes it, the others find it made."""
    begin = threading.Barrier(8)

    def make(_: int) -> bool:
        begin.wait()
        return create_or_upgrade_state(state_url, PIN)

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(make, range(8))) == [False] * 7 + [True]
    State(state_url, PIN).close()


def test_sqlite_states_share_what_was_compiled(tmp_path: Path) -> None:
    """A statement that one state has executed is not compiled again for another."""
    compiled = 0
    for name in ("a", "b"):
        url = parse_database_url(f"sqlite:///{name}.db", tmp_path)
        create_or_upgrade_state(url, PIN)
        before = len(database_opening_and_errors.COMPILED)
        with closing(State(url, PIN)) as state:
            start(state)
        compiled = len(database_opening_and_errors.COMPILED) - before
    assert compiled == 0


def test_a_missing_state_is_not_made_by_opening_it(state_url: StateUrl) -> None:
    """Only init makes a state: an empty one would send everything again."""
    with pytest.raises(StateError, match="no state here"):
        State(state_url, PIN)


def test_a_state_of_a_newer_version_is_refused(state_url: StateUrl) -> None:
    """An older crossdock keeps its hands off a newer state."""
    create_or_upgrade_state(state_url, PIN)
    engine = create_engine(state_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE crossdock_meta SET value = '99' WHERE name = 'version'"))
    engine.dispose()
    with pytest.raises(StateError, match="supports versions up to"):
        State(state_url, PIN)


def test_a_read_only_state_cannot_be_written(state_url: StateUrl) -> None:
    """A plan's handle on the state is refused every write by the database."""
    create_or_upgrade_state(state_url, PIN)
    opened = State(state_url, PIN, read_only=True)
    with pytest.raises(StateError, match="(?i)read.?only"):
        start(opened)
    opened.close()


def test_two_writers_lose_no_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second writer waits for the first (BEGIN IMMEDIATE) and says who is to blame when it must give up."""
    monkeypatch.setattr(state_engine, "BUSY_S", 0.05)
    monkeypatch.setattr(open_state, "IN_ORDER_S", 0.05)
    url = parse_database_url("sqlite:///s.db", tmp_path)
    create_or_upgrade_state(url, PIN)
    one, two = State(url, PIN), State(url, PIN)
    with one.begin(), pytest.raises(StateError, match="locked") as refused, two.begin():
        pass
    assert "another crossdock" in str(refused.value)
    one.close()
    two.close()


def test_a_state_file_is_for_its_owner_only(tmp_path: Path) -> None:
    """The file holds personal data: others may not read it."""
    url = parse_database_url("sqlite:///s.db", tmp_path)
    create_or_upgrade_state(url, PIN)
    assert (tmp_path / "s.db").stat().st_mode & 0o077 == 0
