"""The sandbox over real sockets: hand-written HTTP, restarts, signals."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from crossdock.errors import ConfigError
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.values.serving import ConnectionLimits

CUSTOMERS = "/api/v1/sales/customers"
PROGRAM = """
import sys
from pathlib import Path
from crossdock.sandbox import serve
serve(Path(sys.argv[1]), new_key=sys.argv[2:] == ["new"])
"""


@contextmanager
def process(data_dir: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A sandbox in its own process, and its ready line."""
    command = [sys.executable, "-c", PROGRAM, str(data_dir), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            yield running, json.loads(running.stdout.readline())
        finally:
            running.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path_factory.mktemp("sandbox")) as running:
        yield running


def exchange(server: SandboxServer, text: bytes) -> bytes:
    """Send *text* as it is and read until the server closes."""
    host, port = server.base_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=300) as wire:
        wire.sendall(text)
        chunks = []
        while chunk := wire.recv(65536):
            chunks.append(chunk)
    return b"".join(chunks)


def written(server: SandboxServer, method: str, path: str, body: bytes) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: platform\r\nAuthorization: Bearer {server.api_key}\r\n"
        f"x-tenant-slug: {server.tenant}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body


def made(server: SandboxServer, path: str, body: bytes) -> str:
    answer = exchange(server, written(server, "POST", path, body))
    assert answer.startswith(b"HTTP/1.1 201"), answer
    return str(json.loads(answer.partition(b"\r\n\r\n")[2])["id"])


def test_the_documented_request_byte_by_byte(server: SandboxServer) -> None:
    """The request of the specification, written by hand, is answered with exactly the values that were sent."""
    customer = made(server, CUSTOMERS, b'{"externalId":"raw","name":"n"}')
    product = made(server, "/api/v1/catalog/products", b'{"externalId":"raw","sku":"s","name":"n"}')
    body = (
        f'{{"customerId": "{customer}", "currency": "EUR", "items": [{{"productId": "{product}", "quantity": 3, '
        '"unitPrice": 123456789012345.6789}], "autoPostLedger": true}'
    )
    answer = exchange(server, written(server, "POST", "/api/v1/finance/invoices", body.encode()))
    head, _, stored = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 201")
    assert b'"quantity":3,"unitPrice":123456789012345.6789' in stored
    sent = json.loads(body, parse_float=Decimal)
    assert sent.items() <= json.loads(stored, parse_float=Decimal).items()
    assert f"location: /api/v1/finance/invoices/{json.loads(stored)['id']}".encode() in head.lower()


def test_an_incomplete_request_has_no_effect(server: SandboxServer) -> None:
    """A request whose client disconnects before its body is complete has no effect, and the server keeps running."""
    whole = written(server, "POST", CUSTOMERS, b'{"externalId":"half","name":"n"}')
    host, port = server.base_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=300) as wire:
        wire.sendall(whole[:-5])
    found = exchange(server, written(server, "GET", f"{CUSTOMERS}?externalId=half", b""))
    assert found.endswith(b'{"data":[],"nextCursor":null}')


def test_a_long_body_is_refused_without_cutting_the_connection(server: SandboxServer) -> None:
    """A client that sends megabytes too many still reads its 413."""
    answer = exchange(server, written(server, "POST", CUSTOMERS, b" " * 5_000_000))
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"application/problem+json" in answer


def keys_of(server: SandboxServer) -> int:
    return len(httpx.get(f"{server.base_url}/_sandbox/keys", trust_env=False).json()["data"])


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Host: rebound.example", b"403"),
        (b"Host: localhost", b"403"),
        (b"Host: 127.0.0.1:%d\r\nOrigin: http://evil.example", b"403"),
        (b"Host: 127.0.0.1:%d\r\nOrigin: http://127.0.0.1:%d\r\nContent-Type: text/plain", b"415"),
        (b"Host: 127.0.0.1:%d\r\nOrigin: http://127.0.0.1:%d", b"201"),
        (b"Host: localhost:%d", b"201"),
    ],
)
def test_a_page_of_another_site_creates_no_key(server: SandboxServer, head: bytes, status: bytes) -> None:
    """Requests as a browser sends them, with a name rebound to this machine or with the site's origin."""
    before = keys_of(server)
    named = head.replace(b"%d", server.base_url.rpartition(":")[2].encode())
    answer = exchange(
        server, b"POST /_sandbox/keys HTTP/1.1\r\n" + named + b"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    )
    assert answer.split(b" ", 2)[1] == status
    assert (b"application/problem+json" in answer) == (status != b"201")
    assert keys_of(server) == before + (status == b"201")


def test_the_command_allows_a_host(tmp_path: Path) -> None:
    """``crossdock sandbox --allow-host`` allows that name for the sandbox's own endpoints."""
    command = [sys.executable, "-m", "crossdock", "sandbox", "--data", str(tmp_path), "--allow-host", "sandbox.example"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            url = json.loads(running.stdout.readline())["base_url"] + "/_sandbox/effects"
            for host, status in {"sandbox.example": 200, "rebound.example": 403}.items():
                assert httpx.get(url, headers={"host": host}, trust_env=False).status_code == status
        finally:
            running.kill()


@pytest.mark.parametrize("forwarded_for", ["192.0.2.7", "unknown", "", ",", "127.0.0.1, 192.0.2.7"])
def test_a_proxy_on_this_machine_does_not_forward_access(server: SandboxServer, forwarded_for: str) -> None:
    """With X-Forwarded-For the client is another machine, or is unknown, and gets 403."""
    answer = httpx.get(
        f"{server.base_url}/_sandbox/effects", headers={"x-forwarded-for": forwarded_for}, trust_env=False
    )
    assert answer.status_code == (403 if forwarded_for.strip(",") else 200)


def test_http_1_0_without_a_host_creates_no_key(server: SandboxServer) -> None:
    """A request without Host is refused."""
    answer = exchange(server, b"POST /_sandbox/keys HTTP/1.0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403")


def test_a_smuggled_request_is_not_carried_out(server: SandboxServer) -> None:
    """With Content-Length and Transfer-Encoding a request is 400, and the request in its body is not carried out."""
    before = keys_of(server)
    host = server.base_url.removeprefix("http://").encode()
    smuggled = b"POST /_sandbox/keys HTTP/1.1\r\nHost: " + host + b"\r\nContent-Length: 0\r\n\r\n"
    head = b"POST /api/v1/x HTTP/1.1\r\nHost: " + host + b"\r\nTransfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n"
    body = b"0\r\n\r\n" + smuggled
    assert exchange(server, head % len(body) + body).startswith(b"HTTP/1.1 400")
    assert keys_of(server) == before


@pytest.mark.parametrize(
    "half", [b"GET /api HTTP/1.1\r\nHost: ", b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{"]
)
def test_an_incomplete_request_times_out(tmp_path: Path, half: bytes) -> None:
    """Its connection ends with 408 within the sandbox's limits."""
    soon = ConnectionLimits(header_s=0.2, body_s=0.2)
    with SandboxServer(tmp_path, SandboxSettings(connection_limits=soon)) as impatient:
        assert exchange(impatient, half).startswith(b"HTTP/1.1 408")


def test_data_keys_and_port_survive_a_restart(tmp_path: Path) -> None:
    """The same directory serves the same data at the same address, and the first key still works."""
    with SandboxServer(tmp_path) as first:
        name = made(first, CUSTOMERS, b'{"externalId":"c","name":"n"}')
    with SandboxServer(tmp_path) as second:
        headers = {"Authorization": f"Bearer {first.api_key}", "x-tenant-slug": first.tenant}
        assert second.base_url == first.base_url
        assert httpx.get(f"{second.base_url}{CUSTOMERS}/{name}", headers=headers).json()["name"] == "n"
        assert len(httpx.get(f"{second.base_url}/_sandbox/effects").json()["data"]) == 1


def test_a_taken_port_is_an_error(tmp_path: Path, server: SandboxServer) -> None:
    """The error names the address and what to do."""
    port = int(server.base_url.rpartition(":")[2])
    with pytest.raises(ConfigError, match=f"127.0.0.1:{port}.*cannot listen"), SandboxServer(tmp_path, port=port):
        pytest.fail("two sandboxes listen on one port")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_process_prints_a_ready_line_and_exits_on_a_signal(tmp_path: Path, ending: signal.Signals) -> None:
    """One ready line with the key at the first start, and exit code 0 on SIGINT and SIGTERM."""
    with process(tmp_path) as (running, facts):
        assert set(facts) == {"base_url", "tenant", "api_key"}
        headers = {"Authorization": f"Bearer {facts['api_key']}", "x-tenant-slug": facts["tenant"]}
        assert httpx.get(facts["base_url"] + CUSTOMERS, headers=headers).status_code == 200
        running.send_signal(ending)
        assert running.wait(10) == 0
        assert running.stdout is not None
        assert running.stdout.read() == ""


@pytest.mark.nightly
def test_a_later_start_creates_a_key_only_on_request(tmp_path: Path) -> None:
    """The first start prints a key, later ones only with new_key."""
    with process(tmp_path) as (_, first):
        assert first["api_key"]
    with process(tmp_path) as (_, second):
        assert second == {**first, "api_key": None}
    with process(tmp_path, "new") as (_, third):
        assert third["api_key"] not in {None, first["api_key"]}


def test_one_folder_has_one_sandbox(tmp_path: Path) -> None:
    """A second sandbox on the same folder is refused, and so is a folder that cannot be written."""
    second = SandboxServer(tmp_path / "data")
    with SandboxServer(tmp_path / "data"), pytest.raises(ConfigError, match="another sandbox is using this folder"):
        second.__enter__()
    with second:
        assert second.api_key
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot use this folder"), SandboxServer(tmp_path / "file"):
        pass
