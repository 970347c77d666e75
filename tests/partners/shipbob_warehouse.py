"""The fake of ShipBob behind its API: orders, and what a warehouse does with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.partners.shipbob_state import Channel, Line, Location, Order, Product, Shipment
from tests.partners.shipbob_stockroom import RefusedError, StockRoom


class Warehouse(StockRoom):
    """Orders and their shipments.

    An order has one open shipment at most. Shipping a part of it closes that shipment with what was sent, and the rest
    goes into a new shipment with a new id.
    """

    def __init__(self, channels: Sequence[Channel], locations: Sequence[Location], now: Callable[[], datetime]) -> None:
        super().__init__(channels, locations, now)
        self._references: set[tuple[int, str]] = set()

    def create_order(self, channel: Channel, body: dict[str, Any]) -> Order:
        """Take an order, and commit stock to it: at the location it names, or else at the first that has everything.

        A product that the channel does not have is created with its name, as ShipBob does.

        Raises:
            RefusedError: 422 for a reference id that the channel has used, an unknown product or location.
        """
        reference = body["reference_id"]
        if (channel.id, reference) in self._references:
            raise RefusedError(422, {"reference_id": [f"An order with reference id {reference} already exists."]})
        location_id = body.get("location_id")
        if location_id is not None and location_id not in self.locations:
            raise RefusedError(422, {"location_id": [f"Location {location_id} does not exist."]})
        for item in body["products"]:
            self._check_product(channel, item)
        lines = tuple((self._ordered(channel, item), item) for item in body["products"])
        location = self.locations[location_id] if location_id is not None else self._location_for(lines)
        shipment = self._shipment(
            location, [Line(product, item["quantity"]) for product, item in lines], body["recipient"]
        )
        order = Order(self.next_id(100_000_000), channel, body, lines, shipment.created, [shipment])
        self.orders[order.id] = self.open_orders[order.id] = order
        self._references.add((channel.id, reference))
        self.record("order_created", order_id=order.id, channel=channel.id, body=body)
        for line in shipment.lines:
            self.commit(shipment, line)
        return order

    def _check_product(self, channel: Channel, item: dict[str, Any]) -> None:
        known = self._known(channel, item)
        if known is None and not item.get("name"):
            named = item.get("reference_id") or item.get("id")
            raise RefusedError(422, {"products": [f"Product {named} does not exist, and has no name to create it."]})

    def _known(self, channel: Channel, item: dict[str, Any]) -> Product | None:
        if "reference_id" in item:
            return self._by_sku.get((channel.id, item["reference_id"]))
        named = [product for product in self.products.values() if product.id == item["id"]]
        return named[0] if named and named[0].channel == channel else None

    def _ordered(self, channel: Channel, item: dict[str, Any]) -> Product:
        known = self._known(channel, item)
        return known or self.add_product(channel.id, item["reference_id"], item["name"], item.get("upc"))

    def _location_for(self, lines: tuple[tuple[Product, dict[str, Any]], ...]) -> Location:
        wanted: Counter[int] = Counter()
        for product, item in lines:
            wanted[product.inventory_id] += item["quantity"]
        for location in self.locations.values():
            if all(self.stock.available(item, location.id) >= units for item, units in wanted.items()):
                return location
        return next(iter(self.locations.values()))

    def _shipment(self, location: Location, lines: list[Line], recipient: dict[str, Any]) -> Shipment:
        now = self.now()
        return Shipment(self.next_id(700_000_000), location, lines, now, now, recipient)

    def _open(self, order_id: int) -> tuple[Order, Shipment]:
        order = self.orders[order_id]
        if not order.open_shipments:
            raise ValueError(f"order {order_id} is {order.status}, no shipment of it is open")
        return order, order.open_shipments[0]

    def ship(
        self,
        order_id: int,
        lines: Mapping[str, int] | None = None,
        tracking_number: str = "1Z0000000000000000",
        carrier: str = "UPS",
    ) -> Shipment:
        """Send *lines* (units by SKU; by default everything committed), the lots that expire first to the front.

        Raises:
            ValueError: If no shipment is open, it is on hold, or fewer units are committed.
        """
        with self.lock:
            order, shipment = self._open(order_id)
            held: Counter[str] = Counter()
            for line in shipment.lines:
                held[line.product.sku] += line.held.total()
            wanted = Counter(held if lines is None else lines)
            if shipment.on_hold or not wanted.total() or not wanted <= held:
                raise ValueError(f"order {order_id} is {shipment.status} and has {dict(held)}, not {dict(wanted)}")
            sent = self._pick(shipment, wanted)
            rest, shipment.lines = [line for line in shipment.lines if line.quantity], sent
            shipment.tracking = {"carrier": carrier, "tracking_number": tracking_number}
            if rest:
                order.shipments.append(self._shipment(shipment.location, rest, shipment.recipient))
            self._close(order, shipment, "Completed")
            movements = []
            for line in sent:
                self.stock.remove(line.held)
                movements += [self.movement(place, -units) for place, units in line.held.items()]
            self.record("shipped", order_id=order_id, shipment_id=shipment.id, movements=movements)
            return shipment

    def _pick(self, shipment: Shipment, wanted: Counter[str]) -> list[Line]:
        sent = []
        for line in shipment.lines:
            if units := min(line.held.total(), wanted[line.product.sku]):
                wanted[line.product.sku] -= units
                sent.append(line.split(units))
        return sent

    def _close(self, order: Order, shipment: Shipment, how: Any) -> None:
        shipment.closed, shipment.updated = how, self.now()
        if not order.open_shipments:
            del self.open_orders[order.id]

    def short_ship(self, order_id: int, lines: Mapping[str, int] | None = None) -> None:
        """Send *lines* as `ship` does and cancel the rest, which never comes: the order is Fulfilled all the same.

        Raises:
            ValueError: As `ship`, or if nothing would be left.
        """
        with self.lock:
            order, shipment = self._open(order_id)
            ordered = sum(line.quantity for line in shipment.lines)
            held = sum(line.held.total() for line in shipment.lines)
            if ordered == (held if lines is None else sum(lines.values())):
                raise ValueError(f"order {order_id} would be shipped whole, not short")
            self.ship(order_id, lines)
            rest = order.open_shipments[0]
            self._drop(order, rest)
            missing = [{"sku": line.product.sku, "quantity": line.quantity} for line in rest.lines]
            self.record("short_shipped", order_id=order_id, shipment_id=rest.id, missing=missing)
            self.allocate()

    def _drop(self, order: Order, shipment: Shipment) -> None:
        for line in shipment.lines:
            self.stock.release(line.held)
            line.held = Counter()
        self._close(order, shipment, "Cancelled")

    def substitute(self, order_id: int, sku: str, by: str) -> None:
        """Send another product of the same channel instead: the order still names *sku*, its shipment names *by*.

        Raises:
            ValueError: If no open shipment of the order has *sku*.
            KeyError: If the channel has no product *by*.
        """
        with self.lock:
            order, shipment = self._open(order_id)
            lines = [line for line in shipment.lines if line.product.sku == sku]
            if not lines:
                raise ValueError(f"order {order_id} has no open line of {sku!r}")
            other = self.product(order.channel.id, by)
            for line in lines:
                self.stock.release(line.held)
                line.held, line.product = Counter(), other
            shipment.updated = self.now()
            self.record("substituted", order_id=order_id, sku=sku, by=by)
            self.allocate()

    def cancel(self, order_id: int) -> list[Shipment]:
        """Cancel what is not shipped, and say which shipments.

        Raises:
            RefusedError: 422 if nothing is left to cancel.
        """
        with self.lock:
            order = self.orders[order_id]
            open_shipments = order.open_shipments
            if not open_shipments:
                raise RefusedError(422, {"orderId": [f"Order {order_id} is {order.status} and cannot be cancelled."]})
            for shipment in open_shipments:
                self._drop(order, shipment)
            ids = [shipment.id for shipment in open_shipments]
            self.record("order_cancelled", order_id=order_id, shipment_ids=ids)
            self.allocate()
            return open_shipments

    def put_on_hold(self, order_id: int) -> None:
        """Stop the open shipment; it keeps its stock."""
        self._hold(order_id, True)

    def release_hold(self, order_id: int) -> None:
        self._hold(order_id, False)

    def _hold(self, order_id: int, on_hold: bool) -> None:
        with self.lock:
            _, shipment = self._open(order_id)
            shipment.on_hold, shipment.updated = on_hold, self.now()
            self.record("held" if on_hold else "hold_released", order_id=order_id, shipment_id=shipment.id)
            self.allocate()

    def update_address(self, shipment: Shipment, body: dict[str, Any]) -> None:
        """Send an open shipment elsewhere; the order keeps the recipient it came with.

        Raises:
            RefusedError: 400 if it is shipped or cancelled.
        """
        if shipment.closed:
            message = f"Shipment {shipment.id} is {shipment.status}, its address cannot change."
            raise RefusedError(400, {"code": "VALIDATION_ERROR", "message": message})
        address = {
            "address1": body["street_address1"],
            "address2": body.get("street_address2"),
            "company_name": body.get("company_name"),
            "city": body["city"],
            "state": body.get("state"),
            "country": body.get("country_code") or shipment.recipient["address"]["country"],
            "zip_code": body.get("zip_code"),
        }
        said = {"name": "recipient_name", "email": "email", "phone_number": "phone_number"}
        changed = {name: body[source] for name, source in said.items() if body.get(source) is not None}
        shipment.recipient = {**shipment.recipient, **changed, "address": address}
        shipment.updated = self.now()
        self.record("address_updated", shipment_id=shipment.id, body=body)
