"""Short forms of what long-lived states are promised; ``pytest tests/long/test_years.py`` runs the long ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos import years

from crossdock.sandbox import SandboxServer
from crossdock.state import StateUrl


def test_purging_changes_nothing(tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that is purged after every night has the effects and accounts of one that never is."""
    years.purging_changes_nothing(
        tmp_path, platform, monkeypatch.setenv, scheduled_runs=14, seed=4
    )  # an old snapshot returns


def test_a_state_stays_small(
    tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch, state_url: StateUrl
) -> None:
    """The scheduler applies the retention of the config: more nights leave no more rows, on either database."""
    state = "" if state_url.drivername == "sqlite" else state_url.render_as_string(hide_password=False)
    years.a_state_stays_small(tmp_path, platform, monkeypatch.setenv, scheduled_runs=20, state=state, retention_days=7)
