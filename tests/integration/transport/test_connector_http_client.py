"""The httpx client of connectors against servers on loopback."""

from __future__ import annotations

import gc
import gzip
import logging
import re
import socket
import socketserver
import ssl
import threading
import weakref
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpcore
import httpx
import pytest
import trustme
from tests.servers import served

from crossdock.errors import UnavailableError
from crossdock.reading.transport.connector_http_client import (
    AnswerLimits,
    httpx_errors_as_unavailable,
    make_httpx_client_with_limits,
)
from crossdock.reading.transport.failure_sentences import AMBIGUOUS, NOT_SENT
from crossdock.reading.transport.http_answers_and_errors import TooLargeError, UnreadableError
from crossdock.reading.transport.httpcore_client import HttpClient
from crossdock.reading.transport.proxy_and_tls_settings import HttpConnection

CANARY = "canary-0123456789"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Server(socketserver.ThreadingTCPServer):
    """Answers one request per connection with the next of *responses*.

    With a *drip* it then sends that, until the client leaves.
    """

    daemon_threads = True

    def __init__(self, *responses: bytes, drip: bytes | None = None, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.responses, self.drip = list(responses), drip
        self.requests: list[bytes] = []
        self.client_left = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(socketserver.BaseRequestHandler):
    server: Server

    def handle(self) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            request += self.request.recv(65_536)
        head, _, body = request.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: ([0-9]+)", head.lower())
        while length and len(body) < int(length[1]):
            body += self.request.recv(65_536)
        request = head + b"\r\n\r\n" + body
        self.server.requests.append(request)
        with suppress(OSError):
            self.request.sendall(self.server.responses.pop(0))
            self.request.settimeout(0.005)
            while self.server.drip is not None and self._is_connected():
                self.request.sendall(self.server.drip)
        self.server.client_left.set()

    def _is_connected(self) -> bool:
        try:
            return bool(self.request.recv(65_536))
        except TimeoutError:
            return True


@contextmanager
def client_of(server: Server, **options: object) -> Iterator[httpx.Client]:
    with served(server), make_httpx_client_with_limits(server.url, **options) as client:  # type: ignore[arg-type]  # per test
        yield client


def test_a_request_is_sent_and_its_response_read() -> None:
    """Headers, parameters and body arrive; repeated header lines stay apart."""
    head = b"HTTP/1.1 201 Created\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 2\r\n\r\nok"
    server = Server(head)
    with client_of(server, headers={"x-key": "k"}) as client:
        response = client.post("/a b", params={"q": "ä"}, json={"n": 1})
    assert (response.status_code, response.text) == (201, "ok")
    assert response.headers.get_list("set-cookie") == ["a=1", "b=2"]
    (request,) = server.requests
    assert request.startswith(b"POST /a%20b?q=%C3%A4 HTTP/1.1\r\n")
    assert request.endswith(b'\r\n\r\n{"n":1}')
    assert b"\r\nx-key: k\r\n" in request.lower()
    assert b"\r\naccept-encoding: gzip\r\n" in request.lower()


def test_a_response_is_freed_as_soon_as_nothing_uses_it() -> None:
    """Commands collect garbage rarely, so a list's pages must not wait for that."""
    gc.disable()
    try:
        with client_of(Server(OK)) as client:
            response = weakref.ref(client.get("/list"))
        assert response() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("response", "drip"),
    [(b"", b""), (b"HTTP/1.1 200 OK\r\n", b"x"), (b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n", b"x")],
    ids=["silent", "dripping header", "dripping body"],
)
def test_one_deadline_bounds_the_whole_request(response: bytes, drip: bytes) -> None:
    """However slowly bytes arrive, the request fails and the connection is closed."""
    server = Server(response, drip=drip)
    with client_of(server, limits=AnswerLimits(total_timeout_s=0.2)) as client:
        with pytest.raises(httpx.ReadTimeout) as failed:
            client.get("/")
        assert server.client_left.wait(30)
    assert str(failed.value) == "request failed: timed out"


@pytest.mark.parametrize(
    ("head", "body", "error", "message"),
    [
        pytest.param(b"", b"x" * 1001, TooLargeError, "more than 1,000 bytes", id="large"),
        pytest.param(b"content-encoding: gzip\r\n", gzip.compress(b"\0" * 10**7), TooLargeError,
                     "more than 1,000 bytes", id="gzip bomb"),
        pytest.param(b"content-encoding: gzip\r\n", CANARY.encode(), httpx.DecodingError,
                     "compressed response is damaged", id="not gzip"),
        pytest.param(b"content-encoding: gzip\r\n", gzip.compress(b"x" * 99)[:-9], httpx.RemoteProtocolError,
                     "incomplete", id="cut gzip"),
        pytest.param(b"content-encoding: br\r\n", b"x", UnreadableError,
                     "encoding is not supported", id="brotli"),
    ],
)  # fmt: skip
def test_a_response_beyond_the_limits_is_an_error(
    head: bytes, body: bytes, error: type[Exception], message: str
) -> None:
    """Sizes count before and after decompression; no text of the server is quoted."""
    server = Server(b"HTTP/1.1 200 OK\r\n%scontent-length: %d\r\n\r\n%s" % (head, len(body), body))
    with (
        client_of(server, limits=AnswerLimits(max_bytes=1000)) as client,
        pytest.raises(error, match=message) as failed,
    ):
        client.get("/")
    assert CANARY not in str(failed.value)


def test_gzip_is_decompressed_once() -> None:
    """The response does not claim to be compressed any more."""
    body = gzip.compress(b'{"a": 1}')
    server = Server(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
    with client_of(server) as client:
        response = client.get("/")
    assert (response.json(), "content-encoding" in response.headers) == ({"a": 1}, False)


def test_redirects_are_not_followed() -> None:
    """A redirect is the response."""
    with served(Server(OK)) as elsewhere:
        server = Server(b"HTTP/1.1 302 Found\r\nlocation: %s\r\ncontent-length: 0\r\n\r\n" % elsewhere.url.encode())
        with client_of(server) as client:
            assert client.get("/").status_code == 302
        assert elsewhere.requests == []


def test_the_environment_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither proxies nor the passwords of a .netrc file are used."""
    (tmp_path / "netrc").write_text(f"default login u password {CANARY}\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with served(Server(OK)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        server = Server(OK)
        with client_of(server) as client:
            assert client.get("/").text == "ok"
        assert proxy.requests == []
    assert b"authorization" not in server.requests[0].lower()


class TokenAuth(httpx.Auth):
    """Gets a token with a request of its own after the first 401."""

    requires_response_body = True

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        response = yield request
        if response.status_code == 401:
            token = yield httpx.Request("POST", request.url.join("/token"), content=b"grant")
            request.headers["authorization"] = f"Bearer {token.text}"
            yield request


def test_an_auth_flow_may_send_requests() -> None:
    """Each of them has the same limits; the hook sees each as it is sent."""
    seen: list[str | None] = []
    responses = (b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n", OK, OK)
    server = Server(*(response.replace(b"\r\n", b"\r\nconnection: close\r\n", 1) for response in responses))
    hook = lambda request: seen.append(request.headers.get("authorization"))  # noqa: E731
    with client_of(server, auth=TokenAuth(), on_request=hook) as client:
        assert client.get("/data").status_code == 200
    assert [request.split(b" ")[1] for request in server.requests] == [b"/data", b"/token", b"/data"]
    assert seen == [None, None, "Bearer ok"]


def test_https_verifies_the_certificate(tmp_path: Path) -> None:
    """With `ca_file` only its certificates are trusted."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    server = Server(OK, tls=context)
    with served(server):
        url = server.url.replace("http:", "https:")
        with (
            make_httpx_client_with_limits(url) as client,
            pytest.raises(httpx.ConnectError, match="certificate is not trusted"),
        ):
            client.get("/")
        with make_httpx_client_with_limits(url, connection=HttpConnection(ca_file=ca_file)) as client:
            assert client.get("/").text == "ok"
    assert len(server.requests) == 1


def test_a_refused_connection_is_a_connect_error() -> None:
    """The sentence is that of the operating system."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with (
        make_httpx_client_with_limits(f"http://127.0.0.1:{port}") as client,
        pytest.raises(httpx.ConnectError) as failed,
    ):
        client.get("/")
    assert str(failed.value) == "cannot be reached: connection refused"
    assert failed.value.request.url.port == port


@pytest.mark.parametrize("error", [*NOT_SENT, *AMBIGUOUS], ids=lambda error: error.__name__)
def test_every_failure_becomes_an_exception_of_httpx(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is ours, and it has the name of the one of httpcore where httpx has the same."""

    def fail(*_: object, **__: object) -> None:
        raise error(CANARY)

    monkeypatch.setattr(HttpClient, "send_and_read_response", fail)
    with make_httpx_client_with_limits("http://127.0.0.1") as client, pytest.raises(httpx.RequestError) as failed:
        client.get("/")
    assert CANARY not in str(failed.value)
    if error.__module__.startswith("httpcore") and error is not httpcore.ConnectionNotAvailable:
        assert type(failed.value).__name__ == error.__name__


def test_a_mock_transport_replaces_the_network() -> None:
    """As connector authors know it from httpx."""
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json={"path": request.url.path}))
    with make_httpx_client_with_limits("http://shop.example", transport=transport) as client:
        assert client.get("/orders").json() == {"path": "/orders"}


def test_threads_may_share_a_client() -> None:
    """Their requests are sent one after the other."""
    server = Server(*[OK] * 8)
    statuses: list[int] = []
    with client_of(server, headers={"connection": "close"}) as client:
        threads = [threading.Thread(target=lambda: statuses.append(client.get("/").status_code)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert statuses == [200] * 8


def test_addresses_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """They may contain credentials."""
    caplog.set_level(logging.DEBUG)
    server = Server(OK)
    with client_of(server) as client:
        client.get("/", params={"api_key": CANARY})
    assert CANARY.encode() in server.requests[0]
    assert CANARY not in caplog.text


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (httpx.ConnectError("cannot be reached: connection refused"), "cannot be reached: connection refused"),
        (httpx.RemoteProtocolError(f"Invalid URL in location header: {CANARY}"), "request failed: RemoteProtocolError"),
        (httpx.InvalidURL(CANARY), "the address is not valid"),
    ],
)
def test_exceptions_of_httpx_become_unavailable_errors(error: Exception, message: str) -> None:
    """Only texts of our transport are kept."""
    with pytest.raises(UnavailableError) as failed, httpx_errors_as_unavailable():
        raise error
    assert failed.value.message == message
