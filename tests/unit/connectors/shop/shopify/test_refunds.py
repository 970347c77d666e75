"""Refunds, which are requested apart from their orders."""

from __future__ import annotations

import os
from typing import Any
from unittest import mock

import pytest
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.reading import drafts, shop_context
from tests.partners.shopify.site import Site

from crossdock_connectors.shop.shopify.dialect import with_refunds


def completed(site: Site, orders: list[Any]) -> list[Any]:
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        return with_refunds(shop_context(site), orders)


@pytest.mark.parametrize("count", [1, 10, 11, 25])
def test_all_refunds_of_an_order_are_read(count: int) -> None:
    """However many there are, each is a credit note."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 30), email="a@example.com")
    for _ in range(count):
        site.shop.orders.refund(order, {"LAMP": 1})
    assert len(drafts(site, "invoices")) == 1 + count


def test_a_refund_that_is_gone_is_left_out() -> None:
    """Its order was deleted meanwhile; the refunds of the others are there, in their order."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 3), email="a@example.com")
    ids = [site.shop.orders.refund(order, {"LAMP": 1}).id for _ in range(2)]
    gone = {"id": "gid://shopify/Order/9", "refunds": [{"id": "gid://shopify/Refund/9"}]}
    found = completed(site, [gone, {"id": order.id, "refunds": [{"id": gid} for gid in ids]}])
    assert [[refund["id"] for refund in each["refunds"]] for each in found] == [[], ids]


@pytest.mark.parametrize("order", [None, 5, {}, {"refunds": None}, {"refunds": []}, {"refunds": [None, {"id": 5}]}])
def test_an_order_without_refunds_stays_as_it_is(order: Any) -> None:
    """Whatever stands in their place, and nothing is requested."""
    site = Site()
    site.shop.interrupt("frozen")
    assert completed(site, [order]) == [order]
