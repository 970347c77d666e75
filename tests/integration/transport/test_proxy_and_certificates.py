"""Proxies, certificates and the environment, against real servers on loopback."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from tests.servers import served
from tests.tls_servers import OK, ConnectProxy, HttpsServer, client_certificate, written

from crossdock.errors import ConfigError
from crossdock.platform.platform_config import Profile
from crossdock.reading.sources.run_context import SourceContext
from crossdock.reading.transport.connector_http_client import make_httpx_client_with_limits
from crossdock.reading.transport.http_answers_and_errors import AmbiguousError, NotSentError
from crossdock.reading.transport.httpcore_client import HttpClient
from crossdock.reading.transport.proxy_and_tls_settings import HttpConnection
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.sources import Api, ApiClient, LoginAuth
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.config_base_types import Secret
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.writing.targets.platform_target import PlatformTarget

VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def clients() -> trustme.CA:
    """Issues client certificates."""
    return trustme.CA()


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def server(authority: trustme.CA) -> Iterator[HttpsServer]:
    with served(HttpsServer(authority)) as started:
        yield started


@pytest.fixture
def proxy() -> Iterator[ConnectProxy]:
    with served(ConnectProxy()) as started:
        yield started


@pytest.fixture
def ca_file(tmp_path: Path, authority: trustme.CA) -> Path:
    return written(tmp_path, authority)


def get(url: str, **connection: Any) -> int:
    """The status of an answer to the client of delivery."""
    with closing(HttpClient(url, headers={}, connection=HttpConnection(**connection))) as client:
        return client.send("GET", "/").status


def test_https_goes_through_the_proxy(
    server: HttpsServer, proxy: ConnectProxy, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy gets its own credentials and encrypted bytes; the connection is kept for the next request."""
    monkeypatch.setenv("PROXY_USER", "sync")
    monkeypatch.setenv("PROXY_PASSWORD", "pässword")
    user, password = Secret("env:PROXY_USER", Path()), Secret("env:PROXY_PASSWORD", Path())
    login = HttpConnection(proxy=proxy.address, proxy_user=user, proxy_password=password, ca_file=ca_file)
    with closing(HttpClient(server.url, headers={"x-key": "canary"}, connection=login)) as client:
        assert [client.send("GET", "/a").status, client.send("POST", "/b").status] == [200, 200]
    with make_httpx_client_with_limits(server.url, headers={"x-key": "canary"}, connection=login) as connector:
        assert connector.get("/c").status_code == 200
    assert [head.split(" ")[1] for head in proxy.heads] == [f"127.0.0.1:{server.port}"] * 2
    assert all("Proxy-Authorization: Basic c3luYzpww6Rzc3dvcmQ=" in head for head in proxy.heads)
    assert b"canary" not in proxy.carried
    assert [request.split(" ")[1] for request in server.requests] == ["/a", "/b", "/c"]
    assert "proxy-authorization" not in str(server.requests).lower()


def test_a_proxy_may_be_reached_by_https(server: HttpsServer, authority: trustme.CA, ca_file: Path) -> None:
    """Its certificate is verified like that of a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with served(ConnectProxy(tls=context)) as proxy:
        assert get(server.url, proxy=proxy.address, ca_file=ca_file) == 200
        assert len(proxy.heads) == 1
        with pytest.raises(NotSentError, match="certificate is not trusted"):
            get(server.url, proxy=proxy.address)


def test_http_to_this_machine_uses_no_proxy(proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing leaves the machine unencrypted, whatever the settings and the environment say."""
    monkeypatch.setenv("HTTP_PROXY", proxy.address)
    monkeypatch.setenv("ALL_PROXY", proxy.address)
    with served(ConnectProxy(OK)) as plain:
        assert get(plain.address, proxy=proxy.address) == 200
        assert get(plain.address, trust_env=True) == 200
    assert proxy.heads == []


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (b"HTTP/1.1 407 canary\r\ncontent-length: 0\r\n\r\n",
         "the proxy refused to connect to the server: HTTP 407; see proxy_user and proxy_password"),
        (b"HTTP/1.1 502 canary\r\ncontent-length: 0\r\n\r\n", "the proxy refused to connect to the server: HTTP 502"),
        (b"", "the proxy did not connect to the server"),
        (b"canary\r\n\r\n", "the proxy did not connect to the server"),
        (b"HTTP/1.1 200 OK\r\n\r\ncanary, and no TLS", "the TLS handshake failed: "),
    ],
    ids=["407", "502", "closed", "not HTTP", "no TLS"],
)  # fmt: skip
def test_a_request_that_the_proxy_does_not_carry_was_not_sent(
    server: HttpsServer, ca_file: Path, refusal: bytes, reason: str
) -> None:
    """It can be sent again safely; the text of the proxy is not shown."""
    with served(ConnectProxy(refusal)) as proxy:
        connection = HttpConnection(proxy=proxy.address, ca_file=ca_file)
        with pytest.raises(NotSentError) as failed:
            get(server.url, proxy=proxy.address, ca_file=ca_file)
        with (
            make_httpx_client_with_limits(server.url, connection=connection) as client,
            pytest.raises(httpx.RequestError) as other,
        ):
            client.get("/")
    assert failed.value.message.startswith(f"cannot be reached: {reason}")
    assert str(other.value) == failed.value.message
    assert "canary" not in str(failed.value)


def test_a_proxy_that_is_down_is_named(server: HttpsServer, ca_file: Path) -> None:
    """It is not mistaken for the server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NotSentError) as failed:
        get(server.url, proxy=f"http://127.0.0.1:{port}", ca_file=ca_file)
    assert failed.value.message == "cannot be reached: the proxy cannot be reached: connection refused"


def test_a_connection_cut_behind_the_proxy_is_ambiguous(
    authority: trustme.CA, proxy: ConnectProxy, ca_file: Path
) -> None:
    """The server has the request, and its answer is lost."""
    with served(HttpsServer(authority, None, b"")) as server, pytest.raises(AmbiguousError):
        get(server.url, proxy=proxy.address, ca_file=ca_file)
    assert len(server.requests) == 1


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_the_environment_counts_only_with_trust_env(
    server: HttpsServer, proxy: ConnectProxy, ca_file: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """`NO_PROXY` lists hosts without a proxy, and does not apply to a proxy of the settings."""
    monkeypatch.setenv(variable, proxy.address.replace("//", "//u%40x:p%3Aw@"))
    assert get(server.url, ca_file=ca_file) == 200
    assert proxy.heads == []
    assert get(server.url, ca_file=ca_file, trust_env=True) == 200
    assert "Proxy-Authorization: Basic dUB4OnA6dw==" in proxy.heads[0]
    monkeypatch.setenv("NO_PROXY", "example.com,127.0.0.1")
    assert get(server.url, ca_file=ca_file, trust_env=True) == 200
    assert len(proxy.heads) == 1
    assert get(server.url, ca_file=ca_file, proxy=proxy.address, trust_env=True) == 200
    assert len(proxy.heads) == 2


def test_certificates_of_the_environment(server: HttpsServer, ca_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`SSL_CERT_FILE` names what is trusted, with `trust_env` and without `ca_file`."""
    monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
    with pytest.raises(NotSentError, match="certificate is not trusted"):
        get(server.url)
    assert get(server.url, trust_env=True) == 200


@pytest.mark.parametrize("address", ["socks5://u:canary@127.0.0.1:1", "http://u:canary@[", "http://u:canary@x/path"])
def test_a_proxy_of_the_environment_is_checked(
    server: HttpsServer, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """The variable is named, and its password is not shown."""
    monkeypatch.setenv("HTTPS_PROXY", address)
    with pytest.raises(ConfigError, match="HTTPS_PROXY or ALL_PROXY is not an address") as refused:
        get(server.url, trust_env=True)
    assert "canary" not in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize("latest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_server_may_require_a_client_certificate(
    authority: trustme.CA, clients: trustme.CA, ca_file: Path, tmp_path: Path, latest: ssl.TLSVersion
) -> None:
    """Without it, or with one of another authority, nothing was sent, and the error names the setting."""
    own, foreign = client_certificate(tmp_path, clients), client_certificate(tmp_path, authority, "foreign.pem")
    with served(HttpsServer(authority, clients, latest=latest)) as server:
        assert get(server.url, ca_file=ca_file, client_certificate=own) == 200
        with pytest.raises(NotSentError, match="client certificate, see client_certificate"):
            get(server.url, ca_file=ca_file)
        with pytest.raises(NotSentError, match="does not accept the client certificate, see client_certificate"):
            get(server.url, ca_file=ca_file, client_certificate=foreign)
        client = make_httpx_client_with_limits(server.url, connection=HttpConnection(ca_file=ca_file))
        with client, pytest.raises(httpx.ConnectError, match="client certificate, see client_certificate"):
            client.get("/")
    assert server.shown == [True]


def test_the_wrong_authority_is_an_error(server: HttpsServer, clients: trustme.CA, tmp_path: Path) -> None:
    """Nothing is sent to a server that another authority vouches for."""
    with pytest.raises(NotSentError, match="certificate is not trusted"):
        get(server.url, ca_file=written(tmp_path, clients, "other.pem"))
    assert server.requests == []


def test_the_platform_and_its_tokens_are_reached_with_the_settings(
    authority: trustme.CA, clients: trustme.CA, tmp_path: Path, proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Token requests and deliveries go through the proxy and show the client certificate."""
    monkeypatch.setenv("CLIENT_SECRET", "s3cret")
    written(tmp_path, authority)
    client_certificate(tmp_path, clients)
    token = b'{"access_token": "T1", "token_type": "Bearer", "expires_in": 600}'
    granted = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(token), token)
    with served(HttpsServer(authority, clients, granted, OK)) as server:
        auth = {"kind": "oauth2_client_credentials", "client_id": "sync", "client_secret": "env:CLIENT_SECRET"}
        http = {"proxy": proxy.address, "ca_file": "ca.pem", "client_certificate": "client.pem"}
        settings = {"base_url": server.url, "tenant": "acme", "auth": auth, "http": http}
        target = PlatformTarget(Profile.model_validate(settings, context={"folder": tmp_path}))
        with closing(target.client()) as client:
            assert target.send(client, "product", target.ping("product")).status == 200
    assert [head.split(" ")[1] for head in proxy.heads] == [f"127.0.0.1:{server.port}"] * 2
    assert [request.split(" ")[1] for request in server.requests] == [
        "/oauth/token",
        "/api/v1/catalog/products?limit=1",
    ]
    assert server.shown == [True, True]


def test_an_api_its_tokens_and_its_files_are_reached_with_the_settings(
    authority: trustme.CA, clients: trustme.CA, tmp_path: Path, proxy: ConnectProxy
) -> None:
    """All go through the proxy; a file on another host is not shown the client certificate."""
    connection = HttpConnection(
        proxy=proxy.address,
        ca_file=written(tmp_path, authority),
        client_certificate=client_certificate(tmp_path, clients),
    )
    token = b'{"token": "T1"}'
    granted = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(token), token)
    run = SourceContext(ManualClock(), SilentProgress(), EmptyIntakeLog(), tmp_path, tmp_path, tmp_path)
    with (
        served(HttpsServer(authority, clients, granted, OK, asks=True)) as server,
        served(HttpsServer(authority, clients, asks=True)) as files,
    ):
        api = Api(
            server.url,
            LoginAuth(f"{server.url}/login", {"user": "sync"}),
            connection=connection,
            download_hosts=(files.url.removeprefix("https://"),),
        )
        with ApiClient(api, run) as client:
            client.get("/items")
            client.download("/export", tmp_path / "own")
            client.download(f"{files.url}/export", tmp_path / "other")
    assert [request.split(" ")[1] for request in server.requests] == ["/login", "/items", "/export"]
    assert (server.shown, files.shown) == ([True] * 3, [False])
    assert {head.split(" ")[1] for head in proxy.heads} == {f"127.0.0.1:{server.port}", f"127.0.0.1:{files.port}"}
