"""The shop of `shop_api`, as an author writes its connector in Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from crossdock import Connector, Context, Filter, RawBatch, Record, Reference, SecretRef, Settings, Stream
from crossdock.sources import Api, Cursor, HeaderAuth, RateLimit


class ShopSettings(Settings):
    kind: Literal["shop"]
    base_url: str
    token: SecretRef


class ShopList(Stream[ShopSettings]):
    """A list of the API, sorted by the time of change."""

    key = ("id",)
    cursor = Cursor(column="updated_at", as_="instant")
    explode: str | None = None

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        for page in ctx.api.pages(f"/{self.name}.json", {"limit": 3, "updated_at_min": since}):
            yield RawBatch.json(page.items(f"/{self.name}"), source=page.address, explode=self.explode)


class Products(ShopList):
    name, resource, key, explode = "products", "product", ("variants.id",), "variants"

    def to_resource(self, record: Record) -> dict[str, Any]:
        return {
            "sku": record.at("/variants/sku", str),
            "name": f"{record.at('/title', str)} {record.at('/variants/title', str)}",
            "barcode": record.at("/variants/barcode", str, default=None) or None,
            "unitPrice": record.decimal("/variants/price"),
            "currency": "USD",
            "active": record.at("/published_at", str, default=None) is not None,
        }


class Customers(ShopList):
    name, resource = "customers", "customer"

    def to_resource(self, record: Record) -> dict[str, Any]:
        return {
            "name": f"{record.at('/first_name', str)} {record.at('/last_name', str)}",
            "email": record.at("/email", str, default=None),
            "phone": record.at("/phone", str, default=None),
            "billingAddress": _address(record, "/default_address"),
        }


class Orders(ShopList):
    name, resource = "orders", "order"
    skip = {"cancelled": Filter(field="cancelled_at", empty=False)}

    def to_resource(self, record: Record) -> dict[str, Any]:
        return {
            "customerId": Reference("customer", str(record.at("/customer/id", int))),
            "currency": record.at("/currency", str),
            "placedAt": record.at("/created_at", str),
            "items": [
                {
                    "productId": Reference("product", str(line.at("/variant_id", int))),
                    "quantity": line.decimal("/quantity"),
                    "unitPrice": line.decimal("/price"),
                }
                for line in record.each("/line_items")
            ],
            "shippingAddress": _address(record, "/shipping_address"),
        }


def _address(record: Record, pointer: str) -> dict[str, str | None] | None:
    if record.at(pointer, dict, default=None) is None:
        return None
    members = {"line1": "address1", "line2": "address2", "city": "city", "region": "province_code"}
    members |= {"postalCode": "zip", "country": "country_code"}
    return {name: record.at(f"{pointer}/{own}", str, default=None) or None for name, own in members.items()}


def api(settings: ShopSettings) -> Api:
    auth = HeaderAuth("X-Shopify-Access-Token", settings.token)
    return Api(settings.base_url, auth, rate=RateLimit(per_minute=600_000))


CONNECTOR = Connector("shop", "A shop", ShopSettings, streams=lambda _: (Products(), Customers(), Orders()), api=api)
