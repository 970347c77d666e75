"""The most memory that a process of its own took."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

LIMIT_MB = 400

# Of the process alone: `ru_maxrss` begins with what its parent had when it was started.
_RUN = """
import atexit, pathlib, resource, runpy, sys

def tell():
    status = pathlib.Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    most = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    print("peak kB:", *(most or [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]), file=sys.stderr)

atexit.register(tell)
module, *sys.argv[1:] = sys.argv[1:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


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
