"""Every stream of the 3PLs passes the contract tests for streams, with the fakes in place of the network."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from tests.partners import shipbob_client, threepl_vendors
from tests.partners.amazon import FakeAmazon
from tests.partners.amazon_access import LIMITS, Limit
from tests.partners.amazon_site import order
from tests.partners.partner_transport import transport
from tests.partners.shipbob import ShipBob
from tests.partners.shipbob_state import Transaction

from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.testing.contract import StreamContract

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SENT = {"namespace": "platform", "matches": "id"}
MANY = dict.fromkeys(LIMITS, Limit(10_000, 10_000))


def received(fake: ShipBob, item: int, lot: str, units: int) -> None:
    """A receiving order that brings units of a lot."""
    box = {"tracking_number": "T", "box_items": [{"inventory_id": item, "quantity": units, "lot_number": lot}]}
    wro = fake.warehouse.create_wro({
        "fulfillment_center": {"id": 8},
        "package_type": "Package",
        "box_packaging_type": "EverythingInOneBox",
        "expected_arrival_date": "2026-03-02T00:00:00Z",
        "boxes": [box],
    })  # fmt: skip
    fake.warehouse.receive(wro.id, {(item, lot): units})


def shipped_shipbob() -> ShipBob:
    """Two orders whose units a receiving order has brought."""
    fake = ShipBob({"token-of-ours": [1]}, shipbob_client.CHANNELS, shipbob_client.LOCATIONS, 10**9, lambda: NOW)
    house = fake.warehouse
    received(fake, house.add_product(1, "LAMP", lot_tracked=True).inventory_id, "L1", 9)
    for number in (1, 2):
        placed = house.create_order(house.channels[1], shipbob_client.order(f"platform:ord_{number}", LAMP=2))
        house.ship(placed.id, {"LAMP": number}, tracking_number=f"1Z-{number}")
    return fake


def filled_shipbob() -> ShipBob:
    """Two products, one of them in two lots, a receiving order, orders in several states, and a bill."""
    fake = ShipBob({"token-of-ours": [1]}, shipbob_client.CHANNELS, shipbob_client.LOCATIONS, 10**9, lambda: NOW)
    house = fake.warehouse
    lamp = house.add_product(1, "LAMP", barcode="4006381333931", lot_tracked=True).inventory_id
    house.adjust_stock(lamp, 8, 9, "L1", NOW + timedelta(days=300))
    house.adjust_stock(lamp, 9, 4, "L2")
    shipbob_client.stocked(fake, "CHAIR", 7)
    received(fake, lamp, "L3", 5)
    for number in range(3):
        body = shipbob_client.order(f"platform:ord_{number}", LAMP=2)
        placed = house.create_order(house.channels[1], body)
        if number:
            house.ship(placed.id, {"LAMP": number}, tracking_number=f"1Z-{number}")
    house.add_invoice(1, "Shipping", [Transaction("T1", Decimal("6.15"), "Shipping", "1", "Shipment")])
    return fake


class _OfShipBob(StreamContract):
    connector = load_connector("shipbob")
    environment = {"SHIPBOB_TOKEN": "token-of-ours"}
    settings: dict[str, Any] = {
        **threepl_vendors.shipbob("https://api.shipbob.example"),
        "token": "env:SHIPBOB_TOKEN",
        "orders": SENT,
    }
    fake = filled_shipbob()

    def network(self) -> httpx.BaseTransport:
        return transport(self.fake)


class TestShipBobProducts(_OfShipBob):
    stream = "products"


@pytest.mark.nightly
class TestShipBobLocations(_OfShipBob):
    stream = "locations"


@pytest.mark.nightly
class TestShipBobStock(_OfShipBob):
    stream = "stock"


@pytest.mark.nightly
class TestShipBobReceipts(_OfShipBob):
    stream = "receipts"
    settings = {**_OfShipBob.settings, "stock_leaves": "movement", "receipts": "lot"}


@pytest.mark.nightly
class TestShipBobDepartures(_OfShipBob):
    stream = "departures"
    settings = TestShipBobReceipts.settings
    fake = shipped_shipbob()


@pytest.mark.nightly
class TestShipBobBills(_OfShipBob):
    stream = "bills"
    settings = {
        **_OfShipBob.settings,
        "first": "2026-02-01T00:00:00Z",
        "bills": {
            "customer": "SHIPBOB",
            "customer_namespace": "erp",
            "products": {"Shipping": "FEE"},
            "product_namespace": "erp",
        },
    }


@pytest.mark.nightly
class TestShipBobShipments(_OfShipBob):
    stream = "shipments"


def filled_amazon() -> FakeAmazon:
    """Three SKUs in several states, and orders that were shipped in parts, whole and not at all."""
    fake = FakeAmazon(lambda: NOW, limits=MANY, page_size=2)
    seller = fake.seller("SELLER-A")
    for sku in ("LAMP", "CHAIR", "TEA"):
        seller.receive(sku, 20)
    seller.damage("LAMP", 1)
    for number in range(3):
        seller.create(order(f"platform:ord_{number}", ("LAMP", 2)))
        if number:
            seller.ship(f"platform:ord_{number}", {"1": number})
    return fake


class _OfAmazon(StreamContract):
    connector = load_connector("amazon_mcf")
    fake = filled_amazon()
    environment = {
        "AMAZON_REFRESH_TOKEN": "Atzr|SELLER-A",
        "AMAZON_CLIENT_ID": fake.client_id,
        "AMAZON_CLIENT_SECRET": fake.client_secret,
    }
    settings: dict[str, Any] = {
        **threepl_vendors.amazon("https://sellingpartnerapi.example"),
        "refresh_token": "env:AMAZON_REFRESH_TOKEN",
        "client_id": "env:AMAZON_CLIENT_ID",
        "client_secret": "env:AMAZON_CLIENT_SECRET",
        "orders": SENT,
        "first": "2026-01-01T00:00:00Z",
    }

    def network(self) -> httpx.BaseTransport:
        return transport(self.fake)


@pytest.mark.nightly
class TestAmazonProducts(_OfAmazon):
    stream = "products"


@pytest.mark.nightly
class TestAmazonLocations(_OfAmazon):
    stream = "locations"


@pytest.mark.nightly
class TestAmazonStock(_OfAmazon):
    stream = "stock"


class TestAmazonShipments(_OfAmazon):
    stream = "shipments"
