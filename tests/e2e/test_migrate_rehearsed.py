"""A load sends what was rehearsed: a source that changed since is refused before anything of its wave is sent."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest
from tests.e2e.migrated_folder import MigratedFolder

from crossdock.config.project import project
from crossdock.migration import rehearsal_file_and_load_check
from crossdock.migration.rehearsal_file_and_load_check import Rehearsal, RehearsedStream, RehearsedWave, dry_run_load
from crossdock.migration.waves import waves_numbered_in_config_order
from crossdock.runs.plan_result import PlanResult
from crossdock.sandbox import SandboxServer
from crossdock.values.clock import SystemClock


@pytest.fixture
def migrated(tmp_path: Path) -> Iterator[MigratedFolder]:
    with SandboxServer(tmp_path / "sandbox") as platform:
        made = MigratedFolder(tmp_path / "project", platform)
        made.fill()
        yield made


def rehearsed(migrated: MigratedFolder) -> Path:
    """Rehearse what the folder has now; the file."""
    loaded, path = project.load(migrated.config), migrated.folder / "acme.rehearsal"
    numbered = waves_numbered_in_config_order(loaded)
    names = [name for wave in numbered for name in wave.streams]
    found = dry_run_load(loaded, names, clock=SystemClock(), interrupt=Event())
    streams = {
        name: RehearsedStream(source=found.sources[name], records=tally.records["read"], operations=tally.delivered)
        for name, tally in found.tallies.items()
    }
    waves = {
        wave.name: RehearsedWave(
            streams={name: streams[name] for name in wave.streams},
            requests=sum(streams[name].operations for name in wave.streams),
        )
        for wave in numbered
    }
    Rehearsal(base_url=loaded.pinned_tenant.base_url, tenant=loaded.pinned_tenant.tenant, waves=waves).save(path)
    return path


def test_what_was_rehearsed_is_loaded(migrated: MigratedFolder) -> None:
    """With unchanged sources everything is loaded, and catch-up loads are not held to the rehearsal."""
    file = str(rehearsed(migrated))
    migrated.load("--rehearsal", file)
    assert Counter(migrated.created()) == {"customer": 3, "product": 3, "invoice": 6}
    assert migrated.status()["requests_left"] == 0
    migrated.write("CUST2.csv", "NO;NAME\nC9;Late\n")
    migrated.load("--rehearsal", file)
    assert Counter(migrated.created())["customer"] == 4


def test_what_is_left(migrated: MigratedFolder) -> None:
    """Status has the requests of the waves that are not done, and how long they take at the allowance and its hours."""
    migrated.configure(platform={"rate": {"per_minute": 6, "burst": 100}})
    assert migrated.status()["requests_left"] is None
    migrated.load("--until", "customers", "--rehearsal", str(rehearsed(migrated)))
    status = migrated.status()
    assert (status["requests_left"], status["seconds_left"]) == (9, 90)
    assert "left of what was rehearsed: 9 requests, 1 min 30 s at the allowance" in migrated.migrate("status").stdout


def test_what_is_left_takes_as_long_as_the_target_takes(migrated: MigratedFolder) -> None:
    """If it took less than the allowance in the last minute, status goes by that; a minute later by the allowance."""
    migrated.configure(platform={"rate": {"per_minute": 6, "burst": 100}})
    migrated.load("--until", "customers", "--rehearsal", str(rehearsed(migrated)))

    def settled(seconds_ago: int) -> None:
        """Let the three customers have been settled one by one, each 15 seconds after the other."""
        began = datetime.now(UTC) - timedelta(seconds=seconds_ago)
        with closing(sqlite3.connect(migrated.folder / "state.db")) as state, state:
            for number, (intent,) in enumerate(state.execute("SELECT id FROM intents ORDER BY id").fetchall()):
                at = (began + timedelta(seconds=15 * number)).isoformat(timespec="microseconds")
                state.execute("UPDATE intents SET settled_at = ? WHERE id = ?", (at, intent))

    settled(30)
    status = migrated.status()
    assert (status["requests_left"], status["seconds_left"], status["taken_per_s"]) == (9, 135, 0.067)
    settled(30)
    shown = migrated.migrate("status").stdout
    assert "left of what was rehearsed: 9 requests, 2 min 15 s at the rate of the last minute" in shown
    settled(120)
    assert (migrated.status()["seconds_left"], migrated.status()["taken_per_s"]) == (90, None)


def test_a_source_that_changed_since_is_refused(migrated: MigratedFolder) -> None:
    """Exit 4 names the stream, nothing of its wave is sent, and a later load without the option refuses as well."""
    file = str(rehearsed(migrated))
    migrated.write("PROD2.csv", "SKU;NAME;PRICE\nP9;Late;1\n")
    for options in (["--rehearsal", file], []):
        done = migrated.migrate("load", *options)
        assert done.exit_code == 4, done.stderr
        assert "wms.products: the source has changed since the rehearsal" in done.stderr
        assert "wave 2 of 3: products: wms.products: the source" in done.stderr
        assert Counter(migrated.created()) == {"customer": 3}
    assert migrated.states() == {
        "customers": ("done", "open"),
        "products": ("not begun", None),
        "invoices": ("not begun", None),
    }
    migrated.load("--rehearsal", str(rehearsed(migrated)))
    assert Counter(migrated.created()) == {"customer": 3, "product": 4, "invoice": 6}


def test_after_an_undo_the_rehearsal_counts_again(migrated: MigratedFolder) -> None:
    """A wave that was undone has sent nothing, so a source that has changed since the rehearsal is refused."""
    file = str(rehearsed(migrated))
    migrated.load("--until", "products", "--rehearsal", file)
    assert migrated.migrate("undo", "products", "--execute").exit_code == 0
    migrated.write("PROD1.csv", "SKU;NAME;PRICE\nP9;Wrong;1\n")
    done = migrated.migrate("load")
    assert (done.exit_code, "wms.products: the source has changed since the rehearsal" in done.stderr) == (4, True)
    assert migrated.stored()["product"] == []


@pytest.mark.nightly
def test_a_source_that_changes_after_the_comparison_is_refused(
    migrated: MigratedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changes between the comparison and the delivery is refused too, and still compared in the next load."""
    file = str(rehearsed(migrated))

    def then_changed(*arguments: object, **options: object) -> PlanResult:
        found = dry_run_load(*arguments, **options)  # type: ignore[arg-type]  # passed on
        if "wms.products" in found.sources:
            migrated.write("PROD2.csv", "SKU;NAME;PRICE\nP9;Late;1\n")
        return found

    monkeypatch.setattr(rehearsal_file_and_load_check, "dry_run_load", then_changed)
    migrated.load("--rehearsal", file, exit_code=4)
    assert Counter(migrated.created()) == {"customer": 3}
    assert migrated.states()["products"] == ("incomplete", None)
    monkeypatch.undo()
    migrated.load(exit_code=4)
    assert Counter(migrated.created()) == {"customer": 3}


def test_a_rehearsal_of_something_else_is_refused(migrated: MigratedFolder) -> None:
    """A file of another platform, of other waves, or that is no rehearsal is refused before anything begins."""
    file = rehearsed(migrated)
    good = file.read_text()
    file.write_text(good.replace(migrated.platform.tenant, "other"))
    done = migrated.migrate("load", "--rehearsal", str(file))
    assert (done.exit_code, "tenant other" in done.stderr) == (4, True)
    file.write_text(good.replace("wms.products", "wms.things"))
    done = migrated.migrate("load", "--rehearsal", str(file))
    assert (done.exit_code, "other streams in the wave products" in done.stderr) == (4, True)
    file.write_text("{}")
    assert migrated.migrate("load", "--rehearsal", str(file)).exit_code == 2
    assert not migrated.effects()
    assert migrated.status()["migration"] is None


def test_the_config_may_not_leave_the_rehearsal_behind(migrated: MigratedFolder) -> None:
    """Waves that were renamed since the rehearsal are refused, with advice to rehearse again."""
    migrated.load("--until", "customers", "--rehearsal", str(rehearsed(migrated)))
    text = migrated.config.read_text()
    migrated.config.write_text(text.replace("    products:\n      streams:", "    goods:\n      streams:"))
    done = migrated.migrate("load")
    assert done.exit_code == 4, done.stderr
    assert "other streams in the wave goods" in done.stderr
