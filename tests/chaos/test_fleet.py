"""A fleet loses and repeats no run, whatever carries them out and whatever is lost."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.chaos.fleet_kills import Cluster, judged, lossy_night, process, service, settled
from tests.chaos.fleet_stage import RECORDS, FleetStage, settings
from tests.waiting import WITHIN_S

from crossdock.sandbox import SandboxServer
from crossdock.state import StateUrl


@pytest.mark.postgres
def test_a_worker_a_scheduler_and_a_connection_are_lost(tmp_path: Path, new_database: Callable[[], StateUrl]) -> None:
    """Every run takes place exactly once, and the effects are those of a single process."""
    with SandboxServer(tmp_path / "sandbox", settings()) as platform:
        stage = FleetStage(tmp_path, platform, 10, new_database)
        done = lossy_night(stage, FleetStage.address(new_database()), workers=2)
        judged(stage)
    assert 0 < done["worker"] <= done["connection"] <= done["scheduler"] < 10 * RECORDS


@pytest.mark.postgres
def test_threads_processes_and_a_cluster_give_the_same(tmp_path: Path, new_database: Callable[[], StateUrl]) -> None:
    """Record for record."""
    delivered = []
    for kind in ("threads", "processes", "dask"):
        folder = tmp_path / kind
        folder.mkdir()
        with SandboxServer(folder / "sandbox", settings()) as platform:
            stage = FleetStage(folder, platform, 4, new_database)
            with Cluster(folder, stage.environment) as cluster:
                if kind == "dask":
                    cluster.add_worker()
                executor = f"dask={cluster.address}" if kind == "dask" else kind
                with process(*service(stage, executor, "service.log")) as running:
                    settled(stage)
                    running.send_signal(signal.SIGTERM)
                    assert running.wait(WITHIN_S) == 0, (folder / "service.log").read_text()
            judged(stage)
            delivered.append(stage.delivered())
    assert delivered[0] == delivered[1] == delivered[2]
