"""A site for tests against the fake Shopify shop: the shop, a clock, and a client that asks it in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
from tests.partners.partner_transport import transport
from tests.partners.shopify.catalog import Location, ProductVariant
from tests.partners.shopify.fake_shop import PATH, FakeShopify

from crossdock.testing.manual_clock import ManualClock

ORDERS_BY_CHANGE = """query Changed($after: String, $query: String, $first: Int = 50) {
  orders(first: $first, after: $after, query: $query, sortKey: UPDATED_AT) {
    nodes { id name updatedAt note }
    pageInfo { hasNextPage endCursor }
  }
}"""


class Site:
    """A shop with one location and one product; *settings* are those of `FakeShopify`. Shops may share a *clock*."""

    def __init__(self, clock: ManualClock | None = None, **settings: Any) -> None:
        self.clock = clock or ManualClock()
        self.shop = FakeShopify(self.clock.now, **settings)
        self.client = httpx.Client(
            transport=transport(self.shop),
            base_url="http://lampen.example",
            headers={"x-shopify-access-token": self.shop.token},
        )
        self.berlin: Location = self.shop.catalog.add_location("Berlin")
        self.lamp = self.variant("LAMP", "49.90", 10)

    def variant(self, sku: str, price: str, units: int) -> ProductVariant:
        """A new product with one variant, in stock at the first location."""
        product = self.shop.catalog.add_product(f"Product {sku}", vendor="Lux")
        variant = self.shop.catalog.add_variant(product, sku, price)
        self.shop.catalog.stock(variant, self.berlin, units)
        return variant

    def post(self, document: str, /, **variables: Any) -> httpx.Response:
        return self.client.post(PATH, json={"query": document, "variables": variables})

    def ask(self, document: str, /, **variables: Any) -> Any:
        """The whole body of an answer with the status 200."""
        answer = self.post(document, **variables)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def data(self, document: str, /, **variables: Any) -> Any:
        """The data of an answer without errors."""
        body = self.ask(document, **variables)
        assert "errors" not in body, body["errors"]
        return body["data"]

    def code(self, document: str, /, **variables: Any) -> str:
        """The code of the one error of an answer."""
        [error] = self.ask(document, **variables)["errors"]
        return str(error["extensions"]["code"])

    def changed(self, query: str = "", first: int = 50) -> list[str]:
        """Names of the orders that a search finds, in the order of their changes."""
        return [node["name"] for page in self.pages(query, first) for node in page]

    def pages(self, query: str = "", first: int = 50) -> Iterator[list[dict[str, Any]]]:
        after = None
        while True:
            found = self.data(ORDERS_BY_CHANGE, after=after, query=query, first=first)["orders"]
            yield found["nodes"]
            if not found["pageInfo"]["hasNextPage"]:
                return
            assert found["pageInfo"]["endCursor"] != after, "the same page again"
            after = found["pageInfo"]["endCursor"]
