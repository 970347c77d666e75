"""What a shop's records lack, and what is not yet in them: counted, named or waited for, in whole syncs."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.partners.shop_stage import ShopifyStage, WooCommerceStage, shopify_stage, woocommerce_stage
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
