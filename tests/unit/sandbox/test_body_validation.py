from __future__ import annotations

import json

import pytest
from tests.unit.sandbox.raw import ACCOUNTS, BINS, CUSTOMERS, INVOICES, LOTS, ORDERS, PRODUCTS, Raw, assert_problem

ADDRESS = '"billingAddress":{"line1":"Secret Street","city":"c","postalCode":"p","country":"%s"}'


INVOICE_FAULTS = [
    pytest.param({"customerId": "null"}, ["#/customerId"], id="no customer"),
    pytest.param({"customerId": '"cus_nobody"'}, ["#/customerId"], id="unknown customer"),
    pytest.param({"items": "[]"}, ["#/items"], id="no lines"),
    pytest.param({"items": "[null]"}, ["#/items/0"], id="null line"),
    pytest.param({"items": '{"a":1}'}, ["#/items"], id="lines are no list"),
    pytest.param({"quantity": '"2"'}, ["#/items/0/quantity"], id="quantity is text"),
    pytest.param({"quantity": "true"}, ["#/items/0/quantity"], id="quantity is a truth value"),
    pytest.param({"quantity": "1.23456"}, ["#/items/0/quantity"], id="five decimals"),
    pytest.param({"price": "1234567890123456"}, ["#/items/0/unitPrice"], id="sixteen digits"),
    pytest.param({"price": "1E999999999"}, ["#/items/0/unitPrice"], id="huge exponent"),
    pytest.param({"price": "1E-999999999"}, ["#/items/0/unitPrice"], id="tiny exponent"),
    pytest.param({"price": "1." + "0" * 40 + "1"}, ["#/items/0/unitPrice"], id="a last digit that rounding would lose"),
    pytest.param({"price": "9" * 4000}, ["#/items/0/unitPrice"], id="4000 digits"),
    pytest.param({"currency": '"eur"'}, ["#/currency"], id="lower case"),
    pytest.param({"currency": '"XQQ"'}, ["#/currency"], id="no such currency"),
    pytest.param({"currency": '"JPY"', "price": "0.5"}, ["#/items/0/unitPrice"], id="half a yen"),
    pytest.param({"autoPostLedger": '"true"'}, ["#/autoPostLedger"], id="truth value is text"),
    pytest.param({"autoPostLedger": "1"}, ["#/autoPostLedger"], id="truth value is a number"),
    pytest.param({"externalId": '"x"'}, ["#/externalId"], id="the documented invoice has no externalId"),
    pytest.param({"customer_id": '"x"'}, ["#/customer_id"], id="snake case is not the wire"),
    pytest.param({"a/b~c d": "1"}, ["#/a~1b~0c%20d"], id="a pointer is escaped"),
    pytest.param({"id": '"inv_1"', "quantity": '"x"'}, ["#/id", "#/items/0/quantity"], id="two at once"),
]


@pytest.mark.parametrize(("changes", "pointers"), INVOICE_FAULTS)
def test_an_invalid_invoice_is_422(raw: Raw, changes: dict[str, str], pointers: list[str]) -> None:
    """Each finding points to its location on the wire, and there is no effect."""
    problem = assert_problem(raw("POST", INVOICES, raw.invoice(**changes)), 422)
    assert sorted(each["pointer"] for each in problem["errors"]) == pointers
    assert raw.effects("?resource=invoice") == []


def test_a_whole_yen_price_is_accepted_in_any_notation(raw: Raw) -> None:
    """5E2 and 500.0 yen are whole."""
    for price in ("5E2", "500.0", "500"):
        assert raw("POST", INVOICES, raw.invoice(currency='"JPY"', price=price)).status_code == 201


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        (CUSTOMERS, '{"name":"n"}', "#/externalId"),
        (CUSTOMERS, '{"externalId":"","name":"n"}', "#/externalId"),
        (CUSTOMERS, '{"externalId":17,"name":"n"}', "#/externalId"),
        (CUSTOMERS, "[]", "#"),
        (CUSTOMERS, f'{{"externalId":"c","name":"n",{ADDRESS % "ZZ"}}}', "#/billingAddress/country"),
        (PRODUCTS, '{"externalId":"p","sku":"s","name":"n","unitPrice":1.5,"currency":"JPY"}', "#/unitPrice"),
        (PRODUCTS, '{"externalId":"p","sku":"s","name":"n","active":0}', "#/active"),
        (LOTS, '{"externalId":"l","productId":"prd_0","lotNumber":"1","quantity":1}', "#/productId"),
        (LOTS, '{"externalId":"l","productId":"p","lotNumber":"1","quantity":1,"receivedOn":20270101}', "#/receivedOn"),
        (
            LOTS,
            '{"externalId":"l","productId":"p","lotNumber":"1","quantity":1,"expiresOn":"2027-02-30"}',
            "#/expiresOn",
        ),
        (
            LOTS,
            '{"externalId":"l","productId":"p","lotNumber":"1","quantity":1,"expiresOn":"1800000000"}',
            "#/expiresOn",
        ),
        (ORDERS, '{"externalId":"o","customerId":"c","currency":"EUR","placedAt":1800000000,"items":[]}', "#/placedAt"),
        (
            ORDERS,
            '{"externalId":"o","customerId":"c","currency":"EUR","placedAt":"2027-01-01T00:00:00","items":[]}',
            "#/placedAt",
        ),
        (ACCOUNTS, '{"externalId":"a","code":"1","name":"n","type":"cash"}', "#/type"),
        (ACCOUNTS, '{"externalId":"a","code":"1","name":"n","type":"asset","parentId":"acc_0"}', "#/parentId"),
        (BINS, '{"externalId":"b","code":"c","warehouse":"w","capacity":"10"}', "#/capacity"),
    ],
)
def test_other_resources_are_checked_as_strictly(raw: Raw, path: str, body: str, pointer: str) -> None:
    """The first finding points at the invalid member."""
    problem = assert_problem(raw("POST", path, body), 422)
    assert problem["errors"][0]["pointer"] == pointer
    assert raw.effects() == []


UNSEEN = [
    pytest.param("\\u0000", id="NUL"),
    pytest.param("\\u001b[31m", id="escape sequence"),
    pytest.param("\\n", id="line feed"),
    pytest.param("\\u007f", id="delete"),
    pytest.param("\u0085", id="C1 control"),
    pytest.param("\u200b", id="zero-width space"),
    pytest.param("\ufeff", id="byte order mark"),
    pytest.param("\u2060", id="word joiner"),
    pytest.param("\u202e", id="right-to-left override"),
    pytest.param("\u2028", id="line separator"),
]


@pytest.mark.parametrize("unseen", UNSEEN)
def test_an_invisible_character_is_refused(raw: Raw, unseen: str) -> None:
    """In ids, codes, names and addresses; the pointer names the member, and there is no effect."""
    for path, body, pointer in (
        (CUSTOMERS, f'{{"externalId":"c{unseen}","name":"n"}}', "#/externalId"),
        (CUSTOMERS, f'{{"externalId":"c","name":"n{unseen}"}}', "#/name"),
        (CUSTOMERS, f'{{"externalId":"c","name":"n",{ADDRESS % f"DE{unseen}"}}}', "#/billingAddress/country"),
        (PRODUCTS, f'{{"externalId":"p","sku":"{unseen}","name":"n"}}', "#/sku"),
        (BINS, f'{{"externalId":"b","code":"c","warehouse":"w","colour":"{unseen}"}}', "#/colour"),
    ):
        problem = assert_problem(raw("POST", path, body), 422)
        assert [each["pointer"] for each in problem["errors"]] == [pointer]
    assert raw.effects() == []


def test_joiners_in_names_and_line_breaks_in_descriptions_are_accepted(raw: Raw) -> None:
    """Joiners in names, line breaks and tabs in descriptions are accepted; joiners in codes are not."""
    raw.make(CUSTOMERS, '{"externalId":"c","name":"\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"}')
    raw.make(PRODUCTS, '{"externalId":"p","sku":"s","name":"n","description":"one\\r\\n\\ttwo"}')
    problem = assert_problem(raw("POST", PRODUCTS, '{"externalId":"q","sku":"0\u200d17","name":"n"}'), 422)
    assert [each["pointer"] for each in problem["errors"]] == ["#/sku"]


@pytest.mark.parametrize(
    ("member", "longest"), [("externalId", 500), ("name", 500), ("sku", 100), ("description", 10_000)]
)
def test_an_over_long_field_is_refused(raw: Raw, member: str, longest: int) -> None:
    """The maximum length, in characters and not in bytes, is accepted; one more is 422 with the pointer."""
    product = {"externalId": "p", "sku": "s", "name": "n"}
    long = json.dumps({**product, member: "\u00e9" * (longest + 1)})
    problem = assert_problem(raw("POST", PRODUCTS, long), 422)
    assert [each["pointer"] for each in problem["errors"]] == [f"#/{member}"]
    assert raw.effects() == []
    raw.make(PRODUCTS, json.dumps({**product, member: "\U0001f69a" * longest}))
