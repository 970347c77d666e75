"""Products, inventory, locations and receiving orders of the fake of ShipBob as its API shows them, version 2026-01."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tests.partners.shipbob_answers import Json, moment
from tests.partners.shipbob_state import Location, Place, Product, Wro
from tests.partners.shipbob_stockroom import StockRoom


def product_view(product: Product, room: StockRoom) -> Json:
    """``Products.ProductViewModelV5`` with one variant."""
    on_hand = sum(room.stock.on_hand[place] for place in room.stock.places(product.inventory_id))
    channel = {
        "id": product.variant_id,
        "channel_id": product.channel.id,
        "channel_name": product.channel.name,
        "seller_sku": product.sku,
        "is_inventory_sync_enabled": True,
    }
    variant = {
        "id": product.variant_id,
        "name": product.name,
        "sku": product.sku,
        "status": "Active",
        "upc": product.barcode,
        "gtin": None,
        "barcodes": [{"value": product.barcode, "sticker_url": None}] if product.barcode else [],
        "inventory": {"inventory_id": product.inventory_id, "on_hand_qty": on_hand},
        "lot_information": {"is_lot": product.lot_tracked, "minimum_shelf_life_days": None},
        "is_digital": False,
        "channel_metadata": [channel],
        "created_on": moment(product.created),
        "updated_on": None,
    }
    return {
        "id": product.id,
        "name": product.name,
        "type": "Regular",
        "user_id": product.channel.user_id,
        "created_on": moment(product.created),
        "updated_on": None,
        "variants": [variant],
    }


def inventory_view(product: Product) -> Json:
    """``Inventory.InventoryResponse``; *user_id* is the merchant, the channel is not named."""
    return {
        "inventory_id": product.inventory_id,
        "name": product.name,
        "sku": product.sku,
        "barcode": product.barcode,
        "is_case": False,
        "is_lot": product.lot_tracked,
        "user_id": product.channel.user_id,
        "variant": {
            "is_active": True,
            "is_bundle": False,
            "is_digital": False,
            "hazmat": {"is_hazmat": False, "validated": True},
        },
    }


def awaited(room: StockRoom) -> Counter[Place]:
    """Units that were announced and are not on hand yet."""
    found: Counter[Place] = Counter()
    for wro in room.wros.values():
        if wro.status in {"Awaiting", "Processing"}:
            for item in wro.items:
                found[Place(item.inventory_id, item.lot, wro.location.id)] += max(item.quantity - item.stowed, 0)
    return found


def lacked(room: StockRoom) -> Counter[int]:
    """Units that orders in exception ask for and that are not there, by inventory id."""
    found: Counter[int] = Counter()
    for shipment, line in room.open_lines():
        if shipment.status == "Exception":
            found[line.product.inventory_id] += line.missing
    return found


def level_view(product: Product, room: StockRoom, awaiting: Counter[Place], lacking: Counter[int]) -> Json:
    """``Inventory.InventoryQuantityResponse``.

    ShipBob's guide and its OpenAPI document disagree about two numbers; this is the guide's view: ``exception`` is what
    orders in exception ask for and lack, ``sellable`` is fulfillable less that, and may be negative.
    """
    exception = lacking[product.inventory_id]
    total = _quantities(_places(product, room, awaiting), room, awaiting)
    return {
        "inventory_id": product.inventory_id,
        "name": product.name,
        "sku": product.sku,
        **{f"total_{name}": units for name, units in total.items()},
        "total_exception_quantity": exception,
        "total_backordered_quantity": 0,
        "total_sellable_quantity": total["fulfillable_quantity"] - exception,
    }


def lots_view(product: Product, room: StockRoom, awaiting: Counter[Place]) -> Json:
    """``Inventory.InventoryQuantityLotResponse``. A lot that ran out stays, with 0; units without a lot are one lot
    whose number is null."""
    places = _places(product, room, awaiting)
    lots = [
        {
            "lot_number": lot,
            "lot_date": moment(room.stock.lot_dates.get((product.inventory_id, lot))),
            **_quantities([place for place in places if place.lot == lot], room, awaiting),
            "locations": [_location_quantities(place, room, awaiting) for place in places if place.lot == lot],
        }
        for lot in dict.fromkeys(place.lot for place in places)
    ]
    return {"inventory_id": product.inventory_id, "name": product.name, "sku": product.sku, "lots": lots}


def _places(product: Product, room: StockRoom, awaiting: Counter[Place]) -> list[Place]:
    expected = [place for place in awaiting if place.inventory_id == product.inventory_id]
    return list(dict.fromkeys([*room.stock.places(product.inventory_id), *expected]))


def _location_quantities(place: Place, room: StockRoom, awaiting: Counter[Place]) -> Json:
    return {
        "location_id": place.location_id,
        "name": room.locations[place.location_id].name,
        **_quantities([place], room, awaiting),
    }


def _quantities(places: Iterable[Place], room: StockRoom, awaiting: Counter[Place]) -> dict[str, int]:
    on_hand = sum(room.stock.on_hand[place] for place in places)
    committed = sum(room.stock.committed[place] for place in places)
    return {
        "on_hand_quantity": on_hand,
        "committed_quantity": committed,
        "fulfillable_quantity": on_hand - committed,
        "awaiting_quantity": sum(awaiting[place] for place in places),
        "internal_transfer_quantity": 0,
    }


def location_view(location: Location) -> Json:
    """``Locations.LocationViewModel``."""
    return {
        "id": location.id,
        "name": location.name,
        "abbreviation": None,
        "access_granted": True,
        "attributes": [],
        "is_active": True,
        "is_receiving_enabled": True,
        "is_shipping_enabled": True,
        "services": [],
        "timezone": "UTC",
    }


def wro_view(wro: Wro, room: StockRoom) -> Json:
    """``Receiving.V2.WarehouseReceivingOrderViewModel``: quantities by item, not by lot."""
    items = {
        item.inventory_id: [other for other in wro.items if other.inventory_id == item.inventory_id]
        for item in wro.items
    }
    return {
        "id": wro.id,
        "status": wro.status,
        "status_history": [
            {"id": number, "status": status, "timestamp": moment(at)}
            for number, (status, at) in enumerate(wro.history, 1)
        ],
        "insert_date": moment(wro.created),
        "last_updated_date": moment(wro.updated),
        "expected_arrival_date": wro.body["expected_arrival_date"],
        "external_sync_timestamp": None,
        "purchase_order_number": wro.body.get("purchase_order_number"),
        "package_type": wro.body["package_type"],
        "box_packaging_type": wro.body["box_packaging_type"],
        "box_labels_uri": None,
        "fulfillment_center": {"id": wro.location.id, "name": wro.location.name},
        "inventory_quantities": [
            {
                "inventory_id": inventory_id,
                "sku": room.products[inventory_id].sku,
                "expected_quantity": sum(item.quantity for item in lots),
                "received_quantity": sum(item.received for item in lots),
                "stowed_quantity": sum(item.stowed for item in lots),
            }
            for inventory_id, lots in items.items()
        ],
    }


def boxes_view(wro: Wro, room: StockRoom) -> list[Json]:
    """``Receiving.BoxViewModel`` of each box: quantities by lot."""
    status = {"Processing": "Counting"}.get(wro.status, wro.status)
    return [
        {
            "box_id": wro.id * 100 + number,
            "box_number": number,
            "box_status": status,
            "tracking_number": tracking_number,
            "arrived_date": None,
            "counting_started_date": None,
            "received_date": moment(wro.updated) if wro.status == "Completed" else None,
            "box_items": [
                {
                    "inventory_id": item.inventory_id,
                    "lot_number": item.lot,
                    "lot_date": moment(room.stock.lot_dates.get((item.inventory_id, item.lot))),
                    "quantity": item.quantity,
                    "received_quantity": item.received,
                    "stowed_quantity": item.stowed,
                }
                for item in items
            ],
        }
        for number, (tracking_number, items) in enumerate(wro.boxes, 1)
    ]
