"""Reads a stream in new processes that hash texts differently; run as a module, it is such a process.

Python hashes texts with another seed in each process, so the order of a set differs from run to run.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from functools import reduce
from typing import TYPE_CHECKING, Any

from crossdock.testing.crossdock_process import python_path

if TYPE_CHECKING:
    from crossdock.testing.connector_under_test import StreamUnderTest

SEEDS = ("1", "2")
_TIMEOUT_S = 120.0

Reading = list[list[str]]
"""The key, the rows and the members or the problem of each record, as text."""


def readings(case: type[StreamUnderTest]) -> list[Reading]:
    """Read in a new process for each of `SEEDS`.

    Args:
        case: A class at the top level of a module, or inside of one.

    Raises:
        AssertionError: If a process cannot read it.
    """
    command = [sys.executable, "-m", __name__, case.__module__, inspect.getfile(case), case.__qualname__]
    processes = [
        subprocess.Popen(  # noqa: S603
            command,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(python_path()), "PYTHONHASHSEED": seed},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in SEEDS
    ]
    try:
        done = [process.communicate(timeout=_TIMEOUT_S) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for process, (_, errors) in zip(processes, done, strict=True):
        assert process.returncode == 0, f"a new process cannot read the stream:\n{errors}"
    return [json.loads(output.splitlines()[-1]) for output, _ in done]


def _reading(case: StreamUnderTest) -> Reading:
    return [
        [
            tried.record.key,
            repr([sorted(row.items()) for row in tried.record.rows]),
            repr(tried.members) if tried.problem is None else f"{tried.problem.code} {tried.problem.message}",
        ]
        for tried in case.read().records
    ]


def _class(module: str, file: str, qualified_name: str) -> Any:
    """Return the class, whose module pytest may have imported by its file alone."""
    try:
        found = importlib.import_module(module)
    except ImportError:
        spec = importlib.util.spec_from_file_location(module, file)
        assert spec is not None
        assert spec.loader is not None
        found = sys.modules[module] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    return reduce(getattr, qualified_name.split("."), found)


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(_reading(_class(*sys.argv[1:])())) + "\n")
