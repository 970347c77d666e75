"""Orders that are placed, edited and refunded at random in fake shops: the books equal the shop after each change.

The books are kept as the engine keeps them: the first draft of an invoice or credit note that is due is delivered, and
is final. One that reads differently later, or cannot be mapped, is an open item. What is expected comes from the
payments that the fake shop holds, and from nothing that the connector has read.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any
from unittest import mock

from tests.partners.partner_transport import transport
from tests.partners.shopify.order_lines import Discount, Line, Tax
from tests.partners.shopify.orders import Order
from tests.partners.shopify.payments import Refund
from tests.partners.shopify.reading import read_stream
from tests.partners.shopify.site import Site
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_order_views import order_view
from tests.partners.woocommerce.shop_orders import Order as WooOrder
from tests.partners.woocommerce.shop_settings import ShopSettings

from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.runs.stream_trial import Trial
from crossdock.testing import context
from crossdock.testing.connector_context_and_reading import read
from crossdock.values.field_types import minor_unit_digits_or_value_error

ROUNDS = 4
AT_ONCE = 8  # orders of one shop
_NOTHING = Decimal(0)
_KEYS = {"CONSUMER_KEY": "ck_fake", "CONSUMER_SECRET": "cs_fake"}
_CHANGED = "changed_after_delivery"


def total_of(draft: Mapping[str, Any]) -> Decimal:
    return sum((line["quantity"] * line["unitPrice"] for line in draft["items"]), _NOTHING)


def unit_of(currency: str) -> Decimal:
    return Decimal(1).scaleb(-(minor_unit_digits_or_value_error(currency) or 0))


@dataclass
class Books:
    """What was delivered of one shop, and the open items, by key."""

    delivered: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    open: dict[str, str] = field(default_factory=dict)

    def take(self, trial: Trial) -> None:
        assert trial.error is None, trial.error
        for tried in trial.records:
            key = tried.record.key
            self.open.pop(key, None)
            if tried.members is None:
                self.open[key] = str(tried.problem)
            elif self.delivered.setdefault(key, dict(tried.members)) != tried.members:
                self.open[key] = _CHANGED

    def sum(self, keys: Iterator[str]) -> Decimal:
        return sum((total_of(self.delivered[key]) for key in keys if key in self.delivered), _NOTHING)


# ---- Shopify


class ShopifyTrial:
    """One Shopify shop in *currency*; its orders are in the shop's currency, and in those of the buyers."""

    def __init__(self, random: Random, currency: str, shown: str) -> None:
        self.random, self.currency, self.shown = random, currency, shown
        self.site, self.books = Site(currency=currency), Books()
        self.orders: list[Order] = []
        self.edited: set[Order] = set()
        self.pending: list[Refund] = []
        self.happened: Counter[str] = Counter()
        self._gift = self.site.variant("GIFT", "0", 99_999)

    def _amount(self, most: int) -> Decimal:
        return self.random.randrange(1, most) * unit_of(self.currency)

    def place(self) -> None:
        random = self.random
        lines = [self._line(number) for number in range(random.randint(1, 3))]
        worth = sum((line.quantity * (line.price or 0) - line.discount for line in lines), _NOTHING)
        small, shipping = min(self._amount(500), worth), random.choice((_NOTHING, self._amount(2_000)))
        order = self.site.shop.orders.place(
            *lines,
            *([Line(self._gift, 1)] if random.random() < 0.1 else []),
            discount=random.choice((None, None, Discount("code", "TEN", percentage=Decimal(10)))),
            shipping=shipping,
            shipping_discount=random.choice((_NOTHING, min(shipping, self._amount(2_000)))),
            tip=random.choice((_NOTHING, _NOTHING, self._amount(500))),
            tip_line=random.random() < 0.5,
            duties=random.choice((_NOTHING, self._amount(900))),
            tax=Tax(Decimal(random.choice(("0", "0.19", "0.081"))), included=random.random() < 0.5),
            buyer=random.choice(
                (None, ("USD", Decimal("1.0837")), ("JPY", Decimal("163.21")), ("KWD", Decimal("0.3329")))
            ),
            gift_card=random.choice((_NOTHING, _NOTHING, small)),
            paid=random.random() > 0.1,
            email="buyer@example.com",
        )
        self.orders.append(order)

    def _line(self, number: int) -> Line:
        price, quantity = self._amount(20_000), self.random.choice((1, 1, 2, 3, 7))
        sku = f"{len(self.orders)}-{number}"
        discount = min(self._amount(300), price) if self.random.random() < 0.2 else _NOTHING
        return Line(self.site.variant(sku, "1", 99_999), quantity, price, discount=discount)

    def change(self, order: Order) -> None:
        what = self.random.choice(("edit", "refund", "refund", "refund", "capture", "nothing"))
        is_paid = order.display_financial_status in {"PAID", "PARTIALLY_REFUNDED"}
        left = [line.sku or line.title for line in order.line_items if line.current_quantity]
        if what == "edit" and left:
            added = [self._line(100 + len(order.line_items))] if self.random.random() < 0.5 else []
            self.site.shop.orders.edit(order, *added, removed={left[0]: 1})
            self.edited.add(order)
        elif what == "capture" and order.display_financial_status == "AUTHORIZED":
            self.site.shop.orders.capture(order)
        elif what == "refund" and is_paid and left:
            self._refund(order, left)
        else:
            return
        self.happened[what] += 1

    def _refund(self, order: Order, left: list[str]) -> None:
        random, now = self.random, order.current_total_duties_set
        duties = now.shop_money.amount if now and random.random() < 0.3 else _NOTHING
        status = random.choice(("SUCCESS", "SUCCESS", "PENDING", "FAILURE"))
        refund = self.site.shop.orders.refund(
            order, {random.choice(left): 1} if random.random() < 0.8 else {}, duties=duties, status=status
        )
        if status == "PENDING":
            self.pending.append(refund)
        self.happened[f"{status.lower()} refund"] += 1
        self.happened["duties paid back"] += bool(duties)

    def settle(self) -> None:
        """Some payments arrive, or fail."""
        for refund in [each for each in self.pending if self.random.random() < 0.6]:
            self.pending.remove(refund)
            self.site.shop.orders.settle(refund, self.random.choice(("SUCCESS", "SUCCESS", "FAILURE")), quietly=True)
            self.happened["settled"] += 1

    def read(self) -> None:
        self.books.take(read_stream(self.site, "invoices", currency=self.shown))
        self._judge_orders(read_stream(self.site, "orders", currency=self.shown))

    def _money(self, bag: Any) -> Decimal:
        return Decimal((bag.shop_money if self.shown == "shop" else bag.presentment_money).amount)

    def _judge_orders(self, trial: Trial) -> None:
        found = {tried.record.key: tried for tried in trial.records}
        for order in self.orders:
            tried = found[str(order.legacy_resource_id)]
            assert tried.members is not None, f"{tried.record.key}: {tried.problem}"
            assert total_of(tried.members) == self._money(order.current_total_price_set)

    def judge(self) -> None:
        """Compare what was delivered of each order with what its buyer has paid and got back."""
        for order in self.orders:
            key = str(order.legacy_resource_id)
            notes = [f"credit-note-{refund.legacy_resource_id}" for refund in order.refunds]
            self._judge_notes(order)
            if key not in self.books.delivered:
                assert order.display_financial_status in {"AUTHORIZED", "PARTIALLY_PAID"} or key in self.books.open
                continue
            if order in self.edited:  # what was added may be unpaid, and what was removed is kept
                self.happened["open after an edit"] += key in self.books.open
                continue
            assert key not in self.books.open, self.books.open[key]
            paid = self._money(order.total_received_set) - self._money(order.total_refunded_set)
            assert self.books.sum(iter([key, *notes])) == paid, key
            self.happened["equal"] += 1

    def _judge_notes(self, order: Order) -> None:
        for refund in order.refunds:
            key, back = f"credit-note-{refund.legacy_resource_id}", self._money(refund.total_refunded_set)
            assert key not in self.books.open, self.books.open.get(key)
            assert (key in self.books.delivered) == (back != 0), key
            assert self.books.sum(iter([key])) == -back, key


def shopify_money(seed: int, orders: int) -> Counter[str]:
    """Try so many orders of Shopify shops; return what happened to them."""
    random, happened = Random(seed), Counter[str]()
    for number in range(-(-orders // AT_ONCE)):
        currency, shown = random.choice(("EUR", "JPY", "KWD")), random.choice(("shop", "presentment"))
        trial = ShopifyTrial(random, currency, shown)
        for _ in range(min(AT_ONCE, orders - number * AT_ONCE)):
            trial.place()
        for _ in range(ROUNDS):
            trial.read()
            trial.judge()
            trial.settle()
            for order in trial.orders:
                trial.change(order)
        happened += trial.happened
        happened[currency] += 1
    return happened


# ---- WooCommerce

_SHOPS = (("EUR", 2), ("SEK", 0), ("HUF", 0), ("JPY", 0), ("KWD", 3), ("EUR", 4), ("KWD", 2))
"""Currencies, and the decimals that the merchant chose."""


class WooTrial:
    """One WooCommerce shop."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.currency, self.decimals = random.choice(_SHOPS)
        taxes = random.choice((Decimal(0), Decimal(19), Decimal(25), Decimal("8.1")))
        self.shop = FakeShop(
            ShopSettings(
                currency=self.currency,
                decimals=self.decimals,
                prices_include_tax=random.random() < 0.5,
                tax_percent=taxes,
                coupons={"TEN": Decimal(10), "SEVEN": Decimal("7.5")},
            )
        )
        self.books, self.happened = Books(), Counter[str]()
        self.orders: list[WooOrder] = []
        self._products = [self.shop.catalog.add(f"P{number}", self._price(), sku=f"P{number}") for number in range(5)]

    def _price(self) -> str:
        return str(self.random.randrange(100, 20_000) * Decimal(1).scaleb(-self.decimals))

    def place(self) -> None:
        random = self.random
        chosen = [(each, random.choice((1, 2, 3, 7))) for each in random.sample(self._products, random.randint(1, 4))]
        shipping = {"method_id": "flat_rate", "method_title": "Parcel", "total": self._price()}
        more: dict[str, Any] = {}
        if random.random() < 0.5:
            more["shipping_lines"] = [shipping]
        if random.random() < 0.3:
            more["coupon_lines"] = [{"code": random.choice(("TEN", "SEVEN"))}]
        status = random.choice(("processing", "completed", "on-hold"))
        self.orders.append(self.shop.orders.place(*chosen, status=status, billing={"email": "a@example.com"}, **more))

    def change(self, order: WooOrder) -> None:
        rest = self._total(order) - sum((refund.amount for refund in order.refunds), _NOTHING)
        if order.paid is None or rest <= 0 or self.random.random() < 0.5:
            return
        unit = Decimal(1).scaleb(-self.decimals)
        amount = rest if self.random.random() < 0.2 else (rest * self.random.randrange(1, 9) / 10).quantize(unit)
        units = {order.lines[0].id: 1} if self.random.random() < 0.5 else {}
        self.shop.orders.refund(order, str(amount), units=units)
        self.happened["refund"] += 1

    def _total(self, order: WooOrder) -> Decimal:
        return Decimal(self._shown(order)["total"])

    def _shown(self, order: WooOrder) -> dict[str, Any]:
        return order_view(order, self.shop.settings)

    def read(self) -> None:
        connector = load_connector("woocommerce")
        given = {"base_url": "https://shop.example", "consumer_key": "env:CONSUMER_KEY"}
        with mock.patch.dict(os.environ, _KEYS):
            run = context(
                connector, {**given, "consumer_secret": "env:CONSUMER_SECRET"}, transport=transport(self.shop)
            )
            self.books.take(read(connector, run, "invoices"))

    def judge(self) -> None:
        unit = unit_of(self.currency)
        assert self.books.open == {}
        for order in self.orders:
            key = str(order.id)
            assert (key in self.books.delivered) == (order.paid is not None)
            if order.paid is None:
                continue
            notes = [f"credit-note-{refund.id}" for refund in order.refunds]
            back = sum((_rounded(refund.amount, unit) for refund in order.refunds), _NOTHING)
            found = self.books.sum(iter([key, *notes]))
            assert found == _rounded(self._total(order), unit) - back, key
            self.happened["equal"] += 1


def _rounded(amount: Decimal, unit: Decimal) -> Decimal:
    return (amount / unit).quantize(Decimal(1), "ROUND_HALF_UP") * unit


def woocommerce_money(seed: int, orders: int) -> Counter[str]:
    """Try so many orders of WooCommerce shops; return what happened to them."""
    random, happened = Random(seed), Counter[str]()
    for number in range(-(-orders // AT_ONCE)):
        trial = WooTrial(random)
        for _ in range(min(AT_ONCE, orders - number * AT_ONCE)):
            trial.place()
        for _ in range(ROUNDS):
            trial.read()
            trial.judge()
            for order in trial.orders:
                trial.change(order)
        happened += trial.happened
        happened[f"{trial.currency} {trial.decimals}"] += 1
    return happened
