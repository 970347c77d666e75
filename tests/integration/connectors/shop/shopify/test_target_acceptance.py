"""The target for Shopify shops passes the acceptance of targets: real processes, disturbed and killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from tests.partners.partner_transport import transport
from tests.partners.shopify.cost import Plan
from tests.partners.shopify.fake_shop import FakeShopify
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.orders import Order

from crossdock.testing.target_acceptance import TargetAcceptance
from crossdock_connectors.shop.shopify import CONNECTOR

pytestmark = pytest.mark.usefixtures("commands_are_forked")

RECORDS = 8
FULL = Plan(restore_rate=10_000, maximum=20_000)


def filled() -> tuple[FakeShopify, list[Order]]:
    """A shop with an order for each parcel and a product for each quantity; its ids are always the same."""
    shop = FakeShopify(lambda: datetime.now(UTC), plan=FULL)
    berlin = shop.catalog.add_location("Berlin")
    lamp, *_ = [
        shop.catalog.stock(shop.catalog.add_variant(shop.catalog.add_product(sku), sku), berlin, 50).item.variant
        for sku in ("LAMP", *(f"P{number}" for number in range(RECORDS)))
    ]
    return shop, [shop.orders.place(Line(lamp, 3), email="a@example.com") for _ in range(RECORDS)]


SHOP, ORDERS = filled()
(BERLIN,) = {one.location.legacy_resource_id for order in ORDERS for one in order.fulfillment_orders}


@pytest.mark.nightly
class TestShopify(TargetAcceptance):
    """Parcels are looked up by order and number, stock by SKU and location."""

    connector = CONNECTOR
    settings = {"base_url": "https://lamps.myshopify.com", "token": "env:SHOP_TOKEN"}
    environment = {"SHOP_TOKEN": SHOP.token}
    records = RECORDS

    def key(self, resource: str, number: int) -> tuple[str, ...]:
        if resource == "stock":
            return f"P{number}", str(BERLIN)
        return str(ORDERS[number].legacy_resource_id), f"1Z{number}"

    def members(self, resource: str, number: int) -> dict[str, Any]:
        if resource == "stock":
            return {"quantity": number}
        return {"carrier": f"Carrier {number}", "items": [{"sku": "LAMP", "quantity": 1}]}

    def operations(self, resource: str) -> Sequence[str]:
        return ("create", "update") if resource == "stock" else ("create",)

    def partner(self) -> tuple[httpx.BaseTransport, Callable[[], list[Any]]]:
        shop, orders = filled()
        return transport(shop), lambda: list(_held(orders))


def _held(orders: list[Order]) -> Iterator[Any]:
    """The parcels of all orders, and the quantities of all products but the one that was ordered."""
    for order in orders:
        for one in order.fulfillments:
            yield order.name, one.tracking_info, one.total_quantity
    for level in orders[0].fulfillment_orders[0].location.inventory_levels:
        if level.item.sku != "LAMP":
            yield level.item.sku, level.units["on_hand"]
