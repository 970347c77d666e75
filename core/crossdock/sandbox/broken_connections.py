"""Deliberately broken connections. ASGI cannot break them, so the server gives each request access to its transport."""

from __future__ import annotations

import asyncio
import socket
import struct

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from crossdock.values.serving import LimitedConnection

_TRANSPORT = "transport"  # in the state of a request
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class BreakableConnection(LimitedConnection):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self.app_state = {**self.app_state, _TRANSPORT: transport}


class BrokenResponse(Response):
    """Closes or resets the connection instead of sending *response*, or after half of its body."""

    def __init__(self, response: Response, *, half: bool = False, reset: bool = False) -> None:
        super().__init__(response.body, response.status_code)
        self.raw_headers = response.raw_headers
        self._half, self._reset = half, reset

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._half:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            part = self.body[: len(self.body) // 2]
            await send({"type": "http.response.body", "body": part, "more_body": True})
        transport = scope.get("state", {}).get(_TRANSPORT)
        if transport is None:
            raise ConnectionAbortedError("an injected fault broke this connection")
        if self._reset:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        transport.close()
        while (await receive())["type"] != "http.disconnect":  # returning earlier would make the server answer 500
            pass
