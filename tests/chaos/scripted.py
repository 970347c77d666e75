"""A platform of the standard library alone, quick enough for hundreds of runs, that answers as a test says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO, Self


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def key(self) -> str:
        return self.headers.get("idempotency-key", "")


@dataclass(frozen=True, slots=True)
class Said:
    """An answer."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def wire(self) -> bytes:
        lines = [f"{name}: {value}\r\n" for name, value in self.headers.items()]
        head = f"HTTP/1.1 {self.status} .\r\ncontent-length: {len(self.body)}\r\n{''.join(lines)}\r\n"
        return head.encode() + self.body


class Scripted:
    """Serves on a port of its own, a thread a connection; a context manager.

    Attributes:
        answer: Asked about each request, by several threads; None closes the connection without a byte.
    """

    def __init__(self, answer: Callable[[Asked], Said | None]) -> None:
        self.answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self._connections: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()

    def refuse(self) -> None:
        """Refuse all connections from now on."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for clients
        self._listener.close()
        self._thread.join()
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def accept(self) -> None:
        """Listen again, after `refuse`."""
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=256)
        self._open()

    def _open(self) -> None:
        self._thread = threading.Thread(target=self._listen, name="scripted")
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(connection,), name="scripted, client")
            with self._lock:
                self._connections.add(connection)
            self._threads = [each for each in self._threads if each.is_alive()] + [thread]
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as incoming, suppress(OSError):
            while asked := _read(incoming):
                said = self.answer(asked)
                if said is None:
                    break
                connection.sendall(said.wire())
        with self._lock:
            self._connections.discard(connection)


def _read(incoming: BinaryIO) -> Asked | None:
    """The next request; None if the client has closed the connection, even in the middle of a request."""
    first = incoming.readline().decode().split()
    if not first:
        return None
    headers: dict[str, str] = {}
    while line := incoming.readline():
        if not line.strip():
            break
        name, _, value = line.decode().strip().partition(":")
        headers[name.lower()] = value.strip()
    length = int(headers.get("content-length", 0))
    body = incoming.read(length)
    return Asked(first[0], first[1], headers, body) if line and len(body) == length else None
