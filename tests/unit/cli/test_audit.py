"""``crossdock audit``: what was changed, of one tenant or of a fleet."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.conftest import CONFIG, CommandLine

JOB = "jobs:\n  nightly: {schedule: {time_zone: UTC, at: '02:30'}}\n"


@pytest.fixture
def paused(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """Ann has paused a job, and Bob has resumed it."""
    command_line.config.write_text(CONFIG + JOB, encoding="utf-8")
    for person, what in (("Ann", "pause"), ("Bob", "resume")):
        monkeypatch.setenv("CROSSDOCK_PERSON", person)
        assert command_line.run("jobs", what, "nightly").code == 0
    return command_line


def test_changes_are_listed(paused: CommandLine) -> None:
    """Newest first, those asked for, and how many more there are."""
    result = paused.run("audit", "--action", "jobs", "--limit", "1")
    assert "jobs resume, job nightly; paused -> active" in result.out
    assert "1 of 2 entries are shown: --limit 2 shows all" in result.out
    document = paused.run("audit", "--person", "Ann", "--json").json
    assert [(each["action"], each["before"], each["after"]) for each in document] == [
        ("jobs pause", "active", "paused")
    ]
    assert len(paused.run("audit", "--since", "2020-01-01", "--json").json) == 3
    assert paused.run("audit", "--since", "2999-01-01").out == "Audit log: none\n"


def test_changes_of_a_fleet_are_one_list(paused: CommandLine, tmp_path: Path) -> None:
    """Each with its tenant; one without a state is an error that does not hide the others."""
    fleet = tmp_path / "tenants"
    fleet.mkdir()
    for tenant in ("a", "b", "c"):
        (fleet / f"{tenant}.yaml").write_text(f"state: sqlite:///{tenant}.db\n", encoding="utf-8")
    for tenant in ("a", "b"):
        assert paused.run("init", "--fleet", str(fleet / f"{tenant}.yaml")).code == 0
    result = paused.run("audit", "--fleet", str(fleet / "*.yaml"), "--json")
    assert (result.code, [each["tenant"] for each in result.json]) == (3, ["b", "a"])
    assert "c: " in result.err


def test_a_paused_job_is_listed_with_who_has_paused_it_and_when(paused: CommandLine) -> None:
    """Nothing tells of its missing runs, so that a pause that was forgotten is found there."""
    assert "paused" not in paused.run("jobs", "list").out
    assert paused.run("jobs", "pause", "nightly").code == 0
    assert "paused: nightly (Bob has paused it at 20" in paused.run("jobs", "list").out
    assert paused.run("jobs", "list", "--json").json["paused"] == ["nightly"]
