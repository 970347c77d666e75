from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.sandbox.raw import CUSTOMERS, INVOICES, LOTS, ORDERS, PRODUCTS, ManualTime, Raw, assert_problem, exact
from tests.unit.sandbox.stock import Stock


@pytest.fixture
def stock(raw: Raw) -> Stock:
    return Stock(raw)


@pytest.mark.parametrize("body", [None, "", "{}", " { } "])
def test_an_invoice_is_approved(raw: Raw, clock: ManualTime, body: str | None) -> None:
    """With an empty body or an empty object it is answered 200 with the stored invoice, and witnessed once."""
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
    """Who retries after a lost answer, without a key or under a new one, gets the approved invoice as it is."""
    path = raw("POST", INVOICES, raw.invoice()).headers["location"]
    first = raw("POST", f"{path}/approve")
    clock.now += 60
    for headers in ({}, {"idempotency_key": "new"}):
        again = raw("POST", f"{path}/approve", **headers)
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers["etag"] == first.headers["etag"]
    assert [each["operation"] for each in raw.effects("?resource=invoice")] == ["create", "approve"]


def test_an_approved_invoice_is_neither_changed_nor_deleted(raw: Raw) -> None:
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
def test_approving_takes_nothing_else(raw: Raw, body: str, status: int, pointers: list[str] | None) -> None:
    """Any other body is refused, and nothing is approved."""
    path = raw("POST", INVOICES, raw.invoice()).headers["location"]
    problem = assert_problem(raw("POST", f"{path}/approve", body), status)
    assert [each["pointer"] for each in problem["errors"]] == pointers if pointers else "errors" not in problem
    assert exact(raw("GET", path))["status"] == "draft"
    assert len(raw.effects("?resource=invoice")) == 1


def test_actions_are_where_they_are_and_nowhere_else(raw: Raw, stock: Stock) -> None:
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
        assert_problem(raw("POST", path, "{}", content_type="text/plain"), 415)
    assert_problem(raw("POST", stock.path(), content_type=None), 415)
    assert len(raw.effects()) == before


def test_actions_are_guarded_by_the_version(raw: Raw, stock: Stock) -> None:
    """If-Match with another version is 412; with the present one it is done."""
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
    """The same key does once and answers the same bytes again, a refusal too, and stands for no other action."""
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
    told = [each["operation"] for each in raw.effects(f"?after={before}")]
    assert told == ["approve", "move", "update", "create"]
    assert stock.held()["L"] == (stock.bins[0], Decimal(6))


def test_an_order_may_call_its_own_status_what_it_likes(raw: Raw) -> None:
    """Only invoices are approved: an order's status is its owner's."""
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
def test_status_and_total_are_the_platforms(raw: Raw, member: str) -> None:
    """Nobody else may write them."""
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
    """A directory may hold invoices without status and total; they count as drafts."""
    path = raw("POST", INVOICES, raw.invoice()).headers["location"]
    raw.sandbox._writing.execute("UPDATE stored SET body = json_remove(body, '$.status', '$.total')")
    changed = exact(raw("PATCH", path, '{"currency":"GBP"}'))
    assert (changed["status"], changed["total"]) == ("draft", 25)


plain = st.integers(-(10**15) + 1, 10**15 - 1)
amounts = st.builds(lambda whole, part: Decimal(whole) + Decimal(part).scaleb(-4), plain, st.integers(0, 9999))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.tuples(amounts, amounts), min_size=1, max_size=8))
def test_a_total_has_all_its_digits(raw: Raw, lines: list[tuple[Decimal, Decimal]]) -> None:
    """It is the sum of quantity x unitPrice to the last digit, at creation and after a change of the lines."""
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
