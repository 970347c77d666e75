"""The streams of ShipBob.

Products, locations and stock are listed whole: ShipBob has no filter for their changes. An order has no time of its
last change, but a filter for the changes of its shipments, which excludes the times that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from crossdock import (
    Filter,
    Finding,
    InventoryLotDraft,
    InvoiceDraft,
    ProductDraft,
    RawBatch,
    Record,
    RefusedError,
    WarehouseBinDraft,
)
from crossdock.errors import CrossdockError
from crossdock.mapping.row_order_and_cursors import format_iso_instant_cursor
from crossdock.sources import Checkpoint
from crossdock.values.json_access import JsonElement
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.record_mapping_in_code import (
    UnreadParts,
    objects_in_list,
    read_as_member_or_reason,
    with_added_members,
)
from crossdock_connectors.threepl.record_values import key_of_external_id, possible_external_ids_of_key
from crossdock_connectors.threepl.shipbob import mapping
from crossdock_connectors.threepl.shipbob.movements import Departures, Receipts
from crossdock_connectors.threepl.shipbob.settings import ShipBobSettings
from crossdock_connectors.threepl.shipbob.stream_base_and_list_pages import (
    Item,
    ShipBobContext,
    ShipBobStream,
    changed_order_pages,
    cursor_pages,
    merchant_of_inventory_item,
    merchants_of_inventory_items,
    order_pages_for_external_ids,
    rows_of_readable_items,
)

LATE = timedelta(days=30)
"""How long after its day a bill may appear, as in ShipBob's own default."""


class Bills(ShipBobStream):
    """Bills of the last thirty days, and of the time since the last run. They do not name their merchant."""

    name, resource, mode, key = "bills", "invoice", "incremental", ("owner", "invoice_id")

    def pull(self, ctx: ShipBobContext, since: str | None) -> Iterator[RawBatch | Checkpoint]:
        self._raise_if_token_sees_other_merchants(ctx)
        now, first = ctx.run.clock.now(), ctx.settings.first
        begin = (datetime.fromisoformat(since) if since else first or now) - LATE
        params = {"FromDate": begin.date().isoformat(), "SortOrder": "Ascending"}
        for bills, address in cursor_pages(ctx, "/invoices", "invoice_id", **params):
            yield RawBatch.json([self._with_lines(ctx, bill) for bill in bills], source=address)
        yield Checkpoint(format_iso_instant_cursor(now), needs_whole_list=True)

    def _with_lines(self, ctx: ShipBobContext, bill: object) -> object:
        path = f"/invoices/{value_at_path_or_missing(bill, 'invoice_id')}/transactions"
        lines = read_as_member_or_reason(
            "transactions", lambda: [line for page, _ in cursor_pages(ctx, path, "transaction_id") for line in page]
        )
        return with_added_members(bill, owner=self.settings.owner, **lines)

    def _raise_if_token_sees_other_merchants(self, ctx: ShipBobContext) -> None:
        """Refuse an account of several merchants: the others' bills would be mistaken for those of the merchant."""
        others = set(merchants_of_inventory_items(ctx).values()) - {self.settings.owner}
        if others:
            message = f"the token sees other merchants than {self.settings.owner}, and bills do not say whose they are"
            hint = "use a token of one merchant, or leave out the setting bills"
            raise RefusedError(message, where=f"{ctx.connection}.{self.name}", hint=hint, code="credential_too_wide")

    def to_resource(self, record: Record) -> InvoiceDraft:
        assert self.settings.bills is not None  # else there is no such stream
        return mapping.invoice_of_bill(record, self.settings.bills)


class Products(ShipBobStream):
    """Each variant that has stock is a product."""

    name, resource, mode = "products", "product", "snapshot"
    key = ("owner", "variants.inventory.inventory_id")
    uses = ("variants.sku", "variants.name", "name", "variants.upc", "variants.gtin", "variants.status")

    def __init__(self, settings: ShipBobSettings) -> None:
        super().__init__(settings)
        without_stock = Filter(field="variants.inventory.inventory_id", empty=True)  # bundles, digital products
        self.skip = {"other_owner": self.other_owner_filter, "without_stock": without_stock}

    def pull(self, ctx: ShipBobContext, since: str | None) -> Iterator[RawBatch]:  # noqa: ARG002  a snapshot
        aside = UnreadParts()
        for items, address in cursor_pages(ctx, "/product", "id"):
            yield RawBatch.json(
                rows_of_readable_items(items, "product", "id", _product_rows_with_owner, aside),
                source=address,
                explode="variants",
            )
        self.raise_if_records_set_aside(ctx, aside)

    def to_resource(self, record: Record) -> ProductDraft:
        return mapping.product(record, self.products, self.settings.unit_of_measure)


def _product_rows_with_owner(item: JsonElement) -> list[Any]:
    objects_in_list(item, "/variants")
    return [with_added_members(item.value, owner=value_at_path_or_missing(item.value, "user_id"))]


class Locations(ShipBobStream):
    """Each fulfillment center is a bin: ShipBob does not say where in it something lies."""

    name, resource, mode, key = "locations", "warehouse_bin", "snapshot", ("owner", "id")

    def pull(self, ctx: ShipBobContext, since: str | None) -> Iterator[RawBatch]:  # noqa: ARG002  a snapshot
        answer = ctx.api.get("/location")
        items = answer.items("")
        if self.settings.stock_leaves == "movement":
            items = [*items, {"id": mapping.OUTBOUND, "name": "ShipBob"}]
        yield RawBatch.json(
            (with_added_members(item, owner=self.settings.owner) for item in items), source=answer.address
        )

    def to_resource(self, record: Record) -> WarehouseBinDraft:
        return mapping.bin_of_location(record)


class Stock(ShipBobStream):
    """Lots by location and state. The list names no merchant; that of the inventory does."""

    name, resource, mode = "stock", "inventory_lot", "snapshot"
    key = ("owner", "inventory_id", "lot", "location_id", "state")

    def __init__(self, settings: ShipBobSettings) -> None:
        super().__init__(settings)
        self.skip = {"other_owner": self.other_owner_filter}

    def pull(self, ctx: ShipBobContext, since: str | None) -> Iterator[RawBatch]:  # noqa: ARG002  a snapshot
        aside = UnreadParts()
        for items, address in cursor_pages(ctx, "/inventory-level/lots", "inventory_id"):
            rows = rows_of_readable_items(items, "inventory item", "inventory_id", partial(self._rows, ctx), aside)
            yield RawBatch.json(rows, source=address)
        self.raise_if_records_set_aside(ctx, aside)

    def _rows(self, ctx: ShipBobContext, item: JsonElement) -> Iterator[Item]:
        own = item.at("", dict)
        about = {name: own.get(name) for name in ("inventory_id", "sku")}
        about["owner"] = merchant_of_inventory_item(ctx, about["inventory_id"])
        for each in objects_in_list(item, "/lots"):
            lot = {"lot": each.value.get("lot_number") or self.settings.no_lot, "lot_date": each.value.get("lot_date")}
            for place in objects_in_list(each, "/locations"):
                for state in self.settings.stock_states:
                    quantity = place.value.get(f"{state}_quantity")
                    yield about | lot | {
                        "location_id": place.value.get("location_id"), "state": state, "quantity": quantity
                    }  # fmt: skip

    def to_resource(self, record: Record) -> InventoryLotDraft:
        settings = self.settings
        return mapping.inventory_lot(record, self.products, settings.stock_states, settings.unit_of_measure)


class Shipments(ShipBobStream):
    """Status and parcels of orders that crossdock has sent. A change of a shipment makes its order read again."""

    name, resource, mode, key = "shipments", "order", "incremental", ("order_key",)
    contributes = ("status", "tracking")
    fetch_size = 20  # names of up to 300 characters in an address

    def __init__(self, settings: ShipBobSettings) -> None:
        super().__init__(settings)
        self.namespace, self.matches = settings.orders.namespace, settings.orders.matches
        channel = {"field": "channel.id", "equals": str(settings.channel)}
        self.skip = {
            "other_channel": Filter.model_validate({"not": channel}),
            "not_sent_by_crossdock": Filter(field="order_key", empty=True),
        }

    def pull(self, ctx: ShipBobContext, since: str | None) -> Iterator[RawBatch | Checkpoint]:
        started = format_iso_instant_cursor(ctx.run.clock.now())
        for items, address in changed_order_pages(ctx, since):
            yield RawBatch.json(map(self._with_order_key, items), source=address)
        yield Checkpoint(started, needs_whole_list=True)

    def fetch(self, ctx: ShipBobContext, keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        names = [name for (key,) in keys for name in possible_external_ids_of_key(key, self.settings.orders.namespace)]
        for items, address in order_pages_for_external_ids(ctx, names):
            yield RawBatch.json(map(self._with_order_key, items), source=address)

    def _with_order_key(self, item: Any) -> Any:
        return with_added_members(
            item,
            order_key=key_of_external_id(
                value_at_path_or_missing(item, "reference_id"), self.settings.orders.namespace
            ),
        )

    def to_resource(self, record: Record) -> dict[str, Any]:
        return mapping.status_and_parcels_of_order(record, self.settings.platform_status_by_3pl_status)


def streams(settings: ShipBobSettings) -> Sequence[ShipBobStream]:
    chosen: Mapping[Callable[[ShipBobSettings], ShipBobStream], bool] = {
        Products: settings.product_namespace is None,
        Locations: True,
        Stock: settings.stock_leaves == "quantity",
        Receipts: settings.receipts != "nothing",
        Departures: settings.stock_leaves == "movement",
        Shipments: True,
        Bills: settings.bills is not None,
    }
    return [make(settings) for make, wanted in chosen.items() if wanted]


def check(ctx: ShipBobContext) -> Iterator[Finding]:
    wanted = {"channel": str(ctx.settings.channel), "owner": ctx.settings.owner}
    for what, path, member in (("channel", "/channel", "id"), ("owner", "/inventory", "user_id")):
        try:
            answer = ctx.api.get(path)
            found = sorted({str(value_at_path_or_missing(item, member)) for item in answer.items("/items")})
        except CrossdockError as error:
            yield Finding(ok=False, text=f"{what}: {error}", code=error.code, category=error.category)
            return
        shown = ", ".join(found) or "none"
        is_seen = wanted[what] in found
        text = f"{what} {wanted[what]}: the token sees {shown}"
        yield Finding(ok=is_seen, text=text, code=None if is_seen else "partner_setting_unknown")
