"""The changes in a list of the shop since a run, read once for all streams of a connection."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from crossdock.mapping.incremental_cursors import format_iso_instant_cursor
from crossdock_connectors.shop.lists_read_once import OVERLAP, Pages, StoredList, read_list_once_per_run
from crossdock_connectors.shop.shopify import bulk_list_reading
from crossdock_connectors.shop.shopify.deleted_and_existing_records import records_not_deleted_since
from crossdock_connectors.shop.shopify.pages import ShopifyContext, changed_since_search, record_pages
from crossdock_connectors.shop.shopify.queries import ORDERS, ShopList

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
        lambda: completed(_pages(ctx, shop_list, since, begun)),
        lambda: completed(iter(()) if since is None else more()),
        made_at=lambda: min(begun, default=None),
    )


def _lists_read_by_cursor(ctx: ShopifyContext) -> set[str]:
    return ctx.shared("shopify.lists_read_by_cursor", set[str])


def _pages(ctx: ShopifyContext, shop_list: ShopList, since: str | None, begun: list[datetime]) -> Pages:
    """Yield the changed records; after a bulk operation, whose beginning *begun* gets, also those changed since then.

    A bulk operation without records shows nothing: then the pages are those of the whole list. A list that is read in
    full after its changes has to find what they miss, and an earlier operation may miss it as well.
    """
    first = ctx.settings.first if shop_list is ORDERS else None  # orders refer to products and customers of any age
    begin = datetime.fromisoformat(since) - OVERLAP if since else first
    if since is None and ctx.settings.bulk:
        found = bulk_list_reading.run_or_reuse_bulk_operation(
            ctx,
            shop_list,
            changed_since_moment_search(first) or "",
            reuse=shop_list.name not in _lists_read_by_cursor(ctx),
        )
        for records, source in found.pages:
            begin = found.begun - OVERLAP
            begun.append(found.begun)
            yield records_not_deleted_since(ctx, shop_list, found.begun, records), source
    yield from record_pages(ctx, shop_list, _search_time(begin))


def changed_since_moment_search(moment: datetime | None) -> str | None:
    return changed_since_search(_search_time(moment))


def _search_time(moment: datetime | None) -> str | None:
    return None if moment is None else format_iso_instant_cursor(moment.replace(microsecond=0))
