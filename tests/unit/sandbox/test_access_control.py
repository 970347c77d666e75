from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.sandbox.raw import (
    CUSTOMERS,
    INVOICES,
    LOTS,
    ORDERS,
    Raw,
    assert_problem,
)

from crossdock.sandbox import Sandbox
from crossdock.sandbox.api_routes import COLLECTIONS
from crossdock.sandbox.scopes import SCOPES


def test_an_unknown_credential_is_refused(raw: Raw, sandbox: Sandbox) -> None:
    """No key, a wrong scheme, an unknown or changed key is 401; another tenant's key or another slug is 403.

    The challenge has an error only if a bearer credential was presented (RFC 6750 section 3.1).
    """
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
        challenge, _, error = answer.headers["www-authenticate"].partition(", ")
        assert challenge == 'Bearer realm="sandbox"'
        is_presented = (credential or "").startswith("Bearer ")
        assert error.startswith('error="invalid_token", error_description=') if is_presented else not error
    for slug in ("other", "", None):
        assert_problem(raw("POST", CUSTOMERS, body, x_tenant_slug=slug), 403)
    foreign = Raw(sandbox, key=sandbox.new_key("other"))
    assert_problem(foreign("POST", CUSTOMERS, body), 403)
    assert raw.effects() == []


def test_only_hashes_of_keys_are_stored(raw: Raw, tmp_path: Path) -> None:
    """No file of the sandbox contains a key."""
    raw.make(CUSTOMERS, '{"externalId":"c","name":"n"}')
    assert all(raw.key.encode() not in path.read_bytes() for path in tmp_path.iterdir())


CUSTOMER = '{"externalId":"c","name":"n"}'


def test_scopes_limit_what_a_key_may_do(raw: Raw, sandbox: Sandbox) -> None:
    """Writing includes reading, reading does not include writing, and a scope is for its resource alone."""
    reader = Raw(sandbox, key=sandbox.new_key("sandbox", "customers:read"))
    writer = Raw(sandbox, key=sandbox.new_key("sandbox", "customers:write", "orders:read"))
    name = writer.make(CUSTOMERS, CUSTOMER)
    assert [each("GET", f"{CUSTOMERS}/{name}").status_code for each in (reader, writer)] == [200, 200]
    assert [each("GET", ORDERS).status_code for each in (reader, writer)] == [403, 200]
    for method, path in (("POST", CUSTOMERS), ("PATCH", f"{CUSTOMERS}/{name}"), ("DELETE", f"{CUSTOMERS}/{name}")):
        refused = reader(method, path, "{}")
        assert_problem(refused, 403)
        assert refused.headers["www-authenticate"] == (
            'Bearer realm="sandbox", error="insufficient_scope", scope="customers:write"'
        )
    assert [each["operation"] for each in raw.effects()] == ["create"]


@pytest.mark.parametrize("path", COLLECTIONS)
def test_each_resource_has_its_scopes(sandbox: Sandbox, path: str) -> None:
    """Every collection has one scope to read and one to write; all other scopes are not sufficient."""
    scope = assert_scope(Raw(sandbox, key=sandbox.new_key("sandbox", *_all_but(path))), "GET", path)
    assert Raw(sandbox, key=sandbox.new_key("sandbox", scope))("GET", path).status_code == 200
    assert_scope(Raw(sandbox, key=sandbox.new_key("sandbox", scope)), "POST", path)
    for enough in ("*:read", "*:write", scope.replace("read", "write")):
        assert Raw(sandbox, key=sandbox.new_key("sandbox", enough))("GET", path).status_code == 200


def _all_but(path: str) -> list[str]:
    own = path.rpartition("/")[2].removeprefix("ledger-")
    return [each for each in SCOPES if not each.startswith((own, "*"))]


def assert_scope(raw: Raw, method: str, path: str) -> str:
    """The scope that a 403 names."""
    refused = raw(method, path, "{}" if method == "POST" else None)
    assert_problem(refused, 403)
    return str(refused.headers["www-authenticate"].rpartition('scope="')[2].removesuffix('"'))


def test_actions_need_the_scope_to_write(sandbox: Sandbox) -> None:
    """Approving an invoice and moving stock change them; entries are read with their account."""
    reader = Raw(sandbox, key=sandbox.new_key("sandbox", "*:read"))
    assert assert_scope(reader, "POST", f"{INVOICES}/inv_0/approve") == "invoices:write"
    assert assert_scope(reader, "POST", f"{LOTS}/lot_0/movements") == "lots:write"
    other = Raw(sandbox, key=sandbox.new_key("sandbox", "invoices:write"))
    assert assert_scope(other, "GET", "/api/v1/finance/ledger-accounts/acc_0/entries") == "accounts:read"


def test_a_credential_of_another_tenant_learns_nothing(raw: Raw, sandbox: Sandbox) -> None:
    """Every request for another tenant, whether its target exists or not, gets the same 403."""
    name = raw.make(CUSTOMERS, CUSTOMER)
    foreign = Raw(sandbox, key=sandbox.new_key("other"))
    asked = [
        ("GET", f"{CUSTOMERS}/{name}", None),
        ("GET", f"{CUSTOMERS}/cus_0", None),
        ("GET", f"{CUSTOMERS}?externalId=c", None),
        ("PATCH", f"{CUSTOMERS}/{name}", '{"name":"m"}'),
        ("DELETE", f"{CUSTOMERS}/{name}", None),
        ("POST", CUSTOMERS, CUSTOMER),
        ("POST", CUSTOMERS, "not even JSON"),
        ("GET", "/api/v1/nothing", None),
    ]
    answers = [foreign(*each) for each in asked] + [foreign("GET", CUSTOMERS, x_tenant_slug="nobody")]
    assert {each.status_code for each in answers} == {403}
    assert len({each.content for each in answers}) == 1
    headers = [{name: value for name, value in each.headers.items() if name != "x-request-id"} for each in answers]
    assert all(each == headers[0] for each in headers)
    assert len(raw.effects()) == 1
