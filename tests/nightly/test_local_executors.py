"""Executors on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import BrokenExecutor
from pathlib import Path

import pytest
from tests.chaos.fleet_stage import FleetStage, settings
from tests.integration.fleet.test_worker import call
from tests.waiting import WITHIN_S, eventually

from crossdock.sandbox import SandboxServer
from crossdock.services.fleet import worker
from crossdock.services.fleet.local_executors import PROCESSES, THREADS
from crossdock.services.fleet.worker import CallResult


def kill_me() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def is_stopped() -> bool:
    return worker._INTERRUPT.wait(WITHIN_S)


def end_me() -> bool:
    """What systemd does to all processes of a service."""
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)
    return worker._INTERRUPT.wait(WITHIN_S)


def test_a_run_in_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its secrets are those of the environment."""
    with SandboxServer(tmp_path / "sandbox", settings()) as platform:
        stage = FleetStage(tmp_path, platform, 1)
        monkeypatch.setenv("KEY_T000", stage.environment["KEY_T000"])
        with PROCESSES.open("", 1) as pool:
            text = pool.submit(worker.execute, call(stage).model_dump_json()).result(WITHIN_S)
        assert CallResult.model_validate_json(text).outcome == "ended"
        assert stage.delivered() == stage.expected()


def test_a_killed_process_takes_its_pool_with_it_and_the_next_call_has_another() -> None:
    """The killed call raises, and is made again by the scheduler."""
    with PROCESSES.open("", 1) as pool:
        with pytest.raises(BrokenExecutor):
            pool.submit(kill_me).result(WITHIN_S)
        assert pool.submit(int, "7").result(WITHIN_S) == 7


def test_runs_in_processes_are_stopped_in_order() -> None:
    """At the end of the pool, and by a signal to a process; Ctrl-C is left to the first process."""
    with PROCESSES.open("", 2) as pool:
        assert pool.submit(end_me).result(WITHIN_S)
        waiting = pool.submit(is_stopped)
    assert waiting.cancelled() or waiting.result(WITHIN_S)


def test_runs_in_threads_are_stopped_in_order() -> None:
    """And another pool begins anew."""
    with THREADS.open("", 1) as pool:
        waiting, cancelled = pool.submit(is_stopped), pool.submit(is_stopped)
    assert waiting.result(WITHIN_S)
    assert cancelled.cancelled()
    assert not worker._INTERRUPT.is_set()


def test_a_process_ends_with_the_one_that_started_the_pool() -> None:
    """Although that one was killed."""
    script = (
        "import os, signal, sys\n"
        "from crossdock.services.fleet.local_executors import PROCESSES\n"
        "if __name__ == '__main__':\n"
        "    with PROCESSES.open('', 1) as pool:\n"
        "        print(pool.submit(os.getpid).result(), flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    eventually(lambda: not Path(f"/proc/{int(done.stdout)}").exists())
