"""JSON Schemas of ShipBob's answers, written by hand after its OpenAPI document 2026-01 (developer.shipbob.com).

Each names every member that the document names, and no other is allowed. The document requires hardly any member of an
answer; here those that identify a record are required. What the fake leaves out of a record is left out here too, if it
is an object of its own (dimensions, taxonomy, customs).
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

INT: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TEXT: Schema = {"type": "string"}
BOOL: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
MAYBE_INT: Schema = {"type": ["integer", "null"]}
MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
MAYBE_TIME: Schema = {"type": ["string", "null"], "format": "date-time"}


def one_of(*names: str) -> Schema:
    return {"type": "string", "enum": list(names)}


def many(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def record(*required: str, **members: Schema) -> Schema:
    return {"type": "object", "properties": members, "required": list(required), "additionalProperties": False}


def page(items: Schema) -> Schema:
    return record(
        "items", "next", items=many(items), first=MAYBE_TEXT, last=MAYBE_TEXT, next=MAYBE_TEXT, prev=MAYBE_TEXT
    )


NAMED = record("id", id=INT, name=MAYBE_TEXT)
_ADDRESS = {
    "address1": TEXT,
    "address2": MAYBE_TEXT,
    "city": TEXT,
    "company_name": MAYBE_TEXT,
    "country": TEXT,
    "state": MAYBE_TEXT,
    "zip_code": MAYBE_TEXT,
}
_RECIPIENT = {
    "address": record("address1", "city", "country", **_ADDRESS),
    "email": MAYBE_TEXT,
    "name": TEXT,
    "phone_number": MAYBE_TEXT,
}
_PACKED_ITEM = record(
    "id",
    expiration_date=MAYBE_TIME,
    id=INT,
    is_dangerous_goods=BOOL,
    lot=MAYBE_TEXT,
    name=MAYBE_TEXT,
    quantity=INT,
    quantity_committed=INT,
    serial_numbers=many(TEXT),
)
_TRACKING = record(
    bol=MAYBE_TEXT,
    carrier=MAYBE_TEXT,
    carrier_service=MAYBE_TEXT,
    pro_number=MAYBE_TEXT,
    scac=MAYBE_TEXT,
    shipping_date=MAYBE_TIME,
    tracking_number=MAYBE_TEXT,
    tracking_url=MAYBE_TEXT,
)
SHIPMENT = record(
    "id",
    "order_id",
    "status",
    actual_fulfillment_date=MAYBE_TIME,
    created_date=TIME,
    delivery_date=MAYBE_TIME,
    estimated_fulfillment_date=MAYBE_TIME,
    estimated_fulfillment_date_status=TEXT,
    gift_message=MAYBE_TEXT,
    id=INT,
    insurance_value=MAYBE_NUMBER,
    invoice_amount=MAYBE_NUMBER,
    invoice_currency_code=MAYBE_TEXT,
    is_tracking_uploaded=BOOL,
    last_tracking_update_at=MAYBE_TIME,
    last_update_at=MAYBE_TIME,
    location=NAMED,
    order_id=INT,
    package_material_type=TEXT,
    parent_cartons={"type": "array"},
    products=many(
        record(
            "id",
            id=INT,
            inventory_items=many(_PACKED_ITEM),
            name=MAYBE_TEXT,
            reference_id=MAYBE_TEXT,
            sku=MAYBE_TEXT,
        )
    ),
    recipient=record(full_name=MAYBE_TEXT, **_RECIPIENT),
    reference_id=MAYBE_TEXT,
    require_signature=BOOL,
    ship_option=MAYBE_TEXT,
    status=one_of(
        "None",
        "Processing",
        "Completed",
        "Exception",
        "OnHold",
        "Cancelled",
        "CleanSweeped",
        "LabeledCreated",
        "ImportReview",
    ),
    status_details={"type": "array"},
    tracking=_TRACKING,
)
ORDER = record(
    "id",
    "channel",
    "status",
    channel=NAMED,
    created_date=TIME,
    financials=record(total_price=MAYBE_NUMBER),
    gift_message=MAYBE_TEXT,
    id=INT,
    order_number=MAYBE_TEXT,
    products=many(
        record(
            "quantity",
            external_line_id=MAYBE_INT,
            gtin=MAYBE_TEXT,
            id=MAYBE_INT,
            quantity=INT,
            quantity_unit_of_measure_code=MAYBE_TEXT,
            reference_id=MAYBE_TEXT,
            sku=MAYBE_TEXT,
            unit_price=MAYBE_NUMBER,
            upc=MAYBE_TEXT,
        )
    ),
    purchase_date=MAYBE_TIME,
    recipient=record("address", "name", **_RECIPIENT),
    reference_id=MAYBE_TEXT,
    retailer_program_data={"type": "object"},
    shipments=many(SHIPMENT),
    shipping_method=MAYBE_TEXT,
    shipping_terms={"type": "object"},
    status=one_of("Processing", "Exception", "PartiallyFulfilled", "Fulfilled", "Cancelled", "ImportReview"),
    tags=many(record("name", "value", name=TEXT, value=TEXT)),
    type=one_of("DTC", "DropShip", "B2B"),
)
CANCELLED = record(
    "order_id",
    "status",
    canceled_shipment_results=many(
        record("shipment_id", action=TEXT, is_success=BOOL, reason=MAYBE_TEXT, shipment_id=INT)
    ),
    order=ORDER,
    order_id=INT,
    status=one_of("Success", "Failure", "PartialSuccess"),
)
ADDRESS_UPDATED = record("id", "is_success", error={"type": "object"}, id=INT, is_success=BOOL)
CODED_ERROR = record(
    "code",
    code=one_of(
        "INVALID_PARAMETER",
        "VALIDATION_ERROR",
        "DATABASE_UPDATE_ERROR",
        "REPROCESSING_ERROR",
        "DEALLOCATE_ERROR",
        "NOT_FOUND",
        "CONFLICT",
    ),
    message=MAYBE_TEXT,
)
MEMBER_ERRORS: Schema = {"type": "object", "additionalProperties": many(TEXT)}
_INVOICE_TYPE = one_of(
    "Shipping",
    "Inbound Fee",
    "WarehouseStorage",
    "AdditionalFee",
    "Return",
    "Credits",
    "BalanceAdjustment",
    "Payment",
)
INVOICE = record(
    "invoice_id",
    amount=NUMBER,
    currency_code=MAYBE_TEXT,
    invoice_date=MAYBE_TEXT,
    invoice_id=INT,
    invoice_type=_INVOICE_TYPE,
    running_balance=NUMBER,
)
TRANSACTION = record(
    "transaction_id",
    additional_details={"type": "object"},
    amount=MAYBE_NUMBER,
    charge_date=MAYBE_TEXT,
    currency_code=MAYBE_TEXT,
    fulfillment_center=MAYBE_TEXT,
    invoice_date=MAYBE_TEXT,
    invoice_id=MAYBE_INT,
    invoice_type=_INVOICE_TYPE,
    invoiced_status=BOOL,
    reference_id=MAYBE_TEXT,
    reference_type=one_of("Shipment", "Return", "WRO", "URO", "Ticket Number", "FC", "LPN Reference", "Transfer Plan"),
    taxes=many(record(tax_amount=NUMBER, tax_rate=NUMBER, tax_type=MAYBE_TEXT)),
    transaction_fee=MAYBE_TEXT,
    transaction_id=MAYBE_TEXT,
    transaction_type=one_of("Charge", "Refund", "Credit", "Payment", "BalanceAdjustment"),
)
CHANNEL = record("id", application_name=MAYBE_TEXT, id=INT, name=MAYBE_TEXT, scopes=many(TEXT))
