"""Stages for both 3PLs: settings of their connections, and maps of the orders that go out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.partners.amazon import FakeAmazon
from tests.partners.amazon_document import CheckedPartner, available
from tests.partners.partner_server import Partner
from tests.partners.shipbob import LIMIT_PER_MINUTE, ShipBob
from tests.partners.shipbob_client import CHANNELS, LOCATIONS, stocked

from crossdock.values.clock import Clock

SHIPBOB_ORDER: dict[str, Any] = {
    "shipping_method": {"const": "Standard"},
    "recipient": {
        "object": {
            "name": {"const": "Ada"},
            "address": {
                "object": {
                    "address1": {"const": "1 Main St"},
                    "city": {"const": "Chicago"},
                    "country": {"const": "US"},
                    "zip_code": {"const": "01"},
                }
            },
        }
    },
    "products": {
        "each": {
            "reference_id": "SKU",
            "quantity": {"from": "UNITS", "as": "integer"},
            "unit_price": {"from": "PRICE", "as": "decimal"},
        }
    },
}
AMAZON_ORDER: dict[str, Any] = {
    "displayableOrderId": "ORDER",
    "displayableOrderDate": {"const": "2026-03-01T08:00:00Z"},
    "displayableOrderComment": {"const": "Thank you"},
    "shippingSpeedCategory": {"const": "Standard"},
    "fulfillmentPolicy": {"const": "FillAll"},
    "destinationAddress": {
        "object": {
            "name": {"const": "Ada"},
            "addressLine1": {"const": "1 Main St"},
            "city": {"const": "Chicago"},
            "postalCode": {"const": "60601"},
            "countryCode": {"const": "US"},
        }
    },
    "items": {
        "each": {
            "sellerSku": "SKU",
            "sellerFulfillmentOrderItemId": "SKU",
            "quantity": {"from": "UNITS", "as": "integer"},
            "perUnitPrice": {"object": {"currencyCode": {"const": "USD"}, "value": {"from": "PRICE", "as": "decimal"}}},
        }
    },
}


def shipbob(url: str, **more: Any) -> dict[str, Any]:
    """A connection to the fake of ShipBob, whose orders are those of the shop."""
    orders = {"namespace": "shop", "matches": "key"}
    return {"kind": "shipbob", "base_url": f"{url}/2026-01", "owner": "10", "channel": 1, "orders": orders, **more}


def amazon(url: str, **more: Any) -> dict[str, Any]:
    """A connection to the fake of Amazon, whose orders are those of the shop."""
    orders = {"namespace": "shop", "matches": "key"}
    place = {"base_url": url, "token_url": f"{url}/auth/o2/token", "marketplace": "ATVPDKIKX0DER"}
    return {"kind": "amazon_mcf", **place, "orders": orders, **more}


@dataclass(frozen=True)
class Vendor:
    """A fake of a 3PL for tests that are the same for all.

    Attributes:
        connection: The settings of a connection to it, besides secrets.
        secrets: Secret settings, by their name.
        order: The map of an order that goes out.
        stocked: Puts units of a SKU into stock.
        cancel: Has the 3PL itself cancel the order with this name.
        created: The names of all orders that it created, and how often.
        violations: What its vendor's own document does not allow; empty without one.
    """

    partner: Partner
    connection: Callable[..., dict[str, Any]]
    secrets: Mapping[str, str]
    order: Mapping[str, Any]
    stocked: Callable[[str, int], object]
    cancel: Callable[[str], object]
    created: Callable[[], Counter[str]]
    violations: Callable[[], list[str]] = list


def shipbob_vendor(clock: Clock, limit: int = LIMIT_PER_MINUTE) -> Vendor:
    fake = ShipBob({"token-of-ours": [1, 2, 3]}, CHANNELS, LOCATIONS, limit=limit, now=clock.now)
    return Vendor(
        fake,
        shipbob,
        {"token": "token-of-ours"},
        SHIPBOB_ORDER,
        lambda sku, units: stocked(fake, sku, units),
        lambda name: fake.warehouse.cancel(
            next(each.id for each in fake.warehouse.orders.values() if each.body["reference_id"] == name)
        ),
        lambda: Counter(each["body"]["reference_id"] for each in fake.effects if each["kind"] == "order_created"),
    )


def amazon_vendor(clock: Clock, **settings: Any) -> Vendor:
    """Every exchange is judged by Amazon's documents where this machine has them."""
    fake = FakeAmazon(clock.now, **settings)
    seller = fake.seller("SELLER-A")
    checked = CheckedPartner(fake) if available() else None
    secrets = {"refresh_token": seller.refresh_token, "client_id": fake.client_id, "client_secret": fake.client_secret}
    return Vendor(
        checked or fake,
        amazon,
        secrets,
        AMAZON_ORDER,
        seller.receive,
        seller.cancel,
        lambda: Counter(each["order"] for each in fake.effects if each["kind"] == "order_created"),
        lambda: checked.violations if checked else [],
    )
