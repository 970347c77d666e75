"""A generator of a Shopify shop with all kinds of orders, drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from tests.partners.shopify.catalog import ProductVariant
from tests.partners.shopify.customers import Customer
from tests.partners.shopify.fake_shop import FakeShopify
from tests.partners.shopify.order_lines import Discount, Line, LineItem, Tax
from tests.partners.shopify.orders import Order

BEGAN = datetime(2025, 1, 1, tzinfo=UTC)
LONG_ORDER = 33
"""Lines of a long order: more than one page of them."""
_TAXES = (
    Tax(Decimal("0.19"), included=True),
    Tax(Decimal("0.07"), included=True),
    Tax(Decimal("0.19"), included=False),
    Tax(Decimal("0.081"), included=False),
    Tax(Decimal(0), included=False),
)
_BUYERS = (
    *(None,) * 5,
    ("USD", Decimal("1.0837")),
    ("JPY", Decimal("163.21")),
    ("KWD", Decimal("0.33291")),
)
_DISCOUNTS = (
    *(None,) * 4,
    Discount("code", "TEN", percentage=Decimal(10)),
    Discount("automatic", "Autumn", percentage=Decimal("7.5")),
    Discount("manual", "Sorry", amount=Decimal("1.37")),
    Discount("code", "FIVE", amount=Decimal(5)),
)


class ShopClock:
    """The time in the shop: it stands in the past while the shop is filled, and is the *present* later."""

    def __init__(self, present: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.past: datetime | None = BEGAN
        self._present = present

    def now(self) -> datetime:
        return self.past or self._present()

    def advance(self, passed: timedelta) -> None:
        if self.past is not None:
            self.past += passed


class Generator:
    """Fills a shop, and changes it later.

    Attributes:
        placed: All orders that were placed.
    """

    def __init__(self, shop: FakeShopify, clock: ShopClock, random: Random) -> None:
        self.shop, self.clock, self.random = shop, clock, random
        self.placed: list[Order] = []
        self._variants: list[ProductVariant] = []
        self._customers: list[Customer] = []

    # ---- the first load

    def fill(self, orders: int) -> None:
        """A shop with so many orders, and more than twice as many lines; its clock shows the present afterwards."""
        self._locations = [self.shop.catalog.add_location(name) for name in ("Berlin", "Köln", "Zürich")]
        for number in range(max(LONG_ORDER, orders // 40)):
            self._add_product(number)
        self._add_gift_cards()
        for number in range(max(6, orders // 4)):
            self._add_customer(number)
        for number in range(orders):
            self.clock.advance(timedelta(seconds=self.random.choice((0, 0, 1, 600, 1_800))))
            self._treat(self.place(lines=LONG_ORDER if number % 400 == 17 else None))
        for number in range(max(1, orders // 400)):
            self._retire(number)
        self.clock.past = None

    def _add_product(self, number: int) -> None:
        catalog, random = self.shop.catalog, self.random
        product = catalog.add_product(f"Product {number}", description_html="<p>Größe &amp; Maß</p>")
        titles = ("Default Title",) if random.random() < 0.5 else ("Red", "Blue", "Grün")
        for title in titles:
            price = Decimal(random.randrange(300, 20_000)) / 100
            variant = catalog.add_variant(product, f"{number:04}-{title[:1]}", str(price), title=title)
            for location in random.sample(self._locations, random.randint(1, 3)):
                catalog.stock(variant, location, random.randrange(1_000))
            self._variants.append(variant)

    def _add_gift_cards(self) -> None:
        product = self.shop.catalog.add_product("Gift card", is_gift_card=True)
        self._gift_card = self.shop.catalog.add_variant(product, "CARD-25", "25.00")

    def _add_customer(self, number: int) -> None:
        name = {"first_name": f"Zoë {number}", "last_name": "Müller"} if number % 5 else {}
        email = f"buyer{number}@example.com" if number % 7 else None
        self._customers.append(self.shop.customers.add(email, **name))

    def place(self, lines: int | None = None) -> Order:
        """An order of a customer or a guest, with anything that an order can have."""
        random = self.random
        chosen = random.sample(self._variants, lines or random.randint(1, 4))
        cart = [self._line(variant) for variant in chosen]
        if random.random() < 0.05:
            cart.append(Line(None, random.randint(1, 3), Decimal(random.randrange(100, 5_000)) / 100))
        if random.random() < 0.03:
            cart.append(Line(self._gift_card))
        guest = random.random() < 0.25
        email = random.choice((None, f"Guest{random.randrange(50)}@example.com"))
        more: dict[str, Any] = {"email": email} if guest else {"customer": random.choice(self._customers)}
        order = self.shop.orders.place(
            *cart,
            discount=random.choice(_DISCOUNTS),
            shipping=random.choice((Decimal(0), Decimal("4.99"), Decimal("12.5"))),
            tip=Decimal("2.33") if random.random() < 0.05 else Decimal(0),
            tax=random.choice(_TAXES),
            buyer=random.choice(_BUYERS),
            gift_card=Decimal("1.11") if random.random() < 0.06 else Decimal(0),
            paid=random.random() > 0.08,
            test=random.random() < 0.02,
            **more,
        )
        self.placed.append(order)
        return order

    def _line(self, variant: ProductVariant) -> Line:
        discount = variant.price / 20 if self.random.random() < 0.1 else Decimal(0)
        return Line(variant, self.random.choice((1, 1, 1, 2, 3, 7)), discount=discount.quantize(Decimal("0.01")))

    # ---- what happens to an order

    def _treat(self, order: Order) -> None:
        """What happens to an order in its life."""
        treatments: dict[Callable[[Order], None], int] = {
            self.leave: 30,
            self.ship: 32,
            self._cancel: 3,
            self.edit: 7,
            self.refund: 8,
            self._refund_all: 3,
            self._ship_and_return: 8,
            self._edit_and_refund: 3,
            self._refund_twice: 3,
            self._capture: 3,
        }
        treat = self.random.choices([*treatments], [*treatments.values()])[0]
        self.clock.advance(timedelta(seconds=self.random.choice((0, 1, 900))))
        treat(order)

    def leave(self, order: Order) -> None:
        """A change that nobody outside of the shop cares for."""
        self.shop.orders.change(order, note="called back", tags=["vip"])

    def ship(self, order: Order) -> None:
        """One location ships what it has of the order; the others follow some other time."""
        for one in order.fulfillment_orders[:1]:
            if one.remaining and one.status == "OPEN":
                number = f"1Z{order.number}{len(order.fulfillments)}"
                self.shop.shipments.ship(one, company="UPS", number=number, url=f"https://ups.example/{number}")

    def _cancel(self, order: Order) -> None:
        self.shop.orders.cancel(order)

    def edit(self, order: Order) -> None:
        """A line is added, and units of others are removed."""
        removed = {str(line.sku): 1 for line in self._left(order)[:1] if line.unfulfilled_quantity}
        added = [self._line(variant) for variant in self.random.sample(self._variants, self.random.randint(0, 1))]
        self.shop.orders.edit(order, *added, removed=removed)

    def refund(self, order: Order) -> None:
        """Some units, or shipping, are paid back; sometimes not all of it."""
        random, left = self.random, self._left(order)
        if not left or order.display_financial_status not in {"PAID", "PARTIALLY_REFUNDED"}:
            return
        lines = {str(line.sku): random.randint(1, line.current_quantity) for line in left[: random.randint(1, 2)]}
        shipping = order.shipping_lines[0].current_discounted_price_set.shop_money.amount
        self.shop.orders.refund(
            order,
            lines,
            restock=random.choice((None, *self._locations)),
            shipping=shipping if random.random() < 0.3 else Decimal(0),
            less=Decimal("0.59") if random.random() < 0.2 else Decimal(0),
        )

    def _refund_all(self, order: Order) -> None:
        left = self._left(order)
        if order.display_financial_status == "PAID" and left:
            self.shop.orders.refund(order, {str(line.sku): line.current_quantity for line in left})
        self.shop.orders.cancel(order)

    def _ship_and_return(self, order: Order) -> None:
        self.ship(order)
        self.refund(order)

    def _edit_and_refund(self, order: Order) -> None:
        self.edit(order)
        self.refund(order)

    def _refund_twice(self, order: Order) -> None:
        self.refund(order)
        self.refund(order)

    def _capture(self, order: Order) -> None:
        if order.display_financial_status == "AUTHORIZED":
            self.shop.orders.capture(order)

    @staticmethod
    def _left(order: Order) -> list[LineItem]:
        """Lines with units that can be taken back, one for each SKU."""
        by_sku: dict[str, LineItem] = {}
        for line in order.line_items:
            if line.sku is not None:
                by_sku.setdefault(line.sku, line)
        return [line for line in by_sku.values() if line.current_quantity]

    def _retire(self, number: int) -> None:
        """A product is archived, a variant deleted, and a customer merged into another."""
        catalog = self.shop.catalog
        catalog.archive(self._variants[number * 3].product)
        catalog.delete_variant(self._variants.pop(number * 5 + 1))
        kept, merged = self._customers[number], self._customers.pop()
        self.shop.customers.merge(kept, merged)

    # ---- afterwards

    def change(self, share: float) -> tuple[set[str], set[str]]:
        """Change a share of all orders, and place some new ones.

        Returns:
            The ids of all orders that were touched, and of those of them that only have another note.
        """
        chosen = self.random.sample(self.placed, max(6, round(share * len(self.placed))))
        noted, touched = set[str](), set[str]()
        for number, order in enumerate(chosen):
            if number % 3 == 0:
                self.leave(order)
                noted.add(order.id)
            elif number % 3 == 1:
                self.ship(order)
                self.leave(order)
            else:
                self.refund(order)
                self.leave(order)
            touched.add(order.id)
        touched |= {self.place().id for _ in range(max(1, len(chosen) // 10))}
        return touched, noted
