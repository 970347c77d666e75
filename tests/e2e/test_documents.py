"""Files of XML and of JSON documents are streams like any others; a file that was cut delivers nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.e2e.folder_project import FolderProject

from crossdock.sandbox import SandboxServer

XML = {
    "kind": "xml", "record": "/p:Parts/p:Part", "namespaces": {"p": "urn:parts"}, "count": "/p:Parts/@count",
    "columns": {"SKU": "@no", "NAME": "p:Texts/p:De", "SENT": "/p:Parts/p:Head/p:Sent"},
}  # fmt: skip
ORDER_XML = {
    "kind": "xml", "record": "/Orders/Order", "rows": "Line",
    "columns": {"NO": "@no", "AT": "/Orders/Sent", "SKU": "Line/Sku", "QTY": "Line/@qty", "PRICE": "Line/Price"},
}  # fmt: skip
ORDER_MAP = {
    "customerId": {"const": "cus_1"}, "currency": {"const": "EUR"}, "placedAt": {"from": "AT", "as": "instant"},
    "items": {
        "each": {
            "productId": {"ref": "product", "key": "SKU"}, "quantity": {"from": "QTY", "as": "integer"},
            "unitPrice": {"from": "PRICE", "as": "decimal"},
        },
    },
}  # fmt: skip


def xml(parts: dict[str, str]) -> str:
    texts = "".join(f'<Part no="{key}"><Texts><De>{name}</De></Texts></Part>\n' for key, name in parts.items())
    return f'<Parts xmlns="urn:parts" count="{len(parts)}"><Head><Sent>2026-11-01</Sent></Head>\n{texts}</Parts>'


def document(parts: dict[str, str]) -> str:
    listed = [{"sku": key, "names": {"de": name}} for key, name in parts.items()]
    return json.dumps({"data": {"items": listed}, "total": len(parts)}, indent=1)


def test_a_parquet_file_proves_that_records_are_gone(tmp_path: Path) -> None:
    """Its footer states the rows; without its end nothing is imported, and with another type nothing changes."""
    stream = {
        "mode": "snapshot", "files": "out/P_*", "format": {"kind": "parquet"}, "key": ["sku"], "resource": "product",
        "map": {"sku": "sku", "name": "name"}, "on_gone": "delete", "gone": {"at_most_percent": 50},
    }  # fmt: skip
    wms = {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": {"products": stream}}
    with SandboxServer(tmp_path / "sandbox") as platform:
        project = FolderProject(tmp_path, platform, {"wms": wms})
        assert project.run("init").exit_code == 0
        (tmp_path / "out").mkdir()
        parts = pl.DataFrame({"sku": [17, 18, 19], "name": ["Bolzen", "Mutter", "Scheibe"]})
        parts.write_parquet(tmp_path / "out" / "P_1")
        project.sync()
        assert sorted(each["body"]["sku"] for each in project.effects()) == ["17", "18", "19"]
        newer = parts.head(2).with_columns(sku=pl.col("sku").cast(pl.String))
        newer.write_parquet(tmp_path / "out" / "P_2")
        whole = (tmp_path / "out" / "P_2").read_bytes()
        (tmp_path / "out" / "P_2").write_bytes(whole[:-9])
        refused = project.run("sync")
        assert (refused.exit_code, "P_2: the file has no footer" in refused.stderr) == (4, True)
        assert len(project.effects()) == parts.height
        (tmp_path / "out" / "P_2").write_bytes(whole)
        project.sync()
        assert [each["operation"] for each in project.effects()[3:]] == ["delete"]


@pytest.mark.parametrize(
    ("form", "paths", "write"),
    [
        (XML, ("SKU", "NAME"), xml),
        ({"kind": "json", "records": "data.items", "count": "total"}, ("sku", "names.de"), document),
    ],
)
def test_records_of_a_document_are_delivered(tmp_path: Path, form: dict[str, Any], paths: Any, write: Any) -> None:
    """Only what changed is sent again; a file that was cut, or has another number of records, is not imported."""
    sku, name = paths
    stream = {
        "mode": "snapshot", "files": "out/P_*", "format": form, "key": [sku], "resource": "product",
        "map": {"sku": sku, "name": name},
    }  # fmt: skip
    wms = {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": {"products": stream}}
    with SandboxServer(tmp_path / "sandbox") as platform:
        project = FolderProject(tmp_path, platform, {"wms": wms})
        assert project.run("init").exit_code == 0
        parts = {"0017": "Bolzen", "0018": "Mutter"}
        project.write("P_1", write(parts))
        project.sync()
        assert {each["body"]["sku"]: each["body"]["name"] for each in project.effects()} == parts
        changed = write(parts | {"0017": "Bolzen M8", "0019": "Scheibe"})
        for damaged in (changed[:-9], changed.replace("3", "4")):
            project.write("P_2", damaged)
            refused = project.run("sync")
            assert refused.exit_code == 4
            assert "P_2:" in refused.stderr
            assert len(project.effects()) == len(parts)
        project.write("P_2", changed)
        project.sync()
        assert sorted(each["body"]["name"] for each in project.effects()[2:]) == ["Bolzen M8", "Scheibe"]


def test_rows_of_a_record_are_the_items_of_an_order(tmp_path: Path) -> None:
    """Repeated elements are rows with the values around them, which a group makes one order of."""
    products = {
        "mode": "append", "files": "out/P_*", "format": XML, "key": ["SKU"], "resource": "product",
        "map": {"sku": "SKU", "name": "NAME"},
    }  # fmt: skip
    orders = {
        "mode": "append", "files": "out/O_*", "format": ORDER_XML, "key": ["NO"], "group_by": ["NO"],
        "resource": "order", "map": ORDER_MAP,
    }  # fmt: skip
    wms = {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": {"products": products, "orders": orders}}
    with SandboxServer(tmp_path / "sandbox") as platform:
        project = FolderProject(tmp_path, platform, {"wms": wms})
        assert project.run("init").exit_code == 0
        project.write("P_1", xml({"0017": "Bolzen", "0018": "Mutter"}))
        prices = [(2, "0017", "1.10"), (1, "0018", "3")]
        lines = "".join(f'<Line qty="{n}"><Sku>{sku}</Sku><Price>{price}</Price></Line>' for n, sku, price in prices)
        project.write("O_1", f'<Orders><Sent>2026-11-01T08:00:00Z</Sent><Order no="1">{lines}</Order></Orders>')
        project.sync(1)  # the customer does not exist at the platform
        (tried,) = project.run("try", "wms.orders", "--json").document["records"]
        assert [item["quantity"] for item in tried["draft"]["items"]] == ["2", "1"]
        shown = project.run("layout", "show", str(tmp_path / "out" / "O_1"), "--stream", "wms.orders", "--raw")
        assert shown.exit_code == 0
        assert "Line/Sku" in shown.stdout
