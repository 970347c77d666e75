from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sandbox.raw import BINS, CUSTOMERS, INVOICES, LOTS, ORDERS, Raw, assert_problem, exact

from crossdock.errors import ConfigError
from crossdock.sandbox import Sandbox
from crossdock.sandbox.access_control import SCOPES
from crossdock.sandbox.api_keys import Keyring
from crossdock.sandbox.collections import COLLECTIONS

CUSTOMER = '{"externalId":"c","name":"n"}'
KEYS = "/_sandbox/keys"


def keys(raw: Raw, method: str, end: str = "", body: str | None = None) -> list[dict[str, object]]:
    """Ask at the door of the keys, without a credential."""
    answer = raw(method, f"{KEYS}{end}", body, authorization=None)
    assert answer.status_code in {200, 201, 204}, answer.text
    told = exact(answer) if answer.content else {}
    return list(told["data"]) if "data" in told else [told]


def test_a_key_may_do_what_its_scopes_say(raw: Raw, sandbox: Sandbox) -> None:
    """Writing includes reading, reading does not include writing, and a scope is for its resource alone."""
    reader = Raw(sandbox, key=sandbox.new_key("sandbox", "customers:read"))
    writer = Raw(sandbox, key=sandbox.new_key("sandbox", "customers:write", "orders:read"))
    name = writer.make(CUSTOMERS, CUSTOMER)
    assert [each("GET", f"{CUSTOMERS}/{name}").status_code for each in (reader, writer)] == [200, 200]
    assert [each("GET", ORDERS).status_code for each in (reader, writer)] == [403, 200]
    for method, path in (("POST", CUSTOMERS), ("PATCH", f"{CUSTOMERS}/{name}"), ("DELETE", f"{CUSTOMERS}/{name}")):
        refused = reader(method, path, "{}")
        assert_problem(refused, 403)
        assert refused.headers["www-authenticate"] == 'Bearer error="insufficient_scope", scope="customers:write"'
    assert [each["operation"] for each in raw.effects()] == ["create"]


@pytest.mark.parametrize("path", COLLECTIONS)
def test_each_resource_has_its_scopes(sandbox: Sandbox, path: str) -> None:
    """For every collection there is one scope to read and one to write; the scopes of all others open nothing."""
    scope = assert_scope(Raw(sandbox, key=sandbox.new_key("sandbox", *_all_but(path))), "GET", path)
    assert Raw(sandbox, key=sandbox.new_key("sandbox", scope))("GET", path).status_code == 200
    assert_scope(Raw(sandbox, key=sandbox.new_key("sandbox", scope)), "POST", path)
    for enough in ("*:read", "*:write", scope.replace("read", "write")):
        assert Raw(sandbox, key=sandbox.new_key("sandbox", enough))("GET", path).status_code == 200


def _all_but(path: str) -> list[str]:
    own = path.rpartition("/")[2].removeprefix("ledger-")
    return [each for each in SCOPES if not each.startswith((own, "*"))]


def assert_scope(raw: Raw, method: str, path: str) -> str:
    """The scope that a refusal asks for."""
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
    """Whatever it asks of a foreign tenant, and whether that exists or not, it gets one and the same 403."""
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
    told = [{name: value for name, value in each.headers.items() if name != "x-request-id"} for each in answers]
    assert all(each == told[0] for each in told)
    assert len(raw.effects()) == 1


def test_keys_are_made_listed_and_revoked_over_http(raw: Raw, sandbox: Sandbox) -> None:
    """A key works from its making to its revocation; the list tells everything but the key."""
    (made,) = keys(raw, "POST", "", '{"tenant":"acme","scopes":["orders:read","bins:write","orders:read"]}')
    assert (made["tenant"], made["scopes"]) == ("acme", ["bins:write", "orders:read"])
    acme = Raw(sandbox, key=str(made["api_key"]))
    assert acme("GET", BINS, x_tenant_slug="acme").status_code == 200
    listed = keys(raw, "GET")
    assert [(each["id"], each["tenant"], each["scopes"]) for each in listed] == [
        (raw.key.split("_")[1], "sandbox", ["*:write"]),
        (made["credential"], "acme", ["bins:write", "orders:read"]),
    ]
    assert str(made["api_key"]) not in str(listed)
    assert keys(raw, "DELETE", f"/{made['credential']}") == [{}]
    assert_problem(acme("GET", BINS, x_tenant_slug="acme"), 401)
    assert_problem(raw("DELETE", f"{KEYS}/{made['credential']}", authorization=None), 404)
    assert len(keys(raw, "GET")) == 1


@pytest.mark.parametrize(
    ("body", "status", "pointers"),
    [
        ("{", 400, []),
        ("[]", 422, ["#"]),
        ('{"tenant":7,"scopes":"orders:read"}', 422, ["#/tenant", "#/scopes"]),
        ('{"tenant":null}', 422, ["#/tenant"]),
        ('{"tenant":"../etc"}', 422, ["#/tenant"]),
        ('{"tenant":""}', 422, ["#/tenant"]),
        ('{"scopes":["orders:read","orders:delete"]}', 422, ["#/scopes"]),
        ('{"scopes":[["orders:read"]]}', 422, ["#/scopes"]),
        ('{"name":"x"}', 422, ["#/name"]),
    ],
)
def test_a_key_that_makes_no_sense_is_refused(raw: Raw, body: str, status: int, pointers: list[str]) -> None:
    """The problem points at what is wrong, and no key is made."""
    problem = assert_problem(raw("POST", KEYS, body, authorization=None), status)
    assert [each["pointer"] for each in problem.get("errors", [])] == pointers
    assert len(keys(raw, "GET")) == 1


def test_keys_of_another_process_are_noticed(raw: Raw, tmp_path: Path) -> None:
    """Who writes to the directory, as the command line does, makes and revokes keys of the sandbox that runs on it."""
    with Keyring(tmp_path) as elsewhere:
        credential, key = elsewhere.add("sandbox", ["customers:write"])
        assert Raw(raw.sandbox, key=key)("GET", CUSTOMERS).status_code == 200
        assert elsewhere.revoke(credential.id)
        assert not elsewhere.revoke(credential.id)
        assert_problem(Raw(raw.sandbox, key=key)("GET", CUSTOMERS), 401)
        assert elsewhere.revoke(raw.key.split("_")[1])
    assert_problem(raw("GET", CUSTOMERS), 401)


def test_keys_are_read_again_only_after_a_write(tmp_path: Path) -> None:
    """As long as nobody writes to the file, the credentials in force are one and the same object."""
    with Keyring(tmp_path) as ring, Keyring(tmp_path) as other:
        ring.add()
        known = ring.current()
        assert ring.current() is known
        other.add()
        assert len(ring.current()) == len(known) + 1


@pytest.mark.parametrize("bad", [{"tenant": "a b"}, {"tenant": "x" * 64}, {"scopes": ["invoices"]}, {"scopes": ["*"]}])
def test_a_wrong_tenant_or_scope_is_a_sentence(tmp_path: Path, bad: dict[str, Any]) -> None:
    """The error names what is wrong and what there is."""
    with Keyring(tmp_path) as ring, pytest.raises(ConfigError, match=f"{next(iter(bad))}: .*\n  (Use|There are)"):
        ring.add(**bad)


def test_a_directory_without_scopes_keeps_its_keys(tmp_path: Path) -> None:
    """Keys of the first version, which knew no scopes, still open everything."""
    with closing(sqlite3.connect(tmp_path / "sandbox.sqlite3")) as old, old:
        old.execute("CREATE TABLE credentials (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, key_hash BLOB NOT NULL)")
        old.execute("INSERT INTO credentials VALUES ('0123456789ab', 'sandbox', x'00')")
    with Keyring(tmp_path) as ring:
        assert ring.listed() == [{"id": "0123456789ab", "tenant": "sandbox", "scopes": ["*:write"], "createdAt": None}]
        assert ring.listed("other") == []
