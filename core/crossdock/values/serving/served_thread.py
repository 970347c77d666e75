"""An HTTP server in a thread of this process."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from msgspec import Struct
from starlette.types import ASGIApp

from crossdock.errors import ConfigError
from crossdock.values.serving.connection_limits import ConnectionLimits, LimitedConnection
from crossdock.values.serving.uvicorn_server import StoppableServer, make_uvicorn_config

_STARTS_WITHIN_S = 10.0


class ServerLimits(Struct, frozen=True, kw_only=True):
    """How much of this machine the clients of a server may use, and how long it takes to stop.

    Attributes:
        accepted_at_once: Connections that are accepted before the first is counted.
        queued: Connections that wait in the kernel to be accepted.
        stops_within_s: Seconds for requests in progress at the end.
    """

    clients: ConnectionLimits
    accepted_at_once: int
    queued: int
    stops_within_s: int


@contextmanager
def serve_in_thread(
    app: ASGIApp,
    limits: ServerLimits,
    host: str,
    port: int,
    *,
    name: str,
    address_error: Callable[[OSError], ConfigError],
    malformed: Callable[[], None] = lambda: None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[str]:
    """Serve *app* and yield the base address. *port* 0 takes a free one, and *host* ``0.0.0.0`` all addresses.

    *address_error* makes the error of an address that is not available. *malformed* is called for each request that is
    not HTTP, in the thread of the server.
    """
    with _open_listener(host, port, address_error) as listener:
        server = _Server(app, limits, malformed, tls)
        thread = threading.Thread(target=server.run, args=([listener],), name=name, daemon=True)
        thread.start()
        try:
            if not server.is_up.wait(_STARTS_WITHIN_S):
                raise RuntimeError(f"the server {name!r} did not start within {_STARTS_WITHIN_S:.0f} s")
            address, bound = listener.getsockname()[:2]
            scheme = "http" if tls is None else "https"
            yield f"{scheme}://[{address}]:{bound}" if ":" in address else f"{scheme}://{address}:{bound}"
        finally:
            server.stop()
            thread.join()


class _Server(StoppableServer):
    def __init__(
        self, app: ASGIApp, limits: ServerLimits, malformed: Callable[[], None], tls: ssl.SSLContext | None
    ) -> None:
        backlog, stops_within_s = limits.accepted_at_once, limits.stops_within_s
        made = make_uvicorn_config(
            app, limits.clients, malformed=malformed, backlog=backlog, timeout_graceful_shutdown=stops_within_s
        )
        super().__init__(made)
        self.is_up, self._limits, self._tls = threading.Event(), limits, tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.ssl = self._tls
        if self._tls is not None:
            loop = asyncio.get_running_loop()
            # uvicorn has no setting for it, and asyncio waits for a minute
            create_server = partial(loop.create_server, ssl_handshake_timeout=self._limits.clients.header_s)
            loop.create_server = create_server  # type: ignore[method-assign]  # this thread's own loop
            for each in sockets or ():
                if isinstance(each, _Listener):
                    each.limit_handshakes(self._limits.accepted_at_once, self._socket_numbers_after_handshake)
        await super().startup(sockets=sockets)
        for listener in sockets or ():
            listener.listen(self._limits.queued)
        self.is_up.set()

    def _socket_numbers_after_handshake(self) -> set[int]:
        """Return the sockets of connections whose handshake has ended."""
        connections = list(self.server_state.connections)
        transports = [each.transport for each in connections if isinstance(each, LimitedConnection)]
        found = (each.get_extra_info("socket") for each in transports)
        return {each.fileno() for each in found if each is not None}  # one that ends has none


class _Listener(socket.socket):
    """A listening socket that bounds the TLS handshakes in progress, which `ConnectionLimits` do not count."""

    _most: int | None = None

    def limit_handshakes(self, most: int, sockets_after_handshake: Callable[[], set[int]]) -> None:
        """Let *most* handshakes be in progress. *sockets_after_handshake* returns those that have ended."""
        self._most, self._done, self._begun = most, sockets_after_handshake, list[socket.socket]()

    def accept(self) -> tuple[socket.socket, Any]:
        accepted, address = super().accept()
        if self._most is not None:
            done = self._done()
            self._begun = [each for each in self._begun if each.fileno() >= 0 and each.fileno() not in done]
            self._begun.append(accepted)
            if len(self._begun) > self._most:
                with suppress(OSError):  # the client has gone
                    self._begun.pop(0).shutdown(socket.SHUT_RDWR)
        return accepted, address


def _open_listener(host: str, port: int, address_error: Callable[[OSError], ConfigError]) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family)
    except OSError as error:
        raise address_error(error) from error
    # With the protocol named, because asyncio sets TCP_NODELAY only on such sockets.
    return _Listener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=bound.detach())
