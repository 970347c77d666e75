"""Runs a command of a crossdock whose waiting requests leave within `LEAVE_WITHIN_S`, however slow the machine is.

python -P tests/chaos/soon_leaving.py ARGUMENTS...

So a test knows how long is long enough for them to be given back. The environment variable `WRITING` names a file with
a byte for each thread, which is 1 while the thread writes a request.
"""

from __future__ import annotations

import mmap
import os
import runpy
import threading
from itertools import count
from pathlib import Path

from crossdock.reading.transport import httpcore_client
from crossdock.writing.delivery import state_writer

WRITING, THREADS = "CHAOS_WRITING", 64


def _mark_writes(path: Path) -> None:
    with path.open("r+b") as file:
        marks = mmap.mmap(file.fileno(), THREADS)
    numbers, own, write = count(), threading.local(), httpcore_client._DeadlineStream.write

    def marked(stream: httpcore_client._DeadlineStream, buffer: bytes, timeout: float | None = None) -> None:
        if not hasattr(own, "number"):
            own.number = next(numbers)
        marks[own.number] = 1
        try:
            write(stream, buffer, timeout)
        finally:
            marks[own.number] = 0

    httpcore_client._DeadlineStream.write = marked  # type: ignore[assignment, method-assign]  # has the same parameters


def main() -> None:
    state_writer.LEAVE_AT_MOST_S = state_writer.LEAVE_WITHIN_S
    _mark_writes(Path(os.environ[WRITING]))
    runpy.run_module("crossdock", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
