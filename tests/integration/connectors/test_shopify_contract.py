"""Every stream of a Shopify shop passes the contract tests for streams, with the fake in place of the network."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import httpx
import pytest
from tests.partners.partner_transport import transport
from tests.partners.shopify.cost import Plan
from tests.partners.shopify.order_lines import Discount, Line, Tax
from tests.partners.shopify.reading import BASE_URL, CONNECTOR
from tests.partners.shopify.site import Site

from crossdock.testing.contract import StreamContract

TOKEN = "shpat_of_the_tests"


def filled() -> Site:
    """Two products, two accounts and a guest, and orders that were refunded, edited and cancelled."""
    site = Site(token=TOKEN, plan=Plan(10**6, 10**6))
    shop = site.shop
    chair = site.variant("CHAIR", "120.00", 5)
    shop.catalog.stock(site.lamp, shop.catalog.add_location("Paris"), 3)
    ada, bo = (shop.customers.add(f"{name}@example.com", first_name=name) for name in ("Ada", "Bo"))
    desk, vat = shop.orders, Tax(Decimal("0.19"), included=True)
    refunded = desk.place(
        Line(site.lamp, 3), customer=ada, discount=Discount("code", "TEN", Decimal(10)), shipping=Decimal(4), tax=vat
    )
    desk.refund(refunded, {"LAMP": 1})
    desk.edit(desk.place(Line(chair), email="guest@example.com"), Line(None, 1, Decimal(5)))
    desk.cancel(desk.place(Line(chair), customer=bo, paid=False))
    return site


class _OfShopify(StreamContract):
    connector = CONNECTOR
    environment = {"SHOP_TOKEN": TOKEN}
    settings: dict[str, Any] = {"base_url": BASE_URL, "token": "env:SHOP_TOKEN", "invoices": "placed", "bulk": False}

    def network(self) -> httpx.BaseTransport:
        return transport(filled().shop)


class TestProducts(_OfShopify):
    stream = "products"


@pytest.mark.nightly
class TestCustomers(_OfShopify):
    stream = "customers"


@pytest.mark.nightly
class TestLocations(_OfShopify):
    stream = "locations"


@pytest.mark.nightly
class TestStock(_OfShopify):
    stream = "stock"


@pytest.mark.nightly
class TestOrders(_OfShopify):
    stream = "orders"


@pytest.mark.nightly
class TestInvoices(_OfShopify):
    stream = "invoices"
