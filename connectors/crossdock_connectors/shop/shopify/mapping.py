"""Mapping of Shopify's records to drafts of the platform. Field names are those of the Admin schema."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from crossdock import (
    Address,
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
from crossdock.values.json_access import JsonAccess
from crossdock_connectors.shop.record_values import customer_of, product_of, status_of, text
from crossdock_connectors.shop.sale import lines_of
from crossdock_connectors.shop.shopify import sales
from crossdock_connectors.shop.shopify.invoicing import check_payment
from crossdock_connectors.shop.shopify.pages import number_of
from crossdock_connectors.shop.shopify.sales import Amounts
from crossdock_connectors.shop.shopify.settings import ShopifySettings

UNNAMED_CARRIER = "unknown"
_DEFAULT_TITLE = "Default Title"  # of the one variant of a product without options


def product(record: Record, settings: ShopifySettings) -> ProductDraft:
    title, own = record.at("/title", str), text(record, "/variant/title")
    price = record.decimal("/variant/price")
    return ProductDraft(
        sku=text(record, "/variant/sku") or number_of(record.at("/variant/id", str)),
        name=title if own in {None, _DEFAULT_TITLE} else f"{title} - {own}",
        description=text(record, "/descriptionHtml"),
        barcode=text(record, "/variant/barcode"),
        unit_price=price,
        currency=text(record, "/currency"),
        unit_of_measure=settings.unit_of_measure,
        active=record.at("/status", str) in {"ACTIVE", "UNLISTED"},
    )


def customer(record: Record) -> CustomerDraft:
    address = _address(record, "/defaultAddress")
    name, email = text(record, "/displayName"), text(record, "/defaultEmailAddress/emailAddress")
    phone = text(record, "/defaultPhoneNumber/phoneNumber")
    return CustomerDraft(
        name=name or email or phone or f"Customer {record.key_parts[0]}",
        email=email,
        phone=phone,
        billing_address=address,
    )


def order(record: Record, settings: ShopifySettings) -> OrderDraft:
    amounts = Amounts(record, settings.currency)
    sale = sales.current(record, amounts, settings)
    progress = settings.progress == "shop"
    return OrderDraft(
        customer_id=_customer(record, settings),
        currency=amounts.currency,
        items=lines_of(sale, "/currentTotalPriceSet"),
        placed_at=record.instant("/processedAt"),
        status=_status(record, settings) if progress else None,
        shipping_address=_shipping_address(record),
        tracking=tuple(dict.fromkeys(_tracking(record))) or None if progress else None,
    )


def invoice(record: Record, settings: ShopifySettings) -> InvoiceDraft:
    """Map what the buyer of an order was charged; with ``refunds: reject``, minus refunds."""
    check_payment(record)
    amounts = Amounts(record, settings.currency)
    of_order = sales.charged if settings.refunds == "credit_note" else sales.current
    sale = of_order(record, amounts, settings)
    return InvoiceDraft(
        customer_id=_customer(record, settings),
        currency=amounts.currency,
        items=lines_of(sale, "/totalPriceSet"),
    )


def credit_note(record: Record, settings: ShopifySettings) -> InvoiceDraft:
    placed = record.part("/order")
    amounts = Amounts(placed, settings.currency)
    sale = sales.paid_back(record, placed, amounts, settings)
    return InvoiceDraft(
        customer_id=_customer(placed, settings),
        currency=amounts.currency,
        items=lines_of(sale, "/totalRefundedSet"),
    )


def location(record: Record, settings: ShopifySettings) -> WarehouseBinDraft:
    """Map a location to a bin: Shopify has no smaller places."""
    name = record.at("/name", str)
    return WarehouseBinDraft(
        code=settings.locations.get(record.key_parts[0], name),
        warehouse=settings.warehouse,
        active=record.at("/isActive", bool),
    )


def level(record: Record, settings: ShopifySettings) -> InventoryLotDraft:
    found = {each.at("/name", str): each.at("/quantity", int) for each in record.each("/level/quantities")}
    if settings.stock_quantity not in found:
        raise RecordError("bad_value", f"has no quantity {settings.stock_quantity}", pointer="/quantities")
    gid, sku = record.at("/id", str), text(record, "/sku")
    return InventoryLotDraft(
        product_id=product_of(settings, number_of(gid), sku, "/sku"),
        lot_number=settings.lot,
        bin_id=Reference("warehouse_bin", number_of(record.at("/level/location/id", str))),
        quantity=Decimal(found[settings.stock_quantity]),
        unit_of_measure=settings.unit_of_measure,
    )


def _customer(placed: JsonAccess, settings: ShopifySettings) -> Reference:
    account = placed.at("/customer", dict, default=None)
    key = None if account is None else number_of(placed.at("/customer/id", str))
    return customer_of(key, settings.guests, text(placed, "/email"), number_of(placed.at("/id", str)))


def _status(record: Record, settings: ShopifySettings) -> str:
    if record.at("/cancelledAt", str, default=None) is not None:
        return settings.all_statuses["CANCELLED"]
    return status_of(record, "/displayFulfillmentStatus", settings.all_statuses)


def _tracking(record: Record) -> Iterator[Tracking]:
    for shipment in record.each("/fulfillments"):
        if shipment.at("/status", str) != "SUCCESS":
            continue
        for parcel in shipment.each("/trackingInfo"):
            number = text(parcel, "/number")
            if number is not None:
                carrier = text(parcel, "/company") or UNNAMED_CARRIER
                yield Tracking(carrier=carrier, number=number, url=text(parcel, "/url"))


def _address(record: JsonAccess, pointer: str) -> Address | None:
    if record.at(pointer, dict, default=None) is None:
        return None
    found = record.part(pointer)
    line1, city, country = text(found, "/address1"), text(found, "/city"), text(found, "/countryCodeV2")
    if line1 is None or city is None or country is None:
        return None
    return Address(
        line1=line1,
        line2=text(found, "/address2"),
        city=city,
        region=text(found, "/provinceCode") or text(found, "/province"),
        postal_code=text(found, "/zip"),
        country=country,
    )


def _shipping_address(record: Record) -> ShippingAddress | None:
    address = _address(record, "/shippingAddress")
    if address is None:
        return None
    who = {"name": text(record, "/shippingAddress/name"), "phone": text(record, "/shippingAddress/phone")}
    return ShippingAddress.model_validate({**dict(address), **who})
