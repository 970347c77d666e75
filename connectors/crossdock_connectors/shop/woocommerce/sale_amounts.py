"""WooCommerce's orders and refunds as sales. Field names are those of ``wc/v3``.

Amounts of lines exclude tax, even if prices include it, and may have more decimals than the currency.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal

from msgspec import Struct, structs

from crossdock import Record, Reference
from crossdock.values.json_access import JsonAccess
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.record_mapping_in_code import objects_in_list, objects_in_optional_list
from crossdock_connectors.shop.record_values_and_keys import product_reference, text_or_none
from crossdock_connectors.shop.sale_lines import Sale, SoldItem, smallest_currency_unit_or_error
from crossdock_connectors.shop.settings import ChargeKind
from crossdock_connectors.shop.woocommerce.settings import WooCommerceSettings

_NOTHING = Decimal(0)
_CURRENCY_ADVICE = (
    ", and the platform has no others; name one of the same worth in the setting currencies, as {GGP: GBP}"
)
_SUMS = ("total", "total_tax", "cart_tax", "discount_total", "discount_tax", "shipping_total", "shipping_tax")
_LINES = ("line_items", "shipping_lines", "fee_lines")
_REFUNDED = "_refunded_item_id"
_COARSER = tuple(map(Decimal, ("1", "0.1", "0.01")))


class AmountReader(Struct, frozen=True):
    """Reads amounts in the currency of one order, rounded to its minor unit.

    The shop rounds the order's own sums to *shown*, which may be more than a minor unit, as where prices in SEK have no
    decimals.
    """

    currency: str
    unit: Decimal
    shown: Decimal

    @classmethod
    def of_order(cls, order: JsonAccess, settings: WooCommerceSettings) -> AmountReader:
        named = order.at("/currency", str)
        currency = settings.currencies.get(named, named)
        unit = smallest_currency_unit_or_error(currency, order.place("/currency"), _CURRENCY_ADVICE)
        return cls(currency, unit, max(unit, _shop_rounding_unit(order)))

    def read_total(self, record: Record, pointer: str) -> Decimal:
        """Return a sum that was charged or paid back. A shop may have set more decimals than its currency has."""
        rounded = self.read_rounded_amount(record, pointer)
        if rounded != record.decimal(pointer):
            record.count("total rounded to the currency")
        return rounded

    def read_rounded_amount(self, record: JsonAccess, pointer: str) -> Decimal:
        return _rounded(record.decimal(pointer), self.unit)

    def sum(self, records: Iterable[JsonAccess], pointer: str) -> Decimal:
        return sum((self.read_rounded_amount(record, pointer) for record in records), _NOTHING)


def _shop_rounding_unit(order: JsonAccess) -> Decimal:
    """Return the unit to which the shop rounds sums: that of the total as it was sent, or one that all sums have, and
    not all lines.
    """
    total = order.decimal("/total", default=_NOTHING)
    sums = [order.decimal(f"/{name}", default=_NOTHING) for name in _SUMS]
    lines = [line.decimal("/total", default=_NOTHING) for kind in _LINES for line in order.each(f"/{kind}", default=())]
    for unit in _COARSER:
        is_sent = total == total.quantize(unit) and total.as_tuple().exponent == unit.as_tuple().exponent
        if is_sent or (not any(each % unit for each in sums) and any(each % unit for each in lines)):
            return unit
    return _NOTHING


def _largest_rounding_difference(lines: Sequence[JsonAccess], amounts: AmountReader) -> Decimal:
    """Return the largest difference of the lines from the total that comes from rounding.

    Each line is rounded to a minor unit here. If the shop rounds to more than that, it has rounded the lines or their
    sum: that is known of lines which it sent with their decimals, and may be any part of its unit for others.
    """
    unit, shown = amounts.unit, amounts.shown
    found = unit * len(lines)
    if shown <= unit:
        return found
    sent = [line.decimal("/total") for line in lines]
    exact = [each for each in sent if int(each.as_tuple().exponent) < int(shown.as_tuple().exponent)]
    residues = sum((_rounded(each, shown) - each for each in exact), _NOTHING)
    return found + abs(residues) + shown / 2 + shown * (len(sent) - len(exact))


def _rounded(amount: Decimal, unit: Decimal) -> Decimal:
    return amount.quantize(unit, ROUND_HALF_UP)


def sale_before_refunds(order: Record, amounts: AmountReader, settings: WooCommerceSettings) -> Sale:
    """Return what the buyer was charged. WooCommerce rounds lines or sums, so each line may be off by a minor unit."""
    lines, shipping, fees = (order.each(f"/{kind}") for kind in ("line_items", "shipping_lines", "fee_lines"))
    order.at("/refunds", list)
    items = tuple(_sold_item(line, amounts.read_rounded_amount(line, "/subtotal"), settings) for line in lines)
    charges: dict[ChargeKind, Decimal] = {
        "discount": amounts.sum(lines, "/total") - amounts.sum(lines, "/subtotal"),
        "shipping": amounts.sum(shipping, "/total"),
        "fee": amounts.sum(fees, "/total"),
        "tax": amounts.read_rounded_amount(order, "/total_tax"),
        "custom_item": sum((item.amount for item in items if not item.quantity), _NOTHING),
    }
    rounding = _largest_rounding_difference([*lines, *shipping, *fees], amounts)
    sale = Sale(amounts.currency, _items_with_units(items), amounts.read_total(order, "/total"), charges, rounding)
    spent = amounts.sum(order.each("/gift_cards", default=()), "/amount")
    if (
        spent and abs(sale.total_minus_items_and_charges + spent) <= rounding
    ):  # the extension Gift Cards takes them off the total
        return structs.replace(sale, charges={**charges, "gift_card": -spent})
    return sale


def sale_after_refunds(order: Record, amounts: AmountReader, settings: WooCommerceSettings) -> Sale:
    """Return what is left of an order: without units that came back, which nobody ships, and without their money."""
    sale, refunds = sale_before_refunds(order, amounts, settings), order.each("/refunds")
    if not refunds:
        return sale
    returned, items, worth = returned_units(order), list[SoldItem](), _NOTHING
    if returned[None]:
        order.count("refunded units without a line")
    for line in order.each("/line_items"):
        whole = _sold_item(line, amounts.read_rounded_amount(line, "/subtotal"), settings)
        if not whole.quantity:
            continue  # its amount is a charge
        left = max(whole.quantity - returned[line.at("/id", int)], _NOTHING)
        items.append(
            structs.replace(whole, quantity=left, amount=_rounded(whole.amount * left / whole.quantity, amounts.unit))
        )
        worth += whole.amount - items[-1].amount
    back = amounts.sum(refunds, "/amount")
    return Sale(sale.currency, tuple(items), sale.total - back, {**sale.charges, "refund": worth - back}, sale.rounding)


def returned_units(order: Record) -> defaultdict[int | None, Decimal]:
    """Return the units that refunds took back of each line of an order, by the line's id; None for those of no line."""
    lines, found = order.each("/line_items"), defaultdict[int | None, Decimal](Decimal)
    for refund in order.each("/refunds"):
        for item in objects_in_list(refund, "/line_items"):
            found[_id_of_refunded_line(item, lines)] += abs(item.decimal("/quantity"))
    return found


def _id_of_refunded_line(item: JsonAccess, lines: Iterable[JsonAccess]) -> int | None:
    """Return the line that the metadata of a refunded item names; if a plugin wrote none, the first of its product."""
    meta_data = item.at("/meta_data", list, default=())
    if named := [
        str(value_at_path_or_missing(each, "value"))
        for each in meta_data
        if value_at_path_or_missing(each, "key") == _REFUNDED
    ]:
        same = (line for line in lines if named == [str(line.at("/id", int))])
    else:
        same = (line for line in lines if _product_and_variation_ids(line) == _product_and_variation_ids(item))
    found = next(same, None)
    return None if found is None else found.at("/id", int)


def _product_and_variation_ids(line: JsonAccess) -> tuple[int, int]:
    return line.at("/product_id", int, default=0), line.at("/variation_id", int, default=0)


def sale_with_refunds_as_charge(order: Record, amounts: AmountReader, settings: WooCommerceSettings) -> Sale:
    sale, back = sale_before_refunds(order, amounts, settings), amounts.sum(order.each("/refunds"), "/amount")
    return Sale(sale.currency, sale.items, sale.total - back, {**sale.charges, "refund": -back}, sale.rounding)


def sale_of_refund(refund: Record, amounts: AmountReader, settings: WooCommerceSettings) -> Sale:
    """Return a refund as a negative sale: returned units, and the part of its amount that its lines do not explain."""
    lines = objects_in_list(refund, "/line_items")
    shipping, fees = (objects_in_optional_list(refund, kind) for kind in ("shipping_lines", "fee_lines"))
    items = _items_with_units(
        [_sold_item(line, amounts.read_rounded_amount(line, "/total"), settings) for line in lines]
    )
    total = -amounts.read_total(refund, "/amount")
    charges: dict[ChargeKind, Decimal] = {
        "shipping": amounts.sum(shipping, "/total"),
        "fee": amounts.sum(fees, "/total"),
        "tax": amounts.sum((*lines, *shipping, *fees), "/total_tax"),
    }
    rest = total - sum((item.amount for item in items), _NOTHING) - sum(charges.values())
    return Sale(amounts.currency, items, total, {**charges, "refund": rest})


def _sold_item(line: JsonAccess, amount: Decimal, settings: WooCommerceSettings) -> SoldItem:
    return SoldItem(_product_of_line(line, settings), line.decimal("/quantity"), amount)


def _items_with_units(items: Sequence[SoldItem]) -> tuple[SoldItem, ...]:
    """Remove amounts for zero units, which a merchant may enter."""
    return tuple(item for item in items if item.quantity or not item.amount)


def _product_of_line(line: JsonAccess, settings: WooCommerceSettings) -> Reference | None:
    """Return the product of a line; None if it never had one, or was deleted: WooCommerce then has null for its SKU."""
    product, variation = _product_and_variation_ids(line)
    number = variation or product
    if not number or line.at("/sku", str, default=None) is None:
        return None
    return product_reference(settings, str(number), text_or_none(line, "/sku"), line.place("/sku"))
