"""What the people of the fake 3PL's warehouse do, as a client sees it."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integration.partners.plain_3pl_account import Account
from tests.partners.plain_3pl_habits import Habits


@pytest.fixture
def account() -> Account:
    """Acme has 3 and 4 pieces of a product in two lots, and 2 of another one."""
    account = Account()
    for sku, lot, quantity in (("0017", "L1", 3), ("0017", "L2", 4), ("0018", "L1", 2)):
        account.warehouse.receive("acme", sku, lot, "A-01", quantity)
    return account


def quantities(account: Account) -> list[Any]:
    return [each["quantity"] for each in sorted(account.listed("stock"), key=lambda each: str(each["id"]))]


def order_state(account: Account, order_id: str) -> tuple[str, Any, Any]:
    """The status of an order, and what is shipped and short of its first line."""
    order = account.get(f"/orders/{order_id}")
    return order["status"], order["lines"][0]["shipped"], order["lines"][0]["short"]


def test_an_order_is_shipped_in_parts_from_the_oldest_stock(account: Account) -> None:
    """Each part is a shipment with its lots, and the order is done with the last one."""
    order_id = account.order(quantity=5)
    account.warehouse.ship(order_id, {1: 2})
    assert (order_state(account, order_id), quantities(account)) == (("PartDespatched", 2, 0), [1, 4, 2])
    account.warehouse.ship(order_id, {1: 3})
    assert (order_state(account, order_id), quantities(account)) == (("Despatched", 5, 0), [0, 2, 2])
    shipments = account.listed("shipments", owner="acme")
    assert [[(line["lot"], line["quantity"]) for line in each["lines"]] for each in shipments] == [
        [("L1", 2)],
        [("L1", 1), ("L2", 2)],
    ]
    assert {(each["order_id"], each["reference"]) for each in shipments} == {(order_id, "SO-1")}
    assert len({each["tracking"] for each in shipments}) == 2


def test_an_order_that_is_in_work_cannot_be_changed(account: Account) -> None:
    """Neither after a part is shipped nor after a part is given up."""
    shipped, short = account.order("SO-1"), account.order("SO-2")
    account.warehouse.ship(shipped, {1: 1})
    account.warehouse.short(short, 1, 1)
    for order_id in (shipped, short):
        assert account.send("PATCH", f"/orders/{order_id}", {"currency": "EUR"})[0] == 409
        assert account.send("POST", f"/orders/{order_id}/cancel")[0] == 409
        with pytest.raises(ValueError, match="cannot be cancelled"):
            account.warehouse.cancel(order_id)


def test_a_line_that_is_given_up_closes_the_order_short(account: Account) -> None:
    """With what was shipped before."""
    order_id = account.order(quantity=5)
    account.warehouse.ship(order_id, {1: 4})
    account.warehouse.short(order_id, 1, 1)
    assert order_state(account, order_id) == ("ClosedShort", 4, 1)


def test_another_product_can_be_shipped_in_place_of_the_one_ordered(account: Account) -> None:
    """The shipment has both; the stock of the one that was shipped is reduced."""
    order_id = account.order(quantity=2)
    account.warehouse.substitute(order_id, 1, 2, "0018")
    (shipment,) = account.listed("shipments")
    assert (shipment["lines"][0]["sku"], shipment["lines"][0]["ordered_sku"]) == ("0018", "0017")
    assert (order_state(account, order_id), quantities(account)) == (("Despatched", 2, 0), [3, 4, 0])


def test_what_is_impossible_changes_nothing(account: Account) -> None:
    """More than the stock, the line or the order has, and anything with an order that is cancelled."""
    order_id, cancelled = account.order("SO-1", quantity=9), account.order("SO-2")
    account.warehouse.cancel(cancelled)
    warehouse, stock_id = account.warehouse, account.listed("stock")[0]["id"]
    before = {table: account.listed(table) for table in warehouse.tables}
    account.clock.advance(1)
    for attempt in (
        lambda: warehouse.ship(order_id, {1: 8}),
        lambda: warehouse.ship(order_id, {1: 10}),
        lambda: warehouse.ship(order_id, {2: 1}),
        lambda: warehouse.ship(cancelled, {1: 1}),
        lambda: warehouse.substitute(order_id, 1, 3, "0018"),
        lambda: warehouse.short(order_id, 1, 10),
        lambda: warehouse.mark(cancelled, "Odd"),
        lambda: warehouse.cancel(cancelled),
        lambda: warehouse.adjust(stock_id, -4),
        lambda: warehouse.receive("acme", "0019", "L1", "A-01", 1),
        lambda: warehouse.receive("acme", "0017", "L1", "A-01", 0),
        lambda: warehouse.add_product("acme", "0017"),
    ):
        with pytest.raises(ValueError):
            attempt()
    assert {table: account.listed(table) for table in warehouse.tables} == before


def test_only_available_stock_of_the_owner_is_shipped() -> None:
    """Goods on hold and damaged goods are stock records of their own."""
    account = Account()
    account.warehouse.receive("globex", "0017", "L1", "A-01", 3)
    account.warehouse.receive("acme", "0017", "L1", "A-01", 3, state="hold")
    account.warehouse.receive("acme", "0017", "L1", "A-01", 3, state="damaged")
    with pytest.raises(ValueError, match="acme lacks 1 of '0017'"):
        account.warehouse.ship(account.order(), {1: 1})
    found = [(each["state"], each["quantity"]) for each in account.listed("stock", owner="acme")]
    assert found == [("hold", 3), ("damaged", 3)]


def test_two_lines_do_not_take_the_same_goods(account: Account) -> None:
    """They share the stock of their product."""
    line = {"sku": "0018", "quantity": 2}
    _, order = account.send("POST", "/orders", {"owner": "acme", "reference": "SO-1", "lines": [line, line]})
    with pytest.raises(ValueError, match="acme lacks 1 of '0018'"):
        account.warehouse.ship(order["id"], {1: 2, 2: 1})
    account.warehouse.ship(order["id"], {1: 1, 2: 1})
    assert quantities(account) == [3, 4, 0]


def test_nothing_is_taken_from_stock_below_zero_while_another_record_has_some() -> None:
    """What none has is missing from the newest record."""
    account = Account(Habits(negative_stock=True))
    for lot in ("L1", "L2"):
        account.warehouse.receive("acme", "0017", lot, "A-01", 3)
    account.warehouse.adjust(account.listed("stock")[0]["id"], -5)
    order_id = account.order(quantity=5)
    account.warehouse.ship(order_id, {1: 2})
    assert quantities(account) == [-2, 1]
    account.warehouse.ship(order_id, {1: 3})
    assert quantities(account) == [-2, -2]


def test_a_receipt_tells_what_was_expected_and_what_came(account: Account) -> None:
    """The stock grows by what came."""
    receipt_id = account.warehouse.receive("acme", "0017", "L1", "A-01", 5, expected=6)
    (line,) = account.get(f"/receipts/{receipt_id}")["lines"]
    assert (line["expected"], line["received"], quantities(account)) == (6, 5, [8, 4, 2])


def test_lost_stock_disappears_from_the_list(account: Account) -> None:
    """It does not stay with a quantity of 0."""
    account.warehouse.lose(account.listed("stock")[0]["id"])
    assert quantities(account) == [4, 2]


def test_a_bill_adds_up(account: Account) -> None:
    """Exactly, to the cent."""
    bill_id = account.warehouse.bill("acme", "EUR", {"storage": Decimal("0.10"), "picking": Decimal("0.20")})
    bill = account.get(f"/bills/{bill_id}")
    assert (bill["owner"], bill["total"], len(bill["lines"])) == ("acme", Decimal("0.3"), 2)


def test_a_location_is_listed_for_its_owner(account: Account) -> None:
    """Another owner may have one with the same code."""
    for owner in ("acme", "globex"):
        account.warehouse.add_location(owner, "A-01")
    assert [each["code"] for each in account.listed("locations", owner="globex")] == ["A-01"]


_QUANTITIES = st.integers(1, 9) | st.sampled_from([Decimal("0.5"), Decimal("2.25")])
_WORK = st.tuples(
    st.sampled_from(["receive", "ship", "substitute", "short", "adjust", "request", "lose"]),
    st.integers(0, 3),
    _QUANTITIES,
)


@given(work=st.lists(_WORK, max_size=25), negative=st.booleans())
def test_stock_adds_up(work: list[tuple[str, int, Any]], negative: bool) -> None:
    """Stock is what was received, less what was shipped and lost, and adjustments; below zero only as a habit."""
    account = Account(Habits(negative_stock=negative, stock_writes="adjust"))
    orders = [account.order(f"SO-{number}", quantity=9) for number in range(2)]
    expected: Counter[str] = Counter()
    for number, (kind, choice, quantity) in enumerate(work):
        with suppress(ValueError):  # impossible, and therefore without a consequence
            _do(account, orders, expected, kind, choice, quantity, number)
    listed = [(each["sku"], each["quantity"]) for each in account.listed("stock")]
    for receipt in account.listed("receipts"):
        expected[receipt["lines"][0]["sku"]] += receipt["lines"][0]["received"]
    for shipment in account.listed("shipments"):
        for line in shipment["lines"]:
            expected[line["sku"]] -= line["quantity"]
    for sku in ("0017", "0018"):
        assert sum(quantity for each, quantity in listed if each == sku) == expected[sku]
    assert negative or all(quantity >= 0 for _, quantity in listed)
    shipped: Counter[str] = Counter()
    for shipment in account.listed("shipments"):
        shipped[shipment["order_id"]] += sum(line["quantity"] for line in shipment["lines"])
    for order in account.listed("orders"):
        (line,) = order["lines"]
        assert line["shipped"] == shipped[order["id"]]
        assert line["shipped"] + line["short"] <= line["quantity"]


def _do(
    account: Account, orders: list[str], expected: Counter[str], kind: str, choice: int, quantity: Any, number: int
) -> None:
    """Do a piece of work; adjustments and losses are added to *expected* if they succeed."""
    warehouse, sku = account.warehouse, ("0017", "0018")[choice % 2]
    order_id, stock = orders[choice // 2], account.listed("stock")
    match kind:
        case "receive":
            warehouse.receive("acme", sku, f"L{choice // 2}", "A-01", quantity)
        case "ship":
            warehouse.ship(order_id, {1: quantity})
        case "substitute":
            warehouse.substitute(order_id, 1, quantity, "0018")
        case "short":
            warehouse.short(order_id, 1, quantity)
        case _ if choice >= len(stock):
            return
        case "adjust":
            warehouse.adjust(stock[choice]["id"], -quantity)
            expected[stock[choice]["sku"]] -= quantity
        case "request":
            path = f"/stock/{stock[choice]['id']}/adjustments"
            status, _ = account.send("POST", path, {"id": f"a{number}", "delta": -quantity})
            expected[stock[choice]["sku"]] -= quantity if status == 200 else 0
        case "lose":
            warehouse.lose(stock[choice]["id"])
            expected[stock[choice]["sku"]] -= stock[choice]["quantity"]
