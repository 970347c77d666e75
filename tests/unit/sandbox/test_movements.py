from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.sandbox.raw import LOTS, ManualTime, Raw, assert_problem, exact
from tests.unit.sandbox.stock import Stock


@pytest.fixture
def stock(raw: Raw) -> Stock:
    return Stock(raw)


def test_a_part_of_a_lot_is_moved(raw: Raw, stock: Stock, clock: ManualTime) -> None:
    """A lot is made in the other bin, all three changes are witnessed, and the answer is the movement."""
    before = len(raw.effects())
    clock.now += 60
    answer = stock.move("2.5", idempotency_key="k")
    assert answer.status_code == 201
    movement = exact(answer)
    assert movement.pop("id").startswith("mov_")
    there = movement.pop("toLotId")
    assert movement == {
        "lotId": stock.lot,
        "fromBinId": stock.bins[0],
        "toBinId": stock.bins[1],
        "quantity": Decimal("2.5"),
        "createdAt": "2027-01-15T08:01:00.000000Z",
    }
    source, made = exact(raw("GET", f"{LOTS}/{stock.lot}")), exact(raw("GET", f"{LOTS}/{there}"))
    assert source["quantity"] == Decimal("7.5")
    own = {"id": there, "externalId": "L@B", "binId": stock.bins[1], "quantity": Decimal("2.5")}
    assert made == {**source, **own, "createdAt": source["updatedAt"]}
    told = raw.effects(f"?after={before}")
    assert [(each["operation"], each["resource"], each["id"], each["body"]) for each in told] == [
        ("move", "inventory_lot", stock.lot, exact(answer)),
        ("update", "inventory_lot", stock.lot, source),
        ("create", "inventory_lot", there, made),
    ]
    assert {(each["idempotencyKey"], each["requestId"]) for each in told} == {("k", answer.headers["x-request-id"])}


def test_what_is_moved_joins_what_is_there(raw: Raw, stock: Stock) -> None:
    """The lot of the same product and number in that bin takes it up, the oldest first; other lots do not."""
    other = stock.make("other number", "1", stock.bins[1])
    raw("PATCH", f"{LOTS}/{other}", '{"lotNumber":"17"}')
    first, _ = stock.make("first", "0.0001", stock.bins[1]), stock.make("second", "5", stock.bins[1])
    assert exact(stock.move("10"))["toLotId"] == first
    assert stock.held() == {
        "L": (stock.bins[0], Decimal(0)),
        "other number": (stock.bins[1], Decimal(1)),
        "first": (stock.bins[1], Decimal("10.0001")),
        "second": (stock.bins[1], Decimal(5)),
    }
    assert [each["operation"] for each in raw.effects("?resource=inventory_lot")][-3:] == ["move", "update", "update"]
    assert exact(stock.move("10", to=0, lot=first))["toLotId"] == stock.lot


def test_a_lot_that_lies_nowhere_is_put_into_a_bin(stock: Stock) -> None:
    """Its movement comes from no bin."""
    loose = stock.make("loose", "3", None)
    assert "fromBinId" not in exact(stock.move("3", to=2, lot=loose))
    assert stock.held()["loose@C"] == (stock.bins[2], Decimal(3))


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        pytest.param('{"toBinId":"B","quantity":10.0001}', ["#/quantity"], id="more than there is"),
        pytest.param('{"toBinId":"B","quantity":0}', ["#/quantity"], id="nothing"),
        pytest.param('{"toBinId":"B","quantity":-1}', ["#/quantity"], id="less than nothing"),
        pytest.param('{"toBinId":"B","quantity":0.00001}', ["#/quantity"], id="five decimals"),
        pytest.param('{"toBinId":"B","quantity":1E99}', ["#/quantity"], id="huge"),
        pytest.param('{"toBinId":"B","quantity":"1"}', ["#/quantity"], id="quantity is text"),
        pytest.param('{"toBinId":"B","quantity":true}', ["#/quantity"], id="quantity is a truth value"),
        pytest.param('{"toBinId":"B","quantity":null}', ["#/quantity"], id="quantity is null"),
        pytest.param('{"toBinId":"B"}', ["#/quantity"], id="no quantity"),
        pytest.param('{"quantity":1}', ["#/toBinId"], id="no bin"),
        pytest.param('{"toBinId":"bin_0","quantity":1}', ["#/toBinId"], id="no such bin"),
        pytest.param('{"toBinId":"A","quantity":1}', ["#/toBinId"], id="the bin it is in"),
        pytest.param('{"toBinId":"A","quantity":11}', ["#/quantity", "#/toBinId"], id="two faults at once"),
        pytest.param('{"toBinId":7,"quantity":1}', ["#/toBinId"], id="bin is a number"),
        pytest.param('{"to_bin_id":"B","quantity":1}', ["#/toBinId", "#/to_bin_id"], id="snake case"),
        pytest.param('{"toBinId":"B","quantity":1,"fromBinId":"A"}', ["#/fromBinId"], id="unknown member"),
        pytest.param("[]", ["#"], id="a list"),
    ],
)
def test_a_movement_that_does_not_fit_is_422(raw: Raw, stock: Stock, body: str, pointers: list[str]) -> None:
    """Each fault is told with a pointer, and nothing is moved."""
    for code, bin_id in zip("AB", stock.bins, strict=False):
        body = body.replace(f'"toBinId":"{code}"', f'"toBinId":"{bin_id}"')
    before = len(raw.effects())
    problem = assert_problem(raw("POST", stock.path(), body), 422)
    assert sorted(each["pointer"] for each in problem["errors"]) == pointers
    assert (len(raw.effects()), stock.held()) == (before, {"L": (stock.bins[0], Decimal(10))})


def test_a_lot_takes_no_more_than_a_number_holds(raw: Raw, stock: Stock) -> None:
    """What would have sixteen digits is refused."""
    stock.make("full", "999999999999999.9999", stock.bins[1])
    before = len(raw.effects())
    problem = assert_problem(stock.move("0.0001"), 422)
    assert [each["pointer"] for each in problem["errors"]] == ["#/quantity"]
    assert len(raw.effects()) == before


def test_the_made_lot_finds_a_name(raw: Raw, stock: Stock) -> None:
    """The bin's externalId serves where the name with its code is taken; where both are taken it is 409."""
    stock.make("L@B", "1", None)
    stock.move("1")
    assert stock.held()["L@wms:B"] == (stock.bins[1], Decimal(1))
    stock.make("L@C", "1", stock.bins[0])
    stock.make("L@wms:C", "1", stock.bins[0])
    before = len(raw.effects())
    problem = assert_problem(stock.move("1", to=2), 409)
    assert [each["pointer"] for each in problem["errors"]] == ["#/toBinId"]
    long = stock.make("x" * 499, "1", stock.bins[0])
    assert_problem(stock.move("1", to=2, lot=long), 409)
    assert len(raw.effects()) == before + 1


def test_two_movements_at_once_do_not_take_the_same(raw: Raw, stock: Stock) -> None:
    """Of several that share a commit, only as many succeed as the lot has stock for; one key moves once."""
    body = f'{{"toBinId":"{stock.bins[1]}","quantity":4}}'
    keys = ["a", "b", "c", "d"]
    answers = raw.together([raw.request("POST", stock.path(), body, idempotency_key=key) for key in keys])
    assert sorted(each.status_code for each in answers) == [201, 201, 422, 422]
    again = [raw("POST", stock.path(), body, idempotency_key=key) for key in keys]
    assert [each.content for each in again] == [each.content for each in answers]
    assert all(each.headers["idempotent-replayed"] == "true" for each in again)
    assert stock.held() == {"L": (stock.bins[0], Decimal(2)), "L@B": (stock.bins[1], Decimal(8))}
    assert [each["operation"] for each in raw.effects("?resource=inventory_lot")].count("move") == 2


quantities = st.integers(1, 12 * 10**4).map(lambda number: Decimal(number).scaleb(-4))
moves = st.tuples(st.integers(0, 3), st.integers(0, 2), quantities)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=st.lists(moves, min_size=1, max_size=6))
def test_movements_conserve_the_total(raw: Raw, wanted: list[tuple[int, int, Decimal]]) -> None:
    """Whatever is moved or refused, the sum over all lots stays exact, and the witness explains every quantity."""
    if not hasattr(raw, "stock"):
        vars(raw)["stock"] = Stock(raw)
    stock: Stock = vars(raw)["stock"]
    for number, to, quantity in wanted:
        lots = exact(raw("GET", LOTS))["data"]
        lot = lots[number % len(lots)]
        fits = quantity <= lot["quantity"] and stock.bins[to] != lot["binId"]
        assert stock.move(f"{quantity:f}", to, lot["id"]).status_code == (201 if fits else 422)
    held = stock.held()
    assert sum(quantity for _, quantity in held.values()) == 10
    explained = {bin_id: Decimal(0) for bin_id in stock.bins} | {stock.bins[0]: Decimal(10)}
    for effect in raw.effects("?resource=inventory_lot&limit=10000"):
        if effect["operation"] == "move":
            explained[effect["body"]["fromBinId"]] -= effect["body"]["quantity"]
            explained[effect["body"]["toBinId"]] += effect["body"]["quantity"]
    assert {bin_id: q for bin_id, q in explained.items() if q} == {bin_id: q for bin_id, q in held.values() if q}
