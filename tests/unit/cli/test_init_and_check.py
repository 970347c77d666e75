"""``crossdock init`` and ``crossdock check``."""

from __future__ import annotations

from tests.unit.cli.conftest import CommandLine


def test_init_creates_a_state_once(command_line: CommandLine) -> None:
    """A second time it says that the state is there."""
    assert command_line.run("init", "--json").json["made"] is False
    assert "state already exists: sqlite:///" in command_line.run("init").out
    (command_line.folder / "state.db").unlink()
    assert "state created: sqlite:///" in command_line.run("init").out


def test_check_reports_each_test(command_line: CommandLine) -> None:
    """A platform that cannot be reached fails alone, with exit 3."""
    (command_line.folder / "exports" / "a.csv").write_text("SKU,NAME,PRICE\n")
    checked = command_line.run("check", "--json")
    found = {item["subject"]: item["ok"] for item in checked.json["findings"]}
    assert (checked.code, found["state"], found["platform"], found["wms"]) == (3, True, False, True)
    assert "ok    state: exists and belongs to this platform\n" in command_line.run("check").out


def test_a_missing_state_is_one_failure(command_line: CommandLine) -> None:
    """What is known of the allowance is in the state, so that it is not tested without one."""
    (command_line.folder / "state.db").unlink()
    checked = command_line.run("check", "--json")
    subjects = [item["subject"] for item in checked.json["findings"]]
    assert (checked.code, subjects.count("state"), "allowance" in subjects) == (3, 1, False)
    assert command_line.run("check").out.count("crossdock init") == 1
