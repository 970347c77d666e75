"""A list of a shop or a 3PL that is empty once, because the vendor is out of order, costs no record."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.integration.connectors.shop.woocommerce.test_contract import _OfWooCommerce, filled_shop
from tests.integration.connectors.test_threepl_contract import _OfAmazon, _OfShipBob, filled_amazon, filled_shipbob
from tests.partners.partner_server import Partner, PartnerAnswer, PartnerRequest
from tests.partners.partner_transport import transport
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.reading import BASE_URL
from tests.partners.shopify.site import Site

from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.errors import RefusedError
from crossdock.mapping.row_order_and_cursors import format_iso_instant_cursor
from crossdock.runs.batches_read_from_connector import pull_checked_batches
from crossdock.runs.parts_between_checkpoints import CheckpointedReading
from crossdock.testing import ManualClock, context
from crossdock.testing.connector_context_and_reading import bind_checked_stream
from crossdock.values import exact_json

_LISTS = {"nodes", "items", "fulfillmentOrders"}
_NO_FILE = {"objectCount": "0", "rootObjectCount": "0", "url": None, "fileSize": None}


@dataclass
class Flawed:
    """A partner some of whose lists are empty.

    Attributes:
        empty: The end of the path of a request, or the name of a list in a GraphQL query; "" for none.
    """

    partner: Partner
    empty: str = ""

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        given = self.partner.answer(request)
        is_asked = re.search(rf"\b{self.empty} ?[({{]".encode(), request.body + given.content())
        is_listed = is_asked or request.path.endswith(f"/{self.empty}")
        if not self.empty or not is_listed or request.path.endswith("jsonl"):
            return given
        made = _emptied(exact_json.loads(given.content()))
        return replace(given, body=made, headers={**given.headers, "x-wp-total": "0", "x-wp-totalpages": "0"})


def _emptied(value: Any) -> Any:
    if not isinstance(value, dict):
        return [] if isinstance(value, list) else value
    made = {name: [] if name in _LISTS else _emptied(each) for name, each in value.items()}
    return made | (_NO_FILE if "objectCount" in made and "query" in made else {})


def sold() -> Site:
    """A shop with an account, and an order of a guest, of the day before."""
    site = Site(ManualClock())
    site.shop.customers.add("ada@example.com")
    site.shop.orders.place(Line(site.lamp), email="bo@example.com")
    site.clock.advance(86_400)
    return site


@dataclass
class Vendor:
    """One connector with its fake."""

    kind: str
    settings: Mapping[str, Any]
    fake: Flawed
    clock: ManualClock

    def read(self, stream: str, since: str | None = None) -> tuple[int, str | None]:
        """The number of rows that a new run reads of a stream, and the cursor that it stores."""
        connector = load_connector(self.kind)
        ctx = context(connector, self.settings, transport=transport(self.fake), clock=self.clock)  # type: ignore[arg-type]  # has no effects
        bound = bind_checked_stream(connector, ctx, stream)
        parts = CheckpointedReading(pull_checked_batches(bound, since), bound.stream.cursor, self.clock, whole=True)
        return sum(batch.load().height for batch in parts.batches_of_next_part()), parts.cursor


def woocommerce() -> Vendor:
    return Vendor("woocommerce", _OfWooCommerce.settings, Flawed(filled_shop()), ManualClock())


def shopify(*, bulk: bool = True) -> Vendor:
    site = sold()
    settings = {"base_url": BASE_URL, "token": "env:SHOP_TOKEN", "bulk": bulk}
    return Vendor("shopify", settings, Flawed(site.shop), site.clock)


def shipbob() -> Vendor:
    bills = {"customer": "SHIPBOB", "products": {"Shipping": "FEE"}, "product_namespace": "erp"}
    more = {"stock_leaves": "movement", "receipts": "lot", "bills": {**bills, "customer_namespace": "erp"}}
    settings = {**_OfShipBob.settings, **more, "first": "2026-01-01T00:00:00Z"}
    return Vendor("shipbob", settings, Flawed(filled_shipbob()), ManualClock())


def amazon() -> Vendor:
    return Vendor("amazon_mcf", _OfAmazon.settings, Flawed(filled_amazon()), ManualClock())


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**_OfWooCommerce.environment, **_OfShipBob.environment, **_OfAmazon.environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SHOP_TOKEN", Site().shop.token)


CASES: list[tuple[Callable[[], Vendor], str, str]] = [
    (woocommerce, "products", "products"),
    (woocommerce, "customers", "orders"),
    (woocommerce, "orders", "orders"),
    (woocommerce, "invoices", "orders"),
    (shopify, "products", "products"),
    (shopify, "orders", "orders"),
    (shopify, "invoices", "orders"),
    (shipbob, "shipments", "order"),
    (shipbob, "departures", "order"),
    (shipbob, "bills", "invoices"),
    (amazon, "shipments", "fulfillmentOrders"),
]


@pytest.mark.parametrize(("vendor", "stream", "empty"), CASES)
def test_an_empty_list_moves_no_cursor(vendor: Callable[[], Vendor], stream: str, empty: str) -> None:
    """The run after it reads from the same place, and what the first run did not see arrives."""
    made = vendor()
    complete, _ = vendor().read(stream)
    made.fake.empty = empty
    _, first = made.read(stream)
    made.fake.empty = ""
    made.clock.advance(86_400)
    rows, second = made.read(stream, first)
    assert (first, rows) == (None, complete)
    made.clock.advance(86_400)
    made.fake.empty = empty
    assert made.read(stream, second)[1] in {None, second}


@pytest.mark.parametrize("empty", ["customers", "orders"])
@pytest.mark.parametrize("bulk", [True, False])
def test_each_list_of_customers_continues_where_it_was_read(empty: str, bulk: bool) -> None:
    """Accounts and the orders of guests are two lists: the one that had records is not read from its beginning."""
    made = shopify(bulk=bulk)
    made.fake.empty = empty
    seen, first = made.read("customers")
    made.fake.empty = ""
    made.clock.advance(86_400)
    missed, second = made.read("customers", first)
    assert (seen, missed) == (1, 1)
    assert second is not None
    assert made.read("customers", second) == (0, second), "lists without changes"


def test_a_cursor_of_customers_from_before_is_of_both_lists() -> None:
    """A stored instant says where both continue, and stays one while both move."""
    made = shopify(bulk=False)
    began = format_iso_instant_cursor(made.clock.now())
    assert made.read("customers") == (2, began)
    assert made.read("customers", began)[0] == 0


def test_a_bulk_operation_without_records_does_not_stand_for_the_list() -> None:
    """The list is asked for in pages then, and what they have is delivered at once."""
    made = shopify()
    shop = made.fake.partner
    answer = shop.answer

    def without_file(request: PartnerRequest) -> PartnerAnswer:
        given = answer(request)
        is_bulk = b"bulkOperation(id" in request.body
        return replace(given, body=_emptied(exact_json.loads(given.content()))) if is_bulk else given

    shop.answer = without_file  # type: ignore[method-assign]
    assert made.read("orders")[0] == 1


@pytest.mark.parametrize("stream", ["receipts", "departures"])
def test_units_are_of_no_other_merchant_because_the_list_of_items_is_empty(stream: str) -> None:
    """Rows would be left out as those of another merchant, and a cursor would pass them: the list is refused."""
    made = shipbob()
    made.fake.empty = "inventory"
    with pytest.raises(RefusedError, match="/inventory: lists no items"):
        made.read(stream)


def test_a_full_list_of_orders_has_their_guests() -> None:
    """WooCommerce lists no guests: when a full list finds an order, the same list must find its guest."""
    settings = load_connector("woocommerce").settings.model_validate(_OfWooCommerce.settings)
    found = {each.name: each.reread for each in load_connector("woocommerce").streams(settings)}
    assert found["customers"] == found["orders"] is not None
