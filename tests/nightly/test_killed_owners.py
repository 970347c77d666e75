"""Scheduler processes that are killed: scheduled runs and the platform show no trace of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.killed_owners import owners_are_killed
from tests.e2e.project_folder import Stage

pytestmark = [pytest.mark.retail, pytest.mark.openssh]


def test_each_run_ends_once_after_kills(fresh: Stage, exports: list[Path]) -> None:
    """Two schedulers on one state; the running one is killed four times."""
    owners_are_killed(fresh, exports, kills=4)
