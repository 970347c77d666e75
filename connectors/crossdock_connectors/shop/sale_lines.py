"""A sale or refund as lines of an order or invoice: items and charges, whose sum is the shop's own total."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import ROUND_DOWN, Decimal

from msgspec import Struct, field

from crossdock import LineDraft, Record, RecordError, Reference
from crossdock.values.field_types import MAX_DIGITS_AFTER_POINT, minor_unit_digits_or_value_error
from crossdock_connectors.shop.settings import ChargeKind, ShopSettings


class SoldItem(Struct, frozen=True):
    """Units of one product. An item without one, and a gift card, become charges of this *kind*.

    *quantity* is negative for returned units. *amount* is that of all units together, before charges, with its sign.
    """

    product: Reference | None
    quantity: Decimal
    amount: Decimal
    kind: ChargeKind = "custom_item"


class Sale(Struct, frozen=True):
    """An order, an invoice or a credit note. *total* is the sum that the shop shows.

    *rounding* is the largest difference of items and charges from it, because the shop rounds each of them.
    """

    currency: str
    items: tuple[SoldItem, ...]
    total: Decimal
    charges: Mapping[ChargeKind, Decimal] = field(default_factory=dict)
    rounding: Decimal = Decimal(0)

    @property
    def total_minus_items_and_charges(self) -> Decimal:
        return self.total - sum((item.amount for item in self.items), Decimal(0)) - sum(self.charges.values())


def lines_of_sale(record: Record, sale: Sale, pointer: str, settings: ShopSettings) -> tuple[LineDraft, ...]:
    """Return lines whose sum is the total, or raise RecordError.

    The amount of an item without units is a charge. An item with neither is left out, unless nothing else is there.
    """
    charges = dict(sale.charges)
    if difference := sale.total_minus_items_and_charges:
        kind: ChargeKind = "rounding" if abs(difference) <= sale.rounding else "difference"
        if kind == "difference" and settings.differences == "reject":
            found = f"items and charges add up to {sale.total - difference} {sale.currency}"
            message = f"is {sale.total}, but {found}; differences: line makes a line of {difference}"
            raise RecordError("bad_value", message, pointer=pointer)
        record.count(f"{kind} in a line of its own")
        charges[kind] = charges.get(kind, Decimal(0)) + difference
    for item in sale.items:
        if item.amount and not item.quantity:
            charges[item.kind] = charges.get(item.kind, Decimal(0)) + item.amount
    lines = [
        line
        for item in sale.items
        if item.quantity
        for line in lines_with_exact_unit_prices(
            item.product or charge_product_reference(item.kind), item.quantity, item.amount, sale.currency
        )
    ]
    sign = Decimal(1 if sale.total >= 0 else -1)
    lines += [
        LineDraft(product_id=charge_product_reference(kind), quantity=sign, unit_price=sign * amount)
        for kind, amount in charges.items()
        if amount
    ]
    return tuple(lines) or tuple(
        LineDraft(
            product_id=item.product or charge_product_reference(item.kind),
            quantity=item.quantity,
            unit_price=Decimal(0),
        )
        for item in sale.items
    )


def charge_product_reference(kind: ChargeKind) -> Reference:
    return Reference("product", charge_product_key(kind))


def charge_product_key(kind: ChargeKind) -> str:
    return f"charge-{kind}"


def smallest_currency_unit_or_error(currency: str, pointer: str, advice: str = "") -> Decimal:
    try:
        return smallest_currency_unit(currency)
    except ValueError:
        raise RecordError("bad_value", f"is no currency of ISO 4217{advice}", pointer=pointer) from None


def smallest_currency_unit(currency: str) -> Decimal:
    return Decimal(1).scaleb(-(minor_unit_digits_or_value_error(currency) or 0))


def smallest_unit_price_step(currency: str | None) -> Decimal:
    """Return the least difference of two unit prices: a whole unit of a currency without decimals."""
    has_no_parts = currency is not None and minor_unit_digits_or_value_error(currency) == 0
    return Decimal(1) if has_no_parts else Decimal(1).scaleb(-MAX_DIGITS_AFTER_POINT)


def lines_with_exact_unit_prices(
    product: Reference, quantity: Decimal, amount: Decimal, currency: str
) -> Iterator[LineDraft]:
    """Yield lines of *quantity* units whose sum is *amount*: one if a unit price exists, else two.

    Three units for 10.00 are two for 3.33 and one for 3.34. Both numbers are negative for returned units.
    """
    price = amount / quantity
    if price == price.quantize(smallest_unit_price_step(currency)):
        yield LineDraft(product_id=product, quantity=quantity, unit_price=price)
        return
    unit, sign = smallest_currency_unit(currency), Decimal(1).copy_sign(quantity)
    lower = price.quantize(unit, ROUND_DOWN)
    rest = abs(amount - lower * quantity) / unit  # this many units cost one minor unit more
    step = unit.copy_sign(price)
    for units, each in ((abs(quantity) - rest, lower), (rest, lower + step)):
        if units:
            yield LineDraft(product_id=product, quantity=sign * units, unit_price=each)
