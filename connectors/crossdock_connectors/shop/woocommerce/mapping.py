"""Mapping of WooCommerce's records to drafts of the platform. Field names are those of ``wc/v3``."""

from __future__ import annotations

from crossdock import (
    CustomerDraft,
    InventoryLotDraft,
    InvoiceDraft,
    OrderDraft,
    ProductDraft,
    Record,
    Reference,
    WarehouseBinDraft,
)
from crossdock.resources import ShippingAddress
from crossdock.values.json_access import JsonAccess
from crossdock_connectors.shop.addresses_and_texts import LONGEST_CODE, LONGEST_DESCRIPTION, AddressFields, TextReader
from crossdock_connectors.shop.record_values_and_keys import (
    customer_reference,
    platform_status_or_error,
    product_reference,
    rounded_product_price_or_none,
    text_or_none,
)
from crossdock_connectors.shop.sale_lines import lines_of_sale
from crossdock_connectors.shop.woocommerce import sale_amounts
from crossdock_connectors.shop.woocommerce.invoicing_rules import raise_if_payment_failed_after_arrival
from crossdock_connectors.shop.woocommerce.sale_amounts import AmountReader
from crossdock_connectors.shop.woocommerce.settings import WooCommerceSettings

STORE = "store"
"""The key of the only location: WooCommerce has no others."""
_ADDRESS = AddressFields("/address_1", "/address_2", "/city", ("/state",), "/postcode", "/country")
_PICKED_UP = frozenset({"local_pickup", "pickup_location"})
_ACTIVE = frozenset({"publish", "private"})  # a private variation is switched off; a private product is for the staff


def product(record: Record, settings: WooCommerceSettings) -> ProductDraft:
    texts = _text_reader(record, settings)
    parent = record.part("/parent") if record.at("/parent", dict, default=None) else None
    options = (
        [texts.read_cut_text(each, "/option") for each in record.each("/attributes", default=())] if parent else []
    )
    own = ", ".join(option for option in options if option)
    name, sku = (
        texts.read_cut_text(parent or record, "/name"),
        texts.read_text_unless_too_long(record, "/sku", LONGEST_CODE),
    )
    if sku is None:
        record.count("SKU assumed")
    if name is None:
        record.count("name assumed")
        name = f"Product {record.at('/id', int)}"
    shown = record.at("/status", str) == "publish" and (parent is None or parent.at("/status", str) in _ACTIVE)
    return ProductDraft(
        sku=sku or str(record.at("/id", int)),
        name=texts.cut_if_too_long(f"{name} - {own}") if own else name,
        description=texts.read_cut_text(record, "/description", LONGEST_DESCRIPTION),
        barcode=texts.read_text_unless_too_long(record, "/global_unique_id", LONGEST_CODE),
        unit_price=rounded_product_price_or_none(record, "/price", settings.price_currency)
        if settings.price_currency
        else None,
        currency=settings.price_currency,
        unit_of_measure=settings.unit_of_measure,
        active=shown,
    )


def customer(record: Record, settings: WooCommerceSettings) -> CustomerDraft:
    texts = _text_reader(record, settings)
    email = texts.read_text_unless_too_long(record, "/email") or texts.read_text_unless_too_long(
        record, "/billing/email"
    )
    addresses = {kind: texts.customer_address(f"/{kind}") for kind in ("billing", "shipping")}
    companies = {kind: texts.read_cut_text(record, f"/{kind}/company") for kind in addresses}
    name = _full_name(texts, record, "") or _full_name(texts, record, "/billing") or companies["billing"]
    if any(companies[kind] not in (None, name) and address is None for kind, address in addresses.items()):
        record.count("company left out")
    name = name or email or texts.read_cut_text(record, "/username")
    if name is None:
        record.count("name assumed")
    return CustomerDraft(
        name=name or f"Customer {record.key_parts[0]}",
        email=email,
        phone=texts.read_text_unless_too_long(record, "/billing/phone"),
        billing_address=addresses["billing"],
        shipping_address=addresses["shipping"],
    )


def order(record: Record, settings: WooCommerceSettings) -> OrderDraft:
    """Map what is left of an order."""
    amounts = AmountReader.of_order(record, settings)
    sale = sale_amounts.sale_after_refunds(record, amounts, settings)
    if _is_for_shipping_not_pickup(record) and any(item.product is None and item.quantity for item in sale.items):
        record.count("item to ship without a product")
    return OrderDraft(
        customer_id=_reference_to_customer(record, settings),
        currency=amounts.currency,
        items=lines_of_sale(record, sale, "/total", settings),
        placed_at=record.instant("/date_created_gmt", timezone="UTC"),
        status=_status(record, settings) if settings.progress == "shop" else None,
        shipping_address=_shipping_address(record, settings),
    )


def invoice(record: Record, settings: WooCommerceSettings) -> InvoiceDraft:
    raise_if_payment_failed_after_arrival(record, settings.invoices)
    amounts = AmountReader.of_order(record, settings)
    of_order = (
        sale_amounts.sale_before_refunds
        if settings.refunds == "credit_note"
        else sale_amounts.sale_with_refunds_as_charge
    )
    return InvoiceDraft(
        customer_id=_reference_to_customer(record, settings),
        currency=amounts.currency,
        items=lines_of_sale(record, of_order(record, amounts, settings), "/total", settings),
    )


def credit_note(record: Record, settings: WooCommerceSettings) -> InvoiceDraft:
    placed = record.part("/order")
    amounts = AmountReader.of_order(placed, settings)
    return InvoiceDraft(
        customer_id=_reference_to_customer(placed, settings),
        currency=amounts.currency,
        items=lines_of_sale(record, sale_amounts.sale_of_refund(record, amounts, settings), "/amount", settings),
    )


def bin_of_shop(settings: WooCommerceSettings) -> WarehouseBinDraft:
    return WarehouseBinDraft(code=settings.locations.get(STORE, STORE), warehouse=settings.warehouse)


def inventory_lot(record: Record, settings: WooCommerceSettings) -> InventoryLotDraft:
    """Map the stock of a variant, or of a product for all of its variations. It is negative if too much was sold."""
    return InventoryLotDraft(
        product_id=product_reference(settings, str(record.at("/id", int)), text_or_none(record, "/sku"), "/sku"),
        lot_number=settings.lot,
        bin_id=Reference("warehouse_bin", STORE),
        quantity=record.decimal("/stock_quantity"),
        unit_of_measure=settings.unit_of_measure,
    )


def _status(record: Record, settings: WooCommerceSettings) -> str:
    """Return the status of an order: one that was paid back as a whole, and never completed, is cancelled."""
    found = platform_status_or_error(record, "/status", settings.platform_status_by_shop_status)
    if record.at("/date_completed_gmt", str, default=None) is not None or not record.each("/refunds"):
        return found
    returned, lines = sale_amounts.returned_units(record), record.each("/line_items")
    are_returned = lines and all(line.decimal("/quantity") <= returned[line.at("/id", int)] for line in lines)
    is_paid_back = record.at("/status", str) == "refunded" and "refunded" not in settings.statuses
    return settings.platform_status_by_shop_status["cancelled"] if are_returned or is_paid_back else found


def _reference_to_customer(placed: JsonAccess, settings: WooCommerceSettings) -> Reference:
    account = placed.at("/customer_id", int)
    email, number = text_or_none(placed, "/billing/email"), str(placed.at("/id", int))
    return customer_reference(str(account) if account else None, settings.guests, email, number)


def _text_reader(record: Record, settings: WooCommerceSettings) -> TextReader:
    return TextReader(record, settings, _ADDRESS)


def _full_name(texts: TextReader, record: JsonAccess, pointer: str) -> str | None:
    names = [texts.read_cut_text(record, f"{pointer}/{each}") for each in ("first_name", "last_name")]
    return texts.cut_if_too_long(" ".join(name for name in names if name)) or None


def _shipping_address(record: Record, settings: WooCommerceSettings) -> ShippingAddress | None:
    texts = _text_reader(record, settings)
    named = (
        named
        for kind in ("/shipping", "/billing")
        for named in (_full_name(texts, record, kind), texts.read_cut_text(record, f"{kind}/company"))
    )
    phone = texts.read_text_unless_too_long(record, "/shipping/phone") or texts.read_text_unless_too_long(
        record, "/billing/phone"
    )
    address = texts.order_address("/shipping", next(filter(None, named), None), phone)
    if address is None and _is_for_shipping_not_pickup(record):
        record.count("order to ship without an address")
    return address


def _is_for_shipping_not_pickup(record: Record) -> bool:
    return any(text_or_none(line, "/method_id") not in _PICKED_UP for line in record.each("/shipping_lines"))
