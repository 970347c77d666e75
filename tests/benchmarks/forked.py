"""The processes of benchmarks as forks of one that has imported crossdock: for tests of what they find.

What they take is that of a fork. `tests.long.test_benchmarks` starts them as the benchmarks do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.benchmarks import bench_delta, bench_hints, bench_migration, delta_processes, delta_stage
from tests.benchmarks.delta_processes import LIMIT_S, Spent
from tests.chaos import processes
from tests.memory import Measured

_run = delta_processes.run


def run(command: Sequence[str], *, limit_s: float = LIMIT_S) -> Spent:
    """As `delta_processes.run`; a command that is neither a module nor a script is started as there."""
    interpreter, how, *rest = command
    if how == "-c":
        return _run(command, limit_s=limit_s)
    arguments = [how, *rest] if how == "-m" else ["-P", how, *rest]
    return Spent(0.0, 0.0, 0, finish([interpreter, *arguments], {"BENCH_KEY": "k"}, within_s=limit_s))


def finish(command: Sequence[str], environment: Mapping[str, str], within_s: float = LIMIT_S) -> str:
    """Run a command of this Python to its end, which must be a good one; what it printed."""
    done = processes.finish(command[1:], {**os.environ, **environment}, within_s)
    assert done.exit_code == 0, f"{command} ended with {done.exit_code}:\n{done.stderr[-4000:]}"
    return done.stdout


def _measured(module: str, arguments: Sequence[str], *, cwd: str, within_s: float = LIMIT_S) -> Measured:
    """As `tests.memory.measured`, but in the folder of the test; the arguments name each file by its whole path."""
    assert Path(cwd).is_absolute()
    told = finish([sys.executable, "-m", module, *arguments], {}, within_s)
    return Measured(0, told, "", 0)


@contextmanager
def forked_benchmarks() -> Iterator[None]:
    """Start the processes of the benchmarks as such forks."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (bench_delta, delta_processes, delta_stage):
            patch.setattr(module, "run", run)
        patch.setattr(bench_hints, "finish", finish)
        patch.setattr(bench_migration, "measured", _measured)
        yield
