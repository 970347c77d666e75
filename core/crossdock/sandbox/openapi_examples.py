"""An example for every schema of the OpenAPI document, and the descriptions of the members, from the YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import yaml

_TEXT = files("crossdock.sandbox").joinpath("openapi_examples.yaml").read_text("utf-8")
_DATA: Mapping[str, Mapping[str, Any]] = yaml.safe_load(_TEXT)
_AT = "2026-11-20T09:30:00.000000Z"

DESCRIPTIONS: Mapping[str, str] = _DATA["descriptions"]
INPUTS: Mapping[str, Mapping[str, Any]] = _DATA["inputs"]
_STORED = {
    f"Stored{name}": {**body, **_DATA["added"][name], "createdAt": _AT, "updatedAt": _AT}
    for name, body in INPUTS.items()
}
_OTHERS = _DATA["others"]
EXAMPLES: Mapping[str, Any] = {
    **INPUTS,
    **_STORED,
    **_OTHERS,
    **{f"{name}Page": {"data": [_STORED[f"Stored{name}"]], "nextCursor": None} for name in INPUTS},
    "EntryPage": {"data": [_OTHERS["Entry"]], "nextCursor": None},
    "OrderCreated": {"type": "order.created", "timestamp": _AT, "data": _STORED["StoredOrder"]},
    "InventoryLotMoved": {"type": "inventory.lot_moved", "timestamp": _AT, "data": _OTHERS["StoredMovement"]},
    "InvoiceApproved": {
        "type": "invoice.approved",
        "timestamp": _AT,
        "data": {**_STORED["StoredInvoice"], "status": "approved"},
    },
}


def sample_id(prefix: str) -> str:
    return f"{prefix}_19a8b2c3d014be07c9d52f1a3"
