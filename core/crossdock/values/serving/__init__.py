"""Shared parts of the project's HTTP servers: limits of connections and memory, unambiguous framing, host names.

Input: an ASGI application. Output: a server with deadlines. It may import the errors and `crossdock.values`; the
sandbox uses it as well.
"""

from crossdock.values.serving.cross_site_protection import AllowedHostNames, is_cross_site_request
from crossdock.values.serving.http_server import (
    ConnectionLimits,
    LimitedConnection,
    ServerLimits,
    StoppableServer,
    make_uvicorn_config,
    problem_response,
    serve_in_thread,
)
from crossdock.values.serving.request_body_limits import BodyBudget, HeldBody, OverBudgetError

__all__ = [
    "AllowedHostNames",
    "BodyBudget",
    "ConnectionLimits",
    "HeldBody",
    "LimitedConnection",
    "OverBudgetError",
    "ServerLimits",
    "StoppableServer",
    "is_cross_site_request",
    "make_uvicorn_config",
    "problem_response",
    "serve_in_thread",
]
