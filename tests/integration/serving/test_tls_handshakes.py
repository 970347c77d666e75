"""A server with TLS: connections that begin no handshake are few, and large answers arrive."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest
import trustme
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from tests.waiting import eventually

from crossdock.errors import ConfigError
from crossdock.values.serving import ConnectionLimits, ServerLimits, serve_in_thread

CLIENTS = ConnectionLimits(header_s=60.0, body_s=60.0, answer_s=60.0, connections=64)
LIMITS = ServerLimits(clients=CLIENTS, accepted_at_once=16, queued=512, stops_within_s=1)
LARGE = b"0123456789abcdef" * (1 << 17)


async def large(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(LARGE)(scope, receive, send)


def refused(error: OSError) -> ConfigError:
    raise AssertionError(error)


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    authority = trustme.CA()
    context, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(trusting)
    with (
        serve_in_thread(large, LIMITS, "127.0.0.1", 0, name="tls", address_error=refused, tls=context) as url,
        httpx.Client(base_url=url, verify=trusting, timeout=60) as made,
    ):
        yield made


def test_connections_without_a_handshake_are_few(client: httpx.Client) -> None:
    """Of 300, all but 16 are closed, the oldest first, and a client with a handshake is answered meanwhile."""
    address = (client.base_url.host, client.base_url.port or 0)
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(address)) for _ in range(300)]
        eventually(lambda: len(select.select(silent, [], [], 0)[0]) == 300 - 16)
        assert select.select(silent[:284], [], [], 0)[0] == silent[:284]
        assert client.get("/").content == LARGE
        assert client.get("/").content == LARGE


def test_a_client_that_hangs_up_prevents_no_other(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    """Connections that end at any point of a handshake or after it; each other one is answered, and nothing fails."""
    address = (client.base_url.host, client.base_url.port or 0)
    careless = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    careless.check_hostname, careless.verify_mode = False, ssl.CERT_NONE

    def hang_up(number: int) -> None:
        with socket.create_connection(address, timeout=60) as opened:
            if number % 3:
                with careless.wrap_socket(opened) as secured:
                    assert secured.version()

    with ThreadPoolExecutor(8) as pool:
        assert len([*pool.map(hang_up, range(600))]) == 600
    assert client.get("/").content == LARGE
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
