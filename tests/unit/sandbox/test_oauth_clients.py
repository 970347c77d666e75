from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.sandbox.raw import Raw, assert_problem, exact

from crossdock.errors import ConfigError
from crossdock.sandbox.oauth_clients_and_tokens import PATH, OAuthClientStore


def test_clients_are_made_listed_and_revoked_over_http(raw: Raw) -> None:
    """The secret is in the response to the creation and nowhere else."""
    made = exact(raw("POST", PATH, '{"id":"shop","tenant":"acme","scopes":["bins:wms:A:read"]}', authorization=None))
    assert (made["client_id"], made["tenant"], made["scopes"]) == ("shop", "acme", ["bins:wms:A:read"])
    generated = exact(raw("POST", PATH, authorization=None))
    assert (generated["tenant"], generated["scopes"]) == ("sandbox", ["*:write"])
    listed = raw("GET", PATH, authorization=None)
    assert [each["id"] for each in listed.json()["data"]] == ["shop", generated["client_id"]]
    assert made["client_secret"] not in listed.text
    assert raw("DELETE", f"{PATH}/shop", authorization=None).status_code == 204
    assert_problem(raw("DELETE", f"{PATH}/shop", authorization=None), 404)
    assert_problem(raw("PATCH", PATH, authorization=None), 405)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ('{"id":"taken"}', "#/id"),
        ('{"id":"a b"}', "#/id"),
        ('{"id":"a:b"}', "#/id"),
        ('{"id":"0123456789ab"}', "#/id"),
        ('{"tenant":"../etc"}', "#/tenant"),
        ('{"scopes":["orders:1:read"]}', "#/scopes"),
        ('{"name":"x"}', "#/name"),
    ],
)
def test_an_invalid_client_is_refused(raw: Raw, body: str, pointer: str) -> None:
    """The problem points at the invalid member, and no client is created."""
    raw.sandbox.clients.create_credential(client_id="taken")
    problem = assert_problem(raw("POST", PATH, body, authorization=None), 422)
    assert [each["pointer"] for each in problem["errors"]] == [pointer]
    assert len(raw.sandbox.clients.list_credentials()) == 1


@pytest.mark.parametrize(
    "bad", [{"tenant": "a b"}, {"scopes": ["invoices"]}, {"scopes": map("accounts:{}:read".format, range(101))}]
)
def test_an_invalid_tenant_or_scope_is_a_config_error(tmp_path: Path, bad: dict[str, Any]) -> None:
    """The error names the setting and the allowed values."""
    with OAuthClientStore(tmp_path) as clients, pytest.raises(ConfigError, match=f"{next(iter(bad))}: "):
        clients.create_credential(**bad)
