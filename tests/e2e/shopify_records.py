"""A small Shopify shop for tests of bad input, and what people are told of its syncs."""

from __future__ import annotations

from tests.partners.shop_stage import ShopifyStage
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.orders import Order
from tests.partners.shopify.site import Site

from crossdock.runs.run_report import Report


def eight_orders() -> Site:
    """A shop with eight orders, the last of them an hour ago."""
    site = Site()
    for number in range(8):
        site.clock.advance(60)
        site.shop.orders.place(Line(site.lamp, 2), customer=site.shop.customers.add(f"buyer{number}@example.com"))
    site.clock.advance(3_600)
    return site


def orders(site: Site) -> list[Order]:
    return site.shop.records.all(Order)


def key(order: Order) -> str:
    return str(order.legacy_resource_id)


def told(report: Report) -> dict[str, str]:
    """The errors that people see, by stream, without their places and hints."""
    return {stream: error.message for stream, error in report.errors.items()}


def completed(stage: ShopifyStage) -> None:
    """The next run delivers everything."""
    stage.site.clock.advance(3_600)
    report = stage.sync()
    assert (report.exit_code, report.balanced) == (0, True), (report.errors, stage.dead_letters())
    assert len(stage.stored("order")) == len(stage.invoices()) == len(orders(stage.site))
