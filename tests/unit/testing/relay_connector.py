"""A stream of a GraphQL connection that has edges alone, with ids in Base64 and amounts that are JSON numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Literal

import httpx

from crossdock import Connector, Context, ProductDraft, RawBatch, Record, SecretRef, Stream
from crossdock.sources import BearerAuth, Cursor, GraphQLConnection, HttpSettings
from crossdock.testing.http_contract import HttpStreamContract

CONNECTION = "/data/products"
NODE = "id sku name price updatedAt"


class ShopSettings(HttpSettings):
    kind: Literal["relay_shop"]
    token: SecretRef


class Products(Stream[ShopSettings]):
    name, resource, key = "products", "product", ("id",)
    cursor = Cursor(column="updatedAt", as_="instant")
    node, direction = NODE, "ASC"

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        order = f"sortBy: {{ field: CHANGED, direction: {self.direction} }}"
        query = f"""query ($first: Int, $after: String, $since: DateTime) {{
          products(first: $first, after: $after, since: $since, {order}) {{
            edges {{ node {{ {self.node} }} }} pageInfo {{ hasNextPage endCursor }} }} }}"""
        paginator = GraphQLConnection(CONNECTION, size=2)
        for page in ctx.api.pages("/graphql", graphql=query, variables={"since": since}, paginator=paginator):
            yield RawBatch.json(page.items(f"{CONNECTION}/edges/*/node"), source=page.address)

    def to_resource(self, record: Record) -> ProductDraft:
        return ProductDraft(
            sku=record.at("/sku", str),
            name=record.at("/name", str, default=None) or "unnamed",
            unit_price=record.decimal("/price", default=None),
            currency="EUR",
        )


def connector(stream: type[Products]) -> Connector[ShopSettings]:
    return Connector(
        name="relay_shop",
        title="A shop",
        settings=ShopSettings,
        streams=lambda _: (stream(),),
        api=lambda settings: settings.api(auth=BearerAuth(settings.token), rate=None),
    )


def page(nodes: Sequence[Any], following: str | None) -> Any:
    info = {"hasNextPage": following is not None, "endCursor": following}
    return {"data": {"products": {"edges": [{"node": node} for node in nodes], "pageInfo": info}}}


def product(number: int, price: float | None, updated_at: str) -> dict[str, Any]:
    return {
        "id": f"UHJvZHVjdDo{number}==", "sku": f"001{number}", "name": f"Lamp {number}", "price": price,
        "updatedAt": updated_at, "createdAt": f"2026-10-0{number}T08:15:00Z",
    }  # fmt: skip


PAGES = [
    page([product(1, 24.95, "2026-11-01T10:00:00Z"), product(2, 0.25, "2026-11-02T10:00:00Z")], "after-2"),
    page([product(3, None, "2026-11-02T10:00:00Z"), product(4, 99.5, "2026-11-03T10:00:00Z")], None),
]
EXPECTED = {
    "UHJvZHVjdDo1==": {"sku": "0011", "name": "Lamp 1", "unitPrice": Decimal("24.95"), "currency": "EUR"},
    ("UHJvZHVjdDo3==",): {"unitPrice": None},
    "UHJvZHVjdDo4%3D%3D": {"unitPrice": Decimal("99.5")},
}


class ProductsContract(HttpStreamContract):
    connector = connector(Products)
    settings = {"base_url": "https://shop.example", "token": "env:SHOP_TOKEN"}
    environment = {"SHOP_TOKEN": "canary-of-the-contract"}
    stream = "products"
    pages = PAGES
    expects = EXPECTED
    cursor_param = "since"

    def transport(self, pages: Sequence[Any]) -> httpx.MockTransport:
        """More members than the query selects, as fakes often have them."""

        def answer(request: httpx.Request) -> httpx.Response:
            after = json.loads(request.content)["variables"].get("after")
            cursors = [one["data"]["products"]["pageInfo"]["endCursor"] for one in pages]
            number = 0 if after is None else cursors.index(after) + 1
            return httpx.Response(200, text=json.dumps(pages[number]))

        return httpx.MockTransport(answer)
