"""Real servers that a machine may or may not have."""

from __future__ import annotations

import os
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

S = TypeVar("S", bound=socketserver.BaseServer)


def require(available: bool, what: str) -> None:
    """Skip the test without *what*; in continuous integration its absence is a failure, not a reason to skip."""
    if available:
        return
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing on this machine, and CI must not skip")
    pytest.skip(f"{what} is not installed")


@contextmanager
def served(server: S) -> Iterator[S]:
    """*server* at work in a thread of its own while the block lasts, and closed afterwards."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
