"""An HTTP server in a thread of this process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.types import ASGIApp

from crossdock.errors import ConfigError
from crossdock.values.serving.guarded_connections import ConnectionLimits
from crossdock.values.serving.stoppable_server import StoppableServer
from crossdock.values.serving.uvicorn_config import config

_STARTS_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
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
    refused: Callable[[OSError], ConfigError],
    malformed: Callable[[], None] = lambda: None,
) -> Iterator[str]:
    """Serve *app* and yield the base address. *port* 0 takes a free one, and *host* ``0.0.0.0`` all addresses.

    *refused* makes the error of an address that is not available. *malformed* is called for each request that is not
    HTTP, in the thread of the server.
    """
    with _listener(host, port, refused) as listener:
        server = _Server(app, limits, malformed)
        thread = threading.Thread(target=server.run, args=([listener],), name=name, daemon=True)
        thread.start()
        try:
            if not server.is_up.wait(_STARTS_WITHIN_S):
                raise RuntimeError(f"the server {name!r} did not start within {_STARTS_WITHIN_S:.0f} s")
            address, bound = listener.getsockname()[:2]
            yield f"http://[{address}]:{bound}" if ":" in address else f"http://{address}:{bound}"
        finally:
            server.stop()
            thread.join()


class _Server(StoppableServer):
    def __init__(self, app: ASGIApp, limits: ServerLimits, malformed: Callable[[], None]) -> None:
        backlog, stops_within_s = limits.accepted_at_once, limits.stops_within_s
        made = config(
            app, limits.clients, malformed=malformed, backlog=backlog, timeout_graceful_shutdown=stops_within_s
        )
        super().__init__(made)
        self.is_up, self._queued = threading.Event(), limits.queued

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        for listener in sockets or ():
            listener.listen(self._queued)
        self.is_up.set()


def _listener(host: str, port: int, refused: Callable[[OSError], ConfigError]) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family)
    except OSError as error:
        raise refused(error) from error
    # With the protocol named, because asyncio sets TCP_NODELAY only on such sockets.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=bound.detach())
