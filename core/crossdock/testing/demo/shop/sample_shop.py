"""A made-up shop: its products, orders, shipments and refunds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from itertools import count

from msgspec import Struct, field

CURRENCY = "EUR"
LOCATION = 501
"""The id of the one location."""
_TAX = Decimal("0.08")
_CENT = Decimal("0.01")


class Article(Struct, eq=False):
    id: int
    sku: str
    title: str
    price: Decimal
    stock: int


class Buyer(Struct, frozen=True):
    """A customer. A guest has no *id*."""

    id: int | None
    name: str
    email: str
    street: str
    city: str
    country: str = "DE"


class OrderLine(Struct, eq=False):
    id: int
    article: Article
    quantity: int
    shipped: int = 0
    returned: int = 0

    @property
    def amount(self) -> Decimal:
        return self.article.price * self.quantity


class Parcel(Struct, frozen=True):
    id: int
    carrier: str
    number: str
    url: str | None
    units: dict[int, int]
    """Units by the id of the order line."""


class Refund(Struct, frozen=True):
    """Units of one line that came back, and what was paid for them, with tax."""

    id: int
    line: OrderLine
    units: int
    amount: Decimal
    tax: Decimal


class ShopOrder(Struct, eq=False):
    """An order. Prices are without tax."""

    id: int
    buyer: Buyer
    lines: list[OrderLine]
    discount: Decimal
    shipping: Decimal
    placed: datetime
    changed: datetime
    completed: datetime | None = None
    parcels: list[Parcel] = field(default_factory=list)
    refunds: list[Refund] = field(default_factory=list)

    @property
    def subtotal(self) -> Decimal:
        """The sum of the items, after the discount."""
        return sum((line.amount for line in self.lines), Decimal(0)) - self.discount

    @property
    def tax(self) -> Decimal:
        return rounded((self.subtotal + self.shipping) * _TAX)

    @property
    def total(self) -> Decimal:
        return self.subtotal + self.shipping + self.tax

    @property
    def refunded_amount(self) -> Decimal:
        return sum((refund.amount + refund.tax for refund in self.refunds), Decimal(0))

    @property
    def is_shipped(self) -> bool:
        return all(line.shipped >= line.quantity for line in self.lines)


def rounded(amount: Decimal) -> Decimal:
    return amount.quantize(_CENT, ROUND_HALF_UP)


class SampleShop:
    """The shop's data, and what happens in it."""

    def __init__(self) -> None:
        self._ids = count(1001)
        self.opened = _now() - timedelta(days=3)
        self.articles = [
            Article(next(self._ids), sku, title, Decimal(price), stock)
            for sku, title, price, stock in (
                ("LAMP-1", "Desk lamp", "49.90", 40),
                ("CHAIR-2", "Oak chair", "129.00", 12),
                ("MUG-3", "Blue mug", "8.35", 200),
            )
        ]
        lamp, chair, mug = self.articles
        ann = Buyer(next(self._ids), "Ann Example", "ann@example.com", "1 Main Street", "Hamburg")
        bob = Buyer(next(self._ids), "Bob Example", "bob@example.com", "2 Side Street", "Leipzig")
        guest = Buyer(None, "Gil Guest", "gil@example.com", "3 High Street", "Vienna", "AT")
        self.buyers = [ann, bob]
        self.orders: list[ShopOrder] = []
        self._place_order(ann, {lamp: 2, mug: 3}, discount="10.00", shipping="4.90")
        self._place_order(guest, {chair: 1}, shipping="19.00")
        self._place_order(bob, {mug: 7})
        self._place_order(ann, {chair: 2, lamp: 1}, discount="30.79", shipping="19.00")

    def find_order(self, order_id: int) -> ShopOrder | None:
        return next((order for order in self.orders if order.id == order_id), None)

    def find_article(self, sku: str) -> Article | None:
        return next((article for article in self.articles if article.sku == sku), None)

    def ship(self, order: ShopOrder, units: dict[int, int], carrier: str, number: str, url: str | None) -> Parcel:
        for line in order.lines:
            line.shipped += units.get(line.id, 0)
        parcel = Parcel(next(self._ids), carrier, number, url, units)
        order.parcels.append(parcel)
        order.changed = _now()
        return parcel

    def mark_order_completed(self, order: ShopOrder) -> None:
        order.completed = order.changed = _now()

    def refund_units(self, order: ShopOrder, sku: str, units: int) -> None:
        """Refund units of an order without a discount."""
        line = next(line for line in order.lines if line.article.sku == sku)
        line.returned += units
        amount = line.article.price * units
        order.refunds.append(Refund(next(self._ids), line, units, amount, rounded(amount * _TAX)))
        order.changed = _now()

    def _place_order(
        self, buyer: Buyer, units: dict[Article, int], *, discount: str = "0", shipping: str = "0"
    ) -> None:
        placed = self.opened + timedelta(hours=len(self.orders))
        lines = [OrderLine(next(self._ids), article, quantity) for article, quantity in units.items()]
        order = ShopOrder(next(self._ids), buyer, lines, Decimal(discount), Decimal(shipping), placed, placed)
        self.orders.append(order)


def _now() -> datetime:
    return datetime.now(UTC)
