"""Short form of what a plan is promised to say; ``pytest tests/long/test_nights.py`` runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.nights import open_nights, table

from crossdock.sandbox import SandboxServer


@pytest.mark.nightly
def test_a_plan_says_what_the_sync_does(
    tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number of a plan is that of the sync after it, on nights of every kind."""
    with open_nights(tmp_path, platform, monkeypatch, seed=1) as nights:
        told = [nights.night(number) for number in range(5)]
    assert not [(night.number, night.differences) for night in told if night.differences], table(told)
