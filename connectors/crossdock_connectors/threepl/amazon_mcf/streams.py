"""The streams of Amazon.

The inventory is listed whole; the token of its next page is valid for 30 seconds only. Orders are listed by the time of
their last status. Shipments of an order in work do not move that time, so such orders are read again in each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from crossdock import (
    Context,
    Filter,
    Finding,
    InventoryLotDraft,
    ProductDraft,
    RawBatch,
    Record,
    RefusedError,
    Stream,
    WarehouseBinDraft,
)
from crossdock.errors import CrossdockError
from crossdock.mapping.row_order_and_cursors import OVERLAP_S, format_iso_instant_cursor
from crossdock.mapping.stream_declaration import Mode
from crossdock.sources import Checkpoint, CursorInBody, NotFoundError
from crossdock.values import exact_json
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.record_mapping_in_code import (
    read_as_member_or_reason,
    version_of_mapping_and_settings,
    with_added_members,
)
from crossdock_connectors.threepl.amazon_mcf import mapping
from crossdock_connectors.threepl.amazon_mcf.repeated_skus import OTHERS, pages_with_one_row_per_sku
from crossdock_connectors.threepl.amazon_mcf.settings import AmazonMcfSettings
from crossdock_connectors.threepl.record_values import ProductSkus, key_of_external_id, possible_external_ids_of_key
from crossdock_connectors.threepl.settings import MAPPED

INVENTORY = "/fba/inventory/v1/summaries"
ORDERS = "/fba/outbound/2020-07-01/fulfillmentOrders"
_ONE_POOL = (
    "stock: Amazon may show the same units in several marketplaces of a region: only one connection of a seller should"
    " read them"
)
FIRST = timedelta(days=7)
"""How far the first run looks back without the setting ``first``."""
AmazonContext = Context[AmazonMcfSettings]


class AmazonStream(Stream[AmazonMcfSettings]):
    mode: Mode = "snapshot"

    def __init__(self, settings: AmazonMcfSettings) -> None:
        self.settings = settings
        self.products = ProductSkus(settings.product_namespace, settings.sku_aliases)
        self.mapping_version = version_of_mapping_and_settings(settings, MAPPED, 2)

    def inventory(self, ctx: AmazonContext) -> Iterator[tuple[list[Any], str]]:
        place = self.settings.marketplace
        params = {"granularityType": "Marketplace", "granularityId": place, "marketplaceIds": place, "details": "true"}
        paginator = CursorInBody("/pagination/nextToken", param="nextToken")
        place_of_records = "/payload/inventorySummaries"
        key = ("sellerSku", "fnSku", "condition")
        for page in ctx.api.pages(INVENTORY, params, paginator=paginator, records=place_of_records, key=key):
            items = page.items(place_of_records)
            yield [with_added_members(item, marketplace=place) for item in items], page.address


class Products(AmazonStream):
    name, resource, key = "products", "product", ("marketplace", "sellerSku")
    uses = ("productName", "fnSku", OTHERS)

    def pull(self, ctx: AmazonContext, since: str | None) -> Iterator[RawBatch]:  # noqa: ARG002  a snapshot
        for items, address in pages_with_one_row_per_sku(ctx, self.inventory(ctx)):
            yield RawBatch.json(items, source=address)

    def to_resource(self, record: Record) -> ProductDraft:
        return mapping.product(record, self.products, self.settings.unit_of_measure)


class Locations(AmazonStream):
    name, resource, key = "locations", "warehouse_bin", ("marketplace",)

    def pull(self, ctx: AmazonContext, since: str | None) -> Iterator[RawBatch]:  # noqa: ARG002  a snapshot
        yield RawBatch.json([{"marketplace": self.settings.marketplace}], source=ctx.connection)

    def to_resource(self, record: Record) -> WarehouseBinDraft:
        return mapping.bin_of_marketplace(record)


class Stock(AmazonStream):
    name, resource, key = "stock", "inventory_lot", ("marketplace", "sellerSku", "state")

    def pull(self, ctx: AmazonContext, since: str | None) -> Iterator[RawBatch]:  # noqa: ARG002  a snapshot
        for items, address in pages_with_one_row_per_sku(ctx, self.inventory(ctx)):
            rows = [with_added_members(item, state=state) for item in items for state in self.settings.stock_states]
            yield RawBatch.json(rows, source=address)

    def to_resource(self, record: Record) -> InventoryLotDraft:
        settings = self.settings
        return mapping.inventory_lot(
            record, self.products, settings.stock_states, settings.no_lot, settings.unit_of_measure
        )


class Shipments(AmazonStream):
    """Status and parcels of the orders that crossdock has sent.

    The cursor is JSON: the time from which the next run lists orders, and the orders that it reads again in any case. A
    list without orders does not move the time: Amazon may be out of order.
    """

    name, resource, mode, key = "shipments", "order", "incremental", ("order_key",)
    contributes = ("status", "tracking")

    def __init__(self, settings: AmazonMcfSettings) -> None:
        super().__init__(settings)
        self.namespace, self.matches = settings.orders.namespace, settings.orders.matches
        place = {"field": "fulfillmentOrder.marketplaceId", "equals": settings.marketplace}
        self.skip = {
            "not_sent_by_crossdock": Filter(field="order_key", empty=True),
            "other_marketplace": Filter.model_validate({"not": place}),
        }

    def pull(self, ctx: AmazonContext, since: str | None) -> Iterator[RawBatch | Checkpoint]:
        now = ctx.run.clock.now()
        begin, left = _parse_since_and_open_orders(since, ctx.settings.first or now - FIRST)
        still_open, has_orders = list[str](), False
        for summaries, address in self._listed_orders(ctx, begin):
            has_orders = has_orders or bool(summaries)
            orders = [self._order_with_shipments(ctx, summary, still_open) for summary in summaries]
            left -= {str(value_at_path_or_missing(summary, "sellerFulfillmentOrderId")) for summary in summaries}
            yield RawBatch.json(orders, source=address)
        for name in sorted(left):
            summary = {"sellerFulfillmentOrderId": name}
            yield RawBatch.json([self._order_with_shipments(ctx, summary, still_open)], source=_order_path(name))
        if has_orders:
            reached = format_iso_instant_cursor(ctx.run.by_clock_of(ctx.connection, now))
        elif since is not None:
            reached = exact_json.loads(since)["since"]
        else:
            return
        cursor = exact_json.dumps({"since": reached, "open": sorted(set(still_open))}).decode()
        yield Checkpoint(cursor, needs_whole_list=True)

    def fetch(self, ctx: AmazonContext, keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        for name in (
            name for (key,) in keys for name in possible_external_ids_of_key(key, self.settings.orders.namespace)
        ):
            try:
                order = self._request_order(ctx, name)
            except NotFoundError:
                continue
            key = key_of_external_id(name, self.settings.orders.namespace)
            yield RawBatch.json([with_added_members(order, order_key=key)], source=_order_path(name))

    def _listed_orders(self, ctx: AmazonContext, begin: datetime) -> Iterator[tuple[list[Any], str]]:
        paginator = CursorInBody("/payload/nextToken", param="nextToken")
        params, records = {"queryStartDate": format_iso_instant_cursor(begin)}, "/payload/fulfillmentOrders"
        key = "sellerFulfillmentOrderId"
        for page in ctx.api.pages(ORDERS, params, paginator=paginator, records=records, key=key):
            yield page.items(records), page.address

    def _order_with_shipments(self, ctx: AmazonContext, summary: Any, still_open: list[str]) -> Any:
        """Return an order with its shipments, or the summary of one that others have sent or that cannot be read.

        Extends *still_open*.
        """
        name = value_at_path_or_missing(summary, "sellerFulfillmentOrderId")
        key = key_of_external_id(name, self.settings.orders.namespace)
        if key is None:
            return {"order_key": None, "fulfillmentOrder": summary}
        read = read_as_member_or_reason("order", lambda: self._request_order(ctx, name))
        place = {"marketplaceId": self.settings.marketplace}
        order = read.get("order", {**read, "fulfillmentOrder": {**place, **summary}})
        if not mapping.is_order_finished(order):
            still_open.append(str(name))
        return with_added_members(order, order_key=key)

    def _request_order(self, ctx: AmazonContext, name: str) -> dict[str, Any]:
        answer = ctx.api.get(_order_path(name))
        order = answer.at("/payload")
        if not isinstance(order, dict):
            raise RefusedError("has no order at /payload", where=answer.address, code="answer_misplaced")
        return order

    def to_resource(self, record: Record) -> dict[str, Any]:
        return mapping.status_and_parcels_of_order(record, self.settings.platform_status_by_3pl_status)


def _parse_since_and_open_orders(since: str | None, first: datetime) -> tuple[datetime, set[str]]:
    if since is None:
        return first, set()
    stored = exact_json.loads(since)
    return datetime.fromisoformat(stored["since"]) - timedelta(seconds=OVERLAP_S), set(stored["open"])


def _order_path(name: str) -> str:
    return f"{ORDERS}/{quote(name, safe='')}"


def streams(settings: AmazonMcfSettings) -> Sequence[AmazonStream]:
    own_products = () if settings.product_namespace else (Products(settings),)
    return [*own_products, Locations(settings), Stock(settings), Shipments(settings)]


def check(ctx: AmazonContext) -> Iterator[Finding]:
    stream = Stock(ctx.settings)
    try:
        items, address = next(stream.inventory(ctx))
        yield Finding(ok=True, text=f"{address} responds, with {len(items):,} SKUs")
    except CrossdockError as error:
        yield Finding(ok=False, text=f"inventory: {error}", code=error.code, category=error.category)
    overrides = getattr(ctx.settings, "streams", {}).get(stream.name)
    if overrides is None or overrides.enabled is not False:
        yield Finding(ok=True, text=_ONE_POOL)
