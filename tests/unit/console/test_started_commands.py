"""What is kept of the commands that people started."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.cli.conftest import CONFIG
from tests.waiting import eventually

from crossdock.config.project import project
from crossdock.console.started_commands import KEPT, About, StartedCommand, StartedCommands
from crossdock.values.actor import Actor

NOW = datetime(2026, 4, 2, 12, tzinfo=UTC)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSDOCK_API_KEY", "key")
    (tmp_path / "c.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path / "c.yaml"


def started(commands: StartedCommands, config: Path, about: About, at: datetime) -> StartedCommand:
    """Start a command that ends at once."""
    who, last = Actor("ann", "", ""), commands.last(about)
    made = commands.start([config], ["--version"], about=about, last=last, title="", who=who, at=at)
    eventually(lambda: (known := commands.get(made.id)) is not None and not known.is_running)
    return made


def test_nothing_of_old_commands_is_left(config: Path) -> None:
    """Neither what they printed nor their locks; what was started again since keeps its lock."""
    folder = config.parent / "console"
    commands = StartedCommands(folder, project.load(config).pin)
    old = [started(commands, config, (name,), NOW) for name in ("once", "again")]
    later = NOW + KEPT + timedelta(seconds=1)
    again = started(commands, config, ("again",), later)
    commands.remove_old(later)
    assert [each.id for each in commands.listed()] == [again.id]
    assert len([*folder.rglob("*.lock")]) == 1
    assert commands.last(("again",)) == again.id
    assert commands.last(("once",)) == ""
    assert old[0].id != started(commands, config, ("once",), later).id
