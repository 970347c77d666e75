"""Mapping of Amazon's records to drafts of the platform. Names are those of Amazon's API documents.

The documents are ``fbaInventory.json`` and ``fulfillmentOutbound_2020-07-01.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from crossdock import InventoryLotDraft, ProductDraft, Record, RecordError, Reference, WarehouseBinDraft
from crossdock.resources import Tracking
from crossdock.values.field_types import exact_decimal_sum
from crossdock.values.json_access import JsonAccess, JsonElement
from crossdock_connectors.record_mapping_in_code import objects_in_list, raise_if_part_was_not_read
from crossdock_connectors.threepl.amazon_mcf.repeated_skus import OTHERS
from crossdock_connectors.threepl.record_values import (
    ProductSkus,
    distinct_parcels_or_none,
    non_negative_units_or_error,
    normalized_status,
    our_status_by_normalized_status,
    platform_status_or_error,
)

_SHORT = normalized_status("CompletePartialled")
_COMPLETE = normalized_status("Complete")
_SHIPPED = frozenset({_COMPLETE, _SHORT})
_FINAL = _SHIPPED | set(map(normalized_status, ("Cancelled", "Unfulfillable", "Invalid")))
"""Statuses after which an order no longer changes."""
_OTHERS = f"/{OTHERS}"
_SHIPMENTS = "/fulfillmentShipments"
_STATUS = "/fulfillmentOrder/fulfillmentOrderStatus"
WAREHOUSE = "Amazon MCF"
_QUANTITIES = {
    "fulfillable": "/inventoryDetails/fulfillableQuantity",
    "reserved": "/inventoryDetails/reservedQuantity/totalReservedQuantity",
    "researching": "/inventoryDetails/researchingQuantity/totalResearchingQuantity",
    "unfulfillable": "/inventoryDetails/unfulfillableQuantity/totalUnfulfillableQuantity",
}


def product(record: Record, products: ProductSkus, unit: str | None) -> ProductDraft:
    """Map a seller's SKU. Its barcode is Amazon's own, the FNSKU."""
    sku = products.platform_sku(record.at("/sellerSku", str))
    if record.at(_OTHERS, list, default=()) and record.at("/fnSku", str, default=None) is None:
        record.count("barcode left out")
    return ProductDraft(
        sku=sku,
        name=record.at("/productName", str, default=None) or sku,
        barcode=record.at("/fnSku", str, default=None) or None,
        unit_of_measure=unit,
    )


def bin_of_marketplace(record: Record) -> WarehouseBinDraft:
    """Map all fulfillment centers of a marketplace to a bin: Amazon does not state in which of them units are."""
    return WarehouseBinDraft(code=record.at("/marketplace", str), warehouse=WAREHOUSE)


def inventory_lot(
    record: Record, products: ProductSkus, states: Mapping[Any, str], lot_number: str, unit: str | None
) -> InventoryLotDraft:
    place, sku, state = record.at("/marketplace", str), record.at("/sellerSku", str), record.at("/state", str)
    return InventoryLotDraft(
        product_id=products.reference(sku, (place, sku)),
        lot_number=lot_number,
        bin_id=Reference("warehouse_bin", (place,)),
        quantity=_units_of_all_rows(record, _QUANTITIES.get(state, "/state")),
        unit_of_measure=unit,
        status=states.get(state, state),
    )


def _units_of_all_rows(record: Record, pointer: str) -> Decimal:
    others = record.each(_OTHERS, default=())
    units = [
        non_negative_units_or_error(record, pointer),
        *(non_negative_units_or_error(each, pointer) for each in others),
    ]
    if len(units) > 1:
        record.count("rows of one SKU added up")
    return exact_decimal_sum(units)


def status_and_parcels_of_order(record: Record, statuses: Mapping[str, str]) -> dict[str, Any]:
    """Return status and parcels of an order, which may be sent in several shipments of several packages.

    Amazon's tutorial also calls an order complete of which units were unfulfillable: it was shipped short.
    """
    raise_if_part_was_not_read(record, _SHIPMENTS)
    status = platform_status_or_error(record, _STATUS, statuses)
    if normalized_status(record.at(_STATUS, str)) == _COMPLETE and _has_cancelled_or_unfulfillable_units(record):
        status = our_status_by_normalized_status(statuses)[_SHORT]
    found = list(_parcels(record))
    for _ in range(found.count(None)):
        record.count("parcel without a number")
    return {"status": status, "tracking": distinct_parcels_or_none(filter(None, found))}


def _has_cancelled_or_unfulfillable_units(order: JsonAccess) -> bool:
    lost = ("/cancelledQuantity", "/unfulfillableQuantity")
    items = order.each("/fulfillmentOrderItems", default=())
    return any(item.at(each, int, default=0) for item in items for each in lost)


def is_order_finished(order: Any) -> bool:
    """Return whether an order no longer changes, and the answer has all that is read of it."""
    read = JsonElement(order, "")
    try:
        raise_if_part_was_not_read(read, _SHIPMENTS)
        status, _ = normalized_status(read.at(_STATUS, str)), list(_parcels(read))
    except RecordError:
        return False
    return status in _FINAL


def _parcels(order: JsonAccess) -> Iterator[Tracking | None]:
    """Yield the parcels that were sent, None for one without a number.

    Raises:
        RecordError: If the order was shipped, and its shipments or their packages are not in the answer.
    """
    is_shipped = normalized_status(order.at(_STATUS, str)) in _SHIPPED
    shipments = objects_in_list(order, _SHIPMENTS) if is_shipped else order.each(_SHIPMENTS, default=())
    sent = [each for each in shipments if normalized_status(each.at("/fulfillmentShipmentStatus", str)) == "shipped"]
    if is_shipped and not sent:
        raise RecordError(
            "bad_value", "has no shipment that was sent, although the order is complete", pointer=_SHIPMENTS
        )
    for shipment in sent:
        packages = objects_in_list(shipment, "/fulfillmentShipmentPackage")
        yield from map(_parcel, packages) if packages else [None]


def _parcel(package: JsonAccess) -> Tracking | None:
    number = package.at("/trackingNumber", str, default=None)
    return Tracking(carrier=package.at("/carrierCode", str), number=number) if number else None
