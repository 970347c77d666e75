"""Where machines ask how the scheduler is: alive, ready, and in numbers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from crossdock import serving
from crossdock.errors import ConfigError
from crossdock.observability.exposition import MEDIA_TYPE, exposition
from crossdock.observability.metrics import Metrics
from crossdock.serving import ConnectionLimits, ServerNames, problem

__all__ = ["Metrics", "app", "serve"]

_STARTS_WITHIN_S, _STOPS_WITHIN_S = 10.0, 1
# Its connections are open files of the scheduler's process, which a run may need under a low `ulimit -n`. asyncio
# accepts as many as its backlog at once, before the first is counted; others wait in the kernel's queue at no cost.
_LIMITS = ConnectionLimits(header_s=5.0, body_s=5.0, answer_s=5.0, connections=16)
_ACCEPTED_AT_ONCE, _QUEUED = 8, 128


def app(metrics: Metrics) -> Starlette:
    """``/healthz``, ``/readyz`` and ``/metrics``, to be read and nothing else."""

    def sentence(ask: Callable[[], tuple[bool, str]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(_: Request) -> Response:
            well, text = ask()
            return _answer(f"{text}\n".encode(), 200 if well else 503, "text/plain; charset=utf-8")

        return answer

    async def exposed(_: Request) -> Response:
        return _answer(exposition(metrics.families()), 200, MEDIA_TYPE)

    served = Starlette(
        routes=[
            Route("/healthz", sentence(metrics.alive), methods=["GET"]),
            Route("/readyz", sentence(metrics.ready), methods=["GET"]),
            Route("/metrics", exposed, methods=["GET"]),
        ]
    )
    served.router.redirect_slashes = False
    return served


def _answer(body: bytes, status: int, media_type: str) -> Response:
    headers = {"content-type": media_type, "cache-control": "no-store", "x-content-type-options": "nosniff"}
    return Response(body, status, headers)


@contextmanager
def serve(
    metrics: Metrics, host: str = "127.0.0.1", port: int = 0, *, allowed_hosts: Iterable[str] = ()
) -> Iterator[str]:
    """Answer in a thread while the block lasts; gives the base address.

    Nobody has to show who they are: beyond this machine, leave it to a network that only the right ones reach.

    Args:
        host: An IP address or a name of this machine; ``0.0.0.0`` for all of its addresses.
        port: 0 for a free one.
        allowed_hosts: Names by which it may be asked besides those of this machine, as `ServerNames` takes them.

    Raises:
        ConfigError: If nothing can listen there, or one of *allowed_hosts* does not name a host.
    """
    names = ServerNames(allowed_hosts, "crossdock schedule")
    with _listener(host, port) as listener:
        server = _Server(_named(app(metrics), names))
        thread = threading.Thread(target=server.run, args=([listener],), name="health", daemon=True)
        thread.start()
        try:
            if not server.up.wait(_STARTS_WITHIN_S):
                raise RuntimeError(f"the health server did not start within {_STARTS_WITHIN_S:.0f} s")
            address, taken = listener.getsockname()[:2]
            yield f"http://[{address}]:{taken}" if ":" in address else f"http://{address}:{taken}"
        finally:
            server.should_exit = True
            thread.join()


def _named(served: ASGIApp, names: ServerNames) -> ASGIApp:
    """Answers 403 to who asks by another name, or from a page of another site."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        wrong = names.refusal(scope)
        await (problem(403, wrong) if wrong else served)(scope, receive, send)

    return checked


class _Server(uvicorn.Server):
    """uvicorn, telling when it is up."""

    def __init__(self, served: ASGIApp) -> None:
        super().__init__(
            serving.config(served, _LIMITS, backlog=_ACCEPTED_AT_ONCE, timeout_graceful_shutdown=_STOPS_WITHIN_S)
        )
        self.up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        for listener in sockets or ():
            listener.listen(_QUEUED)
        self.up.set()


def _listener(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        hint = "Stop what listens there, or give another port."
        raise ConfigError(f"health cannot be served: {error.strerror}", where=f"{host}:{port}", hint=hint) from error
