"""Which records of a Shopify shop were deleted, and which exist."""

from __future__ import annotations

import os
from datetime import timedelta
from unittest import mock

from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.reading import shop_context
from tests.partners.shopify.site import Site

from crossdock.mapping.row_order_and_cursors import OVERLAP_S, format_iso_instant_cursor
from crossdock.values import exact_json
from crossdock.values.raw_rows_and_records import JSON
from crossdock_connectors.shop.shopify.changed_and_deleted_records import (
    batches_of_deleted_keys,
    batches_of_existing_keys,
    deleted_ids_by_kind,
)


def named(site: Site, since: str | None, kind: str) -> list[str | None]:
    """The keys that batches name as deleted."""
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        return [key for batch in batches_of_deleted_keys(shop_context(site), since, kind) for (key,) in batch.deleted]


def test_deleted_records_are_named_by_their_kind() -> None:
    """Orders and customers that were deleted since the last run; one that was deleted long before is not."""
    site = Site()
    order, early = (site.shop.orders.place(Line(site.lamp), email="a@example.com") for _ in range(2))
    ada = site.shop.customers.add("ada@example.com")
    site.shop.orders.delete(early)
    site.clock.advance(OVERLAP_S + 1)
    since = format_iso_instant_cursor(site.clock.now())
    site.shop.orders.delete(order)
    site.shop.customers.delete(ada)
    assert named(site, since, "ORDER") == [str(order.legacy_resource_id)]
    assert named(site, since, "CUSTOMER") == [str(ada.legacy_resource_id)]
    assert named(site, since, "PRODUCT") == []


def test_a_first_run_asks_for_no_deletions() -> None:
    """What was deleted before was never read."""
    site = Site()
    site.shop.orders.delete(site.shop.orders.place(Line(site.lamp), email="a@example.com"))
    assert named(site, None, "ORDER") == []


def test_events_are_read_again_for_the_time_of_the_overlap() -> None:
    """The clocks differ: an event shortly before the last run is named again."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp), email="a@example.com")
    site.shop.orders.delete(order)
    since = format_iso_instant_cursor(site.clock.now() + timedelta(seconds=OVERLAP_S))
    assert named(site, since, "ORDER") == [str(order.legacy_resource_id)]


def test_events_are_asked_for_once_in_a_run() -> None:
    """Orders and customers are in the same answer, and events of a run stay the same."""
    site = Site()
    ctx, since = shop_context(site), format_iso_instant_cursor(site.clock.now())
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        before = deleted_ids_by_kind(ctx, since)
        site.shop.orders.delete(site.shop.orders.place(Line(site.lamp), email="a@example.com"))
        assert deleted_ids_by_kind(ctx, since) is before
    assert before == {}


def test_existing_records_are_listed_by_key() -> None:
    """All pages of them."""
    site = Site()
    for number in range(4):
        site.variant(f"SKU-{number}", "1.00", 1)
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        batches = list(
            batches_of_existing_keys(
                shop_context(site, page_size=2), "productVariants", "id sku", lambda node: node["sku"]
            )
        )
    assert len(batches) == 3
    keys = [exact_json.loads(row[JSON])["key"] for batch in batches for row in batch.load().to_dicts()]
    assert keys == ["LAMP", "SKU-0", "SKU-1", "SKU-2", "SKU-3"]
