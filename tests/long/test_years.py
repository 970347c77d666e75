"""Long-lived states at full size: ``pytest tests/long/test_years.py -n 2 -rP``, some minutes.

``CROSSDOCK_CHAOS_SEED`` gives another seed; ``-rP`` shows what was done.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos import years
from tests.chaos.checks import SEED
from tests.chaos.conftest import platform

from crossdock.sandbox import SandboxServer
from crossdock.state import StateUrl

__all__ = ["platform"]  # a fixture


@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
def test_purging_changes_nothing(
    tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A state that is purged after every night has the effects and accounts of one that never is."""
    figures = years.purging_changes_nothing(tmp_path, platform, monkeypatch.setenv, scheduled_runs=100, seed=seed)
    print(f"\npurging, seed {seed}: {dict(figures)}")


def test_a_state_stays_small(
    tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch, state_url: StateUrl
) -> None:
    """After 400 scheduled nights no table has more rows than after 200, on either database."""
    state = "" if state_url.drivername == "sqlite" else state_url.render_as_string(hide_password=False)
    half, whole, *sizes = years.a_state_stays_small(
        tmp_path, platform, monkeypatch.setenv, scheduled_runs=400, state=state
    )
    print(f"\nstate on {state_url.drivername}: {half} after 200 nights, {whole} after 400, bytes {sizes}")
