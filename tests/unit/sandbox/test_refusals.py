from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.unit.sandbox.raw import (
    ACCOUNTS,
    BINS,
    CUSTOMERS,
    INVOICES,
    LOTS,
    ORDERS,
    PRODUCTS,
    Raw,
    assert_problem,
)

from crossdock.sandbox import Sandbox, SandboxSettings

ADDRESS = '"billingAddress":{"line1":"Secret Street","city":"c","postalCode":"p","country":"%s"}'


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"externalId":"c"', id="cut"),
        pytest.param(b'{"externalId":"c","name":"n","name":"m"}', id="repeated member"),
        pytest.param(b'{"externalId":"c","name":NaN}', id="NaN"),
        pytest.param(b'{"externalId":"c","name":Infinity}', id="Infinity"),
        pytest.param(b"[" * 50_000, id="too deep"),
        pytest.param(b'{"externalId":"c","name":"\\ud83d"}', id="half a surrogate pair"),
        pytest.param(b'{"externalId":"c","name":"\xff"}', id="not UTF-8"),
        pytest.param(b"externalId=c&name=n", id="a form"),
    ],
)
def test_malformed_json_is_400(raw: Raw, body: bytes) -> None:
    """What is not JSON, or ambiguous, is 400 and has no effect."""
    assert_problem(raw("POST", CUSTOMERS, body), 400)
    assert raw.effects() == []


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
def test_an_invoice_that_does_not_fit_is_422(raw: Raw, changes: dict[str, str], pointers: list[str]) -> None:
    """Each fault is told with a pointer to its place on the wire, and has no effect."""
    problem = assert_problem(raw("POST", INVOICES, raw.invoice(**changes)), 422)
    assert sorted(each["pointer"] for each in problem["errors"]) == pointers
    assert raw.effects("?resource=invoice") == []


def test_an_unfit_yen_price_with_exponent_is_accepted_when_whole(raw: Raw) -> None:
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
    """The first finding points at the fault."""
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
def test_a_character_that_prints_nothing_is_refused(raw: Raw, unseen: str) -> None:
    """In ids, codes, names and addresses; the pointer names the member, and nothing happens."""
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


def test_what_a_language_or_a_paragraph_needs_is_accepted(raw: Raw) -> None:
    """Joiners in names, line breaks and tabs in descriptions; but not joiners in codes."""
    raw.make(CUSTOMERS, '{"externalId":"c","name":"\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"}')
    raw.make(PRODUCTS, '{"externalId":"p","sku":"s","name":"n","description":"one\\r\\n\\ttwo"}')
    problem = assert_problem(raw("POST", PRODUCTS, '{"externalId":"q","sku":"0\u200d17","name":"n"}'), 422)
    assert [each["pointer"] for each in problem["errors"]] == ["#/sku"]


@pytest.mark.parametrize(
    ("member", "longest"), [("externalId", 500), ("name", 500), ("sku", 100), ("description", 10_000)]
)
def test_an_over_long_field_is_refused(raw: Raw, member: str, longest: int) -> None:
    """The longest text allowed is accepted, counted in characters and not in bytes; one more is 422 with its place."""
    product = {"externalId": "p", "sku": "s", "name": "n"}
    long = json.dumps({**product, member: "\u00e9" * (longest + 1)})
    problem = assert_problem(raw("POST", PRODUCTS, long), 422)
    assert [each["pointer"] for each in problem["errors"]] == [f"#/{member}"]
    assert raw.effects() == []
    raw.make(PRODUCTS, json.dumps({**product, member: "\U0001f69a" * longest}))


STRANGE_IDS = [
    "' OR '1'='1",
    "x'; DROP TABLE stored; --",
    "%",
    "..",
    "../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "%F0%28%8C%28",
    "\u200b",
    "inv_" + "0" * 5_000,
]


@pytest.mark.parametrize("strange", STRANGE_IDS)
def test_an_id_is_only_ever_an_id(raw: Raw, strange: str) -> None:
    """SQL, paths, NUL and endless ids name nothing: 404 in a path, 422 with pointer in a body, no match in a query."""
    name = raw.make(CUSTOMERS, '{"externalId":"x","name":"n"}')
    for method, body in (("GET", None), ("PATCH", '{"name":"m"}'), ("DELETE", None)):
        assert_problem(raw(method, f"{CUSTOMERS}/{quote(strange, safe='%')}", body), 404)
    problem = assert_problem(raw("POST", INVOICES, raw.invoice(customerId=json.dumps(strange))), 422)
    assert problem["errors"][0]["pointer"] == "#/customerId"
    found = raw("GET", f"{CUSTOMERS}?externalId={quote(strange, safe='')}")
    assert (found.status_code, found.json()["data"]) == (200, [])
    assert raw("GET", f"{CUSTOMERS}/{name}").status_code == 200
    assert {each["operation"] for each in raw.effects()} == {"create"}
    assert raw.effects("?resource=invoice") == []


def test_ten_megabytes_are_refused(raw: Raw) -> None:
    """A body far beyond the limit is 413, whatever it holds, and the next request is answered."""
    for filling in (b" ", b"[", b'"'):
        assert_problem(raw("POST", CUSTOMERS, filling * 10_000_000), 413)
    assert raw("GET", CUSTOMERS).status_code == 200
    assert raw.effects() == []


def test_an_invoice_of_a_hundred_thousand_lines_is_refused(tmp_path: Path) -> None:
    """As too long a body; and where bodies may be long, as too many lines, at their place."""
    with Sandbox(tmp_path, SandboxSettings(max_body_bytes=1 << 24)) as roomy:
        raw = Raw(roomy)
        one = raw.invoice()
        start, line = one[: one.index("[") + 1], one[one.index("[") + 1 : one.index("]")]
        long = f"{start}{','.join([line] * 100_000)}]}}"
        problem = assert_problem(raw("POST", INVOICES, long), 422)
        assert [each["pointer"] for each in problem["errors"]] == ["#/items"]
        assert raw.effects("?resource=invoice") == []
    with Sandbox(tmp_path) as usual:
        assert_problem(Raw(usual)("POST", INVOICES, long), 413)


def test_no_refusal_repeats_a_value(raw: Raw) -> None:
    """Personal data that was sent is in no problem document."""
    secret = "Erika Mustermann"
    bodies = [
        f'{{"externalId":"c","name":["{secret}"],"email":{{"a":"{secret}"}}}}',
        f'{{"externalId":"c","name":"n","currency":"{secret}"}}',
        f'{{"externalId":"c","name":"n","billingAddress":{{"country":"{secret}"}}}}',
        f'{{"externalId":"c","name":"n","shippingAddress":"{secret}"}}',
        f'{{"externalId":"c","name":"{secret}',
    ]
    for body in bodies:
        assert secret not in raw("POST", CUSTOMERS, body).text


def test_who_is_not_known_gets_nothing(raw: Raw, sandbox: Sandbox) -> None:
    """No key, a wrong scheme, an unknown or changed key is 401; another tenant's key or another slug is 403."""
    body = '{"externalId":"c","name":"n"}'
    wrong = [
        None,
        "",
        "Bearer",
        "Bearer x",
        f"Basic {raw.key}",
        f"Bearer {raw.key}0",
        "Bearer sbx_a_b",
        f"Bearer {raw.key[:-1]}",
    ]
    for credential in wrong:
        answer = raw("POST", CUSTOMERS, body, authorization=credential)
        assert_problem(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer"
    for slug in ("other", "", None):
        assert_problem(raw("POST", CUSTOMERS, body, x_tenant_slug=slug), 403)
    foreign = Raw(sandbox, key=sandbox.new_key("other"))
    assert_problem(foreign("POST", CUSTOMERS, body), 403)
    assert raw.effects() == []


def test_tenants_do_not_see_each_other(raw: Raw, sandbox: Sandbox) -> None:
    """Another tenant may use the same externalId, and can neither read nor name what is not its own."""
    name = raw.make(CUSTOMERS, '{"externalId":"c","name":"n"}')
    other = Raw(sandbox, key=sandbox.new_key("other"))
    assert other("POST", CUSTOMERS, '{"externalId":"c","name":"n"}', x_tenant_slug="other").status_code == 201
    assert_problem(other("GET", f"{CUSTOMERS}/{name}", x_tenant_slug="other"), 404)
    assert_problem(raw("GET", f"{PRODUCTS}/{name}"), 404)
    order = f'{{"externalId":"o","customerId":"{name}","currency":"EUR","placedAt":"2027-01-01T00:00:00Z",'
    order += '"items":[{"productId":"p","quantity":1,"unitPrice":1}]}'
    problem = assert_problem(other("POST", ORDERS, order, x_tenant_slug="other"), 422)
    assert [each["pointer"] for each in problem["errors"]] == ["#/customerId", "#/items/0/productId"]


def test_only_hashes_of_keys_are_kept(raw: Raw, tmp_path: Path) -> None:
    """No file of the sandbox holds a key."""
    raw.make(CUSTOMERS, '{"externalId":"c","name":"n"}')
    assert all(raw.key.encode() not in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", CUSTOMERS, "GET, POST"),
        ("DELETE", CUSTOMERS, "GET, POST"),
        ("POST", f"{CUSTOMERS}/x", "GET, PATCH, DELETE"),
        ("DELETE", "/_sandbox/effects", "GET"),
        ("PUT", "/_sandbox/keys", "GET, POST"),
        ("GET", "/_sandbox/keys/0123456789ab", "DELETE"),
    ],
)
def test_a_wrong_method_is_405(raw: Raw, method: str, path: str, allow: str) -> None:
    """The answer tells which methods there are."""
    answer = raw(method, path)
    assert_problem(answer, 405)
    assert answer.headers["allow"] == allow


@pytest.mark.parametrize(
    "path", ["/", "/api/v1/finance", "/api/v1/sales/customers/", "/api/v2/sales/customers", f"{BINS}/a/b"]
)
def test_an_unknown_path_is_404(raw: Raw, path: str) -> None:
    """There is nothing outside the table of paths."""
    assert_problem(raw("GET", path), 404)


def test_a_wrong_media_type_is_415(raw: Raw) -> None:
    """JSON is JSON, with parameters or without; merge patches are for PATCH."""
    body = '{"externalId":"c","name":"n"}'
    for wrong in ("text/plain", "application/merge-patch+json", "application/jsonx", None):
        assert_problem(raw("POST", CUSTOMERS, body, content_type=wrong), 415)
    name = raw("POST", CUSTOMERS, body, content_type="Application/JSON; charset=utf-8").json()["id"]
    refused = raw("PATCH", f"{CUSTOMERS}/{name}", "{}", content_type="text/plain")
    assert_problem(refused, 415)
    assert refused.headers["accept-patch"] == "application/merge-patch+json, application/json"
    assert len(raw.effects()) == 1


def test_a_body_over_the_limit_is_413(tmp_path: Path) -> None:
    """The last byte allowed is accepted, one more is not."""
    with Sandbox(tmp_path, SandboxSettings(max_body_bytes=100)) as small:
        raw = Raw(small)
        body = '{"externalId":"c","name":"n"}'
        assert_problem(raw("POST", CUSTOMERS, body.ljust(101)), 413)
        assert raw("POST", CUSTOMERS, body.ljust(100)).status_code == 201
        assert len(raw.effects()) == 1


def test_a_failure_of_the_sandbox_itself_is_a_problem_document_too(raw: Raw, sandbox: Sandbox) -> None:
    """When its storage is gone, requests are answered 500 and do not hang."""
    name = raw.make(CUSTOMERS, '{"externalId":"c","name":"n"}')
    sandbox._writing.close()
    assert_problem(raw("PATCH", f"{CUSTOMERS}/{name}", '{"name":"m"}'), 500)
