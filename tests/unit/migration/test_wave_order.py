"""References that point from a wave to a later one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from crossdock.config.project import project
from crossdock.migration.rehearsal import later_waves_by_stream_and_placeholder_prefix
from crossdock.migration.waves import waves_numbered_in_config_order

BINS = {"resource": "warehouse_bin", "map": {"code": "ID", "warehouse": {"const": "W"}}}
PRODUCTS = {"resource": "product", "map": {"sku": "ID", "name": "ID"}}
LOTS = {
    "resource": "inventory_lot",
    "map": {"lotNumber": "ID", "quantity": {"const": 1}, "productId": {"ref": "product", "key": "SKU"}},
}
ORE = PRODUCTS | {"namespace": "ore"}


def found(folder: Path, **waves: list[str]) -> dict[str, dict[str, str]]:
    common: dict[str, Any] = {"mode": "append", "files": "*.csv", "key": ["ID"]}
    streams = {"bins": BINS, "products": PRODUCTS, "ore": ORE, "lots": LOTS}
    config = {
        "platform": {"base_url": "http://127.0.0.1:9", "tenant": "a", "auth": {"kind": "api_key", "token": "env:KEY"}},
        "state": "sqlite:///state.db",
        "connections": {
            "wms": {
                "kind": "folder_warehouse",
                "path": ".",
                "streams": {name: common | stream for name, stream in streams.items()},
            }
        },
        "migration": {"waves": {wave: {"streams": [f"wms.{name}" for name in names]} for wave, names in waves.items()}},
    }
    (folder / "c.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    loaded = project.load(folder / "c.yaml")
    return later_waves_by_stream_and_placeholder_prefix(loaded, waves_numbered_in_config_order(loaded))


@pytest.mark.parametrize(
    ("waves", "expected"),
    [
        pytest.param({"one": ["bins", "products", "ore"], "two": ["lots"]}, {}, id="parents first"),
        pytest.param({"one": ["lots", "products", "ore", "bins"]}, {}, id="one wave"),
        pytest.param(
            {"one": ["lots"], "two": ["products"], "three": ["ore", "bins"]},
            {
                "wms.lots": {
                    "<product wms:": "two",
                    "<product ore:": "three",
                    "<warehouse_bin wms:": "three",
                }
            },
            id="children first: each parent by its own namespace",
        ),
        pytest.param({"one": ["products"], "two": ["bins"]}, {}, id="no references between them"),
    ],
)
def test_parents_of_later_waves(
    tmp_path: Path, waves: dict[str, list[str]], expected: dict[str, dict[str, str]]
) -> None:
    """Of each stream that may refer to them, with the beginning of the placeholders that a plan gives them."""
    assert found(tmp_path, **waves) == expected
