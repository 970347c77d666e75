"""Whole processes, measured: seconds on the wall and of CPU, peak memory, and what they printed.

Who imports this must stay small (no polars): on Linux a child's peak memory begins with its parent's.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHORT_S = 30.0  # what takes longer is measured once
LIMIT_S = 300.0


class TooSlowError(Exception):
    """A process was ended, since it took longer than it may."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What one process took.

    Attributes:
        cpu_s: User and system, with that of the processes that it waited for.
    """

    seconds: float
    cpu_s: float
    peak_mib: int
    told: str


def python(*arguments: object) -> list[str]:
    """A command of this Python."""
    return [sys.executable, *map(str, arguments)]


IMPORTS = python("-c", "import polars, sqlalchemy")


def run(command: Sequence[str], *, limit_s: float = LIMIT_S, exit_code: int = 0) -> Spent:
    """Run a process to its end, which must have *exit_code*.

    Raises:
        TooSlowError: If it had to be ended after *limit_s* seconds.
    """
    os.sync()  # what others have left to be written is not this one's burden
    with (
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as errors,
        tempfile.TemporaryDirectory() as notes,
    ):
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=errors, cwd=ROOT, env=_environment(notes))
        timer = threading.Timer(limit_s, process.kill)
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            timer.cancel()
        if process.returncode and seconds >= limit_s:
            raise TooSlowError(f"stopped after {limit_s:.0f} s")
        out.seek(0)
        errors.seek(0)
        assert process.returncode == exit_code, f"{command} ended with {process.returncode}:\n{errors.read()[-4000:]}"
        return Spent(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024, out.read())


def _environment(notes: str) -> dict[str, str]:
    """Ours, but that modules are kept compiled as after any installation.

    What crossdock notes about states in the user's folder goes to *notes*: it would refuse one that is put back.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "BENCH_KEY": "k", "XDG_STATE_HOME": notes}


@dataclass
class Contestant:
    """A process that is measured several times.

    Attributes:
        found: What it reports to have found, taken from what it prints; checked against *wanted*.
        fresh: A state to begin with, and where it must lie: copied before each run, outside of its time.
        stopped: Why it was not run to its end.
    """

    name: str
    command: Sequence[str]
    found: Callable[[str], object] = str
    wanted: object = ""
    fresh: tuple[Path, Path] | None = None
    spent: list[Spent] = field(default_factory=list)
    stopped: str = ""

    def take_turn(self) -> None:
        """Run once more, unless it was found to be slow."""
        if self.stopped or any(each.seconds > SHORT_S for each in self.spent):
            return
        if self.fresh:
            _copy(*self.fresh)
        try:
            spent = run(self.command)
        except TooSlowError as error:
            self.stopped = str(error)
            return
        found = self.found(spent.told)
        assert found == self.wanted, f"{self.name}: found {found}, not {self.wanted}"
        self.spent.append(spent)

    @property
    def seconds(self) -> tuple[float, float]:
        """Of the best run, and the median of all."""
        seconds = [each.seconds for each in self.spent]
        return min(seconds), statistics.median(seconds)

    @property
    def cpu_s(self) -> list[float]:
        """Of each run."""
        return [each.cpu_s for each in self.spent]

    @property
    def peak_mib(self) -> int:
        """Of the run that took the most memory."""
        return max(each.peak_mib for each in self.spent)

    def row(self) -> tuple[object, ...]:
        """Name, best and median seconds, peak MiB, runs."""
        if not self.spent:
            return self.name, self.stopped, "", "", 0
        best, median = self.seconds
        return self.name, f"{best:.2f}", f"{median:.2f}", self.peak_mib, len(self.spent)


def _copy(kept: Path, used: Path) -> None:
    if kept.is_dir():
        shutil.rmtree(used, ignore_errors=True)
        shutil.copytree(kept, used)
    else:
        shutil.copyfile(kept, used)
