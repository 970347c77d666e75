"""Forty backups of twenty nights, each restored while the source goes on, on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.restored_states import WAYS, run_trial

from crossdock.sandbox import SandboxServer
from crossdock.state import StateUrl


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox") as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def state(request: pytest.FixtureRequest) -> str:
    """The address of an empty state."""
    if request.param == "sqlite":
        return "sqlite:///state.db"
    new_database: Callable[[], StateUrl] = request.getfixturevalue("new_database")
    return new_database().set(drivername="postgresql").render_as_string(hide_password=False)


@pytest.mark.parametrize("looks_up", [True, False])
def test_forty_backups_of_twenty_nights(tmp_path: Path, platform: SandboxServer, state: str, *, looks_up: bool) -> None:
    """Both targets hold what the source says after each, however it was restored; no invoice is there twice."""
    tried = run_trial(tmp_path, platform, state, seed=chaos_seed(), nights=20, restores=40, looks_up=looks_up)
    print(f"{tried.total()} restored backups, both targets as the source says after each: {dict(tried)}")
    assert tried.total() == 40
    assert set(tried) == set(WAYS)
