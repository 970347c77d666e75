"""Stock movements: receiving orders bring lots, and shipments take units from them.

A shipment does not name the receiving order of its units, which is assumed to be the first one that brought the lot to
the location.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crossdock import InventoryLotDraft, RawBatch, Record, RecordError
from crossdock.mapping.row_order_and_cursors import format_iso_instant_cursor
from crossdock.resources import LotMovementDraft
from crossdock.sources import Checkpoint
from crossdock.values.json_access import JsonElement
from crossdock.values.json_paths import json_value_as_column_text, value_at_path_or_missing
from crossdock_connectors.record_mapping_in_code import (
    UnreadParts,
    objects_in_list,
    raise_if_part_was_not_read,
    read_as_member_or_reason,
)
from crossdock_connectors.threepl.shipbob import mapping
from crossdock_connectors.threepl.shipbob.settings import ShipBobSettings
from crossdock_connectors.threepl.shipbob.stream_base_and_list_pages import (
    Item,
    ShipBobContext,
    ShipBobStream,
    changed_order_pages,
    merchant_of_inventory_item,
    numbered_pages,
    rows_of_readable_items,
)

Place = tuple[str | None, str | None, str | None]
"""The texts of inventory id, lot and location."""


class _OwnRows(ShipBobStream):
    def __init__(self, settings: ShipBobSettings) -> None:
        super().__init__(settings)
        self.skip = {"other_owner": self.other_owner_filter}


class Receipts(_OwnRows):
    """The lots of completed receiving orders, by item and lot. All since the setting ``first`` are read each time.

    `fetch` gets all that an order brought: item and lot may be empty in the keys that it is given.
    """

    name, mode, key = "receipts", "incremental", ("owner", "receiving_order", "inventory_id", "lot")

    def __init__(self, settings: ShipBobSettings) -> None:
        super().__init__(settings)
        self.resource = "inventory_lot" if settings.receipts == "lot" else "lot_movement"

    def pull(self, ctx: ShipBobContext, since: str | None) -> Iterator[RawBatch]:  # noqa: ARG002  all are read
        found = received_lots(ctx)
        yield RawBatch.json(found.rows, source=f"{ctx.connection} receiving orders")
        self.raise_if_records_set_aside(ctx, found.aside)

    def fetch(self, ctx: ShipBobContext, keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        orders = sorted({order for _, order, _, _ in keys if order.isascii() and order.isdecimal()})
        if orders:
            found = _read_received_lots(ctx, {"IDs": ",".join(orders)})
            yield RawBatch.json(found.rows, source=f"{ctx.connection} receiving orders {', '.join(orders)}")
            self.raise_if_records_set_aside(ctx, found.aside)

    def to_resource(self, record: Record) -> InventoryLotDraft | LotMovementDraft:
        settings = self.settings
        if settings.announced_lots is not None:
            return mapping.movement_of_receipt(record, self.products, settings.announced_lots)
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
        started = format_iso_instant_cursor(ctx.run.clock.now())
        found, aside = received_lots(ctx), UnreadParts()
        for orders, address in changed_order_pages(ctx, since):
            rows = rows_of_readable_items(
                orders, "order", "id", lambda order: self._rows(ctx, order, found, aside), aside
            )
            yield RawBatch.json(rows, source=address)
        self.raise_if_records_set_aside(ctx, aside)
        yield Checkpoint(started, needs_whole_list=True)

    def _rows(self, ctx: ShipBobContext, order: JsonElement, found: ReceivedLots, aside: UnreadParts) -> list[Item]:
        rows: dict[tuple[str | None, Place], Item] = {}
        for shipment in mapping.shipments_in_order(order):
            number = shipment.value.get("id")
            for item in (each.value for each in mapping.inventory_items_if_shipment_left(shipment)):
                item_id, lot = item.get("id"), item.get("lot") or self.settings.no_lot
                place = _item_lot_and_location_texts(
                    item_id, lot, value_at_path_or_missing(shipment.value, "location.id")
                )
                row: Item = {
                    "owner": merchant_of_inventory_item(ctx, item_id),
                    "shipment": number,
                    "inventory_id": item_id,
                    "lot": lot,
                    "receiving_order": found.brought.get(place),
                    "quantities": [],
                }
                rows.setdefault((json_value_as_column_text(number), place), row)["quantities"].append(
                    item.get("quantity")
                )
                if place not in found.brought and found.may_be_in_unreadable_order(item_id):
                    aside.add(f"lot {lot}", "a receiving order that may have brought it could not be read")
        return list(rows.values())

    def to_resource(self, record: Record) -> LotMovementDraft:
        return mapping.movement_of_shipment(record)


class ReceivedLots:
    """What completed receiving orders brought, in the order of their completion.

    Attributes:
        aside: The orders that could not be read.
        brought: The first receiving order that is known to have brought a lot to a place. After one that could not be
            read, none is known for its items.
    """

    def __init__(self) -> None:
        self.rows = list[Item]()
        self.aside = UnreadParts()
        self.brought: dict[Place, Any] = {}
        self._unread = set[str | None]()

    def add(self, rows: Sequence[Item]) -> None:
        self.rows += rows
        for row in rows:
            if not self.may_be_in_unreadable_order(row["inventory_id"]):
                place = _item_lot_and_location_texts(row["inventory_id"], row["lot"], row["location_id"])
                self.brought.setdefault(place, row["receiving_order"])
        self._unread.update(json_value_as_column_text(row["inventory_id"]) for row in rows if "short" in row)

    def add_unreadable_order(self, name: str, order: Any, error: RecordError) -> None:
        """Note that *order* could not be read, which may have brought any item if it does not say which."""
        self.aside.add(name, str(error))
        try:
            items = objects_in_list(JsonElement(order, ""), "/inventory_quantities")
            self._unread.update(json_value_as_column_text(each.value.get("inventory_id")) for each in items)
        except RecordError:
            self._unread.add(None)

    def may_be_in_unreadable_order(self, item_id: Any) -> bool:
        """Return whether an order that could not be read may have brought the item."""
        return not self._unread.isdisjoint({None, json_value_as_column_text(item_id)})


def received_lots(ctx: ShipBobContext) -> ReceivedLots:
    """Return what all receiving orders brought. It is read once in a run."""
    return ctx.shared("shipbob.received", lambda: _read_received_lots(ctx, {}))


def _read_received_lots(ctx: ShipBobContext, order_filter: Mapping[str, str]) -> ReceivedLots:
    first, found = ctx.settings.first, ReceivedLots()
    params = {
        "Statuses": "Completed",
        "InsertStartDate": None if first is None else format_iso_instant_cursor(first),
        **order_filter,
    }
    orders: dict[str, Item] = {}
    for page, _ in numbered_pages(ctx, "/receiving", params):
        for each in page:
            try:
                order = JsonElement(each, "").part("")
                orders[order.identifier("/id")] = order.value
            except RecordError as error:
                found.add_unreadable_order("a receiving order", each, error)
    for number in sorted(orders, key=lambda number: (str(orders[number].get("last_updated_date")), number)):
        try:
            found.add(list(_stowed_rows(ctx, number, orders[number])))
        except RecordError as error:
            found.add_unreadable_order(f"receiving order {number}", orders[number], error)
    return found


def _stowed_rows(ctx: ShipBobContext, number: str, order: Item) -> Iterator[Item]:
    """Yield what was stowed of each lot. Where the boxes lack units that *order* states, ``short`` says so.

    Raises RecordError if its boxes cannot be read, or are not what ShipBob documents.
    """
    listed = objects_in_list(JsonElement(order, ""), "/inventory_quantities")
    items = {json_value_as_column_text(each.value.get("inventory_id")): each.value for each in listed}
    boxes = JsonElement(
        read_as_member_or_reason("boxes", lambda: ctx.api.get(f"/receiving/{number}/boxes").items("")), ""
    )
    raise_if_part_was_not_read(boxes, "/boxes")
    rows: dict[Place, Item] = {}

    def row_of(item_id: Any, lot: Any, lot_date: Any) -> Item:
        row: Item = {
            "owner": merchant_of_inventory_item(ctx, item_id),
            "receiving_order": order.get("id"),
            "inventory_id": item_id,
            "lot": lot,
            "lot_date": lot_date,
            "sku": items.get(json_value_as_column_text(item_id), {}).get("sku"),
            "location_id": value_at_path_or_missing(order, "fulfillment_center.id"),
            "received_at": order.get("last_updated_date"),
            "quantities": [],
        }
        return rows.setdefault(_item_lot_and_location_texts(item_id, lot, None), row)

    stowed: Counter[str | None] = Counter()
    for item in (item.value for box in objects_in_list(boxes, "/boxes") for item in objects_in_list(box, "/box_items")):
        item_id, quantity = item.get("inventory_id"), item.get("stowed_quantity")
        row = row_of(item_id, item.get("lot_number") or ctx.settings.no_lot, item.get("lot_date"))
        row["quantities"].append(quantity)
        stowed[json_value_as_column_text(item_id)] += quantity if isinstance(quantity, int) else 0
    for name, item in items.items():
        stated = item.get("stowed_quantity")
        if isinstance(stated, int) and stowed[name] < stated:
            own = [row for row in rows.values() if json_value_as_column_text(row["inventory_id"]) == name]
            for row in own or [row_of(item.get("inventory_id"), ctx.settings.no_lot, None)]:
                row["short"] = f"the boxes have {stowed[name]} of the {stated} units that were stowed of this item"
    yield from (row for row in rows.values() if "short" in row or any(units != 0 for units in row["quantities"]))


def _item_lot_and_location_texts(item_id: Any, lot: Any, location: Any) -> Place:
    return json_value_as_column_text(item_id), json_value_as_column_text(lot), json_value_as_column_text(location)
