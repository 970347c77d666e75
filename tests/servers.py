"""Real servers that a machine may or may not have."""

from __future__ import annotations

import os
import secrets
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import pytest

S = TypeVar("S", bound=socketserver.BaseServer)


def require(available: bool, what: str, *, optional_by: str = "") -> None:
    """Skip the test without *what*; in continuous integration its absence is a failure, not a reason to skip.

    Args:
        available: Whether this machine has it.
        what: Such as "an OpenSSH server".
        optional_by: Environment variable that permits the skip in continuous integration too.
    """
    if available:
        return
    if os.environ.get("CI") and not os.environ.get(optional_by):
        permitted = f" without {optional_by}=true" if optional_by else ""
        pytest.fail(f"{what} is missing on this machine, and CI must not skip{permitted}")
    pytest.skip(f"{what} is missing on this machine")


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


def free_port() -> int:
    """A port that is free now, for processes that follow each other on it.

    It is below those that the system gives to connections and to servers on port 0, which could take it meanwhile.
    """
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        with suppress(OSError), socket.create_server(("", port)):
            return port
