from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from tests.unit.sandbox.raw import (
    BINS,
    CUSTOMERS,
    INVOICES,
    ORDERS,
    PRODUCTS,
    Raw,
    assert_problem,
)

from crossdock.sandbox import Sandbox


def test_if_match_guards_a_change(raw: Raw) -> None:
    """A change or deletion requires the current version; weak tags never match."""
    name = raw.make(CUSTOMERS, '{"externalId":"c","name":"n"}')
    path = f"{CUSTOMERS}/{name}"
    first = raw("GET", path).headers["etag"]
    second = raw("PATCH", path, '{"name":"m"}', if_match=f'"other", {first}').headers["etag"]
    assert second != first
    assert_problem(raw("PATCH", path, '{"name":"o"}', if_match=first), 412)
    assert_problem(raw("DELETE", path, if_match=f"W/{second}"), 412)
    assert raw("PATCH", path, '{"name":"p"}', if_match="*").status_code == 200
    assert [each["operation"] for each in raw.effects()] == ["create", "update", "update"]


def test_external_ids_are_unique_in_their_resource(raw: Raw) -> None:
    """A second one is 409, at creation or by a change; another resource may have the same; invoices have none."""
    raw.make(CUSTOMERS, '{"externalId":"x","name":"n"}')
    raw.make(BINS, '{"externalId":"x","code":"c","warehouse":"w"}')
    other = raw.make(CUSTOMERS, '{"externalId":"y","name":"n"}')
    problem = assert_problem(raw("POST", CUSTOMERS, '{"externalId":"x","name":"n"}'), 409)
    assert problem["errors"][0]["pointer"] == "#/externalId"
    assert_problem(raw("PATCH", f"{CUSTOMERS}/{other}", '{"externalId":"x"}'), 409)
    assert raw("PATCH", f"{CUSTOMERS}/{other}", '{"externalId":"y"}').status_code == 200
    assert_problem(raw("GET", f"{INVOICES}?externalId=x"), 400)
    assert len(raw.effects()) == 4


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
def test_a_strange_id_is_only_an_id(raw: Raw, strange: str) -> None:
    """SQL, paths, NUL and very long ids match nothing: 404 in a path, 422 in a body, an empty list in a query."""
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


def test_tenants_do_not_see_each_other(raw: Raw, sandbox: Sandbox) -> None:
    """Another tenant may use the same externalId, and cannot read or refer to resources of the first."""
    name = raw.make(CUSTOMERS, '{"externalId":"c","name":"n"}')
    other = Raw(sandbox, key=sandbox.new_key("other"))
    assert other("POST", CUSTOMERS, '{"externalId":"c","name":"n"}', x_tenant_slug="other").status_code == 201
    assert_problem(other("GET", f"{CUSTOMERS}/{name}", x_tenant_slug="other"), 404)
    assert_problem(raw("GET", f"{PRODUCTS}/{name}"), 404)
    order = f'{{"externalId":"o","customerId":"{name}","currency":"EUR","placedAt":"2027-01-01T00:00:00Z",'
    order += '"items":[{"productId":"p","quantity":1,"unitPrice":1}]}'
    problem = assert_problem(other("POST", ORDERS, order, x_tenant_slug="other"), 422)
    assert [each["pointer"] for each in problem["errors"]] == ["#/customerId", "#/items/0/productId"]


def test_a_test_may_give_the_id_of_a_new_record(raw: Raw) -> None:
    """A second record with it is 409, of another resource, too."""
    assert raw("POST", CUSTOMERS, '{"externalId":"x","name":"n"}', x_sandbox_id="cus_7").json()["id"] == "cus_7"
    assert_problem(raw("POST", BINS, '{"externalId":"x","code":"c","warehouse":"w"}', x_sandbox_id="cus_7"), 409)
    assert_problem(raw("POST", CUSTOMERS, '{"externalId":"y","name":"n"}', x_sandbox_id="x" * 65), 400)
    assert raw("GET", f"{CUSTOMERS}/cus_7").json()["name"] == "n"
