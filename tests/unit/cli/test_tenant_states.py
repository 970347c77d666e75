"""The tenants of a fleet, read in sequence."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.conftest import CONFIG

from crossdock.cli.project_and_state import FleetStates
from crossdock.errors import ConfigError


def test_a_tenant_with_the_state_of_another_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its runs would be those of the other one, although a fleet does not run it."""
    for name, state in (("a", "one"), ("b", "one"), ("c", "two")):
        (tmp_path / f"{name}.yaml").write_text(CONFIG.replace("state.db", f"{state}.db"), encoding="utf-8")
    fleet = FleetStates(str(tmp_path / "*.yaml"), [])
    assert [name for name, _ in fleet.read_each_tenant(lambda loaded: loaded.path)] == ["a", "c"]
    assert fleet.exit_code == 2
    assert "b: " in (said := capsys.readouterr().err)
    assert "has the same state as a" in said


def test_a_pattern_that_finds_no_config_is_an_error(tmp_path: Path) -> None:
    """Otherwise a wrong path reads like a fleet in which nothing is open."""
    with pytest.raises(ConfigError, match="there is no config of a tenant"):
        FleetStates(str(tmp_path / "*.yaml"), [])
