"""Reading of ShipBob's lists, and the common parts of its streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from crossdock import Context, Filter, RefusedError, Stream
from crossdock.mapping.row_order_and_cursors import OVERLAP_S, format_iso_instant_cursor
from crossdock.sources import NextUrl, PageNumber
from crossdock.values.json_access import JsonElement
from crossdock.values.json_paths import json_value_as_column_text, value_at_path_or_missing
from crossdock_connectors.record_mapping_in_code import UnreadParts, version_of_mapping_and_settings
from crossdock_connectors.threepl.record_values import ProductSkus
from crossdock_connectors.threepl.settings import MAPPED
from crossdock_connectors.threepl.shipbob.settings import ShipBobSettings

PAGE_SIZE = 250  # the most that ShipBob accepts
Item = dict[str, Any]
ShipBobContext = Context[ShipBobSettings]
Pages = Iterator[tuple[list[Any], str]]
"""The records of each page, and its address."""


class ShipBobStream(Stream[ShipBobSettings]):
    def __init__(self, settings: ShipBobSettings) -> None:
        self.settings = settings
        self.products = ProductSkus(settings.product_namespace, settings.sku_aliases)
        self.mapping_version = version_of_mapping_and_settings(settings, MAPPED, 1)

    @property
    def other_owner_filter(self) -> Filter:
        return Filter.model_validate({"not": {"field": "owner", "equals": self.settings.owner}})

    def raise_if_records_set_aside(self, ctx: ShipBobContext, aside: UnreadParts) -> None:
        """Raise DoubtfulListError if records of this stream were set aside."""
        aside.raise_first_doubt(f"{ctx.connection}.{self.name}")


def cursor_pages(ctx: ShipBobContext, path: str, key: str, **params: str) -> Pages:
    """Yield the pages of a list. Each record has its own *key*, a member by which a repeated page is recognized."""
    sized: dict[str, Any] = {"PageSize": PAGE_SIZE, **params}
    for page in ctx.api.pages(path, sized, paginator=NextUrl("/next"), records="/items", key=key):
        yield page.items("/items"), page.address


def numbered_pages(ctx: ShipBobContext, path: str, params: Mapping[str, str | None]) -> Pages:
    paginator = PageNumber("", param="Page", size=PAGE_SIZE, size_param="Limit")
    for page in ctx.api.pages(path, params, paginator=paginator, key="id"):
        yield page.items(""), page.address


def changed_order_pages(ctx: ShipBobContext, since: str | None) -> Pages:
    """Yield orders whose shipments changed since ten minutes before *since*. Oldest first, so that none is missed."""
    first = ctx.settings.first
    begin = datetime.fromisoformat(since) - timedelta(seconds=OVERLAP_S) if since else first
    changed = None if begin is None else format_iso_instant_cursor(begin)
    return numbered_pages(ctx, "/order", {"SortOrder": "Oldest", "LastUpdateStartDate": changed})


def order_pages_for_external_ids(ctx: ShipBobContext, names: Sequence[str]) -> Pages:
    """Yield the orders with these external ids, oldest first. There must be at least one, and none with a comma."""
    return numbered_pages(ctx, "/order", {"SortOrder": "Oldest", "ReferenceIds": ",".join(names)})


def rows_of_readable_items(
    items: Sequence[Any], kind: str, key: str, read: Callable[[JsonElement], Iterable[Any]], aside: UnreadParts
) -> list[Any]:
    """Return what *read* makes of each item, without those of which a part cannot be read: they are set *aside*.

    *kind* and the member *key* name an item.
    """
    rows = list[Any]()
    for item in items:
        with aside.setting_aside_unreadable(f"{kind} {json_value_as_column_text(value_at_path_or_missing(item, key))}"):
            rows += list(read(JsonElement(item, "")))
    return rows


def merchants_of_inventory_items(ctx: ShipBobContext) -> Mapping[str | None, str]:
    """Return the merchant of each inventory item, by the text of its id. The list is read once in a run."""
    return ctx.shared(
        "shipbob.owners",
        lambda: {
            json_value_as_column_text(value_at_path_or_missing(item, "inventory_id")): str(
                value_at_path_or_missing(item, "user_id")
            )
            for items, _ in cursor_pages(ctx, "/inventory", "inventory_id")
            for item in items
        },
    )


def merchant_of_inventory_item(ctx: ShipBobContext, item_id: Any) -> str:
    """Return the merchant of an item, empty if it is not listed. Raises RefusedError if no items are listed at all."""
    owners = merchants_of_inventory_items(ctx)
    if not owners:
        hint = "ShipBob may be out of order: run again"
        raise RefusedError(
            "lists no items, although others of its lists name some",
            where="/inventory",
            hint=hint,
            code="list_incomplete",
        )
    return owners.get(json_value_as_column_text(item_id), "")
