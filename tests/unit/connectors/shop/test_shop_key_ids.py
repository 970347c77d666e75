"""Keys of records that are fetched by name."""

from __future__ import annotations

import pytest

from crossdock_connectors.shop.record_values_and_keys import order_ids_in_guest_keys, shop_ids_in_keys


@pytest.mark.parametrize("key", ["", "0", "017", "7 ", "-7", "7.0", "٣", "x7", "order-7", "1" * 20])
def test_what_is_no_id(key: str) -> None:
    """Nothing else may get into a query: not another number, and no text of the sender of a webhook."""
    assert shop_ids_in_keys([key]) == []


def test_each_id_is_named_once() -> None:
    """In the order of the keys."""
    assert shop_ids_in_keys(["7", "5", "7", "1234567890123456789"]) == ["7", "5", "1234567890123456789"]
    assert shop_ids_in_keys(["credit-note-7", "5", "credit-note-x", "credit-note-7"], "credit-note-") == ["7"]


def test_the_order_of_a_guest() -> None:
    """Its own name, or the key of a guest that tells it; that of an e-mail address does not."""
    keys = ["order-7", "guest-order-5", "guest-order-7", "guest", "guest-0123456789abcdef0123456789abcdef", "9"]
    assert order_ids_in_guest_keys(keys) == ["7", "5"]
