"""Standard output and standard error that never end a command: what cannot be written is left out."""

from __future__ import annotations

import io
import sys
from typing import Any, TextIO


class OutputFile(io.FileIO):
    """A file descriptor to which writing goes on after it has failed, without effect.

    Attributes:
        failure: Why it failed; None if it did not. A reader that has gone, such as ``head``, is a `BrokenPipeError`.
    """

    failure: OSError | None = None

    def write(self, data: Any) -> int:
        if self.failure is None:
            try:
                written: int = super().write(data)
            except OSError as error:
                self.failure = error
            else:
                return written
        return memoryview(data).nbytes


def keep_output() -> OutputFile | None:
    """Replace the process's own standard output and standard error; return the file of the output.

    None if the output is none of the process's own, as in a test that captures it.
    """
    sys.stderr = _kept(sys.stderr, sys.__stderr__)[0]
    sys.stdout, output = _kept(sys.stdout, sys.__stdout__)
    return output


def _kept(stream: TextIO, own: TextIO | None) -> tuple[TextIO, OutputFile | None]:
    if stream is not own or not isinstance(stream, io.TextIOWrapper):
        return stream, None
    stream.flush()
    output = OutputFile(stream.fileno(), "w", closefd=False)
    is_buffered = isinstance(stream.buffer, io.BufferedWriter)  # not with python -u or PYTHONUNBUFFERED
    kept = io.TextIOWrapper(
        io.BufferedWriter(output) if is_buffered else output,
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    return kept, output
