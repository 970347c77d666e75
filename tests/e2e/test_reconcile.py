"""`reconcile` finds what is not the same everywhere, and its repair makes it so."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import create_engine, text
from tests.e2e.warehouse import INVOICES, PRODUCTS, Result, Site, ask

from crossdock.delta.fingerprint import key_hashes

SOLD = PRODUCTS + "P3;Washer;0.05\n"  # the last one is on no invoice
_PATHS = {"customer": "sales/customers", "product": "catalog/products", "invoice": "finance/invoices"}


def call(site: Site, method: str, path: str, body: Any = None) -> Any:
    headers = {"authorization": f"Bearer {site.api_key}", "x-tenant-slug": site.tenant}
    sent = b"" if body is None else json.dumps(body).encode()
    headers |= {"content-type": "application/json"} if sent else {}
    reply = ask(urlsplit(site.platform.base_url).netloc, method, f"/api/v1/{path}", sent, headers)
    assert reply.status < 300, reply.body
    return json.loads(reply.body or b"null")


def held(site: Site, resource: str) -> dict[str, dict[str, Any]]:
    """What the platform has, by external id; invoices by id."""
    listed = call(site, "GET", _PATHS[resource])["data"]
    return {each.get("externalId", each["id"]): each for each in listed}


def found(result: Result) -> list[tuple[str, str, str]]:
    return [(each["class"], each["resource"], each["key"]) for each in result.json["shown"]]


def state(site: Site, statement: str) -> None:
    engine = create_engine(f"sqlite:///{site.folder / 'state.db'}")
    with engine.begin() as connection:
        assert connection.execute(text(statement)).rowcount == 1
    engine.dispose()


@pytest.fixture
def synced(site: Site) -> Site:
    site.init()
    site.fill()
    site.export("PROD_1.csv", SOLD)
    assert site.sync().code == 0
    return site


@pytest.mark.nightly
def test_what_was_synced_is_the_same_everywhere(synced: Site) -> None:
    """No difference, equal totals on three sides, one page for each resource; nothing is written."""
    before = len(synced.effects())
    result = synced.run("reconcile", "--json")
    assert (result.code, found(result), result.json["requests"]) == (0, [], 3)
    totals = result.json["totals"]["invoice"]
    assert totals["source"] == totals["state"] == totals["platform"]
    assert totals["source"] == {"records": 3, "quantity": "107", "amounts": {"EUR": "30.2500"}}
    assert totals["differing"] == []
    assert len(synced.effects()) == before
    shown = synced.run("reconcile").out
    assert "compared 8 records with 3 requests: no differences" in shown


def test_archived_files_are_no_difference(synced: Site) -> None:
    """Records of files that are there no more are counted; a record that others edit is still found."""
    for name in ("CUST_1.csv", "INV_1.csv"):
        (synced.folder / "served" / "out" / name).unlink()
    synced.export("CUST_2.csv", "CUSTNO;NAME\nC9;New\n")
    assert synced.sync("wms.customers").code == 0
    result = synced.run("reconcile", "--json")
    assert (result.code, found(result)) == (0, [])
    assert result.json["unavailable"] == {"wms.customers": 2, "wms.invoices": 3}
    assert result.json["totals"]["invoice"]["differing"] == []
    assert result.json["totals"]["invoice"]["source"]["records"] == 0, "what it says today"
    assert "wms.invoices: the source of 3 records cannot be read any more" in synced.run("reconcile").out
    edited = held(synced, "customer")["wms:C1"]["id"]
    call(synced, "PATCH", f"{_PATHS['customer']}/{edited}", {"name": "Of others"})
    assert found(synced.run("reconcile", "--json")) == [("diverged", "customer", "C1")]


@pytest.fixture
def archived(site: Site) -> Site:
    """The newer one of two exports of customers was read and archived; the older one was passed over and stays."""
    site.edit(
        'mode: append\n        files: "out/CUST_*"',
        'mode: snapshot\n        archive: out/done\n        files: "out/CUST_*"',
    )
    site.init()
    (site.out / "done").mkdir()
    old, new = (
        site.export(f"CUST_2026010{day}.csv", f"CUSTNO;NAME\nC1;{name}\nC2;Other\n")
        for day, name in ((1, "Old"), (2, "New"))
    )
    for path, at in ((old, 1_767_225_600), (new, 1_767_312_000)):
        os.utime(path, (at, at))
    assert site.sync("wms.customers").code == 0
    assert (old.exists(), new.exists()) == (True, False)
    return site


def test_an_older_export_beside_archived_ones_is_not_read(archived: Site) -> None:
    """Neither the comparison nor the first sync of a restored state takes it for the present."""
    shutil.copy2(archived.folder / "state.db", archived.folder / "backup.db")
    result = archived.run("reconcile", "--json")
    assert (result.code, found(result), result.json["unavailable"]) == (0, [], {"wms.customers": 2})
    for file in archived.folder.glob("state.db-*"):
        file.unlink()
    shutil.copy2(archived.folder / "backup.db", archived.folder / "state.db")
    assert archived.run("state", "restored").code == 0
    for _ in range(2):
        assert archived.sync("wms.customers").records("customers") == {}
    assert held(archived, "customer")["wms:C1"]["name"] == "New"
    archived.export("CUST_20260103.csv", "CUSTNO;NAME\nC1;Newest\nC2;Other\n")
    assert archived.sync("wms.customers").records("customers") == {"read": 2, "unchanged": 1, "updated": 1}


def test_records_of_an_archived_snapshot_are_repaired(archived: Site) -> None:
    """No source says what they are now, so they get what the platform had accepted, and are not forgotten."""
    ids = {key: each["id"] for key, each in held(archived, "customer").items()}
    call(archived, "DELETE", f"{_PATHS['customer']}/{ids['wms:C2']}")
    call(archived, "PATCH", f"{_PATHS['customer']}/{ids['wms:C1']}", {"name": "Of others"})
    repair = str(archived.folder / "repair.plan")
    result = archived.run("reconcile", "--json", "-o", repair)
    assert found(result) == [("missing", "customer", "C2"), ("diverged", "customer", "C1")]
    assert archived.run("apply", repair).code == 0
    assert {key: each["name"] for key, each in held(archived, "customer").items()} == {
        "wms:C1": "New",
        "wms:C2": "Other",
    }
    assert found(archived.run("reconcile", "--json")) == []


def change_on_platform(site: Site) -> None:
    product = held(site, "product")["wms:P1"]["id"]
    call(site, "PATCH", f"catalog/products/{product}", {"name": "Screw"})


def delete_on_platform(site: Site) -> None:
    call(site, "DELETE", f"catalog/products/{held(site, 'product')['wms:P3']['id']}")


def add_on_platform(site: Site) -> None:
    call(site, "POST", "catalog/products", {"externalId": "wms:P9", "sku": "P9", "name": "Washer", "active": True})


def double_on_platform(site: Site) -> None:
    invoice = next(iter(held(site, "invoice").values()))
    call(site, "POST", "finance/invoices", {name: invoice[name] for name in ("customerId", "currency", "items")})


def change_the_source(site: Site) -> None:
    site.export("PROD_1.csv", SOLD.replace("1.50", "1.75"))


def forget_a_binding(site: Site) -> None:
    state(site, "DELETE FROM bindings WHERE resource = 'product' AND key = 'P1'")


def forget_an_id(site: Site, key: str = "P1") -> None:
    state(site, f"UPDATE bindings SET target_id = 'prd_none' WHERE resource = 'product' AND key = '{key}'")


def forget_the_id_of_an_invoice(site: Site) -> None:
    state(site, "UPDATE bindings SET target_id = 'inv_none' WHERE resource = 'invoice' AND key = '2'")


def forget_an_invoice(site: Site) -> None:
    state(site, "DELETE FROM bindings WHERE resource = 'invoice' AND key = '2'")


def mix_up_ids(site: Site) -> None:
    other = "(SELECT target_id FROM bindings WHERE resource = 'product' AND key = 'P2')"
    state(site, f"UPDATE bindings SET target_id = {other} WHERE resource = 'product' AND key = 'P1'")


def mix_up_invoices(site: Site) -> None:
    other = "(SELECT target_id FROM bindings WHERE resource = 'invoice' AND key = '3')"
    state(site, f"UPDATE bindings SET target_id = {other} WHERE resource = 'invoice' AND key = '2'")


def change_a_payload(site: Site, key: str = "P1", name: str = "Bolt") -> None:
    changed = f"replace(payload, '{name}', 'Nail')"
    state(site, f"UPDATE bindings SET payload = {changed} WHERE resource = 'product' AND key = '{key}'")


def change_the_payload_of_a_washer(site: Site) -> None:
    change_a_payload(site, "P3", "Washer")


def forget_the_id_of_a_nut(site: Site) -> None:
    forget_an_id(site, "P2")


Seeded = tuple[Callable[[Site], None], tuple[str, str, str]]
EACH: list[Seeded] = [
    (change_on_platform, ("diverged", "product", "P1")),
    (delete_on_platform, ("missing", "product", "P3")),
    (change_the_source, ("stale", "product", "P1")),
    (forget_a_binding, ("extra", "product", "P1")),
    (forget_an_id, ("diverged", "product", "P1")),
    (forget_the_id_of_an_invoice, ("diverged", "invoice", "2")),
    (forget_an_invoice, ("extra", "invoice", "2")),
    (mix_up_ids, ("duplicate", "product", "P1")),
    (mix_up_invoices, ("duplicate", "invoice", "2")),
    (change_a_payload, ("diverged", "product", "P1")),
    (add_on_platform, ("extra", "product", "P9")),
]
"""What makes a difference, and the difference; tests/long seeds each alone."""
OF_THE_NUT = forget_the_id_of_a_nut, ("diverged", "product", "P2")
OF_THE_WASHER = change_the_payload_of_a_washer, ("diverged", "product", "P3")
TOGETHER = [
    [EACH[0], EACH[1], EACH[5], EACH[10]],
    [EACH[3], EACH[6]],
    [EACH[7], EACH[8]],
    [EACH[2], OF_THE_NUT, OF_THE_WASHER],
]
"""All of `EACH`, those of different records together."""


def names_of(seeded: Sequence[Seeded]) -> str:
    return " ".join(seed.__name__ for seed, _ in seeded)


@pytest.mark.nightly(
    but=[
        "mix_up_ids mix_up_invoices",
        "change_on_platform delete_on_platform forget_the_id_of_an_invoice add_on_platform",
    ]
)
@pytest.mark.parametrize("seeded", TOGETHER, ids=names_of)
def test_differences_are_found_and_repaired(synced: Site, seeded: Sequence[Seeded]) -> None:
    """Exactly the seeded differences are found; their repair leaves none, and invoices as they were."""
    differences_are_found_and_repaired(synced, seeded)


def differences_are_found_and_repaired(synced: Site, seeded: Sequence[Seeded]) -> None:
    invoices = [each["id"] for each in held(synced, "invoice").values()]
    for seed, _ in seeded:
        seed(synced)
    plan = str(synced.folder / "repair.plan")
    result = synced.run("reconcile", "--json", "-o", plan, "--remove-extra")
    assert (result.code, sorted(found(result))) == (1, sorted(difference for _, difference in seeded))
    applied = synced.run("apply", plan, "--json")
    assert applied.code == 0, applied.out + applied.err
    again = synced.run("reconcile", "--json")
    assert (again.code, found(again)) == (0, []), again.out
    assert [each["id"] for each in held(synced, "invoice").values()] == invoices
    assert set(held(synced, "product")) == {"wms:P1", "wms:P2", "wms:P3"}
    assert synced.run("apply", plan).code == 4


@pytest.mark.nightly
def test_an_invoice_of_a_deleted_product_cannot_be_repaired(synced: Site) -> None:
    """The product is created again with another id; the invoices that have the former one stay listed."""
    call(synced, "DELETE", f"catalog/products/{held(synced, 'product')['wms:P1']['id']}")
    plan = str(synced.folder / "repair.plan")
    left = [("rejected", "invoice", "1"), ("rejected", "invoice", "2")]
    assert found(synced.run("reconcile", "--json", "-o", plan)) == [("missing", "product", "P1"), *left]
    applied = synced.run("apply", plan, "--json")
    assert (applied.code, applied.records("products")["created"]) == (1, 1)
    again = synced.run("reconcile", "--json")
    assert found(again) == left
    assert {each["remark"].partition(" ")[0] for each in again.json["shown"]} == {"changed_after_delivery"}


@pytest.mark.nightly
def test_a_doubled_invoice_is_listed(synced: Site) -> None:
    """It cannot be deleted, so it stays listed; the totals show by how much."""
    double_on_platform(synced)
    plan = str(synced.folder / "repair.plan")
    result = synced.run("reconcile", "--json", "-o", plan)
    ((difference, resource, key),) = found(result)
    assert (difference, resource, key in held(synced, "invoice")) == ("duplicate", "invoice", True)
    totals = result.json["totals"]["invoice"]
    assert totals["platform"]["records"] == totals["state"]["records"] + 1
    assert totals["differing"]
    assert synced.run("apply", plan).code == 0
    assert found(synced.run("reconcile", "--json")) == [(difference, resource, key)]


def test_a_forgotten_invoice_is_counted_once(synced: Site) -> None:
    """It is bound again instead of created, its copy stays listed, and the totals count both."""
    double_on_platform(synced)
    state(synced, "DELETE FROM bindings WHERE resource = 'invoice' AND key = '1'")
    plan = str(synced.folder / "repair.plan")
    result = synced.run("reconcile", "--json", "-o", plan)
    assert ("extra", "invoice", "1") in found(result)
    assert result.json["repair"]["operations"] == {}
    before = len(synced.effects())
    assert synced.run("apply", plan).code == 0
    assert len(synced.effects()) == before
    ((difference, resource, _),) = found(again := synced.run("reconcile", "--json"))
    assert (difference, resource) == ("duplicate", "invoice")
    totals = again.json["totals"]["invoice"]
    assert totals["platform"]["records"] == totals["state"]["records"] + 1 == totals["source"]["records"] + 1


def invoice_by_hand(site: Site) -> None:
    """Make an invoice on the platform, and export a new one with the same content."""
    line = {"productId": held(site, "product")["wms:P2"]["id"], "quantity": 7, "unitPrice": 0.25}
    customer = held(site, "customer")["wms:C1"]["id"]
    call(site, "POST", "finance/invoices", {"customerId": customer, "currency": "EUR", "items": [line]})
    site.export("INV_2.csv", f"{INVOICES.splitlines()[0]}\n77;C1;P2;7;0.25;EUR\n")


def test_an_invoice_of_somebody_else_is_not_taken_for_a_new_one(synced: Site) -> None:
    """Nothing shows that the state has forgotten it, so the new one is sent, and the other one stays listed."""
    invoice_by_hand(synced)
    plan = str(synced.folder / "repair.plan")
    shown = synced.run("reconcile", "--json", "-o", plan).json["shown"]
    assert [(each["class"], each["resource"]) for each in shown] == [("missing", "invoice"), ("extra", "invoice")]
    assert "somebody else has made it" in shown[1]["remark"]
    before = len(held(synced, "invoice"))
    assert synced.run("apply", plan).code == 0
    assert len(held(synced, "invoice")) == before + 1


@pytest.mark.nightly(but=["restored"])
@pytest.mark.parametrize("way", ["restored", "new"])
def test_a_restored_or_a_new_state_has_forgotten_invoices(synced: Site, way: str) -> None:
    """A repair binds them again by their content, and creates none of them a second time."""
    backup = synced.folder / "backup.db"
    shutil.copy2(synced.folder / "state.db", backup)
    synced.export("INV_2.csv", f"{INVOICES.splitlines()[0]}\n77;C1;P2;7;0.25;EUR\n")
    assert synced.sync().code == 0
    for file in synced.folder.glob("state.db*"):
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    if way == "restored":
        shutil.copy2(backup, synced.folder / "state.db")
        assert synced.run("state", "restored").code == 0
    else:
        synced.init()
    plan, before = str(synced.folder / "repair.plan"), len(held(synced, "invoice"))
    keys = ["77"] if way == "restored" else ["1", "2", "3", "77"]
    result = synced.run("reconcile", "--json", "-o", plan)
    assert sorted(each for each in found(result) if each[1] == "invoice") == [("extra", "invoice", key) for key in keys]
    assert synced.run("apply", plan).code == 0
    assert len(held(synced, "invoice")) == before
    assert found(synced.run("reconcile", "--json")) == []


@pytest.mark.nightly
def test_a_record_whose_key_hash_is_large_is_repaired(synced: Site) -> None:
    """Key hashes have 128 bits without a sign."""
    key = next(key for n in range(100) for key, value in key_hashes([f"L{n}"]).items() if value >= 1 << 127)
    synced.export("PROD_2.csv", f"SKU;NAME;PRICE\n{key};Large;1.00\n")
    assert synced.sync().code == 0
    call(synced, "PATCH", f"catalog/products/{held(synced, 'product')[f'wms:{key}']['id']}", {"name": "Other"})
    plan = str(synced.folder / "repair.plan")
    assert found(synced.run("reconcile", "--json", "-o", plan)) == [("diverged", "product", key)]
    assert synced.run("apply", plan).code == 0
    assert synced.run("reconcile", "--json").code == 0


@pytest.mark.nightly
def test_a_record_that_no_source_names_is_repaired_from_the_state(synced: Site) -> None:
    """The file is gone: what the platform accepted before is written again."""
    change_on_platform(synced)
    (synced.out / "PROD_1.csv").unlink()
    plan = str(synced.folder / "repair.plan")
    assert found(synced.run("reconcile", "--json", "-o", plan)) == [("diverged", "product", "P1")]
    assert synced.run("apply", plan).code == 0
    assert held(synced, "product")["wms:P1"]["name"] == "Bolt"
    assert synced.run("reconcile", "--json").code == 0


def test_what_only_the_platform_has_is_kept(synced: Site) -> None:
    """Without --remove-extra it is listed and left alone, however often it is repaired."""
    add_on_platform(synced)
    plan = str(synced.folder / "repair.plan")
    for _ in range(2):
        assert found(synced.run("reconcile", "--json", "-o", plan)) == [("extra", "product", "P9")]
        assert synced.run("apply", plan).code == 0
    assert "wms:P9" in held(synced, "product")


@pytest.mark.nightly
def test_what_only_the_platform_has_is_kept_if_a_record_refers_to_it(synced: Site) -> None:
    """Also one of others, which is not compared; it is listed with the reason, and deleted if that is declared."""
    customer = call(synced, "POST", "sales/customers", {"externalId": "wms:C9", "name": "Added by hand"})["id"]
    lines = [{"productId": held(synced, "product")["wms:P1"]["id"], "quantity": 1, "unitPrice": 1}]
    call(synced, "POST", "finance/invoices", {"customerId": customer, "currency": "EUR", "items": lines})
    plan = str(synced.folder / "repair.plan")

    def repaired() -> str:
        result = synced.run("reconcile", "--json", "-o", plan, "--remove-extra")
        assert (result.code, found(result)) == (1, [("extra", "customer", "C9")])
        assert synced.run("apply", plan).code == 0
        return str(result.json["shown"][0]["remark"])

    assert repaired() == "it is not deleted, because a record of invoice refers to it"
    assert "wms:C9" in held(synced, "customer")
    synced.edit("        resource: customer", "        gone: {referenced: delete}\n        resource: customer")
    repaired()
    assert "wms:C9" not in held(synced, "customer")


def test_others_records_are_no_difference(synced: Site) -> None:
    """What the platform has of others, with other names or none, is not compared."""
    call(synced, "POST", "catalog/products", {"externalId": "erp:1", "sku": "X", "name": "X", "active": True})
    customer = next(iter(held(synced, "customer").values()))["id"]
    product = next(iter(held(synced, "product").values()))["id"]
    line = {"productId": product, "quantity": 9, "unitPrice": 9}
    call(synced, "POST", "finance/invoices", {"customerId": customer, "currency": "EUR", "items": [line]})
    assert synced.run("reconcile", "--json").code == 0


def test_a_repair_is_refused_if_the_platform_has_changed(synced: Site) -> None:
    """A plan that would do something else now does nothing."""
    change_on_platform(synced)
    plan = str(synced.folder / "repair.plan")
    synced.run("reconcile", "-o", plan)
    delete_on_platform(synced)
    before = len(synced.effects())
    result = synced.run("apply", plan)
    assert (result.code, "crossdock reconcile -o PLAN" in result.err) == (4, True)
    assert len(synced.effects()) == before


def test_a_repair_of_other_streams_is_refused(synced: Site) -> None:
    """A plan for another config, or one that was changed by hand, is out of date."""
    change_on_platform(synced)
    plan = synced.folder / "repair.plan"
    synced.run("reconcile", "-o", str(plan))
    plan.write_text(plan.read_text().replace("wms.products", "wms.other"))
    result = synced.run("apply", str(plan))
    assert (result.code, "the plan is out of date" in result.err) == (4, True)


def test_a_repair_keeps_what_others_wrote(synced: Site) -> None:
    """A record of which somebody has changed another member is repaired, and keeps that member."""
    product = held(synced, "product")["wms:P1"]["id"]
    call(synced, "PATCH", f"catalog/products/{product}", {"description": "theirs"})
    change_the_source(synced)
    plan = str(synced.folder / "repair.plan")
    assert found(synced.run("reconcile", "--json", "-o", plan)) == [("stale", "product", "P1")]
    assert synced.run("apply", plan).code == 0
    after = held(synced, "product")["wms:P1"]
    assert (after["unitPrice"], after["description"]) == (1.75, "theirs")


def test_a_sample_states_its_confidence(synced: Site) -> None:
    """One request for each record of the sample; a sample is not repaired."""
    result = synced.run("reconcile", "wms.products", "--sample", "1", "--json")
    assert (result.code, result.json["requests"]) == (0, 1)
    assert result.json["sample"] == {"product": {"compared": 1, "of": 3, "differing_at_most": 0.95, "confidence": 0.95}}
    assert "at most 95.00% differ" in synced.run("reconcile", "wms.products", "--sample", "1").out
    refused = synced.run("reconcile", "--sample", "1", "-o", str(synced.folder / "x.plan"))
    assert (refused.code, "a sample cannot be repaired" in refused.err) == (2, True)
    change_on_platform(synced)
    assert found(synced.run("reconcile", "--sample", "9", "--json")) == [("diverged", "product", "P1")]


BAD = "SKU;NAME;PRICE\nB1;Bolt;x\n;Nut;0.25\nB2;Nut;y\n"


def rejected(site: Site) -> list[tuple[str, str]]:
    """What ``records list`` shows: the key, or the place of a row without one."""
    return sorted((each["key"], each["at"]) for each in site.listed("--state", "rejected"))


@pytest.mark.nightly
def test_every_rejected_record_is_listed(synced: Site) -> None:
    """As many as ``records list`` shows; a row without a key is listed at its file and line, not under a key."""
    synced.export("PROD_2.csv", BAD)
    assert synced.sync().code == 1
    assert rejected(synced) == [("", "PROD_2.csv:3"), ("B1", "PROD_2.csv:2"), ("B2", "PROD_2.csv:4")]
    result = synced.run("reconcile", "--json")
    assert found(result) == [("rejected", "product", key) for key in ("", "B1", "B2")]
    (without_key, *others) = result.json["shown"]
    assert (without_key["at"], without_key["remark"]) == ("PROD_2.csv:3", "key_missing")
    assert {each["at"] for each in others} == {None}
    shown = synced.run("reconcile", "wms.products").out
    assert "key_missing at" not in shown
    assert "wms:key_missing" not in shown
    synced.run("records", "drop", "wms.products", "--reason", "key_missing", "--yes")
    assert [key for _, _, key in found(synced.run("reconcile", "--json"))] == [key for key, _ in rejected(synced)]


def test_rejected_records_that_no_file_has_are_listed(synced: Site) -> None:
    """The state knows them, whatever has become of their file."""
    synced.export("PROD_2.csv", BAD)
    synced.sync()
    (synced.out / "PROD_2.csv").unlink()
    assert [key for _, _, key in found(synced.run("reconcile", "--json"))] == ["", "B1", "B2"]


def test_a_record_that_is_rejected_and_differs_is_listed_with_both(synced: Site) -> None:
    """So that each class has as many records as other commands count."""
    change_on_platform(synced)
    synced.export("PROD_2.csv", "SKU;NAME;PRICE\nP1;Bolt;x\n")
    synced.sync()
    assert found(synced.run("reconcile", "--json")) == [("diverged", "product", "P1"), ("rejected", "product", "P1")]


@pytest.mark.nightly
def test_rejected_records_hide_no_others(synced: Site) -> None:
    """The most severe come first, the limit counts for each class, and one class can be asked for."""
    change_on_platform(synced)
    synced.export("PROD_2.csv", BAD)
    synced.sync()
    result = synced.run("reconcile", "--limit", "1")
    assert "and 2 more rejected (--limit)" in result.out
    assert result.out.index("diverged") < result.out.index("rejected")
    assert found(synced.run("reconcile", "--json", "--class", "diverged")) == [("diverged", "product", "P1")]
    alone = synced.run("reconcile", "--class", "diverged", "--limit", "0").out
    assert "and 1 more diverged" in alone
    assert "more rejected" not in alone


def test_totals_that_differ_are_named_by_keys(synced: Site) -> None:
    """Product and customer as the source names them, with the amounts of both sides."""
    double_on_platform(synced)
    result = synced.run("reconcile", "--json")
    differing = result.json["totals"]["invoice"]["differing"]
    assert {each["name"] for each in differing if each["resource"] == "product"} <= {"wms:P1", "wms:P2"}
    (customer,) = [each for each in differing if each["resource"] == "customer"]
    assert (customer["name"][:5], customer["currency"]) == ("wms:C", "EUR")
    shown = synced.run("reconcile").out
    line = f"the amount of customer {customer['name']} in EUR differs in the source and on the platform: "
    assert line in shown
    assert "prd_" not in shown.partition("control totals")[2]


REFUSED = [
    (("--sample", "1", "-o", "x.plan"), "a sample cannot be repaired"),
    (("--seed", "5"), "add --sample N"),
    (("--remove-extra",), "add -o PLAN"),
    (("-o", "/nonexistent/x.plan"), "/nonexistent/x.plan: cannot be written: No such file or directory"),
    (("-o", "/dev/full"), "/dev/full: cannot be written: it is not a regular file"),
]


def test_options_are_checked_first(synced: Site) -> None:
    """Nothing is read from the platform in vain."""
    before = len(requests(synced))
    for options, says in REFUSED:
        result = synced.run("reconcile", *options)
        assert (result.code, says in result.err) == (2, True), (options, result.err)
    assert len(requests(synced)) == before


def requests(site: Site) -> list[Any]:
    reply = ask(urlsplit(site.platform.base_url).netloc, "GET", "/_sandbox/requests?limit=1000")
    listed: list[Any] = json.loads(reply.body)["data"]
    return listed
