"""Lists with pages of 20, and more runs: ``pytest tests/long/test_woocommerce.py``, half a minute."""

from __future__ import annotations

import pytest
from tests.e2e import test_woocommerce as short
from tests.e2e.test_woocommerce import (
    clock,
    open_stage,
    shop,
    test_a_change_of_the_sites_clocks_loses_nothing,
    test_a_page_that_is_no_list_ends_the_stream,
    test_a_page_that_was_moved_as_a_whole_is_read_again,
    test_clocks_may_differ_by_five_minutes,
    test_customers_that_are_deleted_while_they_are_read_hide_no_others,
    test_equal_times_across_pages_are_not_lost,
    test_keys_that_are_revoked_while_a_list_is_read,
    test_maintenance_and_limits_are_waited_for,
    test_orders_that_change_while_they_are_read_are_not_lost,
)

__all__ = [
    "clock",
    "open_stage",
    "shop",
    "test_a_change_of_the_sites_clocks_loses_nothing",
    "test_a_page_that_is_no_list_ends_the_stream",
    "test_a_page_that_was_moved_as_a_whole_is_read_again",
    "test_clocks_may_differ_by_five_minutes",
    "test_customers_that_are_deleted_while_they_are_read_hide_no_others",
    "test_equal_times_across_pages_are_not_lost",
    "test_keys_that_are_revoked_while_a_list_is_read",
    "test_maintenance_and_limits_are_waited_for",
    "test_orders_that_change_while_they_are_read_are_not_lost",
]


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"PAGE": 20, "CLOCK_RUNS": 6, "SITE_RUNS": 15}.items():
        monkeypatch.setattr(short, name, size)
