"""Stock movements: receiving orders bring lots, and shipments take units from them.

A shipment does not name the receiving order of its units, which is assumed to be the first one that brought the lot to
the location.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crossdock import InventoryLotDraft, RawBatch, Record
from crossdock.mapping.cursors import instant_cursor
from crossdock.resources import LotMovementDraft
from crossdock.sources import Checkpoint
from crossdock.values.json_paths import at_path, text_of
from crossdock_connectors.threepl.shipbob import mapping
from crossdock_connectors.threepl.shipbob.lists import (
    Item,
    ShipBobContext,
    ShipBobStream,
    numbered_pages,
    objects,
    order_pages,
    owner_of,
)
from crossdock_connectors.threepl.shipbob.settings import ShipBobSettings

Place = tuple[str | None, str | None, str | None]
"""The texts of inventory id, lot and location."""


class _OwnRows(ShipBobStream):
    def __init__(self, settings: ShipBobSettings) -> None:
        super().__init__(settings)
        self.skip = {"other_owner": self.other_owner}


class Receipts(_OwnRows):
    """The lots of completed receiving orders, by item and lot. All since the setting ``first`` are read each time.

    `fetch` gets all that an order brought: item and lot may be empty in the keys that it is given.
    """

    name, mode, key = "receipts", "incremental", ("owner", "receiving_order", "inventory_id", "lot")

    def __init__(self, settings: ShipBobSettings) -> None:
        super().__init__(settings)
        self.resource = "inventory_lot" if settings.receipts == "lot" else "lot_movement"

    def pull(self, ctx: ShipBobContext, since: str | None) -> Iterator[RawBatch]:  # noqa: ARG002  all are read
        yield RawBatch.json(received(ctx), source=f"{ctx.connection} receiving orders")

    def fetch(self, ctx: ShipBobContext, keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        orders = sorted({order for _, order, _, _ in keys if order.isascii() and order.isdecimal()})
        if orders:
            rows = _received(ctx, {"IDs": ",".join(orders)})
            yield RawBatch.json(rows, source=f"{ctx.connection} receiving orders {', '.join(orders)}")

    def to_resource(self, record: Record) -> InventoryLotDraft | LotMovementDraft:
        settings = self.settings
        if settings.announced_lots is not None:
            return mapping.receipt(record, self.products, settings.announced_lots)
        return mapping.received_lot(record, self.products, settings.unit_of_measure)


class Departures(_OwnRows):
    """The units of shipments, by item and lot, for all orders, including those that crossdock did not send."""

    name, resource, mode, key = (
        "departures",
        "lot_movement",
        "incremental",
        ("owner", "shipment", "inventory_id", "lot"),
    )

    def pull(self, ctx: ShipBobContext, since: str | None) -> Iterator[RawBatch | Checkpoint]:
        started = instant_cursor(ctx.run.clock.now())
        brought: dict[Place, Any] = {}
        for row in received(ctx):
            brought.setdefault(_texts(row["inventory_id"], row["lot"], row["location_id"]), row["receiving_order"])
        for orders, address in order_pages(ctx, since):
            sent = [each for order in orders for each in objects(order, "shipments")]
            rows = [row for each in sent for row in self._rows(ctx, each, brought)]
            yield RawBatch.json(rows, source=address)
        yield Checkpoint(started)

    def _rows(self, ctx: ShipBobContext, shipment: Item, brought: Mapping[Place, Any]) -> Iterator[Item]:
        if shipment.get("status") != mapping.SENT:
            return
        rows: dict[Place, Item] = {}
        for item in (item for product in objects(shipment, "products") for item in objects(product, "inventory_items")):
            lot = item.get("lot") or self.settings.no_lot
            place = _texts(item.get("id"), lot, at_path(shipment, "location.id"))
            row: Item = {
                "owner": owner_of(ctx, item.get("id")),
                "shipment": shipment.get("id"),
                "inventory_id": item.get("id"),
                "lot": lot,
                "receiving_order": brought.get(place),
                "quantities": [],
            }
            rows.setdefault(place, row)["quantities"].append(item.get("quantity"))
        yield from rows.values()

    def to_resource(self, record: Record) -> LotMovementDraft:
        return mapping.departure(record)


def received(ctx: ShipBobContext) -> list[Item]:
    """Return what completed receiving orders brought, in the order of their completion. It is read once in a run."""
    return ctx.shared("shipbob.received", lambda: list(_received(ctx, {})))


def _received(ctx: ShipBobContext, named: Mapping[str, str]) -> Iterator[Item]:
    first = ctx.settings.first
    params = {"Statuses": "Completed", "InsertStartDate": None if first is None else instant_cursor(first), **named}
    found = {
        str(order.get("id")): order
        for orders, _ in numbered_pages(ctx, "/receiving", params)
        for order in orders
        if isinstance(order, dict)
    }
    for order in sorted(found.values(), key=lambda order: (str(order.get("last_updated_date")), str(order.get("id")))):
        yield from _brought(ctx, order)


def _brought(ctx: ShipBobContext, order: Item) -> Iterator[Item]:
    skus = {each.get("inventory_id"): each.get("sku") for each in objects(order, "inventory_quantities")}
    rows: dict[Place, Item] = {}
    boxes = ctx.api.get(f"/receiving/{order.get('id')}/boxes").items("")
    for item in (item for box in boxes for item in objects(box, "box_items")):
        item_id, lot = item.get("inventory_id"), item.get("lot_number") or ctx.settings.no_lot
        row: Item = {
            "owner": owner_of(ctx, item_id),
            "receiving_order": order.get("id"),
            "inventory_id": item_id,
            "lot": lot,
            "lot_date": item.get("lot_date"),
            "sku": skus.get(item_id),
            "location_id": at_path(order, "fulfillment_center.id"),
            "received_at": order.get("last_updated_date"),
            "quantities": [],
        }
        rows.setdefault(_texts(item_id, lot, None), row)["quantities"].append(item.get("stowed_quantity"))
    yield from (row for row in rows.values() if any(row["quantities"]))


def _texts(item_id: Any, lot: Any, location: Any) -> Place:
    return text_of(item_id), text_of(lot), text_of(location)
