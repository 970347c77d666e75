"""Shipments and receipts of the 3PLs that are fetched by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import pytest
from tests.integration.connectors.test_threepl_contract import SENT, filled_amazon, filled_shipbob
from tests.partners import fetched_rows, shipbob_client, threepl_vendors
from tests.partners.fetched_rows import Rows
from tests.partners.partner_transport import transport
from tests.partners.shipbob import ShipBob

from crossdock import Context
from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.testing import context

SHIPBOB, AMAZON = load_connector("shipbob"), load_connector("amazon_mcf")
MOVED = {"stock_leaves": "movement", "receipts": "lot"}


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIPBOB_TOKEN", "token-of-ours")


def shipbob(fake: ShipBob, **more: Any) -> Context[Any]:
    given = {**threepl_vendors.shipbob("https://api.shipbob.example"), "token": "env:SHIPBOB_TOKEN", "orders": SENT}
    return context(SHIPBOB, {**given, **more}, transport=transport(fake))


def fetched(fake: ShipBob, stream: str, keys: Sequence[str | tuple[str, ...]], **more: Any) -> Rows:
    """What a new run fetches."""
    return fetched_rows.fetched(SHIPBOB, shipbob(fake, **more), stream, keys)


def test_an_order_of_shipbob_is_fetched_by_our_name_for_it() -> None:
    """As it is pulled; orders that are not ours, or not there, are left out."""
    fake = filled_shipbob()
    house = fake.warehouse
    house.create_order(house.channels[1], shipbob_client.order("by-hand", LAMP=1))
    house.create_order(house.channels[1], shipbob_client.order("platform:ord%2C%7C1", LAMP=1))
    expected = fetched_rows.pulled(SHIPBOB, shipbob(fake), "shipments").latest
    keys = ["ord_0", "ord_2", "ord,|1", "ord_9", "by-hand"]
    found = fetched(fake, "shipments", keys)
    assert found.by_key == {(key,): [expected[key,]] for key in keys[:3]}
    assert not found.deleted


def test_a_receipt_of_shipbob_is_fetched_by_its_receiving_order() -> None:
    """Item and lot may be empty; an order that is not completed brings nothing yet."""
    fake = filled_shipbob()
    expected = fetched_rows.pulled(SHIPBOB, shipbob(fake, **MOVED), "receipts").latest
    [(owner, number, item, lot)] = expected
    assert number is not None
    for key in ((str(owner), number, str(item), str(lot)), ("", number, "", "")):
        assert fetched(fake, "receipts", [key], **MOVED).latest == expected
    assert fetched(fake, "receipts", [("", "9", "", ""), ("", "1,2", "", "")], **MOVED) == Rows()
    fake.warehouse.create_wro(dict(fake.warehouse.wros[int(number)].body))
    waiting = [("", str(each), "", "") for each in fake.warehouse.wros]
    assert fetched(fake, "receipts", waiting, **MOVED).latest == expected


def test_a_receipt_before_the_first_run_is_not_fetched() -> None:
    """Its stock was taken over before: a run would not read it either."""
    fake = filled_shipbob()
    [number] = fake.warehouse.wros
    settings = {**MOVED, "first": "2026-03-02T00:00:00Z"}
    assert fetched(fake, "receipts", [("", str(number), "", "")], **settings) == Rows()


def test_streams_that_name_no_single_record() -> None:
    """A movement of a shipment depends on all receipts, and no list of stock is about one of its rows."""
    streams = {each.name: each.fetches for each in SHIPBOB.streams(shipbob(filled_shipbob(), **MOVED).settings)}
    assert {name for name, fetches in streams.items() if fetches} == {"shipments", "receipts"}


@pytest.fixture
def amazon_runs() -> Iterator[Callable[[], Context[Any]]]:
    """Makes a new run of a seller at Amazon."""
    fake = filled_amazon()
    secrets = {"REFRESH_TOKEN": "Atzr|SELLER-A", "CLIENT_ID": fake.client_id, "CLIENT_SECRET": fake.client_secret}
    given: dict[str, Any] = {
        **threepl_vendors.amazon("https://sellingpartnerapi.example"),
        **{name.lower(): f"env:{name}" for name in secrets},
        "orders": SENT,
        "first": "2026-01-01T00:00:00Z",
    }
    with mock.patch.dict(os.environ, secrets):
        yield lambda: context(AMAZON, given, transport=transport(fake))


def test_a_check_of_amazon_tells_that_marketplaces_may_have_the_same_stock(
    amazon_runs: Callable[[], Context[Any]],
) -> None:
    """No connection sees that another one of the seller reads the same units."""
    assert AMAZON.check is not None
    found = [finding.text for finding in AMAZON.check(amazon_runs()) if finding.ok]
    assert any("may show the same units in several marketplaces" in text for text in found)


def test_an_order_of_amazon_is_fetched_by_our_name_for_it(amazon_runs: Callable[[], Context[Any]]) -> None:
    """As it is pulled; one that is not there is left out."""
    expected = fetched_rows.pulled(AMAZON, amazon_runs(), "shipments").latest
    found = fetched_rows.fetched(AMAZON, amazon_runs(), "shipments", ["ord_2", "ord_9", "ord|0", "ord_0"])
    assert found.by_key == {(key,): [expected[key,]] for key in ("ord_2", "ord_0")}
