"""Bulk operations: waited for, used again, and refused unless their file is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from tests.partners.shopify.access import ALL_SCOPES
from tests.partners.shopify.bulk import Failure
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.reading import shop_context
from tests.partners.shopify.site import Site

from crossdock import Context, RefusedError
from crossdock.errors import RemoteError
from crossdock.sources import UnavailableError
from crossdock_connectors.shop.shopify import bulk_operations
from crossdock_connectors.shop.shopify.queries import CUSTOMERS, ORDERS


@contextmanager
def run(site: Site, **settings: Any) -> Iterator[Context[Any]]:
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        yield shop_context(site, **settings)


def names(site: Site, *, reuse: bool = True, found: str = "", **settings: Any) -> list[str]:
    """The orders that a new run reads."""
    with run(site, **settings) as ctx:
        read = bulk_operations.read_list_by_bulk_operation(ctx, ORDERS, found, reuse=reuse)
        return sorted(record["name"] for page, _ in read.pages for record in page)


def sold(**settings: Any) -> Site:
    site = Site(**settings)
    site.shop.orders.place(Line(site.lamp), Line(None), email="a@example.com")
    return site


def started(site: Site) -> int:
    return sum(effect["kind"] == "bulk_started" for effect in site.shop.effects)


def test_a_young_operation_is_used_again() -> None:
    """A run after a killed one starts no second operation with the same query; six hours later it does."""
    site = sold()
    assert (names(site), names(site), started(site)) == (["#1001"], ["#1001"], 1)
    assert (names(site, reuse=False), started(site)) == (["#1001"], 2)
    site.clock.advance(bulk_operations.REUSED.total_seconds() + 60)
    assert (names(site), started(site)) == (["#1001"], 3)
    assert (names(site, found="name:x"), started(site)) == ([], 4)


def test_an_operation_that_began_with_other_scopes_is_not_used_again() -> None:
    """A scope that was granted since then shows records that the earlier file lacks."""
    site = sold(scopes=ALL_SCOPES - {"read_all_orders"})
    site.clock.advance(timedelta(days=90).total_seconds())
    assert names(site) == []
    site.shop.scopes = ALL_SCOPES
    assert (names(site), started(site)) == (["#1001"], 2)


def test_an_operation_that_failed_is_not_used_again() -> None:
    """The run that meets it ends, with the code; the next one starts another."""
    site = sold()
    site.shop.bulk.failures.append(Failure("INTERNAL_SERVER_ERROR", 1))
    with pytest.raises(UnavailableError, match="FAILED, INTERNAL_SERVER_ERROR"):
        names(site)
    assert (names(site), started(site)) == (["#1001"], 2)


def test_an_empty_list_has_no_file() -> None:
    """No records, and no error."""
    with run(Site()) as ctx:
        assert list(bulk_operations.read_list_by_bulk_operation(ctx, CUSTOMERS, reuse=True).pages) == []


@pytest.mark.parametrize("cut", [0, 1, 50])
def test_a_file_that_was_cut_off_is_refused(cut: int) -> None:
    """Its size is compared with what the shop says."""
    site = sold()
    site.shop.bulk.cuts.append(cut)
    with pytest.raises(RefusedError, match="and the shop says") as caught:
        names(site)
    assert f"has {cut:,} bytes" in str(caught.value)


def test_a_run_waits_for_a_place() -> None:
    """Other operations of the app are waited for; after bulk_timeout_s the run ends."""
    site = sold(bulk_limit=1, bulk_takes=timedelta(minutes=5))
    with run(site) as ctx:
        bulk_operations._start_operation(ctx, CUSTOMERS.bulk_query(""))
    assert names(site) == ["#1001"]
    with run(site) as ctx:
        bulk_operations._start_operation(ctx, CUSTOMERS.bulk_query(""))
    with pytest.raises(UnavailableError, match="has no place for a bulk operation"):
        names(site, reuse=False, bulk_timeout_s=60)


def test_an_operation_that_takes_too_long_is_used_by_the_next_run() -> None:
    """The run ends and says so; the operation goes on at the shop."""
    site = sold(bulk_takes=timedelta(hours=1))
    with pytest.raises(UnavailableError, match=r"has not ended in 0\.5 hours") as caught:
        names(site, bulk_timeout_s=1800)
    assert "the next run uses it" in str(caught.value.hint)
    assert (names(site), started(site)) == (["#1001"], 1)


def test_a_query_that_is_refused_is_an_error() -> None:
    """The shop's reason is shown, and it is not tried again."""
    with run(sold()) as ctx, pytest.raises(RemoteError, match="refused a bulk operation"):
        bulk_operations._start_operation(ctx, "{ shop { name } }")


def test_a_missing_scope_is_told() -> None:
    """The hint names the command that shows which."""
    site = sold(scopes=frozenset({"read_customers"}))
    with pytest.raises(UnavailableError, match="ACCESS_DENIED") as caught:
        names(site)
    assert "crossdock check" in str(caught.value.hint)


def test_without_a_missing_scope_the_approval_for_customer_data_is_told() -> None:
    """An app with all scopes is refused as well, unless Shopify has approved it."""
    site = sold()
    site.shop.bulk.failures.append(Failure("ACCESS_DENIED"))
    with pytest.raises(UnavailableError, match="ACCESS_DENIED") as caught:
        names(site)
    assert "approval for protected customer data" in str(caught.value.hint)


def test_what_changed_later_is_after_the_beginning() -> None:
    """The time is that of the shop, before the first record was read."""
    site = sold()
    began = site.clock.now().replace(microsecond=0)
    with run(site) as ctx:
        read = bulk_operations.read_list_by_bulk_operation(ctx, ORDERS, reuse=False)
    assert read.begun == began
    assert site.clock.now() > began
