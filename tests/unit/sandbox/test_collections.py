from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.sandbox.raw import (
    ACCOUNTS,
    BINS,
    CUSTOMERS,
    INVOICES,
    LOTS,
    ORDERS,
    PRODUCTS,
    ManualTime,
    Raw,
    assert_problem,
    exact,
)


def test_documented_invoice_is_created(raw: Raw) -> None:
    """The documented request is answered 201 with Location, ETag and the stored invoice, and is witnessed once."""
    sent = raw.invoice(autoPostLedger="true", price="123456789012345.6789", quantity="3")
    answer = raw("POST", INVOICES, sent, idempotency_key="k-1")
    assert answer.status_code == 201
    stored = exact(answer)
    assert answer.headers["location"] == f"{INVOICES}/{stored['id']}"
    assert answer.headers["etag"].startswith('"')
    assert stored["createdAt"] == stored["updatedAt"] == "2027-01-15T08:00:00.000000Z"
    assert (stored["status"], stored["total"]) == ("draft", Decimal("370370367037037.0367"))
    assert {
        **json.loads(sent, parse_float=Decimal),
        **{k: stored[k] for k in ("id", "createdAt", "updatedAt", "status", "total")},
    } == stored
    assert b'"unitPrice":123456789012345.6789' in answer.content

    again = raw("GET", f"{INVOICES}/{stored['id']}")
    assert (again.content, again.headers["etag"]) == (answer.content, answer.headers["etag"])
    effect = raw.effects("?resource=invoice")[0]
    assert effect == {
        "seq": 3,
        "at": stored["createdAt"],
        "tenant": "sandbox",
        "credential": raw.key.split("_")[1],
        "requestId": answer.headers["x-request-id"],
        "idempotencyKey": "k-1",
        "resource": "invoice",
        "operation": "create",
        "id": stored["id"],
        "body": stored,
    }


def test_all_seven_resources_live_by_the_same_rules(raw: Raw) -> None:
    """Each can be created with its references, read, found, changed and deleted."""
    customer = raw.make(
        CUSTOMERS,
        '{"externalId":"a","name":"n","billingAddress":{"line1":"l","city":"c","postalCode":"p","country":"DE"}}',
    )
    product = raw.make(PRODUCTS, '{"externalId":"a","sku":"s","name":"n","unitPrice":1.25,"currency":"EUR"}')
    place = raw.make(BINS, '{"externalId":"a","code":"A-01","warehouse":"W","capacity":10}')
    parent = raw.make(ACCOUNTS, '{"externalId":"p","code":"4","name":"n","type":"revenue"}')
    lines = f'[{{"productId":"{product}","quantity":1,"unitPrice":1}}]'
    made = {
        CUSTOMERS: customer,
        PRODUCTS: product,
        BINS: place,
        ACCOUNTS: raw.make(
            ACCOUNTS, f'{{"externalId":"a","code":"40","name":"n","type":"revenue","parentId":"{parent}"}}'
        ),
        LOTS: raw.make(
            LOTS,
            f'{{"externalId":"a","productId":"{product}","lotNumber":"0017","binId":"{place}","quantity":0.5,"expiresOn":"2027-02-28"}}',
        ),
        ORDERS: raw.make(
            ORDERS,
            f'{{"externalId":"a","customerId":"{customer}","currency":"EUR","placedAt":"2027-01-01T00:00:00+01:00","items":{lines}}}',
        ),
    }
    for path, name in made.items():
        found = exact(raw("GET", f"{path}?externalId=a"))
        assert [each["id"] for each in found["data"]] == [name]
        assert raw("PATCH", f"{path}/{name}", '{"externalId":"b"}').status_code == 200
        assert exact(raw("GET", f"{path}?externalId=a"))["data"] == []
    for path, name in reversed(made.items()):
        assert raw("DELETE", f"{path}/{name}").status_code == 204
        assert_problem(raw("GET", f"{path}/{name}"), 404)
        assert_problem(raw("DELETE", f"{path}/{name}"), 404)
    assert [each["operation"] for each in raw.effects()] == ["create"] * 7 + ["update"] * 6 + ["delete"] * 6


def test_the_models_default_is_stored_and_null_is_not(raw: Raw) -> None:
    """A product is active unless told otherwise, and a null member is no member."""
    body = exact(raw("POST", PRODUCTS, '{"externalId":"p","sku":"s","name":"n","description":null}'))
    assert body["active"] is True
    assert "description" not in body


def test_patch_merges_and_checks_the_whole(raw: Raw, clock: ManualTime) -> None:
    """Null removes, objects merge, lists are replaced, and what comes out must fit as a whole."""
    address = '{"line1":"l","line2":"x","city":"c","postalCode":"p","country":"DE"}'
    name = raw.make(CUSTOMERS, f'{{"externalId":"c","name":"n","phone":"1","billingAddress":{address}}}')
    clock.now += 60
    patch = '{"phone":null,"email":"a@b","billingAddress":{"line2":null,"city":"d"}}'
    changed = raw("PATCH", f"{CUSTOMERS}/{name}", patch, content_type="application/merge-patch+json")
    body = exact(changed)
    assert (changed.status_code, "phone" in body, body["email"]) == (200, False, "a@b")
    assert body["billingAddress"] == {"line1": "l", "city": "d", "postalCode": "p", "country": "DE"}
    assert (body["createdAt"], body["updatedAt"]) == ("2027-01-15T08:00:00.000000Z", "2027-01-15T08:01:00.000000Z")
    for bad, pointer in [
        ('{"name":null}', "#/name"),
        ('{"nickname":null}', "#/nickname"),
        ('{"billingAddress":{"street":null}}', "#/billingAddress/street"),
        ('{"id":"x"}', "#/id"),
        ('{"billingAddress":{"city":null}}', "#/billingAddress/city"),
        ('["a"]', "#"),
        ("7", "#"),
    ]:
        problem = assert_problem(raw("PATCH", f"{CUSTOMERS}/{name}", bad), 422)
        assert [each["pointer"] for each in problem["errors"]] == [pointer]
    assert exact(raw("GET", f"{CUSTOMERS}/{name}")) == body == raw.effects()[-1]["body"]


def test_if_match_guards_a_change(raw: Raw) -> None:
    """Only who has seen the present version may change or delete it; weak tags never match."""
    name = raw.make(CUSTOMERS, '{"externalId":"c","name":"n"}')
    path = f"{CUSTOMERS}/{name}"
    first = raw("GET", path).headers["etag"]
    second = raw("PATCH", path, '{"name":"m"}', if_match=f'"other", {first}').headers["etag"]
    assert second != first
    assert_problem(raw("PATCH", path, '{"name":"o"}', if_match=first), 412)
    assert_problem(raw("DELETE", path, if_match=f"W/{second}"), 412)
    assert raw("PATCH", path, '{"name":"p"}', if_match="*").status_code == 200
    assert [each["operation"] for each in raw.effects()] == ["create", "update", "update"]


def test_a_list_is_walked_in_pages_of_what_changed(raw: Raw, clock: ManualTime) -> None:
    """Pages follow the last change; what changes while they are walked comes again, and nothing is missed."""
    names = []
    for number in range(5):
        names.append(raw.make(BINS, f'{{"externalId":"{number}","code":"c","warehouse":"w"}}'))
        clock.now += 1
    first = exact(raw("GET", f"{BINS}?limit=2"))
    assert [each["id"] for each in first["data"]] == names[:2]
    raw("PATCH", f"{BINS}/{names[0]}", '{"zone":"z"}')
    seen, cursor = [], first["nextCursor"]
    while cursor is not None:
        page = exact(raw("GET", f"{BINS}?limit=2&cursor={cursor}"))
        seen += [each["id"] for each in page["data"]]
        cursor = page["nextCursor"]
    assert seen == [*names[2:], names[0]]
    late = exact(raw("GET", f"{BINS}?updatedSince=2027-01-15T09:00:03%2B01:00"))
    assert [each["id"] for each in late["data"]] == [*names[3:], names[0]]
    assert exact(raw("GET", CUSTOMERS)) == {"data": [], "nextCursor": None}


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=x",
        "limit=%C2%B2",
        "cursor=???",
        "cursor=YWJj",
        "cursor=20270115080000000000.9999999999999999999",
        "updatedSince=yesterday",
        "updatedSince=2027-01-01T00:00:00",
        "updatedSince=2027-02-30T00:00:00Z",
        "updatedSince=0001-01-01T00:00:00%2B23:59",
        "updated_since=2027-01-01T00:00:00Z",
    ],
)
def test_a_senseless_query_is_refused(raw: Raw, query: str) -> None:
    """A parameter that cannot be read, or is not known, is 400 and never ignored."""
    assert_problem(raw("GET", f"{BINS}?{query}"), 400)


def test_external_ids_are_unique_in_their_resource(raw: Raw) -> None:
    """A second one is 409, by creation or change; another resource may have the same; invoices have none."""
    raw.make(CUSTOMERS, '{"externalId":"x","name":"n"}')
    raw.make(BINS, '{"externalId":"x","code":"c","warehouse":"w"}')
    other = raw.make(CUSTOMERS, '{"externalId":"y","name":"n"}')
    problem = assert_problem(raw("POST", CUSTOMERS, '{"externalId":"x","name":"n"}'), 409)
    assert problem["errors"][0]["pointer"] == "#/externalId"
    assert_problem(raw("PATCH", f"{CUSTOMERS}/{other}", '{"externalId":"x"}'), 409)
    assert raw("PATCH", f"{CUSTOMERS}/{other}", '{"externalId":"y"}').status_code == 200
    assert_problem(raw("GET", f"{INVOICES}?externalId=x"), 400)
    assert len(raw.effects()) == 4


def test_equal_invoices_are_two_invoices(raw: Raw) -> None:
    """Nothing on the wire tells two equal invoices apart, so both are made."""
    body = raw.invoice()
    assert raw.make(INVOICES, body) != raw.make(INVOICES, body)


def test_a_zero_is_a_zero_whatever_its_exponent(raw: Raw) -> None:
    """It is stored as 0, not as the gigabyte of zeros that its exponent asks for."""
    answer = raw("POST", INVOICES, raw.invoice(quantity="0E999999999", price="0.0E-999999999"))
    assert b'"quantity":0,"unitPrice":0}' in answer.content


plain = st.integers(-(10**15) + 1, 10**15 - 1)
quantities = st.builds(lambda whole, part: Decimal(whole) + Decimal(part).scaleb(-4), plain, st.integers(0, 9999))
forms = st.sampled_from(["{:f}", "{:E}", "{:e}"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(quantity=quantities, price=quantities, form=forms)
def test_decimals_come_back_exact(raw: Raw, quantity: Decimal, price: Decimal, form: str) -> None:
    """Any quantity and price within the limits comes back equal, in plain digits, from answer, storage and witness."""
    answer = raw("POST", INVOICES, raw.invoice(quantity=form.format(quantity), price=form.format(price)))
    assert answer.status_code == 201, answer.text
    stored = exact(answer)
    for body in (
        stored,
        exact(raw("GET", f"{INVOICES}/{stored['id']}")),
        raw.effects("?resource=invoice&limit=10000")[-1]["body"],
    ):
        line = body["items"][0]
        assert (Decimal(line["quantity"]), Decimal(line["unitPrice"])) == (quantity, price)
    assert b"E" not in answer.content.split(b'"quantity":')[1].split(b"}")[0]
