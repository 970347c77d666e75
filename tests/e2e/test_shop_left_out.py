"""What a shop's records lack, and what is not yet in them: counted, named or waited for, in whole syncs."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.partners.shop_stage import ShopifyStage, WooCommerceStage, shopify_stage, woocommerce_stage
from tests.partners.shopify.customers import MailingAddress
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.site import Site
from tests.partners.woocommerce.shop import FakeShop

from crossdock.runs.run_report import Report
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import ManualClock

UNPACED = SandboxSettings(rate_per_min=600_000, burst=100_000)
BERLIN = {"first_name": "Ada", "address_1": "Hauptstraße 1", "city": "Berlin", "country": "DE"}
SINGAPORE = {"first_name": "Lim", "address_1": "270 Orchard Road", "city": "", "country": "SG"}


@pytest.fixture
def shop() -> FakeShop:
    return FakeShop(clock=ManualClock())


@pytest.fixture
def woo(tmp_path: Path, shop: FakeShop) -> Iterator[WooCommerceStage]:
    with (
        SandboxServer(tmp_path / "sandbox", UNPACED) as sandbox,
        woocommerce_stage(tmp_path, sandbox, shop, ManualClock()) as stage,
    ):
        yield stage


@pytest.fixture
def shopify(tmp_path: Path) -> Iterator[ShopifyStage]:
    with (
        SandboxServer(tmp_path / "sandbox", UNPACED) as sandbox,
        shopify_stage(tmp_path, sandbox, Site(), bulk=False) as stage,
    ):
        yield stage


def parts(report: Report, stream: str) -> dict[str, int]:
    assert report.balanced
    return dict(report.tallies[stream].parts)


def total(document: dict[str, Any]) -> Decimal:
    return sum((Decimal(line["quantity"]) * Decimal(line["unitPrice"]) for line in document["items"]), Decimal(0))


def test_an_order_is_not_sent_without_its_recipient(shop: FakeShop, woo: WooCommerceStage) -> None:
    """The city of Singapore is known; an order without a street is a dead letter, and its invoice is there."""
    tea = shop.catalog.add("Tea", "1", sku="TEA")
    known = shop.orders.place((tea, 1), billing={"email": "a@example.com"}, shipping=SINGAPORE)
    lost = shop.orders.place((tea, 1), billing={"email": "b@example.com"}, shipping={**BERLIN, "address_1": ""})
    report = woo.sync()
    assert woo.stored("order")[f"shop:{known.id}"]["shippingAddress"]["city"] == "Singapore"
    assert parts(report, "shop.orders") == {"city assumed": 1}
    [(name, message)] = woo.dead_letters().items()
    assert (name, message.partition(";")[0]) == (f"shop.orders {lost.id}", "bad_value /shipping: has no street")
    assert len(woo.invoices()) == 2


def test_orders_do_not_wait_for_their_buyer(shop: FakeShop, woo: WooCommerceStage) -> None:
    """A name with invisible characters, a bad country of a guest and a deleted account cost no order and no invoice."""
    tea = shop.catalog.add("Tea", "1", sku="TEA")
    account = shop.customers.add("zoe@example.com", first_name="Z\u200boë" + "x" * 600)
    shop.orders.place((tea, 1), customer_id=account.id, billing=BERLIN)
    shop.orders.place((tea, 1), billing={**BERLIN, "country": "XX", "email": "guest@example.com"})
    deleted = shop.orders.place((tea, 1), customer_id=account.id, billing={**BERLIN, "last_name": "Former"})
    deleted.members["customer_id"] = 99_999
    report = woo.sync()
    assert (woo.dead_letters(), woo.waiting()) == ({}, [])
    assert len(woo.invoices()) == len(woo.stored("order")) == 3
    assert woo.stored("customer")["shop:99999"]["name"] == "Ada Former"
    assert parts(report, "shop.customers")["address left out"] == 1
    assert parts(report, "shop.customers")["text cleaned"] == parts(report, "shop.customers")["text cut"] == 1


@pytest.mark.nightly(but=["the order changes"])
@pytest.mark.parametrize("quietly", [True, False], ids=["the order counts as unchanged", "the order changes"])
def test_a_refund_on_its_way_waits(shopify: ShopifyStage, *, quietly: bool) -> None:
    """The invoice stays as it was; the credit note comes when the money has arrived."""
    site = shopify.site
    order = site.shop.orders.place(Line(site.lamp, 3), email="buyer@example.com")
    refund = site.shop.orders.refund(order, {"LAMP": 1}, status="PENDING")
    report = shopify.sync()
    assert [total(each) for each in shopify.invoices()] == [Decimal("149.70")]
    assert report.tallies["shop.invoices"].rows_filtered["not_due"] == 1
    site.clock.advance(3_600)
    site.shop.orders.settle(refund, quietly=quietly)
    assert shopify.sync().exit_code == 0
    assert [total(each) for each in shopify.invoices()] == [Decimal("149.70"), Decimal("-49.90")]
    site.shop.orders.change(order, note="called")
    assert shopify.sync().exit_code == 0
    assert (len(shopify.invoices()), shopify.dead_letters()) == (2, {})


@pytest.mark.nightly
@pytest.mark.parametrize("first", [True, False], ids=["in the first run", "after its invoice"])
def test_a_refund_that_the_shop_does_not_tell_of_comes_later(shopify: ShopifyStage, *, first: bool) -> None:
    """The order names it, so the invoice is open until the refund is told, and the books then equal the payments."""
    site = shopify.site
    order = site.shop.orders.place(Line(site.lamp, 2), email="buyer@example.com")
    if not first:
        assert shopify.sync().exit_code == 0
        site.clock.advance(3_600)
    site.shop.orders.refund(order, {"LAMP": 1})
    shopify.watched.changed = lambda name, body: {"data": {"nodes": [None]}} if name == "refunds" else body
    assert shopify.sync().exit_code == 1
    [(name, message)] = shopify.dead_letters().items()
    assert name == f"shop.invoices {order.legacy_resource_id}"
    assert message.startswith("bad_value /refunds: is cut")
    assert len(shopify.invoices()) == (0 if first else 1)
    shopify.watched.changed = None
    assert shopify.sync().exit_code == 0
    assert sorted(total(each) for each in shopify.invoices()) == [Decimal("-49.90"), Decimal("99.80")]
    assert shopify.dead_letters() == {}


@pytest.mark.nightly(but=["True"])
@pytest.mark.parametrize("ships", [True, False])
def test_a_refund_before_the_invoice_waits_for_it(tmp_path: Path, *, ships: bool) -> None:
    """An order that is cancelled and paid back before it ships leaves nothing in the books; else both are there."""
    site = Site()
    with (
        SandboxServer(tmp_path / "sandbox", UNPACED) as sandbox,
        shopify_stage(tmp_path, sandbox, site, bulk=False, invoices="shipped") as stage,
    ):
        order = site.shop.orders.place(Line(site.lamp, 2), email="buyer@example.com")
        site.shop.orders.refund(order, {"LAMP": 1 if ships else 2})
        report = stage.sync()
        assert (report.exit_code, report.tallies["shop.invoices"].rows_filtered["not_due"]) == (0, 2)
        assert stage.invoices() == []
        site.clock.advance(3_600)
        if ships:
            site.shop.shipments.ship(order.fulfillment_orders[0])
        else:
            site.shop.orders.cancel(order)
        assert stage.sync().exit_code == 0
        expected = [Decimal("-49.90"), Decimal("99.80")] if ships else []
        assert sorted(total(each) for each in stage.invoices()) == expected


def test_orders_do_not_wait_for_what_a_product_lacks(shopify: ShopifyStage) -> None:
    """A SKU that is too long or has invisible characters, and a price with too many decimals or none, are counted."""
    site = shopify.site
    skus = {"CH\u200bAIR": "1.23456", "L" * 150: "5.00", "STOOL": None}
    variants = [site.variant(sku, "5.00", 9) for sku in skus]

    def changed(name: str, body: Any) -> Any:
        for product in body["data"]["products"]["nodes"] if name == "products" else ():
            for variant in product["variants"]["nodes"]:
                variant["price"] = skus.get(variant["sku"], "5.00")
        return body

    shopify.watched.changed = changed
    site.shop.orders.place(*map(Line, variants), email="buyer@example.com")
    report = shopify.sync()
    assert (shopify.dead_letters(), shopify.waiting()) == ({}, [])
    assert parts(report, "shop.products") == {
        "text cleaned": 2,  # the product's name has the SKU
        "text left out": 1,
        "SKU assumed": 1,
        "price rounded": 1,
        "price left out": 1,
    }
    stored = {each["sku"]: each.get("unitPrice") for each in shopify.stored("product").values()}
    assert (stored["CHAIR"], stored["STOOL"]) == (Decimal("1.2346"), None)
    assert "L" * 100 not in stored
    assert len(shopify.stored("order")) == len(shopify.invoices()) == 1


def test_a_company_is_part_of_an_address(shopify: ShopifyStage) -> None:
    """It is in the second line beside a name, and is the name where there is no other."""
    site = shopify.site
    beside, alone = MailingAddress(company="Depot 7"), MailingAddress(first_name=None, last_name=None, company="ACME")
    for address in map(site.shop.records.add, (beside, alone)):
        site.shop.orders.place(Line(site.lamp), shipping_address=address, email="buyer@example.com")
    assert shopify.sync().exit_code == 0
    found = [order["shippingAddress"] for order in shopify.stored("order").values()]
    assert {(each["name"], each.get("line2")) for each in found} == {("Zoë Müller", "Depot 7"), ("ACME", None)}


def test_a_refund_that_failed_is_no_credit_note(shopify: ShopifyStage) -> None:
    """The money stayed, so the invoice does, too."""
    site = shopify.site
    order = site.shop.orders.place(Line(site.lamp, 3), email="buyer@example.com")
    site.shop.orders.refund(order, {"LAMP": 1}, status="FAILURE")
    assert shopify.sync().exit_code == 0
    assert [total(each) for each in shopify.invoices()] == [Decimal("149.70")]


def test_duties_are_paid_back(shopify: ShopifyStage) -> None:
    """The credit note has a line for them, and the order is what is left."""
    site = shopify.site
    order = site.shop.orders.place(Line(site.lamp, 2), duties=Decimal("8.20"), email="buyer@example.com")
    site.shop.orders.refund(order, {"LAMP": 1}, duties=Decimal("4.10"))
    assert shopify.sync().exit_code == 0
    assert sorted(total(each) for each in shopify.invoices()) == [Decimal("-54.00"), Decimal("108.00")]
    assert [total(each) for each in shopify.stored("order").values()] == [Decimal("54.00")]
