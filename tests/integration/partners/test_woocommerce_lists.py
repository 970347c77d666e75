"""Lists of the fake WooCommerce shop: pages, order, times in two zones, fields, and records that move between pages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_client import BERLIN, ShopClient
from tests.partners.woocommerce.shop_settings import ShopSettings

from crossdock.testing import ManualClock

BEFORE_AUTUMN = datetime(2026, 10, 24, 23, 30, tzinfo=UTC)  # 01:30 in Berlin, whose clocks show 02:00 to 03:00 twice
NOON = "2026-07-01T12:00:00"


def a_shop(start: datetime = datetime(2026, 7, 1, 10, tzinfo=UTC), **options: Any) -> tuple[FakeShop, ManualClock]:
    clock = ManualClock(start)
    return FakeShop(ShopSettings(**options), clock=clock), clock


def orders_of(shop: FakeShop, clock: ManualClock, *pauses: float) -> list[int]:
    """The ids of new orders; before each, seconds pass."""
    found = []
    for pause in pauses:
        clock.advance(pause)
        found.append(shop.orders.create({}).id)
    return found


@given(
    pauses=st.lists(st.sampled_from([0, 0, 1, 3600]), max_size=12),
    size=st.integers(1, 5),
    orderby=st.sampled_from(["date", "modified", "id"]),
    order=st.sampled_from(["asc", "desc"]),
    path=st.sampled_from(["orders", "products"]),
)
@settings(max_examples=40)
def test_pages_have_each_record_once(pauses: list[float], size: int, orderby: str, order: str, path: str) -> None:
    """Also those with equal times; totals are on every page, and links lead on until the last one."""
    shop, clock = a_shop()
    made = []
    for pause in pauses:
        clock.advance(pause)
        made.append((shop.orders.create({}) if path == "orders" else shop.catalog.add("Tea")).id)
    pages = list(ShopClient(shop).pages(path, per_page=size, orderby=orderby, order=order))
    found = [record["id"] for page in pages for record in page.json()]
    assert found == (made if order == "asc" else made[::-1])
    count = -(-len(made) // size)
    assert {(page.headers["x-wp-total"], page.headers["x-wp-totalpages"]) for page in pages} == {
        (str(len(made)), str(count))
    }
    assert ["next" in page.links for page in pages] == [number < count for number in range(1, len(pages) + 1)]
    assert ["prev" in page.links for page in pages] == [number > 1 for number in range(1, len(pages) + 1)]


def test_a_page_has_ten_records_by_default_and_at_most_a_hundred() -> None:
    """The latest first; a page beyond the last is empty, and its link leads back to the last."""
    shop, clock = a_shop()
    made = orders_of(shop, clock, *[1] * 12)
    client = ShopClient(shop)
    assert client.ids("orders") == made[:1:-1]
    beyond = client.ask("GET", "orders", page=9)
    assert (beyond.json(), beyond.headers["x-wp-total"], "page=2" in beyond.links["prev"]["url"]) == ([], "12", True)
    assert client.ids("orders", offset=3, per_page=2) == made[8:6:-1]
    for wrong in (
        {"per_page": 101},
        {"per_page": 0},
        {"page": 0},
        {"per_page": "x"},
        {"orderby": "price"},
        {"order": "up"},
    ):
        assert client.refused("GET", "orders", **wrong) == (400, "rest_invalid_param")


def test_a_record_moves_when_another_changes() -> None:
    """Pages are cut by position: a change while they are read repeats one record, a deletion skips one."""
    shop, clock = a_shop()
    first, second, third, fourth = orders_of(shop, clock, 1, 1, 1, 1)
    client = ShopClient(shop)

    def read(**params: Any) -> list[int]:
        return [record["id"] for page in client.pages("orders", per_page=2, **params) for record in page.json()]

    def before_page_2(change: Callable[[], object]) -> None:
        shop.meanwhile(lambda request: request.param("page") == "2", change)

    before_page_2(lambda: orders_of(shop, clock, 1))
    assert read() == [fourth, third, third, second, first]
    fifth = max(shop.orders.orders)
    before_page_2(lambda: shop.orders.delete(shop.orders.orders[first]))
    assert read(orderby="id", order="asc") == [first, second, fourth, fifth]
    clock.advance(1)
    before_page_2(lambda: shop.orders.edit(shop.orders.orders[second], {}))
    assert read(orderby="modified", order="asc") == [second, third, fifth, second]


def test_customers_of_one_name_have_no_order() -> None:
    """Pages by name may repeat one and skip another, as SQL allows; pages by id do not."""
    shop, _ = a_shop()
    made = [shop.customers.add(f"{number}@example.com", first_name="Ada").id for number in range(4)]
    client = ShopClient(shop)
    by_name = [customer["id"] for page in client.pages("customers", per_page=2) for customer in page.json()]
    by_id = [customer["id"] for page in client.pages("customers", per_page=2, orderby="id") for customer in page.json()]
    assert (by_name, by_id) == ([1, 2, 2, 1], made)
    later = shop.customers.add("z@example.com", first_name="Zoe").id
    assert client.ids("customers", order="desc")[0] == client.ids("customers", orderby="registered_date")[-1] == later


def test_times_are_on_the_sites_clocks_and_in_utc() -> None:
    """Both without an offset; those of events that did not happen are null."""
    shop, _ = a_shop()
    order = shop.orders.create({})
    shown = ShopClient(shop).get(f"orders/{order.id}")
    assert (shown["date_created"], shown["date_created_gmt"]) == (NOON, "2026-07-01T10:00:00")
    assert (shown["date_paid"], shown["date_completed_gmt"]) == (None, None)


@pytest.mark.parametrize("path", ["orders", "products"])
def test_changes_are_found_by_either_time(path: str) -> None:
    """Without an offset a bound is on the site's clocks, with one it is an instant; bounds themselves are excluded."""
    shop, clock = a_shop()
    made = []
    for _ in range(3):
        made.append((shop.orders.create({}) if path == "orders" else shop.catalog.add("Tea")).id)
        clock.advance(60)
    client = ShopClient(shop)
    for bound in (NOON, "2026-07-01T10:00:00Z", "2026-07-01T12:00:00+02:00"):
        assert client.ids(path, modified_after=bound, order="asc") == made[1:]
    assert client.ids(path, modified_after="2026-07-01T10:00:00", dates_are_gmt="true", order="asc") == made[1:]
    between = {"modified_after": NOON, "modified_before": "2026-07-01T12:02:00"}
    assert client.ids(path, **between) == client.ids(path, after=NOON, before="2026-07-01T12:02:00") == [made[1]]
    for wrong in ({"modified_after": "2026-07-01"}, {"after": "soon"}, {"dates_are_gmt": "perhaps"}):
        assert client.refused("GET", path, **wrong) == (400, "rest_invalid_param")


def test_an_offset_beside_dates_are_gmt_is_misread() -> None:
    """WordPress converts the bound to the site's clocks, and compares it with UTC: two hours of changes are missing."""
    shop, clock = a_shop()
    made = orders_of(shop, clock, 0, 3600, 3600, 3600)
    after = {"modified_after": "2026-07-01T10:00:00Z", "dates_are_gmt": "true"}
    assert ShopClient(shop).ids("orders", **after, order="asc") == made[3:]


def test_a_bound_in_springs_missing_hour_is_moved() -> None:
    """02:30 in UTC is a good bound, and WordPress makes 03:30 of it, as that hour is missing on the site's clocks."""
    shop, clock = a_shop(datetime(2026, 3, 29, 2, 45, tzinfo=UTC))
    made = orders_of(shop, clock, 0, 3600)
    assert ShopClient(shop).ids("orders", modified_after="2026-03-29T02:30:00", dates_are_gmt="true") == made[1:]


def test_a_local_time_of_autumns_repeated_hour_is_no_position() -> None:
    """Four changes half an hour apart show 01:30, 02:00, 02:30 and 02:00 again. In UTC all are found; by local time
    orders are read from the first of two, and products are compared as texts, so that a later one is missing."""
    found = {}
    for path in ("orders", "products"):
        shop, clock = a_shop(BEFORE_AUTUMN)
        made = []
        for _ in range(4):
            made.append((shop.orders.create({}) if path == "orders" else shop.catalog.add("Tea")).id)
            clock.advance(1800)
        client = ShopClient(shop)
        shown = client.get(path, order="asc", orderby="id")
        assert [record["date_modified"][11:16] for record in shown] == ["01:30", "02:00", "02:30", "02:00"]
        assert client.ids(path, modified_after="2026-10-25T00:00:00", dates_are_gmt="true", orderby="id") == made[:1:-1]
        found[path] = [
            made.index(each) for each in client.ids(path, modified_after="2026-10-25T02:00:00", orderby="id")
        ]
        by_change = [made.index(each) for each in client.ids(path, orderby="modified", order="asc")]
        assert by_change == ([0, 1, 2, 3] if path == "orders" else [0, 1, 3, 2])
    assert found == {"orders": [3, 2], "products": [2]}


@given(
    moments=st.lists(st.integers(0, 6 * 12), min_size=1, max_size=8),
    bound=st.integers(0, 6 * 12),
    path=st.sampled_from(["orders", "products"]),
)
@settings(max_examples=40)
def test_a_bound_in_utc_finds_exactly_the_later_changes(moments: list[int], bound: int, path: str) -> None:
    """Through the night in which the clocks go back, in steps of five minutes."""
    shop, clock = a_shop(BEFORE_AUTUMN)
    wanted, passed = [], 0
    for moment in sorted(moments):
        clock.advance((moment - passed) * 300)
        passed = moment
        made = shop.orders.create({}) if path == "orders" else shop.catalog.add("Tea")
        if moment > bound:
            wanted.append(made.id)
    after = (BEFORE_AUTUMN + timedelta(minutes=5 * bound)).replace(tzinfo=None).isoformat()
    params = {"modified_after": after, "dates_are_gmt": "true", "orderby": "modified", "order": "asc", "per_page": 100}
    assert sorted(ShopClient(shop).ids(path, **params)) == wanted


def test_an_old_shop_ignores_the_filter() -> None:
    """Before WooCommerce 5.8 ``modified_after`` was an unknown parameter, and those are ignored."""
    shop, clock = a_shop(filters_by_change=False)
    made = orders_of(shop, clock, 0, 0)
    client = ShopClient(shop)
    assert client.ids("orders", modified_after="2030-01-01T00:00:00", unknown="x") == made[::-1]
    assert client.ids("orders", after="2030-01-01T00:00:00") == []


def test_lists_have_the_members_that_were_asked_for() -> None:
    """``_fields`` names members, and members of objects with a point."""
    shop, _ = a_shop()
    order = shop.orders.create({"billing": BERLIN})
    client = ShopClient(shop)
    wanted = {"id": order.id, "billing": {"city": "Berlin", "country": "DE"}}
    fields = "id,billing.city,billing.country,unknown,total.x"
    assert client.get("orders", _fields=fields) == [wanted]
    assert client.get(f"orders/{order.id}", _fields=fields) == wanted
    assert client.get("orders")[0]["_links"]["self"] == [{"href": f"{shop.site}/wp-json/wc/v3/orders/{order.id}"}]


def test_records_are_chosen_by_id_and_status() -> None:
    """With ``include``, ``exclude`` and several statuses, in each of the ways to write a list. Of a repeated parameter
    the last one counts, as PHP has it."""
    shop, clock = a_shop()
    first, second, third = orders_of(shop, clock, 0, 1, 1)
    shop.orders.edit(shop.orders.orders[second], {"status": "completed"})
    shop.orders.edit(shop.orders.orders[third], {"status": "failed"})
    client = ShopClient(shop)
    assert client.ids("orders", include=f"{first},{third}") == [third, first]
    assert client.ids("orders", exclude=second) == [third, first]
    assert client.ids("orders", status=["failed", "pending"]) == [first]
    two = {"status[]": ["completed", "pending"]}
    assert client.ids("orders", **two) == client.ids("orders", status="completed,pending") == [second, first]
    assert client.ids("orders", **{"status[0]": "completed", "status[1]": "pending"}) == [second, first]
