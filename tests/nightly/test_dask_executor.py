"""Runs on a Dask cluster."""

from __future__ import annotations

import signal
import time
from concurrent.futures import CancelledError, Executor
from pathlib import Path

import pytest
from tests.chaos.fleet_kills import Cluster
from tests.waiting import WITHIN_S, eventually

from crossdock.errors import ConfigError, UnavailableError
from crossdock.services.fleet import dask_executor, worker
from crossdock.services.fleet.dask_executor import DASK
from crossdock.services.fleet.worker import CallResult, ScheduledCall

CALL = ScheduledCall(tenant="acme", files=(), digest="00").model_dump_json()


@pytest.mark.parametrize("address", ["127.0.0.1:8786", "http://127.0.0.1:8786", "tcp:/", "x"])
def test_an_address_that_cannot_be_right_is_refused(address: str) -> None:
    """It is one of Dask's, such as tcp://127.0.0.1:8786."""
    with pytest.raises(ConfigError, match="is not the address of a Dask scheduler"), DASK.open(address, 1):
        pass


def test_a_cluster_that_is_not_there_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again later."""
    monkeypatch.setattr(dask_executor, "CONNECT_S", 0.5)
    with pytest.raises(UnavailableError, match="does not answer"), DASK.open("tcp://127.0.0.1:1", 1):
        pass


def test_calls_on_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal calls are calls of their own; without workers none is taken; a cluster that ends loses its calls."""
    monkeypatch.setattr(dask_executor, "CONNECT_S", 5.0)
    with Cluster(tmp_path, {}) as cluster, DASK.open(cluster.address, 1) as executor:
        with pytest.raises(UnavailableError, match="has no workers"):
            executor.submit(worker.execute, CALL)
        cluster.add_worker()
        eventually(lambda: _is_taken(executor))
        calls = [executor.submit(worker.execute, CALL) for _ in range(2)]
        results = [CallResult.model_validate_json(each.result(WITHIN_S)) for each in calls]
        assert [each.outcome for each in results] == ["changed", "changed"], "no file has this digest"
        waiting = executor.submit(time.sleep, WITHIN_S)  # on the worker
        cluster.scheduler.send_signal(signal.SIGKILL)
        with pytest.raises(CancelledError):
            waiting.result(WITHIN_S)


def _is_taken(executor: Executor) -> bool:
    try:
        executor.submit(int, "7").result(WITHIN_S)
    except UnavailableError:
        return False
    return True
