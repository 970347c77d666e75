"""Lines whose sum is an amount, exact to the minor unit."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_DOWN, Decimal

from crossdock import LineDraft, Reference
from crossdock.values.field_types import minor_unit

_DECIMALS = 4  # decimals of a unit price on the platform


def unit_of(currency: str) -> Decimal:
    """Return the smallest amount of *currency*, such as 0.01."""
    return Decimal(1).scaleb(-(minor_unit(currency) or 0))


def lines_of_amount(product: Reference, quantity: Decimal, amount: Decimal, currency: str) -> Iterator[LineDraft]:
    """Yield lines of *quantity* units whose sum is *amount*: one if a unit price exists, else two.

    Three units for 10.00 are two for 3.33 and one for 3.34. A negative quantity stands for returned units, and the
    amount is then negative, too.

    Args:
        quantity: Not zero, and a whole number if the amount cannot be divided by it.
        amount: A multiple of the currency's minor unit.
    """
    price = amount / quantity
    if price == price.quantize(Decimal(1).scaleb(-_DECIMALS)) and _fits(price, currency):
        yield LineDraft(product_id=product, quantity=quantity, unit_price=price)
        return
    unit, sign = unit_of(currency), Decimal(1).copy_sign(quantity)
    lower = price.quantize(unit, ROUND_DOWN)
    rest = abs(amount - lower * quantity) / unit  # this many units cost one minor unit more
    step = unit.copy_sign(price)
    for units, each in ((abs(quantity) - rest, lower), (rest, lower + step)):
        if units:
            yield LineDraft(product_id=product, quantity=sign * units, unit_price=each)


def _fits(price: Decimal, currency: str) -> bool:
    return minor_unit(currency) != 0 or price == price.to_integral_value()
