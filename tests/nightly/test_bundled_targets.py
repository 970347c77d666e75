"""The targets of WooCommerce, ShipBob, Amazon, and one that a config declares pass the acceptance of targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from tests.integration.connectors import test_threepl_contract
from tests.integration.connectors.test_shop_targets import WooCommerceExample
from tests.integration.connectors.test_threepl_targets import AmazonExample, DeclaredExample, ShipBobExample
from tests.partners import shipbob_client
from tests.partners.amazon import FakeAmazon
from tests.partners.amazon_access import LIMITS, Limit
from tests.partners.partner_transport import transport
from tests.partners.plain_3pl import Plain3pl
from tests.partners.plain_3pl_habits import Habits
from tests.partners.shipbob import ShipBob
from tests.partners.woocommerce.shop import FakeShop

from crossdock.testing.httpx_transport_server import SERVED_AT
from crossdock.testing.target_acceptance import TargetAcceptance
from crossdock.values.clock import SystemClock

pytestmark = pytest.mark.usefixtures("commands_are_forked")

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MANY = dict.fromkeys(LIMITS, Limit(10_000, 10_000))
RECORDS = 6
Partner = tuple[httpx.BaseTransport, Callable[[], list[Any]]]


class TestShipBob(ShipBobExample, TargetAcceptance):
    """Orders, each created once."""

    records = RECORDS

    def partner(self) -> Partner:
        fake = ShipBob({"token-of-ours": [1]}, shipbob_client.CHANNELS, shipbob_client.LOCATIONS, 10**9, lambda: NOW)
        shipbob_client.stocked(fake, "LAMP", 1000)
        return transport(fake), lambda: _left(fake.effects, "order_id")


class TestAmazon(AmazonExample, TargetAcceptance):
    """The same of a seller."""

    environment = test_threepl_contract._OfAmazon.environment
    records = RECORDS

    def partner(self) -> Partner:
        fake = FakeAmazon(lambda: NOW, limits=MANY)
        seller = fake.seller("SELLER-A")
        seller.receive("LAMP", 1000)
        return transport(fake), lambda: _left(fake.effects, "order")


class TestDeclared(DeclaredExample, TargetAcceptance):
    """Orders of a 3PL with a plain API, which are changed too."""

    records = RECORDS

    def partner(self) -> Partner:
        plain = Plain3pl(Habits(idempotency_keys=False, repeated_reference=422))
        plain.warehouse.add_product("acme", "0017")
        given = ("id", "created_at", "updated_at")
        orders = plain.warehouse.tables["orders"]
        return transport(plain), lambda: [
            {name: value for name, value in order.members.items() if name not in given} for order in orders.values()
        ]


def _left(effects: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """The orders that were created and not cancelled, which effects name by their member *name*."""
    cancelled = {each[name] for each in effects if each["kind"] == "order_cancelled"}
    return [each["body"] for each in effects if each["kind"] == "order_created" and each[name] not in cancelled]


def filled() -> FakeShop:
    """A shop with orders and products, whose ids are always the same."""
    shop = FakeShop(clock=SystemClock())
    for number in range(RECORDS):
        product = shop.catalog.add(f"P{number}", "10", sku=f"P{number}", manage_stock=True, stock_quantity=500)
        shop.orders.place((product, 1))
    return shop


STATUSES = ("completed", "on-hold")
ORDERS = [str(number) for number in filled().orders.orders]


class TestWooCommerce(WooCommerceExample, TargetAcceptance):
    """Parcels, statuses of orders and stock. Requests are signed, since they are sent without encryption."""

    environment = {"CONSUMER_KEY": "ck_fake", "CONSUMER_SECRET": "cs_fake"}
    records = RECORDS

    def key(self, resource: str, number: int) -> tuple[str, ...]:
        match resource:
            case "fulfillments":
                return ORDERS[number], f"1Z{number}"
            case "order_status":
                return (ORDERS[number],)
        return (f"P{number}",)

    def members(self, resource: str, number: int) -> Mapping[str, Any]:
        if resource == "order_status":
            return {"status": STATUSES[number % 2]}
        return super().members(resource, number)

    def operations(self, resource: str) -> tuple[str, ...]:
        """A stream creates what it has not written yet."""
        return ("create",) if resource == "fulfillments" else ("create", "update")

    def partner(self) -> Partner:
        shop = filled()

        def answer(request: httpx.Request) -> httpx.Response:
            shop.site = request.extensions[SERVED_AT]
            return transport(shop).handle_request(request)

        return httpx.MockTransport(answer), lambda: list(_held(shop))


def _held(shop: FakeShop) -> Iterator[Any]:
    for order in shop.orders.orders.values():
        yield order.id, order.status
        for item in order.tracking:
            yield order.id, item["tracking_number"], item["tracking_provider"], item["date_shipped"]
    for product in shop.catalog.products.values():
        yield product.id, product.stock
