"""Mapping of Shopify's records to drafts of the platform. Field names are those of the Admin schema."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from crossdock import (
    CustomerDraft,
    InventoryLotDraft,
    InvoiceDraft,
    OrderDraft,
    ProductDraft,
    Record,
    RecordError,
    Reference,
    WarehouseBinDraft,
)
from crossdock.resources import ShippingAddress, Tracking
from crossdock.values.json_access import JsonAccess, JsonElement
from crossdock_connectors.shop.addresses_and_texts import LONGEST_CODE, LONGEST_DESCRIPTION, AddressFields, TextReader
from crossdock_connectors.shop.record_values_and_keys import (
    customer_reference,
    platform_status_or_error,
    product_reference,
    rounded_product_price_or_none,
    text_or_none,
)
from crossdock_connectors.shop.sale_lines import lines_of_sale
from crossdock_connectors.shop.shopify import sale_amounts
from crossdock_connectors.shop.shopify.invoicing_rules import raise_if_payment_status_unknown
from crossdock_connectors.shop.shopify.requests_and_complete_lists import number_in_gid_or_empty
from crossdock_connectors.shop.shopify.sale_amounts import AmountReader
from crossdock_connectors.shop.shopify.settings import ShopifySettings

UNNAMED_CARRIER = "unknown"
_ADDRESS = AddressFields("/address1", "/address2", "/city", ("/provinceCode", "/province"), "/zip", "/countryCodeV2")
_NOTHING_SHIPPED = frozenset({"ON_HOLD", "OPEN", "SCHEDULED", "UNFULFILLED"})
_DEFAULT_TITLE = "Default Title"  # of the one variant of a product without options


def product(record: Record, settings: ShopifySettings) -> ProductDraft:
    texts, currency = _text_reader(record, settings), text_or_none(record, "/currency")
    sku = texts.read_text_unless_too_long(record, "/variant/sku", LONGEST_CODE)
    if record.at("/variant/price", str, default=None) is None:
        record.count("price left out")
    title, own = texts.read_cut_text(record, "/title"), texts.read_cut_text(record, "/variant/title")
    if sku is None:
        record.count("SKU assumed")
    if title is None:
        record.count("name assumed")
        title = f"Product {number_in_gid_or_empty(record.at('/variant/id', str))}"
    return ProductDraft(
        sku=sku or number_in_gid_or_empty(record.at("/variant/id", str)),
        name=title if own in {None, _DEFAULT_TITLE} else texts.cut_if_too_long(f"{title} - {own}"),
        description=texts.read_cut_text(record, "/descriptionHtml", LONGEST_DESCRIPTION),
        barcode=texts.read_text_unless_too_long(record, "/variant/barcode", LONGEST_CODE),
        unit_price=rounded_product_price_or_none(record, "/variant/price", currency),
        currency=currency,
        unit_of_measure=settings.unit_of_measure,
        active=record.at("/status", str) in {"ACTIVE", "UNLISTED"},
    )


def customer(record: Record, settings: ShopifySettings) -> CustomerDraft:
    texts = _text_reader(record, settings)
    email = texts.read_text_unless_too_long(record, "/defaultEmailAddress/emailAddress")
    phone = texts.read_text_unless_too_long(record, "/defaultPhoneNumber/phoneNumber")
    name = texts.read_cut_text(record, "/displayName") or email or phone
    if name is None:
        record.count("name assumed")
    return CustomerDraft(
        name=name or f"Customer {record.key_parts[0]}",
        email=email,
        phone=phone,
        billing_address=texts.customer_address("/defaultAddress"),
    )


def order(record: Record, settings: ShopifySettings) -> OrderDraft:
    amounts = AmountReader(record, settings.currency)
    sale = sale_amounts.sale_after_edits_and_refunds(record, amounts, settings)
    progress, to_ship = settings.progress == "shop", _lines_requiring_shipping(record)
    if any(
        line.at("/currentQuantity", int) and sale_amounts.product_of_line(line, settings) is None for line in to_ship
    ):
        record.count("item to ship without a product")
    return OrderDraft(
        customer_id=_customer_reference_of_order(record, settings),
        currency=amounts.currency,
        items=lines_of_sale(record, sale, "/currentTotalPriceSet", settings),
        placed_at=record.instant("/processedAt"),
        status=_status(record, settings) if progress else None,
        shipping_address=_shipping_address(record, settings),
        tracking=tuple(dict.fromkeys(_parcel_trackings(record, settings))) or None if progress else None,
    )


def invoice(record: Record, settings: ShopifySettings) -> InvoiceDraft:
    """Map what the buyer of an order was charged; with ``refunds: reject``, minus refunds."""
    raise_if_payment_status_unknown(record)
    amounts = AmountReader(record, settings.currency)
    of_order = (
        sale_amounts.sale_as_charged_before_refunds
        if settings.refunds == "credit_note"
        else sale_amounts.sale_after_edits_and_refunds
    )
    sale = of_order(record, amounts, settings)
    return InvoiceDraft(
        customer_id=_customer_reference_of_order(record, settings),
        currency=amounts.currency,
        items=lines_of_sale(record, sale, "/totalPriceSet", settings),
    )


def credit_note(record: Record, settings: ShopifySettings) -> InvoiceDraft:
    placed = record.part("/order")
    amounts = AmountReader(placed, settings.currency)
    sale = sale_amounts.sale_for_credit_note(record, placed, amounts, settings)
    return InvoiceDraft(
        customer_id=_customer_reference_of_order(placed, settings),
        currency=amounts.currency,
        items=lines_of_sale(record, sale, "/totalRefundedSet", settings),
    )


def bin_of_location(record: Record, settings: ShopifySettings) -> WarehouseBinDraft:
    """Map a location to a bin: Shopify has no smaller places."""
    name = record.at("/name", str)
    return WarehouseBinDraft(
        code=settings.locations.get(record.key_parts[0], name),
        warehouse=settings.warehouse,
        active=record.at("/isActive", bool),
    )


def lot_of_inventory_level(record: Record, settings: ShopifySettings) -> InventoryLotDraft:
    found = {each.at("/name", str): each.at("/quantity", int) for each in record.each("/level/quantities")}
    if settings.stock_quantity not in found:
        raise RecordError("bad_value", f"has no quantity {settings.stock_quantity}", pointer="/quantities")
    gid, sku = record.at("/id", str), text_or_none(record, "/sku")
    return InventoryLotDraft(
        product_id=product_reference(settings, number_in_gid_or_empty(gid), sku, "/sku"),
        lot_number=settings.lot,
        bin_id=Reference("warehouse_bin", number_in_gid_or_empty(record.at("/level/location/id", str))),
        quantity=Decimal(found[settings.stock_quantity]),
        unit_of_measure=settings.unit_of_measure,
    )


def _customer_reference_of_order(placed: JsonAccess, settings: ShopifySettings) -> Reference:
    account = placed.at("/customer", dict, default=None)
    key = None if account is None else number_in_gid_or_empty(placed.at("/customer/id", str))
    return customer_reference(
        key, settings.guests, text_or_none(placed, "/email"), number_in_gid_or_empty(placed.at("/id", str))
    )


def _status(record: Record, settings: ShopifySettings) -> str:
    if record.at("/cancelledAt", str, default=None) is not None:
        return settings.platform_status_by_shop_status["CANCELLED"]
    left = [line.at("/currentQuantity", int) for line in _lines_requiring_shipping(record)]
    if left and not any(left) and record.at("/displayFulfillmentStatus", str) in _NOTHING_SHIPPED:
        return settings.platform_status_by_shop_status[
            "CANCELLED"
        ]  # all of it was paid back or removed, and nothing of it ships
    return platform_status_or_error(record, "/displayFulfillmentStatus", settings.platform_status_by_shop_status)


def _lines_requiring_shipping(record: Record) -> list[JsonElement]:
    return [line for line in record.each("/lineItems") if line.at("/requiresShipping", bool, default=False)]


def _parcel_trackings(record: Record, settings: ShopifySettings) -> Iterator[Tracking]:
    texts = _text_reader(record, settings)
    for shipment in record.each("/fulfillments"):
        if shipment.at("/status", str) != "SUCCESS":
            continue
        for parcel in shipment.each("/trackingInfo"):
            number, carrier = text_or_none(parcel, "/number"), texts.read_cut_text(parcel, "/company", LONGEST_CODE)
            if number is None:
                record.count("parcel without a number")
                continue
            if carrier is None:
                record.count("carrier assumed")
            yield Tracking(
                carrier=carrier or UNNAMED_CARRIER, number=number, url=texts.read_text_unless_too_long(parcel, "/url")
            )


def _text_reader(record: Record, settings: ShopifySettings) -> TextReader:
    return TextReader(record, settings, _ADDRESS)


def _shipping_address(record: Record, settings: ShopifySettings) -> ShippingAddress | None:
    texts = _text_reader(record, settings)
    named = (
        texts.read_cut_text(record, f"{kind}Address/{member}")
        for kind in ("/shipping", "/billing")
        for member in ("name", "company")
    )
    phone = texts.read_text_unless_too_long(record, "/shippingAddress/phone") or texts.read_text_unless_too_long(
        record, "/phone"
    )
    address = texts.order_address("/shippingAddress", next(filter(None, named), None), phone)
    if address is None and _lines_requiring_shipping(record):
        record.count("order to ship without an address")
    return address
