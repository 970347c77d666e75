"""300 tenants over a Dask cluster of three workers and two schedulers, while some of it is lost; all executors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.chaos.fleet_kills import judged, lossy_night
from tests.chaos.fleet_stage import RECORDS, FleetStage, settings
from tests.nightly.test_fleet import same

from crossdock.sandbox import SandboxServer
from crossdock.state import StateUrl

TENANTS = 300


@pytest.mark.postgres
def test_a_night_of_300_tenants(tmp_path: Path, new_database: Callable[[], StateUrl]) -> None:
    """Every run takes place exactly once, and the effects are those of a single process."""
    with SandboxServer(tmp_path / "sandbox", settings()) as platform:
        stage = FleetStage(tmp_path, platform, TENANTS, new_database, at_once=8, per_host=8)
        done = lossy_night(stage, FleetStage.address(new_database()), workers=3)
        judged(stage)
    all_records = TENANTS * RECORDS
    assert 0 < done["worker"] <= done["connection"] <= done["scheduler"] < all_records
    print(f"{TENANTS} tenants, {all_records:,} records, each once; lost after so many records: {done}")


@pytest.mark.postgres
def test_threads_processes_and_a_cluster_give_the_same(tmp_path: Path, new_database: Callable[[], StateUrl]) -> None:
    """Record for record."""
    same(tmp_path, new_database, ("threads", "processes", "dask"))
