"""One seller's account in the fake of Amazon: the orders, the stock, and what the warehouse does with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any

from tests.partners.amazon_orders import CANCELLABLE, Item, Order, Package, Shipment
from tests.partners.amazon_stock import Stock
from tests.partners.amazon_wire import absent, invalid, timestamp

_ONE_PACKAGE = (Package("UPS", "1Z50V7420354708051"),)


class Seller:
    """The account of one seller.

    Its orders, shipments and stock are seen by this seller only. Every change is appended to the effects as
    ``{"kind", "seller", "at", ...}``. The first methods carry out requests and raise `RefusedError`; those of the
    warehouse raise `ValueError` for what cannot happen, and `KeyError` for orders and SKUs that do not exist. Call
    them while no request is on its way.

    Args:
        refresh_token: The grant of this seller, to get access tokens with.
        numbers: Numbers of packages, shipments and products, shared by all sellers.
    """

    def __init__(
        self,
        seller_id: str,
        marketplace_id: str,
        clock: Callable[[], datetime],
        effects: list[dict[str, Any]],
        numbers: count[int],
    ) -> None:
        self.seller_id, self.marketplace_id = seller_id, marketplace_id
        self.refresh_token = f"Atzr|{seller_id}"
        self.orders: dict[str, Order] = {}
        self.stock: dict[str, Stock] = {}
        self._clock, self._effects, self._numbers = clock, effects, numbers

    # Requests of the seller

    def create(self, body: dict[str, Any]) -> None:
        """Accept an order (``createFulfillmentOrder``). Its key is used up, even if the order is then Invalid.

        Without enough stock, a FillOrKill order becomes Invalid; FillAllAvailable ships what there is; FillAll waits.
        """
        key, lines = str(body["sellerFulfillmentOrderId"]), body["items"]
        if key in self.orders:
            raise invalid(f"A create request already exists for merchantFulfillmentOrderId: {key}")
        self._check_marketplace(body)
        for line in lines:
            if line["sellerSku"] not in self.stock:
                raise invalid(f"the SellerSKU for Item Id: {line['sellerFulfillmentOrderItemId']} is invalid.")
        sent = {name: value for name, value in body.items() if name != "items"}
        items = [Item(dict(line), self.stock[line["sellerSku"]].fn_sku) for line in lines]
        order = Order(sent, self.marketplace_id, items, self._now(), self._now())
        self.orders[key] = order
        self._reserve(order)
        self._log("order_created", order=key, body=body)

    def update(self, key: str, body: dict[str, Any]) -> None:
        """Change or release an order that is on hold (``updateFulfillmentOrder``)."""
        order = self.order(key)
        if not order.on_hold or order.status not in CANCELLABLE:
            raise invalid(f"The fulfillment order {key} has no order hold on it, so it cannot be updated.")
        self._check_marketplace(body)
        items = {item.key: item for item in order.items}
        for line in body.get("items", []):
            item = items.get(line["sellerFulfillmentOrderItemId"])
            if item is None or line.get("sellerSku", item.sku) != item.sku:
                raise invalid(f"The fulfillment order {key} has no such item.")
        for item in order.items:
            self._release(item, item.held)
            item.unfulfillable = 0
        for line in body.get("items", []):
            items[line["sellerFulfillmentOrderItemId"]].sent.update(line)
        sent = {name: value for name, value in body.items() if name != "items"}
        order.sent |= sent
        self._reserve(order)
        self._log("order_updated", order=key, body=body)

    def cancel(self, key: str) -> None:
        """Cancel an order of which nothing is being picked (``cancelFulfillmentOrder``)."""
        order = self.order(key)
        if order.status not in CANCELLABLE:
            raise invalid(f"The fulfillment order {key} is {order.status}, so it cannot be cancelled.")
        for item in order.items:
            item.cancelled += item.open
            self._release(item, item.held)
        order.turn("Cancelled", self._now())
        self._log("order_cancelled", order=key)

    def order(self, key: str) -> Order:
        """The order with this key, for a request."""
        if key not in self.orders:
            raise absent(f"The fulfillment order {key}")
        return self.orders[key]

    # The warehouse

    def announce(self, sku: str, units: int) -> None:
        """The seller has announced *units*; a SKU that is new is listed from now on."""
        self._listed(sku).move(units, self._now(), source=None, to="inbound")
        self._log("stock_announced", sku=sku, units=units)

    def receive(self, sku: str, units: int) -> None:
        """*units* arrive and can be sold, announced ones first; a SKU that is new is listed from now on."""
        stock = self._listed(sku)
        announced = min(units, stock.inbound)
        stock.move(announced, self._now(), source="inbound", to="fulfillable")
        stock.move(units - announced, self._now(), source=None, to="fulfillable")
        self._log("stock_received", sku=sku, units=units)

    def adjust(self, sku: str, units: int) -> None:
        """A count finds *units* more to sell, or fewer if negative."""
        source, to = (None, "fulfillable") if units > 0 else ("fulfillable", None)
        self.stock[sku].move(abs(units), self._now(), source=source, to=to)
        self._log("stock_adjusted", sku=sku, units=units)

    def lose(self, sku: str, units: int) -> None:
        """*units* that could be sold are not where they should be; Amazon looks for them."""
        self.stock[sku].move(units, self._now(), source="fulfillable", to="researching")
        self._log("stock_lost", sku=sku, units=units)

    def damage(self, sku: str, units: int) -> None:
        """*units* that could be sold are damaged in the warehouse."""
        self.stock[sku].move(units, self._now(), source="fulfillable", to="damaged")
        self._log("stock_damaged", sku=sku, units=units)

    def plan(self, key: str) -> None:
        """Begin to plan the shipments of an order that was received and is not on hold."""
        order = self._in_work(key)
        if order.status != "Received":
            raise ValueError(f"order {key} is {order.status}")
        order.turn("Planning", self._now())
        self._log("order_planned", order=key)

    def pick(self, key: str, units: Mapping[str, int] | None = None) -> Shipment:
        """Begin to pick *units* by item key (by default all that the stock holds for the order) as one shipment."""
        order = self._in_work(key)
        for item in order.items:
            self._hold(item)
        wanted = dict(units) if units is not None else {item.key: item.held for item in order.items}
        wanted = {item: number for item, number in wanted.items() if number}
        items = {item.key: item for item in order.items}
        if not wanted or any(not 0 < number <= items[item].held for item, number in wanted.items()):
            raise ValueError(f"order {key}: the stock does not hold {wanted} for it")
        for item_key, number in wanted.items():
            items[item_key].held -= number
            items[item_key].picked += number
        shipment = Shipment(f"D{next(self._numbers):08d}", wanted)
        order.shipments.append(shipment)
        order.turn("Processing", self._now())
        self._log("order_picked", order=key, shipment=shipment.shipment_id, units=wanted)
        return shipment

    def ship(
        self, key: str, units: Mapping[str, int] | None = None, *, packages: Sequence[Package] = _ONE_PACKAGE
    ) -> Shipment:
        """Send a shipment in *packages*: the oldest that is picked, or one of *units* by item key, picked now."""
        order = self.orders[key]
        picked = [shipment for shipment in order.shipments if not shipment.shipped_at]
        shipment = picked[0] if picked and units is None else self.pick(key, units)
        shipment.packages = {next(self._numbers): package for package in packages}
        shipment.shipped_at = self._now()
        for item in order.items:
            number = shipment.units.get(item.key, 0)
            item.picked -= number
            item.shipped += number
            self.stock[item.sku].move(number, self._now(), source="reserved", to=None)
        order.settle(self._now())
        self._log("order_shipped", order=key, shipment=shipment.json(order.items))
        return shipment

    def cannot_fulfill(self, key: str, units: Mapping[str, int] | None = None) -> None:
        """*units* by item key (by default all that are open) cannot be found; held ones of them are looked for.

        A FillOrKill order loses all its open units with them. The order becomes Unfulfillable, or CompletePartialled if
        a part of it has shipped, as soon as nothing is open or picked.
        """
        order = self._in_work(key)
        wanted = dict(units) if units is not None else {item.key: item.open for item in order.items}
        items = {item.key: item for item in order.items}
        if not sum(wanted.values()) or any(not 0 <= number <= items[item].open for item, number in wanted.items()):
            raise ValueError(f"order {key}: {wanted} are not open")
        for item in order.items:
            number = wanted.get(item.key, 0)
            missing = min(number, item.held)
            self.stock[item.sku].move(missing, self._now(), source="reserved", to="researching")
            item.held -= missing
            item.unfulfillable += item.open if order.policy == "FillOrKill" else number
            self._release(item, item.held - min(item.held, item.open))
        order.settle(self._now())
        self._log("order_unfulfillable", order=key, units=wanted)

    def tracking(self, number: int) -> dict[str, Any]:
        """The ``PackageTrackingDetails`` of one of the seller's packages, for a request."""
        for order in self.orders.values():
            if found := order.tracking(number):
                return found
        raise absent(f"The package {number}")

    # Inside

    def _in_work(self, key: str) -> Order:
        order = self.orders[key]
        if order.on_hold or order.status not in {*CANCELLABLE, "Processing"}:
            raise ValueError(f"order {key} is {order.status}, on hold: {order.on_hold}")
        return order

    def _reserve(self, order: Order) -> None:
        for item in order.items:
            self._hold(item)
        short = [item for item in order.items if item.held < item.open]
        if short and order.policy == "FillOrKill":
            for item in order.items:
                self._release(item, item.held)
            order.turn("Invalid", self._now())
        elif short and order.policy == "FillAllAvailable":
            for item in short:
                item.unfulfillable += item.open - item.held
            order.settle(self._now())

    def _hold(self, item: Item) -> None:
        stock = self.stock[item.sku]
        units = min(item.open - item.held, stock.fulfillable)
        stock.move(units, self._now(), source="fulfillable", to="reserved")
        item.held += units

    def _release(self, item: Item, units: int) -> None:
        self.stock[item.sku].move(units, self._now(), source="reserved", to="fulfillable")
        item.held -= units

    def _listed(self, sku: str) -> Stock:
        if sku not in self.stock:
            number = next(self._numbers)
            self.stock[sku] = Stock(sku, f"X{number:09d}", f"B{number:09d}", f"Product {sku}", self._now())
        return self.stock[sku]

    def _check_marketplace(self, body: Mapping[str, Any]) -> None:
        if body.get("marketplaceId", self.marketplace_id) != self.marketplace_id:
            raise invalid(f"Value {body['marketplaceId']} for parameter MarketplaceId is invalid.")

    def _now(self) -> datetime:
        return self._clock().replace(microsecond=0)

    def _log(self, kind: str, **what: Any) -> None:
        self._effects.append({"kind": kind, "seller": self.seller_id, "at": timestamp(self._now()), **what})
