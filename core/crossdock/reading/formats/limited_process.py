"""Processes with limits of memory and time, for readers that allocate what a file declares, or that end the process.

Such a process runs one module, whose `main` calls `answer_request_within_limits`; it imports quickly and writes answers
of one line each.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from os import fdopen
from pathlib import Path
from shutil import copyfileobj
from typing import IO, Any, BinaryIO

from msgspec import Struct

from crossdock.errors import RefusedError

MAX_LINE = 16 << 20
"""The most bytes of one answer."""
_HOME = str(Path(__file__).parents[3])
_START = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from crossdock.reading.formats.{module} import main
main()
"""
_NO_MEMORY = 77
"""The exit code of a process that exceeds its memory."""


class CellError(Exception):
    """A cell cannot be read, or the whole file if *cell* is empty."""

    def __init__(self, message: str, cell: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.cell, self.hint = message, cell, hint


@contextmanager
def cell_errors_as_file_refusals(name: str) -> Iterator[None]:
    """Make a CellError in the block the RefusedError of the file *name*."""
    try:
        yield
    except CellError as error:
        where = f"{name}:{error.cell}" if error.cell else name
        raise RefusedError(error.message, where=where, hint=error.hint, code="file_damaged") from error


class ProcessLimits(Struct, frozen=True):
    """What a process may take: bytes of memory, and seconds of processor time."""

    memory: int
    seconds: int


class ReaderTask(Struct, frozen=True):
    """What runs in a process of its own.

    Attributes:
        module: One of `crossdock.reading.formats`, with a function ``main`` that calls `answer_request_within_limits`.
        reader: What it is in errors, such as "the reader of sheets".
        damaged: The hint if it fails at a file.
        too_much: The hint if a file takes more than the limits.
    """

    module: str
    reader: str
    damaged: str
    too_much: str


class ProcessAnswers:
    """What a process answers: iterating yields its lines as JSON values, and raises CellError if it fails."""

    def __init__(self, process: subprocess.Popen[bytes], task: ReaderTask, limits: ProcessLimits) -> None:
        assert process.stdout is not None
        self._process, self._out, self._task, self._limits = process, process.stdout, task, limits

    def __iter__(self) -> Iterator[Any]:
        while (line := self._out.readline(MAX_LINE + 2)).endswith(b"\n"):
            answer = json.loads(line)
            if isinstance(answer, dict) and "error" in answer:
                raise CellError(*answer["error"])
            if isinstance(answer, dict) and "end" in answer:
                return
            yield answer
        raise self._failure_error()

    def read_bytes_after_answer(self, size: int) -> bytes:
        """Return the *size* bytes that follow an answer."""
        data = self._out.read(size)
        if len(data) < size:
            raise self._failure_error()
        return data

    def _failure_error(self) -> CellError:
        ended, task = self._process.wait(), self._task
        if ended not in {_NO_MEMORY, -signal.SIGABRT, -signal.SIGKILL, -signal.SIGXCPU}:
            return CellError(f"{task.reader} fails at it", "", task.damaged)
        most = f"{self._limits.memory >> 20:,} MiB of memory"
        if ended == -signal.SIGXCPU:
            most = f"{self._limits.seconds:,} s"
        return CellError(f"reading it takes more than {most}, too much for a file of its size", "", task.too_much)


@contextmanager
def run_reader_process(
    task: ReaderTask, file: BinaryIO, request: Mapping[str, Any], limits: ProcessLimits
) -> Iterator[ProcessAnswers]:
    """Run *task* on *file*, with *request*, which is JSON, in a process that ends with the context."""
    with _copy_unless_file_has_descriptor(file) as readable:
        asked = {**request, "file": readable.fileno(), "memory": limits.memory, "seconds": limits.seconds}
        process = subprocess.Popen(  # noqa: S603
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                _START.format(module=task.module),
                json.dumps([_HOME, *sys.path]),
                json.dumps(asked),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a panic of a reader quotes cells
            pass_fds=(readable.fileno(),),
        )
        assert process.stdout is not None
        try:
            yield ProcessAnswers(process, task, limits)
        finally:
            process.kill()
            process.stdout.close()
            process.wait()


@contextmanager
def _copy_unless_file_has_descriptor(file: BinaryIO) -> Iterator[BinaryIO]:
    file.seek(0)
    try:
        file.fileno()
    except UnsupportedOperation:
        with tempfile.TemporaryFile() as copy:
            copyfileobj(file, copy)
            copy.flush()
            yield copy
    else:
        yield file


def encode_answer_line(text: str, *, too_much: str) -> bytes:
    """Return an answer, JSON without a line end, as bytes. *too_much* is the hint if it is too long."""
    if len(text) > MAX_LINE:
        raise CellError(f"a row of more than {MAX_LINE >> 20} MiB", "", too_much)
    return text.encode() + b"\n"


def answer_request_within_limits(answers: Callable[[BinaryIO, Any], Iterator[bytes]]) -> None:
    """Write what *answers* yields for the file and the request of this process: lines, and bytes that they announce."""
    request = json.loads(sys.argv[2])
    _limit_own_process(request["memory"], request["seconds"])
    out: IO[bytes] = sys.stdout.buffer
    try:
        file = fdopen(request["file"], "rb")
        file.seek(0)
        for answer in answers(file, request):
            out.write(answer)
        out.write(b'{"end": true}\n')
    except CellError as error:
        out.write(json.dumps({"error": [error.message, error.cell, error.hint]}).encode() + b"\n")
    except MemoryError:
        sys.exit(_NO_MEMORY)
    out.flush()


def _limit_own_process(memory: int, seconds: int) -> None:
    for kind, limits in (
        (resource.RLIMIT_AS, (memory, memory)),
        (resource.RLIMIT_CPU, (seconds, seconds + 5)),  # the first limit sends a signal that says why
        (resource.RLIMIT_CORE, (0, 0)),
    ):
        with suppress(OSError, ValueError):  # a lower limit is already set
            resource.setrlimit(kind, limits)
