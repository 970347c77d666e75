"""A state that comes back from a backup has forgotten what was delivered since."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.e2e.test_reconcile import call, held
from tests.e2e.warehouse import (
    FORWARD,
    INVOICES,
    PERSON,
    PRODUCTS,
    Fate,
    Front,
    Reply,
    Seen,
    Site,
    ask,
    expected,
    pass_time,
)
from tests.plan_and_sync import differences

from crossdock.values.clock import SystemClock
from crossdock.writing.delivery.send_queue_and_threads import SenderThreads


def test_what_comes_after_a_restored_state_arrives(site: Site) -> None:
    """A record that was created in the lost period gets the updates of files that come after the restoring."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    backup = site.folder / "backup.db"
    shutil.copy2(site.folder / "state.db", backup)
    site.export("PROD_2.csv", "SKU;NAME;PRICE\nP3;Washer;0.05\n")
    site.export("PROD_3.csv", "SKU;NAME;PRICE\nP1;Bolt;1.75\n")
    assert site.sync().code == 0

    for file in site.folder.glob("state.db-*"):
        file.unlink()
    shutil.copy2(backup, site.folder / "state.db")
    effects = len(site.effects())
    for _ in range(2):
        stopped = site.sync()
        assert (stopped.code, len(site.effects())) == (4, effects)
        assert "crossdock state restored" in stopped.err
    assert site.run("state", "restored").code == 0
    site.export("PROD_4.csv", "SKU;NAME;PRICE\nP1;Bolt;1.80\nP3;Washer;0.06\n")
    assert site.sync().code == 0
    prices = {each["body"]["sku"]: Decimal(each["body"]["unitPrice"]) for each in site.effects("product")}
    assert prices == {"P1": Decimal("1.80"), "P2": Decimal("0.25"), "P3": Decimal("0.06")}, "the latest of each"
    site.export("PROD_5.csv", "SKU;NAME;PRICE\nP3;Washer;0.07\n")
    last = site.sync()
    assert (last.code, last.json["requests"]) == (0, 1)
    assert site.names("product").count("wms:P3") == 1


def test_a_backup_that_was_made_during_the_last_run_is_old(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows the run, and not what the run sent after it: without the declaration, an invoice would come twice."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    site.export("INV_2.csv", INVOICES + "4;C1;P1;1;0.05;EUR\n")
    backup, send = site.folder / "backup.db", SenderThreads.give_batches_to_threads

    def back_up_and_send(*arguments: Any) -> None:
        with closing(sqlite3.connect(site.folder / "state.db")) as state, closing(sqlite3.connect(backup)) as copy:
            state.backup(copy)
        send(*arguments)

    monkeypatch.setattr(SenderThreads, "give_batches_to_threads", back_up_and_send)
    assert site.sync().code == 0
    monkeypatch.undo()
    for file in site.folder.glob("state.db-*"):
        file.unlink()
    shutil.copy2(backup, site.folder / "state.db")
    pass_time(site.base_url, 2 * 86_400)  # the platform has forgotten the idempotency key
    stopped = site.sync()
    assert (stopped.code, "crossdock state restored" in stopped.err) == (4, True)
    assert site.run("state", "restored").code == 0
    site.sync()
    assert len(site.effects("invoice")) == 4


def test_a_required_snapshot_that_is_read_again_has_come(site: Site) -> None:
    """The first sync of a restored state reads the last file once more, and misses no new one."""
    site.edit(
        'mode: append\n        files: "out/CUST_*"',
        'mode: snapshot\n        required: true\n        files: "out/CUST_*"',
    )
    site.init()
    site.fill()
    assert site.sync("wms.customers").code == 0
    assert site.run("state", "restored").code == 0
    again = site.sync("wms.customers")
    assert (again.code, again.records("customers")["read"]) == (0, 2)
    missed = site.sync("wms.customers")
    assert (missed.code, "no new file" in missed.err + missed.out) == (3, True)


def restored(site: Site, *, looks_up: bool = True) -> None:
    """Fill the warehouse, sync, back the state up, create P3 and invoice 4 and change P1, and restore the backup."""
    if not looks_up:
        site.edit("lookup: {settle_s: 0.05}", "lookup: {enabled: false}")
    site.init()
    site.fill()
    assert site.sync().code == 0
    backup = site.folder / "backup.db"
    shutil.copy2(site.folder / "state.db", backup)  # the run has ended, so all of it is in this one file
    site.export("PROD_2.csv", "SKU;NAME;PRICE\nP1;Bolt;2.50\nP3;Washer;0.05\n")
    site.export("INV_2.csv", INVOICES + "4;C1;P3;1;0.05;EUR\n")
    assert site.sync().code == 0
    for file in site.folder.glob("state.db-*"):
        file.unlink()
    shutil.copy2(backup, site.folder / "state.db")
    declared = site.run("state", "restored", "--json")
    assert (declared.code, declared.json["unverified"]) == (0, 7)


def test_a_restored_state_creates_nothing_twice(site: Site) -> None:
    """It finds again what it has forgotten, an invoice too; then it is trusted, and looks nothing up any more."""
    restored(site)
    effects = len(site.effects())
    assert (site.sync().code, len(site.effects())) == (0, effects)
    assert site.listed() == []
    site.export("PROD_3.csv", "SKU;NAME;PRICE\nP4;Rivet;0.07\n")
    last = site.sync()
    assert (last.code, last.json["requests"]) == (0, 1), "trusted again: P4 is created without a look"
    assert len(site.effects()) == effects + 1


def test_lists_show_what_look_ups_cannot(site: Site) -> None:
    """Without look-ups, new records are in doubt in no run after the comparison, and P3 is not created twice."""
    restored(site, looks_up=False)
    site.export("PROD_3.csv", "SKU;NAME;PRICE\nP4;Rivet;0.07\n")
    site.export("INV_3.csv", INVOICES + "5;C9;P4;1;0.07;EUR\n")  # waits for C9, so the state is not trusted yet
    assert site.sync().code == 1
    site.export("PROD_5.csv", "SKU;NAME;PRICE\nP5;Screw;0.09\n")
    planned = site.run("plan", "--json").json
    report = site.sync()
    assert differences(planned, report.json, looked_up=True) == []
    assert (report.code, site.listed("--state", "in-doubt")) == (1, [])
    assert Counter(site.names("product")) == Counter(f"wms:P{number}" for number in range(1, 6))


def test_an_operation_that_a_backup_had_left_is_settled_by_the_list(site: Site) -> None:
    """P3 and P4 were pending in the backup, and P3 was created after it: only P4 is created now."""
    site.edit("lookup: {settle_s: 0.05}", "lookup: {enabled: false}")
    site.init()
    site.fill()
    assert site.sync().code == 0
    site.export("PROD_2.csv", "SKU;NAME;PRICE\nP3;Washer;0.05\nP4;Rivet;0.07\n")
    site.setenv("CROSSDOCK_API_KEY", "wrong")
    assert site.sync().code == 3
    site.setenv("CROSSDOCK_API_KEY", site.api_key)
    assert {each["key"] for each in site.listed("--state", "pending")} == {"P3", "P4"}
    backup = site.folder / "backup.db"
    shutil.copy2(site.folder / "state.db", backup)
    site.run("records", "drop", "wms.products", "P4")
    assert site.sync().code == 0
    for file in site.folder.glob("state.db-*"):
        file.unlink()
    shutil.copy2(backup, site.folder / "state.db")
    assert site.run("state", "restored").code == 0
    planned = site.run("plan", "--json").json
    assert differences(planned, site.sync().json, looked_up=True) == []
    assert site.listed() == []
    assert Counter(site.names("product")) == Counter(f"wms:P{number}" for number in range(1, 5))


@pytest.mark.nightly
def test_a_change_that_was_undone_after_a_backup_arrives(site: Site) -> None:
    """P1 was changed after the backup, and its source says what it said before: the platform gets that again."""
    restored(site)
    site.export("PROD_3.csv", "SKU;NAME;PRICE\nP1;Bolt;1.50\n")
    assert "2 records are unverified: a sync compares them with their target first" in site.run("plan").err
    assert site.sync().code == 0
    assert "unverified" not in site.run("plan").err
    latest = {each["body"]["sku"]: Decimal(each["body"]["unitPrice"]) for each in site.effects("product")}
    assert latest["P1"] == Decimal("1.50")


def test_an_invoice_is_found_however_late_its_stream_is_read(site: Site) -> None:
    """Customers that are delivered meanwhile do not make the state newer than invoice 4, which it has forgotten."""
    restored(site)
    site.export("CUST_2.csv", f"CUSTNO;NAME\nC1;{PERSON} Amsel\nC3;{PERSON} Star\n")
    assert site.sync("wms.customers").code == 0
    assert site.run("state", "restored").code == 0, "declared again"
    assert site.sync().code == 0
    assert site.invoices() == expected(INVOICES + "4;C1;P3;1;0.05;EUR\n")


def test_a_rejected_invoice_of_a_backup_is_looked_for(site: Site) -> None:
    """It was delivered after the backup; a sync that is complete but for it does not end the comparison."""
    site.init()
    site.fill()
    site.edit("currency: CURRENCY", "currency: CUSTNO", within="invoices:")
    config = site.config.read_text()
    assert site.sync().code == 1
    assert len(site.listed("--state", "rejected")) == 3
    backup = site.folder / "backup.db"
    shutil.copy2(site.folder / "state.db", backup)
    site.edit("currency: CUSTNO", "currency: CURRENCY")
    assert site.run("records", "replay").code == 0
    site.config.write_text(config)
    for file in site.folder.glob("state.db-*"):
        file.unlink()
    shutil.copy2(backup, site.folder / "state.db")
    assert site.run("state", "restored").code == 0
    site.export("CUST_2.csv", f"CUSTNO;NAME\nC1;{PERSON} Amsel\n")
    assert site.sync().code == 1
    site.edit("currency: CUSTNO", "currency: CURRENCY")
    replayed = site.run("records", "replay", "--json")
    assert (replayed.code, site.invoices()) == (0, expected(INVOICES))
    assert replayed.json["streams"]["wms.invoices"]["records"]["suppressed"] == 3


def test_only_what_streams_write_is_compared(site: Site) -> None:
    """A credential without the scopes of other resources is enough, and their lists are not requested."""
    restored(site)
    written = [f"{name}:{right}" for name in ("customers", "products", "invoices") for right in ("read", "write")]
    site.setenv("CROSSDOCK_API_KEY", site.platform.sandbox.new_key(site.tenant, *written))
    site.export("PROD_3.csv", "SKU;NAME;PRICE\nP1;Bolt;1.50\n")
    result = site.sync()
    assert (result.code, result.err) == (0, "")
    assert site.listed() == []


def test_lists_that_may_be_read_are_compared(site: Site) -> None:
    """A credential that may not read customers leaves them unverified, and nothing else."""
    restored(site)
    scopes = [f"{name}:{right}" for name in ("products", "invoices") for right in ("read", "write")]
    site.setenv("CROSSDOCK_API_KEY", site.platform.sandbox.new_key(site.tenant, *scopes))
    result = site.sync()
    assert result.code == 1
    assert "records stay unverified" in result.err
    assert {each["stream"] for each in site.listed()} == {"wms.customers"}


def test_what_most_of_a_list_lacks_stays_unverified(site: Site) -> None:
    """The credential was narrowed to one bin after the backup: the others are not forgotten, and updated later."""
    site.edit("      invoices:", f"{BINS}      invoices:")
    site.init()
    site.export("BIN_1.csv", "CODE;ZONE\n" + "".join(f"A{number};east\n" for number in range(12)))
    assert site.sync().code == 0
    everything = [f"{each}:{does}" for each in ("customers", "products", "invoices") for does in ("read", "write")]
    site.setenv("CROSSDOCK_API_KEY", site.platform.sandbox.new_key(site.tenant, "bins:wms:A0:write", *everything))
    assert site.run("state", "restored").code == 0
    narrowed = site.sync()
    assert (narrowed.code, len(site.listed("--state", "unverified"))) == (1, 11)
    assert "11 of 12 warehouse bins are not in the platform's list" in json.dumps(narrowed.json["messages"])
    site.setenv("CROSSDOCK_API_KEY", site.api_key)
    assert (site.sync().code, site.listed("--state", "unverified")) == (0, [])
    site.export("BIN_2.csv", "CODE;ZONE\nA5;west\n")
    assert site.sync().records("bins") == {"read": 1, "updated": 1}


BINS = """\
      bins:
        mode: append
        files: "out/BIN_*"
        format: {kind: delimited, delimiter: ";"}
        key: [CODE]
        resource: warehouse_bin
        map: {code: CODE, zone: ZONE, warehouse: {const: north}}
"""


def test_what_may_not_be_read_stays_unverified(site: Site) -> None:
    """A credential that may only write: the sync says so, exits 1, deletes nothing, and sends whole what it reads."""
    restored(site)
    key = site.platform.sandbox.new_key(site.tenant, "products:write", "invoices:write")
    site.setenv("CROSSDOCK_API_KEY", key)
    site.export("PROD_3.csv", "SKU;NAME;PRICE\nP1;Bolt;1.50\n")
    result = site.sync()
    assert result.code == 1
    assert "stay unverified" in result.err
    left = Counter(each["stream"] for each in site.listed("--state", "unverified"))
    assert left["wms.customers"] == 2
    assert result.json["open"]["unverified"] == left.total()


def test_what_an_imported_invoice_names_is_not_deleted(site: Site) -> None:
    """The comparison of imported bindings learns to which records invoices refer, also if their file is gone."""
    removing = "mode: snapshot\n        on_gone: delete\n        gone: {at_most_percent: 100, rows_within_percent: 100}"
    site.edit("mode: append", removing, within="products:")
    site.init()
    site.fill()
    assert site.sync().code == 0
    kept = site.folder / "bindings.csv"
    kept.write_text(site.run("bindings", "export").out)
    (site.out / "INV_1.csv").unlink()
    for file in site.folder.glob("state.db*"):
        if file.is_file():
            file.unlink()
    site.init()
    assert site.run("bindings", "import", str(kept)).code == 0
    for number, price in enumerate(("1.60", "1.70", "1.80"), 2):
        site.export(f"PROD_{number}.csv", f"SKU;NAME;PRICE\nP1;Bolt;{price}\nP2;Nut;{price}\n")
        assert site.sync().code == 0
    site.export("PROD_5.csv", "SKU;NAME;PRICE\nP1;Bolt;1.80\n")
    assert site.sync().code == 1
    assert [each["why"].partition(":")[0] for each in site.listed()] == ["referenced_by"]
    assert not [each for each in site.effects("product") if each["operation"] == "delete"]


def remove_state(site: Site) -> None:
    for file in site.folder.glob("state.db*"):
        shutil.rmtree(file) if file.is_dir() else file.unlink()


def price(site: Site, price: str, number: int) -> int:
    """Sync an export in which P1 has this price; the exit code."""
    site.export(f"PROD_{number}.csv", f"SKU;NAME;PRICE\nP1;Bolt;{price}\n")
    return site.sync().code


def prices(site: Site) -> list[str]:
    """Of products but P2, in the order in which the platform got them."""
    found = [each["body"].get("unitPrice") for each in site.effects("product") if each["operation"] != "delete"]
    return [str(each) for each in found if each not in (None, Decimal("0.25"))]


@pytest.mark.nightly(but=["restored"])
@pytest.mark.parametrize("way", ["restored", "imported"])
def test_no_state_repeats_the_key_of_an_operation_that_it_does_not_know(site: Site, way: str) -> None:
    """The platform would answer as it did then, and keep the old price."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    backup, bindings = site.folder / "backup.db", site.folder / "bindings.csv"
    shutil.copy2(site.folder / "state.db", backup)
    assert [price(site, "1.75", 2), price(site, "1.50", 3)] == [0, 0]
    bindings.write_text(site.run("bindings", "export").out)
    remove_state(site)
    if way == "restored":
        shutil.copy2(backup, site.folder / "state.db")
        assert site.run("state", "restored").code == 0
    else:
        site.init()
        assert site.run("bindings", "import", str(bindings)).code == 0
    assert site.sync().code == 0
    assert price(site, "1.75", 4) == 0
    assert prices(site)[-1] == "1.75"


def test_a_new_state_makes_no_second_invoice_of_a_changed_source(site: Site) -> None:
    """The platform knows the key of the invoice, with other content: it is in doubt, and the others are delivered."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    with closing(sqlite3.connect(site.folder / "state.db")) as state:
        (bound,) = state.execute("SELECT target_id FROM bindings WHERE resource = 'invoice' AND key = '3'").fetchone()
    remove_state(site)
    site.init()
    site.edit("resource: customer", "resource: customer\n        adopt: external_id")
    site.edit("resource: product", "resource: product\n        adopt: external_id")
    site.export("INV_1.csv", INVOICES.replace("100;0.2475", "100;0.2500") + "4;C1;P1;7;1.50;EUR\n")
    for _ in range(2):
        assert site.sync().code == 1
        assert site.run("records", "replay").code == 1
        assert [(item["key"], item["state"]) for item in site.listed()] == [("3", "in-doubt")]
    assert "with other content" in site.listed()[0]["why"]
    assert len(site.effects("invoice")) == 4
    assert (
        site.run("records", "resolve", "wms.invoices", "3", "--delivered-as", bound, "--no-lookup", "--yes").code == 0
    )
    assert site.sync().code == 0
    assert len(site.effects("invoice")) == 4


def test_a_new_state_that_takes_records_over_sends_no_invoice_of_a_lost_one(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The platform has forgotten their keys: they are in doubt until the state is declared. All others are sent."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    remove_state(site)
    site.init()
    pass_time(site.base_url, 2 * 86_400)
    now, created = SystemClock.now, datetime.fromisoformat(site.effects("invoice")[-1]["at"])
    ahead = created - now(SystemClock()) + timedelta(days=2)  # other tests have set the clock of the platform
    monkeypatch.setattr(SystemClock, "now", lambda clock: now(clock) + ahead)
    site.edit("resource: customer", "resource: customer\n        adopt: external_id")
    site.edit("resource: product", "resource: product\n        adopt: external_id")
    site.export("INV_1.csv", INVOICES + "4;C1;P1;7;1.50;EUR\n")
    assert "wms.invoices: a sync compares 4 new records with those that the platform has" in site.run("plan").err
    for _ in range(2):
        assert site.sync().code == 1
        assert {(item["key"], item["state"]) for item in site.listed()} == {(key, "in-doubt") for key in "123"}
    assert "that this state has not sent" in site.listed()[0]["why"]
    assert len(site.effects("invoice")) == 4
    asked = site.run("records", "resolve", "wms.invoices", "3", "--json").json
    assert [each["same_content"] for each in asked["candidates"]] == [True], "who decides by hand sees it"
    assert site.run("state", "restored").code == 0
    assert site.sync().code == 0
    assert site.listed() == []
    assert len(site.effects("invoice")) == 4


def test_a_new_state_creates_what_an_undone_run_has_removed(site: Site) -> None:
    """Its creates have other keys than those of the lost state."""
    site.init()
    site.export("PROD_1.csv", "SKU;NAME;PRICE\nP1;Bolt;1.50\n")
    run = site.sync().json["run"]
    undo = str(site.folder / "undo.json")
    assert site.run("undo", str(run), "-o", undo).code == 0
    assert site.run("apply", undo).code == 0
    remove_state(site)
    site.init()
    assert site.sync().code == 0
    assert [each["operation"] for each in site.effects("product")] == ["create", "delete", "create"]


def test_an_undo_after_a_restored_backup_leaves_alone_what_came_later(site: Site) -> None:
    """It is planned once the records were compared: a forgotten run, and somebody else, have changed two of them."""
    site.init()
    site.export("PROD_1.csv", PRODUCTS)
    assert site.sync().code == 0
    site.export("PROD_2.csv", "SKU;NAME;PRICE\nP1;Bolt;1.75\nP3;Washer;0.05\nP4;Rivet;0.07\n")
    run = str(site.sync().json["run"])
    backup = site.folder / "backup.db"
    shutil.copy2(site.folder / "state.db", backup)
    site.export("PROD_3.csv", "SKU;NAME;PRICE\nP1;Bolt;1.80\n")
    assert site.sync().code == 0
    call(site, "PATCH", f"catalog/products/{held(site, 'product')['wms:P3']['id']}", {"name": "Big washer"})
    remove_state(site)
    shutil.copy2(backup, site.folder / "state.db")
    assert site.run("state", "restored").code == 0
    early = site.run("undo", run)
    assert (early.code, "crossdock sync; then plan the undo" in early.err) == (4, True), early.err
    assert site.sync().code == 0
    plan = str(site.folder / "undo.plan")
    planned = site.run("undo", run, "-o", plan, "--json")
    assert {each["key"]: each["do"] for each in planned.json["shown"]} == {
        "P1": "left alone", "P3": "left alone", "P4": "delete",
    }  # fmt: skip
    assert site.run("apply", plan).code == 0
    assert sorted(held(site, "product")) == ["wms:P1", "wms:P2", "wms:P3"]


def test_a_backup_that_is_restored_under_another_name_is_old(site: Site) -> None:
    """Somebody puts it beside the state, and names it in the config: an invoice would come twice."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    shutil.copy2(site.folder / "state.db", site.folder / "restored.db")
    site.export("INV_2.csv", INVOICES + "4;C1;P1;1;0.05;EUR\n")
    assert site.sync().code == 0
    pass_time(site.base_url, 2 * 86_400)  # the platform has forgotten the idempotency key
    site.edit("sqlite:///state.db", "sqlite:///restored.db")
    stopped = site.sync()
    assert (stopped.code, "crossdock state restored" in stopped.err) == (4, True)
    assert site.run("state", "restored").code == 0
    assert site.sync().code == 0
    assert len(site.effects("invoice")) == 4
    site.edit("sqlite:///restored.db", "sqlite:///state.db")
    site.export("INV_3.csv", INVOICES + "5;C1;P1;3;0.05;EUR\n")
    assert site.sync().code == 0, "nothing was sent since by the other one"


def _numbers_as_text(of_list: dict[str, Any]) -> None:
    for line in of_list["items"]:
        line |= {"quantity": f"{line['quantity']}.0", "unitPrice": f"{line['unitPrice']}0"}


def _lines_in_another_order(of_list: dict[str, Any]) -> None:
    of_list["items"].reverse()


def _without_lines(of_list: dict[str, Any]) -> None:
    of_list["items"] = []  # as the list of invoices of Xero, without page


def _of_expanded_customer(of_list: dict[str, Any]) -> None:
    of_list["customer"] = {"id": of_list.pop("customerId")}


def _showing_invoices(front: Front, site: Site, change: Callable[[dict[str, Any]], None]) -> None:
    """Have the platform answer lists of invoices in a form of its own."""
    upstream = site.platform.base_url.removeprefix("http://")
    headers = {"authorization": f"Bearer {site.api_key}", "x-tenant-slug": site.tenant}

    def answer(seen: Seen) -> Fate:
        if seen.method != "GET" or not seen.path.startswith("/api/v1/finance/invoices?"):
            return FORWARD
        reply = ask(upstream, "GET", seen.path, headers=headers)
        body = json.loads(reply.body)
        for each in body["data"]:
            change(each)
        return Reply(reply.status, json.dumps(body).encode(), reply.headers)

    front.fate = answer


@pytest.mark.parametrize("change", [_numbers_as_text, _lines_in_another_order])
def test_an_invoice_is_found_in_the_form_of_the_platform(
    site: Site, front: Front, change: Callable[[dict[str, Any]], None]
) -> None:
    """A platform may write numbers as text, or sort the lines: invoice 4 is not sent again."""
    _restored_without_invoice_4(site)
    _showing_invoices(front, site, change)
    assert (site.sync().code, site.listed()) == (0, [])
    assert len(site.effects("invoice")) == 4


@pytest.mark.parametrize("change", [_without_lines, _of_expanded_customer])
def test_invoices_that_a_list_does_not_show_whole_are_in_doubt(
    site: Site, front: Front, change: Callable[[dict[str, Any]], None]
) -> None:
    """Nothing shows whether invoice 4, and the new invoice 5, were sent after the backup: a person decides."""
    _restored_without_invoice_4(site)
    _showing_invoices(front, site, change)
    site.export("INV_3.csv", INVOICES + "5;C1;P1;3;0.05;EUR\n")
    assert site.sync().code == 1
    assert {(each["key"], each["state"]) for each in site.listed()} == {("4", "in-doubt"), ("5", "in-doubt")}
    assert len(site.effects("invoice")) == 4
    sent = site.effects("invoice")[-1]["id"]
    asked = site.run("records", "resolve", "wms.invoices", "4", "--json").json
    assert sent in {each["id"] for each in asked["candidates"]}, "nothing shows that it is another one"
    resolve = "records", "resolve", "wms.invoices"
    assert site.run(*resolve, "4", "--delivered-as", sent, "--yes").code == 0
    assert site.run(*resolve, "5", "--not-delivered", "--yes").code == 0
    assert (site.sync().code, len(site.effects("invoice"))) == (0, 5)


def _restored_without_invoice_4(site: Site) -> None:
    site.init()
    site.fill()
    assert site.sync().code == 0
    backup = site.folder / "backup.db"
    shutil.copy2(site.folder / "state.db", backup)
    site.export("INV_2.csv", INVOICES + "4;C1;P1;1;0.05;EUR\n4;C1;P2;2;0.05;EUR\n")
    assert site.sync().code == 0
    for file in site.folder.glob("state.db-*"):
        if file.is_file():
            file.unlink()
    shutil.copy2(backup, site.folder / "state.db")
    pass_time(site.platform.base_url, 2 * 86_400)  # the platform has forgotten the idempotency key
    assert site.run("state", "restored").code == 0
