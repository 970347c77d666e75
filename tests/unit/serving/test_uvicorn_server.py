"""Configuration of uvicorn."""

from __future__ import annotations

from starlette.applications import Starlette

from crossdock.values.serving import ConnectionLimits, LimitedConnection, make_uvicorn_config


def test_each_server_has_its_own_limits() -> None:
    """They belong to the connections of one server, not to the shared class."""
    one, other = (make_uvicorn_config(Starlette(), ConnectionLimits(connections=count), backlog=7) for count in (1, 2))
    for configured, count in ((one, 1), (other, 2)):
        assert isinstance(configured.http, type)
        assert issubclass(configured.http, LimitedConnection)
        assert configured.http.limits.connections == count
    assert not hasattr(LimitedConnection, "limits")
    assert (one.backlog, one.access_log, one.server_header) == (7, False, False)
