"""Configuration of uvicorn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from crossdock.values.serving.guarded_connections import ConnectionLimits, GuardedConnection
from crossdock.values.serving.problem_responses import problem_response


def make_uvicorn_config(
    app: ASGIApp,
    limits: ConnectionLimits,
    protocol: type[GuardedConnection] = GuardedConnection,
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
        await (_framing_problem(scope) or app)(scope, receive, send)

    return checked


def _framing_problem(scope: Scope) -> ASGIApp | None:
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
