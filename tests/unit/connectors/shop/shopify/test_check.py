"""What ``crossdock check`` says about a Shopify shop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import httpx
import pytest
from tests.partners.partner_transport import transport
from tests.partners.shopify.access import ALL_SCOPES
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.reading import shop_context
from tests.partners.shopify.site import Site

from crossdock.errors import RemoteError
from crossdock.testing.manual_clock import ManualClock
from crossdock_connectors.shop.shopify.check import check
from crossdock_connectors.shop.shopify.queries import SUPPORTED_UNTIL

END = datetime.fromisoformat(SUPPORTED_UNTIL).replace(tzinfo=UTC)
FIRST_LOAD = "a first load writes about 5 records: 1 min 0 s at 10,000 a minute"
WRITE_SHIPMENTS = "write_merchant_managed_fulfillment_orders"
NOT_APPROVED = "This app is not approved to use the email field."
FAILED, OK = False, True


def found(site: Site, **settings: Any) -> list[tuple[bool, str]]:
    """Each finding: whether it is good, and its text."""
    ctx = shop_context(site, **settings)
    with mock.patch.dict("os.environ", {"SHOP_TOKEN": site.shop.token}):
        return [(finding.ok, finding.text) for finding in check(ctx)]


def answering(site: Site, headers: dict[str, str], counts: Any = None, unapproved: str = "") -> Any:
    """The shop, whose answers have other headers, whose records are as many as *counts* says, or which has not approved
    the app for the fields of the list *unapproved*.
    """
    inner = transport(site.shop)

    def answer(request: httpx.Request) -> httpx.Response:
        if unapproved and f"query {unapproved}(".encode() in request.read():
            refused = {"message": NOT_APPROVED, "extensions": {"code": "ACCESS_DENIED"}}
            return httpx.Response(200, json={"data": {unapproved: None}, "errors": [refused]})
        if counts and b"ordersCount" in request.read():
            return httpx.Response(200, json=counts)
        given = inner.handle_request(request)
        given.headers.update(headers)
        return given

    return mock.patch("tests.partners.shopify.reading.transport", return_value=httpx.MockTransport(answer))


def test_a_shop_that_can_be_read() -> None:
    """The shop, its version and its scopes are shown, and how long a first load takes."""
    site = Site()
    site.shop.orders.place(Line(site.lamp), customer=site.shop.customers.add("ada@example.com"))
    assert found(site) == [
        (OK, "Lampen & Stühle, EUR"),
        (OK, "version 2026-10 of its API is supported until 2027-10-01"),
        (OK, "the token has all scopes that the streams need"),
        (OK, "1 orders, 1 variants, 1 customers"),
        (
            OK,
            f"{FIRST_LOAD}, and some minutes to read them by bulk operations",
        ),
    ]


def test_the_time_of_a_first_load_follows_the_settings() -> None:
    """Orders before ``first``, products of another connection and invoices that are not written do not count."""
    site = Site()
    site.shop.orders.place(Line(site.lamp), email="a@example.com")
    site.clock.advance(timedelta(days=5).total_seconds())
    site.shop.orders.place(Line(site.lamp), email="b@example.com")
    first = (site.clock.now() - timedelta(days=1)).isoformat()
    settings = {"first": first, "product_namespace": "erp", "invoices": "never", "bulk": False}
    assert [text for _, text in found(site, **settings)][-2:] == [
        "1 orders, 1 variants, 0 customers",
        "a first load writes about 2 records: 1 min 0 s at 10,000 a minute, and the time to read them in pages",
    ]


def test_a_first_load_is_estimated_at_the_rate_of_the_platform() -> None:
    """Two million records take more than three hours."""
    counts = {"ordersCount": 900_000, "productVariantsCount": 50_000, "customersCount": 250_000}
    body = {"data": {name: {"count": count} for name, count in counts.items()}}
    site = Site()
    with answering(site, {}, counts=body):
        texts = [text for _, text in found(site)]
    assert texts[-2] == "900,000 orders, 50,000 variants, 250,000 customers"
    assert "about 2,150,000 records: 3 h 35 min" in texts[-1]


@pytest.mark.parametrize(("left", "ok"), [(timedelta(days=60), OK), (timedelta(days=60, seconds=-1), FAILED)])
def test_the_end_of_the_version_is_told_in_time(left: timedelta, ok: bool) -> None:
    """Less than sixty days before the version may end, crossdock has to be upgraded."""
    site = Site()
    site.clock.advance((END - left - site.clock.now()).total_seconds())
    text = "version 2026-10 of its API is supported until 2027-10-01"
    assert (ok, text if ok else f"{text}: upgrade crossdock") in found(site)


def test_another_version_is_a_failure() -> None:
    """A shop answers an ended version with a later one."""
    site = Site()
    with answering(site, {"x-shopify-api-version": "2027-01"}):
        assert (
            FAILED,
            "the shop serves version 2027-01 of its API in place of 2026-10: upgrade crossdock",
        ) in found(site)


def test_a_deprecated_query_is_a_failure() -> None:
    """The reason is the shop's."""
    site = Site()
    with answering(site, {"x-shopify-api-deprecated-reason": "https://shopify.dev/x"}):
        assert (FAILED, "the shop calls a query deprecated, upgrade crossdock: https://shopify.dev/x") in found(site)


@pytest.mark.parametrize(
    ("lacking", "finding"),
    [
        (
            {"read_products"},
            (FAILED, "the scope read_products is missing: needed for products, stock, orders, invoices"),
        ),
        ({"read_customers"}, (FAILED, "the scope read_customers is missing: needed for customers, orders, invoices")),
        ({"read_orders"}, (FAILED, "the scope read_orders is missing: needed for customers, orders, invoices")),
        ({"write_inventory"}, (FAILED, "the scope read_inventory is missing: needed for stock")),
        ({"write_inventory"}, (OK, "the scope write_inventory is missing: only needed if stock is written")),
        (
            {"read_locations", "write_inventory"},
            (FAILED, "the scope read_locations is missing: needed for locations"),
        ),
        (
            {"write_merchant_managed_fulfillment_orders", "write_third_party_fulfillment_orders"},
            (OK, f"the scope {WRITE_SHIPMENTS} is missing: only needed if shipments are written back"),
        ),
    ],
)
def test_a_missing_scope_is_named_with_what_needs_it(lacking: set[str], finding: tuple[bool, str]) -> None:
    """Scopes for reading are failures, those for writing are told."""
    assert finding in found(Site(scopes=ALL_SCOPES - lacking))


@pytest.mark.parametrize("name", ["orders", "customers"])
def test_an_app_that_is_not_approved_for_customer_data_is_a_failure(name: str) -> None:
    """It has all scopes, and Shopify refuses the fields that are read of a record."""
    site = Site()
    with answering(site, {}, unapproved=name):
        failed = [text for ok, text in found(site) if not ok]
    needs = "the token has all scopes, so the app needs Shopify's approval for protected customer data"
    assert failed == [f"{name}: {needs}: answered with GraphQL errors: {NOT_APPROVED}"]


@pytest.mark.parametrize(("days", "ok"), [(None, FAILED), (60, FAILED), (59, OK)])
def test_old_orders_need_a_scope(days: int | None, ok: bool) -> None:
    """It is a failure unless the first run reads no older orders."""
    site = Site(scopes=ALL_SCOPES - {"read_all_orders"})
    first = {} if days is None else {"first": (site.clock.now() - timedelta(days=days)).isoformat()}
    text = "without the scope read_all_orders, orders older than 60 days are not seen"
    assert (ok, text if ok else f"{text}: grant it, or set first") in found(site, **first)


def test_locations_are_compared_with_those_of_the_shop() -> None:
    """Active ones without a mapping and mapped ones that the shop does not have are named; inactive ones are not."""
    site = Site()
    paris = site.shop.catalog.add_location("Paris")
    site.shop.catalog.add_location("Rome", is_active=False)
    berlin = str(site.berlin.legacy_resource_id)
    texts = found(site, locations={berlin: "BER", "99": "GONE"})
    assert [each for each in texts if "location" in each[1]] == [
        (FAILED, "locations: the shop has no location 99"),
        (OK, f"locations does not name {paris.legacy_resource_id} (Paris): its stock is left out"),
    ]
    assert not [text for _, text in found(site) if "location" in text]


@pytest.mark.parametrize(
    ("interruption", "message"), [("frozen", "Unavailable Shop"), ("html", "HTTP 502"), ("locked", "Locked")]
)
def test_a_shop_that_cannot_be_asked_is_an_error(interruption: Any, message: str) -> None:
    """The command shows the error as a failure of the connection."""
    site = Site()
    site.shop.interrupt(*[interruption] * 20)
    with pytest.raises(RemoteError, match=message):
        found(site)


def test_the_clock_of_the_tests_is_before_the_end_of_the_version() -> None:
    """Otherwise every check of these tests would have a failure."""
    assert ManualClock().now() < END - timedelta(days=60)
