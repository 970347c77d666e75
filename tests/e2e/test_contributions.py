"""Several streams, one record; and actions, which are done once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.e2e.folder_project import FolderProject, table
from tests.plan_and_sync import differences

from crossdock.sandbox import SandboxServer

CREATED = table("out/ORD_*", ["NO"], resource="order", map={
    "customerId": {"ref": "customer", "key": "CUST"}, "currency": "CURRENCY", "placedAt": "AT",
    "items": {"each": {"productId": {"ref": "product", "key": "SKU"},
                       "quantity": {"from": "QTY", "as": "decimal"}, "unitPrice": {"const": 1}}},
}, group_by=["NO"])  # fmt: skip
SHIPPED = table("out/SHIP_*", ["NO"], resource="order", contributes=["status"], namespace="shop", map={
    "status": "STATUS",
})  # fmt: skip
CONNECTIONS: dict[str, Any] = {
    "shop": {
        "kind": "folder_warehouse", "path": ".", "settle_s": 0,
        "streams": {
            "customers": table("out/CUST_*", ["NO"], resource="customer", map={"name": "NAME"}),
            "products": table("out/PROD_*", ["SKU"], resource="product", map={"sku": "SKU", "name": "NAME"}),
            "orders": CREATED,
        },
    },
    "depot": {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": {"shipments": SHIPPED}},
}  # fmt: skip

ACTIONS: dict[str, Any] = {
    "bins": table("out/BIN_*", ["CODE"], resource="warehouse_bin", map={
        "code": "CODE", "warehouse": {"const": "W"},
    }),
    "lots": table("out/LOT_*", ["LOT"], resource="inventory_lot", map={
        "productId": {"ref": "product", "key": "SKU"}, "lotNumber": "LOT",
        "binId": {"ref": "warehouse_bin", "key": "BIN"}, "quantity": {"from": "QTY", "as": "decimal"},
    }),
    "invoices": table("out/INV_*", ["NO"], group_by=["NO"], resource="invoice", map={
        "customerId": {"ref": "customer", "key": "CUST"}, "currency": {"const": "EUR"},
        "items": {"each": {
            "productId": {"ref": "product", "key": "SKU"}, "quantity": {"const": 1}, "unitPrice": {"const": 2},
        }},
    }),
    "movements": table("out/MOV_*", ["ID"], resource="lot_movement", map={
        "lotId": {"ref": "inventory_lot", "key": "LOT"}, "toBinId": {"ref": "warehouse_bin", "key": "TO"},
        "quantity": {"from": "QTY", "as": "decimal"},
    }),
    "approvals": table("out/APP_*", ["NO"], resource="invoice_approval", map={
        "invoiceId": {"ref": "invoice", "key": "NO"},
    }),
}  # fmt: skip


def with_actions() -> dict[str, Any]:
    """The shop, with lots, invoices and actions on them."""
    return {**CONNECTIONS["shop"], "streams": {**CONNECTIONS["shop"]["streams"], **ACTIONS}}


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox") as running:
        yield running


@pytest.fixture
def client(platform: SandboxServer) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {platform.api_key}", "x-tenant-slug": platform.tenant}
    with httpx.Client(base_url=platform.base_url, headers=headers, trust_env=False) as opened:
        yield opened


def started(folder: Path, platform: SandboxServer, connections: dict[str, Any] = CONNECTIONS) -> FolderProject:
    project = FolderProject(folder, platform, connections)
    assert project.run("init").exit_code == 0
    project.write("CUST_1.csv", "NO;NAME\nC1;Harbour Lights\n")
    project.write("PROD_1.csv", "SKU;NAME\nP1;Lamp\n")
    return project


def orders(number: int, quantity: int = 1) -> str:
    rows = [f"{n};C1;EUR;2026-11-20T08:15:00Z;P1;{quantity}" for n in range(1, number + 1)]
    return "\n".join(["NO;CUST;CURRENCY;AT;SKU;QTY", *rows, ""])


@pytest.mark.nightly(but=["a snapshot that changes"])
@pytest.mark.parametrize("codes", ["a snapshot that changes", "a snapshot that does not change", "one append file"])
def test_a_record_that_was_created_again_gets_its_contributions_again(
    tmp_path: Path, platform: SandboxServer, client: httpx.Client, codes: str
) -> None:
    """A row that has not changed since, or is not read again, is sent to the new record, which does not have it."""
    counted = {"kind": "delimited", "delimiter": ";", "trailer": {"prefix": "TRL;", "count": 1}}
    removed = {"mode": "snapshot", "format": counted, "on_gone": "delete", "gone": {"at_most_percent": 100}}
    names = table("out/PROD_*", ["SKU"], resource="product", map={"sku": "SKU", "name": "NAME"}) | removed
    barcodes = table("out/CODE_*", ["SKU"], resource="product", contributes=["barcode"], map={"barcode": "CODE"})
    streams = {"products": names, "barcodes": barcodes | {"mode": "append" if "append" in codes else "snapshot"}}
    connections = {"shop": {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": streams}}
    project = FolderProject(tmp_path, platform, connections)
    assert project.run("init").exit_code == 0
    both, one = "SKU;NAME\nP1;Lamp\nP2;Bulb\nTRL;2\n", "SKU;NAME\nP1;Lamp\nTRL;1\n"
    for night, (listed, code) in enumerate([(both, "a"), (both, "b"), (one, "c"), (both, "d")]):
        project.write(f"PROD_2026-11-0{night + 1}.csv", listed)
        if night == 0 or "snapshot" in codes:
            changes = code if codes == "a snapshot that changes" else "z"
            project.write(f"CODE_2026-11-0{night + 1}.csv", f"SKU;CODE;NIGHT\nP1;111;{changes}\nP2;222;z\n")
        report = agreed(project) if night else project.sync()
        assert report["requests"] == [4, 0, 1, 2][night]
        assert project.run("reconcile").exit_code == 0, "nothing waits for the deleted record"
    products = client.get("/api/v1/catalog/products").json()["data"]
    assert {each["sku"]: each.get("barcode") for each in products} == {"P1": "111", "P2": "222"}


@pytest.mark.nightly(but=["repaired"])
@pytest.mark.parametrize("way", ["repaired", "mapped again"])
def test_what_was_contributed_to_a_deleted_record_waits_for_nothing(
    tmp_path: Path, platform: SandboxServer, client: httpx.Client, way: str
) -> None:
    """Its row is decided again, by a repair or under another mapping, and later syncs still end with nothing open."""
    counted = {"kind": "delimited", "delimiter": ";", "trailer": {"prefix": "TRL;", "count": 1}}
    removed = {"mode": "snapshot", "format": counted, "on_gone": "delete", "gone": {"at_most_percent": 100}}
    names = table("out/PROD_*", ["SKU"], resource="product", map={"sku": "SKU", "name": "NAME"}) | removed
    barcodes = table("out/CODE_*", ["SKU"], resource="product", contributes=["barcode"], map={"barcode": "CODE"})
    connections = {
        "shop": {
            "kind": "folder_warehouse", "path": ".", "settle_s": 0,
            "streams": {"products": names, "barcodes": barcodes | {"mode": "snapshot"}},
        }
    }  # fmt: skip
    project = FolderProject(tmp_path, platform, connections)
    assert project.run("init").exit_code == 0
    both, one = "SKU;NAME\nP1;Lamp\nP2;Bulb\nTRL;2\n", "SKU;NAME\nP1;Lamp\nTRL;1\n"
    project.write("CODE_2026-11-01.csv", "SKU;CODE\nP1;111\nP2;222\n")
    for night, listed in enumerate([both, both.replace("Bulb", "Tube"), one], 1):
        project.write(f"PROD_2026-11-0{night}.csv", listed)
        agreed(project)
    if way == "repaired":
        held = client.get("/api/v1/catalog/products").json()["data"]
        client.patch(f"/api/v1/catalog/products/{held[0]['id']}", json={"name": "Changed"}).raise_for_status()
        assert project.run("reconcile", "-o", str(tmp_path / "repair")).exit_code == 1
        done = project.run("apply", str(tmp_path / "repair"))
        assert done.exit_code == 0, done.stdout + done.stderr
    else:
        text = project.config.read_text(encoding="utf-8")
        project.config.write_text(text.replace("barcode: CODE", "barcode: {from: CODE, as: text}"), encoding="utf-8")
    project.write("PROD_2026-11-04.csv", one.replace("Lamp", "Light"))
    agreed(project)
    project.write("PROD_2026-11-05.csv", both)
    assert agreed(project)["requests"] == 3
    products = client.get("/api/v1/catalog/products").json()["data"]
    assert {each["sku"]: each.get("barcode") for each in products} == {"P1": "111", "P2": "222"}


def test_an_undo_keeps_a_record_to_which_a_later_run_has_contributed(
    tmp_path: Path, platform: SandboxServer, client: httpx.Client
) -> None:
    """What the later run has delivered would be deleted with the record, although that run is not undone."""
    names = table("out/PROD_*", ["SKU"], resource="product", map={"sku": "SKU", "name": "NAME"})
    barcodes = table("out/CODE_*", ["SKU"], resource="product", contributes=["barcode"], map={"barcode": "CODE"})
    streams = {"products": names, "barcodes": barcodes}
    connections = {"shop": {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": streams}}
    project = FolderProject(tmp_path, platform, connections)
    assert project.run("init").exit_code == 0
    project.write("PROD_1.csv", "SKU;NAME\nP1;Lamp\nP2;Bulb\nP3;Tube\n")
    project.write("CODE_1.csv", "SKU;CODE\nP3;333\n")
    first = project.sync()["run"]
    project.write("CODE_2.csv", "SKU;CODE\nP1;111\n")
    later = project.sync()["run"]
    planned = project.run("undo", str(first))
    assert (planned.exit_code, f"run {later} has delivered it again since" in planned.stdout) == (1, True)
    assert project.run("undo", str(first), "--execute").exit_code == 0
    products = client.get("/api/v1/catalog/products").json()["data"]
    assert [(each["sku"], each["barcode"]) for each in products] == [("P1", "111")]


def test_a_record_that_a_forgotten_run_has_created_again_gets_what_the_source_says(
    tmp_path: Path, platform: SandboxServer, client: httpx.Client
) -> None:
    """The backup knows the contribution to a former record; the platform has another one by then."""
    counted = {"kind": "delimited", "delimiter": ";", "trailer": {"prefix": "TRL;", "count": 1}}
    removed = {"mode": "snapshot", "format": counted, "on_gone": "delete", "gone": {"at_most_percent": 100}}
    names = table("out/PROD_*", ["SKU"], resource="product", map={"sku": "SKU", "name": "NAME"}) | removed
    barcodes = table("out/CODE_*", ["SKU"], resource="product", contributes=["barcode"], map={"barcode": "CODE"})
    streams = {"products": names, "barcodes": barcodes}
    project = FolderProject(
        tmp_path, platform, {"shop": {"kind": "folder_warehouse", "path": ".", "settle_s": 0, "streams": streams}}
    )
    assert project.run("init").exit_code == 0
    both, one = "SKU;NAME\nP1;Lamp\nP2;Bulb\nTRL;2\n", "SKU;NAME\nP1;Lamp\nTRL;1\n"
    for night, (listed, code) in enumerate([(both, "222"), (both, ""), (one, ""), (both, "333")]):
        if night == 3:
            shutil.copy2(tmp_path / "state.db", tmp_path / "backup.db")
        project.write(f"PROD_2026-11-0{night + 1}.csv", listed)
        if code:
            project.write(f"CODE_2026-11-0{night + 1}.csv", f"SKU;CODE\nP2;{code}\n")
        project.sync()
    for file in tmp_path.glob("state.db-*"):
        file.unlink()
    shutil.copy2(tmp_path / "backup.db", tmp_path / "state.db")
    project.write("CODE_2026-11-05.csv", "SKU;CODE\nP2;222\n")
    assert project.run("state", "restored").exit_code == 0
    project.sync()
    products = client.get("/api/v1/catalog/products").json()["data"]
    assert {each["sku"]: each.get("barcode") for each in products} == {"P1": None, "P2": "222"}


def stored(client: httpx.Client) -> dict[str, dict[str, Any]]:
    listed = client.get("/api/v1/sales/orders", params={"limit": "100"}).json()["data"]
    return {each["externalId"]: each for each in listed}


def agreed(project: FolderProject, exit_code: int = 0) -> dict[str, Any]:
    """The report of a sync that did what a plan said."""
    planned = project.plan()
    report = project.sync(exit_code)
    assert differences(planned, report) == []
    return report


def test_a_contribution_is_written_where_the_record_exists(
    tmp_path: Path, platform: SandboxServer, client: httpx.Client
) -> None:
    """Two streams write one order: each its own members, in one run as in two, and neither undoes the other."""
    project = started(tmp_path, platform)
    project.write("ORD_1.csv", orders(2))
    project.write("SHIP_1.csv", "NO;STATUS\n1;shipped\n9;shipped\n")
    report = agreed(project, exit_code=1)
    assert {name: each.get("status") for name, each in stored(client).items()} == {"shop:1": "shipped", "shop:2": None}
    records = report["streams"]["depot.shipments"]["records"]
    assert (records["updated"], records["carried_on"]) == (1, 1), "the order 9 does not exist yet"

    project.write("ORD_2.csv", orders(2, quantity=5))
    project.write("SHIP_2.csv", "NO;STATUS\n2;packed\n")
    agreed(project, exit_code=1)
    found = stored(client)
    assert {name: (each["status"], each["items"][0]["quantity"]) for name, each in found.items()} == {
        "shop:1": ("shipped", 5), "shop:2": ("packed", 5),
    }  # fmt: skip


def test_each_change_costs_one_request(tmp_path: Path, platform: SandboxServer, client: httpx.Client) -> None:
    """A contribution renews the version that the next update names, so nothing is refused and looked up."""
    project = started(tmp_path, platform)
    for turn, status in enumerate(("packed", "shipped"), 1):
        project.write(f"ORD_{turn}.csv", orders(3, quantity=turn))
        project.write(f"SHIP_{turn}.csv", f"NO;STATUS\n1;{status}\n2;{status}\n")
        report = agreed(project)
        delivered = sum(each["records"]["delivered"] for each in report["streams"].values())
        assert report["requests"] == delivered
    idle = agreed(project)
    assert idle["requests"] == 0


def test_a_waiting_contribution_follows_its_record(
    tmp_path: Path, platform: SandboxServer, client: httpx.Client
) -> None:
    """A shipment that came before its order is written in the run that creates the order."""
    project = started(tmp_path, platform)
    project.write("SHIP_1.csv", "NO;STATUS\n3;shipped\n")
    report = agreed(project, exit_code=1)
    assert report["streams"]["depot.shipments"]["records"]["carried_on"] == 1
    project.write("ORD_1.csv", orders(3))
    agreed(project)
    assert stored(client)["shop:3"]["status"] == "shipped"


def test_a_record_may_be_named_by_its_id(tmp_path: Path, platform: SandboxServer, client: httpx.Client) -> None:
    """``matches: id``: the key is the platform's id, also of a record that crossdock did not create; an unknown id is a
    dead letter."""
    by_id = {"depot": {**CONNECTIONS["depot"], "streams": {"shipments": {**SHIPPED, "matches": "id"}}}}
    project = started(tmp_path, platform, {**CONNECTIONS, **by_id})
    project.write("ORD_1.csv", orders(1))
    project.sync()
    order = stored(client)["shop:1"]
    project.write("SHIP_1.csv", f"NO;STATUS\n{order['id']};shipped\nord_unknown;shipped\n")
    report = project.sync(exit_code=1)
    records = report["streams"]["depot.shipments"]["records"]
    assert (records["updated"], records["rejected"]) == (1, 1)
    assert stored(client)["shop:1"]["status"] == "shipped"
    project.write("ORD_2.csv", orders(1, quantity=4))
    assert project.sync(exit_code=1)["streams"]["shop.orders"]["records"]["updated"] == 1
    found = stored(client)["shop:1"]
    assert (found["status"], found["items"][0]["quantity"]) == ("shipped", 4)


def test_a_member_that_others_changed_is_not_overwritten(
    tmp_path: Path, platform: SandboxServer, client: httpx.Client
) -> None:
    """With ``conflicts: reject`` a member that somebody else set is a dead letter; other members of theirs are kept."""
    careful = {"depot": {**CONNECTIONS["depot"], "streams": {"shipments": {**SHIPPED, "conflicts": "reject"}}}}
    project = started(tmp_path, platform, {**CONNECTIONS, **careful})
    project.write("ORD_1.csv", orders(2))
    project.write("SHIP_1.csv", "NO;STATUS\n1;packed\n2;packed\n")
    project.sync()
    for name, change in (
        ("shop:1", {"status": "on hold"}),
        ("shop:2", {"tracking": [{"carrier": "X", "number": "1"}]}),
    ):
        path = f"/api/v1/sales/orders/{stored(client)[name]['id']}"
        assert client.patch(path, json=change).status_code == 200
    project.write("SHIP_2.csv", "NO;STATUS\n1;shipped\n2;shipped\n")
    report = project.sync(exit_code=1)
    records = report["streams"]["depot.shipments"]["records"]
    assert (records["updated"], records["rejected"]) == (1, 1)
    found = stored(client)
    assert (found["shop:1"]["status"], found["shop:2"]["status"]) == ("on hold", "shipped")
    assert found["shop:2"]["tracking"] == [{"carrier": "X", "number": "1"}]
    assert "somebody else has changed status" in project.run("records", "list", "--state", "rejected").stdout


def edited(project: FolderProject, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the connections of the config."""
    config = yaml.safe_load(project.config.read_text(encoding="utf-8"))
    change(config["connections"])
    project.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")


ORDERED = "NO;CUST;CURRENCY;AT;SKU;QTY;STATUS\n1;C1;EUR;2026-11-20T08:15:00Z;P1;1;{}\n"


@pytest.mark.nightly(but=["key"])
@pytest.mark.parametrize("matches", ["key", "id"])
def test_a_member_that_another_stream_contributes_from_now_on_stays(
    tmp_path: Path, platform: SandboxServer, client: httpx.Client, matches: str
) -> None:
    """The stream of the whole records gives it up: it is not taken away from those of which the other knows nothing."""
    mapped = {**CREATED, "map": {**CREATED["map"], "status": "STATUS"}}
    whole = {**CONNECTIONS["shop"], "streams": {**CONNECTIONS["shop"]["streams"], "orders": mapped}}
    project = started(tmp_path, platform, {"shop": whole})
    project.write(
        "ORD_1.csv", ORDERED.format("shipped") + ORDERED.format("packed").splitlines()[1].replace("1", "2", 1)
    )
    agreed(project)

    def hand_over(connections: dict[str, Any]) -> None:
        del connections["shop"]["streams"]["orders"]["map"]["status"]
        depot = {**CONNECTIONS["depot"], "streams": {"shipments": {**SHIPPED, "matches": matches}}}
        connections["depot"] = depot

    edited(project, hand_over)
    ids = {name.partition(":")[2]: each["id"] for name, each in stored(client).items()}
    project.write("SHIP_1.csv", f"NO;STATUS\n{'2' if matches == 'key' else ids['2']};shipped\n")
    assert agreed(project)["requests"] == 1
    assert {name: each.get("status") for name, each in stored(client).items()} == dict.fromkeys(
        ("shop:1", "shop:2"), "shipped"
    )
    assert project.run("reconcile").exit_code == 0


def test_a_member_that_is_contributed_no_longer_is_not_taken_away(
    tmp_path: Path, platform: SandboxServer, client: httpx.Client
) -> None:
    """The stream of the whole records writes it now. What the other one contributed before does not undo that."""
    both = {**SHIPPED, "contributes": ["status", "tracking"], "group_by": ["NO"], "map": {
        "status": "STATUS", "tracking": {"each": {"carrier": "CARRIER", "number": "NUMBER"}},
    }}  # fmt: skip
    connections = {**CONNECTIONS, "depot": {**CONNECTIONS["depot"], "streams": {"shipments": both}}}
    project = started(tmp_path, platform, connections)
    project.write("ORD_1.csv", ORDERED.format("open"))
    project.write("SHIP_1.csv", "NO;STATUS;CARRIER;NUMBER\n1;shipped;DHL;17\n")
    agreed(project)

    def take_back(connections: dict[str, Any]) -> None:
        connections["shop"]["streams"]["orders"]["map"]["status"] = "STATUS"
        shipments = connections["depot"]["streams"]["shipments"]
        shipments["contributes"] = ["tracking"]
        del shipments["map"]["status"]

    edited(project, take_back)
    project.write("ORD_1.csv", ORDERED.format("closed"))
    assert agreed(project)["requests"] == 1
    (order,) = stored(client).values()
    assert (order["status"], order["tracking"][0]["number"]) == ("closed", "17")
    assert project.run("reconcile").exit_code == 0


@pytest.mark.parametrize(
    ("shipments", "message"),
    [
        ({"contributes": ["state"]}, "unknown member; did you mean 'status'?"),
        ({"on_gone": "delete", "mode": "snapshot"}, "contributes needs on_gone: nothing"),
        ({"contributes": []}, "matches needs contributes"),
        ({"contributes": ["tracking"]}, "is not one of contributes: tracking"),
        ({"resource": "invoice", "contributes": ["currency"], "map": {"currency": "STATUS"}}, "is written once"),
        ({"contributes": ["currency"], "map": {"currency": "STATUS"}}, "both write currency of order"),
    ],
)  # fmt: skip
def test_what_cannot_be_contributed_is_said_at_once(
    tmp_path: Path, platform: SandboxServer, shipments: dict[str, Any], message: str
) -> None:
    """A config error names the key and the reason."""
    given = {**SHIPPED, **shipments}
    if not given["contributes"]:
        given = {**given, "matches": "id", "map": CREATED["map"], "group_by": ["NO"]}
    connections = {**CONNECTIONS, "depot": {**CONNECTIONS["depot"], "streams": {"shipments": given}}}
    done = FolderProject(tmp_path, platform, connections).run("plan")
    assert done.exit_code == 2
    assert message in done.stderr


def test_actions_are_done_once(tmp_path: Path, platform: SandboxServer, client: httpx.Client) -> None:
    """Stock is moved and an invoice approved by records; a record that comes again, in another file, does nothing, and
    one that says something else now is rejected."""
    project = started(tmp_path, platform, {"shop": with_actions()})
    project.write("BIN_1.csv", "CODE\nA1\nOUT\n")
    project.write("LOT_1.csv", "LOT;SKU;BIN;QTY\nL1;P1;A1;10\n")
    project.write("INV_1.csv", "NO;CUST;SKU\n1;C1;P1\n2;C1;P1\n")
    project.write("MOV_1.csv", "ID;LOT;TO;QTY\nM1;L1;OUT;3\nM2;L1;OUT;4\nM3;L9;OUT;1\n")
    project.write("APP_1.csv", "NO\n1\n")
    report = agreed(project, exit_code=1)
    assert report["streams"]["shop.movements"]["records"]["created"] == 2
    quantities = {each["externalId"]: each["quantity"] for each in listed(client, "/api/v1/inventory/lots")}
    assert quantities == {"shop:L1": 3, "shop:L1@OUT": 7}
    assert [each["status"] for each in listed(client, "/api/v1/finance/invoices")].count("approved") == 1

    project.write("MOV_2.csv", "ID;LOT;TO;QTY\nM2;L1;OUT;4\nM1;L1;OUT;2\n")
    project.write("APP_2.csv", "NO\n1\n2\n")
    report = agreed(project, exit_code=1)
    assert report["streams"]["shop.movements"]["records"]["rejected"] == 1, "M1 was carried out with another quantity"
    moves = [each for each in effects(client) if each["operation"] in {"move", "approve"}]
    assert [each["operation"] for each in moves].count("move") == 2
    assert [each["operation"] for each in moves].count("approve") == 2


@pytest.mark.nightly(but=["1"])
@pytest.mark.parametrize("others", [1, 30])
def test_an_action_on_a_record_that_is_gone_is_a_dead_letter(
    tmp_path: Path, platform: SandboxServer, client: httpx.Client, others: int
) -> None:
    """A person has deleted the lot on the platform: its movement is refused alone, and all others are delivered."""
    project = started(tmp_path, platform, {"shop": with_actions()})
    project.write("BIN_1.csv", "CODE\nA1\nOUT\n")
    project.write("LOT_1.csv", "LOT;SKU;BIN;QTY\nL1;P1;A1;50\nL2;P1;A1;50\n")
    project.sync()
    ids = {each["externalId"]: each["id"] for each in listed(client, "/api/v1/inventory/lots")}
    assert client.delete(f"/api/v1/inventory/lots/{ids['shop:L1']}").status_code == 204
    project.write("MOV_1.csv", "ID;LOT;TO;QTY\nM0;L1;OUT;1\n")
    report = project.sync(exit_code=1)
    assert report["streams"]["shop.movements"]["records"]["rejected"] == 1
    assert "no such inventory_lot" in project.run("records", "list").stdout
    project.write("MOV_2.csv", "\n".join(["ID;LOT;TO;QTY", *(f"M{n + 1};L2;OUT;1" for n in range(others)), ""]))
    project.write("INV_1.csv", "NO;CUST;SKU\n1;C1;P1\n")
    records = project.sync(exit_code=1)["streams"]
    assert (records["shop.movements"]["records"]["created"], records["shop.invoices"]["records"]["created"]) == (
        others,
        1,
    )
    assert [each["operation"] for each in effects(client)].count("move") == others


def test_a_platform_without_an_action_is_a_wrong_config(
    tmp_path: Path, platform: SandboxServer, client: httpx.Client
) -> None:
    """Where all movements are answered 404, the run ends after a few, and the others stay pending."""
    project = started(tmp_path, platform, {"shop": with_actions()})
    lots = [f"L{n};P1;A1;1" for n in range(40)]
    project.write("BIN_1.csv", "CODE\nA1\nOUT\n")
    project.write("LOT_1.csv", "\n".join(["LOT;SKU;BIN;QTY", *lots, ""]))
    project.sync()
    for each in listed(client, "/api/v1/inventory/lots"):
        client.delete(f"/api/v1/inventory/lots/{each['id']}")
    project.write("MOV_1.csv", "\n".join(["ID;LOT;TO;QTY", *(f"M{n};L{n};OUT;1" for n in range(40)), ""]))
    report = project.sync(exit_code=3)
    records = report["streams"]["shop.movements"]["records"]
    assert (records["rejected"], records["carried_on"]) == (10, 30)
    assert "has nothing at /api/v1/inventory/lots/" in json.dumps(report)


def test_records_that_are_listed_again_refer_to_a_record_that_was_created_again(
    tmp_path: Path, platform: SandboxServer, client: httpx.Client
) -> None:
    """A person has deleted a product, and a replay creates it with another id: its lots, which have not changed, and
    the lots of others, are read in the next snapshot, and only the former get the new id."""
    shop = with_actions()
    shop["streams"]["lots"] = {**ACTIONS["lots"], "mode": "snapshot"}
    project = started(tmp_path, platform, {"shop": shop})
    project.write("PROD_2.csv", "SKU;NAME\nP2;Bulb\n")
    project.write("BIN_1.csv", "CODE\nA1\n")
    lots = "LOT;SKU;BIN;QTY\nL1;P1;A1;10\nL2;P2;A1;20\n"
    project.write("LOT_2026-11-01.csv", lots)
    project.sync()
    ids = {each["sku"]: each["id"] for each in listed(client, "/api/v1/catalog/products")}
    assert client.delete(f"/api/v1/catalog/products/{ids['P1']}").status_code == 204
    project.write("PROD_3.csv", "SKU;NAME\nP1;Lantern\n")
    project.sync(exit_code=1)
    assert project.run("records", "replay", "--reason", "missing").exit_code == 0
    project.write("LOT_2026-11-02.csv", lots + "L3;P1;A1;30\n")
    report = agreed(project)
    records = report["streams"]["shop.lots"]["records"]
    assert (records["updated"], records["created"], records["unchanged"]) == (1, 1, 1)
    now = {each["sku"]: each["id"] for each in listed(client, "/api/v1/catalog/products")}
    found = {each["lotNumber"]: each["productId"] for each in listed(client, "/api/v1/inventory/lots")}
    assert found == {"L1": now["P1"], "L2": ids["P2"], "L3": now["P1"]}
    assert now["P1"] != ids["P1"]


def test_records_that_are_not_listed_again_are_named_when_their_parent_is_created_again(
    tmp_path: Path, platform: SandboxServer, client: httpx.Client
) -> None:
    """The rows of an append stream come once: the run tells of their records, and a repair gives them the new id."""
    project = started(tmp_path, platform, {"shop": with_actions()})
    project.write("BIN_1.csv", "CODE\nA1\n")
    project.write("LOT_1.csv", "LOT;SKU;BIN;QTY\nL1;P1;A1;10\n")
    project.sync()
    (product,) = listed(client, "/api/v1/catalog/products")
    assert client.delete(f"/api/v1/catalog/products/{product['id']}").status_code == 204
    project.write("PROD_2.csv", "SKU;NAME\nP1;Lantern\n")
    project.sync(exit_code=1)
    replayed = project.run("records", "replay", "--reason", "missing")
    said = " ".join(f"{replayed.stdout} {replayed.stderr}".split())
    assert "1 record refers to a record that was created again, by its former id" in said
    assert "[references_outdated]" in said
    project.run("reconcile", "-o", str(tmp_path / "repair.plan"))
    assert project.run("apply", str(tmp_path / "repair.plan")).exit_code == 0
    (product,), (lot,) = listed(client, "/api/v1/catalog/products"), listed(client, "/api/v1/inventory/lots")
    assert lot["productId"] == product["id"]


def listed(client: httpx.Client, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(path, params={"limit": "100"}).json()["data"]
    return found


def effects(client: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(client.get("/_sandbox/effects", params={"limit": "1000"}).text)["data"]
    return found
