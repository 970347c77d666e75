"""``crossdock state stats`` and ``crossdock state compact``: an operator's look at the state, and some order in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from tests.e2e.warehouse import FORWARD, Front, Reply, Site

from crossdock.config.project import project
from crossdock.state import State


@pytest.fixture
def site(site: Site) -> Site:
    site.init()
    site.fill()
    return site


def test_stats_tell_what_was_delivered(site: Site) -> None:
    """After a sync the bindings are told by resource, the tables with their rows, and that nothing is open."""
    assert site.sync().code == 0
    told = site.run("state", "stats")
    assert told.code == 0
    assert "all operations are settled" in told.out
    document = site.run("state", "stats", "--json").json
    assert document["bindings"] == {"customer": 2, "product": 2, "invoice": 3}
    tables = {each["name"]: each["rows"] for each in document["tables"]}
    assert (tables["bindings"], tables["intents"], tables["runs"]) == (7, 7, 1)
    on_disk = sum(path.stat().st_size for path in site.folder.glob("state.db*") if path.suffix in {".db", ".db-wal"})
    assert 0 < document["size"] <= on_disk
    assert document["oldest"] is None


@pytest.mark.nightly
def test_stats_tell_what_is_open(site: Site) -> None:
    """An operation that is in doubt is told with its stream and since when, and no record's key or data."""
    with Front(site.platform.base_url) as front:
        site.base_url = front.base_url
        site.configure()
        (site.folder / "state.db").unlink()
        site.init()
        front.fate = lambda seen: Reply(500) if seen.method == "POST" and b"Amsel" in seen.body else FORWARD
        assert site.sync("wms.customers").code != 0
    told = site.run("state", "stats")
    assert "oldest unsettled operation: wms.customers, in doubt since 20" in told.out
    assert "C2" not in told.out
    document = site.run("state", "stats", "--json").json
    assert document["unsettled"] == {"in_doubt": 1}
    assert document["oldest"]["stream"] == "wms.customers"


def test_stats_look_beside_a_run(site: Site) -> None:
    """A run that holds the state hinders nobody from looking; without a state there is nothing to look at."""
    loaded = project.load(site.config)
    with closing(State(loaded.state_url, loaded.pinned_tenant)) as state, state.hold_run_lease("test"):
        assert site.run("state", "stats").code == 0
    (site.folder / "state.db").unlink()
    refused = site.run("state", "stats")
    assert (refused.code, refused.out) == (3, "")
    assert "no state here" in refused.err


def test_compacting_shrinks_the_file(site: Site) -> None:
    """After a purge the room is given back, the sizes are told, and the next sync finds everything as it was."""
    assert site.sync().code == 0
    with closing(sqlite3.connect(site.folder / "state.db")) as file, file:
        file.execute("CREATE TABLE ballast AS SELECT randomblob(100000) AS bytes FROM runs, intents")
        file.execute("DROP TABLE ballast")
    before = site.run("state", "stats", "--json").json
    assert before["free"] > 600_000
    told = site.run("state", "compact", "--json").json
    assert told["before"] >= told["after"] + 600_000
    assert site.run("state", "stats", "--json").json["free"] == 0
    assert site.run("state", "compact").out.startswith("compacted the state: ")
    site.fill()
    assert site.sync().json["requests"] == 0


@pytest.mark.parametrize("command", ["purge", "compact"])
def test_upkeep_never_works_beside_a_run(site: Site, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """While a run holds the state it ends with exit 3 and changes nothing, once it has waited as every command does."""
    loaded = project.load(site.config)
    monkeypatch.setenv(project.WAIT_FOR_RUN, "1")
    with loaded.open_state_exclusively():
        refused = site.run("state", command)
    assert (refused.code, refused.out) == (3, "")
    assert "another run is using this state" in refused.err
    assert "it did not end within 1 s" in refused.err


@pytest.mark.parametrize("command", ["stats", "compact"])
def test_help_shows_how(site: Site, command: str) -> None:
    """Each command's help ends with how to call it."""
    told = site.run("state", command, "--help")
    assert told.code == 0
    assert f"Example:\n    crossdock state {command}\n" in told.out
