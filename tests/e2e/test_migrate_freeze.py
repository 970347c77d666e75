"""``crossdock migrate freeze``: the sources no longer change, and all of them is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest
from tests.e2e.migrated_folder import MigratedFolder

from crossdock.config.project import project
from crossdock.errors import RefusedError, StoppedError
from crossdock.migration import freeze_check
from crossdock.migration.freeze_check import FreezeCheck, verify_and_store_source_freeze
from crossdock.sandbox import SandboxServer
from crossdock.values.clock import SystemClock


@pytest.fixture
def migrated(tmp_path: Path) -> Iterator[MigratedFolder]:
    with SandboxServer(tmp_path / "sandbox") as platform:
        made = MigratedFolder(tmp_path / "project", platform)
        made.fill()
        yield made


class Waiting(Event):
    """An interrupt whose wait takes no time; *meanwhile* is what others do."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self._meanwhile = meanwhile

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout == 600
        self._meanwhile()
        return self.is_set()


def checked(migrated: MigratedFolder, waiting: Waiting) -> FreezeCheck:
    loaded = project.load(migrated.config)
    return verify_and_store_source_freeze(loaded, timedelta(minutes=10), clock=SystemClock(), interrupt=waiting)


@pytest.mark.nightly
def test_a_frozen_source(migrated: MigratedFolder) -> None:
    """A second check says since when nothing changed; status shows the last one."""
    migrated.load()
    first = checked(migrated, Waiting())
    second = checked(migrated, Waiting())
    assert (second.since, second.sources) == (first.since, first.sources)
    assert second.at > first.at
    stored = migrated.status()["migration"]["freeze"]
    assert stored == second.as_json()
    done = migrated.migrate("status")
    assert "last freeze check" in done.stdout


@pytest.mark.nightly
def test_the_command(migrated: MigratedFolder) -> None:
    """It reads, waits, reads again, and prints what it found; a wait that is no duration is refused."""
    migrated.load()
    done = migrated.migrate("freeze", "--wait", "1s", "--json")
    assert done.exit_code == 0, done.stderr
    assert done.document["waited_s"] == 1
    assert sorted(done.document["sources"]) == ["wms.customers", "wms.invoices", "wms.products"]
    done = migrated.migrate("freeze", "--wait", "1s")
    assert "3 streams: unchanged since " in done.stdout
    assert migrated.migrate("freeze", "--wait", "soon").exit_code == 2


def test_when_files_were_written(migrated: MigratedFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said for each stream of files, to programs too: people may go on to work while no file changes."""
    migrated.load()
    frozen = f"{freeze_check.__name__}.{freeze_check.verify_and_store_source_freeze.__name__}"
    monkeypatch.setattr(frozen, lambda *_, **__: checked(migrated, Waiting()))
    said = migrated.migrate("freeze").stderr
    told = migrated.migrate("freeze", "--json").document["newest_files"]
    for name, files in (("customers", "CUST1.csv"), ("invoices", "INV1.csv"), ("products", "PROD1.csv")):
        at = datetime.fromtimestamp((migrated.folder / "out" / files).stat().st_mtime, UTC)
        assert f"wms.{name} of {at:%Y-%m-%d %H:%M:%S}Z" in said
        assert datetime.fromisoformat(told[f"wms.{name}"]) == at.replace(microsecond=0)
    assert "have it export once more, load, and check again" in said


@pytest.mark.nightly
def test_a_source_that_changes_meanwhile(migrated: MigratedFolder) -> None:
    """The stream is named, and nothing is stored."""
    migrated.load()
    late = Waiting(lambda: migrated.write("PROD2.csv", "SKU;NAME;PRICE\nP9;Late;1\n"))
    with pytest.raises(RefusedError, match="the source has changed within 10 min 0 s") as refused:
        checked(migrated, late)
    assert refused.value.where == "wms.products"
    assert migrated.status()["migration"]["freeze"] is None


@pytest.mark.nightly
def test_a_load_is_needed(migrated: MigratedFolder) -> None:
    """What is not loaded yet is counted, and the stream that has it is named."""
    with pytest.raises(RefusedError, match="no migration has begun"):
        checked(migrated, Waiting())
    migrated.load()
    migrated.write("PROD2.csv", "SKU;NAME;PRICE\nP9;Late;1\n")
    with pytest.raises(RefusedError, match="a load would still send 1 request") as refused:
        checked(migrated, Waiting())
    assert refused.value.where == "wms.products"
    assert refused.value.exit_code == 4


def test_an_interrupt(migrated: MigratedFolder) -> None:
    """A signal while it waits ends it, and while it reads as well."""
    migrated.load()
    waiting = Waiting()
    waiting._meanwhile = waiting.set
    with pytest.raises(StoppedError, match="while it waited"):
        checked(migrated, waiting)
    migrated.write("PROD2.csv", "SKU;NAME;PRICE\nP9;Late;1\n")
    with pytest.raises(StoppedError, match="while reading"):
        checked(migrated, waiting)
