"""What the HTTP servers of this project share: limits of connections, unambiguous framing, and the server's names."""

from crossdock.serving.config import config
from crossdock.serving.connections import ConnectionLimits, GuardedConnection
from crossdock.serving.names import ServerNames
from crossdock.serving.problems import problem

__all__ = ["ConnectionLimits", "GuardedConnection", "ServerNames", "config", "problem"]
