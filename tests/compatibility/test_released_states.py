"""The state of each release, kept as SQL, is upgraded by ``crossdock init`` and goes on as it would have."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, inspect, text
from tests.compatibility.facts import HERE
from tests.compatibility.released_state import GONE, Project, restore

from crossdock.sandbox import SandboxServer
from crossdock.state import PinnedTenant, StateUrl, create_or_upgrade_state

KEPT = sorted(HERE.glob("state_*_*.sql"))
FILLED = {
    "attempts", "audit_log", "batches", "bindings", "buckets", "configs", "crossdock_meta", "dead_letters", "intents",
    "jobs", "key_stamps", "leases", "passed_files", "pending_removals", "run_messages", "runs", "scheduled_runs",
    "sequences", "snapshots", "taken_files", "waiting_records",
}  # fmt: skip


def _is_slow(kept: Path) -> bool:
    return kept.stem.endswith("postgresql")


@pytest.fixture(
    params=[pytest.param(each, id=each.stem, marks=[pytest.mark.nightly] * _is_slow(each)) for each in KEPT]
)
def kept(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture
def new_url(kept: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], StateUrl]:
    """Return the address of an empty database, of the same kind as the kept state."""
    if not _is_slow(kept):
        return lambda name: StateUrl.create("sqlite", database=str(tmp_path / name))
    new: Callable[..., StateUrl] = request.getfixturevalue("new_database")
    return lambda _: new()


@pytest.fixture
def url(new_url: Callable[[str], StateUrl]) -> StateUrl:
    return new_url("project/state.db")


@pytest.fixture
def project(kept: Path, url: StateUrl, tmp_path: Path) -> Iterator[Project]:
    """The project of the kept state, before its upgrade, with the exports that it has read, over a new platform."""
    state = url.set(drivername=url.get_backend_name()).render_as_string(hide_password=False)
    with SandboxServer(tmp_path / "sandbox") as platform:
        project = Project(tmp_path / "project", platform, state, platform.base_url)
        project.export_first()
        project.export_second()
        restore(project, kept)
        yield project


def shape(engine: Engine) -> dict[str, tuple[set[str], set[str | None]]]:
    """Return the columns and indexes of each table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SQLAlchemy warns that SQLite reports no expressions
        found = inspect(engine)
        return {
            table: (
                {each["name"] for each in found.get_columns(table)},
                {each["name"] for each in found.get_indexes(table)},
            )
            for table in found.get_table_names()
        }


@pytest.mark.usefixtures("project")
def test_the_kept_states_have_rows_in_what_a_run_fills(url: StateUrl) -> None:
    """An upgrade of empty tables would show nothing."""
    engine = create_engine(url)
    with engine.connect() as connection:
        filled = {name for name in shape(engine) if connection.execute(text(f"SELECT 1 FROM {name} LIMIT 1")).first()}
    engine.dispose()
    assert filled >= FILLED


def test_an_upgraded_state_has_the_tables_of_a_new_one(
    project: Project, url: StateUrl, new_url: Callable[[str], StateUrl]
) -> None:
    """With the same columns and indexes."""
    assert project.run("init").exit_code == 0
    new = new_url("new.db")
    create_or_upgrade_state(new, PinnedTenant("http://127.0.0.1:9", "acme"))
    upgraded, expected = create_engine(url), create_engine(new)
    assert shape(upgraded) == shape(expected)
    upgraded.dispose()
    expected.dispose()


def test_an_upgraded_state_knows_what_was_delivered(project: Project) -> None:
    """Nothing is planned or sent, what is open stays open, and what was held stays held."""
    assert project.run("init").exit_code == 0
    plan = project.run("plan", "--json").document
    assert (plan["operations"], plan["on_hold"]) == ({}, {"wms.products": GONE})
    listed = json.loads(project.run("records", "list", "--json").stdout)
    assert Counter(each["state"] for each in listed) == {"rejected": 1, "waiting": 1, "in-doubt": 1}
    report = project.run("sync", "--json").document
    assert report["balanced"]
    assert report["requests"] == project.writes() == 0
    assert {state: number for state, number in report["open"].items() if number} == {
        "rejected": 1, "waiting": 1, "in_doubt": 1,
    }  # fmt: skip
    assert len(project.run("runs", "--json").document) == 3
