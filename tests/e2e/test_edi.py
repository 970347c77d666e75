"""X12 and EDIFACT files are streams like any others; a refused set is a dead letter, and the others are delivered."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.folder_project import FolderProject, table

from crossdock.sandbox import SandboxServer

PRODUCTS = {**table("out/P_*.csv", ["SKU"]), "resource": "product", "map": {"sku": "SKU", "name": "NAME"}}
CUSTOMERS = {**table("out/C_*.csv", ["NO"]), "resource": "customer", "map": {"name": "NAME"}}
SHIPPED = {
    "mode": "append", "files": "out/945_*.edi", "format": {"kind": "x12", "layout": "x12/945"},
    "key": ["order"], "group_by": ["order"], "resource": "order",
    "map": {
        "customerId": {"ref": "customer", "key": "ship_to_id"},
        "currency": {"const": "EUR"}, "status": {"const": "shipped"},
        "placedAt": {"from": "ship_date", "as": "instant", "format": "%Y-%m-%d", "timezone": "Europe/Berlin"},
        "items": {
            "each": {
                "productId": {"ref": "product", "key": "sku"},
                "quantity": {"from": "shipped", "as": "integer"},
                "unitPrice": {"const": 0},
            },
        },
    },
}  # fmt: skip
RECEIVED = {
    "mode": "append", "files": "out/DESADV_*.edi", "format": {"kind": "edifact", "layout": "edifact/DESADV"},
    "key": ["sscc", "line"], "resource": "inventory_lot",
    "map": {
        "productId": {"ref": "product", "key": "sku"}, "lotNumber": "sscc",
        "quantity": {"from": "shipped", "as": "decimal"}, "unitOfMeasure": "unit",
    },
}  # fmt: skip
ISA = f"ISA*00*{'':10}*00*{'':10}*ZZ*{'WAREHOUSE':15}*ZZ*{'SHOP':15}*261101*0800*U*00401*000000007*0*P*>~"
X12 = f"""{ISA}
GS*SW*WAREHOUSE*SHOP*20261101*0800*7*X*004010~
ST*945*0001~
W06*F*ORD-17*20261101*SHP-9~
N1*ST*Nut and Bolt*92*0017~
LX*1~
W12*CC*10*10*0*EA**VN*SKU-1~
W12*CP*5*3*2*EA**VN*SKU-2~
SE*7*0001~
ST*945*0002~
W06*F*ORD-18*20261101~
N1*ST*Nut and Bolt*92*0017~
W12*CC*1*1*0*EA**VN*SKU-1~
SE*9*0002~
ST*945*0003~
W06*F*ORD-19*20261102~
N1*ST*Nut and Bolt*92*0017~
W12*CC*4*4*0*EA**VN*SKU-2~
SE*5*0003~
GE*3*7~
IEA*1*000000007~
"""
EDIFACT = """UNA:+.? '
UNB+UNOC:3+4000001000005:14+4000002000004:14+261101:0800+77'
UNH+1+DESADV:D:96A:UN'
BGM+351+DES-9+9'
DTM+137:20261101:102'
CPS+1'
CPS+2+1'
GIN+BJ+340123450000000017'
LIN+1++4000001000012:EN'
PIA+1+SKU-1:SA'
QTY+12:10,5:KGM'
CPS+3+1'
GIN+BJ+340123450000000024'
LIN+2++4000001000029:EN'
PIA+1+SKU-2:SA'
QTY+12:3:PCE'
UNT+15+1'
UNZ+1+77'
"""


def test_shipping_advices_are_delivered(tmp_path: Path) -> None:
    """A 945 becomes orders and a DESADV becomes lots. Nothing of the refused set is delivered, and it is listed."""
    streams = {"products": PRODUCTS, "customers": CUSTOMERS, "shipped": SHIPPED, "received": RECEIVED}
    wms = {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": streams}
    with SandboxServer(tmp_path / "sandbox") as platform:
        project = FolderProject(tmp_path, platform, {"wms": wms})
        assert project.run("init").exit_code == 0
        project.write("P_1.csv", "SKU;NAME\nSKU-1;Bolt\nSKU-2;Nut\n")
        project.write("C_1.csv", "NO;NAME\n0017;Nut and Bolt\n")
        project.write("945_1.edi", X12)
        project.write("DESADV_1.edi", EDIFACT)
        project.sync(1)
        created = [each["body"] for each in project.effects()]
        orders = [each for each in created if "placedAt" in each]
        assert sorted([item["quantity"] for item in each["items"]] for each in orders) == [[4], [10, 3]]
        lots = {each["lotNumber"]: each["quantity"] for each in created if "lotNumber" in each}
        assert {name: float(quantity) for name, quantity in lots.items()} == {
            "340123450000000017": 10.5, "340123450000000024": 3,
        }  # fmt: skip
        (refused,) = json.loads(project.run("records", "list", "--state", "rejected", "--json").stdout)
        assert refused["why"].startswith("unreadable: set 945 '0002'")
        assert "segment 14, line 14: SE states the number '9', the file has 5" in refused["why"]
        assert refused["at"] == "945_1.edi:10"
        shown = project.run("layout", "show", str(tmp_path / "out/945_1.edi"), "--stream", "wms.shipped", "--raw")
        assert shown.exit_code == 4
        assert "W12.8" in shown.stdout
        assert "set 945 '0002'" in shown.stderr
        dropped = project.run("records", "drop", "wms.shipped", "--reason", "unreadable", "--yes")
        assert dropped.exit_code == 0, dropped.stderr
        before = len(project.effects())
        project.sync()
        assert len(project.effects()) == before


def test_an_interchange_that_a_file_has_twice_is_delivered_once(tmp_path: Path) -> None:
    """Mailboxes put what was sent again into one file: the rows of both would make one order with twice the pieces."""
    streams = {"products": PRODUCTS, "customers": CUSTOMERS, "shipped": SHIPPED, "received": RECEIVED}
    wms = {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": streams}
    sent = X12.replace("SE*9*0002", "SE*5*0002")
    with SandboxServer(tmp_path / "sandbox") as platform:
        project = FolderProject(tmp_path, platform, {"wms": wms})
        assert project.run("init").exit_code == 0
        project.write("P_1.csv", "SKU;NAME\nSKU-1;Bolt\nSKU-2;Nut\n")
        project.write("C_1.csv", "NO;NAME\n0017;Nut and Bolt\n")
        project.write("945_1.edi", sent + sent)
        project.write("DESADV_1.edi", EDIFACT + EDIFACT.partition("\n")[2])
        project.sync(1)
        created = [each["body"] for each in project.effects()]
        orders = [each for each in created if "placedAt" in each]
        assert sorted([item["quantity"] for item in each["items"]] for each in orders) == [[1], [4], [10, 3]]
        refused = json.loads(project.run("records", "list", "--state", "rejected", "--json").stdout)
        assert len(refused) == 4
        assert all("the same set of the same interchange is at segment" in each["why"] for each in refused)


STOCK = {
    "mode": "snapshot", "files": "out/846_*.edi", "format": {"kind": "x12", "layout": "x12/846"},
    "key": ["sku"], "resource": "product", "on_gone": "delete", "gone": {"at_most_percent": 100},
    "map": {"sku": "sku", "name": "sku"},
}  # fmt: skip


def _listed(*items: tuple[str, str], stated: int = 5) -> str:
    """An 846 with a set for each item; *stated* is what the last one says is its number of segments."""
    text = "BIA*00*PP*R*20261101~\nLIN**SK*{}~\nQTY*17*{}~\n"
    counts = [*([5] * (len(items) - 1)), stated]
    sets = [
        f"ST*846*000{number}~\n{text.format(*item)}SE*{count}*000{number}~\n"
        for number, (item, count) in enumerate(zip(items, counts, strict=True), 1)
    ]
    group = f"GS*IB*WAREHOUSE*SHOP*20261101*0800*7*X*004010~\n{''.join(sets)}GE*{len(sets)}*7~\n"
    return f"{ISA}\n{group}IEA*1*000000007~\n"


def test_a_refused_set_is_no_proof_that_its_records_are_gone(tmp_path: Path) -> None:
    """A snapshot with a set that cannot be read deletes nothing; one that is whole deletes what it does not list."""
    wms = {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": {"stock": STOCK}}
    with SandboxServer(tmp_path / "sandbox") as platform:
        project = FolderProject(tmp_path, platform, {"wms": wms})
        assert project.run("init").exit_code == 0
        project.write("846_1.edi", _listed(("A-1", "5"), ("B-2", "7")))
        project.sync()
        project.write("846_2.edi", _listed(("A-1", "5"), ("B-2", "7"), stated=9))
        project.run("sync")
        assert [each["operation"] for each in project.effects()] == ["create", "create"]
        project.write("846_3.edi", _listed(("A-1", "5")))
        project.run("records", "drop", "wms.stock", "--reason", "unreadable", "--yes")
        done = project.run("sync")
        assert done.exit_code == 0, done.stderr
        assert [each["operation"] for each in project.effects()] == ["create", "create", "delete"]
