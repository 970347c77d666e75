"""Shared parts of the project's HTTP servers: limits of connections and memory, unambiguous framing, host names.

Input: an ASGI application. Output: a server with deadlines. It may import the errors and `crossdock.values`; the
sandbox uses it as well.
"""

from crossdock.values.serving.body_budget import BodyBudget, HeldBody, OverBudgetError
from crossdock.values.serving.connection_limits import ConnectionLimits, LimitedConnection
from crossdock.values.serving.host_and_origin_checks import ServerNames, is_cross_site_request
from crossdock.values.serving.problem_responses import problem_response
from crossdock.values.serving.served_thread import ServerLimits, serve_in_thread
from crossdock.values.serving.uvicorn_server import StoppableServer, make_uvicorn_config

__all__ = [
    "BodyBudget",
    "ConnectionLimits",
    "HeldBody",
    "LimitedConnection",
    "OverBudgetError",
    "ServerLimits",
    "ServerNames",
    "StoppableServer",
    "is_cross_site_request",
    "make_uvicorn_config",
    "problem_response",
    "serve_in_thread",
]
