"""WooCommerce shops whose records were made and changed at random, as a strategy of hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from tests.partners.woocommerce.shop import FakeShop

from crossdock.testing import ManualClock


class _Owner:
    """Changes a shop as *draw* says."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw, self.clock = draw, ManualClock()
        self.shop = FakeShop(clock=self.clock)
        self._catalog, self._orders = self.shop.catalog, self.shop.orders
        self._shirt = self._catalog.add("Shirt", type="variable", sku="SHIRT", **self._stock())
        self._sold = [self._catalog.add("Lamp", "49.90", sku="LAMP", **self._stock())]
        self._accounts = [self.shop.customers.add(f"c{number}@example.com").id for number in range(2)]
        self._placed = [self._orders.place((self._sold[0], 3), billing={"email": "a@example.com"})]

    def _stock(self) -> dict[str, Any]:
        return {"manage_stock": True, "stock_quantity": 9} if self._draw(st.booleans()) else {}

    def add_product(self) -> None:
        self._sold.append(self._catalog.add("Desk", "5", sku=f"SKU-{len(self._sold)}", **self._stock()))

    def add_variation(self) -> None:
        options = [{"name": "Colour", "option": "Blue"}]
        sku = f"SKU-{len(self._sold)}"
        self._sold.append(self._catalog.add("Shirt", "7", self._shirt, sku=sku, attributes=options, **self._stock()))

    def place(self) -> None:
        buyers = [{"customer_id": each} for each in self._accounts]
        guests = [{"billing": {"email": email}} for email in ("a@example.com", "b@example.com", "")]
        status = self._draw(st.sampled_from(["pending", "processing", "completed"]))
        items = [(self._draw(st.sampled_from(self._sold)), self._draw(st.integers(1, 3))) for _ in range(2)]
        self._placed.append(self._orders.place(*items, status=status, **self._draw(st.sampled_from(buyers + guests))))

    def refund(self) -> None:
        order = self._orders.place((self._sold[0], 3), customer_id=self._accounts[0])
        for amount in ("1.00", "2.00"):
            self._orders.refund(order, amount, units={order.lines[0].id: 1})

    def trash(self) -> None:
        self._orders.trash(self._draw(st.sampled_from(self._placed)))


@st.composite
def shops(draw: st.DrawFn) -> FakeShop:
    """Simple products and variations, orders of accounts and guests, also in the trash, and refunds."""
    owner = _Owner(draw)
    steps: list[Callable[[], None]] = [
        owner.add_product, owner.add_variation, owner.place, owner.refund, owner.trash,
    ]  # fmt: skip
    for step in draw(st.lists(st.sampled_from(steps), max_size=12)):
        step()
        owner.clock.advance(draw(st.integers(0, 2)))
    return owner.shop
