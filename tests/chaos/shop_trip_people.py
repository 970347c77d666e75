"""What people do during the shop's trip: buyers order, the merchant changes orders, and the 3PL's staff ships."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from random import Random
from typing import Any

from tests.partners.plain_3pl_warehouse import Stored, Warehouse
from tests.partners.shopify.catalog import Location, ProductVariant
from tests.partners.shopify.fake_shop import FakeShopify
from tests.partners.shopify.order_lines import Discount, Line
from tests.partners.shopify.orders import Order

SKUS = tuple(f"{number:04}" for number in range(17, 25))
"""Each is stocked at one place: the first half at the first of `PLACES`."""
PLACES = ("A-01", "B-02")
STOCK = 1_000


def place_of(sku: str) -> str:
    return PLACES[SKUS.index(sku) * len(PLACES) // len(SKUS)]


class ShopPeople:
    """Buyers and the merchant.

    Attributes:
        placed: All orders, oldest first.
        locations: The shop's by the 3PL's code.
    """

    def __init__(self, shop: FakeShopify, random: Random, happened: Counter[str]) -> None:
        self._shop, self._random, self._happened = shop, random, happened
        self.placed: list[Order] = []
        self.locations: dict[str, Location] = {place: shop.catalog.add_location(place) for place in PLACES}
        self._variants = {sku: self._new_variant(sku) for sku in SKUS}

    def _new_variant(self, sku: str) -> ProductVariant:
        product = self._shop.catalog.add_product(f"Part {sku}")
        variant = self._shop.catalog.add_variant(product, sku, "9.50")
        self._shop.catalog.stock(variant, self.locations[place_of(sku)], STOCK)
        return variant

    def order(self) -> None:
        """A guest orders one to four products; some pay later."""
        random, desk = self._random, self._shop.orders
        lines = [self._line(sku) for sku in random.sample(SKUS, random.randint(1, 4))]
        discount = Discount("code", "SPRING", percentage=Decimal(10)) if random.random() < 0.2 else None
        email = f"buyer{len(self.placed)}@example.com"
        paid, shipping = random.random() < 0.9, Decimal(random.choice(("0", "4.90")))
        self.placed.append(desk.place(*lines, email=email, discount=discount, shipping=shipping, paid=paid))
        self._happened["orders"] += 1

    def _line(self, sku: str) -> Line:
        return Line(self._variants[sku], self._random.randint(1, 4))

    def change(self) -> None:
        """The merchant cancels, edits or refunds an order of which the shop knows no parcel."""
        open_ones = [order for order in self.placed if not order.fulfillments and order.cancelled_at is None]
        if not open_ones:
            return
        order, desk = self._random.choice(open_ones), self._shop.orders
        rest = {line.sku: line.unfulfilled_quantity for line in order.line_items if line.unfulfilled_quantity > 1}
        sku = self._random.choice(list(rest)) if rest else None
        if order.display_financial_status == "AUTHORIZED":
            added = [self._line(self._random.choice([sku for sku in SKUS if sku not in _skus(order)]))]
            desk.edit(order, *added, removed={sku: 1} if sku else {})
            self._happened["edited"] += 1
        elif sku and self._random.random() < 0.6:
            desk.refund(order, {sku: 1})
            self._happened["refunded"] += 1
        else:
            self._cancel(order)

    def _cancel(self, order: Order) -> None:
        """Pay all back, as Shopify notes it of a cancelled order, and cancel it."""
        left = {line.sku: line.unfulfilled_quantity for line in order.line_items if line.sku}
        shipping = order.total_shipping_price_set - order.total_refunded_shipping_set
        self._shop.orders.refund(order, left, shipping=shipping.shop_money.amount)
        self._shop.orders.cancel(order)
        self._happened["cancelled"] += 1


def _skus(order: Order) -> set[str | None]:
    return {line.sku for line in order.line_items}


class Staff:
    """The 3PL's people."""

    def __init__(self, warehouse: Warehouse, random: Random, happened: Counter[str]) -> None:
        self._warehouse, self._random, self._happened = warehouse, random, happened
        for sku in SKUS:
            warehouse.add_product("acme", sku)
            warehouse.receive("acme", sku, "L1", place_of(sku), STOCK)
        warehouse.add_product("globex", SKUS[0])
        warehouse.receive("globex", SKUS[0], "L1", PLACES[0], STOCK)
        lines = [{"sku": SKUS[0], "quantity": 1}]
        for owner, reference in (("acme", "by telephone"), ("globex", "erp:ord_of_others")):
            placed = warehouse.add_order({"owner": owner, "reference": reference, "lines": lines})
            warehouse.ship(placed, {1: 1})

    def ship(self) -> bool:
        """Ship a parcel, which has some or all of what is left of an order at one place; False if nothing is left."""
        open_orders = self._open()
        if not open_orders:
            return False
        order_id, order = self._random.choice(open_orders)
        left = _left(order)
        place = place_of(self._random.choice(list(left.values()))["sku"])
        there = {number: line for number, line in left.items() if place_of(line["sku"]) == place}
        parcel = {number: _remaining(line) for number, line in there.items()}
        if self._random.random() < 0.4:
            number = self._random.choice(list(there))
            parcel = {number: self._random.randint(1, parcel[number])}
        self._warehouse.ship(order_id, parcel)
        self._happened["parcels"] += 1
        return True

    @property
    def open_orders(self) -> int:
        return len(self._open())

    def _open(self) -> list[tuple[str, Stored]]:
        return [(each, order) for each, order in self._warehouse.tables["orders"].items() if _left(order)]

    def receive(self) -> None:
        """Goods arrive."""
        sku = self._random.choice(SKUS)
        self._warehouse.receive("acme", sku, "L1", place_of(sku), self._random.randint(1, 50))


def _left(order: Stored) -> dict[int, dict[str, Any]]:
    """The lines of an open order of which something is not shipped, by number."""
    if order.members["status"] == "cancelled":
        return {}
    return {line["line"]: line for line in order.members["lines"] if _remaining(line)}


def _remaining(line: dict[str, Any]) -> int:
    return int(line["quantity"] - line["shipped"] - line["short"])
