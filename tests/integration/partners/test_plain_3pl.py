"""The fake 3PL with a plain API: its lists, orders and stock, as a client sees them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integration.partners.plain_3pl_account import Account, order_body
from tests.partners.plain_3pl import MOST_ON_A_PAGE
from tests.partners.plain_3pl_habits import Habits


@pytest.fixture
def account() -> Account:
    return Account()


def references(orders: list[dict[str, Any]]) -> str:
    return " ".join(order["reference"] for order in orders)


# ---- lists


def test_a_list_has_the_records_of_all_owners_unless_one_is_given(account: Account) -> None:
    """Both owners have a product of each SKU; one that the account lacks has none."""
    assert [(each["owner"], each["sku"]) for each in account.listed("products")] == [
        ("acme", "0017"), ("acme", "0018"), ("globex", "0017"), ("globex", "0018"),
    ]  # fmt: skip
    assert {each["owner"] for each in account.listed("products", owner="globex")} == {"globex"}
    assert account.listed("products", owner="initech") == []


@given(seconds=st.lists(st.integers(0, 2), max_size=12), limit=st.integers(1, 5), first=st.integers(0, 12))
def test_pages_have_each_record_since_a_time_once_sorted_by_time_then_id(
    seconds: list[int], limit: int, first: int
) -> None:
    """Whatever the size of the pages, and however many records have the same time; the time itself is included."""
    account = Account()
    for number, passed in enumerate(seconds):
        account.clock.advance(passed)
        account.order(f"SO-{number}")
    since = f"2026-01-01T00:00:{first:02}Z"
    pages = list(account.pages("orders", limit=limit, updated_since=since))
    expected = [order for order in account.listed("orders") if order["updated_at"] >= since]
    assert [order for page in pages for order in page] == expected
    assert len(expected) == sum(sum(seconds[: n + 1]) >= first for n in range(len(seconds)))
    assert expected == sorted(expected, key=lambda order: (order["updated_at"], order["id"]))
    assert all(len(page) == limit for page in pages[:-1])


def test_a_record_that_changes_between_two_pages_moves_to_the_end(account: Account) -> None:
    """It is listed twice, with its new content the second time, and no other record is skipped."""
    first = account.order("SO-1")
    for number in (2, 3):
        account.order(f"SO-{number}")
    pages = account.pages("orders", limit=2)
    assert references(next(pages)) == "SO-1 SO-2"
    account.clock.advance(1)
    account.warehouse.cancel(first)
    rest = next(pages)
    assert (references(rest), rest[-1]["status"]) == ("SO-3 SO-1", "Void")


def test_a_page_has_at_most_fifty_records(account: Account) -> None:
    """A larger limit is lowered without a word."""
    for number in range(MOST_ON_A_PAGE + 1):
        account.order(f"SO-{number}")
    assert [len(page) for page in account.pages("orders", limit=1000)] == [50, 1]


@pytest.mark.parametrize("params", [{"limit": 0}, {"limit": "x"}, {"cursor": "x"}, {"updated_since": "today"}])
def test_a_bad_parameter_is_refused(account: Account, params: dict[str, object]) -> None:
    """With 400."""
    assert account.answer("GET", "/orders", params=params).status == 400


def test_unknown_records_paths_and_keys_are_refused(account: Account) -> None:
    """With 404, and 401 for a key."""
    paths = [("GET", "/orders/000001"), ("GET", "/customers"), ("DELETE", "/orders/000001"), ("PUT", "/stock/1")]
    assert [account.send(*path)[0] for path in paths] == [404] * len(paths)
    assert account.send("GET", "/orders", api_key="another")[0] == 401


def test_a_reference_finds_the_orders_of_all_owners(account: Account) -> None:
    """Two owners may have orders with the same reference."""
    account.order("SO-1")
    account.order("SO-2")
    account.send("POST", "/orders", order_body("SO-1", owner="globex"))
    assert [order["owner"] for order in account.listed("orders", reference="SO-1")] == ["acme", "globex"]
    assert references(account.listed("orders", reference="SO-1", owner="acme")) == "SO-1"


def test_without_a_look_up_a_reference_is_ignored() -> None:
    """The answer has all orders, and not the one that was asked for."""
    account = Account(Habits(look_up=False))
    account.order("SO-1")
    account.order("SO-2")
    assert references(account.listed("orders", reference="SO-2")) == "SO-1 SO-2"


# ---- new orders


def test_an_idempotency_key_creates_one_order(account: Account) -> None:
    """A repeat gets the same answer, even if the order has changed; other content is refused; another key is another
    order."""
    first = account.answer("POST", "/orders", order_body(), idempotency_key="k1")
    account.warehouse.cancel(account.listed("orders")[0]["id"])
    assert account.answer("POST", "/orders", order_body(), idempotency_key="k1") == first
    assert account.send("POST", "/orders", order_body(quantity=6), idempotency_key="k1")[0] == 422
    assert account.send("POST", "/orders", order_body(), idempotency_key="k2")[0] == 201
    assert len(account.listed("orders")) == len(account.partner.effects) == 2


def test_a_refusal_is_not_kept_for_its_idempotency_key(account: Account) -> None:
    """The same request succeeds when its reason is gone."""
    body = order_body() | {"lines": [{"sku": "0019", "quantity": 1}]}
    assert account.send("POST", "/orders", body, idempotency_key="k1")[0] == 422
    account.warehouse.add_product("acme", "0019")
    assert account.send("POST", "/orders", body, idempotency_key="k1")[0] == 201


def test_without_idempotency_a_repeat_is_another_order() -> None:
    """Neither the key nor the reference is looked at."""
    account = Account(Habits(idempotency_keys=False))
    assert account.order(idempotency_key="k1") != account.order(idempotency_key="k1")
    assert [effect["body"] for effect in account.partner.effects] == [order_body(), order_body()]


@pytest.mark.parametrize("status", [409, 422])
def test_a_repeated_reference_is_refused(status: Any) -> None:
    """With the configured status, also if the first order is cancelled; not for another owner."""
    account = Account(Habits(idempotency_keys=False, repeated_reference=status))
    account.warehouse.cancel(account.order())
    refused = account.send("POST", "/orders", order_body())
    assert (refused[0], refused[1]["code"]) == (status, "duplicate_reference")
    assert account.send("POST", "/orders", order_body(owner="globex"))[0] == 201


_CREATES = st.tuples(
    st.sampled_from(["acme", "globex"]), st.sampled_from(["SO-1", "SO-2"]), st.integers(1, 3), st.booleans()
)


@given(creates=st.lists(_CREATES, max_size=12), keys=st.booleans())
def test_a_natural_key_has_one_order(creates: list[tuple[str, str, int, bool]], keys: bool) -> None:
    """Whatever is sent, an owner has one order of each reference, with the content that came first."""
    account = Account(Habits(idempotency_keys=keys, repeated_reference=409))
    first: dict[tuple[str, str], int] = {}
    for owner, reference, quantity, cancels in creates:
        headers = {"idempotency_key": f"{owner} {reference} {quantity}"}
        account.send("POST", "/orders", order_body(reference, quantity, owner), **headers)
        first.setdefault((owner, reference), quantity)
        found = account.listed("orders", owner=owner, reference=reference)
        if cancels and found[0]["status"] != "Void":
            account.warehouse.cancel(found[0]["id"])
    stored = [(each["owner"], each["reference"], each["lines"][0]["quantity"]) for each in account.listed("orders")]
    assert sorted(stored) == sorted((*name, quantity) for name, quantity in first.items())


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"owner": "initech"}, "unknown_product"),
        ({"reference": ""}, "bad_value"),
        ({"lines": []}, "bad_value"),
        ({"lines": ["0017"]}, "bad_value"),
        ({"lines": [{"sku": "0017", "quantity": 0}]}, "bad_value"),
        ({"lines": [{"sku": "0017", "quantity": 1, "unit_price": "9.50"}]}, "bad_value"),
        ({"lines": [{"sku": "0017"}]}, "missing_member"),
        ({"lines": [{"sku": "17", "quantity": 1}]}, "unknown_product"),
        ({"colour": "red"}, "unknown_member"),
    ],
)
def test_a_bad_order_is_refused(account: Account, changes: dict[str, Any], code: str) -> None:
    """With 422 and a code; nothing is stored."""
    status, body = account.send("POST", "/orders", order_body() | changes)
    assert (status, body["code"]) == (422, code)
    assert account.listed("orders") == account.partner.effects == []


def test_an_order_needs_an_owner_of_the_account(account: Account) -> None:
    """A merchant with products, but without a contract, cannot order."""
    account.warehouse.add_product("initech", "0017")
    status, body = account.send("POST", "/orders", order_body(owner="initech"))
    assert (status, body["code"]) == (422, "unknown_owner")


def test_a_body_that_is_no_object_is_refused(account: Account) -> None:
    """With 400."""
    assert account.send("POST", "/orders", ["SO-1"])[0] == 400
    assert account.send("POST", "/orders")[0] == 400


# ---- changes of orders


def test_put_replaces_and_patch_merges(account: Account) -> None:
    """PUT drops what it does not have; PATCH keeps it, removes what is null, and replaces lists as a whole."""
    order_id = account.order()
    ship_to = {"ship_to": {"name": "Ada", "city": "Ulm"}, "currency": "EUR"}
    account.send("PUT", f"/orders/{order_id}", order_body() | ship_to)
    _, order = account.send("PATCH", f"/orders/{order_id}", {"ship_to": {"name": None, "zip": "089"}})
    assert (order["ship_to"], order["currency"]) == ({"city": "Ulm", "zip": "089"}, "EUR")
    _, order = account.send("PATCH", f"/orders/{order_id}", {"lines": [{"sku": "0018", "quantity": Decimal("1.5")}]})
    assert order["lines"] == [{"line": 1, "sku": "0018", "quantity": Decimal("1.5"), "shipped": 0, "short": 0}]
    _, order = account.send("PUT", f"/orders/{order_id}", order_body(quantity=7))
    assert "ship_to" not in order
    kinds = [effect["kind"] for effect in account.partner.effects]
    assert kinds == ["order_created", "order_replaced", "order_patched", "order_patched", "order_replaced"]


def test_an_order_that_was_read_can_be_sent_back(account: Account) -> None:
    """What only the 3PL sets is ignored."""
    order = account.get(f"/orders/{account.order()}")
    assert account.send("PUT", f"/orders/{order['id']}", order | {"status": "Despatched"}) == (200, order)


def test_owner_and_reference_are_fixed(account: Account) -> None:
    """A change of them is refused with 422."""
    path = f"/orders/{account.order()}"
    for change in ({"owner": "globex"}, {"reference": "SO-2"}):
        status, body = account.send("PATCH", path, change)
        assert (status, body["code"]) == (422, "fixed_member")


@pytest.mark.parametrize(("conditional", "without"), [("accepted", 200), ("required", 428)])
def test_an_outdated_if_match_is_refused(conditional: Any, without: int) -> None:
    """With 412, and nothing is changed; a change without If-Match is accepted or refused with 428."""
    account = Account(Habits(conditional=conditional))
    path = f"/orders/{account.order()}"
    tag = account.answer("GET", path).headers["etag"]
    assert account.answer("PATCH", path, {"currency": "EUR"}, if_match=tag).headers["etag"] != tag
    assert account.send("PATCH", path, {"currency": "USD"}, if_match=tag)[0] == 412
    assert account.send("POST", f"{path}/cancel", if_match=tag)[0] == 412
    assert account.get(path)["currency"] == "EUR"
    assert account.send("PATCH", path, {"currency": "USD"})[0] == without


def test_without_conditions_the_last_change_wins(account: Account) -> None:
    """There is no ETag, and If-Match is ignored."""
    path = f"/orders/{account.order()}"
    assert account.answer("GET", path).headers == {}
    assert account.send("PATCH", path, {"currency": "EUR"}, if_match='"0"')[0] == 200


@pytest.mark.parametrize(("conditional", "status"), [("none", 409), ("required", 412)])
def test_the_warehouse_cancels_while_an_update_is_under_way(conditional: Any, status: int) -> None:
    """The update, sent for an order that was open when it was read, is refused, and so is a second one; the answer
    names the status if it can."""
    account = Account(Habits(conditional=conditional))
    order_id = account.order()
    tag = account.answer("GET", f"/orders/{order_id}").headers.get("etag", "")
    account.partner.meanwhile(lambda request: request.method == "PUT", lambda: account.warehouse.cancel(order_id))
    for _ in range(2):
        found, body = account.send("PUT", f"/orders/{order_id}", order_body(quantity=7), if_match=tag)
        assert (found, body.get("order_status")) == (status, "Void" if status == 409 else None)
    assert account.get(f"/orders/{order_id}")["lines"][0]["quantity"] == 5


def test_an_order_is_cancelled_once(account: Account) -> None:
    """A second time is too late; the same Idempotency-Key gets the first answer."""
    path = f"/orders/{account.order()}/cancel"
    first = account.send("POST", path, {"reason": "double"}, idempotency_key="k1")
    assert (first[0], first[1]["status"]) == (200, "Void")
    assert account.send("POST", path, {"reason": "double"}, idempotency_key="k1") == first
    assert account.send("POST", path)[0] == 409
    assert account.partner.effects[1:] == [
        {"kind": "order_cancelled", "id": first[1]["id"], "body": {"reason": "double"}}
    ]


# ---- stock


def stock_of(account: Account, quantity: int = 10) -> str:
    """The path of a stock record."""
    account.warehouse.receive("acme", "0017", "L1", "A-01", quantity)
    return f"/stock/{account.listed('stock')[0]['id']}"


def test_stock_is_set_if_it_is_as_expected(account: Account) -> None:
    """Otherwise 409 tells the present quantity; without an expectation it is refused."""
    path = stock_of(account)
    assert account.send("PUT", path, {"quantity": 12, "expected_quantity": 10})[1]["quantity"] == 12
    status, body = account.send("PUT", path, {"quantity": 11, "expected_quantity": 10})
    assert (status, body["quantity"]) == (409, 12)
    assert account.send("PUT", path, {"quantity": 11})[0] == 422
    assert account.send("POST", f"{path}/adjustments", {"id": "a1", "delta": 1})[0] == 404
    assert [effect["kind"] for effect in account.partner.effects] == ["stock_set"]


def test_an_adjustment_is_carried_out_once() -> None:
    """A repeated id changes nothing, with other content it is refused, and an id is required."""
    account = Account(Habits(stock_writes="adjust", idempotency_keys=False))
    path = stock_of(account)
    for expected in (200, 200):
        status, stock = account.send("POST", f"{path}/adjustments", {"id": "a1", "delta": Decimal("-2.5")})
        assert (status, stock["quantity"]) == (expected, Decimal("7.5"))
    assert account.send("POST", f"{path}/adjustments", {"id": "a1", "delta": -3})[0] == 409
    assert account.send("POST", f"{path}/adjustments", {"delta": -3})[0] == 422
    assert account.send("POST", f"{path}/adjustments", {"id": "a2", "delta": "3"})[0] == 422
    assert account.send("PUT", path, {"quantity": 1, "expected_quantity": 7})[0] == 404
    assert [effect["body"] for effect in account.partner.effects] == [{"id": "a1", "delta": Decimal("-2.5")}]


@pytest.mark.parametrize(("negative", "status", "quantity"), [(False, 422, 10), (True, 200, -1)])
def test_stock_below_zero_is_refused_unless_it_is_a_habit(negative: bool, status: int, quantity: int) -> None:
    """What is refused changes nothing."""
    account = Account(Habits(stock_writes="adjust", negative_stock=negative))
    path = stock_of(account)
    assert account.send("POST", f"{path}/adjustments", {"id": "a1", "delta": -11})[0] == status
    assert account.get(path)["quantity"] == quantity
