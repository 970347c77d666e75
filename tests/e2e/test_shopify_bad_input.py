"""Bad answers of a Shopify shop: each has a reason that people see, and none ends what is whole."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.shopify_records import completed, eight_orders, key, orders, told
from tests.partners.shop_stage import ShopifyStage, shopify_stage
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.site import Site

from crossdock.sandbox import SandboxServer, SandboxSettings

UNPACED = SandboxSettings(rate_per_min=600_000, burst=100_000)
ORDER_STREAMS = {"shop.customers", "shop.orders", "shop.invoices"}
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def site() -> Site:
    return eight_orders()


@pytest.fixture
def paged(tmp_path: Path, site: Site) -> Iterator[ShopifyStage]:
    """Reads it page by page, three records on each."""
    with (
        SandboxServer(tmp_path / "sandbox", UNPACED) as sandbox,
        shopify_stage(tmp_path, sandbox, site, page_size=3, bulk=False) as stage,
    ):
        yield stage


@pytest.fixture
def bulk(tmp_path: Path, site: Site) -> Iterator[ShopifyStage]:
    """Reads it by bulk operations."""
    with (
        SandboxServer(tmp_path / "sandbox", UNPACED) as sandbox,
        shopify_stage(tmp_path, sandbox, site) as stage,
    ):
        yield stage


# ---- access


@pytest.mark.nightly
def test_a_token_that_expires_between_pages_ends_the_streams_that_need_it(paged: ShopifyStage, site: Site) -> None:
    """What was not read is not taken for deleted; the next run with a valid token reads all."""
    token = site.shop.token

    def expire(_: int) -> None:
        if paged.watched.asked.count("orders") == 2:
            site.shop.token = "another"

    paged.watched.before = expire
    report = paged.sync()
    reason = (
        "refused the credentials (HTTP 401): "
        "[API] Invalid API key or access token (unrecognized login or wrong password)"
    )
    assert set(told(report)) >= ORDER_STREAMS
    assert {told(report)[stream] for stream in ORDER_STREAMS} == {reason}
    assert report.exit_code == 3
    site.shop.token, paged.watched.before = token, lambda _: None
    completed(paged)


@pytest.mark.nightly
def test_a_scope_that_is_revoked_between_pages_ends_the_streams_that_need_it(paged: ShopifyStage, site: Site) -> None:
    """The reason names the field and the scope; products still arrive."""
    scopes = site.shop.scopes

    def revoke(_: int) -> None:
        if paged.watched.asked.count("orders") == 2:
            site.shop.scopes = scopes - {"read_orders"}

    paged.watched.before = revoke
    report = paged.sync()
    reason = (
        "answered with GraphQL errors: Access denied for orders field. Required access: `read_orders` access scope."
    )
    assert {stream: text for stream, text in told(report).items() if stream != "shop.customers"} == dict.fromkeys(
        ORDER_STREAMS - {"shop.customers"}, reason
    )
    assert any("shop:" in name for name in paged.stored("product"))
    site.shop.scopes, paged.watched.before = scopes, lambda _: None
    completed(paged)


# ---- answers that are none


def test_one_html_page_is_tried_again_and_five_end_the_stream(paged: ShopifyStage, site: Site) -> None:
    """An error page of a server in front of the shop costs a pause; while it stays, the reason is its status."""
    site.shop.interrupt("html")
    report = paged.sync("shop.products")
    assert (report.exit_code, told(report)) == (0, {})
    site.shop.interrupt("html", "html", "html", "html", "html")
    report = paged.sync("shop.products")
    assert told(report) == {"shop.products": "failed 5 times; last error: HTTP 502"}
    completed(paged)


def test_errors_inside_200_are_tried_again(paged: ShopifyStage, site: Site) -> None:
    """An internal error of the shop, before or after it has read, costs a pause and no record."""
    site.shop.interrupt("internal_error", "internal_error_after", "too_many")
    completed(paged)


@pytest.mark.nightly
def test_a_field_that_fails_beside_data_ends_the_stream(paged: ShopifyStage, site: Site) -> None:
    """Data with an error beside it is not taken for a whole answer."""
    site.shop.failing = frozenset({"fulfillments"})
    report = paged.sync("shop.products", "shop.orders")
    said = told(report)
    assert list(said) == ["shop.orders"]
    assert said["shop.orders"].startswith("failed 5 times; last error: a GraphQL query failed with an internal error: ")
    assert paged.stored("order") == {}
    site.shop.failing = frozenset()
    completed(paged)


@pytest.mark.nightly
def test_a_list_that_is_null_ends_the_stream(paged: ShopifyStage) -> None:
    """A page without its list is not an empty page."""

    def broken(name: str, body: Any) -> Any:
        if name == "orders":
            body["data"]["orders"]["nodes"] = None
        return body

    paged.watched.changed = broken
    report = paged.sync("shop.products", "shop.orders")
    (reason,) = told(report).values()
    assert "has no list at /data/orders/nodes" in reason
    paged.watched.changed = None
    completed(paged)


# ---- records


def _broken(changes: dict[str, Change]) -> Callable[[str, Any], Any]:
    """Changes orders by their ids, in pages and in files."""

    def changed(name: str, body: Any) -> Any:
        if name == "file":
            lines = [json.loads(line) for line in body.splitlines()]
            return b"".join(json.dumps(_changed(line)).encode() + b"\n" for line in lines)
        found = (body.get("data") or {}).get("orders") or {}
        found["nodes"] = [_changed(record) for record in found.get("nodes") or ()]
        return body

    def _changed(record: dict[str, Any]) -> dict[str, Any]:
        if record.get("id") in changes:
            changes[record["id"]](record)
        return record

    return changed


def _set(pointer: str, value: Any) -> Change:
    *path, last = pointer.split("/")

    def change(record: dict[str, Any]) -> None:
        for name in path:
            record = record[name]
        record[last] = value

    return change


BAD_ORDERS: list[tuple[str, Any, dict[str, str]]] = [
    (
        "displayFulfillmentStatus",
        "TELEPORTED",
        {"orders": "bad_value /displayFulfillmentStatus: is a status that is not in the setting statuses"},
    ),
    (
        "displayFinancialStatus",
        "OWED",
        {"invoices": "bad_value /displayFinancialStatus: is a status that crossdock does not know"},
    ),
    (
        "currencyCode",
        "XYZ",
        dict.fromkeys(("orders", "invoices"), "bad_value /currencyCode: is no currency of ISO 4217"),
    ),
    ("currencyCode", None, dict.fromkeys(("orders", "invoices"), "bad_value /currencyCode: is null")),
    (
        "currentTotalPriceSet/shopMoney/currencyCode",
        "USD",
        {"orders": "bad_value /currentTotalPriceSet/shopMoney/currencyCode: is not EUR, the currency of the order"},
    ),
    (
        "currentTotalPriceSet/shopMoney/amount",
        "99.81",
        {
            "orders": "bad_value /currentTotalPriceSet: is 99.81, but items and charges add up to 99.80 EUR; "
            "differences: line makes a line of 0.01"
        },
    ),
    (
        "totalPriceSet/shopMoney/amount",
        "1,5",
        {"invoices": "bad_value /totalPriceSet/shopMoney/amount: is text that is not a number"},
    ),
    ("totalPriceSet", None, {"invoices": "bad_value /totalPriceSet/shopMoney/currencyCode: is missing"}),
    ("refunds", None, {"invoices": "bad_value /refunds: is null"}),
    ("fulfillments", None, {"orders": "bad_value /fulfillments: is null"}),
    (
        "processedAt",
        "yesterday",
        {"orders": "bad_value /processedAt: is not a time in ISO 8601, and no format is declared"},
    ),
    (
        "customer",
        "Ann",
        dict.fromkeys(("orders", "invoices"), "bad_value /customer: is text, and should be an object"),
    ),
]
"""A member of an order, a value that it cannot have, and the reason that people see, by stream."""


@pytest.mark.nightly(but=["paged"])
@pytest.mark.parametrize("way", ["paged", "bulk"])
def test_orders_that_cannot_be_understood_are_told_and_all_others_arrive(
    request: pytest.FixtureRequest, site: Site, way: str
) -> None:
    """Each reason names the member and what is wrong with it, in pages and in bulk files; no other order suffers."""
    stage: ShopifyStage = request.getfixturevalue(way)
    bad = [site.shop.orders.place(Line(site.lamp, 2), email="ann@example.com") for _ in BAD_ORDERS]
    stage.watched.changed = _broken(
        {order.id: _set(member, value) for order, (member, value, _) in zip(bad, BAD_ORDERS, strict=True)}
    )
    report = stage.sync()
    reasons = {
        f"shop.{stream} {key(order)}": reason
        for order, (_, _, by_stream) in zip(bad, BAD_ORDERS, strict=True)
        for stream, reason in by_stream.items()
    }
    assert stage.dead_letters() == reasons
    assert (report.exit_code, told(report), report.balanced) == (1, {}, True)
    rejected = Counter(name.split()[0] for name in reasons)
    assert len(stage.stored("order")) == len(orders(site)) - rejected["shop.orders"]
    assert len(stage.invoices()) == len(orders(site)) - rejected["shop.invoices"]
    stage.watched.changed = None
    site.clock.advance(3_600)
    for order in bad:
        site.shop.orders.change(order, note="corrected")
    completed(stage)
    assert stage.dead_letters() == {}


@pytest.mark.nightly
def test_lines_that_are_null_are_told(paged: ShopifyStage, site: Site) -> None:
    """An order whose list of lines is null is not an order without lines."""
    paged.watched.changed = _broken({orders(site)[2].id: _set("lineItems", None)})
    report = paged.sync()
    bad = key(orders(site)[2])
    reason = "bad_value /lineItems: is null"
    assert paged.dead_letters() == {f"shop.orders {bad}": reason, f"shop.invoices {bad}": reason}
    assert report.exit_code == 1
    assert len(paged.stored("order")) == len(paged.invoices()) == 7


def test_a_record_that_is_null_is_told(paged: ShopifyStage) -> None:
    """A null in place of an order is rejected by its place, as a record without a key; the others arrive."""

    def broken(name: str, body: Any) -> Any:
        if name == "orders":
            body["data"]["orders"]["nodes"][0] = None
        return body

    paged.watched.changed = broken
    report = paged.sync("shop.products", "shop.customers", "shop.orders")
    assert (report.exit_code, told(report)) == (1, {})
    assert paged.dead_letters() == {"shop.orders ": "key_missing key: the key is empty"}
    assert report.tallies["shop.orders"].rows_rejected == 3
    assert len(paged.stored("order")) == 5


@pytest.mark.nightly
def test_a_time_of_change_that_is_none_does_not_end_the_list(paged: ShopifyStage, site: Site) -> None:
    """It is only needed when a cursor expires."""
    paged.watched.changed = _broken({order.id: _set("updatedAt", "soon") for order in orders(site)})
    completed(paged)


# ---- what an order refers to


@pytest.mark.nightly(but=["paged"])
@pytest.mark.parametrize("way", ["bulk", "paged"])
def test_variants_that_share_an_inventory_item_have_its_stock_once(
    way: str, request: pytest.FixtureRequest, site: Site
) -> None:
    """The units of the item are one lot, and the rows of the other variant are counted."""
    site.variant("CHAIR", "90.00", 3)
    other = site.shop.catalog.add_variant(site.shop.catalog.add_product("Lamp for resellers"), "LAMP-B2B", "39.90")
    other.inventory_item = site.lamp.inventory_item
    stage: ShopifyStage = request.getfixturevalue(way)
    report = stage.sync()
    assert (report.exit_code, report.balanced) == (0, True), (report.errors, stage.dead_letters())
    assert sorted(each["quantity"] for each in stage.stored("inventory_lot").values()) == [3, 10]
    assert report.tallies["shop.stock"].rows_filtered["shared_item"] == 1


@pytest.mark.nightly
def test_orders_whose_customer_variant_or_product_was_deleted_arrive(bulk: ShopifyStage, site: Site) -> None:
    """They name the guest of the order's address, or the product of items that are none; sums stay."""
    third = orders(site)[2]
    chair, table = site.variant("CHAIR", "30.00", 5), site.variant("TABLE", "70.00", 5)
    of_chair = site.shop.orders.place(Line(chair, 1), email="ann@example.com")
    of_table = site.shop.orders.place(Line(table, 1), email="ann@example.com")
    site.shop.catalog.delete_variant(chair)
    site.shop.catalog.delete_product(table.product)
    bulk.watched.changed = _broken({third.id: _set("customer", None)})
    completed(bulk)
    products = {effect["id"]: effect["body"]["externalId"] for effect in bulk.effects("product")}
    customers = {effect["id"]: effect["body"]["externalId"] for effect in bulk.effects("customer")}
    stored = bulk.stored("order")
    for order, price in ((of_chair, "30"), (of_table, "70")):
        (line,) = stored[f"shop:{key(order)}"]["items"]
        assert (products[line["productId"]], str(line["unitPrice"])) == ("shop:charge-custom_item", price)
    assert customers[stored[f"shop:{key(third)}"]["customerId"]].startswith("shop:guest-")
