"""Records of a WooCommerce shop that are fetched by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.partners import fetched_rows
from tests.partners.fetched_rows import Rows
from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.partner_transport import transport
from tests.partners.woocommerce.random_shops import shops
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_settings import ShopSettings

from crossdock import Context
from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.sources import NotFoundError
from crossdock.testing import context
from crossdock_connectors.shop.woocommerce.lists_and_records_by_id import WITHOUT_REFUNDS

STREAMS = ("products", "customers", "orders", "invoices", "stock")
CONNECTOR = load_connector("woocommerce")
KEYS = {"CONSUMER_KEY": "ck_fake", "CONSUMER_SECRET": "cs_fake"}


def run_of(shop: FakeShop, **more: Any) -> Context[Any]:
    given = {
        "base_url": "https://shop.example",
        "consumer_key": "env:CONSUMER_KEY",
        "consumer_secret": "env:CONSUMER_SECRET",
        **more,
    }
    return context(CONNECTOR, given, transport=transport(shop))


@pytest.fixture(autouse=True, scope="module")
def keys() -> Iterable[None]:
    with mock.patch.dict(os.environ, KEYS):
        yield


def fetched(shop: FakeShop, stream: str, names: Iterable[str], **given: Any) -> Rows:
    """What a new run fetches."""
    return fetched_rows.fetched(CONNECTOR, run_of(shop, **given), stream, names)


def pulled(shop: FakeShop, stream: str, **given: Any) -> Rows:
    """What a first run reads."""
    return fetched_rows.pulled(CONNECTOR, run_of(shop, **given), stream)


def requests_of(shop: FakeShop, action: Callable[[], object]) -> list[str]:
    """The paths that *action* requests."""
    sent: list[str] = []
    answer = shop.answer

    def counted(request: PartnerRequest) -> PartnerAnswer:
        sent.append(request.path.removeprefix("/wp-json/wc/v3/"))
        return answer(request)

    with mock.patch.object(shop, "answer", counted):
        action()
    return sent


@settings(max_examples=examples(25), deadline=None)
@given(shops(), st.sampled_from(["id", "sku"]), st.sampled_from(["email", "order", "one"]), st.sampled_from([2, None]))
def test_a_record_is_fetched_as_it_is_pulled(
    shop: FakeShop, product_key: str, guests: str, page_size: int | None
) -> None:
    """Each row is the same JSON, so that no run changes a record back; guests are named by their orders."""
    given: dict[str, Any] = {"product_key": product_key, "guests": guests, "page_size": page_size}
    for stream in STREAMS:
        expected = pulled(shop, stream, **given)
        found = fetched(shop, stream, expected.keys, **given)
        own = {key: row for key, row in expected.latest.items() if not str(key[0]).startswith("guest")}
        assert {key: row for key, row in found.latest.items() if key in own} == own
        assert found.latest.items() <= expected.latest.items()
        assert not found.deleted
    guests_of = [f"order-{key}" for key in pulled(shop, "orders", **given).keys]
    expected, found = pulled(shop, "customers", **given), fetched(shop, "customers", guests_of, **given)
    assert found.keys == {key for key in expected.keys if key.startswith("guest")}
    for key, rows in found.by_key.items():
        assert set(rows) == set(expected.by_key[key])


def test_many_records_are_fetched_at_once() -> None:
    """With one list for each status of orders, and for products one that tells which are there."""
    shop = FakeShop()
    lamps = [shop.catalog.add("Lamp", "1", sku=f"LAMP-{number}") for number in range(50)]
    orders = [shop.orders.place((lamp, 1)) for lamp in lamps]
    accounts = [shop.customers.add(f"c{number}@example.com") for number in range(50)]
    ids: dict[str, Sequence[Any]] = {
        "products": lamps,
        "stock": lamps,
        "customers": accounts,
        "orders": orders,
        "invoices": orders,
    }
    sent = {}
    for stream, found in ids.items():
        sent[stream] = requests_of(shop, partial(fetched, shop, stream, [str(one.id) for one in found]))
    assert sent == {
        "products": ["products", "products"],
        "stock": ["products", "products"],
        "customers": ["customers"],
        "orders": ["orders"],
        "invoices": ["orders"],
    }


def test_a_variation_is_fetched_with_its_product() -> None:
    """By its own id, that of the product, or its SKU: the list of variations shows it other than that of products."""
    shop = FakeShop()
    shirt = shop.catalog.add("Shirt", type="variable", sku="SHIRT")
    blue = shop.catalog.add("Shirt", "20", shirt, sku="BLUE")
    by_id = pulled(shop, "products").latest
    for key in (str(blue.id), str(shirt.id)):
        assert fetched(shop, "products", [key]).latest == {(str(blue.id),): by_id[str(blue.id),]}
    by_sku = pulled(shop, "products", product_key="sku").latest
    for key in ("BLUE", "SHIRT"):
        assert fetched(shop, "products", [key], product_key="sku").latest == {("BLUE",): by_sku["BLUE",]}


def test_a_credit_note_is_fetched_with_its_order() -> None:
    """By its own key, or by that of the order: the invoice and all of its credit notes."""
    shop = FakeShop()
    order = shop.orders.place((shop.catalog.add("Lamp", "10"), 3))
    refund = shop.orders.refund(order, "1.00")
    shop.orders.refund(order, "2.00")
    expected = pulled(shop, "invoices").latest
    assert len(expected) == 3
    for key in (str(order.id), f"credit-note-{refund.id}"):
        assert fetched(shop, "invoices", [key]).latest == expected
    assert fetched(shop, "invoices", ["credit-note-9"]) == Rows()


def test_a_shop_before_9_0_has_no_list_of_refunds() -> None:
    """The next run reads such a credit note; other keys are fetched."""
    shop = FakeShop(ShopSettings(lists_refunds=False))
    order = shop.orders.place((shop.catalog.add("Lamp", "10"), 3))
    refund = shop.orders.refund(order, "1.00")
    ctx = run_of(shop)
    assert fetched_rows.fetched(CONNECTOR, ctx, "invoices", [f"credit-note-{refund.id}"]) == Rows()
    assert ctx.run.notes == {"woocommerce": [WITHOUT_REFUNDS]}
    names = [f"credit-note-{refund.id}", str(order.id)]
    assert fetched(shop, "invoices", names).latest == pulled(shop, "invoices").latest


@pytest.mark.parametrize("body", [None, {"code": "not_found", "message": "Not found"}])
def test_a_404_that_is_not_of_the_shop_does_not_say_that_it_has_no_list_of_refunds(body: Any) -> None:
    """A rule of a server before it answers so: the credit note is asked for again, and not left to another run."""
    shop = FakeShop()
    order = shop.orders.place((shop.catalog.add("Lamp", "10"), 3))
    refund = shop.orders.refund(order, "1.00")
    answer = shop.answer

    def refusing(request: PartnerRequest) -> PartnerAnswer:
        return PartnerAnswer(404, body) if request.path.endswith("/v3/refunds") else answer(request)

    with mock.patch.object(shop, "answer", refusing), pytest.raises(NotFoundError):
        fetched(shop, "invoices", [f"credit-note-{refund.id}"])


@pytest.mark.parametrize("stream", STREAMS)
def test_records_that_do_not_exist_any_more(stream: str) -> None:
    """Nothing is named as deleted: the lists of existing records show it, with evidence that they are complete."""
    shop = FakeShop()
    order = shop.orders.place((shop.catalog.add("Lamp", "10"), 3))
    shop.orders.delete(order)
    assert fetched(shop, stream, [str(order.id), f"order-{order.id}", f"credit-note-{order.id}", "9"]) == Rows()


@pytest.mark.parametrize("stream", STREAMS)
def test_names_that_are_no_keys_of_the_shop(stream: str) -> None:
    """Nothing is requested for them: without ids a list would have all records."""
    shop = FakeShop()
    shop.orders.place((shop.catalog.add("Lamp", "10"), 3))
    names = ["guest", "guest-0017", "order-", "credit-note-", "-7", "0", "1,2", "٣", "9" * 30]
    found: list[Rows] = []
    assert requests_of(shop, lambda: found.append(fetched(shop, stream, names))) == []
    assert found == [Rows()]


def test_skus_that_cannot_be_looked_up() -> None:
    """Nothing is requested for an empty one, and for one with a comma, which ends a SKU."""
    shop = FakeShop()
    shop.catalog.add("Lamp", "10", sku="A,B")
    assert requests_of(shop, lambda: fetched(shop, "products", ["A,B", " "], product_key="sku")) == []
