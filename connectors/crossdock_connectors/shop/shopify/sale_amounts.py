"""Shopify's orders and refunds as sales. Field names are those of the Admin schema.

All amounts of an order are in one currency: the shop's, or the buyer's. Shopify rounds in each separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Literal

from msgspec import structs

from crossdock import RecordError, Reference
from crossdock.values.json_access import JsonAccess
from crossdock_connectors.shop.record_values_and_keys import product_reference, text_or_none
from crossdock_connectors.shop.sale_lines import Sale, SoldItem, smallest_currency_unit_or_error
from crossdock_connectors.shop.settings import ChargeKind
from crossdock_connectors.shop.shopify.invoicing_rules import is_refund_settled, raise_if_transaction_lacks_status
from crossdock_connectors.shop.shopify.requests_and_complete_lists import number_in_gid_or_empty
from crossdock_connectors.shop.shopify.settings import ShopifySettings

Currency = Literal["shop", "presentment"]
_NOTHING = Decimal(0)
_TIP = "Tip"
_OF_LINES: tuple[ChargeKind, ...] = ("shipping", "tax", "duty")
"""The charges of a refund that its lines explain."""


class AmountReader:
    """Reads the amounts of one order in the chosen currency. A missing one, or another currency, is a RecordError."""

    def __init__(self, order: JsonAccess, currency: Currency) -> None:
        self._money = f"{currency}Money"
        pointer = "/currencyCode" if currency == "shop" else "/presentmentCurrencyCode"
        self.currency = order.at(pointer, str)
        self.unit = smallest_currency_unit_or_error(self.currency, pointer)

    def read_amount(self, record: JsonAccess, pointer: str) -> Decimal:
        place = f"{pointer}/{self._money}"
        if record.at(f"{place}/currencyCode", str) != self.currency:
            message = f"is not {self.currency}, the currency of the order"
            raise RecordError("bad_value", message, pointer=f"{place}/currencyCode")
        return record.decimal(f"{place}/amount")

    def read_amount_or_zero(self, record: JsonAccess, pointer: str) -> Decimal:
        """Do the same as `read_amount`, but return zero for null."""
        return _NOTHING if record.at(pointer, dict, default=None) is None else self.read_amount(record, pointer)

    def sum(self, records: Iterable[JsonAccess], pointer: str) -> Decimal:
        return sum((self.read_amount(record, pointer) for record in records), _NOTHING)


def sale_after_edits_and_refunds(order: JsonAccess, amounts: AmountReader, settings: ShopifySettings) -> Sale:
    """Return the present order, after edits and refunds."""
    quantities = {line.at("/id", str): line.at("/currentQuantity", int) for line in order.each("/lineItems")}
    items = _sold_items(order, quantities, amounts, settings)
    charges: dict[ChargeKind, Decimal] = {
        "discount": _discount_from_subtotal_or_error(order, quantities, amounts, items, "/currentSubtotalPriceSet"),
        "shipping": amounts.read_amount(order, "/currentShippingPriceSet"),
        "tax": _added_tax(order, amounts, "/currentTotalTaxSet"),
        "tip": _tip_without_line(order, amounts),
        "duty": amounts.read_amount_or_zero(order, "/currentTotalDutiesSet"),
        "fee": amounts.read_amount_or_zero(order, "/currentTotalAdditionalFeesSet"),
    }
    return Sale(amounts.currency, items, amounts.read_amount(order, "/currentTotalPriceSet"), charges)


def sale_as_charged_before_refunds(order: JsonAccess, amounts: AmountReader, settings: ShopifySettings) -> Sale:
    """Return what the buyer was charged: the order after edits, but before refunds.

    What was paid for units that were removed, and was paid back by a refund without lines, is a charge: the credit note
    of the refund takes it off again. What has not been paid back yet is on no invoice. What was returned and never
    paid, as after a deposit, is taken off: no refund pays it back.
    """
    refunds = [refund for refund in order.each("/refunds") if not _is_removal_of_unpaid_units(refund, amounts)]
    refunded: Counter[str] = Counter()
    for refund in refunds:
        for item in refund.each("/refundLineItems/nodes"):
            refunded[item.at("/lineItem/id", str)] += item.at("/quantity", int)
    quantities = {
        line.at("/id", str): line.at("/currentQuantity", int) + refunded[line.at("/id", str)]
        for line in order.each("/lineItems")
    }
    is_whole = all(line.at("/quantity", int) == quantities[line.at("/id", str)] for line in order.each("/lineItems"))
    back = [sale_of_refund(refund, order, amounts, settings) for refund in refunds]
    settled = [sold for refund, sold in zip(refunds, back, strict=True) if is_refund_settled(refund.at("", dict))]
    if is_whole and not order.at("/edited", bool):
        sale = _sale_as_placed(order, quantities, back, amounts, settings)
        charge = -min(
            _unpaid_amount(order, amounts),
            sum((max(each.total_minus_items_and_charges, _NOTHING) for each in settled), _NOTHING),
        )
    else:
        sale = (
            _sale_as_placed(order, quantities, back, amounts, settings)
            if is_whole
            else _sale_before_refunds(order, quantities, back, amounts, settings)
        )
        overpaid = amounts.read_amount(order, "/totalReceivedSet") - sale.total
        charge = max(min(overpaid, sum(map(_amount_refunded_beyond_lines, settled), _NOTHING)), _NOTHING)
    return structs.replace(sale, total=sale.total + charge, charges={**sale.charges, "refund": charge})


def _unpaid_amount(order: JsonAccess, amounts: AmountReader) -> Decimal:
    """Return what of an order was never paid, as after a deposit."""
    unpaid = amounts.read_amount(order, "/totalPriceSet") - amounts.read_amount(order, "/totalReceivedSet")
    return max(unpaid, _NOTHING)


def _amount_refunded_beyond_lines(refund: Sale) -> Decimal:
    """Return what *refund* has paid back beyond its units, shipping, tax and duties."""
    lines = _sum_of_items(refund.items) + sum(refund.charges[kind] for kind in _OF_LINES)
    return max(lines - refund.total, _NOTHING)


def _sale_before_refunds(
    order: JsonAccess,
    quantities: dict[str, int],
    back: Iterable[Sale],
    amounts: AmountReader,
    settings: ShopifySettings,
) -> Sale:
    now, items = (
        sale_after_edits_and_refunds(order, amounts, settings),
        _sold_items(order, quantities, amounts, settings),
    )
    charges: dict[ChargeKind, Decimal] = dict(now.charges)
    charges["discount"] = -_sum_of_items(items) + _sum_of_items(now.items) + now.charges["discount"]
    total = now.total
    for each in back:
        charges["discount"] -= _sum_of_items(each.items)
        total -= _sum_of_items(each.items)
        for kind in _OF_LINES:
            charges[kind] -= each.charges[kind]
            total -= each.charges[kind]
    return Sale(amounts.currency, items, total, charges)


def _sale_as_placed(
    order: JsonAccess,
    quantities: dict[str, int],
    back: Iterable[Sale],
    amounts: AmountReader,
    settings: ShopifySettings,
) -> Sale:
    items = _sold_items(order, quantities, amounts, settings)
    charges: dict[ChargeKind, Decimal] = {
        "discount": _discount_from_subtotal_or_error(order, quantities, amounts, items, "/subtotalPriceSet"),
        "shipping": amounts.read_amount(order, "/totalShippingPriceSet"),
        "tax": _added_tax(order, amounts, "/totalTaxSet"),
        "tip": _tip_without_line(order, amounts),
        "duty": amounts.read_amount_or_zero(order, "/originalTotalDutiesSet"),
        "fee": amounts.read_amount_or_zero(order, "/originalTotalAdditionalFeesSet"),
    }
    sale = Sale(amounts.currency, items, amounts.read_amount(order, "/totalPriceSet"), charges)
    # totalShippingPriceSet is the price before discounts, unlike the current one
    discounted = amounts.read_amount(order, "/currentShippingPriceSet") - sum(each.charges["shipping"] for each in back)
    if sale.total_minus_items_and_charges and sale.total_minus_items_and_charges == discounted - charges["shipping"]:
        return structs.replace(sale, charges={**charges, "shipping": discounted})
    return sale


def sale_for_credit_note(
    refund: JsonAccess, order: JsonAccess, amounts: AmountReader, settings: ShopifySettings
) -> Sale:
    """Return a refund as `sale_of_refund` does, with a charge for returned units that were never paid."""
    sale = sale_of_refund(refund, order, amounts, settings)
    if order.at("/edited", bool) or not _NOTHING < sale.total_minus_items_and_charges <= _unpaid_amount(order, amounts):
        return sale
    return structs.replace(
        sale, charges={**sale.charges, "refund": sale.charges["refund"] + sale.total_minus_items_and_charges}
    )


def sale_of_refund(refund: JsonAccess, order: JsonAccess, amounts: AmountReader, settings: ShopifySettings) -> Sale:
    """Return a refund as a negative sale: returned units minus their discounts, shipping and tax.

    An adjustment is the difference between these and what was paid back. As in Shopify's REST API, it is positive for
    money that was kept back, and negative for money beyond the lines; its tax is added to its amount.
    """
    lists = {
        name: _list_or_error_if_cut(refund, name)
        for name in ("refundLineItems", "refundShippingLines", "orderAdjustments")
    }
    raise_if_transaction_lacks_status(refund)
    lines, shipping, adjustments = lists.values()
    items = tuple(
        SoldItem(
            product_of_line(line.part("/lineItem"), settings),
            -Decimal(line.at("/quantity", int)),
            -amounts.read_amount(line, "/subtotalSet"),
            _charge_kind_without_product(line.part("/lineItem")),
        )
        for line in lines
    )
    charges: dict[ChargeKind, Decimal] = {
        "shipping": -amounts.sum(shipping, "/subtotalAmountSet"),
        "tax": _NOTHING,
        "duty": -amounts.sum(duties := refund.each("/duties", default=()), "/amountSet"),
        "refund": amounts.sum(adjustments, "/amountSet") + amounts.sum(adjustments, "/taxAmountSet"),
    }
    if not order.at("/taxesIncluded", bool):
        charges["tax"] -= amounts.sum(lines, "/totalTaxSet") + amounts.sum(shipping, "/taxAmountSet")
    total = -amounts.read_amount(refund, "/totalRefundedSet")
    if not any((*lists.values(), duties)):
        charges["refund"] = total
    return Sale(amounts.currency, items, total, charges)


def _is_removal_of_unpaid_units(refund: JsonAccess, amounts: AmountReader) -> bool:
    """Return whether *refund* only removes unpaid units with a value.

    If paid units are returned and the merchant keeps all of the money, the refund has an adjustment. If the money has
    not gone back yet, or could not, it has a transaction.
    """
    if amounts.read_amount(refund, "/totalRefundedSet") or _list_or_error_if_cut(refund, "orderAdjustments"):
        return False
    if refund.each("/transactions/nodes"):
        return False
    return amounts.sum(_list_or_error_if_cut(refund, "refundLineItems"), "/subtotalSet") != 0


def product_of_line(line: JsonAccess, settings: ShopifySettings) -> Reference | None:
    """Return the product of a line, by SKU if it was deleted; None for a gift card and an item without a variant."""
    if line.at("/isGiftCard", bool):
        return None
    if line.at("/variant", dict, default=None) is not None:
        number, sku = number_in_gid_or_empty(line.at("/variant/id", str)), text_or_none(line, "/variant/sku")
        return product_reference(settings, number, sku, line.place("/variant/sku"))
    sku = text_or_none(line, "/sku")
    if sku is None or (settings.product_namespace is None and settings.product_key == "id"):
        return None
    return product_reference(settings, "", sku, line.place("/sku"))


def _sold_items(
    order: JsonAccess, quantities: dict[str, int], amounts: AmountReader, settings: ShopifySettings
) -> tuple[SoldItem, ...]:
    return tuple(
        _sold_item(line, quantities[line.at("/id", str)], amounts, settings) for line in order.each("/lineItems")
    )


def _sold_item(line: JsonAccess, units: int, amounts: AmountReader, settings: ShopifySettings) -> SoldItem:
    quantity, price = Decimal(units), amounts.read_amount(line, "/originalUnitPriceSet")
    return SoldItem(product_of_line(line, settings), quantity, quantity * price, _charge_kind_without_product(line))


def _charge_kind_without_product(line: JsonAccess) -> ChargeKind:
    return "gift_card" if line.at("/isGiftCard", bool) else "tip" if _is_tip(line) else "custom_item"


def _is_tip(line: JsonAccess) -> bool:
    """Return whether a line is a tip. Shopify shows it by its name alone (github.com/microsoft/BCApps/issues/6811)."""
    return line.at("/name", str) == _TIP and line.at("/variant", dict, default=None) is None


def _tip_without_line(order: JsonAccess, amounts: AmountReader) -> Decimal:
    lines = [line for line in order.each("/lineItems") if _is_tip(line)]
    in_lines = sum(line.at("/quantity", int) * amounts.read_amount(line, "/originalUnitPriceSet") for line in lines)
    return max(amounts.read_amount(order, "/totalTipReceivedSet") - in_lines, _NOTHING)


def _sum_of_items(items: Iterable[SoldItem]) -> Decimal:
    return sum((item.amount for item in items), _NOTHING)


def _added_tax(order: JsonAccess, amounts: AmountReader, pointer: str) -> Decimal:
    """Return the tax that is added to the prices; zero if they include it."""
    return _NOTHING if order.at("/taxesIncluded", bool) else amounts.read_amount(order, pointer)


def _discount_from_subtotal_or_error(
    order: JsonAccess, quantities: dict[str, int], amounts: AmountReader, items: tuple[SoldItem, ...], pointer: str
) -> Decimal:
    """Return the discount that the subtotal means, which may be without tips, after a comparison with those of lines.

    The share of a line with some units left may be rounded.
    """
    expected, tolerance = _NOTHING, _NOTHING
    for line in order.each("/lineItems"):
        whole, left = line.at("/quantity", int), quantities[line.at("/id", str)]
        own = amounts.sum(line.each("/discountAllocations"), "/allocatedAmountSet")
        expected += own * left / whole if whole else _NOTHING
        tolerance += amounts.unit if own and left not in {0, whole} else _NOTHING
    discount = _sum_of_items(items) - amounts.read_amount(order, pointer)
    for found in (discount, discount - _sum_of_items(item for item in items if item.kind == "tip")):
        if abs(found - expected) <= tolerance:
            return -found
    message = f"means a discount of {discount}, but those of the lines are {expected} {amounts.currency}"
    raise RecordError("bad_value", message, pointer="/subtotalPriceSet")


def _list_or_error_if_cut(refund: JsonAccess, name: str) -> list[JsonAccess]:
    if refund.at(f"/{name}/pageInfo/hasNextPage", bool):
        raise RecordError("bad_value", "has more elements than are read", pointer=f"/refunds/{name}")
    return list(refund.each(f"/{name}/nodes"))
