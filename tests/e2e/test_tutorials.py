"""The tutorials work as they are written: their files, with the addresses of servers that are started here."""

from __future__ import annotations

import importlib
import json
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from tests.documentation.fences import DOCS
from tests.documentation.test_python import files
from tests.unit.test_docs import blocks

import crossdock
from crossdock.sandbox import SandboxServer
from crossdock.testing.demo.shop import shop_demo_folder_and_servers

CONNECTOR = DOCS / "tutorials" / "connector.md"
SHOP_TO_3PL = DOCS / "tutorials" / "shop_to_3pl.md"
CHANGE = {"price": "54.90"}


def installed(folder: Path) -> None:
    """Write the tutorial's modules, and what pip would write about its entry point."""
    for name, code in files(CONNECTOR).items():
        (folder / name).write_text(code, encoding="utf-8")
    facts = folder / "lamp_shop-0.1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: lamp-shop\nVersion: 0.1.0\n", encoding="utf-8")
    (points,) = [text for text in blocks(CONNECTOR, "toml") if "[project.entry-points" in text]
    entry = points.partition('[project.entry-points."crossdock.connectors"]\n')[2].partition("\n\n")[0]
    (facts / "entry_points.txt").write_text(f"[crossdock.connectors]\n{entry}\n".replace('"', ""), encoding="utf-8")


def delivered(config: Path, *streams: str) -> dict[str, int]:
    """Sync, and return the number of records that were delivered by each stream."""
    report = crossdock.run(config, streams)
    assert report.status == "done"
    return {stream: tally.delivered for stream, tally in report.tallies.items()}


def test_the_connector_of_the_tutorial_sends_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first sync creates three products, one after a change of a price updates this product."""
    installed(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    handler = importlib.import_module("shop_api").Shop
    monkeypatch.setattr(handler, "log_message", lambda *_: None)  # it writes to stderr
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    shop = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("SHOP_TOKEN", "tutorial")
    try:
        with SandboxServer(tmp_path / "sandbox") as platform:
            monkeypatch.setenv("CROSSDOCK_API_KEY", platform.api_key)
            (config,) = blocks(CONNECTOR, "yaml")
            text = config.replace("http://127.0.0.1:8080", platform.base_url).replace("http://127.0.0.1:8765", shop)
            (tmp_path / "shop.yaml").write_text(text, encoding="utf-8")
            crossdock.init(tmp_path / "shop.yaml")
            assert delivered(tmp_path / "shop.yaml") == {"shop.products": 3}
            headers = {"Authorization": "Bearer tutorial"}
            assert httpx.put(f"{shop}/products/2", content=json.dumps(CHANGE), headers=headers).status_code == 200
            assert delivered(tmp_path / "shop.yaml") == {"shop.products": 1}
            assert delivered(tmp_path / "shop.yaml") == {"shop.products": 0}
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_config_of_the_tutorial_brings_parcels_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers are those that the page shows, and the run after all others sends nothing."""
    with shop_demo_folder_and_servers.create_and_serve_shop_demo(
        tmp_path / "demo", "shopify", ships_when_shipments_are_listed=True
    ) as demo:
        for name, value in demo.variables.items():
            monkeypatch.setenv(name, value)
        config = tmp_path / "lamps.yaml"
        config.write_text(blocks(SHOP_TO_3PL, "yaml")[0], encoding="utf-8")
        crossdock.init(config)
        first = {"customers": 3, "products": 14, "locations": 1, "stock": 3, "orders": 4, "invoices": 4}
        assert delivered(config, "shop") == {f"shop.{name}": number for name, number in first.items()}
        assert delivered(config, "erp") == {"erp.orders_out": 4}
        assert delivered(config, "depot") == {"depot.shipments": 6}
        assert delivered(config, "shop") == {f"shop.{name}": 4 if name == "orders" else 0 for name in first}
        assert set(delivered(config).values()) == {0}
