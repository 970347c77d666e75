"""The changes in a list of the shop since a run, read once for all streams of a connection."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from crossdock.mapping.incremental_cursors import format_iso_instant_cursor
from crossdock_connectors.shop.lists_read_once import OVERLAP, Pages, StoredList, read_list_once_per_run
from crossdock_connectors.shop.shopify import bulk_list_reading
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

    def completed(pages: Pages) -> Pages:
        for records, source in pages:
            yield complete(ctx, records), source

    return read_list_once_per_run(
        ctx,
        shop_list.name,
        since,
        lambda: completed(_pages(ctx, shop_list, since)),
        lambda: completed(iter(()) if since is None else more()),
    )


def _pages(ctx: ShopifyContext, shop_list: ShopList, since: str | None) -> Pages:
    """Yield the changed records; after a bulk operation also those that changed since it began.

    A bulk operation without records shows nothing: then the pages are those of the whole list.
    """
    first = ctx.settings.first if shop_list is ORDERS else None  # orders refer to products and customers of any age
    begin = datetime.fromisoformat(since) - OVERLAP if since else first
    if since is None and ctx.settings.bulk:
        found = bulk_list_reading.run_or_reuse_bulk_operation(
            ctx, shop_list, changed_since_moment_search(first) or "", reuse=True
        )
        for page in found.pages:
            begin = found.begun - OVERLAP
            yield page
    yield from record_pages(ctx, shop_list, _search_time(begin))


def changed_since_moment_search(moment: datetime | None) -> str | None:
    return changed_since_search(_search_time(moment))


def _search_time(moment: datetime | None) -> str | None:
    return None if moment is None else format_iso_instant_cursor(moment.replace(microsecond=0))
