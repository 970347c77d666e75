"""An example for every schema of the OpenAPI document, and the descriptions of the members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_AT = "2026-11-20T09:30:00.000000Z"
_ID_END = "4be07c9d52f1a3"  # the part of an id after its prefix and time


def sample_id(prefix: str, number: int = 1) -> str:
    return f"{prefix}_{0x19A8B2C3D00 + number:011x}{_ID_END}"


_ADDRESS = {"line1": "1 Harbour Street", "city": "Hamburg", "postalCode": "20457", "country": "DE"}
_LINES = [{"productId": sample_id("prd", 1), "quantity": 3, "unitPrice": 12.5}]
_ENTRY = {
    "id": sample_id("ent", 1),
    "accountId": sample_id("acc", 1),
    "invoiceId": sample_id("inv", 1),
    "side": "debit",
    "amount": 37.5,
    "currency": "EUR",
    "at": _AT,
}
_MOVEMENT = {"toBinId": sample_id("bin", 2), "quantity": 40}

INPUTS: Mapping[str, Mapping[str, Any]] = {
    "Invoice": {"customerId": sample_id("cus", 1), "currency": "EUR", "items": _LINES, "autoPostLedger": True},
    "LedgerAccount": {"externalId": "erp:4100", "code": "4100", "name": "Freight revenue", "type": "revenue"},
    "Customer": {
        "externalId": "shop:1001",
        "name": "Harbour Lights Ltd",
        "email": "office@harbour-lights.example",
        "currency": "EUR",
        "billingAddress": _ADDRESS,
    },
    "Order": {
        "externalId": "shop:A-5001",
        "customerId": sample_id("cus", 1),
        "currency": "EUR",
        "placedAt": "2026-11-20T08:15:00Z",
        "items": _LINES,
        "shippingAddress": _ADDRESS,
    },
    "Product": {
        "externalId": "wms:0017",
        "sku": "0017",
        "name": "Storm lantern",
        "unitOfMeasure": "EA",
        "unitPrice": 12.5,
        "currency": "EUR",
    },
    "InventoryLot": {
        "externalId": "wms:L-2026-04",
        "productId": sample_id("prd", 1),
        "lotNumber": "L-2026-04",
        "binId": sample_id("bin", 1),
        "quantity": 240,
        "expiresOn": "2028-04-30",
    },
    "WarehouseBin": {"externalId": "wms:A-01", "code": "A-01", "warehouse": "HAM", "zone": "A", "capacity": 500},
}
_READ_ONLY: Mapping[str, Mapping[str, Any]] = {
    "Invoice": {"id": sample_id("inv", 1), "status": "draft", "total": 37.5},
    "LedgerAccount": {"id": sample_id("acc", 3)},
    "Customer": {"id": sample_id("cus", 1)},
    "Order": {"id": sample_id("ord", 1)},
    "Product": {"id": sample_id("prd", 1), "active": True},
    "InventoryLot": {"id": sample_id("lot", 1)},
    "WarehouseBin": {"id": sample_id("bin", 1), "active": True},
}
STORED = {
    f"Stored{name}": {**body, **_READ_ONLY[name], "createdAt": _AT, "updatedAt": _AT} for name, body in INPUTS.items()
}
_PATCHES: Mapping[str, Mapping[str, Any]] = {
    "InvoicePatch": {"currency": "GBP"},
    "LedgerAccountPatch": {"name": "Freight and handling revenue"},
    "CustomerPatch": {"phone": "+49 40 123456", "currency": None},
    "OrderPatch": {"status": "shipped"},
    "ProductPatch": {"unitPrice": 12.75},
    "InventoryLotPatch": {"quantity": 200},
    "WarehouseBinPatch": {"active": False},
}
_STORED_MOVEMENT = {
    **_MOVEMENT,
    "id": sample_id("mov", 1),
    "lotId": sample_id("lot", 1),
    "toLotId": sample_id("lot", 2),
    "fromBinId": sample_id("bin", 1),
    "createdAt": _AT,
}
EXAMPLES: Mapping[str, Any] = {
    **INPUTS,
    **STORED,
    **_PATCHES,
    **{f"{name}Page": {"data": [STORED[f"Stored{name}"]], "nextCursor": None} for name in INPUTS},
    "Address": _ADDRESS,
    "AddressPatch": {"line2": "Warehouse 4", "region": None},
    "Line": _LINES[0],
    "Movement": _MOVEMENT,
    "StoredMovement": _STORED_MOVEMENT,
    "Entry": _ENTRY,
    "EntryPage": {"data": [_ENTRY], "nextCursor": None},
    "Currency": "EUR",
    "Country": "DE",
    "Exact": 12.5,
    "Problem": {
        "type": "about:blank",
        "title": "Unprocessable Entity",
        "status": 422,
        "detail": "The body does not match the schema of the resource.",
        "errors": [{"pointer": "#/items/0/quantity", "detail": "must be an exact number"}],
    },
    "OrderCreated": {"type": "order.created", "timestamp": _AT, "data": STORED["StoredOrder"]},
    "InventoryLotMoved": {"type": "inventory.lot_moved", "timestamp": _AT, "data": _STORED_MOVEMENT},
    "InvoiceApproved": {
        "type": "invoice.approved",
        "timestamp": _AT,
        "data": {**STORED["StoredInvoice"], "status": "approved"},
    },
}

DESCRIPTIONS: Mapping[str, str] = {
    "id": "Identifier assigned by the platform. A string, never a number.",
    "createdAt": "When the resource was created.",
    "updatedAt": "When the resource was last changed; lists are in this order.",
    "externalId": "Your own identifier, unique per tenant and resource. Look it up with ?externalId=.",
    "customerId": "Identifier of an existing customer.",
    "productId": "Identifier of an existing product.",
    "binId": "The bin that holds the stock. Stock of one lot in two bins is two lots.",
    "toBinId": "The bin that the stock is moved to.",
    "fromBinId": "The bin that the stock was in, if any.",
    "lotId": "The lot that the stock was taken from.",
    "toLotId": "The lot of the same product and lot number that received the stock; created if there was none.",
    "parentId": "The parent ledger account.",
    "accountId": "The ledger account of the entry.",
    "invoiceId": "The invoice that was posted.",
    "currency": "The currency of the amounts.",
    "items": "One entry per line, at most 10,000 unless the sandbox is started with another limit.",
    "quantity": "Quantity in the unit of measure; whole numbers are written without a decimal point.",
    "unitPrice": "Price per unit in the given currency. A whole number if the currency has no minor unit.",
    "autoPostLedger": "Post the invoice to the general ledger in the same operation.",
    "total": "The exact sum of quantity x unitPrice, with up to 8 digits after the point. Nothing is rounded.",
    "status": "Free text that the platform stores and does not interpret.",
    "side": "Debit or credit; the two entries of an invoice balance.",
    "amount": "Never negative: a negative total is posted with the sides exchanged.",
    "placedAt": "When the order was placed: RFC 3339 with a zone.",
    "lotNumber": "Text: 0017 stays 0017.",
    "sku": "Text: 0017 stays 0017.",
    "data": "The resources of this page, in the order of their last change.",
    "nextCursor": "Pass it as ?cursor= to get the next page; null on the last page.",
    "pointer": "The location in the body: a JSON pointer as a URI fragment (RFC 6901).",
    "detail": "What is wrong, in one sentence. No value of the request is repeated.",
}
