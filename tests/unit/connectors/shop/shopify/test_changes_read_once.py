"""What changed in a list of a Shopify shop, from where a run continues."""

from __future__ import annotations

import os
from datetime import timedelta
from unittest import mock

import pytest
from tests.partners.shopify.access import ALL_SCOPES
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.reading import CONNECTOR, drafts, shop_context
from tests.partners.shopify.site import Site

from crossdock.mapping.row_order_and_cursors import OVERLAP_S, format_iso_instant_cursor
from crossdock.testing.connector_context_and_reading import read
from crossdock_connectors.shop.lists_read_once import StoredList
from crossdock_connectors.shop.shopify.changed_and_deleted_records import (
    changed_since_moment_search,
    stored_changed_records,
)
from crossdock_connectors.shop.shopify.queries import CUSTOMERS, ORDERS


def aged(days: int) -> Site:
    """A shop with an order, a customer and a product that nobody has changed for *days* days."""
    site = Site()
    site.shop.orders.place(Line(site.lamp), customer=site.shop.customers.add("ada@example.com"))
    site.clock.advance(timedelta(days=days).total_seconds())
    return site


@pytest.mark.parametrize("bulk", [True, False])
def test_first_limits_orders_only(bulk: bool) -> None:
    """Orders before ``first`` are left out, but products and customers that later orders name are read at any age."""
    site = aged(days=30)
    site.shop.orders.place(Line(site.lamp), email="bo@example.com")
    first = (site.clock.now() - timedelta(days=1)).isoformat()
    assert len(drafts(site, "orders", first=first, bulk=bulk)) == 1
    assert str(site.lamp.legacy_resource_id) in drafts(site, "products", first=first, bulk=bulk)
    assert len(drafts(site, "customers", first=first, bulk=bulk)) == 2  # the account, and the guest of the late order


@pytest.mark.parametrize(("late_s", "is_read"), [(-1, False), (0, True), (1, True)])
def test_a_run_reads_again_what_changed_shortly_before_the_last_one(late_s: int, is_read: bool) -> None:
    """Exactly as long as the overlap: clocks differ, and the shop's search lags behind."""
    site = aged(days=1)
    changed_at = site.clock.now()
    site.shop.orders.place(Line(site.lamp), email="bo@example.com")
    site.clock.advance(3600)
    since = format_iso_instant_cursor(changed_at + timedelta(seconds=OVERLAP_S - late_s))
    assert len(drafts(site, "orders", since)) == is_read


def test_a_feed_is_read_once_for_all_streams() -> None:
    """Orders, guests and invoices come from the same pages, and the cursor is when reading began."""
    site = aged(days=0)
    began = site.clock.now()
    ctx = shop_context(site, bulk=False)
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        first = stored_changed_records(ctx, ORDERS, None)
        site.clock.advance(60)
        site.shop.orders.place(Line(site.lamp), email="bo@example.com")
        again = stored_changed_records(ctx, ORDERS, None)
    assert first is again
    assert first.cursor == format_iso_instant_cursor(began)
    assert [len(records) for records, _ in first.pages()] == [1]


def stored_orders(site: Site, *cursors: str | None) -> list[StoredList]:
    """What one run reads of the orders from each of the *cursors*, one after the other."""
    ctx = shop_context(site)
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        return [stored_changed_records(ctx, ORDERS, cursor) for cursor in cursors]


def order_names(stored: StoredList) -> set[str]:
    return {record["name"] for records, _ in stored.pages() for record in records}


def test_a_record_that_was_deleted_after_a_bulk_operation_is_left_out() -> None:
    """The file of an earlier operation still has it, and the events of the shop name it."""
    site = aged(days=0)
    deleted = site.shop.orders.place(Line(site.lamp), email="bo@example.com")
    [before] = stored_orders(site, None)
    assert order_names(before) == {"#1001", "#1002"}
    site.clock.advance(3600)
    site.shop.orders.delete(deleted)
    [again] = stored_orders(site, None)
    assert order_names(again) == {"#1001"}


def test_the_run_after_an_operation_that_was_used_again_continues_when_it_began() -> None:
    """Records that were deleted or merged since then are named to the next run."""
    site = aged(days=0)
    began = site.clock.now().replace(microsecond=0)
    stored_orders(site, None)
    site.clock.advance(3600)
    [again] = stored_orders(site, None)
    assert again.cursor == format_iso_instant_cursor(began)


def test_a_list_that_is_read_in_full_after_its_changes_begins_a_new_operation() -> None:
    """A full list beside the changes finds what the changes missed, which an earlier file lacks as well."""
    site = aged(days=0)
    stored_orders(site, None)
    site.clock.advance(3600)
    stored_orders(site, format_iso_instant_cursor(site.clock.now()), None)
    assert sum(effect["kind"] == "bulk_started" for effect in site.shop.effects) == 2


def test_each_list_and_cursor_has_a_feed_of_its_own() -> None:
    """Streams that continue from different cursors do not share what they read."""
    site = aged(days=0)
    since = format_iso_instant_cursor(site.clock.now() + timedelta(days=1))
    site.clock.advance(3600)
    ctx = shop_context(site, bulk=False)
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        found: list[StoredList] = [
            stored_changed_records(ctx, ORDERS, None),
            stored_changed_records(ctx, ORDERS, since),
            stored_changed_records(ctx, CUSTOMERS, None),
        ]
    assert len({feed.path for feed in found}) == 3
    assert [sum(len(records) for records, _ in feed.pages()) for feed in found] == [1, 0, 1]


def test_a_search_has_whole_seconds_and_quotes() -> None:
    """Shopify takes no notice of times without quotes."""
    moment = Site().clock.now().replace(microsecond=999_999)
    assert (
        changed_since_moment_search(moment)
        == f"updated_at:>='{format_iso_instant_cursor(moment.replace(microsecond=0))}'"
    )
    assert changed_since_moment_search(None) is None


@pytest.mark.parametrize(
    ("scopes", "days", "warned"),
    [
        pytest.param(ALL_SCOPES, None, False, id="all orders are seen"),
        pytest.param(ALL_SCOPES - {"read_all_orders"}, None, True, id="no limit"),
        pytest.param(ALL_SCOPES - {"read_all_orders"}, 60, True, id="an old limit"),
        pytest.param(ALL_SCOPES - {"read_all_orders"}, 59, False, id="a young limit"),
    ],
)
def test_a_first_run_warns_of_orders_that_it_cannot_see(scopes: frozenset[str], days: int | None, warned: bool) -> None:
    """Once for all streams of orders; a later run does not."""
    site = Site(scopes=scopes)
    first = {} if days is None else {"first": (site.clock.now() - timedelta(days=days)).isoformat()}
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        ctx = shop_context(site, bulk=False, **first)
        for stream in ("customers", "orders", "invoices"):
            read(CONNECTOR, ctx, stream)
        later = shop_context(site, bulk=False, **first)
        read(CONNECTOR, later, "orders", since=format_iso_instant_cursor(site.clock.now()))
    text = "shopify: the token lacks the scope read_all_orders: orders older than 60 days are not seen [scopes_missing]"
    assert ctx.run.warnings == ([text] if warned else [])
    assert later.run.warnings == []
