"""The most memory that a process of its own took."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LIMIT_MB = 300

_RUN = """
import atexit, runpy, sys
from tests.memory import peak_kib

atexit.register(lambda: print("peak kB:", peak_kib(), file=sys.stderr))
module, *sys.argv[1:] = sys.argv[1:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def peak_kib() -> int:
    """The most memory of this process alone; on Linux `ru_maxrss` begins with what its parent had."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))


@dataclass(frozen=True)
class Measured:
    """How a process ended, and what it took at most, in MB (2**20 bytes)."""

    code: int
    out: str
    err: str
    peak_mb: int


def measured(module: str, arguments: Sequence[str], *, cwd: str, within_s: float = 300.0) -> Measured:
    """Run a Python module and measure its memory."""
    command = [sys.executable, "-c", _RUN, module, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=within_s, cwd=cwd, env=environment, check=False
    )
    told = re.search(r"peak kB: (\d+)", done.stderr)
    assert told, done.stderr
    return Measured(done.returncode, done.stdout, done.stderr, int(told[1]) >> 10)
