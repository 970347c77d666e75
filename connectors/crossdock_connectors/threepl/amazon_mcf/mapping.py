"""Mapping of Amazon's records to drafts of the platform. Names are those of Amazon's API documents.

The documents are ``fbaInventory.json`` and ``fulfillmentOutbound_2020-07-01.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crossdock import InventoryLotDraft, ProductDraft, Record, Reference, WarehouseBinDraft
from crossdock.resources import Tracking
from crossdock_connectors.threepl.record_values import Products, parcels, plain, status_of, units

FINAL = frozenset(map(plain, ("Cancelled", "Complete", "CompletePartialled", "Unfulfillable", "Invalid")))
"""Statuses after which an order no longer changes."""
WAREHOUSE = "Amazon MCF"
_QUANTITIES = {
    "fulfillable": "/inventoryDetails/fulfillableQuantity",
    "reserved": "/inventoryDetails/reservedQuantity/totalReservedQuantity",
    "researching": "/inventoryDetails/researchingQuantity/totalResearchingQuantity",
    "unfulfillable": "/inventoryDetails/unfulfillableQuantity/totalUnfulfillableQuantity",
}


def product(record: Record, products: Products, unit: str | None) -> ProductDraft:
    """Map a seller's SKU. Its barcode is Amazon's own, the FNSKU."""
    sku = products.sku(record.at("/sellerSku", str))
    return ProductDraft(
        sku=sku,
        name=record.at("/productName", str, default=None) or sku,
        barcode=record.at("/fnSku", str, default=None) or None,
        unit_of_measure=unit,
    )


def marketplace(record: Record) -> WarehouseBinDraft:
    """Map all fulfillment centers of a marketplace to a bin: Amazon does not state in which of them units are."""
    return WarehouseBinDraft(code=record.at("/marketplace", str), warehouse=WAREHOUSE)


def lot(
    record: Record, products: Products, states: Mapping[Any, str], lot_number: str, unit: str | None
) -> InventoryLotDraft:
    place, sku, state = record.at("/marketplace", str), record.at("/sellerSku", str), record.at("/state", str)
    return InventoryLotDraft(
        product_id=products.reference(sku, (place, sku)),
        lot_number=lot_number,
        bin_id=Reference("warehouse_bin", (place,)),
        quantity=units(record, _QUANTITIES.get(state, "/state")),
        unit_of_measure=unit,
        status=states.get(state, state),
    )


def order_progress(record: Record, statuses: Mapping[str, str]) -> dict[str, Any]:
    """Return status and parcels of an order, which may be sent in several shipments of several packages."""
    status = status_of(record, "/fulfillmentOrder/fulfillmentOrderStatus", statuses)
    return {"status": status, "tracking": parcels(_parcels(record))}


def _parcels(record: Record) -> Iterator[Tracking]:
    for shipment in record.each("/fulfillmentShipments", default=()):
        if plain(shipment.at("/fulfillmentShipmentStatus", str)) == "shipped":
            for package in shipment.each("/fulfillmentShipmentPackage", default=()):
                number = package.at("/trackingNumber", str, default=None)
                if number:
                    yield Tracking(carrier=package.at("/carrierCode", str), number=number)
                else:
                    record.count("parcel without a number")
