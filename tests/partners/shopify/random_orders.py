"""Orders that were placed, edited and refunded at random in the fake Shopify shop, as strategies of hypothesis."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from hypothesis import note
from hypothesis import strategies as st
from tests.partners.shopify.order_lines import Discount, Line, Tax
from tests.partners.shopify.orders import Order
from tests.partners.shopify.site import Site

_BUYERS = (None, ("USD", Decimal("1.0873")), ("JPY", Decimal("161.37")))


@dataclass
class Sold:
    """An order, the only one of a new shop.

    Attributes:
        steps: What was done with it, for the message of a test that fails.
        removed: Whether units were removed by an edit.
    """

    site: Site
    order: Order
    steps: list[str] = field(default_factory=list)
    removed: bool = False

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """As hypothesis shows it; `note` shows the steps."""
        printer.text(f"order {self.number}")

    @property
    def number(self) -> str:
        return str(self.order.legacy_resource_id)

    def left(self) -> dict[str, int]:
        """The units that can be removed or refunded, by SKU."""
        return {line.sku or "": line.current_quantity for line in self.order.line_items if line.current_quantity}

    def add(self, quantity: int, price: str) -> None:
        sku = f"ADDED-{len(self.order.line_items)}"
        self.site.shop.orders.edit(self.order, Line(self.site.variant(sku, price, 99), quantity))
        self.steps.append(f"add {quantity} at {price}")

    def remove(self, sku: str, units: int) -> None:
        self.site.shop.orders.edit(self.order, removed={sku: units})
        self.removed = True
        self.steps.append(f"remove {units} {sku}")

    def refund(self, units: dict[str, int], shipping: Decimal, less: Decimal | Literal["all"]) -> None:
        self.site.shop.orders.refund(self.order, units, shipping=shipping, less=less)
        self.steps.append(f"refund {units}, shipping {shipping}, less {less}")


@st.composite
def sold(draw: st.DrawFn, *, edits: bool) -> Sold:
    """An order that was paid, and up to three changes: refunds, and with *edits* units that are added or removed."""
    made = _placed(draw)
    for _ in range(draw(st.integers(0, 3))):
        change = draw(st.sampled_from(["refund", "add", "remove"] if edits else ["refund"]))
        left = made.left()
        sku = draw(st.sampled_from(sorted(left))) if left else ""
        if change == "add":
            made.add(draw(st.integers(1, 3)), draw(st.sampled_from(["9.00", "0.00"])))
        elif change == "remove" and sku:
            made.remove(sku, draw(st.integers(1, left[sku])))
        elif change == "refund":
            _refund(draw, made, {sku: draw(st.integers(1, left[sku]))} if sku and draw(st.booleans()) else {})
    note("; ".join(made.steps))
    return made


def _placed(draw: st.DrawFn) -> Sold:
    currency = draw(st.sampled_from(["EUR", "JPY"]))
    prices = st.integers(0, 20_000).map(lambda units: Decimal(units).scaleb(-2 if currency == "EUR" else 0))
    site = Site(currency=currency)
    lines = [_line(draw, site, f"SKU-{number}", prices) for number in range(draw(st.integers(1, 3)))]
    worth = sum((line.quantity * (line.price or 0) - line.discount for line in lines), Decimal(0))
    percentage, off = Decimal(draw(st.sampled_from([10, 33]))), min(draw(prices), worth)
    discounts = (None, Discount("code", "SUMMER", percentage), Discount("manual", "Goodwill", amount=off))
    discount = draw(st.sampled_from(discounts))
    tax = Tax(Decimal(draw(st.sampled_from(["0", "0.19", "0.0825"]))), included=draw(st.booleans()))
    shipping, tip = (Decimal(draw(st.sampled_from([0, amount]))) for amount in (7, 3))
    buyer = draw(st.sampled_from(_BUYERS))
    order = site.shop.orders.place(
        *lines, discount=discount, shipping=shipping, tip=tip, tax=tax, buyer=buyer, email="buyer@example.com"
    )
    carts = [f"{line.quantity} at {line.price} less {line.discount}" for line in lines]
    return Sold(site, order, [f"{currency}, {buyer}, {carts}, {discount}, {tax}, shipping {shipping}, tip {tip}"])


def _line(draw: st.DrawFn, site: Site, sku: str, prices: st.SearchStrategy[Decimal]) -> Line:
    quantity, price, off = draw(st.integers(1, 7)), draw(prices), draw(prices)
    discount = min(off, quantity * price) if draw(st.booleans()) else Decimal(0)
    return Line(site.variant(sku, "1.00", 99), quantity, price, discount=discount)


def _refund(draw: st.DrawFn, made: Sold, units: dict[str, int]) -> None:
    """Some units, shipping or both; sometimes less than they were, or no money at all."""
    [line] = made.order.shipping_lines
    shipping = draw(st.sampled_from([Decimal(0), line.current_discounted_price_set.shop_money.amount]))
    prices = (made.order.line(sku).price.shop_money.amount for sku in units)
    worth = shipping + sum(prices, Decimal(0)) / 8  # of one unit at least
    less: list[Decimal | Literal["all"]] = [Decimal(0), Decimal(0), *([Decimal(1)] if worth > 1 else []), "all"]
    made.refund(units, shipping, draw(st.sampled_from(less)))
