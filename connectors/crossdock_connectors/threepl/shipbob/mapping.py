"""Mapping of ShipBob's records to drafts of the platform. Field names are those of its reference, version 2026-01."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from crossdock.values.field_types import exact_decimal_sum
from crossdock.values.json_access import JsonAccess, JsonElement
from crossdock_connectors.record_mapping_in_code import objects_in_list, raise_if_part_was_not_read
from crossdock_connectors.threepl.record_values import (
    ProductSkus,
    distinct_parcels_or_none,
    non_negative_units_or_error,
    normalized_status,
    platform_status_or_error,
)
from crossdock_connectors.threepl.shipbob.settings import SHORT, Bills

_SENT = normalized_status("Completed")
_CANCELLED = normalized_status("Cancelled")
_SHIPMENT_STATUSES = frozenset(
    normalized_status(
        "None Processing Completed Exception OnHold Cancelled CleanSweeped LabeledCreated ImportReview"
    ).split()
)
_OF_UNITS = (None, "EA")
"""The units of measure of a line whose quantity is a number of units: others are packs, cases and pallets."""
_WITHOUT_SHIPMENTS = frozenset(map(normalized_status, ("Processing", "Exception", "ImportReview", "Cancelled")))
"""Statuses of orders that may have no shipment yet."""
OUTBOUND = "OUTBOUND"
"""The bin of shipped units."""
UNNAMED_CARRIER = "unknown"
_CENT = Decimal("0.01")


def product(record: Record, products: ProductSkus, unit: str | None) -> ProductDraft:
    variant = "/variants"
    return ProductDraft(
        sku=products.platform_sku(record.at(f"{variant}/sku", str)),
        name=record.at(f"{variant}/name", str, default=None) or record.at("/name", str),
        barcode=record.at(f"{variant}/upc", str, default=None) or record.at(f"{variant}/gtin", str, default=None),
        unit_of_measure=unit,
        active=normalized_status(record.at(f"{variant}/status", str)) == "active",
    )


def bin_of_location(record: Record) -> WarehouseBinDraft:
    return WarehouseBinDraft(
        code=record.key_parts[-1],
        warehouse=record.at("/name", str),
        active=record.at("/is_active", bool, default=True),
    )


def inventory_lot(
    record: Record, products: ProductSkus, states: Mapping[Any, str], unit: str | None
) -> InventoryLotDraft:
    owner, state = record.at("/owner", str), record.at("/state", str)
    item = str(record.at("/inventory_id", int))
    expires = record.instant("/lot_date", default=None, timezone="UTC")
    return InventoryLotDraft(
        product_id=products.reference(record.at("/sku", str), (owner, item)),
        lot_number=record.at("/lot", str),
        bin_id=_bin_reference(owner, str(record.at("/location_id", int))),
        quantity=non_negative_units_or_error(record, "/quantity"),
        unit_of_measure=unit,
        status=states.get(state, state),
        expires_on=expires.date() if expires else None,
    )


def received_lot(record: Record, products: ProductSkus, unit: str | None) -> InventoryLotDraft:
    """Map the units of a lot that came with one receiving order, as far as they were stowed."""
    owner = record.at("/owner", str)
    expires = record.instant("/lot_date", default=None, timezone="UTC")
    return InventoryLotDraft(
        product_id=products.reference(record.at("/sku", str), (owner, str(record.at("/inventory_id", int)))),
        lot_number=record.at("/lot", str),
        bin_id=_bin_reference(owner, str(record.at("/location_id", int))),
        quantity=_stowed_units_or_error_if_short(record),
        unit_of_measure=unit,
        received_on=record.instant("/received_at", timezone="UTC").date(),
        expires_on=expires.date() if expires else None,
    )


def movement_of_receipt(record: Record, products: ProductSkus, announced_lots: str) -> LotMovementDraft:
    key = products.platform_sku(record.at("/sku", str)), record.at("/lot", str)
    return LotMovementDraft(
        lot_id=Reference("inventory_lot", key, announced_lots),
        to_bin_id=_bin_reference(record.at("/owner", str), str(record.at("/location_id", int))),
        quantity=_stowed_units_or_error_if_short(record),
    )


def movement_of_shipment(record: Record) -> LotMovementDraft:
    """Map the movement of shipped units from the first receipt of their lot at the location, or raise RecordError."""
    owner, lot = record.at("/owner", str), record.at("/lot", str)
    received_with = record.at("/receiving_order", int, default=None)
    if received_with is None:
        message = "no receiving order that is read has brought this lot here; see the setting first"
        raise RecordError("unmatched", message, pointer="/lot")
    key = owner, str(received_with), str(record.at("/inventory_id", int)), lot
    return LotMovementDraft(
        lot_id=Reference("inventory_lot", key), to_bin_id=_bin_reference(owner, OUTBOUND), quantity=_total_units(record)
    )


def invoice_of_bill(record: Record, bills: Bills) -> InvoiceDraft:
    raise_if_part_was_not_read(record, "/transactions")
    transactions, currency = objects_in_list(record, "/transactions"), record.at("/currency_code", str)
    taxes = [_tax_total_of_transaction(each) for each in transactions]
    return InvoiceDraft(
        customer_id=Reference("customer", bills.customer, bills.customer_namespace),
        currency=currency,
        items=tuple(
            _bill_line(each, bills, tax)
            for each, tax in zip(transactions, _taxes_to_add_to_amounts(record, transactions, taxes), strict=True)
        ),
    )


def _taxes_to_add_to_amounts(
    record: Record, transactions: Sequence[JsonAccess], taxes: Sequence[Decimal]
) -> Sequence[Decimal]:
    """Return what each charge costs beside its own amount, by the total of the bill: its taxes, or nothing.

    ShipBob does not document whether the amounts contain the taxes that it names beside them.
    """
    billed, charged = (
        record.at("/amount", Decimal),
        exact_decimal_sum(each.at("/amount", Decimal) for each in transactions),
    )
    choices = [Decimal(0)] * len(taxes), taxes
    difference, added = min(
        ((billed - charged - exact_decimal_sum(each), each) for each in choices), key=lambda one: abs(one[0])
    )
    if abs(difference) >= _CENT:
        raise RecordError("bad_value", f"is {billed}, but its transactions add up to {charged}", pointer="/amount")
    if difference:
        record.count("total rounded by ShipBob")
    return added


def _tax_total_of_transaction(transaction: JsonAccess) -> Decimal:
    return exact_decimal_sum(each.at("/tax_amount", Decimal) for each in transaction.each("/taxes", default=()))


def _bill_line(transaction: JsonAccess, bills: Bills, tax: Decimal) -> LineDraft:
    fee = transaction.at("/transaction_fee", str)
    if fee not in bills.products:
        raise RecordError("bad_value", f"the fee {fee!r} is not in the setting bills.products", pointer="/transactions")
    product_id = Reference("product", bills.products[fee], bills.product_namespace)
    return LineDraft(product_id=product_id, quantity=Decimal(1), unit_price=transaction.at("/amount", Decimal) + tax)


def _total_units(record: Record) -> Decimal:
    return exact_decimal_sum(non_negative_units_or_error(each, "") for each in record.each("/quantities"))


def _stowed_units_or_error_if_short(record: Record) -> Decimal:
    quantity, short = _total_units(record), record.at("/short", str, default=None)
    if short is not None:
        raise RecordError("bad_value", short, pointer="/quantities")
    return quantity


def _bin_reference(owner: str, code: str) -> Reference:
    return Reference("warehouse_bin", (owner, code))


def status_and_parcels_of_order(record: Record, statuses: Mapping[str, str]) -> dict[str, Any]:
    """Return status and parcels of an order, which may be sent in several shipments, short, or with other products."""
    status = platform_status_or_error(record, "/status", statuses)
    if normalized_status(record.at("/status", str)) == "fulfilled" and _is_shipped_short(record):
        status = statuses[SHORT]
    return {"status": status, "tracking": distinct_parcels_or_none(_parcels(record))}


def _is_shipped_short(order: Record) -> bool:
    """Return whether units of a fulfilled order are missing, by their number or by a shipment that was cancelled.

    A case or a bundle is several inventory items, so that more items than ordered units may still lack some.
    """
    ordered, shipped = _ordered_units_by_sku(order), _shipped_units_by_sku(order)
    total_ordered, total_shipped = exact_decimal_sum(ordered.values()), exact_decimal_sum(shipped.values())
    is_in_units = all(_is_line_in_units(line) for line in order.each("/products"))
    if is_in_units and total_shipped < total_ordered:
        return True
    complete = {sku for sku, units in ordered.items() if is_in_units and shipped.get(sku) == units}
    if _has_cancelled_units_without_replacement(order, complete):
        return True
    if not is_in_units or total_shipped > total_ordered:
        order.count("completeness not known")
    return False


def _is_line_in_units(line: JsonAccess) -> bool:
    return line.at("/quantity_unit_of_measure_code", str, default=None) in _OF_UNITS


def _ordered_units_by_sku(order: Record) -> Mapping[str | None, Decimal]:
    found = defaultdict[str | None, Decimal](Decimal)
    for line in order.each("/products"):
        found[line.at("/sku", str, default=None)] += non_negative_units_or_error(line, "/quantity")
    return found


def _shipped_units_by_sku(order: Record) -> Mapping[str | None, Decimal]:
    """Return the number of sent inventory items, including replacements, by the SKU of their product."""
    found = defaultdict[str | None, Decimal](Decimal)
    for shipment in shipments_in_order(order):
        if documented_shipment_status_or_error(shipment) == _SENT:
            for product in objects_in_list(shipment, "/products"):
                for item in objects_in_list(product, "/inventory_items"):
                    found[product.at("/sku", str, default=None)] += non_negative_units_or_error(item, "/quantity")
    return found


def _has_cancelled_units_without_replacement(order: Record, complete: Collection[str | None]) -> bool:
    """Return whether a shipment with units was cancelled, and no later one has sent as many of the same items.

    Args:
        complete: SKUs of which as many units were sent as were ordered.
    """
    sent_later = Counter[int | None]()
    last_first = shipments_in_order(order)[::-1]
    for shipment in sorted(last_first, key=lambda each: each.at("/id", int, default=0), reverse=True):
        status = documented_shipment_status_or_error(shipment)
        for product in shipment.each("/products", default=()) if status in {_SENT, _CANCELLED} else ():
            for item in product.each("/inventory_items", default=()):
                number, units = item.at("/id", int, default=None), item.at("/quantity", int, default=0)
                if status == _SENT:
                    sent_later[number] += units
                elif sent_later[number] >= units:
                    sent_later[number] -= units
                elif product.at("/sku", str, default=None) not in complete:
                    return True
    return False


def shipments_in_order(order: JsonAccess) -> list[JsonElement]:
    """Return the shipments of an order, which may be null as long as none has left. Raises RecordError otherwise."""
    if (
        order.at("/shipments", list, default=None) is None
        and normalized_status(order.at("/status", str)) in _WITHOUT_SHIPMENTS
    ):
        return []
    return objects_in_list(order, "/shipments")


def documented_shipment_status_or_error(shipment: JsonAccess) -> str:
    """Return the normalized status of a shipment. Raises RecordError if ShipBob does not document it."""
    found = normalized_status(shipment.at("/status", str))
    if found not in _SHIPMENT_STATUSES:
        raise RecordError(
            "bad_value", "is a status of a shipment that ShipBob does not document", pointer=shipment.place("/status")
        )
    return found


def inventory_items_if_shipment_left(shipment: JsonAccess) -> list[JsonElement]:
    """Return the inventory items of a shipment that has left; none of another one."""
    if documented_shipment_status_or_error(shipment) != _SENT:
        return []
    return [
        item
        for product in objects_in_list(shipment, "/products")
        for item in objects_in_list(product, "/inventory_items")
    ]


def _parcels(record: Record) -> Iterator[Tracking]:
    for shipment in shipments_in_order(record):
        status, number = (
            documented_shipment_status_or_error(shipment),
            shipment.at("/tracking/tracking_number", str, default=None),
        )
        if number and status != _CANCELLED:
            carrier = shipment.at("/tracking/carrier", str, default=None)
            if not carrier:
                record.count("carrier assumed")
            url = shipment.at("/tracking/tracking_url", str, default=None) or None
            yield Tracking(carrier=carrier or UNNAMED_CARRIER, number=number, url=url)
        elif status == _SENT:
            record.count("parcel without a number")
