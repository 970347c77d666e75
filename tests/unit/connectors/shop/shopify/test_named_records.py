"""Records of a Shopify shop that are fetched by name."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Any
from unittest import mock

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.partners import fetched_rows
from tests.partners.fetched_rows import Rows
from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.shopify.access import ALL_SCOPES
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.random_shops import RICH, shops
from tests.partners.shopify.reading import BASE_URL, CONNECTOR, shop_context
from tests.partners.shopify.site import Site

from crossdock.errors import RefusedError
from crossdock.testing import context

STREAMS = ("products", "customers", "orders", "invoices", "stock")


def fetched(site: Site, stream: str, keys: Iterable[str], **given: Any) -> Rows:
    """What a new run fetches."""
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        return fetched_rows.fetched(CONNECTOR, shop_context(site, bulk=False, **given), stream, keys)


def pulled(site: Site, stream: str, **given: Any) -> Rows:
    """What a first run reads."""
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        return fetched_rows.pulled(CONNECTOR, shop_context(site, bulk=False, **given), stream)


def queried(site: Site, action: Any) -> int:
    """How many requests *action* makes."""
    sent: list[PartnerRequest] = []
    answer = site.shop.answer

    def counted(request: PartnerRequest) -> PartnerAnswer:
        sent.append(request)
        return answer(request)

    with mock.patch.object(site.shop, "answer", counted):
        action()
    return len(sent)


def variants(count: int) -> Site:
    """A shop with a product of many variants."""
    site = Site(plan=RICH)
    for number in range(count):
        site.shop.catalog.add_variant(site.lamp.product, f"LAMP-{number}")
    return site


@settings(max_examples=examples(25), deadline=None)
@given(shops(), st.sampled_from(["id", "sku"]), st.sampled_from(["email", "order", "one"]))
def test_a_record_is_fetched_as_it_is_pulled(site: Site, product_key: str, guests: str) -> None:
    """Each row is the same JSON, so that no run changes a record back; guests are named by their orders."""
    given: dict[str, Any] = {"product_key": product_key, "guests": guests, "invoices": "placed"}
    for stream in STREAMS:
        expected = pulled(site, stream, **given)
        found = fetched(site, stream, expected.keys, **given)
        own = {key: row for key, row in expected.latest.items() if not str(key[0]).startswith("guest")}
        assert {key: row for key, row in found.latest.items() if key in own} == own
        assert found.latest.items() <= expected.latest.items()
        assert not found.deleted
    guests_of = [f"order-{key}" for key in pulled(site, "orders", **given).keys]
    expected, found = pulled(site, "customers", **given), fetched(site, "customers", guests_of, **given)
    assert {key for (key,) in found.by_key} == {key for key in expected.keys if key.startswith("guest")}
    for key, rows in found.by_key.items():
        assert set(rows) == set(expected.by_key[key])


def test_long_lists_are_completed() -> None:
    """An order with more lines, and a variant at more locations, than one page has."""
    site = Site(plan=RICH)
    order = site.shop.orders.place(
        *(Line(site.lamp, 1, Decimal(number)) for number in range(40)), email="a@example.com"
    )
    for number in range(25):
        site.shop.catalog.stock(site.lamp, site.shop.catalog.add_location(f"Place {number}"), number)
    for stream, key in (
        ("orders", str(order.legacy_resource_id)),
        ("stock", f"{site.lamp.inventory_item.legacy_resource_id}-{site.berlin.legacy_resource_id}"),
    ):
        expected = pulled(site, stream).latest
        assert fetched(site, stream, [key]).latest == expected
        assert len(json.loads(expected[key,]).get("lineItems", range(40))) == 40


@pytest.mark.parametrize(
    ("stream", "count", "most"), [("products", 50, 2), ("customers", 50, 1), ("orders", 9, 1), ("stock", 25, 2)]
)
def test_many_records_are_fetched_at_once(stream: str, count: int, most: int) -> None:
    """With one request, or two where the shop must be asked first for a currency or a variant."""
    site = variants(count)
    for variant in site.lamp.product.variants:
        site.shop.catalog.stock(variant, site.berlin, 1)
        site.shop.orders.place(Line(variant), customer=site.shop.customers.add(f"{variant.sku}@example.com"))
    keys = sorted(pulled(site, stream).keys)[:count]
    assert queried(site, lambda: fetched(site, stream, keys)) == most


def test_a_credit_note_is_fetched_with_its_order() -> None:
    """By its own key, or by that of the order: the invoice and all of its credit notes."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 3), email="a@example.com")
    refund = site.shop.orders.refund(order, {"LAMP": 1})
    site.shop.orders.refund(order, {"LAMP": 1})
    expected = pulled(site, "invoices").latest
    assert len(expected) == 3
    for key in (str(order.legacy_resource_id), f"credit-note-{refund.legacy_resource_id}"):
        assert fetched(site, "invoices", [key]).latest == expected
    assert fetched(site, "invoices", ["credit-note-9"]) == Rows()


def test_records_that_do_not_exist_any_more() -> None:
    """Orders and accounts are named as deleted; other streams have lists that show it."""
    site = Site()
    assert {stream: fetched(site, stream, ["9"]).deleted for stream in STREAMS} == {
        "products": set(), "customers": {("9",)}, "orders": {("9",)}, "invoices": set(), "stock": set(),
    }  # fmt: skip
    assert fetched(site, "customers", ["order-9", "guest-order-9"]) == Rows()


def test_an_old_order_is_not_taken_for_deleted() -> None:
    """A token without the scope for all orders does not see those of more than 60 days."""
    site = Site(scopes=ALL_SCOPES - {"read_all_orders"})
    order = site.shop.orders.place(Line(site.lamp), email="a@example.com", age=timedelta(days=90))
    assert fetched(site, "orders", [str(order.legacy_resource_id)]) == Rows()


@pytest.mark.parametrize("stream", STREAMS)
def test_names_that_are_no_keys_of_the_shop(stream: str) -> None:
    """Nothing is requested for them, and nothing is found."""
    site = Site()
    keys = [
        "guest",
        "guest-0017",
        "order-",
        "credit-note-",
        "-7",
        "0",
        "1 OR 1",
        "gid://shopify/Order/1",
        "٣",
        "9" * 30,
    ]
    found: list[Rows] = []
    assert queried(site, lambda: found.append(fetched(site, stream, keys))) == 0
    assert found == [Rows()]


def test_charges_are_products_of_the_settings() -> None:
    """Nothing is requested for them, whoever writes the other products."""
    site = Site()
    expected = pulled(site, "products", product_namespace="erp").latest
    found = fetched(site, "products", ["charge-tax", str(site.lamp.legacy_resource_id)], product_namespace="erp")
    assert found.latest == {("charge-tax",): expected["charge-tax",]}


def test_of_variants_with_one_sku_the_last_change_counts() -> None:
    """As when they are pulled; a SKU is found in its own case only."""
    site = Site()
    for sku in ("DESK", "desk", "DESK"):
        site.clock.advance(1)
        site.variant(sku, "1.00", 1)
    site.shop.catalog.change(site.lamp.product, title="Newest")
    expected = pulled(site, "products", product_key="sku")
    found = fetched(site, "products", ["DESK"], product_key="sku")
    assert found.by_key == {("DESK",): expected.by_key["DESK",]}


def test_an_answer_for_other_records_is_refused() -> None:
    """Records that it leaves out would be taken for deleted."""

    short = httpx.MockTransport(lambda _: httpx.Response(200, json={"data": {"nodes": []}}))
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": "token"}):
        ctx = context(CONNECTOR, {"base_url": BASE_URL, "token": "env:SHOP_TOKEN"}, transport=short)
        with pytest.raises(RefusedError, match="has 0 records for 1 ids"):
            fetched_rows.fetched(CONNECTOR, ctx, "orders", ["9"])
