"""Deleted and existing records of the shop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from crossdock import RawBatch
from crossdock.mapping.incremental_cursors import format_iso_instant_cursor
from crossdock.values.json_paths import at_path
from crossdock_connectors.shop.lists_read_once import OVERLAP
from crossdock_connectors.shop.shopify import queries
from crossdock_connectors.shop.shopify.pages import ShopifyContext, number_in_gid_or_empty, request_pages
from crossdock_connectors.shop.shopify.queries import ShopList

_SIZE = 250


def deleted_records(ctx: ShopifyContext, since: str | None, kind: str) -> Iterator[RawBatch]:
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
    return [record for record in records if at_path(record, "id") not in gone] if gone else records


def _read_deleted_ids_by_kind(ctx: ShopifyContext, since: str) -> Mapping[str, list[str]]:
    begin = format_iso_instant_cursor((datetime.fromisoformat(since) - OVERLAP).replace(microsecond=0))
    found: dict[str, list[str]] = {}
    search = f"action:destroy created_at:>='{begin}'"
    for page in request_pages(ctx, "/data/events", queries.DELETIONS, _SIZE, query=search):
        for event in page.items("/data/events/nodes"):
            gid, kind = at_path(event, "subjectId"), at_path(event, "subjectType")
            if isinstance(gid, str) and isinstance(kind, str):
                found.setdefault(kind, []).append(number_in_gid_or_empty(gid))
    return found


def batches_of_existing_keys(
    ctx: ShopifyContext, name: str, fields: str, key: Callable[[Any], str | None]
) -> Iterator[RawBatch]:
    for page in request_pages(ctx, f"/data/{name}", queries.list_query(name, fields), _SIZE):
        rows = [{"key": key(node)} for node in page.items(f"/data/{name}/nodes")]
        yield RawBatch.json(rows, source=page.address)
