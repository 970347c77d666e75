from __future__ import annotations

import asyncio
import socket
from collections.abc import MutableMapping
from typing import Any

import pytest
from starlette.responses import Response

from crossdock.sandbox.fault_injection import BrokenResponse

Message = MutableMapping[str, Any]


class Transport:
    """Records that it was closed, and whether its socket would send RST."""

    def __init__(self) -> None:
        self.socket, self.closed, self.resets = socket.socket(), False, False

    def get_extra_info(self, name: str) -> socket.socket:
        assert name == "socket"
        return self.socket

    def close(self) -> None:
        with self.socket:
            self.resets = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)[:1] == b"\x01"
        self.closed = True


def sent_by(response: Response, transport: Transport) -> list[Message]:
    """The messages that a response sends until its client is disconnected."""
    sent: list[Message] = []
    received = iter([{"type": "http.request"}, {"type": "http.disconnect"}])

    async def receive() -> Message:
        return next(received)

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(response({"type": "http", "state": {"transport": transport}}, receive, send))
    assert next(received, None) is None
    return sent


@pytest.mark.parametrize("reset", [True, False])
def test_nothing_is_sent(reset: bool) -> None:
    """The connection is closed without a byte; with *reset* the socket is set to send RST."""
    transport = Transport()
    assert sent_by(BrokenResponse(Response("body"), reset=reset), transport) == []
    assert (transport.closed, transport.resets) == (True, reset)


def test_half_of_the_body_is_sent() -> None:
    """Status and headers are complete, and promise the whole body."""
    transport = Transport()
    start, body = sent_by(BrokenResponse(Response("12345678", 201), half=True), transport)
    assert (start["status"], (b"content-length", b"8") in start["headers"]) == (201, True)
    assert (body["body"], body["more_body"], transport.closed) == (b"1234", True, True)
