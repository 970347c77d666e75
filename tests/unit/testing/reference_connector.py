"""A connector that passes the contract, as the base of connectors with seeded bugs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

import httpx

from crossdock import (
    Connector,
    Context,
    OrderDraft,
    RawBatch,
    Record,
    RecordError,
    Reference,
    SecretRef,
    Stream,
)
from crossdock.sources import BearerAuth, HttpSettings
from crossdock.testing.http_contract import HttpStreamContract

TOKEN = "canary-of-the-contract"
PAGES = [
    {
        "orders": [
            {
                "id": 1, "customer": {"id": 7}, "created_at": "2026-11-01T10:00:00+01:00",
                "updated_at": "2026-11-20T10:00:00Z", "lines": [{"sku": "0017", "quantity": 2, "price": "9.50"}],
            },
            {
                "id": 2, "customer": {"id": 8}, "created_at": "2026-11-02T10:00:00+01:00",
                "updated_at": "2026-11-21T10:00:00Z", "lines": [{"sku": "0018", "quantity": 1, "price": 0.25}],
            },
        ]
    },
    {
        "orders": [
            {
                "id": 3, "customer": {"id": 7}, "created_at": "2026-11-02T11:00:00+01:00",
                "updated_at": "2026-11-21T10:00:00Z", "lines": [{"sku": "0019", "quantity": 3, "price": "1.75"}],
            },
            {
                "id": 4, "customer": {"id": 9}, "created_at": "2026-11-03T10:00:00+01:00",
                "updated_at": "2026-11-22T10:00:00Z", "lines": [],
            },
        ]
    },
]  # fmt: skip
PAGES[1]["orders"][1]["lines"] = [{"sku": "0017", "quantity": 1, "price": "2.25"}]


class ShopSettings(HttpSettings):
    kind: Literal["shop"]
    token: SecretRef


class Orders(Stream[ShopSettings]):
    name, resource, key = "orders", "order", ("id",)

    def params(self, since: str | None) -> dict[str, str]:
        return {"updated_since": since or "", "sort": "updated_at"}

    def newest(self, orders: list[dict[str, Any]]) -> str | None:
        found = [order["updated_at"] for order in orders if isinstance(order.get("updated_at"), str)]
        return max((text for text in found if text.startswith("20")), default=None)

    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        return orders

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        for page in ctx.api.pages("/orders", self.params(since)):
            orders = page.body["orders"]
            yield RawBatch.json(self.items(orders, since), source=page.address, key=["id"], cursor=self.newest(orders))

    def fetch(self, ctx: Context[ShopSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        for (key,) in keys:
            answer = ctx.api.get(f"/orders/{key}")
            yield RawBatch.json([answer.body], source=answer.address, key=["id"])

    def price(self, value: object) -> Any:
        try:
            return Decimal(str(value))
        except InvalidOperation:
            raise RecordError("bad_value", "is not a number", pointer="price") from None

    def placed_at(self, order: dict[str, Any]) -> datetime:
        return datetime.fromisoformat(order["created_at"])

    def to_resource(self, record: Record) -> Any:
        order = record.json()
        try:
            return OrderDraft(
                customer_id=Reference("customer", str(order["customer"]["id"])),
                currency="EUR",
                placed_at=self.placed_at(order),
                items=[
                    {
                        "productId": Reference("product", line["sku"]),
                        "quantity": line["quantity"],
                        "unitPrice": self.price(line["price"]),
                    }
                    for line in order["lines"]
                ],
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise RecordError(
                "bad_value", f"lacks a member or has one of another type: {type(error).__name__}"
            ) from None
        except ValueError as error:
            if type(error) is not ValueError:
                raise
            raise RecordError("bad_value", "is not a time", pointer="created_at") from None


def connector(stream: type[Orders]) -> Connector[ShopSettings]:
    return Connector(
        name="shop",
        title="A shop",
        settings=ShopSettings,
        streams=lambda _: (stream(),),
        api=lambda settings: settings.api(auth=BearerAuth(settings.token)),
    )


class OrdersContract(HttpStreamContract):
    connector = connector(Orders)
    settings = {"base_url": "https://shop.example", "token": "env:SHOP_TOKEN"}
    environment = {"SHOP_TOKEN": TOKEN}
    stream = "orders"
    given = [("customer", "shop"), ("product", "shop")]
    pages = PAGES

    def transport(self, pages: Sequence[Any]) -> httpx.MockTransport:
        def answer(request: httpx.Request) -> httpx.Response:
            name = request.url.path.removeprefix("/orders/")
            for order in (order for page in pages for order in page["orders"]):
                if isinstance(order, dict) and str(order.get("id")) == name:
                    return httpx.Response(200, text=json.dumps(order, default=str))
            number = int(request.url.params.get("page", "1"))
            link = f'<{request.url.copy_set_param("page", number + 1)}>; rel="next"'
            headers = {"link": link} if number < len(pages) else {}
            return httpx.Response(200, text=json.dumps(pages[number - 1], default=str), headers=headers)

        return httpx.MockTransport(answer)


def passes(stream: type[Orders], test: str) -> bool:
    """Whether *stream* passes this test of the contract."""
    case = type("Case", (OrdersContract,), {"connector": connector(stream)})()
    try:
        getattr(case, f"test_{test}")()
    except AssertionError:
        return False
    return True
