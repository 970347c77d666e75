"""Records that are written back to shops: shipments, and quantities of stock."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from crossdock import RecordError
from crossdock.resources import Code, ResourceModel, Text, Units
from crossdock.values.field_types import integer_if_whole
from crossdock.values.record_keys import key_parts_of

Quantity = Annotated[
    int,
    BeforeValidator(integer_if_whole),
    Field(ge=-(2**31), le=2**31 - 1, strict=True),
    WithJsonSchema({"type": "integer"}),
]


class ShippedItem(ResourceModel):
    """Units of one product in a parcel."""

    sku: Code
    quantity: Units


class Fulfillment(ResourceModel):
    """A parcel of an order. The order and the tracking number are its key."""

    carrier: Code | None = None
    url: Text | None = None
    items: tuple[ShippedItem, ...] | None = Field(default=None, min_length=1)
    """What is in it; by default all that is left of the order."""
    notify: bool = False
    """Whether the shop sends the buyer a message."""


class StockLevel(ResourceModel):
    """The stock of a product at a location. Its SKU and the location are its key."""

    quantity: Quantity


def split_key_in_two(key: str, what: str) -> tuple[str, str]:
    """Split a record key into two parts, or raise RecordError. *what* names the parts in the message."""
    parts = key_parts_of(key)
    if len(parts) != 2:
        raise RecordError("invalid_draft", f"the key must be {what}, in this order")
    return parts[0], parts[1]
