"""The fake of ShipBob behind its API: products, receiving, stock counts and bills, each with its effect."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from tests.partners.shipbob_state import (
    Channel,
    Invoice,
    Line,
    Location,
    Order,
    Place,
    Product,
    Shipment,
    Stock,
    Transaction,
    Wro,
    WroItem,
    time_of,
)

StockKey = tuple[int, str, str | None, int]
"""Channel, SKU, lot and location."""


class RefusedError(Exception):
    """A request that ShipBob refuses: *status* and *body* of its answer."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"{status} {body}")
        self.status, self.body = status, body


def stock_of(effects: Sequence[Mapping[str, Any]]) -> Counter[StockKey]:
    """Units on hand by the *effects* alone: what was received, less what was shipped, and what counts adjusted."""
    found: Counter[StockKey] = Counter()
    for effect in effects:
        for moved in effect.get("movements", ()):
            found[moved["channel"], moved["sku"], moved["lot"], moved["location"]] += moved["quantity"]
    return found


class ChangeLock:
    """A reentrant lock.

    Args:
        leaving: Called before the last holder leaves.
    """

    def __init__(self, leaving: Callable[[], None]) -> None:
        self._lock, self._leaving, self._depth = threading.RLock(), leaving, 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        try:
            if self._depth == 1:
                self._leaving()
        finally:
            self._depth -= 1
            self._lock.release()


class StockRoom:
    """What lies in the fulfillment centers, and who owns it.

    Every method holds `lock`, so a test may call it while the fake serves. Times are those of *now*, cut to seconds.

    Args:
        now: Says the time; aware.

    Attributes:
        effects: What really happened, oldest first: ``kind``, ``at``, what the kind needs, and ``movements`` where
            units came (positive) or went (negative), each with ``channel``, ``sku``, ``lot`` and ``location``.
        watchers: Called after something has happened, with the lock.
    """

    def __init__(self, channels: Sequence[Channel], locations: Sequence[Location], now: Callable[[], datetime]) -> None:
        self.channels = {channel.id: channel for channel in channels}
        self.locations = {location.id: location for location in locations}
        self.lock = ChangeLock(self._leaving)
        self.watchers: list[Callable[[], None]] = []
        self.stock = Stock()
        self.products: dict[int, Product] = {}  # by inventory id
        self.orders: dict[int, Order] = {}
        self.open_orders: dict[int, Order] = {}
        self.wros: dict[int, Wro] = {}
        self.invoices: dict[int, Invoice] = {}
        self.effects: list[dict[str, Any]] = []
        self._by_sku: dict[tuple[int, str], Product] = {}
        self._now, self._ids, self._seen = now, itertools.count(1), 0

    def now(self) -> datetime:
        return self._now().astimezone(UTC).replace(microsecond=0)

    def next_id(self, first: int) -> int:
        """A new id; ids of one kind of record have one *first*, and so rise in the order of their creation."""
        return first + next(self._ids)

    def record(self, kind: str, **facts: Any) -> None:
        self.effects.append({"kind": kind, "at": self.now(), **facts})

    def _leaving(self) -> None:
        if self._seen < len(self.effects):
            self._seen = len(self.effects)
            for watcher in self.watchers:
                watcher()

    def movement(self, place: Place, quantity: int) -> dict[str, Any]:
        product = self.products[place.inventory_id]
        return {
            "channel": product.channel.id,
            "sku": product.sku,
            "lot": place.lot,
            "location": place.location_id,
            "quantity": quantity,
        }

    def product(self, channel_id: int, sku: str) -> Product:
        """The channel's product.

        Raises:
            KeyError: If the channel has no such SKU.
        """
        return self._by_sku[channel_id, sku]

    def add_product(
        self, channel_id: int, sku: str, name: str = "", barcode: str | None = None, lot_tracked: bool = False
    ) -> Product:
        with self.lock:
            ids = (self.next_id(200_000), self.next_id(300_000), self.next_id(400_000))
            product = Product(*ids, self.channels[channel_id], sku, name or sku, barcode, lot_tracked, self.now())
            self.products[product.inventory_id] = self._by_sku[channel_id, sku] = product
            self.record("product_created", channel=channel_id, product_id=product.id, sku=sku)
            return product

    def create_wro(self, body: dict[str, Any]) -> Wro:
        """Announce goods; the boxes' items say whose they are.

        Raises:
            RefusedError: 400 for items of several merchants' channels, or of none, or an unknown location.
        """
        owners = {self.products[item["inventory_id"]].channel for box in body["boxes"] for item in box["box_items"]}
        location = self.locations.get(body["fulfillment_center"]["id"])
        if len(owners) != 1 or location is None:
            raise RefusedError(400, {"boxes": ["Items of one merchant, and a known fulfillment center, are required."]})
        boxes = [
            (box["tracking_number"], [self._announced(item) for item in box["box_items"]]) for box in body["boxes"]
        ]
        now = self.now()
        wro = Wro(self.next_id(500_000), owners.pop(), location, body, boxes, now, [("Awaiting", now)], now)
        self.wros[wro.id] = wro
        self.record("wro_created", wro_id=wro.id, channel=wro.channel.id, body=body)
        return wro

    def _announced(self, item: dict[str, Any]) -> WroItem:
        lot, expires = item.get("lot_number"), item.get("lot_date")
        if expires:
            self.stock.lot_dates[item["inventory_id"], lot] = time_of(expires).astimezone(UTC)
        return WroItem(item["inventory_id"], lot, item["quantity"])

    def cancel_wro(self, wro: Wro) -> None:
        if wro.status != "Awaiting":
            raise RefusedError(422, {"id": [f"A receiving order that is {wro.status} cannot be cancelled."]})
        self._progress(wro, "Cancelled")
        self.record("wro_cancelled", wro_id=wro.id)

    def _progress(self, wro: Wro, status: Any) -> None:
        wro.updated = self.now()
        if status != wro.status:
            wro.history.append((status, wro.updated))

    def receive(
        self,
        wro_id: int,
        quantities: Mapping[tuple[int, str | None], int],
        stowed: Mapping[tuple[int, str | None], int] | None = None,
        final: bool = True,
    ) -> None:
        """Count goods that arrived, by inventory id and lot, more or fewer than announced, or lots nobody announced.

        Only *stowed* units are on hand, by default all. The receiving order is Completed if *final*.

        Raises:
            ValueError: If it is closed, or a quantity is negative, or more is stowed than received.
        """
        with self.lock:
            wro, shelved = self.wros[wro_id], quantities if stowed is None else stowed
            if wro.status in {"Completed", "Cancelled"}:
                raise ValueError(f"receiving order {wro_id} is {wro.status}")
            if any(not 0 <= units <= quantities.get(key, 0) for key, units in shelved.items()):
                raise ValueError("only received units can be stowed")
            movements = []
            for (inventory_id, lot), units in quantities.items():
                item = self._wro_item(wro, inventory_id, lot)
                place, kept = Place(inventory_id, lot, wro.location.id), shelved.get((inventory_id, lot), 0)
                item.received += units
                item.stowed += kept
                self.stock.add(place, kept)
                movements.append(self.movement(place, kept))
            self._progress(wro, "Completed" if final else "Processing")
            self.record("received", wro_id=wro_id, final=final, movements=movements)
            self.allocate()

    def _wro_item(self, wro: Wro, inventory_id: int, lot: str | None) -> WroItem:
        for item in wro.items:
            if (item.inventory_id, item.lot) == (inventory_id, lot):
                return item
        wro.boxes[0][1].append(WroItem(inventory_id, lot, 0))
        return wro.boxes[0][1][-1]

    def adjust_stock(
        self,
        inventory_id: int,
        location_id: int,
        change: int,
        lot: str | None = None,
        lot_date: datetime | None = None,
        reason: str = "cycle count",
    ) -> None:
        """Correct the units on hand. Commitments that have no units left go, from the newest order backwards.

        Raises:
            ValueError: If fewer than none would be left.
        """
        with self.lock:
            place = Place(inventory_id, lot, location_id)
            if self.stock.on_hand[place] + change < 0:
                raise ValueError(f"{place} has {self.stock.on_hand[place]} units, {change:+} is impossible")
            if lot_date is not None:
                self.stock.lot_dates[inventory_id, lot] = lot_date
            self.stock.add(place, change)
            for shipment, line in reversed(self.open_lines()):
                if (lost := min(line.held[place], -self.stock.fulfillable(place))) > 0:
                    self.stock.release({place: lost})
                    line.held -= Counter({place: lost})
                    shipment.updated = self.now()
            self.record("stock_adjusted", reason=reason, movements=[self.movement(place, change)])
            self.allocate()

    def open_lines(self) -> list[tuple[Shipment, Line]]:
        """The lines of all open shipments, oldest order first."""
        return [
            (shipment, line)
            for order in self.open_orders.values()
            for shipment in order.open_shipments
            for line in shipment.lines
        ]

    def allocate(self) -> None:
        """Commit what is fulfillable to the lines that lack it, oldest order first; shipments on hold get nothing."""
        for shipment, line in self.open_lines():
            if line.missing and not shipment.on_hold:
                self.commit(shipment, line)

    def commit(self, shipment: Shipment, line: Line) -> None:
        """Commit what the line lacks, as far as it is there."""
        if found := self.stock.commit(line.product.inventory_id, shipment.location.id, line.missing):
            line.held.update(found)
            shipment.updated = self.now()

    def add_invoice(
        self,
        channel_id: int,
        kind: str,
        transactions: Sequence[Transaction],
        currency: str = "USD",
        day: date | None = None,
    ) -> Invoice:
        """Bill the merchant of a channel; *kind* as ShipBob names its invoices, for example ``Shipping``."""
        with self.lock:
            channel = self.channels[channel_id]
            billed = [invoice.amount for invoice in self.invoices.values() if invoice.channel == channel]
            balance = sum((*billed, *(transaction.amount for transaction in transactions)), Decimal(0))
            invoice = Invoice(
                self.next_id(600_000), channel, kind, day or self.now().date(), currency, tuple(transactions), balance
            )
            self.invoices[invoice.id] = invoice
            self.record("invoice_added", invoice_id=invoice.id, channel=channel_id, amount=invoice.amount)
            return invoice
