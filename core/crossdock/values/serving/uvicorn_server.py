"""The configuration of uvicorn, and uvicorn as a server that another thread stops at once."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from crossdock.values.serving.connection_limits import ConnectionLimits, LimitedConnection
from crossdock.values.serving.problem_responses import problem_response


def make_uvicorn_config(
    app: ASGIApp,
    limits: ConnectionLimits,
    protocol: type[LimitedConnection] = LimitedConnection,
    *,
    malformed: Callable[[], None] = lambda: None,
    **more: Any,
) -> uvicorn.Config:
    """Make the configuration for *app*, without logs of requests. *malformed* is called for what is not HTTP."""
    return uvicorn.Config(
        _refuse_ambiguous_framing(app),
        interface="asgi3",
        http=type(protocol.__name__, (protocol,), {"limits": limits, "malformed": staticmethod(malformed)}),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,  # uvicorn would believe those of any process of this machine
        **more,
    )


def _refuse_ambiguous_framing(app: ASGIApp) -> ASGIApp:
    """Refuse requests whose framing is ambiguous and close the connection (RFC 9112 section 6.3)."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        await (_framing_problem_response(scope) or app)(scope, receive, send)

    return checked


def _framing_problem_response(scope: Scope) -> ASGIApp | None:
    names = {name for name, _ in scope["headers"]}
    if b"transfer-encoding" not in names:
        return None
    if b"content-length" in names:
        detail = "Content-Length and Transfer-Encoding exclude each other. Send one of them."
    elif scope["http_version"] == "1.0":
        detail = "HTTP/1.0 has no Transfer-Encoding. Send Content-Length."  # RFC 9112 section 6.1
    else:
        return None
    return problem_response(400, detail, headers={"connection": "close"})


_TICK_S = 0.1  # as uvicorn; it renews the date of answers


class StoppableServer(uvicorn.Server):
    """uvicorn polls a flag ten times a second and pauses before it ends: tests stop hundreds of servers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """End the server after the requests in progress; from any thread, or from the handler of a signal."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._stopped.set)

    async def main_loop(self) -> None:
        self._loop, ticks = asyncio.get_running_loop(), 0
        while not await self.on_tick(ticks):
            ticks += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), _TICK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for each in (*self.servers, *(sockets or ())):
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        for _ in range(3):  # idle connections end in the next rounds of the loop
            await asyncio.sleep(0)
        if self.server_state.connections or self.server_state.tasks:
            # The second half of the time is for requests that are processed.
            for_clients_s = (self.config.timeout_graceful_shutdown or 0) / 2
            asyncio.get_running_loop().call_later(for_clients_s, self._abort_slow_connections)
            await super().shutdown(sockets=sockets)

    def _abort_slow_connections(self) -> None:
        for each in list(self.server_state.connections):
            if isinstance(each, LimitedConnection) and each.waiting_for_client_since is not None:
                each.transport.abort()
