"""A connector for a small paged HTTP API, written as an author would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from crossdock import (
    Connector,
    Context,
    OrderDraft,
    ProductDraft,
    RawBatch,
    Record,
    Reference,
    SecretRef,
    Stream,
)
from crossdock.sources import BearerAuth, HttpSettings


class ShopSettings(HttpSettings):
    """One shop."""

    kind: Literal["orders_shop"]
    token: SecretRef


def _pages(ctx: Context[ShopSettings], path: str, since: str | None) -> Iterator[RawBatch]:
    for page in ctx.api.pages(path, {"limit": 2, "updated_since": since or ""}):
        items = page.items("/items")
        cursor = max((item["updated_at"] for item in items), default=None)
        yield RawBatch.json(items, source=page.address, key=["id"], cursor=cursor)


class Products(Stream[ShopSettings]):
    """Products changed since the cursor."""

    name = "products"
    resource = "product"
    key = ("id",)

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        return _pages(ctx, "/products", since)

    def to_resource(self, record: Record) -> ProductDraft:
        shop = record.json()
        return ProductDraft(sku=shop["sku"], name=shop["title"], unit_price=shop["price"], currency="EUR")


class Orders(Stream[ShopSettings]):
    """Orders changed since the cursor."""

    name = "orders"
    resource = "order"
    key = ("id",)

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        return _pages(ctx, "/orders", since)

    def to_resource(self, record: Record) -> OrderDraft:
        shop = record.json()
        lines = [
            {"productId": Reference("product", str(line["product"])), "quantity": line["n"], "unitPrice": line["price"]}
            for line in shop["lines"]
        ]
        return OrderDraft.model_validate(
            {"customerId": shop["customer"], "currency": "EUR", "placedAt": shop["updated_at"], "items": lines}
        )


CONNECTOR = Connector(
    name="orders_shop",
    title="A small shop",
    settings=ShopSettings,
    streams=lambda _settings: (Products(), Orders()),
    api=lambda settings: settings.api(auth=BearerAuth(settings.token)),
)
