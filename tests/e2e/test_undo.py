"""`undo` takes back what a run did, and nothing that others did since."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.e2e.test_reconcile import SOLD, call, held, state
from tests.e2e.warehouse import (
    BREAK,
    CUSTOMERS,
    FORWARD,
    INVOICES,
    LOSE,
    PERSON,
    PRODUCTS,
    Fate,
    Front,
    Result,
    Seen,
    Site,
    once,
)


def run_of(result: Result) -> str:
    return str(result.json["run"])


@pytest.fixture
def synced(site: Site) -> Site:
    """Customers and products are there, of which another run has changed one."""
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", PRODUCTS)
    assert site.sync("wms.customers", "wms.products").code == 0
    return site


def kept(result: Result) -> dict[str, str]:
    """The reason of each record that stays."""
    return {each["key"]: each["reason"] for each in result.json["shown"] if each["reason"]}


def content(site: Site) -> dict[str, Any]:
    """Everything that the platform has, without the time of the last change."""
    found = {**held(site, "customer"), **held(site, "product")}
    return {name: {key: value for key, value in each.items() if key != "updatedAt"} for name, each in found.items()}


def test_what_a_run_created_is_deleted_and_what_it_changed_restored(synced: Site) -> None:
    """Afterwards the platform holds what it held before, and the same undo again has nothing to do."""
    before = content(synced)
    synced.export("PROD_2.csv", "SKU;NAME;PRICE\nP2;Hex nut;0.30\nP3;Washer;0.05\n")
    run = run_of(synced.sync("wms.products"))
    assert content(synced) != before
    plan = str(synced.folder / "undo.plan")
    planned = synced.run("undo", run, "-o", plan, "--json")
    assert (planned.code, planned.json["operations"]) == (0, {"delete": 1, "update": 1})
    assert len(synced.effects()) == 6, "planning changes nothing"
    applied = synced.run("apply", plan, "--json")
    assert applied.code == 0
    assert applied.records("products") == {"read": 2, "updated": 1, "deleted": 1}
    assert content(synced) == before
    again = synced.run("undo", run)
    assert (again.code, "nothing to do" in again.out) == (0, True)
    assert synced.run("apply", plan).code == 4


@pytest.mark.nightly(but=["as another file-append"])
@pytest.mark.parametrize("mode", ["append", "snapshot"])
@pytest.mark.parametrize("again", ["as another file", "under its name", "with another mapping"])
def test_what_was_undone_is_delivered_only_if_it_is_sent_again(synced: Site, mode: str, again: str) -> None:
    """The next sync does not repeat what was undone; the same content in another file, or a new mapping, does."""
    synced.edit("mode: append", f"mode: {mode}", within="products:")
    assert synced.sync("wms.products").code == 0
    text = "SKU;NAME;PRICE\nP1;Bolt;1.50\nP2;Hex nut;0.30\nP3;Washer;0.05\n"
    synced.export("PROD_2.csv", text)
    before = content(synced)
    run = run_of(synced.sync("wms.products"))
    plan = str(synced.folder / "undo.plan")
    assert synced.run("undo", run, "-o", plan).code == 0
    assert synced.run("apply", plan).code == 0
    for _ in range(2):
        assert synced.sync("wms.products").records("products") == {}
    assert content(synced) == before
    if again == "with another mapping":
        synced.edit("          unitPrice: {from: PRICE, as: decimal}\n", "")
    else:
        synced.export("PROD_3.csv" if again == "as another file" else "PROD_2.csv", text)
    assert synced.sync("wms.products").records("products")["created"] == 1
    assert synced.sync("wms.products").records("products") == {}


def test_what_others_changed_since_is_left_alone(synced: Site) -> None:
    """A record that somebody edited, or that a later run delivered, is listed with the reason and stays."""
    synced.export("PROD_2.csv", "SKU;NAME;PRICE\nP3;Washer;0.05\nP4;Rivet;0.02\nP5;Pin;0.01\n")
    run = run_of(synced.sync("wms.products"))
    call(synced, "PATCH", f"catalog/products/{held(synced, 'product')['wms:P3']['id']}", {"name": "Ring"})
    synced.export("PROD_3.csv", "SKU;NAME;PRICE\nP4;Rivet;0.03\n")
    later = run_of(synced.sync("wms.products"))
    plan = str(synced.folder / "undo.plan")
    planned = synced.run("undo", run, "-o", plan, "--json")
    assert (planned.code, planned.json["operations"]) == (1, {"delete": 1})
    assert kept(planned) == {
        "P3": "somebody else has changed it since",
        "P4": f"run {later} has delivered it again since",
    }
    assert synced.run("apply", plan).code == 0
    assert sorted(held(synced, "product")) == ["wms:P1", "wms:P2", "wms:P3", "wms:P4"]


@pytest.mark.nightly
@pytest.mark.parametrize("member", ["name", "barcode"])
def test_an_edit_before_the_plan_is_listed(synced: Site, member: str) -> None:
    """Also of a member that was never written: the plan promises nothing that apply would refuse."""
    synced.export("PROD_2.csv", "SKU;NAME;PRICE\nP2;Hex nut;0.30\nP3;Washer;0.05\nP4;Pin;0.02\n")
    run = run_of(synced.sync("wms.products"))
    edit(synced, "P2", member)
    edit(synced, "P3", member)
    before, plan = content(synced), str(synced.folder / "undo.plan")
    planned = synced.run("undo", run, "-o", plan, "--json")
    assert (planned.code, planned.json["operations"]) == (1, {"delete": 1})
    assert kept(planned) == dict.fromkeys(("P2", "P3"), "somebody else has changed it since")
    applied = synced.run("apply", plan, "--json")
    assert (applied.code, applied.records("products")) == (0, {"read": 1, "deleted": 1})
    assert content(synced) == {name: each for name, each in before.items() if name != "wms:P4"}


@pytest.mark.nightly(but=["name-P2"])
@pytest.mark.parametrize(("member", "key"), [("name", "P2"), ("barcode", "P3")])
def test_an_edit_after_the_plan_is_noticed(synced: Site, member: str, key: str) -> None:
    """Nothing is done then, whether the record would be restored or deleted; a new plan leaves it alone."""
    an_edit_after_the_plan_is_noticed(synced, member, key)


def an_edit_after_the_plan_is_noticed(synced: Site, member: str, key: str) -> None:
    synced.export("PROD_2.csv", "SKU;NAME;PRICE\nP2;Hex nut;0.30\nP3;Washer;0.05\n")
    run, plan = run_of(synced.sync("wms.products")), str(synced.folder / "undo.plan")
    assert synced.run("undo", run, "-o", plan).code == 0
    edit(synced, key, member)
    before = content(synced)
    for _ in range(2):
        assert synced.run("apply", plan).code == 4
    assert content(synced) == before
    again = synced.run("undo", run, "-o", plan, "--json")
    assert kept(again) == {key: "somebody else has changed it since"}
    assert synced.run("apply", plan).code == 0
    assert synced.listed() == []
    assert content(synced)[f"wms:{key}"] == before[f"wms:{key}"]


def test_an_edit_during_the_apply_is_noticed(site: Site, front: Front) -> None:
    """After the last look the version decides: the record is rejected and stays, and the next plan leaves it alone."""
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", PRODUCTS)
    assert site.sync("wms.customers", "wms.products").code == 0
    site.export("PROD_2.csv", "SKU;NAME;PRICE\nP2;Hex nut;0.30\nP3;Washer;0.05\n")
    run, plan = run_of(site.sync("wms.products")), str(site.folder / "undo.plan")
    assert site.run("undo", run, "-o", plan).code == 0

    def editing(seen: Seen) -> Fate:
        with one_by_one:
            if seen.method in {"DELETE", "PATCH"} and not edited:
                edited.append(seen.method)
                for key in ("P2", "P3"):
                    edit(site, key, "barcode")
        return FORWARD

    edited: list[str] = []
    one_by_one = threading.Lock()
    front.fate = editing
    applied = site.run("apply", plan, "--json")
    assert (applied.code, applied.records("products")) == (1, {"read": 2, "rejected": 2})
    assert {each["why"] for each in site.listed()} == {
        "conflict: somebody else has changed the record since; nothing was written"
    }
    assert held(site, "product")["wms:P3"]["barcode"] == "4711"
    again = site.run("undo", run, "--json")
    assert (again.json["operations"], set(kept(again))) == ({}, {"P2", "P3"})


def test_a_version_that_no_list_shows_is_looked_up(synced: Site) -> None:
    """As of a state that an older crossdock wrote: one request for each record that would be written."""
    synced.export("PROD_2.csv", "SKU;NAME;PRICE\nP2;Hex nut;0.30\nP3;Washer;0.05\nP4;Pin;0.02\n")
    run = run_of(synced.sync("wms.products"))
    edit(synced, "P3", "barcode")
    for key in ("P2", "P3", "P4"):
        state(synced, f"UPDATE bindings SET changed_at = NULL WHERE key = '{key}'")
    planned = synced.run("undo", run, "--json")
    assert kept(planned) == {"P3": "somebody else has changed it since"}
    assert planned.json["operations"] == {"delete": 1, "update": 1}


def edit(site: Site, key: str, member: str) -> None:
    """Change a member of a product on the platform."""
    call(site, "PATCH", f"catalog/products/{held(site, 'product')[f'wms:{key}']['id']}", {member: "4711"})


def test_what_an_invoice_refers_to_stays_with_it(site: Site) -> None:
    """An invoice cannot be taken back, so nothing that it names may go; the next sync finds everything consistent."""
    site.init()
    site.fill()
    site.export("CUST_1.csv", f"{CUSTOMERS}C3;{PERSON} Star\n")
    site.export("PROD_1.csv", SOLD)
    run, plan = run_of(site.sync()), str(site.folder / "undo.plan")
    planned = site.run("undo", run, "-o", plan, "--json")
    assert (planned.code, planned.json["operations"]) == (1, {"delete": 2})
    referred = dict.fromkeys(("C1", "C2", "P1", "P2"), "an invoice that stays refers to it")
    reason = "what is written once can be neither changed nor deleted"
    assert kept(planned) == dict.fromkeys("123", reason) | referred
    assert planned.json["streams"]["wms.customers"] == {"delete": 1, "left alone": 2}
    assert list(planned.json["streams"]) == ["wms.invoices", "wms.products", "wms.customers"]
    assert "wms.customers: 2 records left as they are: an invoice that stays refers to it" in site.run("undo", run).out
    assert site.run("apply", plan).code == 0
    assert (sorted(held(site, "customer")), sorted(held(site, "product"))) == (
        ["wms:C1", "wms:C2"],
        ["wms:P1", "wms:P2"],
    )
    for name, text, more in (
        ("CUST", f"{CUSTOMERS}C3;{PERSON} Star\n", f"C4;{PERSON} Kauz"),
        ("PROD", SOLD, "P4;Pin;1"),
        ("INV", INVOICES, "4;C4;P4;1;1;EUR"),
    ):
        site.export(f"{name}_2.csv", f"{text}{more}\n")
    again = site.sync()
    assert (again.code, again.records("invoices")) == (0, {"read": 4, "unchanged": 3, "created": 1})
    assert referring(site) <= existing(site)
    reconciled = site.run("reconcile", "--json")
    assert (reconciled.code, reconciled.json["differences"]) == (0, [])


@pytest.mark.nightly
def test_what_an_invoice_of_another_run_refers_to_stays(synced: Site) -> None:
    """It was delivered by a run that is not undone."""
    synced.export("INV_1.csv", INVOICES)
    assert synced.sync("wms.invoices").code == 0
    synced.export("PROD_2.csv", "SKU;NAME;PRICE\nP3;Washer;0.05\n")
    assert synced.sync("wms.products").code == 0
    first = synced.run("undo", "1", "--json")
    reason = "an invoice that stays refers to it"
    assert kept(first) == dict.fromkeys(("C1", "C2", "P1", "P2"), reason)
    assert first.json["operations"] == {}
    assert synced.run("undo", "3", "--json").json["operations"] == {"delete": 1}


def test_what_an_edited_order_refers_to_stays(site: Site) -> None:
    """A person edited it, so it is left alone, with what it names and what it named."""
    at = 'currency: CURRENCY\n          placedAt: {const: "2026-03-01T08:00:00Z"}'
    site.edit("resource: invoice", "resource: order")
    site.edit("currency: CURRENCY", at)
    site.init()
    site.fill()
    run, plan = run_of(site.sync()), str(site.folder / "undo.plan")
    orders = {each["externalId"]: each["id"] for each in call(site, "GET", "sales/orders")["data"]}
    call(site, "PATCH", f"sales/orders/{orders['wms:2']}", {"customerId": held(site, "customer")["wms:C1"]["id"]})
    planned = site.run("undo", run, "-o", plan, "--json")
    reason = "an order that stays refers to it"
    assert kept(planned) == {"2": "somebody else has changed it since", "P1": reason, "C1": reason, "C2": reason}
    assert planned.json["operations"] == {"delete": 3}
    assert site.run("apply", plan).code == 0
    assert [each["externalId"] for each in call(site, "GET", "sales/orders")["data"]] == ["wms:2"]
    assert (sorted(held(site, "customer")), list(held(site, "product"))) == (["wms:C1", "wms:C2"], ["wms:P1"])


@pytest.mark.nightly
def test_what_an_order_of_others_refers_to_stays(synced: Site) -> None:
    """A person has sold what a run created; orders are read only if something that they may name would be deleted."""
    synced.export("PROD_2.csv", "SKU;NAME;PRICE\nP2;Hex nut;0.30\nP3;Washer;0.05\nP4;Rivet;0.02\n")
    run, plan = run_of(synced.sync("wms.products")), str(synced.folder / "undo.plan")
    sell(synced, "C1", "P3")
    planned = synced.run("undo", run, "-o", plan, "--json")
    assert (planned.code, planned.json["operations"]) == (1, {"delete": 1, "update": 1})
    assert kept(planned) == {"P3": "an order that stays refers to it"}
    sell(synced, "C1", "P4")
    before = content(synced)
    assert synced.run("apply", plan).code == 4
    assert content(synced) == before
    again = synced.run("undo", run, "-o", plan, "--json")
    assert set(kept(again)) == {"P3", "P4"}
    assert synced.run("apply", plan).code == 0
    assert sorted(held(synced, "product")) == ["wms:P1", "wms:P2", "wms:P3", "wms:P4"]
    assert held(synced, "product")["wms:P2"]["name"] != "Hex nut"
    whole = synced.run("undo", "1", "--json")
    assert kept(whole)["C1"] == "an order that stays refers to it"


def test_lists_that_cannot_be_read_are_named(synced: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them it is not known what may be deleted; nothing is planned then."""
    key = synced.platform.sandbox.new_key(synced.tenant, "customers:write", "products:write")
    monkeypatch.setenv("CROSSDOCK_API_KEY", key)
    refused = synced.run("undo", "1")
    assert refused.code == 3
    assert "to read inventory lots, its credential needs the scope lots:read" in refused.err


def sell(site: Site, customer: str, product: str) -> None:
    """A person creates an order on the platform."""
    items = [{"productId": held(site, "product")[f"wms:{product}"]["id"], "quantity": 1, "unitPrice": 2}]
    facts = {"externalId": f"crm:{product}", "currency": "EUR", "placedAt": "2026-03-01T08:00:00Z", "items": items}
    call(site, "POST", "sales/orders", {"customerId": held(site, "customer")[f"wms:{customer}"]["id"], **facts})


def test_what_an_order_refers_to_stays_if_it_is_edited_during_the_apply(site: Site, front: Front) -> None:
    """Its delete is refused, so what it names must not be deleted after it."""
    site.edit("resource: invoice", "resource: order")
    site.edit("currency: CURRENCY", 'currency: CURRENCY\n          placedAt: {const: "2026-03-01T08:00:00Z"}')
    site.init()
    site.fill()
    run, plan = run_of(site.sync()), str(site.folder / "undo.plan")
    assert site.run("undo", run, "-o", plan).code == 0
    orders = {each["externalId"]: each["id"] for each in call(site, "GET", "sales/orders")["data"]}

    def editing(seen: Seen) -> Fate:
        with one_by_one:
            if seen.method == "DELETE" and not edited:
                edited.append(seen.method)
                call(site, "PATCH", f"sales/orders/{orders['wms:2']}", {"status": "packed"})
        return FORWARD

    edited: list[str] = []
    one_by_one = threading.Lock()
    front.fate = editing
    applied = site.run("apply", plan, "--json")
    assert (applied.code, applied.records("invoices")) == (1, {"read": 3, "deleted": 2, "rejected": 1})
    assert [each["externalId"] for each in call(site, "GET", "sales/orders")["data"]] == ["wms:2"]
    assert (list(held(site, "customer")), list(held(site, "product"))) == (["wms:C2"], ["wms:P1"])


def referring(site: Site) -> set[str]:
    """The ids that the invoices of the platform hold."""
    invoices = held(site, "invoice").values()
    return {name for each in invoices for name in (each["customerId"], *(line["productId"] for line in each["items"]))}


def existing(site: Site) -> set[str]:
    return {each["id"] for resource in ("customer", "product") for each in held(site, resource).values()}


def test_an_undo_survives_lost_answers(site: Site, front: Front) -> None:
    """A delete and an update whose answers are lost are carried out once."""
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", PRODUCTS)
    site.sync("wms.customers", "wms.products")
    before = content(site)
    site.export("PROD_2.csv", "SKU;NAME;PRICE\nP2;Hex nut;0.30\nP3;Washer;0.05\n")
    run = run_of(site.sync("wms.products"))
    plan = str(site.folder / "undo.plan")
    assert site.run("undo", run, "-o", plan).code == 0
    fates = {
        "DELETE": once(lambda seen: seen.method == "DELETE", LOSE),
        "PATCH": once(lambda seen: seen.method == "PATCH", BREAK),
    }
    front.fate = lambda seen: fates[seen.method](seen) if seen.method in fates else FORWARD
    assert site.run("apply", plan).code == 0
    assert content(site) == before
    assert [each["operation"] for each in site.effects("product")][-2:].count("delete") == 1


def test_unsettled_operations_come_first(site: Site, front: Front) -> None:
    """While an operation of the run is not settled, its undo is refused with what to do."""
    site.init()
    site.export("PROD_1.csv", PRODUCTS)
    front.fate = lambda seen: LOSE if seen.method == "POST" else FORWARD
    assert site.run("sync", "wms.products").code in {1, 3}, "some or all are open"
    refused = site.run("undo", "1")
    assert (refused.code, "operations of run 1 are not settled: 2" in refused.err) == (4, True)
    assert "crossdock apply --resume" in refused.err


@pytest.mark.nightly(but=["99-2"])
@pytest.mark.parametrize(("run", "code", "said"), [("99", 2, "there is no run 99"), ("0", 2, "")])
def test_an_unknown_run_is_named(synced: Site, run: str, code: int, said: str) -> None:
    """With how the runs are listed."""
    result = synced.run("undo", run)
    assert (result.code, said in result.err) == (code, True)


def test_what_cannot_be_undone_hides_nothing(synced: Site) -> None:
    """What is undone comes first, and the limit counts for each kind."""
    synced.fill()
    synced.export("PROD_2.csv", "SKU;NAME;PRICE\nP3;Washer;0.05\nP4;Rivet;0.02\n")
    run = run_of(synced.sync())
    planned = synced.run("undo", run, "--limit", "1", "--json")
    kinds = [each["do"] for each in planned.json["shown"]]
    assert kinds == ["delete", "impossible"]
    shown = synced.run("undo", run, "--limit", "1").out
    assert "more delete (--limit)" in shown
    assert "more impossible (--limit)" in shown
    refused = synced.run("undo", run, "-o", "/nonexistent/undo.plan")
    assert (refused.code, "cannot be written" in refused.err) == (2, True)
