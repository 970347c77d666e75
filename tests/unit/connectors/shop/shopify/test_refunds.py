"""Refunds, which are requested apart from their orders."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Any
from unittest import mock

import pytest
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.reading import drafts, json_record, read_stream, shop_context
from tests.partners.shopify.site import Site

from crossdock import RecordError
from crossdock_connectors.shop.shopify.shop_reader import orders_with_complete_refunds


def completed(site: Site, orders: list[Any]) -> list[Any]:
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        return orders_with_complete_refunds(shop_context(site), orders)


def units(draft: dict[str, Any]) -> Decimal:
    return sum((item["quantity"] for item in draft["items"]), Decimal(0))


@pytest.mark.parametrize("count", [1, 11, 25, 120])
def test_all_refunds_of_an_order_are_read(count: int) -> None:
    """However many there are, each is a credit note."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 120), email="a@example.com")
    for _ in range(count):
        site.shop.orders.refund(order, {"LAMP": 1})
    found = drafts(site, "invoices")
    assert len(found) == 1 + count
    assert [units(each) for each in found.values()] == [120, *[-1] * count]


def test_all_lines_of_a_refund_are_read() -> None:
    """Of an order with more lines than a page of them has, by pages and by a bulk operation."""
    site = Site()
    skus = [f"PART-{number}" for number in range(120)]
    order = site.shop.orders.place(*(Line(site.variant(sku, "2.00", 5)) for sku in skus), email="a@example.com")
    site.shop.orders.refund(order, dict.fromkeys(skus, 1))
    for bulk in (False, True):
        found = drafts(site, "invoices", bulk=bulk)
        assert [units(each) for each in found.values()] == [120, -120]


def test_an_order_with_more_refunds_than_can_be_read_is_rejected() -> None:
    """The most that Shopify lists of them is no evidence that there are no others."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 260), email="a@example.com")
    for _ in range(251):
        site.shop.orders.refund(order, {"LAMP": 1})
    problems = [each.problem for each in read_stream(site, "invoices").records if each.problem]
    assert [(each.pointer, "has more elements" in each.message) for each in problems] == [("/refunds", True)]


def test_all_tracking_numbers_of_an_order_are_read() -> None:
    """A fulfillment with more parcels than the list shows is requested again."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp), email="a@example.com")
    shipment = site.shop.shipments.ship(order.fulfillment_orders[0])
    shipment.tracking_info[:] = [{"company": "DHL", "number": f"P{number}", "url": None} for number in range(25)]
    [found] = drafts(site, "orders").values()
    assert len(found["tracking"]) == 25


def test_a_refund_that_is_gone_is_left_out() -> None:
    """Its order was deleted meanwhile; the refunds of the others are there, in their order."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 3), email="a@example.com")
    ids = [site.shop.orders.refund(order, {"LAMP": 1}).id for _ in range(2)]
    gone = {"id": "gid://shopify/Order/9", "refunds": [{"id": "gid://shopify/Refund/9"}]}
    found = completed(site, [gone, {"id": order.id, "refunds": [{"id": gid} for gid in ids]}])
    assert [[refund["id"] for refund in each["refunds"]] for each in found] == [[], ids]


def test_a_refund_that_the_shop_does_not_tell_of_is_not_left_out() -> None:
    """Its order exists, so a null in its place is no answer: the order is marked, and becomes a dead letter."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 3), email="a@example.com")
    told = site.shop.orders.refund(order, {"LAMP": 1}).id
    untold = {"id": order.id, "refunds": [{"id": told}, {"id": "gid://shopify/Refund/9"}]}
    [found] = completed(site, [untold])
    assert ([refund["id"] for refund in found["refunds"]], found["refundsHasMore"]) == ([told], True)
    with pytest.raises(RecordError, match="has more elements"):
        json_record(found).each("/refunds")


@pytest.mark.parametrize("odd", [None, 5, {}, {"id": None}])
def test_a_refund_without_an_id_is_not_left_out(odd: Any) -> None:
    """It cannot be requested: the order is marked, and becomes a dead letter where all refunds are needed."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 3), email="a@example.com")
    told = site.shop.orders.refund(order, {"LAMP": 1}).id
    for refunds, known in (([odd], []), ([odd, {"id": told}], [told])):
        [found] = completed(site, [{"id": order.id, "refunds": refunds}])
        assert [refund["id"] for refund in found["refunds"]] == known
        with pytest.raises(RecordError, match="has more elements"):
            json_record(found).each("/refunds")


@pytest.mark.parametrize("order", [None, 5, {}, {"refunds": None}, {"refunds": []}])
def test_an_order_without_refunds_stays_as_it_is(order: Any) -> None:
    """Whatever stands in their place, and nothing is requested."""
    site = Site()
    site.shop.interrupt("frozen")
    assert completed(site, [order]) == [order]
