"""Longer lists of a Shopify shop: ``pytest tests/long/test_shopify_paging.py``, ten seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e import test_shopify_paging as short
from tests.e2e.test_shopify_paging import (
    orders_that_change_are_read,
    sandbox,
    test_a_list_is_read_on_when_its_cursor_expires,
    test_orders_of_one_instant_on_several_pages_are_all_read,
    test_times_in_the_repeated_hour_of_autumn_are_instants,
)

from crossdock.sandbox import SandboxServer

__all__ = [
    "sandbox",
    "test_a_list_is_read_on_when_its_cursor_expires",
    "test_orders_of_one_instant_on_several_pages_are_all_read",
    "test_times_in_the_repeated_hour_of_autumn_are_instants",
]


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short, "MANY", 2)


@pytest.mark.parametrize("seed", range(3))
def test_orders_that_change_while_they_are_listed_are_read_as_they_are(
    tmp_path: Path, sandbox: SandboxServer, seed: int
) -> None:
    """While every page is requested, orders ship and are placed; after the next run both sides agree."""
    orders_that_change_are_read(tmp_path, sandbox, seed)
