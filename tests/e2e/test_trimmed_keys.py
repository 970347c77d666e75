"""White space around keys: it makes no second record, and no record that was delivered with it is delivered again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.folder_project import FolderProject, table

from crossdock.sandbox import SandboxServer


def connections(*, trimmed: bool) -> dict[str, Any]:
    """Products, and lots that refer to them."""
    products = table("out/ITEM_*.csv", ["SKU"], resource="product", map={"sku": "SKU", "name": "NAME"})
    lot = {
        "productId": {"ref": "product", "key": "SKU"},
        "lotNumber": "LOT",
        "quantity": {"from": "QTY", "as": "integer"},
    }
    lots = table("out/LOT_*.csv", ["LOT"], resource="inventory_lot", map=lot)
    products |= {} if trimmed else {"trim_keys": False}
    return {
        "wms": {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": {"products": products, "lots": lots}}
    }


def created(report: dict[str, Any]) -> dict[str, int]:
    return {name: tally["records"]["created"] for name, tally in report["streams"].items()}


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox") as running:
        yield running


def test_a_padded_key_is_the_same_record_and_so_are_references_to_it(tmp_path: Path, platform: SandboxServer) -> None:
    """Of any kind; the report says in how many rows it was removed."""
    project = FolderProject(tmp_path, platform, connections(trimmed=True))
    assert project.run("init").exit_code == 0
    project.write("ITEM_1.csv", "SKU;NAME\n 0017;Bolt\n0018\u00a0;Nut\n")
    project.write("LOT_1.csv", "LOT;SKU;QTY\nL1;0017 ;5\nL2;\u200b0018;6\n")
    night = project.sync()
    assert created(night) == {"wms.products": 2, "wms.lots": 2}
    assert "white space around the key was removed in 2 rows" in str(night)
    project.write("ITEM_2.csv", "SKU;NAME\n0017;Bolt\n\t0018;Nut\n")
    assert created(project.sync()) == {"wms.products": 0, "wms.lots": 0}


def test_records_that_were_delivered_with_padded_keys_are_not_delivered_again(
    tmp_path: Path, platform: SandboxServer
) -> None:
    """When the config trims keys, they keep their names; new references find them too."""
    project = FolderProject(tmp_path, platform, connections(trimmed=False))
    assert project.run("init").exit_code == 0
    project.write("ITEM_1.csv", "SKU;NAME\n 0017;Bolt\n0018;Nut\n0018 ;Nut of another size\n")
    project.write("LOT_1.csv", "LOT;SKU;QTY\nL1; 0017;5\nL2;0018 ;6\n")
    assert created(project.sync()) == {"wms.products": 3, "wms.lots": 2}
    project = FolderProject(tmp_path, platform, connections(trimmed=True))
    project.write("ITEM_2.csv", "SKU;NAME\n0017;Bolt\n0018;Nut\n")
    project.write("LOT_2.csv", "LOT;SKU;QTY\nL3;0017;7\n")
    assert created(project.sync()) == {"wms.products": 0, "wms.lots": 1}
    headers = {"authorization": f"Bearer {platform.api_key}", "x-tenant-slug": platform.tenant}
    with httpx.Client(base_url=platform.base_url, headers=headers, trust_env=False) as client:
        listed = client.get("/api/v1/inventory/lots").json()["data"]
    lots = {lot["lotNumber"]: lot["productId"] for lot in listed}
    assert lots["L3"] == lots["L1"]
