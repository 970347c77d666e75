"""Lists of a Shopify shop in pages, each record with all of its children."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest import mock

import httpx
import pytest
from tests.partners.partner_transport import transport
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.reading import drafts, json_record, shop_context
from tests.partners.shopify.site import Site
from tests.partners.shopify.watched import WatchedShop

from crossdock import Context, RecordError
from crossdock.sources import GraphQLError, UnavailableError
from crossdock_connectors.shop.shopify.queries import ORDERS, STOCK, ShopList
from crossdock_connectors.shop.shopify.requests_and_complete_lists import (
    complete_undeleted_records,
    number_in_gid_or_empty,
    pages_of_changed_records,
    record_with_sorted_children,
    search_for_changes_since,
)


@contextmanager
def run(site: Site, **settings: Any) -> Iterator[Context[Any]]:
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        yield shop_context(site, bulk=False, **settings)


def records(ctx: Context[Any], shop_list: ShopList = ORDERS) -> list[Any]:
    return [record for page, _ in pages_of_changed_records(ctx, shop_list) for record in page]


def disturbed(site: Site, before: Callable[[bytes], None]) -> Any:
    """The shop; *before* is called with each request before it is answered."""
    inner = transport(site.shop)

    def answer(request: httpx.Request) -> httpx.Response:
        before(request.read())
        return inner.handle_request(request)

    return mock.patch("tests.partners.shopify.reading.transport", return_value=httpx.MockTransport(answer))


def order_with(site: Site, lines: int) -> str:
    """The global id of a new order with as many lines."""
    items = [Line(None, 1, title=f"Item {number}") for number in range(lines)]
    return site.shop.orders.place(*items, email="a@b.example").id


@pytest.mark.parametrize("count", [0, 1, 30, 31, 130, 131, 260])
def test_children_of_further_pages_are_read(count: int) -> None:
    """However many lines an order has, all are there once, in the order of their ids."""
    site = Site()
    order_with(site, count)
    with run(site) as ctx:
        [record] = records(ctx)
    assert [line["name"] for line in record["lineItems"]] == [f"Item {number}" for number in range(count)]


@pytest.mark.parametrize("page", [None, {}, {"hasNextPage": None}])
def test_children_that_do_not_say_whether_they_are_all_are_refused(page: Any) -> None:
    """The record stays as it was read, so that it is a dead letter where its children are needed."""
    order = {"id": "gid://shopify/Order/1", "lineItems": {"nodes": [], "pageInfo": page}}
    with run(Site()) as ctx:
        assert complete_undeleted_records(ctx, ORDERS, [order]) == [order]
    with pytest.raises(RecordError, match="should be a list"):
        json_record(order).each("/lineItems")


def test_children_inside_another_object_are_read() -> None:
    """The levels of a variant belong to its inventory item, and are moved out of it."""
    site = Site()
    for number in range(25):
        site.shop.catalog.stock(site.lamp, site.shop.catalog.add_location(f"Place {number}"), 1)
    with run(site) as ctx:
        [record] = records(ctx, STOCK)
    assert len({level["id"] for level in record["inventoryLevels"]}) == 26
    assert record["inventoryItem"].keys() == {"id", "tracked"}


def test_pages_and_a_bulk_operation_read_the_same() -> None:
    """Each stream has the same drafts from both, also of orders and variants with further pages of children."""
    site = Site()
    order_with(site, 70)
    site.shop.orders.refund(site.shop.orders.place(Line(site.lamp, 3), email="c@d.example"), {"LAMP": 1})
    for stream in ("products", "customers", "orders", "invoices", "stock", "locations"):
        paged, bulk = (drafts(site, stream, bulk=bulk) for bulk in (False, True))
        assert paged == bulk, stream
        assert paged, stream


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_list_is_read_on_after_its_cursor_has_expired(size: int) -> None:
    """Reading goes on from the last change that was read, and every record is there."""
    site = Site()
    ids = []
    for _ in range(7):
        ids.append(order_with(site, 1))
        site.clock.advance(1)
    site.clock.advance(3_600)  # changes of the last minutes are no place to read on from
    life = site.shop._cursors
    with run(site, page_size=size) as ctx:
        site.shop._cursors = type(life)(timedelta(seconds=30))
        found = []
        for number, (page, _) in enumerate(pages_of_changed_records(ctx, ORDERS)):
            found += [record["id"] for record in page]
            if number == 1:
                site.clock.advance(60)
    assert set(found) == set(ids)


def test_a_cursor_that_expires_without_progress_is_an_error() -> None:
    """Otherwise the same page would be asked for without end."""
    site = Site()
    for _ in range(3):
        order_with(site, 1)  # all at the same instant
    site.shop._cursors = type(site.shop._cursors)(timedelta(0))
    with run(site, page_size=1) as ctx, pytest.raises(GraphQLError):
        records(ctx)


def test_a_record_that_exists_is_not_taken_for_deleted() -> None:
    """Null in its place, when more of its lines are asked for, ends the list: the next run reads it again."""
    site = Site()
    order_with(site, 31)
    shop = WatchedShop(site.shop)
    shop.changed = lambda name, body: {"data": {"node": None}} if name == "lineItems" else body
    answers = mock.patch("tests.partners.shopify.reading.transport", return_value=transport(shop))
    with answers, run(site) as ctx, pytest.raises(UnavailableError, match=r"which exists, when asked for more"):
        records(ctx)


def test_a_record_that_is_deleted_while_it_is_read_is_left_out() -> None:
    """The run tells of it, and the others are read."""
    site = Site()
    gone, kept = order_with(site, 31), order_with(site, 31)

    def delete(body: bytes) -> None:
        order = site.shop.records.any(gone)
        if b"node(id" in body and order is not None:
            site.shop.orders.delete(order)  # type: ignore[arg-type]  # the record with the id of an order

    with disturbed(site, delete), run(site) as ctx:
        found = [record["id"] for record in records(ctx)]
    assert found == [kept]
    assert ctx.run.notes == {"shopify": [f"{gone} was deleted while it was read, and is left out"]}


@pytest.mark.parametrize(
    ("gid", "number"),
    [
        ("gid://shopify/Order/12", "12"),
        ("gid://shopify/InventoryLevel/11?inventory_item_id=7", "11"),
        ("12", "12"),
        ("", ""),
    ],
)
def test_the_number_of_a_global_id(gid: str, number: str) -> None:
    """Without what stands before and after it."""
    assert number_in_gid_or_empty(gid) == number


def test_children_are_in_the_order_of_their_numbers() -> None:
    """Nine comes before ten, and what has no number comes first."""
    child = ORDERS.children
    assert child is not None
    nine, ten, other = ({"id": gid} for gid in ("gid://shopify/LineItem/9", "gid://shopify/LineItem/10", "x"))
    made = record_with_sorted_children({"id": "1"}, child, [ten, nine, None, other])
    assert made["lineItems"] == [None, other, nine, ten]


def test_a_search_for_changes() -> None:
    """The time is in quotes."""
    assert search_for_changes_since("2026-03-01T12:00:00Z") == "updated_at:>='2026-03-01T12:00:00Z'"
    assert search_for_changes_since(None) is None


def test_an_ended_version_is_told_once() -> None:
    """A shop that serves another version, or calls a query deprecated, is a warning for each run."""
    site = Site()
    for _ in range(3):
        order_with(site, 1)
    inner = transport(site.shop)

    def answer(request: httpx.Request) -> httpx.Response:
        given = inner.handle_request(request)
        given.headers.update({"x-shopify-api-version": "2027-07", "x-shopify-api-deprecated-reason": "see there"})
        return given

    answers = mock.patch("tests.partners.shopify.reading.transport", return_value=httpx.MockTransport(answer))
    with answers, run(site, page_size=1) as ctx:
        assert len(records(ctx)) == 3
    ended = "the shop serves version 2027-07 of its API in place of 2026-10, which has ended"
    assert ctx.run.warnings == [
        "shopify: the shop calls a query deprecated: see there [api_outdated]",
        f"shopify: {ended}: upgrade crossdock [api_outdated]",
    ]
