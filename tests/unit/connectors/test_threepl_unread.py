"""What a 3PL's answers leave out is never taken for empty: the record is set aside, and the others are delivered."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.integration.connectors.test_threepl_contract import SENT, filled_amazon, filled_shipbob, received
from tests.partners import fetched_rows, threepl_vendors
from tests.partners.partner_server import Partner, PartnerAnswer, PartnerRequest
from tests.partners.partner_transport import transport
from tests.partners.shipbob import ShipBob

from crossdock import Context, RawBatch, Record, RecordError, RefusedError
from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.errors import CrossdockError
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError, IncompleteListError
from crossdock.sources import Checkpoint
from crossdock.testing import context
from crossdock.values import exact_json
from crossdock.values.raw_rows_and_records import JSON, LINE

SHIPBOB, AMAZON = load_connector("shipbob"), load_connector("amazon_mcf")
MOVED = {"stock_leaves": "movement", "receipts": "lot"}
BILLED = {
    "bills": {
        "customer": "C1",
        "customer_namespace": "erp",
        "products": {"Shipping": "FEE"},
        "product_namespace": "erp",
    }
}
Change = Callable[[Any], Any]


@dataclass
class Altered:
    """A partner of whose answers to GET those below *path* are changed in place, or have another status."""

    partner: Partner
    path: str
    change: Change | int
    requests: int = 0

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        answer = self.partner.answer(request)
        if request.method != "GET" or self.path not in request.path or answer.status != 200:
            return answer
        self.requests += 1
        if isinstance(self.change, int):
            return replace(answer, status=self.change, body={"detail": "not shown"})
        body = copy.deepcopy(answer.body)
        self.change(body)
        return replace(answer, body=body)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.partner, name)


@dataclass
class Read:
    """What a stream has read: objects, its cursor, and the error at the end."""

    rows: list[Any]
    cursor: str | None = None
    error: CrossdockError | None = None


def read(connector: Any, ctx: Context[Any], name: str, since: str | None = None) -> Read:
    return _read(fetched_rows.stream_of(connector, ctx, name).pull(ctx, since))


def _read(batches: Iterator[RawBatch | Checkpoint]) -> Read:
    found = Read([])
    try:
        for each in batches:
            if isinstance(each, Checkpoint):
                found.cursor = each.cursor
            else:
                found.rows += map(exact_json.loads, each.load()[JSON].to_list())
    except CrossdockError as error:
        found.error = error
    return found


def mapped(connector: Any, ctx: Context[Any], name: str, row: Any) -> Any:
    """What the stream makes of a row that it has read."""
    [cells] = RawBatch.json([row], source="page").load().drop(LINE).to_dicts()
    return fetched_rows.stream_of(connector, ctx, name).to_resource(Record("key", (cells,), "page", (1,)))


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIPBOB_TOKEN", "token-of-ours")


def shipbob(partner: Partner, **more: Any) -> Context[Any]:
    given = {**threepl_vendors.shipbob("https://api.shipbob.example"), "token": "env:SHIPBOB_TOKEN", "orders": SENT}
    return context(SHIPBOB, {**given, **more}, transport=transport(partner))


def without(*names: str | int) -> Change:
    """Sets a member to null; the last of *names* is the member, the others lead to it."""

    def change(body: Any) -> None:
        for name in names[:-1]:
            body = body[name]
        body[names[-1]] = None

    return change


# ---- ShipBob: stock and products


@pytest.mark.parametrize(
    ("names", "place"),
    [
        (("items", 0, "lots"), "/lots: is null"),
        (("items", 0, "lots", 0), "/lots/0: is null"),
        (("items", 0, "lots", 0, "locations"), "/lots/0/locations: is null"),
        (("items", 0, "lots", 0, "locations", 0), "/lots/0/locations/0: is null"),
    ],
)
def test_an_item_whose_lots_are_not_there_is_set_aside(names: tuple[str | int, ...], place: str) -> None:
    """The other items are read, and the list says that it is not whole, so that nothing counts as gone."""
    found = read(SHIPBOB, shipbob(Altered(filled_shipbob(), "/inventory-level/lots", without(*names))), "stock")
    assert isinstance(found.error, DoubtfulListError)
    assert f"inventory item 400003: {place}" in str(found.error)
    assert {row["sku"] for row in found.rows} == {"CHAIR"}


def test_a_product_whose_variants_are_not_there_is_set_aside() -> None:
    """Null is no empty list: the product is not gone."""
    altered = Altered(filled_shipbob(), "/product", without("items", 0, "variants"))
    found = read(SHIPBOB, shipbob(altered), "products")
    assert isinstance(found.error, DoubtfulListError)
    assert "/variants: is null" in str(found.error)
    assert [row["name"] for row in found.rows] == ["CHAIR"]


def test_a_list_that_begins_again_is_a_loop_though_its_records_differ() -> None:
    """Records are known again by their ids, also if each answer has another time in them."""
    fake = filled_shipbob()

    def next_page(body: Any) -> None:
        for item in body["items"]:
            item["as_of"] = altered.requests
        body["next"] = f"/2026-01/inventory-level/lots?cursor=c{altered.requests}"

    altered = Altered(fake, "/inventory-level/lots", next_page)
    found = read(SHIPBOB, shipbob(_SamePage(altered)), "stock")
    assert isinstance(found.error, IncompleteListError)
    assert "pagination loop" in str(found.error)
    assert altered.requests == 2


@dataclass
class _SamePage:
    """A partner that gives its first page for any cursor."""

    partner: Altered

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        return self.partner.answer(replace(request, params={k: v for k, v in request.params.items() if k != "cursor"}))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.partner, name)


# ---- ShipBob: departures


@pytest.mark.parametrize(
    "names",
    [
        ("shipments",),
        ("shipments", 0, "status"),
        ("shipments", 0, "products"),
        ("shipments", 0, "products", 0, "inventory_items"),
    ],
)
def test_a_shipment_whose_units_are_not_there_is_read_again(names: tuple[str | int, ...]) -> None:
    """The departures of other orders are read, and the cursor stays before the one that was set aside."""
    whole = read(SHIPBOB, shipbob(filled_shipbob(), **MOVED), "departures")
    assert (len(whole.rows), whole.error, bool(whole.cursor)) == (2, None, True)

    def change(orders: Any) -> None:
        if len(orders) > 2:
            without(*names)(orders[2])

    found = read(SHIPBOB, shipbob(Altered(filled_shipbob(), "/order", change), **MOVED), "departures")
    assert isinstance(found.error, DoubtfulListError)
    assert found.cursor is None
    assert found.rows == whole.rows[:1]


def test_a_shipment_is_sent_in_any_case_of_its_status() -> None:
    """``completed`` is ``Completed``."""

    def change(orders: Any) -> None:
        for shipment in (each for order in orders for each in order["shipments"]):
            shipment["status"] = shipment["status"].lower()

    found = read(SHIPBOB, shipbob(Altered(filled_shipbob(), "/order", change), **MOVED), "departures")
    assert (len(found.rows), found.error) == (2, None)


# ---- ShipBob: receipts


def two_receipts() -> tuple[ShipBob, int, int]:
    """Receiving orders of L3 and L4, and the number of the first; the item."""
    fake = filled_shipbob()
    [first] = fake.warehouse.wros
    item = fake.warehouse.wros[first].items[0].inventory_id
    received(fake, item, "L4", 6)
    return fake, first, item


@pytest.mark.parametrize(
    "change",
    [404, 422, lambda boxes: boxes.append(None), without(0, "box_items")],
    ids=["404", "422", "no object", "without items"],
)
def test_a_receiving_order_that_cannot_be_read_is_set_aside(change: Change | int) -> None:
    """The others are read. A lot that only the unread one may have brought first is not taken from a later one."""
    fake, first, _ = two_receipts()
    altered = Altered(fake, f"/receiving/{first}/boxes", change)
    found = read(SHIPBOB, shipbob(altered, **MOVED), "receipts")
    assert isinstance(found.error, DoubtfulListError)
    assert f"receiving order {first}: " in str(found.error)
    assert [row["lot"] for row in found.rows] == ["L4"]


def test_a_departure_is_not_taken_from_a_later_receipt_than_its_own() -> None:
    """As long as the receiving order that came first cannot be read, its cursor stays and the lot is not known."""
    fake = filled_shipbob()
    lamp = next(iter(fake.warehouse.wros.values())).items[0].inventory_id
    received(fake, lamp, "L1", 6)
    received(fake, lamp, "L1", 7)
    _, own, later = sorted(fake.warehouse.wros)
    whole = read(SHIPBOB, shipbob(fake, **MOVED), "departures")
    assert {row["receiving_order"] for row in whole.rows} == {own}
    altered = Altered(fake, f"/receiving/{own}/boxes", 404)
    found = read(SHIPBOB, shipbob(altered, **MOVED), "departures")
    assert isinstance(found.error, DoubtfulListError)
    assert (found.cursor, {row["receiving_order"] for row in found.rows}) == (None, {None})
    altered.path = f"/receiving/{later}/boxes"
    found = read(SHIPBOB, shipbob(altered, **MOVED), "departures")
    assert (found.error, {row["receiving_order"] for row in found.rows}) == (None, {own})


def test_a_hint_of_a_receiving_order_that_cannot_be_read_is_not_settled() -> None:
    """A fetch says so as a run does."""
    fake, first, _ = two_receipts()
    ctx = shipbob(Altered(fake, f"/receiving/{first}/boxes", 404), **MOVED)
    stream = fetched_rows.stream_of(SHIPBOB, ctx, "receipts")
    assert isinstance(_read(stream.fetch(ctx, [("", str(first), "", "")])).error, DoubtfulListError)


@pytest.mark.parametrize(
    ("change", "lot", "message"),
    [
        (lambda boxes: boxes.clear(), "NO-LOT", "the boxes have 0 of the 5 units that were stowed of this item"),
        (lambda boxes: boxes[0]["box_items"].clear(), "NO-LOT", "the boxes have 0 of the 5 units"),
        (without(0, "box_items", 0, "stowed_quantity"), "L3", "/quantities/0: is null"),
        (lambda boxes: boxes[0]["box_items"][0].update(stowed_quantity=2), "L3", "the boxes have 2 of the 5 units"),
    ],
    ids=["no box", "no item", "no quantity", "fewer"],
)
def test_stowed_units_that_are_in_no_box_are_dead_letters(change: Change, lot: str, message: str) -> None:
    """A quantity that is not there is not 0, and the boxes have all units that the receiving order says were stowed."""
    fake, first, _ = two_receipts()
    ctx = shipbob(Altered(fake, f"/receiving/{first}/boxes", change), **MOVED)
    found = read(SHIPBOB, ctx, "receipts")
    assert (found.error, [row["lot"] for row in found.rows]) == (None, [lot, "L4"])
    with pytest.raises(RecordError, match=message):
        mapped(SHIPBOB, ctx, "receipts", found.rows[0])


def test_a_lot_of_which_nothing_was_stowed_is_no_receipt() -> None:
    """Exactly 0 units are none, and no dead letter."""
    fake, first, _ = two_receipts()
    wro = fake.warehouse.wros[first]
    wro.items[0].stowed = 0
    found = read(SHIPBOB, shipbob(fake, **MOVED), "receipts")
    assert (found.error, [row["lot"] for row in found.rows]) == (None, ["L4"])


# ---- ShipBob: bills


def test_a_bill_whose_charges_cannot_be_read_is_a_dead_letter() -> None:
    """The other bills are read."""
    fake = filled_shipbob()
    [first] = fake.warehouse.invoices.values()
    fake.warehouse.add_invoice(1, "Shipping", list(first.transactions))
    ctx = shipbob(Altered(fake, f"/invoices/{first.id}/transactions", 404), **BILLED)
    found = read(SHIPBOB, ctx, "bills")
    assert (found.error, len(found.rows)) == (None, 2)
    unread, other = found.rows
    with pytest.raises(RecordError, match="/transactions: could not be read: .* HTTP 404: not shown"):
        mapped(SHIPBOB, ctx, "bills", unread)
    assert mapped(SHIPBOB, ctx, "bills", other).items


@pytest.mark.parametrize(("stream", "path"), [("bills", "/transactions"), ("receipts", "/boxes")])
def test_refused_credentials_concern_all_records(stream: str, path: str) -> None:
    """They are no fault of one record, which is not set aside then."""
    altered = Altered(filled_shipbob(), path, 403)
    found = read(SHIPBOB, shipbob(altered, **MOVED, **BILLED), stream)
    assert "refused the credentials" in str(found.error)
    assert not isinstance(found.error, RefusedError)


# ---- Amazon


@pytest.fixture
def amazon(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Context[Any]]:
    """Makes a context of an Amazon whose answers are changed, those for the order ord_2 or of another path."""
    fake = filled_amazon()
    secrets = {"REFRESH_TOKEN": "Atzr|SELLER-A", "CLIENT_ID": fake.client_id, "CLIENT_SECRET": fake.client_secret}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    given: dict[str, Any] = {
        **threepl_vendors.amazon("https://sellingpartnerapi.example"),
        **{name.lower(): f"env:{name}" for name in secrets},
        "orders": SENT,
        "first": "2026-01-01T00:00:00Z",
    }

    def made(change: Change | int, path: str = "ord_2") -> Context[Any]:
        return context(AMAZON, given, transport=transport(Altered(fake, path, change)))

    return made


@pytest.mark.parametrize("name", ["products", "stock"])
def test_a_row_of_stock_without_a_readable_sku_is_one_row(amazon: Callable[..., Context[Any]], name: str) -> None:
    """It is set aside without a key, and the others are read."""
    usual = read(AMAZON, amazon(lambda _: None, "/inventory/"), name)

    def change(body: Any) -> None:
        body["payload"]["inventorySummaries"][0]["sellerSku"] = ["LAMP"]

    found = read(AMAZON, amazon(change, "/inventory/"), name)
    assert (found.error, len(found.rows)) == (None, len(usual.rows))


@pytest.mark.parametrize(
    "change",
    [404, 400, without("payload"), without("payload", "fulfillmentOrder", "fulfillmentOrderStatus")],
    ids=["404", "400", "no order", "no status"],
)
def test_an_order_of_amazon_that_cannot_be_read_is_a_dead_letter(
    amazon: Callable[[Change | int], Context[Any]], change: Change | int
) -> None:
    """The other orders are read, the time moves on, and the order is read again in the next run."""
    ctx = amazon(change)
    found = read(AMAZON, ctx, "shipments")
    assert found.error is None
    assert "platform:ord_2" in exact_json.loads(found.cursor or "")["open"]
    by_key = {row["order_key"]: row for row in found.rows}
    assert set(by_key) == {"ord_0", "ord_1", "ord_2"}
    with pytest.raises(RecordError):
        mapped(AMAZON, ctx, "shipments", by_key["ord_2"])
    assert mapped(AMAZON, ctx, "shipments", by_key["ord_0"])
