"""Thirty mixed nights on both databases: ``pytest tests/long/test_nights.py -n 2 -rP``, two minutes.

``CROSSDOCK_CHAOS_SEED`` gives another seed; ``-rP`` shows the table of what the plan said and what the sync did.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.chance import chaos_seed
from tests.chaos.conftest import platform
from tests.chaos.nights import open_nights, table

from crossdock.sandbox import SandboxServer
from crossdock.state import StateUrl

__all__ = ["platform"]  # a fixture


@pytest.mark.parametrize("seed", range(chaos_seed(), chaos_seed() + 2))
def test_a_plan_says_what_the_sync_does(
    tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch, state_url: StateUrl, seed: int
) -> None:
    """Every number of a plan is that of the sync after it, for 30 mixed nights on either database."""
    state = state_url.render_as_string(hide_password=False)
    with open_nights(tmp_path, platform, monkeypatch, seed, state) as nights:
        told = [nights.night(number) for number in range(30)]
    print(f"\nplan/sync on {state_url.drivername}, seed {seed}\n{table(told)}")
    print(f"exports: {dict(nights.exports.done)}; before the plans: {dict(nights.happened)}")
    assert not [(night.number, night.differences) for night in told if night.differences]
    wanted = {"an interrupted sync", "a drop", "a replay", "a restored backup"}
    assert wanted <= set(nights.happened), f"the seed did not cause {wanted - set(nights.happened)}"
