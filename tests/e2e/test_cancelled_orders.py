"""An order that is cancelled after it went to the 3PL, by the configs of shops as they are."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.folder_project import FolderProject, table

from crossdock.config.project import project
from crossdock.runs import sync_and_replay
from crossdock.sandbox import SandboxServer
from crossdock.testing.demo.shop import shop_demo_folder_and_servers
from crossdock.values.clock import SystemClock
from crossdock.values.run_progress_and_messages import SilentProgress

MERGE = {"content-type": "application/merge-patch+json"}


@pytest.mark.nightly(but=["shopify"])
@pytest.mark.parametrize("kind", ["shopify", "woocommerce"])
def test_the_3pl_is_told_of_a_cancellation(
    tmp_path: Path, kind: shop_demo_folder_and_servers.Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cancels the order, and ships the others; one that it has shipped is a dead letter, which says so."""
    with shop_demo_folder_and_servers.create_and_serve_shop_demo(tmp_path / "demo", kind) as demo:
        for name, value in demo.variables.items():
            monkeypatch.setenv(name, value)
        synced = project.load(tmp_path / "demo" / shop_demo_folder_and_servers.CONFIG)
        synced.create_or_upgrade_state()

        def sync(stream: str) -> int:
            clock, interrupt = SystemClock(), threading.Event()
            return sync_and_replay.sync(
                synced, [stream], clock=clock, progress=SilentProgress(), interrupt=interrupt
            ).exit_code

        def cancel(order: str) -> None:
            [found] = platform.get("/api/v1/sales/orders", params={"externalId": order}).json()["data"]
            path = f"/api/v1/sales/orders/{found['id']}"
            assert platform.patch(path, json={"status": "cancelled"}, headers=MERGE).status_code == 200

        def at_depot() -> list[str]:
            return [each["shop_order"] for each in demo.depot.orders]

        headers = {"authorization": f"Bearer {demo.platform.api_key}", "x-tenant-slug": demo.platform.tenant}
        with httpx.Client(base_url=demo.platform.base_url, headers=headers, trust_env=False) as platform:
            assert (sync("shop"), sync("erp")) == (0, 0)
            cancelled, shipped, *others = at_depot()
            cancel(cancelled)
            assert (sync("erp"), sync("erp")) == (0, 0)
            assert at_depot() == [shipped, *others]
            demo.depot.ship_all_orders()
            cancel(shipped)
            assert sync("erp") == 1
            assert at_depot() == [shipped, *others]


TYPES = {
    "order": {"code": "H", "names": ["HEAD", "NO", "CHANGE", "BUYER"]},
    "line": {"code": "L", "parent": "order", "names": ["LINE", "QTY"]},
}
ITEM = {
    "productId": {"ref": "product", "key": "BUYER"},  # as a fee that is the same for all lines
    "quantity": {"from": "QTY", "as": "decimal", "default": 1},
    "unitPrice": {"const": 1},
}
ORDER = {
    "customerId": {"ref": "customer", "key": "BUYER"},
    "currency": {"const": "EUR"},
    "placedAt": {"const": "2026-01-01T00:00:00Z"},
    "items": {"each": ITEM},
}
HEADERS = {"kind": "delimited", "delimiter": ";", "record_type": 0, "record_types": TYPES, "records": "line"}
ELEMENTS = {
    "kind": "xml",
    "record": "/all/H",
    "rows": "L",
    "columns": {"NO": "@no", "CHANGE": "@change", "BUYER": "@buyer", "QTY": "L"},
}


def written(orders: list[tuple[str, str, list[int]]], kind: str) -> str:
    if kind == "delimited":
        rows = [[f"H;{no};{change};1", *(f"L;{quantity}" for quantity in lines)] for no, change, lines in orders]
        return "".join(f"{row}\n" for each in rows for row in each)
    elements = [
        f'<H no="{no}" change="{change}" buyer="1">{"".join(f"<L>{each}</L>" for each in lines)}</H>'
        for no, change, lines in orders
    ]
    return f"<all>{''.join(elements)}</all>"


@pytest.mark.parametrize("layout", [HEADERS, ELEMENTS], ids=["headers", "elements"])
def test_an_order_without_lines_in_a_file_is_cancelled_or_rejected(tmp_path: Path, layout: dict[str, Any]) -> None:
    """Its header or element says what became of it; no line is made for it of what is the same for all lines."""
    orders = {
        "mode": "append",
        "files": "out/O*",
        "format": layout,
        "key": ["NO"],
        "group_by": ["NO"],
        "deleted": {"field": "CHANGE", "equals": "D"},
        "on_gone": "delete",
        "gone": {"at_most_percent": 100},
        "resource": "order",
        "map": ORDER,
    }
    buyers = table("out/B*", ["ID"], resource="customer", map={"name": "ID"})
    fees = table("out/B*", ["ID"], resource="product", map={"sku": "ID", "name": "ID"})
    with SandboxServer(tmp_path / "sandbox") as platform:
        streams = {"buyers": buyers, "fees": fees, "orders": orders}
        wms = {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": streams}
        made = FolderProject(tmp_path, platform, {"wms": wms})
        assert made.run("init").exit_code == 0
        made.write("B1", "ID\n1\n")
        made.write("O1", written([("1", "", [2, 3]), ("2", "", [1])], layout["kind"]))
        assert "_element" not in made.run("try", "wms.orders", "--raw").stdout
        made.sync()
        before = len(made.effects())
        made.write("O2", written([("1", "D", []), ("3", "", []), ("2", "", [1])], layout["kind"]))
        report = made.sync(exit_code=1)
        assert [each["operation"] for each in made.effects()[before:]] == ["delete"]
        found = {name: number for name, number in report["streams"]["wms.orders"]["records"].items() if number}
        assert found == {"read": 3, "unchanged": 1, "delivered": 1, "deleted": 1, "rejected": 1}
