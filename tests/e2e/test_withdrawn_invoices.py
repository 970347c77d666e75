"""Invoices whose sale was given up afterwards: the platform keeps them, so a person must decide."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.partners.shop_stage import shopify_stage, woocommerce_stage
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.site import Site
from tests.partners.woocommerce.shop import FakeShop

from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import ManualClock

WITHDRAWN = (
    "changed_after_delivery None: the source has withdrawn the record, which was delivered, and its resource is never"
    " removed"
)


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox", SandboxSettings(rate_per_min=600_000, burst=100_000)) as sandbox:
        yield sandbox


def test_an_order_at_shopify_that_is_voided_after_its_invoice(tmp_path: Path, sandbox: SandboxServer) -> None:
    """It is an open item until a person drops it; one that was voided before its invoice is none."""
    site = Site()
    orders = [site.shop.orders.place(Line(site.lamp, 1), paid=False, email="buyer@example.com") for _ in range(3)]
    site.shop.orders.void(orders[0])
    with shopify_stage(tmp_path, sandbox, site, invoices="placed", bulk=False) as stage:
        assert stage.sync().exit_code == 0
        assert len(stage.invoices()) == 2
        site.clock.advance(3_600)
        site.shop.orders.void(orders[1])
        report = stage.sync()
        assert (report.exit_code, report.balanced) == (1, True)
        assert stage.dead_letters() == {f"shop.invoices {orders[1].legacy_resource_id}": WITHDRAWN}
        assert len(stage.invoices()) == 2


@pytest.mark.nightly(but=["paid-processing-trash"])
@pytest.mark.parametrize(
    ("when", "placed", "given_up"),
    [("placed", "on-hold", "cancelled"), ("placed", "on-hold", "trash"), ("paid", "processing", "trash")],
)
def test_an_order_at_woocommerce_that_is_given_up_after_its_invoice(
    tmp_path: Path, sandbox: SandboxServer, when: str, placed: str, given_up: str
) -> None:
    """It is an open item until the order is restored, which makes the invoice right again."""
    clock = ManualClock(datetime(2026, 3, 2, 12, tzinfo=UTC))
    shop = FakeShop(clock=clock)
    order = shop.orders.place((shop.catalog.add("Lamp", "49.90", sku="LAMP"), 1), status=placed)
    with woocommerce_stage(tmp_path, sandbox, shop, clock, invoices=when) as stage:
        assert stage.sync().exit_code == 0
        clock.advance(3_600)
        if given_up == "trash":
            shop.orders.trash(order)
        else:
            shop.orders.edit(order, {"status": given_up})
        for _ in range(2):
            report = stage.sync()
            assert (report.exit_code, report.balanced) == (1, True)
            assert stage.dead_letters() == {f"shop.invoices {order.id}": WITHDRAWN}
        clock.advance(3_600)
        shop.orders.edit(order, {"status": placed})
        assert stage.sync().exit_code == 0
        assert (len(stage.invoices()), stage.dead_letters()) == (1, {})
