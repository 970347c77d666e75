"""One fulfillment order in the fake of Amazon: its items, shipments and status, and how the API shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from tests.partners.amazon_wire import timestamp, upper_case

Status = Literal[
    "Received", "Planning", "Processing", "Cancelled", "Complete", "CompletePartialled", "Unfulfillable", "Invalid"
]
CANCELLABLE: frozenset[Status] = frozenset({"Received", "Planning"})
"""The statuses that a seller can cancel, by the document's descriptions of ``FulfillmentOrderStatus``."""
_SHOWN_OF_ITEMS = (
    "sellerSku", "sellerFulfillmentOrderItemId", "quantity", "giftMessage", "displayableComment", "perUnitPrice",
    "perUnitTax", "perUnitDeclaredValue",
)  # fmt: skip
_SHOWN_OF_ORDERS = (
    "sellerFulfillmentOrderId", "displayableOrderId", "displayableOrderDate", "displayableOrderComment",
    "shippingSpeedCategory", "deliveryWindow", "destinationAddress", "notificationEmails", "featureConstraints",
)  # fmt: skip


@dataclass(slots=True)
class Item:
    """One line. Its quantity is the sum of what is *open*, picked, shipped, cancelled and unfulfillable.

    Attributes:
        sent: The line as the seller sent it.
        held: Units of the open ones that the stock holds for this line.
    """

    sent: dict[str, Any]
    fn_sku: str
    held: int = 0
    picked: int = 0
    shipped: int = 0
    cancelled: int = 0
    unfulfillable: int = 0

    @property
    def key(self) -> str:
        return str(self.sent["sellerFulfillmentOrderItemId"])

    @property
    def sku(self) -> str:
        return str(self.sent["sellerSku"])

    @property
    def quantity(self) -> int:
        return int(self.sent["quantity"])

    @property
    def open(self) -> int:
        return self.quantity - self.picked - self.shipped - self.cancelled - self.unfulfillable

    def json(self) -> dict[str, Any]:
        """A ``FulfillmentOrderItem``."""
        return {
            **{name: self.sent[name] for name in _SHOWN_OF_ITEMS if name in self.sent},
            "fulfillmentNetworkSku": self.fn_sku,
            "orderItemDisposition": "Sellable",
            "cancelledQuantity": self.cancelled,
            "unfulfillableQuantity": self.unfulfillable,
        }


@dataclass(frozen=True, slots=True)
class Package:
    """A package as its carrier knows it."""

    carrier_code: str
    tracking_number: str


@dataclass(slots=True)
class Shipment:
    """Units that were picked together.

    Attributes:
        units: Units by the key of their item.
        packages: By package number; none until it has shipped. Item *i* is in package *i* modulo their count.
    """

    shipment_id: str
    units: dict[str, int]
    packages: dict[int, Package] = field(default_factory=dict)
    shipped_at: datetime | None = None

    def json(self, items: Sequence[Item]) -> dict[str, Any]:
        """A ``FulfillmentShipment``; units in no package yet have the number 0, as in the document's example."""
        numbers, skus = list(self.packages) or [0], {item.key: item.sku for item in items}
        shown: dict[str, Any] = {
            "amazonShipmentId": self.shipment_id,
            "fulfillmentCenterId": "RNO1",
            "fulfillmentShipmentStatus": "SHIPPED" if self.shipped_at else "PENDING",
            "fulfillmentShipmentItem": [
                {
                    "sellerSku": skus[key],
                    "sellerFulfillmentOrderItemId": key,
                    "quantity": units,
                    "packageNumber": numbers[index % len(numbers)],
                }
                for index, (key, units) in enumerate(self.units.items())
            ],
        }
        if self.shipped_at:
            shown["shippingDate"] = timestamp(self.shipped_at)
            shown["fulfillmentShipmentPackage"] = [
                {"packageNumber": number, "carrierCode": one.carrier_code, "trackingNumber": one.tracking_number}
                for number, one in self.packages.items()
            ]
        return shown


@dataclass(slots=True)
class Order:
    """One fulfillment order.

    Attributes:
        sent: What the seller sent last, without the items.
        updated: When the status last changed; nothing else counts, not even a further shipment.
    """

    sent: dict[str, Any]
    marketplace_id: str
    items: list[Item]
    received: datetime
    updated: datetime
    status: Status = "Received"
    shipments: list[Shipment] = field(default_factory=list)

    @property
    def key(self) -> str:
        return str(self.sent["sellerFulfillmentOrderId"])

    @property
    def policy(self) -> str:
        return str(self.sent.get("fulfillmentPolicy", "FillOrKill"))

    @property
    def on_hold(self) -> bool:
        return self.sent.get("fulfillmentAction") == "Hold"

    def turn(self, status: Status, now: datetime) -> None:
        """Have *status* from *now* on; nothing changes if it has it already."""
        if status != self.status:
            self.status, self.updated = status, now

    def settle(self, now: datetime) -> None:
        """Have the final status that follows from the items, if none of their units is open or picked."""
        if any(item.open or item.picked for item in self.items):
            return
        shipped, ordered = sum(item.shipped for item in self.items), sum(item.quantity for item in self.items)
        if shipped:
            self.turn("Complete" if shipped == ordered else "CompletePartialled", now)
        else:
            self.turn("Unfulfillable", now)

    def summary(self, *, upper: bool) -> dict[str, Any]:
        """A ``FulfillmentOrder``."""
        return {
            **{name: self.sent[name] for name in _SHOWN_OF_ORDERS if name in self.sent},
            "marketplaceId": self.marketplace_id,
            "fulfillmentAction": "Hold" if self.on_hold else "Ship",
            "fulfillmentPolicy": self.policy,
            "receivedDate": timestamp(self.received),
            "fulfillmentOrderStatus": upper_case(self.status) if upper else self.status,
            "statusUpdatedDate": timestamp(self.updated),
        }

    def json(self, *, upper: bool) -> dict[str, Any]:
        """A ``GetFulfillmentOrderResult``."""
        return {
            "fulfillmentOrder": self.summary(upper=upper),
            "fulfillmentOrderItems": [item.json() for item in self.items],
            "fulfillmentShipments": [shipment.json(self.items) for shipment in self.shipments],
            "returnItems": [],
            "returnAuthorizations": [],
        }

    def tracking(self, number: int) -> dict[str, Any] | None:
        """The ``PackageTrackingDetails`` of a package of this order; None if it has no such package."""
        for shipment in self.shipments:
            if shipment.shipped_at and (package := shipment.packages.get(number)):
                return {
                    "packageNumber": number,
                    "trackingNumber": package.tracking_number,
                    "carrierCode": package.carrier_code,
                    "shipDate": timestamp(shipment.shipped_at),
                    "currentStatus": "IN_TRANSIT",
                    "currentStatusDescription": "In transit to the destination address.",
                    "trackingEvents": [],
                }
        return None
