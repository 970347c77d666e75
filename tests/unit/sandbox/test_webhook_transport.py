from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpcore
import pytest
import trustme
from tests.unit.sandbox.webhook_receiver import Receiver

from crossdock.sandbox import webhook_transport
from crossdock.sandbox.webhook_transport import AttemptOutcome, WebhookTransport

HEADERS = {"webhook-id": "evt_1", "content-type": "application/json"}
BODY = b'{"a":1.50}'


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def post(url: str, *addresses: str, timeout_s: float = 30.0) -> AttemptOutcome:
    """Send one request; with *addresses*, these are what the host is resolved to."""

    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    transport = WebhookTransport(timeout_s, resolve if addresses else None)
    try:
        return asyncio.run(transport.post(url, HEADERS, BODY))
    finally:
        transport.close()


def test_the_body_is_sent_as_it_is(receiver: Receiver) -> None:
    """The receiver gets the same bytes and headers, and any 2xx is a success."""
    receiver.answer = lambda _: 299
    assert post(receiver.url) == AttemptOutcome(299, None)
    (received,) = receiver.received
    assert received.body == BODY
    assert (received.headers["webhook-id"], received.headers["host"]) == ("evt_1", receiver.url[7:-5])


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(receiver: Receiver, status: int) -> None:
    """One request is sent, and the problem says so."""
    receiver.answer = lambda _: status
    assert post(receiver.url) == AttemptOutcome(status, f"response {status}, a redirect is not followed")
    assert len(receiver.received) == 1


@pytest.mark.parametrize("addresses", [("127.0.0.1",), ("8.8.8.8", "127.0.0.1"), ("::ffff:127.0.0.1",), ("10.0.0.1",)])
def test_a_public_name_does_not_reach_this_machine(receiver: Receiver, addresses: tuple[str, ...]) -> None:
    """A name that is resolved to an internal address, if only in part, is refused without a connection."""
    answer = post(f"https://hooks.example.com:{receiver.server_port}/", *addresses)
    assert (answer.status, receiver.received) == (None, [])
    assert answer.problem is not None
    assert answer.problem.startswith("the address is refused")


def test_a_name_is_resolved_once_and_the_connection_uses_that_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that changes its address after the check cannot redirect the connection (DNS rebinding)."""
    resolved: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        resolved.append(host)
        return ["8.8.8.8"] if len(resolved) == 1 else ["127.0.0.1"]

    connected: list[object] = []

    async def connect(_: object, host: str, *more: object) -> None:
        connected.append(host)
        raise httpcore.ConnectError("no network in tests")

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", connect)
    transport = WebhookTransport(30.0, resolve)
    answer = asyncio.run(transport.post("https://hooks.example.com/", HEADERS, BODY))
    transport.close()
    assert (resolved, connected) == (["hooks.example.com"], ["8.8.8.8"])
    assert answer == AttemptOutcome(None, "the receiver cannot be reached")


def test_a_url_is_checked_again_before_it_is_used(receiver: Receiver) -> None:
    """One that was stored by an older version, in a form that is refused now, is not contacted."""
    answer = post(receiver.url.replace("127.0.0.1", "2130706433"))
    assert (answer.status, receiver.received) == (None, [])


def test_a_receiver_that_does_not_answer_is_given_up() -> None:
    """The limit is for the whole attempt."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        answer = post(f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout_s=0.05)
    assert answer == AttemptOutcome(None, "no response within 0.05 s")


def test_a_response_that_is_not_http_is_a_failure() -> None:
    """Nothing that the receiver sent is repeated."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"secret nonsense\r\n\r\n")

        thread = threading.Thread(target=talk)
        thread.start()
        answer = post(f"http://127.0.0.1:{server.getsockname()[1]}/")
        thread.join()
    assert answer == AttemptOutcome(None, "the connection failed before a complete response")


def test_a_certificate_is_verified(receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of an unknown authority is refused before the body is sent; SSL_CERT_FILE adds the authority."""
    authority = trustme.CA()
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    receiver.socket = context.wrap_socket(receiver.socket, server_side=True, do_handshake_on_connect=False)
    url = f"https://localhost:{receiver.server_port}/"
    webhook_transport._tls_context.cache_clear()
    assert post(url, "127.0.0.1") == AttemptOutcome(None, "the receiver's certificate is not valid, or TLS failed")
    assert receiver.received == []
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    webhook_transport._tls_context.cache_clear()
    assert post(url, "127.0.0.1") == AttemptOutcome(200, None)
    webhook_transport._tls_context.cache_clear()
