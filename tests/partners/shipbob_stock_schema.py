"""JSON Schemas of ShipBob's answers about stock; `tests.partners.shipbob_schema` explains them."""

from __future__ import annotations

from tests.partners.shipbob_schema import (
    BOOL,
    INT,
    MAYBE_INT,
    MAYBE_TEXT,
    MAYBE_TIME,
    NAMED,
    NUMBER,
    TEXT,
    TIME,
    many,
    one_of,
    record,
)

_CHANNEL_METADATA = record(
    "channel_id",
    channel_id=INT,
    channel_name=MAYBE_TEXT,
    currency=MAYBE_TEXT,
    id=INT,
    is_inventory_sync_enabled=BOOL,
    legacy_product_id=MAYBE_INT,
    platform=MAYBE_TEXT,
    platform_identifier=MAYBE_TEXT,
    platform_inventory_item_id=MAYBE_TEXT,
    price=NUMBER,
    seller_sku=MAYBE_TEXT,
)
_VARIANT = record(
    "id",
    barcodes=many(record(sticker_url=MAYBE_TEXT, value=MAYBE_TEXT)),
    channel_metadata=many(_CHANNEL_METADATA),
    created_on=TIME,
    gtin=MAYBE_TEXT,
    id=INT,
    inventory=record(inventory_id=MAYBE_INT, on_hand_qty=INT),
    is_digital=BOOL,
    is_image_uploaded=BOOL,
    lot_information=record(is_lot=BOOL, minimum_shelf_life_days=MAYBE_INT),
    name=MAYBE_TEXT,
    sku=MAYBE_TEXT,
    status=MAYBE_TEXT,
    upc=MAYBE_TEXT,
    updated_on=MAYBE_TIME,
)
PRODUCT = record(
    "id",
    created_on=TIME,
    id=INT,
    name=MAYBE_TEXT,
    type=MAYBE_TEXT,
    updated_on=MAYBE_TIME,
    user_id=INT,
    variants=many(_VARIANT),
)
INVENTORY = record(
    "inventory_id",
    barcode=MAYBE_TEXT,
    inventory_id=INT,
    is_case=BOOL,
    is_lot=BOOL,
    name=MAYBE_TEXT,
    sku=MAYBE_TEXT,
    user_id=INT,
    variant=record(hazmat=record(is_hazmat=BOOL, validated=BOOL), is_active=BOOL, is_bundle=BOOL, is_digital=BOOL),
)
_UNITS = {f"{name}_quantity": INT for name in ("awaiting", "committed", "fulfillable", "internal_transfer", "on_hand")}
LEVEL = record(
    "inventory_id",
    inventory_id=INT,
    name=MAYBE_TEXT,
    sku=MAYBE_TEXT,
    total_backordered_quantity=INT,
    total_exception_quantity=INT,
    total_sellable_quantity=INT,
    **{f"total_{name}": units for name, units in _UNITS.items()},
)
_LOT = record(
    lot_date=MAYBE_TIME,
    lot_number=MAYBE_TEXT,
    locations=many(record("location_id", location_id=INT, name=MAYBE_TEXT, **_UNITS)),
    **_UNITS,
)
LOTS = record("inventory_id", inventory_id=INT, lots=many(_LOT), name=MAYBE_TEXT, sku=MAYBE_TEXT)
LOCATION = record(
    "id",
    abbreviation=MAYBE_TEXT,
    access_granted=BOOL,
    attributes=many(TEXT),
    id=INT,
    is_active=BOOL,
    is_receiving_enabled=BOOL,
    is_shipping_enabled=BOOL,
    name=MAYBE_TEXT,
    services={"type": "array"},
    timezone=MAYBE_TEXT,
)
WRO = record(
    "id",
    "status",
    box_labels_uri=MAYBE_TEXT,
    box_packaging_type=one_of("EverythingInOneBox", "OneSkuPerBox", "MultipleSkuPerBox"),
    expected_arrival_date=TIME,
    external_sync_timestamp=MAYBE_TIME,
    fulfillment_center=NAMED,
    id=INT,
    insert_date=TIME,
    inventory_quantities=many(
        record(
            "inventory_id",
            expected_quantity=INT,
            inventory_id=INT,
            received_quantity=INT,
            sku=MAYBE_TEXT,
            stowed_quantity=INT,
        )
    ),
    last_updated_date=TIME,
    package_type=one_of("Package", "Pallet", "FloorLoadedContainer"),
    purchase_order_number=MAYBE_TEXT,
    status=one_of(
        "Awaiting",
        "Processing",
        "Completed",
        "Cancelled",
        "Incomplete",
        "Arrived",
        "PartiallyArrived",
        "PartiallyArrivedAtHub",
        "ArrivedAtHub",
        "ProcessingAtHub",
        "InternalTransfer",
    ),
    status_history=many(record(id=INT, status=MAYBE_TEXT, timestamp=TIME)),
)
BOX = record(
    "box_id",
    arrived_date=MAYBE_TIME,
    box_id=INT,
    box_items=many(
        record(
            "inventory_id",
            inventory_id=INT,
            lot_date=MAYBE_TIME,
            lot_number=MAYBE_TEXT,
            quantity=INT,
            received_quantity=INT,
            stowed_quantity=INT,
        )
    ),
    box_number=INT,
    box_status=one_of("Awaiting", "Arrived", "Completed", "Counting", "Stowing", "Cancelled", "InternalTransfer"),
    counting_started_date=MAYBE_TIME,
    received_date=MAYBE_TIME,
    tracking_number=MAYBE_TEXT,
)
