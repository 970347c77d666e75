"""Mapping of WooCommerce's records to drafts of the platform. Field names are those of ``wc/v3``."""

from __future__ import annotations

from crossdock import (
    Address,
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
from crossdock_connectors.shop.record_values import customer_of, product_of, status_of, text
from crossdock_connectors.shop.sale import lines_of
from crossdock_connectors.shop.woocommerce import sales
from crossdock_connectors.shop.woocommerce.sales import Amounts
from crossdock_connectors.shop.woocommerce.settings import WooCommerceSettings

STORE = "store"
"""The key of the only location: WooCommerce has no others."""
_ACTIVE = frozenset({"publish", "private"})  # a private variation is switched off; a private product is for the staff


def product(record: Record, settings: WooCommerceSettings) -> ProductDraft:
    parent = record.part("/parent") if record.at("/parent", dict, default=None) else None
    options = [text(each, "/option") for each in record.each("/attributes", default=())] if parent else []
    own = ", ".join(option for option in options if option)
    name = (parent or record).at("/name", str)
    shown = record.at("/status", str) == "publish" and (parent is None or parent.at("/status", str) in _ACTIVE)
    return ProductDraft(
        sku=text(record, "/sku") or str(record.at("/id", int)),
        name=f"{name} - {own}" if own else name,
        description=text(record, "/description"),
        barcode=text(record, "/global_unique_id"),
        unit_price=record.decimal("/price", default=None) if settings.price_currency else None,
        currency=settings.price_currency,
        unit_of_measure=settings.unit_of_measure,
        active=shown,
    )


def customer(record: Record) -> CustomerDraft:
    email = text(record, "/email") or text(record, "/billing/email")
    name = _full_name(record, "") or _full_name(record, "/billing") or text(record, "/billing/company")
    return CustomerDraft(
        name=name or email or text(record, "/username") or f"Customer {record.key_parts[0]}",
        email=email,
        phone=text(record, "/billing/phone"),
        billing_address=_address(record, "/billing"),
        shipping_address=_address(record, "/shipping"),
    )


def order(record: Record, settings: WooCommerceSettings) -> OrderDraft:
    """Map an order. Refunds do not change its lines."""
    amounts = Amounts.of_order(record)
    return OrderDraft(
        customer_id=_customer(record, settings),
        currency=amounts.currency,
        items=lines_of(sales.charged(record, amounts, settings), "/total"),
        placed_at=record.instant("/date_created_gmt", timezone="UTC"),
        status=status_of(record, "/status", settings.all_statuses) if settings.progress == "shop" else None,
        shipping_address=_shipping_address(record),
    )


def invoice(record: Record, settings: WooCommerceSettings) -> InvoiceDraft:
    amounts = Amounts.of_order(record)
    of_order = sales.charged if settings.refunds == "credit_note" else sales.kept
    return InvoiceDraft(
        customer_id=_customer(record, settings),
        currency=amounts.currency,
        items=lines_of(of_order(record, amounts, settings), "/total"),
    )


def credit_note(record: Record, settings: WooCommerceSettings) -> InvoiceDraft:
    placed = record.part("/order")
    amounts = Amounts.of_order(placed)
    return InvoiceDraft(
        customer_id=_customer(placed, settings),
        currency=amounts.currency,
        items=lines_of(sales.paid_back(record, amounts, settings), "/amount"),
    )


def location(settings: WooCommerceSettings) -> WarehouseBinDraft:
    return WarehouseBinDraft(code=settings.locations.get(STORE, STORE), warehouse=settings.warehouse)


def lot(record: Record, settings: WooCommerceSettings) -> InventoryLotDraft:
    """Map the stock of a variant, or of a product for all of its variations. It is negative if too much was sold."""
    return InventoryLotDraft(
        product_id=product_of(settings, str(record.at("/id", int)), text(record, "/sku"), "/sku"),
        lot_number=settings.lot,
        bin_id=Reference("warehouse_bin", STORE),
        quantity=record.decimal("/stock_quantity"),
        unit_of_measure=settings.unit_of_measure,
    )


def _customer(placed: JsonAccess, settings: WooCommerceSettings) -> Reference:
    account = placed.at("/customer_id", int)
    email, number = text(placed, "/billing/email"), str(placed.at("/id", int))
    return customer_of(str(account) if account else None, settings.guests, email, number)


def _full_name(record: JsonAccess, pointer: str) -> str | None:
    names = [text(record, f"{pointer}/{each}") for each in ("first_name", "last_name")]
    return " ".join(name for name in names if name) or None


def _address(record: JsonAccess, pointer: str) -> Address | None:
    if record.at(pointer, dict, default=None) is None:
        return None
    found = record.part(pointer)
    line1, city, country = text(found, "/address_1"), text(found, "/city"), text(found, "/country")
    if line1 is None or city is None or country is None:
        return None
    return Address(
        line1=line1,
        line2=text(found, "/address_2"),
        city=city,
        region=text(found, "/state"),
        postal_code=text(found, "/postcode"),
        country=country,
    )


def _shipping_address(record: Record) -> ShippingAddress | None:
    address = _address(record, "/shipping")
    if address is None:
        return None
    name = _full_name(record, "/shipping") or text(record, "/shipping/company")
    phone = text(record, "/shipping/phone") or text(record, "/billing/phone")
    return ShippingAddress.model_validate({**dict(address), "name": name, "phone": phone})
