"""Configuration of uvicorn."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from crossdock.errors import ConfigError
from crossdock.values.serving import (
    ConnectionLimits,
    LimitedConnection,
    ServerLimits,
    make_uvicorn_config,
    serve_in_thread,
)


def test_each_server_has_its_own_limits() -> None:
    """They belong to the connections of one server, not to the shared class."""
    one, other = (make_uvicorn_config(Starlette(), ConnectionLimits(connections=count), backlog=7) for count in (1, 2))
    for configured, count in ((one, 1), (other, 2)):
        assert isinstance(configured.http, type)
        assert issubclass(configured.http, LimitedConnection)
        assert configured.http.limits.connections == count
    assert not hasattr(LimitedConnection, "limits")
    assert (one.backlog, one.access_log, one.server_header) == (7, False, False)


def test_a_request_that_is_cancelled_at_the_end_leaves_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """The log says that it was cancelled."""
    begun = threading.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await asyncio.Event().wait()

    def refused(error: OSError) -> ConfigError:
        raise AssertionError(error)

    limits = ServerLimits(clients=ConnectionLimits(), accepted_at_once=1, queued=8, stops_within_s=1)
    with serve_in_thread(endless, limits, "127.0.0.1", 0, name="endless", address_error=refused) as url:
        client = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
        client.sendall(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert begun.wait(60)
    client.close()
    assert "Cancel 1 running task" in caplog.text
    assert [record for record in caplog.records if record.exc_info] == []
