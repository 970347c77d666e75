"""The scheduler's HTTP server for monitoring: liveness, readiness and metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from crossdock.errors import ConfigError
from crossdock.services.observability.health_and_metrics import Metrics
from crossdock.values.serving import AllowedHostNames, ConnectionLimits, ServerLimits, problem_response, serve_in_thread

# Connections are open files of the scheduler's process, which runs may need under a low `ulimit -n`. asyncio accepts
# up to its backlog at once before the first is counted; the others wait in the kernel's queue.
_CLIENTS = ConnectionLimits(header_s=5.0, body_s=5.0, answer_s=5.0, connections=16)
_LIMITS = ServerLimits(clients=_CLIENTS, accepted_at_once=8, queued=128, stops_within_s=1)


def make_monitoring_app(metrics: Metrics) -> Starlette:
    def checked(check: Callable[[], tuple[bool, str]]) -> Callable[[Request], Awaitable[Response]]:
        async def respond(_: Request) -> Response:
            passed, text = check()
            return _response(f"{text}\n".encode(), 200 if passed else 503, "text/plain; charset=utf-8")

        return respond

    async def exposition(_: Request) -> Response:
        body, content_type = metrics.prometheus_exposition()
        return _response(body, 200, content_type)

    served = Starlette(
        routes=[
            Route("/healthz", checked(metrics.liveness), methods=["GET"]),
            Route("/readyz", checked(metrics.readiness), methods=["GET"]),
            Route("/metrics", exposition, methods=["GET"]),
        ]
    )
    served.router.redirect_slashes = False
    return served


def _response(body: bytes, status: int, content_type: str) -> Response:
    headers = {"content-type": content_type, "cache-control": "no-store", "x-content-type-options": "nosniff"}
    return Response(body, status, headers)


@contextmanager
def serve_monitoring_in_thread(
    metrics: Metrics, host: str = "127.0.0.1", port: int = 0, *, allowed_hosts: Iterable[str] = ()
) -> Iterator[str]:
    """Serve the endpoints from a thread and yield the base address. *allowed_hosts* are as in `AllowedHostNames`.

    There is no authentication: beyond this machine, restrict access by the network.
    """
    names = AllowedHostNames(allowed_hosts, "crossdock schedule")

    def refused(error: OSError) -> ConfigError:
        hint = "Stop the process that listens there, or use another port."
        return ConfigError(
            f"cannot serve the health endpoints: {error.strerror}",
            where=f"{host}:{port}",
            hint=hint,
            code="port_unavailable",
        )

    guarded = _refuse_other_hosts(make_monitoring_app(metrics), names)
    with serve_in_thread(guarded, _LIMITS, host, port, name="health", address_error=refused) as base_url:
        yield base_url


def _refuse_other_hosts(served: ASGIApp, names: AllowedHostNames) -> ASGIApp:
    """Answer 403 to requests for another host or from a page of another site."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        refusal = names.refusal_reason(scope)
        await (problem_response(403, refusal) if refusal else served)(scope, receive, send)

    return guarded
