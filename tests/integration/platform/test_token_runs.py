"""A run without a token: its end, its messages, and the run after it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.integration.platform.token_server import Reply, Seen, TokenServer, answer, token
from tests.integration.sources import orders_shop

from crossdock.cli.main import main
from crossdock.config.project import connections_and_bound_streams

PRODUCTS = 30
CONFIG = """
platform:
  base_url: {base_url}
  tenant: acme
  auth:
    kind: oauth2_client_credentials
    client_id: me
    client_secret: env:CLIENT_SECRET
    scopes: [products:write]
  retry: {{attempts: 2, base_s: 0.001}}
  after_ambiguous: park  # what counts as sent without having been would never be made
state: sqlite:///state.db
connections:
  web: {{kind: orders_shop, base_url: {base_url}, token: env:CLIENT_SECRET}}
"""


def platform(seen: Seen) -> Reply:
    """The shop's products, and a platform that makes a product of each."""
    if seen.path.startswith("/products"):
        items = [
            {"id": n, "sku": f"S{n}", "title": "x", "price": 1, "updated_at": "2026-01-01"} for n in range(PRODUCTS)
        ]
        return answer(200, {"items": items})
    if seen.method == "GET":
        return answer(200, {"data": []})
    return answer(201, {"id": f"prd_{seen.number}"})


@pytest.fixture
def config(server: TokenServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config and its state; the shop and the platform are one server."""
    load = connections_and_bound_streams.load_connector
    monkeypatch.setattr(
        connections_and_bound_streams,
        "load_connector",
        lambda name: orders_shop.CONNECTOR if name == "orders_shop" else load(name),
    )
    server.platform = platform
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG.format(base_url=server.base_url))
    run(path, "init")
    return path


def run(config: Path, *arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["-C", str(config), *arguments])
    return int(ended.value.code or 0)


def output(config: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    code = run(config, *arguments, "--json")
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document | {"code": code}


def synced(config: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    report = output(config, capsys, "sync", "web.products")
    assert report["balanced"]
    return report


def created(server: TokenServer) -> list[str]:
    return sorted(json.loads(seen.body)["externalId"] for seen in server.sent if seen.path.startswith("/api/"))


def everything() -> list[str]:
    return sorted(f"web:{number}" for number in range(PRODUCTS))


def test_a_run_with_tokens(server: TokenServer, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All is delivered with one token, each record once."""
    assert synced(config, capsys)["code"] == 0
    assert created(server) == everything()
    assert len(server.asked) == 1


def test_a_client_that_is_refused_ends_the_run(
    server: TokenServer, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refused client ends the run with exit 3 and the error code; nothing is in doubt, and the next run continues."""
    server.tokens = lambda _: answer(401, {"error": "invalid_client"})
    report = synced(config, capsys)
    assert report["code"] == 3
    assert f"{server.base_url}/oauth/token: rejected the token request: invalid_client" in report["errors"]["run"]
    assert report["streams"]["web.products"]["records"]["carried_on"] == PRODUCTS
    assert created(server) == []
    assert len(server.asked) == 1
    server.tokens = token
    assert synced(config, capsys)["code"] == 0
    assert created(server) == everything()


def test_a_client_that_is_refused_on_the_way(
    server: TokenServer, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """When a token dies in the middle and no other is given, what was delivered stays and the rest is made later."""
    dead = threading.Event()

    def until_the_tenth(seen: Seen) -> Reply:
        if seen.path.startswith("/api/") and (dead.is_set() or seen.number > 10):
            dead.set()
            return answer(401, {"title": "expired"})
        return platform(seen)

    server.platform = until_the_tenth
    server.tokens = lambda seen: token(seen) if seen.number == 1 else answer(400, {"error": "unauthorized_client"})
    report = synced(config, capsys)
    assert report["code"] == 3
    assert "unauthorized_client" in report["errors"]["run"]
    made = report["streams"]["web.products"]["records"]["created"]
    assert 0 < made < PRODUCTS
    server.platform, server.tokens = platform, token
    report = synced(config, capsys)
    assert (report["code"], report["streams"]["web.products"]["records"]["created"]) == (0, PRODUCTS - made)


def test_a_token_endpoint_that_is_down_ends_the_run_as_unavailable(
    server: TokenServer, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a token nothing was sent: the run ends with exit 3 after its attempts, and nothing is in doubt."""
    server.tokens = lambda _: answer(503, {})
    report = synced(config, capsys)
    assert report["code"] == 3
    assert "no token obtained: HTTP 503" in report["errors"]["run"]
    assert created(server) == []
    server.tokens = token
    assert synced(config, capsys)["code"] == 0
    assert created(server) == everything()


def test_check_shows_the_token(server: TokenServer, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`crossdock check` says that there is a token, for how long and for what; or why there is none."""
    server.tokens = lambda seen: token(seen, scope="products:write admin")
    found = {item["subject"]: item for item in output(config, capsys, "check")["findings"]}
    assert found["platform"]["ok"]
    assert found["platform"]["text"].endswith(
        "grants access, with a token for 100 s; scopes: products:write admin; more than requested: admin"
    )
    assert found["state"]["text"] == "exists and belongs to this platform"
    server.tokens = lambda _: answer(401, {"error": "invalid_client"})
    document = output(config, capsys, "check")
    assert document["code"] == 3
    assert "invalid_client (HTTP 401)" in next(f["text"] for f in document["findings"] if f["subject"] == "platform")
    assert document["assumptions"]["tokens"] == f"OAuth 2.0 client credentials at {server.base_url}/oauth/token"
