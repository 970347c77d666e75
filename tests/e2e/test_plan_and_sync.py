"""A plan says what the sync after it does: situations in which the two once differed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.project_folder import UNPACED
from tests.e2e.warehouse import BREAK, FORWARD, INVOICES, PERSON, Front, Reply, Seen, Site, open_site
from tests.plan_and_sync import differences

from crossdock.sandbox import SandboxServer, SandboxSettings

ACCOUNTS = """\
      accounts:
        mode: append
        files: "out/ACC_*"
        format: {kind: delimited, delimiter: ";"}
        key: [CODE]
        resource: ledger_account
        map: {code: CODE, name: CODE, type: {const: asset}, parentId: {ref: ledger_account, key: PARENT}}
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    unpaced = SandboxSettings(rate_per_min=UNPACED.per_minute, burst=UNPACED.burst)
    with SandboxServer(tmp_path_factory.mktemp("platform"), unpaced) as platform:
        yield platform


@pytest.fixture
def front(platform: SandboxServer) -> Iterator[Front]:
    with Front(platform.base_url) as front:
        yield front


@pytest.fixture
def site(tmp_path: Path, platform: SandboxServer, front: Front, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A warehouse with accounts too, behind a front; its state is made."""
    with open_site(tmp_path, platform, monkeypatch) as site:
        site.base_url = front.base_url
        site.configure()
        site.config.write_text(site.config.read_text() + ACCOUNTS)
        site.init()
        yield site


def agreed(site: Site) -> dict[str, Any]:
    """What a plan says, which must be what the sync after it does."""
    planned: dict[str, Any] = site.run("plan", "--json").json
    assert differences(planned, site.sync().json) == []
    return planned


def told(planned: dict[str, Any], stream: str) -> list[tuple[str, str]]:
    """What a plan does to each record of a stream, sorted by key."""
    shown = [(each["do"], each["key"]) for each in planned["shown"] if each["stream"] == f"wms.{stream}"]
    return sorted(shown, key=lambda each: each[1])


def test_a_hierarchy_is_told_once(site: Site) -> None:
    """Children before their parents, a cycle and an orphan: each account has one line, with what becomes of it."""
    site.export("ACC_1", "CODE;PARENT\nA3;A2\nA2;A1\nA1;\nB1;B2\nB2;B1\nC1;C9\n")
    planned = agreed(site)
    assert told(planned, "accounts") == [
        ("create", "A1"), ("create", "A2"), ("create", "A3"), ("create", "B1"), ("create", "B2"), ("wait", "C1"),
    ]  # fmt: skip
    records = planned["streams"]["wms.accounts"]["records"]
    assert (records["created"], records["updated"], records["carried_on"]) == (5, 0, 1)
    created = next(each for each in planned["shown"] if each["key"] == "B1")
    assert created["changes"]["parentId"]["after"] == "<ledger_account wms:B2>", "the second step is part of it"


def test_what_an_earlier_run_left_is_delivered_first(site: Site, front: Front) -> None:
    """A newer version is compared with the one that is sent first, and records that refer to it need not wait."""
    site.fill()
    front.fate = lambda _: Reply(503)
    assert site.sync().code == 3
    front.fate = lambda _: FORWARD
    site.export("CUST_2", f"CUSTNO;NAME\nC1;{PERSON} Star\nC2;{PERSON} Amsel\nC3;{PERSON} Fink\n")
    planned = agreed(site)
    customers = told(planned, "customers")
    assert {("update", "C1"), ("create", "C3")} <= set(customers)
    assert {("send", "C1"), ("resend", "C1")} & set(customers)
    assert planned["streams"]["wms.customers"]["records"]["carried_over"] > 0


def test_an_operation_in_doubt_is_counted(site: Site, front: Front) -> None:
    """It is carried over and carried on, and the records that it could duplicate are not sent."""
    site.edit("  in_flight: 4", "  after_ambiguous: {invoice: park}\n  in_flight: 4")
    site.fill()

    def lose_invoices(seen: Seen) -> str:
        return BREAK if "invoices" in seen.path else FORWARD

    front.fate = lose_invoices
    site.sync()
    front.fate = lambda _: FORWARD
    site.export("INV_2", INVOICES)
    planned = agreed(site)
    assert "doubt" in {do for do, _ in told(planned, "invoices")}
    assert planned["streams"]["wms.invoices"]["records"]["carried_on"] > 0


def test_a_removed_record_that_is_referred_to_is_told(site: Site) -> None:
    """A product that is gone, and that an invoice of the same run names, is not deleted, and the plan says so."""
    site.edit("mode: append", "mode: snapshot\n        on_gone: delete", within="products:")
    trailer = '{kind: delimited, delimiter: ";", trailer: {prefix: "END;", count: 1}}'
    site.edit('{kind: delimited, delimiter: ";"}', trailer, within="products:")
    site.edit("on_gone: delete", "on_gone: delete\n        gone: {at_most: 9, at_most_percent: 100}")
    site.export("PROD_1", "SKU;NAME;PRICE\nP1;Bolt;1.50\nP2;Nut;0.25\nEND;2\n")
    site.export("CUST_1", f"CUSTNO;NAME\nC1;{PERSON} Star\n")
    assert site.sync().code == 0
    site.export("PROD_2", "SKU;NAME;PRICE\nP1;Bolt;1.50\nEND;1\n")
    site.export("INV_1", "INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY\n1;C1;P2;2;1.50;EUR\n")
    planned = agreed(site)
    assert (told(planned, "products"), told(planned, "invoices")) == ([("reject", "P2")], [("create", "1")])


def test_what_waits_in_a_refused_stream_is_counted(site: Site) -> None:
    """A stream that cannot be read keeps what waited, in both."""
    site.export("INV_1", INVOICES)
    site.sync()
    site.export("INV_2", "INVNO;CUSTNO\n")
    planned = agreed(site)
    assert list(planned["errors"]) == ["wms.invoices"]
    assert planned["streams"]["wms.invoices"]["records"]["carried_on"] == 3


def test_records_that_are_gone_and_left_alone_are_one_line(site: Site) -> None:
    """Without ``on_gone`` they stay on the platform, and the plan says how many there are."""
    site.edit("mode: append", "mode: snapshot", within="products:")
    site.export("PROD_1", "SKU;NAME;PRICE\nP1;Bolt;1.50\nP2;Nut;0.25\nP3;Pin;1\n")
    assert site.sync().code == 0
    site.export("PROD_2", "SKU;NAME;PRICE\nP1;Bolt;1.50\n")
    assert "gone   wms.products: 2 records no longer listed and left alone\n" in site.run("plan").out
    assert agreed(site)["left_alone"] == {"wms.products": 2}


def test_a_record_that_is_still_rejected_is_counted(site: Site) -> None:
    """The same row in a new file is rejected as before, and the plan says how many such records there are."""
    site.export("PROD_1", "SKU;NAME;PRICE\nP1;Bolt;x\n")
    assert site.sync().code == 1
    site.export("PROD_2", "SKU;NAME;PRICE\nP1;Bolt;x\nP2;Nut;1\n")
    assert "reject wms.products: 1 record rejected before and unchanged\n" in site.run("plan").out
    assert agreed(site)["rejected_before"] == {"wms.products": 1}


def test_new_invoices_of_a_restored_state_are_sent(site: Site) -> None:
    """The platform's list shows that they were not delivered before; the plan, which reads no list, expects that."""
    site.fill()
    assert site.run("state", "restored").code == 0
    planned = site.run("plan", "--json").json
    assert differences(planned, site.sync().json, looked_up=True) == []
    assert told(planned, "invoices") == [("create", "1"), ("create", "2"), ("create", "3")]
