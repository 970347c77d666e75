"""Mapping of ShipBob's records to drafts of the platform. Field names are those of its reference, version 2026-01."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from crossdock import (
    InventoryLotDraft,
    InvoiceDraft,
    LineDraft,
    ProductDraft,
    Record,
    RecordError,
    Reference,
    WarehouseBinDraft,
)
from crossdock.resources import LotMovementDraft, Tracking
from crossdock.values.decimal_context import total
from crossdock.values.json_access import JsonAccess
from crossdock_connectors.threepl.record_values import Products, parcels, status_of, units
from crossdock_connectors.threepl.shipbob.settings import SHORT, Bills

SENT = "Completed"
OUTBOUND = "OUTBOUND"
"""The bin of shipped units."""
UNNAMED_CARRIER = "unknown"


def product(record: Record, products: Products, unit: str | None) -> ProductDraft:
    variant = "/variants"
    return ProductDraft(
        sku=products.sku(record.at(f"{variant}/sku", str)),
        name=record.at(f"{variant}/name", str, default=None) or record.at("/name", str),
        barcode=record.at(f"{variant}/upc", str, default=None) or record.at(f"{variant}/gtin", str, default=None),
        unit_of_measure=unit,
        active=record.at(f"{variant}/status", str) == "Active",
    )


def location(record: Record) -> WarehouseBinDraft:
    return WarehouseBinDraft(
        code=record.key_parts[-1],
        warehouse=record.at("/name", str),
        active=record.at("/is_active", bool, default=True),
    )


def lot(record: Record, products: Products, states: Mapping[Any, str], unit: str | None) -> InventoryLotDraft:
    owner, state = record.at("/owner", str), record.at("/state", str)
    item = str(record.at("/inventory_id", int))
    expires = record.instant("/lot_date", default=None, timezone="UTC")
    return InventoryLotDraft(
        product_id=products.reference(record.at("/sku", str), (owner, item)),
        lot_number=record.at("/lot", str),
        bin_id=_bin(owner, str(record.at("/location_id", int))),
        quantity=units(record, "/quantity"),
        unit_of_measure=unit,
        status=states.get(state, state),
        expires_on=expires.date() if expires else None,
    )


def received_lot(record: Record, products: Products, unit: str | None) -> InventoryLotDraft:
    """Map the units of a lot that came with one receiving order, as far as they were stowed."""
    owner = record.at("/owner", str)
    expires = record.instant("/lot_date", default=None, timezone="UTC")
    return InventoryLotDraft(
        product_id=products.reference(record.at("/sku", str), (owner, str(record.at("/inventory_id", int)))),
        lot_number=record.at("/lot", str),
        bin_id=_bin(owner, str(record.at("/location_id", int))),
        quantity=_total(record),
        unit_of_measure=unit,
        received_on=record.instant("/received_at", timezone="UTC").date(),
        expires_on=expires.date() if expires else None,
    )


def receipt(record: Record, products: Products, announced_lots: str) -> LotMovementDraft:
    key = products.sku(record.at("/sku", str)), record.at("/lot", str)
    return LotMovementDraft(
        lot_id=Reference("inventory_lot", key, announced_lots),
        to_bin_id=_bin(record.at("/owner", str), str(record.at("/location_id", int))),
        quantity=_total(record),
    )


def departure(record: Record) -> LotMovementDraft:
    """Map the movement of shipped units from the first receipt of their lot at the location, or raise RecordError."""
    owner, lot = record.at("/owner", str), record.at("/lot", str)
    received_with = record.at("/receiving_order", int, default=None)
    if received_with is None:
        message = "no receiving order that is read has brought this lot here; see the setting first"
        raise RecordError("unmatched", message, pointer="/lot")
    key = owner, str(received_with), str(record.at("/inventory_id", int)), lot
    return LotMovementDraft(
        lot_id=Reference("inventory_lot", key), to_bin_id=_bin(owner, OUTBOUND), quantity=_total(record)
    )


def bill(record: Record, bills: Bills) -> InvoiceDraft:
    return InvoiceDraft(
        customer_id=Reference("customer", bills.customer, bills.customer_namespace),
        currency=record.at("/currency_code", str),
        items=tuple(_billed(each, bills) for each in record.each("/transactions")),
    )


def _billed(transaction: JsonAccess, bills: Bills) -> LineDraft:
    fee = transaction.at("/transaction_fee", str)
    if fee not in bills.products:
        raise RecordError("bad_value", f"the fee {fee!r} is not in the setting bills.products", pointer="/transactions")
    product_id = Reference("product", bills.products[fee], bills.product_namespace)
    return LineDraft(product_id=product_id, quantity=Decimal(1), unit_price=transaction.at("/amount", Decimal))


def _total(record: Record) -> Decimal:
    return total(units(each, "") for each in record.each("/quantities"))


def _bin(owner: str, code: str) -> Reference:
    return Reference("warehouse_bin", (owner, code))


def order_progress(record: Record, statuses: Mapping[str, str]) -> dict[str, Any]:
    """Return status and parcels of an order, which may be sent in several shipments, short, or with other products."""
    status = status_of(record, "/status", statuses)
    if record.at("/status", str) == "Fulfilled" and _shipped(record) < _ordered(record):
        status = statuses[SHORT]
    return {"status": status, "tracking": parcels(_parcels(record))}


def _ordered(record: Record) -> Decimal:
    return total(units(line, "/quantity") for line in record.each("/products"))


def _shipped(record: Record) -> Decimal:
    """Return the number of sent units, including replacements."""
    return total(
        units(item, "/quantity")
        for shipment in record.each("/shipments")
        if shipment.at("/status", str) == SENT
        for line in shipment.each("/products")
        for item in line.each("/inventory_items")
    )


def _parcels(record: Record) -> Iterator[Tracking]:
    for shipment in record.each("/shipments"):
        status, number = shipment.at("/status", str), shipment.at("/tracking/tracking_number", str, default=None)
        if number and status != "Cancelled":
            carrier = shipment.at("/tracking/carrier", str, default=None)
            if not carrier:
                record.count("carrier assumed")
            url = shipment.at("/tracking/tracking_url", str, default=None) or None
            yield Tracking(carrier=carrier or UNNAMED_CARRIER, number=number, url=url)
        elif status == SENT:
            record.count("parcel without a number")
