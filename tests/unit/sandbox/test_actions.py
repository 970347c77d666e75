from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.sandbox.raw import CUSTOMERS, INVOICES, LOTS, ORDERS, PRODUCTS, ManualTime, Raw, assert_problem, exact
from tests.unit.sandbox.stock import Stock


@pytest.fixture
def stock(raw: Raw) -> Stock:
    return Stock(raw)


@pytest.mark.parametrize("body", [None, "", "{}", " { } "])
def test_an_invoice_is_approved(raw: Raw, clock: ManualTime, body: str | None) -> None:
    """With an empty body or an empty object the answer is 200 with the stored invoice, and there is one effect."""
    made = raw("POST", INVOICES, raw.invoice())
    clock.now += 60
    answer = raw("POST", f"{made.headers['location']}/approve", body, idempotency_key="k")
    assert answer.status_code == 200
    expected = {**exact(made), "status": "approved", "updatedAt": "2027-01-15T08:01:00.000000Z"}
    assert exact(answer) == expected
    assert answer.headers["etag"] != made.headers["etag"]
    again = raw("GET", made.headers["location"])
    assert (again.content, again.headers["etag"]) == (answer.content, answer.headers["etag"])
    effect = raw.effects("?resource=invoice")[-1]
    assert (effect["operation"], effect["id"], effect["idempotencyKey"]) == ("approve", expected["id"], "k")
    assert effect["body"] == expected
    late = exact(raw("GET", f"{INVOICES}?updatedSince=2027-01-15T08:01:00Z"))
    assert late["data"] == [expected]


def test_approving_again_changes_nothing(raw: Raw, clock: ManualTime) -> None:
    """A retry after a lost response, without a key or with a new one, gets the approved invoice as it is."""
    path = raw("POST", INVOICES, raw.invoice()).headers["location"]
    first = raw("POST", f"{path}/approve")
    clock.now += 60
    for headers in ({}, {"idempotency_key": "new"}):
        again = raw("POST", f"{path}/approve", **headers)
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers["etag"] == first.headers["etag"]
    assert [each["operation"] for each in raw.effects("?resource=invoice")] == ["create", "approve"]


def test_an_approved_invoice_cannot_be_changed_or_deleted(raw: Raw) -> None:
    """Both are 409; before the approval both are allowed."""
    path = raw("POST", INVOICES, raw.invoice()).headers["location"]
    assert raw("PATCH", path, '{"currency":"GBP"}').status_code == 200
    approved = raw("POST", f"{path}/approve")
    assert_problem(raw("PATCH", path, '{"currency":"USD"}'), 409)
    assert_problem(raw("PATCH", path, "{}"), 409)
    assert_problem(raw("DELETE", path), 409)
    assert raw("GET", path).content == approved.content
    assert [each["operation"] for each in raw.effects("?resource=invoice")] == ["create", "update", "approve"]
    draft = raw("POST", INVOICES, raw.invoice()).headers["location"]
    assert raw("DELETE", draft).status_code == 204


@pytest.mark.parametrize(
    ("body", "status", "pointers"),
    [
        ("[]", 422, ["#"]),
        ("null", 422, ["#"]),
        ('{"status":"approved"}', 422, ["#/status"]),
        ("{", 400, None),
        (" ", 400, None),
    ],
)
def test_approving_accepts_no_other_body(raw: Raw, body: str, status: int, pointers: list[str] | None) -> None:
    """Any other body is refused, and the invoice stays a draft."""
    path = raw("POST", INVOICES, raw.invoice()).headers["location"]
    problem = assert_problem(raw("POST", f"{path}/approve", body), status)
    assert [each["pointer"] for each in problem["errors"]] == pointers if pointers else "errors" not in problem
    assert exact(raw("GET", path))["status"] == "draft"
    assert len(raw.effects("?resource=invoice")) == 1


def test_actions_exist_only_on_their_resource(raw: Raw, stock: Stock) -> None:
    """Unknown resources and actions are 404, wrong methods 405, wrong media types 415."""
    invoice, customer = raw.make(INVOICES, raw.invoice()), raw.make(CUSTOMERS, '{"externalId":"d","name":"n"}')
    before = len(raw.effects())
    for path in (
        f"{INVOICES}/inv_0/approve",
        f"{INVOICES}/{customer}/approve",
        f"{CUSTOMERS}/{customer}/approve",
        f"{INVOICES}/{invoice}/movements",
        f"{INVOICES}/{invoice}/approve/",
        f"{INVOICES}//approve",
        f"{LOTS}/lot_0/movements",
    ):
        body = f'{{"toBinId":"{stock.bins[1]}","quantity":1}}' if path.endswith("movements") else "{}"
        assert_problem(raw("POST", path, body), 404)
    for path in (f"{INVOICES}/{invoice}/approve", stock.path()):
        for method in ("GET", "PATCH", "DELETE"):
            answer = raw(method, path)
            assert_problem(answer, 405)
            assert answer.headers["allow"] == "POST"
        assert_problem(raw("POST", path, "{}", content_type="text/integers"), 415)
    assert_problem(raw("POST", stock.path(), content_type=None), 415)
    assert len(raw.effects()) == before


def test_actions_respect_if_match(raw: Raw, stock: Stock) -> None:
    """If-Match with another version is 412; with the current one the action is carried out."""
    made = raw("POST", INVOICES, raw.invoice())
    path, lot = made.headers["location"], f"{LOTS}/{stock.lot}"
    seen = raw("GET", lot).headers["etag"]
    raw("PATCH", path, '{"currency":"GBP"}')
    raw("PATCH", lot, '{"status":"blocked"}')
    before = len(raw.effects())
    assert_problem(raw("POST", f"{path}/approve", if_match=made.headers["etag"]), 412)
    assert_problem(stock.move("1", if_match=seen), 412)
    assert len(raw.effects()) == before
    assert raw("POST", f"{path}/approve", if_match=raw("GET", path).headers["etag"]).status_code == 200
    assert stock.move("1", if_match=raw("GET", lot).headers["etag"]).status_code == 201


def test_actions_stay_in_their_tenant(raw: Raw, stock: Stock) -> None:
    """Another tenant finds neither the invoice, nor the lot, nor the bin."""
    other = Raw(raw.sandbox, key=raw.sandbox.new_key("other"))
    invoice = raw.make(INVOICES, raw.invoice())
    before = len(raw.effects())
    assert_problem(other("POST", f"{INVOICES}/{invoice}/approve", x_tenant_slug="other"), 404)
    body = f'{{"toBinId":"{stock.bins[1]}","quantity":1}}'
    assert_problem(other("POST", stock.path(), body, x_tenant_slug="other"), 404)
    assert len(raw.effects()) == before


def test_actions_are_replayed_under_their_key(raw: Raw, stock: Stock) -> None:
    """With the same key an action happens once and its response is replayed, a refusal too; another action is 422."""
    path = raw("POST", INVOICES, raw.invoice()).headers["location"] + "/approve"
    before = len(raw.effects())
    for _ in range(2):
        answers = [
            raw("POST", path, idempotency_key="a"),
            stock.move("4", idempotency_key="m"),
            stock.move("11", idempotency_key="r"),
        ]
        assert [each.status_code for each in answers] == [200, 201, 422]
    assert all(each.headers["idempotent-replayed"] == "true" for each in answers)
    assert_problem(stock.move("4", idempotency_key="a"), 422)
    assert_problem(raw("POST", path, "{}", idempotency_key="a"), 422)
    effects = [each["operation"] for each in raw.effects(f"?after={before}")]
    assert effects == ["approve", "move", "update", "create"]
    assert stock.held()["L"] == (stock.bins[0], Decimal(6))


def test_the_status_of_an_order_is_free_text(raw: Raw) -> None:
    """Only invoices are approved: an order with the status "approved" can change."""
    customer = raw.make(CUSTOMERS, '{"externalId":"a","name":"n"}')
    product = raw.make(PRODUCTS, '{"externalId":"a","sku":"s","name":"n"}')
    order = raw.make(
        ORDERS,
        f'{{"externalId":"o","customerId":"{customer}","currency":"EUR","placedAt":"2027-01-01T00:00:00Z",'
        f'"status":"approved","items":[{{"productId":"{product}","quantity":1,"unitPrice":1}}]}}',
    )
    changed = exact(raw("PATCH", f"{ORDERS}/{order}", '{"externalId":"p"}'))
    assert (changed["status"], "total" in changed) == ("approved", False)
    assert raw("DELETE", f"{ORDERS}/{order}").status_code == 204


@pytest.mark.parametrize("member", ["status", "total"])
def test_status_and_total_are_read_only(raw: Raw, member: str) -> None:
    """A client cannot set them at creation or by a change."""
    value = {"status": '"draft"', "total": "25"}[member]
    path = raw("POST", INVOICES, raw.invoice()).headers["location"]
    for answer in (
        raw("POST", INVOICES, raw.invoice(**{member: value})),
        raw("PATCH", path, f'{{"{member}":{value}}}'),
    ):
        problem = assert_problem(answer, 422)
        assert [each["pointer"] for each in problem["errors"]] == [f"#/{member}"]
    assert len(raw.effects("?resource=invoice")) == 1


def test_an_invoice_of_an_older_sandbox_gets_both_with_its_next_change(raw: Raw) -> None:
    """Stored invoices without status and total count as drafts."""
    path = raw("POST", INVOICES, raw.invoice()).headers["location"]
    raw.sandbox._writing.execute("UPDATE stored SET body = json_remove(body, '$.status', '$.total')")
    changed = exact(raw("PATCH", path, '{"currency":"GBP"}'))
    assert (changed["status"], changed["total"]) == ("draft", 25)


integers = st.integers(-(10**15) + 1, 10**15 - 1)


amounts = st.builds(lambda whole, part: Decimal(whole) + Decimal(part).scaleb(-4), integers, st.integers(0, 9999))


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.tuples(amounts, amounts), min_size=1, max_size=8))
def test_a_total_is_exact(raw: Raw, lines: list[tuple[Decimal, Decimal]]) -> None:
    """It equals the sum of quantity x unitPrice to the last digit, at creation and after a change of the lines."""
    raw.invoice()
    product = raw._parents[1]
    items = [f'{{"productId":"{product}","quantity":{q:f},"unitPrice":{p:E}}}' for q, p in lines]
    made = raw("POST", INVOICES, raw.invoice(items=f"[{','.join(items)}]"))
    units = sum(int(q * 10**4) * int(p * 10**4) for q, p in lines)
    assert Decimal(exact(made)["total"]) == Decimal(f"{units}E-8")
    assert b"E" not in made.content.split(b'"total":')[1].split(b",")[0]
    fewer = raw("PATCH", made.headers["location"], f'{{"items":[{items[0]}]}}')
    assert Decimal(exact(fewer)["total"]) == Decimal(f"{int(lines[0][0] * 10**4) * int(lines[0][1] * 10**4)}E-8")
    assert exact(raw("POST", f"{made.headers['location']}/approve"))["total"] == exact(fewer)["total"]


def test_a_part_of_a_lot_is_moved(raw: Raw, stock: Stock, clock: ManualTime) -> None:
    """A lot is created in the other bin, all three effects are logged, and the response is the movement."""
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
    effects = raw.effects(f"?after={before}")
    assert [(each["operation"], each["resource"], each["id"], each["body"]) for each in effects] == [
        ("move", "inventory_lot", stock.lot, exact(answer)),
        ("update", "inventory_lot", stock.lot, source),
        ("create", "inventory_lot", there, made),
    ]
    assert {(each["idempotencyKey"], each["requestId"]) for each in effects} == {("k", answer.headers["x-request-id"])}


def test_a_movement_adds_to_the_matching_lot(raw: Raw, stock: Stock) -> None:
    """The oldest lot of the same product and lot number in that bin gets the quantity; other lots do not."""
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


def test_a_lot_without_a_bin_can_be_moved(stock: Stock) -> None:
    """The movement has no fromBinId."""
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
def test_an_invalid_movement_is_422(raw: Raw, stock: Stock, body: str, pointers: list[str]) -> None:
    """Each finding has a pointer, and nothing is moved."""
    for code, bin_id in zip("AB", stock.bins, strict=False):
        body = body.replace(f'"toBinId":"{code}"', f'"toBinId":"{bin_id}"')
    before = len(raw.effects())
    problem = assert_problem(raw("POST", stock.path(), body), 422)
    assert sorted(each["pointer"] for each in problem["errors"]) == pointers
    assert (len(raw.effects()), stock.held()) == (before, {"L": (stock.bins[0], Decimal(10))})


def test_a_movement_cannot_exceed_the_largest_quantity(raw: Raw, stock: Stock) -> None:
    """A movement that would make sixteen digits is refused."""
    stock.make("full", "999999999999999.9999", stock.bins[1])
    before = len(raw.effects())
    problem = assert_problem(stock.move("0.0001"), 422)
    assert [each["pointer"] for each in problem["errors"]] == ["#/quantity"]
    assert len(raw.effects()) == before


def test_the_new_lot_gets_a_free_external_id(raw: Raw, stock: Stock) -> None:
    """The suffix is the code of the bin, or its externalId if the first is taken; if both are taken it is 409."""
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
    """Of several in one commit, only as many succeed as the lot has stock for; one key moves once."""
    body = f'{{"toBinId":"{stock.bins[1]}","quantity":4}}'
    keys = ["a", "b", "c", "d"]
    answers = raw.together([raw.request("POST", stock.path(), body, idempotency_key=key) for key in keys])
    assert sorted(each.status_code for each in answers) == [201, 201, 422, 422]
    again = [raw("POST", stock.path(), body, idempotency_key=key) for key in keys]
    assert [each.content for each in again] == [each.content for each in answers]
    assert all(each.headers["idempotent-replayed"] == "true" for each in again)
    assert stock.held() == {"L": (stock.bins[0], Decimal(2)), "L@B": (stock.bins[1], Decimal(8))}
    assert [each["operation"] for each in raw.effects("?resource=inventory_lot")].count("move") == 2


moved_quantities = st.integers(1, 12 * 10**4).map(lambda number: Decimal(number).scaleb(-4))


moves = st.tuples(st.integers(0, 3), st.integers(0, 2), moved_quantities)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=st.lists(moves, min_size=1, max_size=6))
def test_movements_conserve_the_total(raw: Raw, wanted: list[tuple[int, int, Decimal]]) -> None:
    """After any movements the sum over all lots is the same, and the effects log explains every quantity."""
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
