"""A restored state is compared with its targets, and then delivers what the source says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.chaos.restored_states import WAYS, run_trial

from crossdock.sandbox import SandboxServer
from crossdock.state import StateUrl


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox") as running:
        yield running


def test_a_restored_state_ends_as_the_source_says(tmp_path: Path, platform: SandboxServer) -> None:
    """After creates, changes there and back, removals and contributions, both targets hold what the source says."""
    tried = run_trial(tmp_path, platform, "sqlite:///state.db", seed=1, nights=3, restores=3)
    assert set(tried) == set(WAYS)


@pytest.mark.nightly
@pytest.mark.postgres
def test_a_restored_postgresql_state_ends_as_the_source_says(
    tmp_path: Path, platform: SandboxServer, new_database: Callable[[], StateUrl]
) -> None:
    """The same on the other database, and without look-ups at the platform."""
    url = new_database().set(drivername="postgresql").render_as_string(hide_password=False)
    assert run_trial(tmp_path, platform, url, seed=2, nights=2, restores=2, looks_up=False)
