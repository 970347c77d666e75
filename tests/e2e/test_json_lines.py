"""Files of JSON Lines are streams like any others: members by their paths, lists, and refused files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.e2e.folder_project import FolderProject

from crossdock.sandbox import SandboxServer

FORMAT = {"kind": "json_lines"}
PRODUCTS = {
    "mode": "append", "files": "out/P_*.jsonl", "format": FORMAT, "key": ["id"], "resource": "product",
    "map": {"sku": "id", "name": "names.de"},
}  # fmt: skip
ORDERS = {
    "mode": "snapshot", "files": "out/O_*.jsonl", "format": FORMAT, "key": ["no"], "resource": "order",
    "map": {
        "customerId": {"const": "cus_1"}, "currency": "currency", "placedAt": {"from": "at", "as": "instant"},
        "items": {
            "of": "lines",
            "each": {
                "productId": {"ref": "product", "key": "sku"},
                "quantity": {"from": "n", "as": "integer"},
                "unitPrice": {"from": "price", "as": "decimal"},
            },
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("shared", [False, True])
def test_objects_are_records(tmp_path: Path, *, shared: bool) -> None:
    """A list of an object is made into items; a changed file sends what differs; a refused one is not imported."""
    wms = {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": {"products": PRODUCTS, "orders": ORDERS}}
    if shared:
        source = {"files": ORDERS["files"], "format": FORMAT}
        orders = {key: value for key, value in ORDERS.items() if key not in source} | {"source": "orders"}
        wms |= {"sources": {"orders": source}, "streams": {"products": PRODUCTS, "orders": orders}}
    with SandboxServer(tmp_path / "sandbox") as platform:
        project = FolderProject(tmp_path, platform, {"wms": wms})
        assert project.run("init").exit_code == 0
        named = {"0017": "Bolzen", "0018": "Mutter"}
        objects = [json.dumps({"id": key, "names": {"de": name}}) for key, name in named.items()]
        project.write("P_1.jsonl", "\n".join(objects))
        lines = [{"sku": "0017", "n": 2, "price": 1.10}, {"sku": "0018", "n": 1, "price": 3}]
        order = {"no": 1, "currency": "EUR", "at": "2026-11-01T08:00:00Z", "lines": lines}
        project.write("O_1.jsonl", json.dumps(order) + "\n")
        project.sync(1)  # the customer does not exist at the platform
        created = [each["body"] for each in project.effects()]
        assert {each["sku"]: each["name"] for each in created} == named
        (tried,) = project.run("try", "wms.orders", "--json").document["records"]
        assert "unitPrice" in str(tried)
        project.write("P_2.jsonl", '{"id": "0017", "names": {"de": "Bolzen M8"}}\n{"id": 18\n')
        refused = project.run("sync", "wms.products")
        assert refused.exit_code == 4
        assert "P_2.jsonl:2:10: is not JSON" in refused.stderr
        project.write("P_2.jsonl", '{"id": "0017", "names": {"de": "Bolzen M8"}}\n')
        assert project.run("sync", "wms.products").exit_code == 0
        assert project.effects()[-1]["body"]["name"] == "Bolzen M8"
