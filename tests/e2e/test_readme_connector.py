"""The README's connector reads a shop on loopback, and the sandbox has the shop's products."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.servers import served

from crossdock.cli.main import main
from crossdock.config.project import connections_and_bound_streams
from crossdock.sandbox import SandboxServer
from crossdock.values import exact_json

ROOT = Path(__file__).parents[2]
TOKEN = "canary-of-the-readme"
PAGE = 3


class Shop(ThreadingHTTPServer):
    """Lists products by id, `PAGE` at a time; prices are texts, and two requests are throttled."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.products = [product(number) for number in range(1, 9)]
        self.requests: list[str] = []
        self.throttled = 0


class _Handler(BaseHTTPRequestHandler):
    server: Shop
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        if self.headers["authorization"] != f"Bearer {TOKEN}":
            self._respond(401, {"error": "no token"})
        elif len(self.server.requests) in {2, 7}:
            self.server.throttled += 1
            self._respond(429, {"error": "slow down"}, {"retry-after": "0.01"})
        else:
            asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            since = datetime.fromisoformat(asked.get("updated_since", "2000-01-01T00:00:00Z"))
            found = [
                item
                for item in self.server.products
                if item["id"] > int(asked.get("since_id", 0)) and datetime.fromisoformat(item["updated_at"]) >= since
            ]
            self._respond(200, {"products": found[:PAGE]})

    def _respond(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        limit = {"ratelimit-limit": "500", "ratelimit-remaining": "499", "ratelimit-policy": "500;w=10"}
        for name, value in {**limit, **(headers or {}), "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def product(number: int, price: str = "19.90", changed: str = "2026-03-01T10:00:00+02:00") -> dict[str, Any]:
    return {"id": number, "sku": f"00{number}", "title": f"Lamp {number}", "price": price, "updated_at": changed}


@pytest.fixture
def shop() -> Iterator[Shop]:
    with served(Shop()) as server:
        yield server


def run(folder: Path, *arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["-C", str(folder / "c.yaml"), *arguments])
    return int(ended.value.code or 0)


def stored(sandbox: SandboxServer) -> dict[str, tuple[str, str, Decimal]]:
    """What the sandbox's effects log says about each product, in the end."""
    answer = httpx.get(f"{sandbox.base_url}/_sandbox/effects", params={"limit": 1000}, trust_env=False)
    found: dict[str, tuple[str, str, Decimal]] = {}
    for effect in exact_json.loads(answer.content)["data"]:
        body = effect["body"]
        assert (effect["operation"] == "create") == (body["externalId"] not in found)
        found[body["externalId"]] = (body["sku"], body["name"], Decimal(body["unitPrice"]))
    return found


def sold(shop: Shop) -> dict[str, tuple[str, str, Decimal]]:
    """The same of the shop."""
    return {f"web:{item['id']}": (item["sku"], item["title"], Decimal(item["price"])) for item in shop.products}


def test_the_connector_of_the_readme_syncs(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All products arrive once with exact prices, then the changed and new ones, then none."""
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(compile(code[1] if code else "", "README.md", "exec", dont_inherit=True), namespace)
    monkeypatch.setattr(connections_and_bound_streams, "load_connector", lambda _: namespace["CONNECTOR"])
    with SandboxServer(tmp_path / "sandbox") as sandbox:
        monkeypatch.setenv("PLATFORM_KEY", sandbox.api_key)
        monkeypatch.setenv("SHOP_TOKEN", TOKEN)
        (tmp_path / "c.yaml").write_text(
            f"platform: {{base_url: {sandbox.base_url}, tenant: {sandbox.tenant},"
            " auth: {kind: api_key, token: env:PLATFORM_KEY}}\n"
            "connections:\n"
            f"  web: {{kind: shop, base_url: 'http://127.0.0.1:{shop.server_port}', token: env:SHOP_TOKEN}}\n"
        )
        assert run(tmp_path, "init") == 0
        assert run(tmp_path, "sync") == 0
        assert stored(sandbox) == sold(shop)
        assert len(sold(shop)) == 8
        now = datetime.now(UTC).isoformat()
        shop.products[4] = product(5, price="7.5000", changed=now)
        shop.products.append(product(9, price="0.0001", changed=now))
        assert run(tmp_path, "sync") == 0
        assert stored(sandbox) == sold(shop)
        capsys.readouterr()
        assert run(tmp_path, "sync", "--json") == 0
        out = capsys.readouterr().out
    assert json.loads(out)["requests"] == 0
    assert shop.throttled == 2
    assert TOKEN not in out
