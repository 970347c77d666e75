"""The stock of one SKU in the fake of Amazon's fulfillment network, and how the inventory API shows it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.partners.amazon_wire import timestamp


@dataclass(slots=True)
class Stock:
    """Units of one SKU by where they are; none is ever negative.

    Attributes:
        inbound: Announced, not yet received.
        reserved: Held for fulfillment orders, until they ship.
        researching: Not found where they should be.
        damaged: Damaged in the warehouse, so not sellable.
        updated: When a quantity last changed. Announced units do not count ("are not detected", says the document).
    """

    seller_sku: str
    fn_sku: str
    asin: str
    product_name: str
    updated: datetime
    inbound: int = 0
    fulfillable: int = 0
    reserved: int = 0
    researching: int = 0
    damaged: int = 0

    @property
    def total(self) -> int:
        """The document's ``totalQuantity``: all units in inbound shipments or fulfillment centers."""
        return self.inbound + self.fulfillable + self.reserved + self.researching + self.damaged

    def move(self, units: int, now: datetime, *, source: str | None, to: str | None) -> None:
        """Move *units* between two of the quantities; None stands for the world outside.

        Raises:
            ValueError: If there are fewer units than that at *source*.
        """
        held = getattr(self, source) if source else units
        if not 0 <= units <= held:
            raise ValueError(f"{self.seller_sku}: {units} units of {held} {source}")
        if source:
            setattr(self, source, held - units)
        if to:
            setattr(self, to, getattr(self, to) + units)
        if units and to != "inbound":
            self.updated = now

    def summary(self, *, details: bool) -> dict[str, Any]:
        """An ``InventorySummary``."""
        shown = {
            "asin": self.asin,
            "fnSku": self.fn_sku,
            "sellerSku": self.seller_sku,
            "condition": "NewItem",
            "lastUpdatedTime": timestamp(self.updated),
            "productName": self.product_name,
            "totalQuantity": self.total,
        }
        return {**shown, "inventoryDetails": self._details()} if details else shown

    def _details(self) -> dict[str, Any]:
        return {
            "fulfillableQuantity": self.fulfillable,
            "inboundWorkingQuantity": self.inbound,
            "inboundShippedQuantity": 0,
            "inboundReceivingQuantity": 0,
            "reservedQuantity": {
                "totalReservedQuantity": self.reserved,
                "pendingCustomerOrderQuantity": self.reserved,
                "pendingTransshipmentQuantity": 0,
                "fcProcessingQuantity": 0,
            },
            "researchingQuantity": {
                "totalResearchingQuantity": self.researching,
                "researchingQuantityBreakdown": [
                    {"name": "researchingQuantityInShortTerm", "quantity": self.researching},
                    {"name": "researchingQuantityInMidTerm", "quantity": 0},
                    {"name": "researchingQuantityInLongTerm", "quantity": 0},
                ],
            },
            "unfulfillableQuantity": {
                "totalUnfulfillableQuantity": self.damaged,
                "customerDamagedQuantity": 0,
                "warehouseDamagedQuantity": self.damaged,
                "distributorDamagedQuantity": 0,
                "carrierDamagedQuantity": 0,
                "defectiveQuantity": 0,
                "expiredQuantity": 0,
            },
        }
