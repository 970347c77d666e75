"""Lists of an HTTP API, read from servers on loopback, alone and in whole runs."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import ANY
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.integration.sources import orders_shop
from tests.servers import served
from tests.waiting import eventually

from crossdock.cli.main import main
from crossdock.config.project import connections_and_bound_streams, project
from crossdock.errors import ConfigError, RefusedError, RemoteError, UnauthorizedError, UnavailableError
from crossdock.reading.sources.run_context import SourceContext
from crossdock.runs import sync_and_replay
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.sandbox import SandboxServer
from crossdock.sources import Api, ApiClient, NextUrl
from crossdock.state import StateUrl
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.clock import SystemClock
from crossdock.values.run_progress_and_messages import SilentProgress


class Shop(ThreadingHTTPServer):
    """A paged JSON API on loopback: two items per page, ``Link`` to the next; *answers* replaces the next responses."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.data: dict[str, list[dict[str, Any]]] = {"/products": [], "/orders": []}
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.targets: list[str] = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Shop
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.targets.append(self.path)
        if self.server.answers:
            self._respond(*self.server.answers.pop(0))
            return
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        found = [item for item in self.server.data[parts.path] if item["updated_at"] > query.get("updated_since", "")]
        start = int(query.get("start", 0))
        link = f'<{parts.path}>; rel="first"'
        if len(found) > start + 2:
            following = f"{parts.path}?start={start + 2}&updated_since={query.get('updated_since', '')}"
            link += f', <{following}>; rel="next"'
        self._respond(200, {"link": link}, json.dumps({"items": found[start : start + 2]}).encode())

    def _respond(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def shop() -> Iterator[Shop]:
    with served(Shop()) as server:
        yield server


@contextmanager
def source(base_url: str, **options: Any) -> Iterator[tuple[ApiClient, ManualClock]]:
    clock = ManualClock()
    place = SourceContext(clock, SilentProgress(), EmptyIntakeLog(), Path(), Path(), Path())
    with ApiClient(Api(base_url, **options), place) as opened:
        yield opened, clock


def product(number: int, *, price: float = 2.5, day: int = 1) -> dict[str, Any]:
    return {
        "id": number,
        "sku": f"00{number}",
        "title": f"P{number}",
        "price": price,
        "updated_at": f"2026-11-{day:02}T00:00:00Z",
    }


@pytest.fixture
def config(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state_url: StateUrl) -> Iterator[Path]:
    """A config for the shop and a running sandbox, for each database; the connector is registered by its name."""
    load = connections_and_bound_streams.load_connector
    monkeypatch.setattr(
        connections_and_bound_streams,
        "load_connector",
        lambda name: orders_shop.CONNECTOR if name == "orders_shop" else load(name),
    )
    with SandboxServer(tmp_path / "sandbox") as sandbox:
        monkeypatch.setenv("PLATFORM_KEY", sandbox.api_key)
        monkeypatch.setenv("SHOP_TOKEN", "t0ken")
        path = tmp_path / "c.yaml"
        path.write_text(
            f"platform: {{base_url: {sandbox.base_url}, tenant: {sandbox.tenant},"
            " auth: {kind: api_key, token: env:PLATFORM_KEY}}\n"
            f"state: {state_url.render_as_string(hide_password=False)}\n"
            f"connections:\n  web: {{kind: orders_shop, base_url: {shop.base_url}, token: env:SHOP_TOKEN}}\n"
        )
        run(path, "init")
        yield path


def run(config: Path, *arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["-C", str(config), *arguments])
    return int(ended.value.code or 0)


def synced(config: Path, capsys: pytest.CaptureFixture[str], *streams: str) -> dict[str, Any]:
    capsys.readouterr()
    code = run(config, "sync", "--json", *streams)
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert report["balanced"]
    return report | {"code": code}


def effects(config: Path) -> list[dict[str, Any]]:
    base_url = config.read_text().split("base_url: ")[1].split(",")[0]
    answer = httpx.get(f"{base_url}/_sandbox/effects", params={"limit": 1000}, trust_env=False)
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


def test_pages_become_products(shop: Shop, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three pages become five products; the next run reads from the cursor and sends only what changed."""
    shop.data["/products"] = [product(number) for number in range(5)]
    first = synced(config, capsys, "web.products")
    assert (first["code"], first["requests"]) == (0, 5)
    assert first["streams"]["web.products"]["records"]["created"] == 5
    shop.data["/products"][3] = product(3, price=7.25, day=2)
    shop.data["/products"].append(product(9, day=2))
    second = synced(config, capsys, "web.products")
    assert "updated_since=2026-11-01T00%3A00%3A00Z" in shop.targets[-1]
    records = second["streams"]["web.products"]["records"]
    assert (records["read"], records["created"], records["updated"]) == (2, 1, 1)
    assert synced(config, capsys, "web.products")["requests"] == 0
    assert sorted((effect["operation"], effect["body"]["externalId"]) for effect in effects(config)[5:]) == [
        ("create", "web:9"),
        ("update", "web:3"),
    ]


def test_an_order_waits_for_its_product(shop: Shop, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An order with an unknown product waits in the state and is delivered once the product is."""
    customer = _customer(config)
    line = {"product": 7, "n": 2, "price": 2.5}
    shop.data["/orders"] = [
        {"id": 1, "customer": customer, "updated_at": "2026-11-01T00:00:00Z", "lines": [line]},
    ]
    waiting = synced(config, capsys)
    assert (waiting["code"], waiting["streams"]["web.orders"]["records"]["carried_on"]) == (1, 1)
    shop.data["/products"] = [product(7, day=2)]
    delivered = synced(config, capsys)
    records = delivered["streams"]["web.orders"]["records"]
    assert (delivered["code"], records["carried_over"], records["created"]) == (0, 1, 1)
    assert [effect["resource"] for effect in effects(config)[1:]] == ["product", "order"]


def test_a_run_reports_its_requests_and_keeps_the_rate_limit(
    shop: Shop, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report has the requests of each connection, also of a stream that failed; the next run knows the limit."""
    limit = {"ratelimit-limit": "500", "ratelimit-remaining": "499", "ratelimit-policy": "500;w=10"}
    following = limit | {"link": '</orders?page=2>; rel="next"'}
    empty = b'{"items": []}'
    shop.answers = [(200, following, empty), (429, {"retry-after": "0.01"}, b""), (200, limit, empty)]
    report = synced(config, capsys, "web.orders")
    assert report["code"] == 0
    assert report["apis"] == {"web": {"requests": 3, "throttled": 1, "waited_ms": ANY}}
    loaded = project.load(config)
    with loaded.read_state() as tx:
        kept = tx.buckets.get("api of web")
    assert kept is not None
    assert (kept.estimate.rate_per_s, kept.estimate.burst) == (50.0, 500)
    shop.answers = [(404, {}, b"")]
    report = synced(config, capsys, "web.orders")
    assert (report["code"], report["apis"]["web"]["requests"]) == (3, 1)
    run(config, "show")
    assert "web: 1 API request (0 throttled)\n" in capsys.readouterr().out


def _customer(config: Path) -> str:
    base_url = config.read_text().split("base_url: ")[1].split(",")[0]
    headers = {"authorization": f"Bearer {os.environ['PLATFORM_KEY']}", "x-tenant-slug": "sandbox"}
    body = {"externalId": "c:1", "name": "A customer"}
    answer = httpx.post(f"{base_url}/api/v1/sales/customers", headers=headers, json=body, trust_env=False)
    return str(answer.json()["id"])


def test_a_source_that_fails_leaves_the_cursor(shop: Shop, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the second page is refused, nothing of the first is imported, and the next run reads both."""
    shop.data["/products"] = [product(number) for number in range(4)]
    shop.answers = [
        (200, {"link": '</products?start=2>; rel="next"'}, json.dumps({"items": [product(0)]}).encode()),
        (404, {}, b""),
    ]
    assert synced(config, capsys, "web.products")["code"] == 3
    assert effects(config) == []
    assert synced(config, capsys, "web.products")["streams"]["web.products"]["records"]["created"] == 4


def test_another_api_is_read_from_its_beginning(shop: Shop, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cursor of the test shop would leave out what the live one changed before; a slash at the end is no other."""
    shop.data["/products"] = [product(number, day=9) for number in range(3)]
    assert synced(config, capsys, "web.products")["code"] == 0
    slashed = config.read_text().replace(shop.base_url, f"{shop.base_url}/")
    config.write_text(slashed)
    assert synced(config, capsys, "web.products")["streams"]["web.products"]["records"]["read"] == 0
    with served(Shop()) as live:
        live.data["/products"] = [product(7, day=1)]
        config.write_text(slashed.replace(shop.base_url, live.base_url))
        assert synced(config, capsys, "web.products")["streams"]["web.products"]["records"]["created"] == 1
        assert synced(config, capsys, "web.products")["streams"]["web.products"]["records"]["read"] == 0


def test_temporary_failures_are_retried(shop: Shop) -> None:
    """They cost time, not records."""
    shop.answers = [(503, {}, b""), (429, {}, b""), (503, {"retry-after": "7"}, b"")]
    with source(shop.base_url) as (opened, clock):
        before = clock.monotonic()
        assert [page.body for page in opened.pages("/products", {})] == [{"items": []}]
        assert clock.monotonic() - before >= 7.0


@pytest.mark.parametrize(
    ("headers", "pause_s"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:47 GMT", "date": "Sun, 06 Nov 1994 08:49:37 GMT"}, 10.0),
        ({"retry-after": "9999"}, 900.0),
    ],
)
def test_a_429_is_sent_again_after_the_time_it_asks_for(headers: dict[str, str], pause_s: float) -> None:
    """In seconds, fractions or a date, up to a quarter of an hour."""
    responses = [httpx.Response(429, headers=headers), httpx.Response(200, json={})]
    transport = httpx.MockTransport(lambda _: responses.pop(0))
    with source("https://shop.example", transport=transport) as (opened, clock):
        assert [page.body for page in opened.pages("/items", {})] == [{}]
        assert pause_s <= clock.monotonic() < pause_s + 4.1


@pytest.mark.parametrize(
    ("answers", "error", "message"),
    [
        pytest.param([(401, {}, b"")], UnauthorizedError, "credentials", id="refused"),
        pytest.param([(500, {}, b"")] * 5, UnavailableError, "failed 5 times; last error: HTTP 500", id="down"),
        pytest.param([(200, {}, b"{")], RefusedError, "cannot be read as JSON", id="cut body"),
        pytest.param(
            [(200, {"link": '<http://127.0.0.2/x>; rel="next"'}, b"{}")],
            RefusedError,
            "on another host",
            id="other host",
        ),
        pytest.param([(200, {"link": '</a>; rel="next"'}, b"{}")] * 3, RefusedError, "pagination loop", id="loop"),
        pytest.param(
            [(200, {"link": '<http://[::1>; rel="next"'}, b"{}")], RefusedError, "not a URL", id="invalid address"
        ),
        pytest.param(
            [(200, {"link": "canary"}, b"{}")], RefusedError, "Link header field is malformed", id="malformed link"
        ),
        pytest.param(
            [(200, {"link": f'<?{"canary" * 2000}>; rel="next"'}, b"{}")],
            RefusedError,
            "8,000 characters",
            id="long link",
        ),
        pytest.param([(200, {}, b"[" * 1000)], RefusedError, "nested more than 64", id="depth"),
        pytest.param([(200, {}, b'{"canary":"\0"}')], RefusedError, "NUL", id="NUL"),
    ],
)
def test_each_failure_has_its_error(
    shop: Shop, answers: list[tuple[int, dict[str, str], bytes]], error: type[Exception], message: str
) -> None:
    """It names the address and quotes nothing of the server."""
    shop.answers = answers
    with source(shop.base_url) as (opened, _), pytest.raises(error, match=message) as failed:
        list(opened.pages("/products", {}))
    assert shop.base_url in str(failed.value)
    assert "canary" not in str(failed.value)


@pytest.mark.parametrize(
    ("following", "message"),
    [("http://[::1", "not a URL"), ("//[canary]/", "not a URL"), ("?" + "c" * 8_000, "8,000 characters")],
)
def test_addresses_from_bodies_are_checked(shop: Shop, following: str, message: str) -> None:
    """They are what the server sent."""
    shop.answers = [(200, {}, json.dumps({"next": following}).encode())]
    with source(shop.base_url) as (opened, _), pytest.raises(RefusedError, match=message) as failed:
        list(opened.pages("/products", {}, paginator=NextUrl("/next")))
    assert "canary" not in str(failed.value)


def test_a_secret_among_the_parameters_is_not_shown(shop: Shop) -> None:
    """A server that repeats parameters in its links does not bring them into origins or errors."""
    link = '</products?api_key=canary-1&start=2>; rel="next"'
    shop.answers = [(200, {"link": link}, b"{}"), (200, {"link": link.replace("2", "3")}, b"{}"), (401, {}, b"")]
    with source(shop.base_url) as (opened, _):
        pages = opened.pages("/products", {"api_key": "canary-1", "limit": "2"})
        shown = [next(pages).address, next(pages).address]
        assert shown[1] == f"{shop.base_url}/products?api_key=***&start=2"
        with pytest.raises(UnauthorizedError) as failed:
            next(pages)
    assert "canary-1" in shop.targets[-1]
    assert "canary-1" not in f"{shown} {failed.value}"


@pytest.mark.parametrize("user", ["u:canary-1@", ":canary-1@", "u%3Acanary-1%40"])
def test_a_password_in_the_base_address_is_refused(user: str) -> None:
    """Addresses of pages are shown and stored."""
    with pytest.raises(ConfigError, match="must not hold a user or a password") as refused, source(f"http://{user}h.x"):
        pass
    assert "canary" not in str(refused.value)


def test_a_credential_in_a_link_is_not_shown(shop: Shop) -> None:
    """A server that repeats header values in its links does not bring them into origins or errors."""
    link = '</products?token=canary-token&start=2>; rel="next"'
    shop.answers = [(200, {"link": link}, b"{}"), (404, {}, b"")]
    with source(shop.base_url, headers={"authorization": "Bearer canary-token"}) as (opened, _):
        pages = opened.pages("/products", {})
        next(pages)
        with pytest.raises(RemoteError) as failed:
            next(pages)
    assert "canary-token" in shop.targets[-1]
    assert str(failed.value).startswith(f"{shop.base_url}/products?token=(secret)&start=2: ")


class QueryKey(httpx.Auth):
    """Authorizes by a header and a query parameter."""

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]  # it gets none
        request.headers["x-signature"] = "canary-signature"
        request.url = request.url.copy_merge_params({"key": "canary-parameter"})
        yield request


def test_auth_authorizes_every_page_and_is_not_shown(shop: Shop) -> None:
    """What an `httpx.Auth` adds to a request is redacted where the server repeats it."""
    link = '</products?start=2&seen=canary-parameter,canary-signature>; rel="next"'
    shop.answers = [(200, {"link": link}, b"{}"), (404, {}, b"")]
    with source(shop.base_url, auth=QueryKey()) as (opened, _):
        pages = opened.pages("/products", {"limit": "2"})
        next(pages)
        with pytest.raises(RemoteError) as failed:
            next(pages)
    assert shop.targets[0] == "/products?limit=2&key=canary-parameter"
    assert shop.targets[1].endswith("&key=canary-parameter")
    assert failed.value.where == f"{shop.base_url}/products?start=2&seen=(secret),(secret)"


def test_a_mock_transport_replaces_the_network() -> None:
    """Pages, retries and errors are the same as with a server."""
    responses = [
        httpx.Response(503),
        httpx.Response(200, json={"n": 1}, headers={"link": '<?page=2>; rel="next"'}),
        httpx.Response(200, json={"n": 2}),
    ]
    transport = httpx.MockTransport(lambda _: responses.pop(0))
    with source("https://shop.example/api", transport=transport) as (opened, clock):
        pages = list(opened.pages("/items", {}))
        assert [(page.address, page.body) for page in pages] == [
            ("https://shop.example/api/items", {"n": 1}),
            ("https://shop.example/api/items?page=2", {"n": 2}),
        ]
        assert clock.monotonic() <= 1.0


def test_failures_of_a_transport_are_unavailable_errors() -> None:
    """Only the kind of a foreign exception is shown: its text may quote the server."""

    def fail(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("canary")

    message = "failed 5 times; last error: request failed: ReadError"
    with (
        source("https://shop.example", transport=httpx.MockTransport(fail)) as (opened, _),
        pytest.raises(UnavailableError, match=message) as failed,
    ):
        list(opened.pages("/items", {}))
    assert "canary" not in str(failed.value)


def test_redirects_are_errors(shop: Shop) -> None:
    """They are not followed."""
    shop.answers = [(302, {"location": "/orders"}, b"")]
    with source(shop.base_url) as (opened, _), pytest.raises(RemoteError, match="redirects to another path"):
        list(opened.pages("/products", {}))
    assert shop.targets == ["/products"]


def test_malformed_json_is_not_quoted(shop: Shop) -> None:
    """A member name may be personal data."""
    shop.answers = [(200, {}, b'{"Kanari": 1 "Kanari": 2}')]
    with source(shop.base_url) as (opened, _), pytest.raises(RefusedError, match="cannot be read as JSON") as failed:
        list(opened.pages("/products", {}))
    assert "Kanari" not in str(failed.value)


EVIL = "a\0b\x1b[31m\u202e"


def test_records_with_nul_are_delivered(shop: Shop, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """NUL and escapes in data and keys are stored: the record is delivered and known in the next run."""
    shop.data["/products"] = [product(1) | {"id": f"1{EVIL}", "note": EVIL}, product(2)]
    report = synced(config, capsys, "web.products")
    assert (report["code"], report["streams"]["web.products"]["records"]["created"]) == (0, 2)
    sent = {effect["body"]["externalId"] for effect in effects(config)}
    assert sent == {"web:1a%00b%1B%5B31m", "web:2"}, "a mark of direction at the end is trimmed like white space"
    assert synced(config, capsys, "web.products")["requests"] == 0


def test_a_refused_record_with_nul_keeps_its_data(shop: Shop, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dead letter keeps data with NUL exactly, in both databases, and can be replayed."""
    shop.data["/products"] = [product(1, price=-1) | {"title": EVIL, "sku": EVIL * 30}, product(2)]
    report = synced(config, capsys, "web.products")
    assert (report["code"], report["streams"]["web.products"]["records"]["rejected"]) == (1, 1)
    assert run(config, "records", "show", "web.products", "1", "--raw", "--json") == 0
    (dead_letter,) = json.loads(capsys.readouterr().out)
    kept = dead_letter["raw"]["rows"][0][dead_letter["raw"]["columns"].index("_json")]
    assert json.loads(kept)["title"] == EVIL
    assert run(config, "records", "replay") == 1
    assert run(config, "records", "show", "web.products", "1", "--raw") == 0
    assert not set("\0\x1b\u202e") & set(capsys.readouterr().out)


@pytest.mark.nightly(but=["50%", "a|b", "7"])
@pytest.mark.parametrize("key", [f"7{EVIL}", "gid://shopify/Product/1", "a|b", "50%", "a b", "Größe/ß", "7"])
def test_a_reference_takes_the_key_as_the_source_has_it(
    shop: Shop, config: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    """A record that refers to a key with any characters waits, and is delivered once that record is."""
    line = {"product": key, "n": 2, "price": 2.5}
    order = {"id": 1, "customer": _customer(config), "updated_at": "2026-11-01T00:00:00Z", "lines": [line]}
    shop.data["/orders"] = [order]
    assert synced(config, capsys)["streams"]["web.orders"]["records"]["carried_on"] == 1
    shop.data["/products"] = [product(7, day=2) | {"id": key}]
    assert synced(config, capsys)["streams"]["web.orders"]["records"]["created"] == 1


@pytest.mark.parametrize("bad", ["2026-11-01\0", "2026-11-01\0\x1b[2J"])
def test_a_cursor_with_nul_is_refused(shop: Shop, config: Path, capsys: pytest.CaptureFixture[str], bad: str) -> None:
    """It stops its stream before anything is imported; other streams are read."""
    shop.data["/products"] = [product(1) | {"updated_at": bad}]
    report = synced(config, capsys)
    assert report["code"] == 4
    assert "its cursor cannot be stored" in report["errors"]["web.products"]
    assert "web.orders" in report["streams"]
    shop.data["/products"] = [product(1)]
    assert synced(config, capsys)["code"] == 0


def test_the_address_of_a_page_is_stored_with_escapes(
    shop: Shop, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A link with control characters is followed, and the origin of its records is shown with escapes."""
    shop.data["/products"] = []
    refused = {"items": [product(5) | {"sku": ""}]}
    shop.answers = [
        (200, {"link": '</products?c=\x1b[31m>; rel="next"'}, b'{"items":[]}'),
        (200, {}, json.dumps(refused).encode()),
    ]
    assert synced(config, capsys, "web.products")["code"] == 1
    run(config, "records", "list", "--json")
    (dead_letter,) = json.loads(capsys.readouterr().out)
    assert dead_letter["at"].endswith("/products?c=\\x1b[31m:1")


def test_a_run_that_waits_for_the_rate_limit_can_be_stopped(shop: Shop, config: Path) -> None:
    """An API may ask for half an hour; the run ends in order within a moment, and imports nothing of the stream."""
    interrupt = threading.Event()
    shop.answers = [(429, {"retry-after": "1800"}, b"")]

    def stop() -> None:
        eventually(lambda: not shop.answers)
        interrupt.set()

    stopping = threading.Thread(target=stop)
    stopping.start()
    loaded = project.load(config)
    report = sync_and_replay.sync(
        loaded, ["web.products"], clock=SystemClock(), progress=SilentProgress(), interrupt=interrupt
    )
    stopping.join()
    assert report.exit_code == 130
    assert [each.message for each in report.messages] == ["stopped while waiting for a source"]
