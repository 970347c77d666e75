"""What the fake of ShipBob stores: products, stock by lot and location, orders, receiving orders, invoices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal, NamedTuple

ShipmentStatus = Literal["Processing", "Completed", "Exception", "OnHold", "Cancelled"]
WroStatus = Literal["Awaiting", "Processing", "Completed", "Cancelled"]


@dataclass(frozen=True, slots=True)
class Channel:
    """A merchant's sales channel. *user_id* is the merchant, who owns what the channel brings in."""

    id: int
    name: str
    user_id: int


@dataclass(frozen=True, slots=True)
class Location:
    """A fulfillment center."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Product:
    """A product with its one variant and that one's inventory item; a SKU is unique within a channel only."""

    id: int
    variant_id: int
    inventory_id: int
    channel: Channel
    sku: str
    name: str
    barcode: str | None
    lot_tracked: bool
    created: datetime


def time_of(text: str) -> datetime:
    """A time of ISO 8601; UTC if it names no offset.

    Raises:
        ValueError: If it is none.
    """
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


class Place(NamedTuple):
    """Where units of one item lie; None for units without a lot."""

    inventory_id: int
    lot: str | None
    location_id: int


class Stock:
    """Units on hand and units committed to orders, by place; 0 <= committed <= on hand."""

    def __init__(self) -> None:
        self.on_hand: Counter[Place] = Counter()
        self.committed: Counter[Place] = Counter()
        self.lot_dates: dict[tuple[int, str | None], datetime] = {}
        self._places: dict[int, set[Place]] = {}

    def fulfillable(self, place: Place) -> int:
        return self.on_hand[place] - self.committed[place]

    def add(self, place: Place, change: int) -> None:
        self.on_hand[place] += change
        self._places.setdefault(place.inventory_id, set()).add(place)

    def places(self, inventory_id: int) -> list[Place]:
        """Where the item has ever been, the lot that expires first to the front, then by lot and location."""
        found = self._places.get(inventory_id, set())
        return sorted(found, key=lambda place: (*self._expiry(place), place.lot or "", place.location_id))

    def _expiry(self, place: Place) -> tuple[bool, datetime]:
        expires = self.lot_dates.get((place.inventory_id, place.lot))
        return (False, expires) if expires else (True, datetime.min.replace(tzinfo=UTC))

    def available(self, inventory_id: int, location_id: int) -> int:
        return sum(self.fulfillable(place) for place in self.places(inventory_id) if place.location_id == location_id)

    def commit(self, inventory_id: int, location_id: int, quantity: int) -> Counter[Place]:
        """Commit up to *quantity* units, first those that expire first, and say which."""
        taken: Counter[Place] = Counter()
        for place in self.places(inventory_id):
            units = min(quantity - taken.total(), self.fulfillable(place))
            if place.location_id == location_id and units > 0:
                taken[place] = units
        self.committed.update(taken)
        return taken

    def release(self, held: Mapping[Place, int]) -> None:
        self.committed.subtract(held)

    def remove(self, held: Mapping[Place, int]) -> None:
        """Take committed units away."""
        self.committed.subtract(held)
        self.on_hand.subtract(held)


@dataclass(slots=True)
class Line:
    """Units of one product in a shipment; *held* says where they are committed, or from where they were shipped."""

    product: Product
    quantity: int
    held: Counter[Place] = field(default_factory=Counter)

    @property
    def missing(self) -> int:
        return self.quantity - self.held.total()

    def split(self, quantity: int) -> Line:
        """Take *quantity* committed units off this line, first those that expire first."""
        held: Counter[Place] = Counter()
        for place, units in list(self.held.items()):
            if (share := min(units, quantity - held.total())) > 0:
                held[place] = share
        self.held, self.quantity = self.held - held, self.quantity - quantity
        return Line(self.product, quantity, held)


@dataclass(slots=True)
class Shipment:
    """What one location sends at one time."""

    id: int
    location: Location
    lines: list[Line]
    created: datetime
    updated: datetime
    recipient: dict[str, Any]
    on_hold: bool = False
    closed: Literal["Completed", "Cancelled"] | None = None
    tracking: dict[str, Any] | None = None

    @property
    def status(self) -> ShipmentStatus:
        if self.closed:
            return self.closed
        if self.on_hold:
            return "OnHold"
        return "Exception" if any(line.missing for line in self.lines) else "Processing"


@dataclass(slots=True)
class Order:
    """One order; *body* is what was accepted."""

    id: int
    channel: Channel
    body: dict[str, Any]
    lines: tuple[tuple[Product, dict[str, Any]], ...]
    created: datetime
    shipments: list[Shipment]

    @property
    def updated(self) -> datetime:
        return max(shipment.updated for shipment in self.shipments)

    @property
    def open_shipments(self) -> list[Shipment]:
        return [shipment for shipment in self.shipments if not shipment.closed]

    @property
    def status(self) -> str:
        """What ShipBob says of the whole order; an order that was shipped short and closed is Fulfilled."""
        statuses = {shipment.status for shipment in self.shipments}
        if "Completed" in statuses:
            return "PartiallyFulfilled" if self.open_shipments else "Fulfilled"
        if not self.open_shipments:
            return "Cancelled"
        return "Exception" if statuses & {"Exception", "OnHold"} else "Processing"


@dataclass(slots=True)
class WroItem:
    """Units of one lot that a merchant announced, and what came of them; 0 announced if nobody announced them."""

    inventory_id: int
    lot: str | None
    quantity: int
    received: int = 0
    stowed: int = 0


@dataclass(slots=True)
class Wro:
    """A warehouse receiving order; each box is a tracking number and its items."""

    id: int
    channel: Channel
    location: Location
    body: dict[str, Any]
    boxes: list[tuple[str | None, list[WroItem]]]
    created: datetime
    history: list[tuple[WroStatus, datetime]]
    updated: datetime

    @property
    def status(self) -> WroStatus:
        return self.history[-1][0]

    @property
    def items(self) -> list[WroItem]:
        return [item for _, items in self.boxes for item in items]


@dataclass(frozen=True, slots=True)
class Transaction:
    """A fee on an invoice, and what it was charged for."""

    id: str
    amount: Decimal
    fee: str
    reference_id: str
    reference_type: str


@dataclass(frozen=True, slots=True)
class Invoice:
    id: int
    channel: Channel
    type: str
    day: date
    currency: str
    transactions: tuple[Transaction, ...]
    running_balance: Decimal

    @property
    def amount(self) -> Decimal:
        return sum((transaction.amount for transaction in self.transactions), Decimal(0))
