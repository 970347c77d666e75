"""Settings that connections to all 3PLs have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from crossdock import ConfigModel
from crossdock.resources import Code, Instant
from crossdock.sources import HttpSettings, Name

MAPPED = {
    "statuses", "product_namespace", "sku_aliases", "unit_of_measure", "no_lot", "stock_states", "orders",
    "stock_leaves", "receipts", "announced_lots", "bills",
}  # fmt: skip
"""The settings of any 3PL that mappings use."""


class SentOrders(ConfigModel):
    """How a shipment finds the platform's order. The 3PL has it under ``NAMESPACE:KEY``, as crossdock has sent it."""

    namespace: Name = "platform"
    """The namespace of the stream that sends the orders; the 3PL's other orders are left out."""
    matches: Literal["id", "key"] = "id"
    """What KEY is: ``id``, the platform's id of the order, as in a stream that reads the platform; or ``key``, the key
    under which a stream of the same namespace writes the order to the platform."""


class ThreePlSettings(HttpSettings):
    """What a connection to any 3PL is configured with."""

    known_statuses: ClassVar[Mapping[str, str]] = {}

    orders: SentOrders = SentOrders()
    """Which of the 3PL's orders are ours."""
    statuses: Mapping[str, Code] = {}
    """The platform's status of an order by the 3PL's; besides the usual ones, which each can be replaced."""
    product_namespace: Name | None = None
    """The namespace of the platform's products, if their key is the SKU and another connection writes them. By default
    the stream ``products`` writes them."""
    sku_aliases: Mapping[str, Code] = {}
    """Our SKU by the 3PL's, where they differ."""
    unit_of_measure: Code | None = None
    """The unit of measure of products and lots; the 3PL counts units."""
    no_lot: Code = "NO-LOT"
    """The lot number of units without one."""
    first: Instant | None = None
    """The first run reads orders that changed since then."""

    @property
    def platform_status_by_3pl_status(self) -> Mapping[str, str]:
        return {**self.known_statuses, **self.statuses}
