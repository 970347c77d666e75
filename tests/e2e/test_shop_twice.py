"""The same shop read by a connector in Python and by a config alone: both store the same, judged by effects."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from tests.e2e.shop_api import TOKEN, ShopApi, generated
from tests.e2e.warehouse import ask
from tests.servers import served

from crossdock.cli.main import main
from crossdock.sandbox import SandboxServer
from crossdock.values import exact_json

HERE = Path(__file__).parent
BY_CONFIG: dict[str, Any] = yaml.safe_load((HERE / "shop.yaml").read_text(encoding="utf-8"))["connections"]["shop"]
BY_CONFIG["rate"] = {"per_minute": 600_000}  # or each sync would wait for the requests that the default permits
IN_PYTHON = {"kind": "shop", "token": "env:SHOP_TOKEN"}
DATA_VARIABLE = "CROSSDOCK_SHOPIFY_DATA"


class Copy:
    """A platform that one of the two fills."""

    def __init__(self, folder: Path, platform: SandboxServer, shop: ShopApi, connection: dict[str, Any]) -> None:
        folder.mkdir()
        self.tenant, self._base_url = folder.name, platform.base_url
        self._key = platform.sandbox.new_key(self.tenant)
        self._config = folder / "crossdock.yaml"
        auth = {"kind": "api_key", "token": "env:CROSSDOCK_API_KEY"}
        document = {
            "platform": {"base_url": platform.base_url, "tenant": self.tenant, "auth": auth},
            "state": "sqlite:///state.db",
            "connections": {"shop": connection | {"base_url": shop.base_url}},
        }
        self._config.write_bytes(exact_json.dumps(document))

    def run(self, *arguments: str) -> tuple[int, str]:
        os.environ["CROSSDOCK_API_KEY"] = self._key
        out = StringIO()
        with redirect_stdout(out), pytest.raises(SystemExit) as ended:
            main(["-C", str(self._config), *arguments])
        assert TOKEN not in out.getvalue()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out.getvalue()

    def sync(self) -> dict[str, Any]:
        """The records' accounts of each stream."""
        code, out = self.run("sync", "--json")
        report = json.loads(out)
        assert report["balanced"]
        return {"code": code, **{name: found["records"] for name, found in report["streams"].items()}}

    def effects(self) -> Counter[str]:
        """What happened to the platform, with external ids in place of its ids."""
        answer = ask(urlsplit(self._base_url).netloc, "GET", "/_sandbox/effects?limit=10000")
        found = json.loads(answer.body, parse_float=Decimal)["data"]
        own = [effect for effect in found if effect["tenant"] == self.tenant]
        names = {effect["id"]: effect["body"]["externalId"] for effect in own}
        return Counter(
            json.dumps([each["operation"], each["resource"], _named(each["body"], names)], sort_keys=True, default=str)
            for each in own
        )


def _named(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        given = {"createdAt", "updatedAt"}
        return {name: _named(inner, names) for name, inner in value.items() if name not in given}
    if isinstance(value, list):
        return [_named(inner, names) for inner in value]
    return names.get(value, value) if isinstance(value, str) else value


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connector in Python, as if its package were installed."""
    facts = tmp_path / "site" / "shop-0.1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 0.1.0\n", encoding="utf-8")
    entry = "[crossdock.connectors]\nshop = tests.e2e.shop_connector:CONNECTOR\n"
    (facts / "entry_points.txt").write_text(entry, encoding="utf-8")
    monkeypatch.syspath_prepend(str(facts.parent))
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    monkeypatch.setenv("CROSSDOCK_API_KEY", "replaced")
    monkeypatch.delenv("CROSSDOCK_CONFIG", raising=False)


@pytest.fixture
def shop() -> Iterator[ShopApi]:
    with served(ShopApi(generated(seed=7))) as shop:
        yield shop


def both(folder: Path, platform: SandboxServer, shop: ShopApi) -> tuple[Copy, Copy]:
    made = tuple(
        Copy(folder / f"{folder.name.replace('_', '-')}-{name}", platform, shop, connection)
        for name, connection in {"python": IN_PYTHON, "config": BY_CONFIG}.items()
    )
    for copy in made:
        assert copy.run("init")[0] == 0
    in_python, by_config = made
    return in_python, by_config


def change(shop: ShopApi) -> None:
    """A price, an order, and a new customer."""
    later = {"updated_at": "2026-04-01T08:00:00-05:00"}
    product, order = shop.lists["products"][2], shop.lists["orders"][1]
    product["variants"][0]["price"] = "12.30"
    product |= later
    order["line_items"][0]["quantity"] += 1
    order |= later
    shop.lists["customers"].append({**shop.lists["customers"][0], "id": 999, **later})


@pytest.mark.nightly
@pytest.mark.usefixtures("registered")
def test_both_store_the_same(tmp_path: Path, platform: SandboxServer, shop: ShopApi) -> None:
    """Every record is stored once, the same by both; a second sync sends nothing; changes are updates of both."""
    copies = both(tmp_path, platform, shop)
    first, second = ([(copy.sync(), copy.effects()) for copy in copies] for _ in range(2))
    change(shop)
    third = [(copy.sync(), copy.effects()) for copy in copies]

    assert first[0] == first[1]
    assert [effects for _, effects in second] == [effects for _, effects in first], "a second sync sends something"
    assert third[0] == third[1]
    variants = sum(len(product["variants"]) for product in shop.lists["products"])
    assert sum(first[0][1].values()) == variants + 5 + 8  # of nine orders, one is cancelled
    assert sum(third[0][1].values()) == variants + 5 + 8 + 3
    assert first[0][0]["code"] == third[0][0]["code"] == 0


@pytest.mark.usefixtures("registered")
def test_both_ask_for_changes_only(tmp_path: Path, platform: SandboxServer, shop: ShopApi) -> None:
    """The second run asks from the newest time that the first one read, and needs one page of each list."""
    for copy in both(tmp_path, platform, shop):
        copy.sync()
        before = len(shop.seen)
        copy.sync()
        asked = [target for target in shop.seen[before:] if "updated_at_min" in target]
        assert len(set(asked)) == 3
        assert all("updated_at_min=2026-03-01T1" in target for target in asked)


def test_the_connector_in_python_is_short() -> None:
    """It is at most 90 lines long, with all its imports."""
    assert len((HERE / "shop_connector.py").read_text(encoding="utf-8").splitlines()) <= 90


@pytest.mark.shopify
@pytest.mark.usefixtures("registered")
def test_both_store_the_same_of_the_vendors_own_examples(tmp_path: Path, platform: SandboxServer) -> None:
    """Records as the vendor's client is tested with give the same effects, tallies and exit codes."""
    folder = Path(os.environ.get(DATA_VARIABLE) or pytest.skip(f"{DATA_VARIABLE} is not set"))
    lists = {"products": _listed(folder, "products"), "customers": _listed(folder, "customers", "customers_search")}
    lists["orders"] = [*_listed(folder, "orders"), json.loads((folder / "order.json").read_text())]
    lists["orders"] = [order.get("order", order) for order in lists["orders"]]
    with served(ShopApi(lists)) as shop:
        in_python, by_config = both(tmp_path, platform, shop)
        assert in_python.sync() == by_config.sync()
    assert in_python.effects() == by_config.effects()
    assert in_python.effects()


def _listed(folder: Path, name: str, file: str | None = None) -> list[dict[str, Any]]:
    document = json.loads((folder / f"{file or name}.json").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = document if isinstance(document, list) else document[name]
    return found
