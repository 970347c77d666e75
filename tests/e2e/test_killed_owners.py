"""The nightly service for real: whoever works is killed, and the nights and the platform show nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.killed_owners import owners_are_killed
from tests.e2e.project_folder import Stage

pytestmark = [pytest.mark.retail, pytest.mark.openssh]


def test_each_night_ends_once_whoever_is_killed(fresh: Stage, exports: list[Path]) -> None:
    """Two schedulers on one state, the one at work killed five times: each night once, everything there once."""
    owners_are_killed(fresh, exports, kills=5)
