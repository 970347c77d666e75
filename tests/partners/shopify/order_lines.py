"""Lines of an order: what was ordered, its discounts and taxes, and what is left of it after returns and edits."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from tests.partners.shopify.catalog import Product, ProductVariant
from tests.partners.shopify.money import Currencies, MoneyBag
from tests.partners.shopify.records import Record


@dataclass(frozen=True, slots=True)
class Line:
    """What a buyer puts into the cart. Without a variant it is a custom item.

    Attributes:
        price: Of one unit, in the shop's currency; by default that of the variant.
        discount: Taken off the whole line by the merchant, in the shop's currency.
    """

    variant: ProductVariant | None
    quantity: int = 1
    price: Decimal | None = None
    title: str = "Custom item"
    discount: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Discount:
    """A discount on the whole order: by a code, automatic, or by the merchant; *percentage* or *amount*."""

    kind: Literal["code", "automatic", "manual"]
    name: str
    percentage: Decimal | None = None
    amount: Decimal | None = None


@dataclass(frozen=True, slots=True)
class PricingPercentageValue:
    percentage: Decimal


@dataclass(eq=False, kw_only=True)
class DiscountApplication:
    """One of the three kinds; `Discount.kind` decides which type it shows."""

    kind: str
    name: str
    index: int
    value: Any
    level: Literal["order", "line"]
    target_type: str = "LINE_ITEM"
    allocation_method: str = "ACROSS"

    TYPES = {
        "code": "DiscountCodeApplication",
        "automatic": "AutomaticDiscountApplication",
        "manual": "ManualDiscountApplication",
    }

    @property
    def type_name(self) -> str:
        return self.TYPES[self.kind]

    @property
    def target_selection(self) -> str:
        return "ALL" if self.level == "order" else "EXPLICIT"

    @property
    def code(self) -> str:
        return self.name

    @property
    def title(self) -> str:
        return self.name

    @property
    def description(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DiscountAllocation:
    allocated_amount_set: MoneyBag
    discount_application: DiscountApplication


@dataclass(frozen=True, slots=True)
class TaxLine:
    title: str
    rate: Decimal
    price_set: MoneyBag
    channel_liable: bool = False

    @property
    def rate_percentage(self) -> Decimal:
        return self.rate * 100


@dataclass(frozen=True, slots=True)
class Tax:
    """How an order is taxed: a rate, and whether prices include it."""

    rate: Decimal
    included: bool
    title: str = "VAT"

    def on(self, price: MoneyBag) -> MoneyBag:
        return price.times(self.rate / (1 + self.rate) if self.included else self.rate)

    def lines(self, price: MoneyBag) -> list[TaxLine]:
        return [TaxLine(self.title, self.rate, self.on(price))] if self.rate else []


@dataclass(eq=False, kw_only=True)
class LineItem(Record):
    """One line.

    Attributes:
        fulfilled: Units that were shipped.
        removed: Units that were returned, refunded or removed by an edit.
        cancelled: Those of the removed ones that had not been shipped.
    """

    currencies: Currencies
    tax: Tax
    title: str
    quantity: int
    original_unit_price_set: MoneyBag
    product: Product | None = None
    variant: ProductVariant | None = None
    variant_title: str | None = None
    sku: str | None = None
    vendor: str | None = None
    is_gift_card: bool = False
    requires_shipping: bool = True
    discount_allocations: list[DiscountAllocation] = field(default_factory=list)
    custom_attributes: list[dict[str, str]] = field(default_factory=list)
    fulfilled: int = 0
    removed: int = 0
    cancelled: int = 0

    @property
    def name(self) -> str:
        return f"{self.title} - {self.variant_title}" if self.variant_title else self.title

    @property
    def current_quantity(self) -> int:
        return self.quantity - self.removed

    @property
    def refundable_quantity(self) -> int:
        return self.quantity - self.removed

    @property
    def unfulfilled_quantity(self) -> int:
        return self.quantity - self.cancelled - self.fulfilled

    @property
    def taxable(self) -> bool:
        return not self.is_gift_card

    @property
    def is_tip(self) -> bool:
        return self.variant is None and self.title == "Tip"

    @property
    def original_total_set(self) -> MoneyBag:
        return self.original_unit_price_set.times(self.quantity)

    @property
    def total_discount_set(self) -> MoneyBag:
        """Without discounts on the whole order."""
        own = (one for one in self.discount_allocations if one.discount_application.level == "line")
        return self.currencies.total(one.allocated_amount_set for one in own)

    @property
    def discounted_total_set(self) -> MoneyBag:
        """Without discounts on the whole order, to which those of codes belong here."""
        return self.original_total_set - self.total_discount_set

    @property
    def discounts(self) -> MoneyBag:
        return self.currencies.total(one.allocated_amount_set for one in self.discount_allocations)

    @property
    def price(self) -> MoneyBag:
        """Of all ordered units, after all discounts."""
        return self.original_total_set - self.discounts

    @property
    def discounted_unit_price_after_all_discounts_set(self) -> MoneyBag:
        return self.price.times(Decimal(1) / self.quantity)

    @property
    def tax_lines(self) -> list[TaxLine]:
        return self.tax.lines(self.price) if self.taxable else []

    @property
    def tax_total(self) -> MoneyBag:
        return self.currencies.total(one.price_set for one in self.tax_lines)

    def part(self, whole: MoneyBag, units: int) -> MoneyBag:
        """What *units* have of an amount of the whole line."""
        return whole.times(Decimal(units) / self.quantity)


@dataclass(eq=False, kw_only=True)
class ShippingLine(Record):
    currencies: Currencies
    tax: Tax
    title: str
    original_price_set: MoneyBag
    refunded: MoneyBag
    code: str | None = "STANDARD"
    source: str | None = "shopify"
    is_removed: bool = False
    custom: bool = False
    discount_allocations: list[DiscountAllocation] = field(default_factory=list)

    @property
    def discounted_price_set(self) -> MoneyBag:
        taken = self.currencies.total(one.allocated_amount_set for one in self.discount_allocations)
        return self.original_price_set - taken

    @property
    def current_discounted_price_set(self) -> MoneyBag:
        return self.discounted_price_set - self.refunded

    @property
    def tax_lines(self) -> list[TaxLine]:
        return self.tax.lines(self.discounted_price_set)

    @property
    def tax_total(self) -> MoneyBag:
        return self.currencies.total(one.price_set for one in self.tax_lines)
