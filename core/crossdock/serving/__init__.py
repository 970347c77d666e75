"""Shared by the HTTP servers of this project: connection limits, unambiguous framing, host names."""

from crossdock.serving.guarded_connections import ConnectionLimits, GuardedConnection
from crossdock.serving.host_names import ServerNames
from crossdock.serving.problem_responses import problem
from crossdock.serving.served_thread import serve_in_thread
from crossdock.serving.uvicorn_config import config

__all__ = ["ConnectionLimits", "GuardedConnection", "ServerNames", "config", "problem", "serve_in_thread"]
