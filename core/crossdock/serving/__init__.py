"""Shared by the HTTP servers of this project: limits of connections and memory, unambiguous framing, host names."""

from crossdock.serving.body_budget import BodyBudget, HeldBody, OverBudgetError
from crossdock.serving.guarded_connections import ConnectionLimits, GuardedConnection
from crossdock.serving.host_names import ServerNames
from crossdock.serving.problem_responses import problem
from crossdock.serving.served_thread import serve_in_thread
from crossdock.serving.uvicorn_config import config

__all__ = [
    "BodyBudget",
    "ConnectionLimits",
    "GuardedConnection",
    "HeldBody",
    "OverBudgetError",
    "ServerNames",
    "config",
    "problem",
    "serve_in_thread",
]
