"""Captures what a block of code prints and logs."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout


@contextmanager
def captured_output() -> Iterator[io.StringIO]:
    """Capture everything that is printed, or logged at any level to the root logger, in the block."""
    output, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(output), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with redirect_stdout(output), redirect_stderr(output):
            yield output
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
