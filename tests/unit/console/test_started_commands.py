"""What is kept of the commands that people started."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pytest
from tests.unit.cli.conftest import CONFIG
from tests.waiting import eventually

from crossdock.config.project import project
from crossdock.console import started_commands
from crossdock.console.started_commands import (
    KEPT,
    AlreadyStartedError,
    CommandSubject,
    StartedCommand,
    StartedCommands,
)
from crossdock.values.acting_person_and_process import Actor

NOW = datetime(2026, 4, 2, 12, tzinfo=UTC)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSDOCK_API_KEY", "key")
    (tmp_path / "c.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path / "c.yaml"


def started(commands: StartedCommands, config: Path, about: CommandSubject, at: datetime) -> StartedCommand:
    """Start a command that ends at once."""
    who, last = Actor("ann", "", ""), commands.last_id_about(about)
    made = commands.start([config], ["--version"], about=about, last=last, title="", who=who, at=at)
    eventually(lambda: (known := commands.get(made.id)) is not None and not known.is_running)
    return made


def test_nothing_of_old_commands_is_left(config: Path) -> None:
    """Neither what they printed nor their locks; what was started again since keeps its lock."""
    folder = config.parent / "console"
    commands = StartedCommands(folder, project.load(config).pinned_tenant)
    old = [started(commands, config, (name,), NOW) for name in ("once", "again")]
    later = NOW + KEPT + timedelta(seconds=1)
    again = started(commands, config, ("again",), later)
    commands.remove_old(later)
    assert [each.id for each in commands.listed()] == [again.id]
    assert len([*folder.rglob("*.lock")]) == 1
    assert commands.last_id_about(("again",)) == again.id
    assert commands.last_id_about(("once",)) == ""
    assert old[0].id != started(commands, config, ("once",), later).id


def test_a_command_goes_on_when_the_process_that_waits_for_it_is_killed(config: Path) -> None:
    """Until the command itself has ended it counts as running, and nobody starts the same a second time."""
    commands = StartedCommands(config.parent / "console", project.load(config).pinned_tenant)
    about, who = ("serve",), Actor("ann", "", "")

    def start(last: str, *arguments: str) -> StartedCommand:
        return commands.start([config], arguments, about=about, last=last, title="", who=who, at=NOW)

    made = start("", "sandbox", "--port", "0", "--data", str(config.parent / "sandbox"))
    waiting = started_commands._PROCESSES[-1]
    children = Path(f"/proc/{waiting.pid}/task/{waiting.pid}/children")
    eventually(lambda: "http://" in commands.output(made.id))
    (command,) = map(int, children.read_text(encoding="ascii").split())
    try:
        os.kill(waiting.pid, SIGKILL)
        waiting.wait()
        with pytest.raises(AlreadyStartedError) as told:
            start(made.id, "--version")
        assert told.value.command is not None
        assert told.value.command.is_running
    finally:
        os.kill(command, SIGTERM)
    eventually(lambda: (known := commands.get(made.id)) is not None and not known.is_running)
    known = commands.get(made.id)
    assert known is not None
    assert known.exit_code is None
