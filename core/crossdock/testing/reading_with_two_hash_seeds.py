"""Reads a stream in this process and in one that hashes texts differently; run as a module, it is the other process.

Python hashes texts with another seed in each process, so the order of a set differs from run to run.
"""

from __future__ import annotations

import atexit
import faulthandler
import importlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import tempfile
import traceback
from contextlib import suppress
from functools import cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from crossdock.testing.crossdock_process import absolute_import_paths

if TYPE_CHECKING:
    from crossdock.testing.connector_under_test import StreamUnderTest

_SEEDS = ("1", "2")
_WITHIN_S = 120.0
_SHOWN = 5_000  # characters of what the other process has said

Reading = list[list[str]]
"""The key, the rows and the members or the problem of each record, as text."""


def read_with_two_seeds(case: type[StreamUnderTest], *, within_s: float = _WITHIN_S) -> tuple[Reading, Reading]:
    """Read in this process, and in another one. That one has another seed, and reads for all tests of this process.

    Args:
        case: A class at the top level of a module, or inside of one.
        within_s: How long the other process may take.

    Raises:
        AssertionError: If the other process cannot read it.
    """
    return _read_as_text(case()), _other_process().read_stream(case, within_s)


class _OtherProcess:
    """A process with another seed. It ends with this one, or when a reading does not end."""

    def __init__(self) -> None:
        self._seed = next(seed for seed in _SEEDS if seed != os.environ.get("PYTHONHASHSEED"))
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", __name__],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(absolute_import_paths()), "PYTHONHASHSEED": self._seed},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        atexit.register(self._end)

    def read_stream(self, case: type[StreamUnderTest], within_s: float) -> Reading:
        """Do the same as `read_with_two_seeds`, in the other process."""
        before = os.fstat(self._said.fileno()).st_size
        answer = self._ask({
            "case": [case.__module__, inspect.getfile(case), case.__qualname__],
            "path": absolute_import_paths(),
            "folder": str(Path.cwd()),
            "environment": {**os.environ, "PYTHONHASHSEED": self._seed},
            "within_s": within_s,
        })  # fmt: skip
        if answer is not None and "reading" in answer:
            found: Reading = answer["reading"]
            return found
        said = os.pread(self._said.fileno(), _SHOWN, before).decode("utf-8", "replace")
        where = f"{case.__qualname__}: the second reading, in another process (PYTHONHASHSEED={self._seed}),"
        if answer is not None:
            raise AssertionError(f"{where} fails, but not the first one:\n{answer['error']}{said}")
        _other_process.cache_clear()
        self._end()
        if said.lstrip().startswith("Timeout"):
            advice = "look for a loop or a wait at the place where it was, with the most recent call first"
            raise AssertionError(f"{where} did not end within {within_s:g} s; {advice}:\n{said}")
        raise AssertionError(f"{where} ended its process:\n{said}")

    def _ask(self, question: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer, or None if the process has ended."""
        given, answers = self._process.stdin, self._process.stdout
        assert given is not None
        assert answers is not None
        with suppress(BrokenPipeError):
            given.write(json.dumps(question) + "\n")
            given.flush()
        answer: dict[str, Any] | None = json.loads(answers.readline() or "null")
        return answer

    def _end(self) -> None:
        atexit.unregister(self._end)
        self._process.kill()
        with suppress(BrokenPipeError), self._process:  # its input may hold what it has not read
            pass
        self._said.close()


@cache
def _other_process() -> _OtherProcess:
    return _OtherProcess()


def _read_as_text(case: StreamUnderTest) -> Reading:
    return [
        [
            tried.record.key,
            repr([sorted(row.items()) for row in tried.record.rows]),
            repr(tried.members) if tried.problem is None else f"{tried.problem.code} {tried.problem.message}",
        ]
        for tried in case.read().records
    ]


def _import_class(module: str, file: str, qualified_name: str) -> Any:
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


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    """Read what the other process asks for, or say what went wrong."""
    # It shows where each thread is and ends this process, also in code that is not Python.
    faulthandler.dump_traceback_later(question["within_s"], exit=True)
    try:
        os.chdir(question["folder"])
        os.environ.clear()
        os.environ.update(question["environment"])
        sys.path[:] = question["path"]
        return {"reading": _read_as_text(_import_class(*question["case"])())}
    except BaseException:  # noqa: BLE001  as a process ends with any error
        return {"error": traceback.format_exc()}
    finally:
        faulthandler.cancel_dump_traceback_later()


def _answer_questions_of_parent(questions: TextIO, answers: TextIO) -> None:
    for line in questions:
        answers.write(json.dumps(_answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "w") as _answers:
        os.dup2(2, 1)  # what the connector prints is not an answer
        _answer_questions_of_parent(sys.stdin, _answers)
