"""Breaking a connection on purpose. ASGI has no word for it, so the server puts its transport into each request."""

from __future__ import annotations

import asyncio
import socket
import struct

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from crossdock.serving import GuardedConnection

_TRANSPORT = "transport"  # in the state of a request
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Connection(GuardedConnection):
    """Lets each of its requests reach its transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self.app_state = {**self.app_state, _TRANSPORT: transport}


class Broken(Response):
    """Instead of *answer*, or after half of its body, the connection is closed, or reset."""

    def __init__(self, answer: Response, *, half: bool = False, reset: bool = False) -> None:
        super().__init__(answer.body, answer.status_code)
        self.raw_headers = answer.raw_headers
        self._half, self._reset = half, reset

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._half:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            part = self.body[: len(self.body) // 2]
            await send({"type": "http.response.body", "body": part, "more_body": True})
        transport = scope.get("state", {}).get(_TRANSPORT)
        if transport is None:
            raise ConnectionAbortedError("a fault breaks this connection")
        if self._reset:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        transport.close()
        while (await receive())["type"] != "http.disconnect":  # before that the server would answer 500 in our place
            pass
