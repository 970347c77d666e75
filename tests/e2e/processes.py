"""``crossdock schedule`` or ``listen`` in one or several processes on one state."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Self

from tests.chaos import processes
from tests.waiting import WITHIN_S


class SchedulerProcesses:
    """Scheduler processes with one log; the context manager kills those that are left.

    Args:
        command: Arguments of Python for one process, as `tests.chaos.processes.start` takes them.
        limits: Of the resources of each process.
        within_s: Timeout of all waits.
        anew: Each executes Python, as users do, instead of being forked with crossdock imported.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        limits: Mapping[int, int] | None = None,
        within_s: float = WITHIN_S,
        anew: bool = False,
    ) -> None:
        self._command, self._log, self._environment, self._limits = command, log, environment, limits
        self._within_s, self._anew = within_s, anew
        self._running: dict[int, ForkServerProcess] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.kill()
            process.join()

    @property
    def pids(self) -> set[int]:
        return set(self._running)

    def start(self) -> None:
        environment = {**(self._environment or os.environ), "PYTHONFAULTHANDLER": "1"}
        process = processes.start(self._command, environment, self._log, self._log, self._limits, anew=self._anew)
        assert process.pid is not None
        self._running[process.pid] = process

    def kill(self, pid: int) -> None:
        process = self._running.pop(pid)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL, "it had ended before it was killed"

    def stop(self) -> list[int | None]:
        """Terminate all with SIGTERM, as systemd would; their exit codes."""
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.join(self._within_s)
        codes = [process.exitcode for process in self._running.values()]
        assert None not in codes, f"it did not end within {self._within_s:.0f} s\n{self._stuck()}"
        self._running.clear()
        return codes

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def said(self, words: str) -> int:
        """How often the log contains *words*."""
        return self.log.count(words)

    def says(self, words: str) -> None:
        """Wait until *words* are logged once more."""
        already = self.said(words)
        self.until(lambda: self.said(words) > already)

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition is true; fail if a process ends by itself meanwhile."""
        deadline = time.monotonic() + self._within_s
        while not holds():
            ended = [process.exitcode for process in self._running.values() if process.exitcode is not None]
            assert not ended, f"ended by itself with {ended}\n{self.log}"
            assert time.monotonic() < deadline, f"it did not come true within {self._within_s:.0f} s\n{self._stuck()}"
            time.sleep(0.005)

    def _stuck(self) -> str:
        """The log, with the stack of each process."""
        for pid, process in self._running.items():
            os.kill(pid, signal.SIGABRT)
            process.join()
        return self.log
