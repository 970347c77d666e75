"""Shops whose records were made and changed at random, as a strategy of hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from hypothesis import strategies as st
from tests.partners.shopify.cost import Plan
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.site import Site

RICH = Plan(10**6, 10**6)


class _Owner:
    """Changes a shop as *draw* says."""

    def __init__(self, draw: st.DrawFn, site: Site) -> None:
        self._draw, self.site = draw, site
        self._accounts = [site.shop.customers.add(f"c{number}@example.com") for number in range(2)]
        self._variants, self._places = [site.lamp], [site.berlin, site.shop.catalog.add_location("Paris")]

    def add_variant(self) -> None:
        product = self._draw(st.sampled_from(self._variants)).product
        variant = self.site.shop.catalog.add_variant(product, f"SKU-{len(self._variants)}", title="Other")
        self._variants.append(variant)

    def add_product(self) -> None:
        self._variants.append(self.site.variant(f"SKU-{len(self._variants)}", "5.00", 9))

    def stock(self) -> None:
        variant, place = self._draw(st.sampled_from(self._variants)), self._draw(st.sampled_from(self._places))
        self.site.shop.catalog.stock(variant, place, self._draw(st.integers(0, 9)))

    def place(self) -> None:
        lines = [Line(self._draw(st.sampled_from([*self._variants, None])), 3, Decimal(7)) for _ in range(2)]
        buyer = self._draw(st.sampled_from([*self._accounts, "a@example.com", "b@example.com", None]))
        test, paid = self._draw(st.booleans()), self._draw(st.booleans())
        who = {"email": buyer} if isinstance(buyer, str) or buyer is None else {"customer": buyer}
        self.site.shop.orders.place(*lines, test=test, paid=paid, **who)

    def refund(self) -> None:
        desk = self.site.shop.orders
        order = desk.place(Line(self.site.lamp, 3), email="c@example.com")
        for _ in range(self._draw(st.integers(1, 3))):
            desk.refund(order, {"LAMP": 1})

    def rename(self) -> None:
        self.site.shop.catalog.change(self._draw(st.sampled_from(self._variants)), barcode="4006381333931")


@st.composite
def shops(draw: st.DrawFn) -> Site:
    """Products with several variants, stock at two locations, orders of accounts and guests, test orders, refunds."""
    owner = _Owner(draw, Site(plan=RICH))
    steps: list[Callable[[], None]] = [
        owner.add_variant, owner.add_product, owner.stock, owner.place, owner.refund, owner.rename,
    ]  # fmt: skip
    for step in draw(st.lists(st.sampled_from(steps), max_size=12)):
        step()
        owner.site.clock.advance(draw(st.integers(0, 2)))
    return owner.site
