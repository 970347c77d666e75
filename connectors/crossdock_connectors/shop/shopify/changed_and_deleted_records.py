"""The records of a list of the shop that changed or were deleted since a run, read once for all streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from crossdock import RawBatch
from crossdock.mapping.row_order_and_cursors import format_iso_instant_cursor
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.shop.lists_read_once import OVERLAP, Pages, StoredList, read_list_once_per_run
from crossdock_connectors.shop.shopify import bulk_operations, queries
from crossdock_connectors.shop.shopify.queries import ORDERS, ShopList
from crossdock_connectors.shop.shopify.requests_and_complete_lists import (
    ShopifyContext,
    number_in_gid_or_empty,
    pages_of_changed_records,
    request_pages,
    search_for_changes_since,
)

_SIZE = 250


def batches_of_deleted_keys(ctx: ShopifyContext, since: str | None, kind: str) -> Iterator[RawBatch]:
    """Yield the records of one kind, such as ``ORDER``, that the shop's events name as deleted; none in a first run.

    The event of a product does not name its variants; a list of existing ones shows those.
    """
    found = deleted_ids_by_kind(ctx, since)
    if found.get(kind):
        yield RawBatch.json([], source=f"events of deletion since {since}", deleted=found[kind])


def deleted_ids_by_kind(ctx: ShopifyContext, since: str | None) -> Mapping[str, list[str]]:
    if since is None:
        return {}
    return ctx.shared(("shopify.deletions", since), lambda: _read_deleted_ids_by_kind(ctx, since))


def records_not_deleted_since(
    ctx: ShopifyContext, shop_list: ShopList, moment: datetime, records: list[Any]
) -> list[Any]:
    deleted = deleted_ids_by_kind(ctx, format_iso_instant_cursor(moment)).get(shop_list.type_name.upper(), [])
    gone = {f"gid://shopify/{shop_list.type_name}/{number}" for number in deleted}
    return [record for record in records if value_at_path_or_missing(record, "id") not in gone] if gone else records


def _read_deleted_ids_by_kind(ctx: ShopifyContext, since: str) -> Mapping[str, list[str]]:
    begin = format_iso_instant_cursor((datetime.fromisoformat(since) - OVERLAP).replace(microsecond=0))
    found: dict[str, list[str]] = {}
    search = f"action:destroy created_at:>='{begin}'"
    for page in request_pages(ctx, "/data/events", queries.DELETIONS, _SIZE, query=search):
        for event in page.items("/data/events/nodes"):
            gid, kind = value_at_path_or_missing(event, "subjectId"), value_at_path_or_missing(event, "subjectType")
            if isinstance(gid, str) and isinstance(kind, str):
                found.setdefault(kind, []).append(number_in_gid_or_empty(gid))
    return found


def batches_of_existing_keys(
    ctx: ShopifyContext, name: str, fields: str, key: Callable[[Any], str | None]
) -> Iterator[RawBatch]:
    for page in request_pages(ctx, f"/data/{name}", queries.list_query(name, fields), _SIZE):
        rows = [{"key": key(node)} for node in page.items(f"/data/{name}/nodes")]
        yield RawBatch.json(rows, source=page.address)


Complete = Callable[[ShopifyContext, list[Any]], list[Any]]


def stored_changed_records(
    ctx: ShopifyContext,
    shop_list: ShopList,
    since: str | None,
    *,
    more: Callable[[], Pages] = lambda: iter(()),
    complete: Complete = lambda _, page: page,
) -> StoredList:
    """Return the records that changed since the cursor *since*, with those of *more*, or all without a cursor."""
    begun: list[datetime] = []

    def completed(pages: Pages) -> Pages:
        for records, source in pages:
            yield complete(ctx, records), source

    if since is not None:
        _lists_read_by_cursor(ctx).add(shop_list.name)
    return read_list_once_per_run(
        ctx,
        shop_list.name,
        since,
        lambda: completed(_pages_since_cursor_or_bulk_operation(ctx, shop_list, since, begun)),
        lambda: completed(iter(()) if since is None else more()),
        made_at=lambda: min(begun, default=None),
    )


def _lists_read_by_cursor(ctx: ShopifyContext) -> set[str]:
    return ctx.shared("shopify.lists_read_by_cursor", set[str])


def _pages_since_cursor_or_bulk_operation(
    ctx: ShopifyContext, shop_list: ShopList, since: str | None, begun: list[datetime]
) -> Pages:
    """Yield the changed records; after a bulk operation, whose beginning *begun* gets, also those changed since then.

    A bulk operation without records shows nothing: then the pages are those of the whole list. A list that is read in
    full after its changes has to find what they miss, and an earlier operation may miss it as well.
    """
    first = ctx.settings.first if shop_list is ORDERS else None  # orders refer to products and customers of any age
    begin = datetime.fromisoformat(since) - OVERLAP if since else first
    if since is None and ctx.settings.bulk:
        found = bulk_operations.read_list_by_bulk_operation(
            ctx,
            shop_list,
            changed_since_moment_search(first) or "",
            reuse=shop_list.name not in _lists_read_by_cursor(ctx),
        )
        for records, source in found.pages:
            begin = found.begun - OVERLAP
            begun.append(found.begun)
            yield records_not_deleted_since(ctx, shop_list, found.begun, records), source
    yield from pages_of_changed_records(ctx, shop_list, _search_time(begin))


def changed_since_moment_search(moment: datetime | None) -> str | None:
    return search_for_changes_since(_search_time(moment))


def _search_time(moment: datetime | None) -> str | None:
    return None if moment is None else format_iso_instant_cursor(moment.replace(microsecond=0))
