"""Legacy layouts from end to end: good deliveries arrive, and damaged ones are refused whole."""

from __future__ import annotations

import json
import re
from collections import Counter
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from openpyxl import Workbook
from tests.e2e.folder_project import FolderProject
from tests.e2e.legacy_files import LAYOUTS, block, damages, moves, orders, stock, text
from tests.unit.formats.hostile_sheets import HOSTILE

from crossdock.sandbox import SandboxServer

KEYS = {"orders": ["ORDER", "SKU", "QTY", "AMOUNT"], "stock": ["SKU"], "moves": ["SKU"]}


def stream(name: str, layout: dict[str, Any], key: list[str], **more: Any) -> dict[str, Any]:
    mapped = {"sku": key[-1], "name": key[0]}
    return {
        "mode": "append", "files": f"out/{name}_*", "format": layout, "key": key, "resource": "product",
        "namespace": name, "map": mapped,
        **more,
    }  # fmt: skip


def project(folder: Path, platform: SandboxServer, streams: dict[str, Any], **more: Any) -> FolderProject:
    connection = {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": streams, **more}
    found = FolderProject(folder, platform, {"wms": connection})
    (folder / "out").mkdir()
    assert found.run("init").exit_code == 0
    return found


@pytest.mark.nightly
def test_damaged_deliveries_are_refused_whole(tmp_path: Path, platform: SandboxServer) -> None:
    """Each with its reason and place; `tests.long.test_legacy_files` takes more than a hundred."""
    damaged_deliveries_are_refused_whole(tmp_path, platform, many=1)


def damaged_deliveries_are_refused_whole(tmp_path: Path, platform: SandboxServer, many: int) -> int:
    """Each of *many* of each kind is refused with its reason and place, and the good delivery after them is not.

    Returns:
        How many were refused.
    """
    random = Random(20261101)
    streams = {name: stream(name, layout, KEYS[name]) for name, layout in LAYOUTS.items()}
    site = project(tmp_path, platform, streams)
    found = list(damages(random, many))
    kinds = Counter((damage.stream, damage.kind) for damage in found)
    assert len(kinds) >= 25
    assert max(kinds.values()) == many
    for number, damage in enumerate(found):
        file = tmp_path / "out" / f"{damage.stream}_{number}"
        file.write_bytes(damage.content)
        done = site.run("plan", "--json")
        told = done.document["errors"].get(f"wms.{damage.stream}", "")
        assert done.exit_code == 4, f"{damage.kind}: {done.stdout}"
        assert re.search(damage.says, told), f"{damage.kind}: {told}"
        assert f"{damage.stream}_{number}" in told, damage.kind
        assert done.document["operations"] == {}, damage.kind
        file.unlink()
    good = {"orders": text(orders(random)), "stock": block(stock(random)), "moves": text(moves(random))}
    for name, content in good.items():
        (tmp_path / "out" / f"{name}_good").write_bytes(content)
    report = site.sync()
    assert all(report["streams"][f"wms.{name}"]["records"]["delivered"] >= 12 for name in LAYOUTS)
    return len(found)


def test_a_damaged_delivery_leaves_no_trace(tmp_path: Path, platform: SandboxServer) -> None:
    """A sync refuses it, and sends nothing."""
    site = project(tmp_path, platform, {"orders": stream("orders", LAYOUTS["orders"], KEYS["orders"])})
    rows = orders(Random(1))
    (tmp_path / "out" / "orders_1").write_bytes(text(rows[:-1]))
    report = site.sync(exit_code=4)
    assert report["streams"]["wms.orders"]["records"]["delivered"] == 0


@pytest.mark.nightly(but=["12.35-4"])
@pytest.mark.parametrize(("total", "code"), [("12.34", 0), ("12.35", 4)])
def test_a_manifest_states_control_sums_of_a_fixed_width_column(
    tmp_path: Path, platform: SandboxServer, total: str, code: int
) -> None:
    """The sum of a column with implied decimals and signs is compared with the manifest's."""
    layout = {
        "kind": "fixed_width",
        "columns": {"SKU": {"at": 1, "length": 4}, "PRICE": {"at": 5, "length": 6, "decimals": 2, "sign": "trailing"}},
    }
    manifest = {"files": "out/MANIFEST.csv", "name": "FILE", "rows": "ROWS", "sums": {"TOTAL": "PRICE"}}
    site = project(tmp_path, platform, {"items": stream("items", layout, ["SKU"], manifest=manifest)})
    (tmp_path / "out" / "MANIFEST.csv").write_text(f"FILE,ROWS,TOTAL\nitems_1,2,{total}\n")
    (tmp_path / "out" / "items_1").write_text("001701334 \n001800100-\n")
    done = site.run("sync", "--json")
    assert done.exit_code == code, done.stdout
    if code:
        error = done.document["errors"]["wms.items"]
        assert "the sum of column 'PRICE' is 12.34, but out/MANIFEST.csv:2 states 12.35" in error


def test_records_of_two_types_are_read_and_looked_up(tmp_path: Path, platform: SandboxServer) -> None:
    """Two streams read two types of the same files, and one of them looks up rows of a fixed-width file."""
    types = {"H": {"names": ["T", "ORDER", "STORE"]}, "L": {"parent": "H", "names": ["LT", "SKU"]}}
    stores = {"kind": "fixed_width", "columns": {"STORE": {"at": 1, "length": 2}, "CITY": {"at": 3, "length": 6}}}
    lookup = {"store": {"source": "stores", "on": {"STORE": "STORE"}}}
    named = {"sku": "ORDER", "name": "store.CITY"}
    lines = stream("mixed", {"record_types": types, "records": "L"}, ["ORDER", "SKU"])
    form = {"record_types": types, "records": "H"}
    headers = stream("mixed", form, ["ORDER"], namespace="headers", map=named, lookup=lookup)
    sources = {"stores": {"files": "out/STORES_*", "format": stores}}
    site = project(tmp_path, platform, {"lines": lines, "headers": headers}, sources=sources)
    (tmp_path / "out" / "mixed_1").write_text("H,0017,S1\nL,P1\nL,P2\nH,0018,S2\n")
    (tmp_path / "out" / "STORES_1").write_text("S1Kiel  \nS2Bremen\n")
    report = site.sync()
    assert {name: each["records"]["delivered"] for name, each in report["streams"].items()} == {
        "wms.lines": 2, "wms.headers": 2,
    }  # fmt: skip


def test_a_sheet_is_synced(tmp_path: Path, platform: SandboxServer) -> None:
    """A second sync of the same rows in another file sends nothing."""
    site = project(tmp_path, platform, {"items": stream("items", {"kind": "sheet"}, ["SKU"])})
    for number, delivered in ((1, 2), (2, 0)):
        workbook, file = Workbook(), BytesIO()
        for row in (["SKU", "PRICE"], ["0027", 1.5], ["0028", 2]):
            workbook.worksheets[0].append(row)
        workbook.save(file)
        (tmp_path / "out" / f"items_{number}.xlsx").write_bytes(file.getvalue())
        report = site.sync()
        assert report["streams"]["wms.items"]["records"]["delivered"] == delivered, json.dumps(report)


def test_a_sheet_that_would_take_all_memory_is_refused(tmp_path: Path, platform: SandboxServer) -> None:
    """With its name and exit 4, and the other streams are delivered."""
    hostile_sheets_are_refused(tmp_path, platform, ["xlsx: a cell at the far corner"])


def hostile_sheets_are_refused(folder: Path, platform: SandboxServer, names: list[str]) -> None:
    """Each of the sheets *names* is refused in a run that delivers another stream."""
    layout = {"kind": "sheet", "error_cells": "empty"}
    site = project(
        folder,
        platform,
        {"a_items": stream("items", layout, ["SKU"]), "b_stock": stream("stock", {"delimiter": ";"}, ["SKU"])},
    )
    for number, name in enumerate(names):
        sheet = folder / "out" / f"items_{number}.xlsx"
        sheet.write_bytes(HOSTILE[name]())
        site.write(f"stock_{number}.csv", f"SKU\nP{number}\n")
        report = site.sync(exit_code=4)
        assert sheet.name in json.dumps(report["streams"]["wms.a_items"]), name
        assert report["streams"]["wms.b_stock"]["records"]["delivered"] == 1, name
        sheet.unlink()
