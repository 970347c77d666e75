"""Records that are written back to a WooCommerce shop, except stock."""

from __future__ import annotations

import datetime as dt

from crossdock.resources import ResourceModel
from crossdock.values.field_types import Code, Text


class Parcel(ResourceModel):
    """A parcel of an order. The order and the tracking number are its key."""

    carrier: Code
    url: Text | None = None
    """Where the parcel is tracked; by default where the shop's extension knows that this carrier does."""
    date: dt.date | None = None
    """When it was shipped; by default today."""


class OrderStatus(ResourceModel):
    """The status of an order, as the shop calls it. The order's id is its key."""

    status: Code
