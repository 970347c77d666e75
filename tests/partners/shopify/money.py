"""Amounts of the fake Shopify shop: exact, rounded to the minor unit, in the shop's currency and in the buyer's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

_MINOR_UNITS = {"JPY": 0, "KWD": 3}


def rounded(amount: Decimal, currency: str) -> Decimal:
    """*amount* with the decimals of *currency* (ISO 4217), half away from zero."""
    return amount.quantize(Decimal(1).scaleb(-_MINOR_UNITS.get(currency, 2)), ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class MoneyV2:
    amount: Decimal
    currency_code: str

    def __add__(self, other: MoneyV2) -> MoneyV2:
        return MoneyV2(self.amount + other.amount, self.currency_code)

    def __sub__(self, other: MoneyV2) -> MoneyV2:
        return MoneyV2(self.amount - other.amount, self.currency_code)

    def times(self, factor: Decimal | int) -> MoneyV2:
        return MoneyV2(rounded(self.amount * factor, self.currency_code), self.currency_code)


@dataclass(frozen=True, slots=True)
class MoneyBag:
    """The same amount in the shop's currency and in the one that the buyer saw.

    Each currency is calculated and rounded by itself, so sums are right in both, and no rate turns one into the other.
    """

    shop_money: MoneyV2
    presentment_money: MoneyV2

    def __add__(self, other: MoneyBag) -> MoneyBag:
        return MoneyBag(self.shop_money + other.shop_money, self.presentment_money + other.presentment_money)

    def __sub__(self, other: MoneyBag) -> MoneyBag:
        return MoneyBag(self.shop_money - other.shop_money, self.presentment_money - other.presentment_money)

    def times(self, factor: Decimal | int) -> MoneyBag:
        """This times *factor*, rounded."""
        return MoneyBag(self.shop_money.times(factor), self.presentment_money.times(factor))

    def off(self, price: MoneyBag) -> MoneyBag:
        """This as a discount on *price*: in no currency more than it, and in both all of it or not."""
        own, whole = self.presentment_money.amount, price.presentment_money.amount
        is_all = self.shop_money.amount == price.shop_money.amount
        taken = whole if is_all else min(own, whole)
        return MoneyBag(self.shop_money, MoneyV2(taken, self.presentment_money.currency_code))

    def shares(self, weights: Iterable[MoneyBag]) -> list[MoneyBag]:
        """This divided in proportion to *weights*; the last share takes what rounding leaves."""
        given = list(weights)
        whole = sum((one.shop_money.amount for one in given), Decimal(0))
        parts = [self.times(one.shop_money.amount / whole if whole else Decimal(0)) for one in given[:-1]]
        rest = self
        for part in parts:
            rest -= part
        return [*parts, rest] if given else []


@dataclass(frozen=True, slots=True)
class Currencies:
    """The shop's currency, and the buyer's with its rate."""

    shop: str
    presentment: str
    rate: Decimal = Decimal(1)

    def bag(self, amount: Decimal | int | str) -> MoneyBag:
        """*amount* of the shop's currency."""
        exact = Decimal(amount)
        return MoneyBag(
            MoneyV2(rounded(exact, self.shop), self.shop),
            MoneyV2(rounded(exact * self.rate, self.presentment), self.presentment),
        )

    def total(self, bags: Iterable[MoneyBag]) -> MoneyBag:
        result = self.bag(0)
        for bag in bags:
            result += bag
        return result
