"""What the platform has of an operation in doubt is looked up on a sandbox, by the commands that a person uses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from tests.report_page import AT
from tests.unit.cli.conftest import CONFIG, CommandLine
from tests.unit.state.samples import intent

from crossdock.delta.fingerprint import key_hashes
from crossdock.sandbox import SandboxServer
from crossdock.values import exact_json
from crossdock.values.clock import SystemClock

INVOICES = """\
      invoices:
        mode: append
        files: "*.csv"
        key: [NUMBER]
        group_by: [NUMBER]
        resource: invoice
        map:
          customerId: CUSTOMER
          currency: {const: EUR}
          items: {each: {productId: SKU, quantity: {from: QTY, as: decimal}, unitPrice: {from: PRICE, as: decimal}}}
"""


class Platform:
    """A sandbox with a customer and a product."""

    def __init__(self, server: SandboxServer) -> None:
        self.server = server
        self.customer = self.make("sales/customers", {"externalId": "wms:C1", "name": "Ann"})
        self.product = self.make("catalog/products", {"externalId": "wms:P1", "sku": "P1", "name": "x", "active": True})

    def make(self, path: str, body: dict[str, Any]) -> str:
        headers = {
            "authorization": f"Bearer {self.server.api_key}",
            "x-tenant-slug": self.server.tenant,
            "content-type": "application/json",
        }
        request = Request(f"{self.server.base_url}/api/v1/{path}", json.dumps(body).encode(), headers)
        with urlopen(request) as answer:
            return str(json.load(answer)["id"])

    def invoice(self, quantity: int, price: str = "1.50") -> dict[str, Any]:
        item = {"productId": self.product, "quantity": quantity, "unitPrice": float(price)}
        return {"customerId": self.customer, "currency": "EUR", "items": [item]}

    def make_invoice(self, quantity: int, price: str = "1.50") -> str:
        return self.make("finance/invoices", self.invoice(quantity, price))


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with SandboxServer(tmp_path_factory.mktemp("sandbox")) as server:
        yield Platform(server)


@pytest.fixture
def site(platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """A config with invoices and products, and an initialised state."""
    (tmp_path / "exports").mkdir()
    config = CONFIG.replace("http://127.0.0.1:9", platform.server.base_url).replace("acme", platform.server.tenant)
    (tmp_path / "c.yaml").write_text(config + INVOICES, encoding="utf-8")
    monkeypatch.setenv("CROSSDOCK_API_KEY", platform.server.api_key)
    made = CommandLine(tmp_path)
    assert made.run("init").code == 0
    return made


def doubt(site: CommandLine, stream: str, key: str, resource: str, body: dict[str, Any]) -> None:
    """A create in doubt, first sent now."""
    facts = {"stream": stream, "key": key, "key_hash": key_hashes([key])[key], "idempotency_key": f"{stream} {key}"}
    sent = intent(
        0,
        resource=resource,
        body=exact_json.dumps(exact_json.loads(json.dumps(body))),
        status="in_doubt",
        attempts=1,
        first_sent_at=SystemClock().now(),
        **facts,
    )
    with closing(site.state()) as state, state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.intents.add([sent], run_id=run, fence=1, at=AT)


def listed(site: CommandLine) -> list[str]:
    return [item["key"] for item in site.run("records", "list", "--json").json]


def test_an_invoice_is_compared_with_what_was_sent(site: CommandLine, platform: Platform) -> None:
    """An id of another invoice, or of none, is refused with what differs; the right one is recorded."""
    right, wrong = platform.make_invoice(3), platform.make_invoice(4)
    doubt(site, "wms.invoices", "7", "invoice", platform.invoice(3))
    resolve = ("records", "resolve", "wms.invoices", "7", "--yes", "--delivered-as")
    refused = site.run(*resolve, wrong)
    assert (refused.code, refused.out) == (2, "")
    assert "this invoice is another record: it differs in items" in refused.err
    assert "the platform has no invoice of this id" in site.run(*resolve, "inv_nothing").err
    assert "the platform has no invoice of this id" in site.run(*resolve, "../customers").err
    assert listed(site) == ["7"]
    assert site.run(*resolve, right).out == "resolved 1 record\n"
    assert listed(site) == []
    with closing(site.state()) as state, state.begin_read_only() as tx:
        assert tx.buckets.get("platform") is not None, "the tokens of look-ups count"


def test_what_would_be_recorded_is_shown(site: CommandLine, platform: Platform) -> None:
    """The decision and what the platform has, before a person confirms."""
    made = platform.make_invoice(5)
    doubt(site, "wms.invoices", "7", "invoice", platform.invoice(5))
    asked = site.run("records", "resolve", "wms.invoices", "7", "--delivered-as", made)
    assert f"would record that the create of wms.invoices 7 was delivered as {made} (same content, EUR 7.5" in asked.err
    assert listed(site) == ["7"]


def test_a_record_with_an_external_id_is_compared_by_it(site: CommandLine, platform: Platform) -> None:
    """The product of another record is refused, and named."""
    doubt(site, "wms.products", "P2", "product", {"externalId": "wms:P2"})
    refused = site.run("records", "resolve", "wms.products", "P2", "--delivered-as", platform.product, "--yes")
    assert "this product is another record: its externalId is 'wms:P1', not 'wms:P2'" in refused.err
    none = site.run("records", "resolve", "wms.products", "P2", "--json").json
    assert none == {"candidates": [], "complete": True}


def test_candidates_have_the_times_of_the_platform(
    site: CommandLine, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has is found although its clock is two hours behind ours."""
    now = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda clock: now(clock) + timedelta(hours=2))
    doubt(site, "wms.invoices", "8", "invoice", platform.invoice(21))
    made = platform.make_invoice(21)
    found = site.run("records", "resolve", "wms.invoices", "8", "--json").json
    assert [each["id"] for each in found["candidates"]] == [made]


def test_candidates_are_invoices_of_the_same_customer_and_amount(site: CommandLine, platform: Platform) -> None:
    """The same content comes first; an invoice that belongs to another record is marked; others are left out."""
    doubt(site, "wms.invoices", "8", "invoice", platform.invoice(12, "1.00"))
    doubt(site, "wms.invoices", "9", "invoice", platform.invoice(12, "1.00"))
    other_lines, taken, same = platform.make_invoice(6, "2.00"), *(platform.make_invoice(12, "1.00") for _ in range(2))
    platform.make_invoice(13, "1.00")
    site.run("records", "resolve", "wms.invoices", "9", "--delivered-as", taken, "--yes")
    found = site.run("records", "resolve", "wms.invoices", "8", "--json").json
    assert [(each["id"], each["same_content"], each["belongs_to"]) for each in found["candidates"]] == [
        (same, True, None), (taken, True, "wms:9"), (other_lines, False, None),
    ]  # fmt: skip
    assert found["complete"]
    shown = site.run("records", "resolve", "wms.invoices", "8")
    assert shown.code == 0
    assert f"  {same}  same content, EUR 12" in shown.out
    assert "Ann" not in shown.out


def test_a_key_that_may_not_read_is_told(
    site: CommandLine, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal names the way without a look-up, and nothing is recorded."""
    doubt(site, "wms.invoices", "7", "invoice", platform.invoice(3))
    monkeypatch.setenv("CROSSDOCK_API_KEY", platform.server.sandbox.new_key("sandbox", "products:write"))
    refused = site.run("records", "resolve", "wms.invoices", "7", "--delivered-as", "inv_1", "--yes")
    assert (refused.code, refused.out) == (3, "")
    assert "may not be read: This credential does not have the scope invoices:read. (HTTP 403)" in refused.err
    assert "add --no-lookup" in refused.err
    assert listed(site) == ["7"]


def test_a_decision_that_others_depend_on_cannot_be_reversed(site: CommandLine, platform: Platform) -> None:
    """A record that was sent since refers to the id."""
    doubt(site, "wms.products", "P1", "product", {"externalId": "wms:P1"})
    resolve = ("records", "resolve", "wms.products", "P1", "--delivered-as", platform.product, "--yes")
    assert site.run(*resolve).code == 0
    assert site.run("records", "reopen", "wms.products", "P1").code == 0
    assert site.run(*resolve).code == 0
    doubt(site, "wms.invoices", "7", "invoice", platform.invoice(3))
    refused = site.run("records", "reopen", "wms.products", "P1")
    assert (refused.code, refused.out) == (2, "")
    assert f"another record that refers to {platform.product} was sent since" in refused.err
