"""Scheduled runs at full size: ``pytest tests/long/test_scheduled_runs.py -n 2 -rP``, some minutes.

``CROSSDOCK_CHAOS_SEED`` gives another seed to what is killed; ``-rP`` shows what was done.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.e2e.conftest import exports, fresh, openssh
from tests.e2e.killed_owners import owners_are_killed
from tests.e2e.project_folder import Stage
from tests.integration.scheduler.scheduled_runs_race import job_of_each_zone, race
from tests.integration.scheduler.test_scheduled_runs import another_takes_over

from crossdock.state import StateUrl

__all__ = ["exports", "fresh", "openssh"]  # fixtures


@pytest.mark.parametrize("catch_up", ["all", "latest", "none"])
def test_each_run_of_four_hundred_days_is_done_once(state_url: StateUrl, tmp_path: Path, catch_up: str) -> None:
    """Three schedulers race through eight zones; hosts are down, and some pause longer than their lease."""
    figures = race(state_url, tmp_path, job_of_each_zone(catch_up), days=400, outages=8, zombies=8)
    print(f"\nscheduled runs on {state_url.drivername}, catch_up {catch_up}: {figures}")


def test_another_scheduler_takes_over_after_a_kill(state_url: StateUrl, tmp_path: Path) -> None:
    """A third of the runs of 30 days are killed."""
    another_takes_over(state_url, tmp_path, days=30)


@pytest.mark.retail
@pytest.mark.openssh
def test_each_run_ends_once_after_kills(fresh: Stage, exports: list[Path], state_url: StateUrl) -> None:
    """Two schedulers on one state; the running one is killed fifty times."""
    if state_url.drivername != "sqlite":
        config = yaml.safe_load(fresh.config.read_text())
        config["state"] = state_url.render_as_string(hide_password=False)
        fresh.config.write_text(yaml.safe_dump(config, sort_keys=False))
        fresh.init()
    owners_are_killed(fresh, exports, kills=50)
