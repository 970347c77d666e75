"""A fleet loses and repeats no run, whatever carries them out and whatever is lost."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
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


def same(folder: Path, new_database: Callable[[], StateUrl], kinds: Sequence[str]) -> None:
    """Each of these *kinds* of executors delivers what the others do, record for record."""
    delivered = []
    for kind in kinds:
        place = folder / kind
        place.mkdir()
        with SandboxServer(place / "sandbox", settings()) as platform, ExitStack() as opened:
            stage = FleetStage(place, platform, 4, new_database, at_once=2)
            executor = kind
            if kind == "dask":
                cluster = opened.enter_context(Cluster(place, stage.environment))
                cluster.add_worker()
                executor = f"dask={cluster.address}"
            running = opened.enter_context(process(*service(stage, executor, "service.log")))
            settled(stage)
            running.send_signal(signal.SIGTERM)
            assert running.wait(WITHIN_S) == 0, (place / "service.log").read_text()
            judged(stage)
            delivered.append(stage.delivered())
    assert all(each == delivered[0] for each in delivered)


@pytest.mark.postgres
def test_threads_and_processes_give_the_same(tmp_path: Path, new_database: Callable[[], StateUrl]) -> None:
    """Record for record; what a cluster gives is judged above."""
    same(tmp_path, new_database, ("threads", "processes"))
