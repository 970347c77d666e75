from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.sandbox.raw import BINS, CUSTOMERS, Raw, assert_problem, exact

from crossdock.errors import ConfigError
from crossdock.sandbox import Sandbox
from crossdock.sandbox.api_keys import ApiKeyStore


def test_a_key_can_be_created_without_a_credential(raw: Raw, sandbox: Sandbox) -> None:
    """The new key works at once, and creating it needs no credential."""
    made = raw("POST", "/_sandbox/keys", authorization=None)
    assert made.status_code == 201
    assert Raw(sandbox, key=made.json()["api_key"])("GET", CUSTOMERS).status_code == 200


KEYS = "/_sandbox/keys"


def keys(raw: Raw, method: str, end: str = "", body: str | None = None) -> list[dict[str, object]]:
    """Send a request to /_sandbox/keys without a credential."""
    answer = raw(method, f"{KEYS}{end}", body, authorization=None)
    assert answer.status_code in {200, 201, 204}, answer.text
    document = exact(answer) if answer.content else {}
    return list(document["data"]) if "data" in document else [document]


def test_keys_are_made_listed_and_revoked_over_http(raw: Raw, sandbox: Sandbox) -> None:
    """A key works from its creation to its revocation; the list has everything but the key."""
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
def test_an_invalid_key_request_is_refused(raw: Raw, body: str, status: int, pointers: list[str]) -> None:
    """The problem points at the invalid member, and no key is created."""
    problem = assert_problem(raw("POST", KEYS, body, authorization=None), status)
    assert [each["pointer"] for each in problem.get("errors", [])] == pointers
    assert len(keys(raw, "GET")) == 1


def test_keys_of_another_process_take_effect(raw: Raw, tmp_path: Path) -> None:
    """Another process, as the command line, creates and revokes keys of the running sandbox."""
    with ApiKeyStore(tmp_path) as elsewhere:
        credential, key = elsewhere.create_credential("sandbox", ["customers:write"])
        assert Raw(raw.sandbox, key=key)("GET", CUSTOMERS).status_code == 200
        assert elsewhere.revoke(credential.id)
        assert not elsewhere.revoke(credential.id)
        assert_problem(Raw(raw.sandbox, key=key)("GET", CUSTOMERS), 401)
        assert elsewhere.revoke(raw.key.split("_")[1])
    assert_problem(raw("GET", CUSTOMERS), 401)


def test_keys_are_read_again_only_after_a_write(tmp_path: Path) -> None:
    """Without a write to the file the valid credentials are the same object."""
    with ApiKeyStore(tmp_path) as ring, ApiKeyStore(tmp_path) as other:
        ring.create_credential()
        known = ring.valid_callers_by_key_id()
        assert ring.valid_callers_by_key_id() is known
        other.create_credential()
        assert len(ring.valid_callers_by_key_id()) == len(known) + 1


@pytest.mark.parametrize("bad", [{"tenant": "a b"}, {"tenant": "x" * 64}, {"scopes": ["invoices"]}, {"scopes": ["*"]}])
def test_an_invalid_tenant_or_scope_is_a_config_error(tmp_path: Path, bad: dict[str, Any]) -> None:
    """The error names the setting and the allowed values."""
    with (
        ApiKeyStore(tmp_path) as ring,
        pytest.raises(ConfigError, match=f"{next(iter(bad))}: .*\n  (Use|Known scopes)"),
    ):
        ring.create_credential(**bad)
