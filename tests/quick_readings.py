"""The processes with other hash seeds of the contract tests, as forks of one for each seed that has imported crossdock.

`tests.nightly.test_hash_seeds` also starts them as authors' tests do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from inspect import getfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from crossdock.testing import contract, hash_seeds
from crossdock.testing.connector_under_test import StreamUnderTest
from crossdock.testing.crossdock_process import python_path

ROOT = Path(__file__).parents[1]


class _Readers:
    """A process for each seed, started when it is first needed."""

    def __init__(self, opened: ExitStack) -> None:
        self._opened, self._processes = opened, list[subprocess.Popen[str]]()

    def readings(self, case: type[StreamUnderTest]) -> list[hash_seeds.Reading]:
        """As `hash_seeds.readings`."""
        self._processes = self._processes or [self._started(seed) for seed in hash_seeds.SEEDS]
        names = [case.__module__, getfile(case), case.__qualname__]
        with TemporaryDirectory() as folder:
            found = [Path(folder, seed) for seed in hash_seeds.SEEDS]
            for process, path in zip(self._processes, found, strict=True):
                assert process.stdin is not None
                process.stdin.write(
                    json.dumps([str(path), str(Path.cwd()), dict(os.environ), python_path(), names]) + "\n"
                )
                process.stdin.flush()
            for process, path in zip(self._processes, found, strict=True):
                assert process.stdout is not None
                ended = process.stdout.readline()
                assert ended == "0\n", f"a new process cannot read the stream:\n{path.read_text()}"
            return [json.loads(path.read_text()) for path in found]

    def _started(self, seed: str) -> subprocess.Popen[str]:
        path = os.pathsep.join([str(ROOT), *python_path()])
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._opened.enter_context(process)
        return process


@contextmanager
def quick_readings() -> Iterator[None]:
    """Let the contract tests of this process read in such forks."""
    with ExitStack() as opened, pytest.MonkeyPatch.context() as patch:
        patch.setattr(contract, "readings", _Readers(opened).readings)
        yield


def _read(path: Path, folder: str, environment: dict[str, str], places: Sequence[str], names: Sequence[str]) -> int:
    """Write what the case reads, or what went wrong; the exit code."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = places
    try:
        path.write_text(json.dumps(hash_seeds._reading(hash_seeds._class(*names)())))
    except BaseException:  # noqa: BLE001  as a process ends with any error
        path.write_text(traceback.format_exc())
        return 1
    return 0


if __name__ == "__main__":
    for line in sys.stdin:
        path, *given = json.loads(line)
        if not (child := os.fork()):
            os._exit(_read(Path(path), *given))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
