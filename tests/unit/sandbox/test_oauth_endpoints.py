"""The OAuth endpoints, with the third-party client oauthlib as judge of requests and answers."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from oauthlib.oauth2 import BackendApplicationClient
from oauthlib.oauth2.rfc6749.errors import OAuth2Error
from tests.unit.sandbox.raw import CUSTOMERS, INVOICES, ORDERS, ManualTime, Raw

from crossdock.sandbox import Sandbox

FORM = "application/x-www-form-urlencoded"


class Client:
    """A client of the sandbox with its scopes."""

    def __init__(self, raw: Raw, *scopes: str, tenant: str = "sandbox") -> None:
        self.raw = raw
        stored, self.secret = raw.sandbox.clients.create_credential(tenant, scopes)
        self.id = stored.id

    def ask(self, path: str, /, **form: str) -> httpx.Response:
        joined = base64.b64encode(f"{self.id}:{self.secret}".encode()).decode()
        return post(self.raw, path, urlencode(form), authorization=f"Basic {joined}")

    def token(self, **form: str) -> str:
        answer = self.ask("token", grant_type="client_credentials", **form)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    def bearer(self, **form: str) -> Raw:
        return Raw(self.raw.sandbox, key=self.token(**form))

    def introspect(self, token: str) -> dict[str, Any]:
        facts: dict[str, Any] = self.ask("introspect", token=token).json()
        return facts


def post(raw: Raw, path: str, body: str | bytes, **headers: str | None) -> httpx.Response:
    plain: dict[str, str | None] = {"authorization": None, "x_tenant_slug": None, "content_type": FORM}
    return raw("POST", f"/oauth/{path}", body, **{**plain, **headers})


@pytest.mark.parametrize("basic", [True, False])
def test_a_client_of_another_library_gets_a_token(raw: Raw, basic: bool) -> None:
    """The answer passes the checks of oauthlib, may not be kept by caches, and the token works at once."""
    client, library = Client(raw, "customers:write", "orders:read"), BackendApplicationClient("x")
    library.client_id = client.id
    more: dict[str, Any] = {} if basic else {"include_client_id": True, "client_secret": client.secret}
    body = library.prepare_request_body(scope=["customers:read"], **more)
    joined = base64.b64encode(f"{client.id}:{client.secret}".encode()).decode()
    answer = post(raw, "token", body, authorization=f"Basic {joined}" if basic else None)
    assert (answer.headers["cache-control"], answer.headers["pragma"]) == ("no-store", "no-cache")
    token = library.parse_request_body_response(answer.text, scope=["customers:read"])
    assert (token["token_type"], token["expires_in"], token["scope"]) == ("Bearer", 3600, ["customers:read"])
    bearer = Raw(raw.sandbox, key=token["access_token"])
    assert bearer("GET", CUSTOMERS).status_code == 200
    assert bearer("POST", CUSTOMERS, "{}").status_code == 403
    assert bearer("GET", ORDERS).status_code == 403


def test_a_token_without_a_scope_parameter_has_all_scopes_of_its_client(raw: Raw) -> None:
    """An empty parameter is as if it were absent."""
    client = Client(raw, "customers:write", "orders:read")
    for form in ({}, {"scope": ""}):
        assert client.introspect(client.token(**form))["scope"] == "customers:write orders:read"


@pytest.mark.parametrize(
    ("form", "status", "code"),
    [
        ({}, 400, "invalid_request"),
        ({"grant_type": ""}, 400, "invalid_request"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": "client_credentials", "scope": "orders:write"}, 400, "invalid_scope"),
        ({"grant_type": "client_credentials", "scope": "orders:read  customers:read"}, 400, "invalid_scope"),
        ({"grant_type": "client_credentials", "scope": "nothing"}, 400, "invalid_scope"),
        ({"grant_type": "client_credentials", "scope": "accounts:4000:read"}, 400, "invalid_scope"),
        ({"grant_type": "client_credentials", "client_id": "other"}, 400, "invalid_request"),
        ({"grant_type": "client_credentials", "client_secret": "x"}, 400, "invalid_request"),
    ],
)
def test_a_refused_token_request_has_an_error_of_the_standard(
    raw: Raw, form: dict[str, str], status: int, code: str
) -> None:
    """The errors are those of RFC 6749 section 5.2, and oauthlib raises them."""
    answer = Client(raw, "customers:write", "orders:read").ask("token", **form)
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert answer.headers["cache-control"] == "no-store"
    with pytest.raises(OAuth2Error) as raised:
        BackendApplicationClient("x").parse_request_body_response(answer.text)
    assert raised.value.error == code


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ("grant_type=client_credentials&grant_type=client_credentials", {}, 400),
        (b"grant_type=%ff", {}, 400),
        (b"\xff", {}, 400),
        ("a=1&" * 200, {}, 400),
        ("x" * 70_000, {}, 413),
        ("{}", {"content_type": "application/json"}, 400),
    ],
)
def test_a_malformed_form_is_an_invalid_request(
    raw: Raw, body: str | bytes, headers: dict[str, str], status: int
) -> None:
    """A malformed body is refused before the client is looked up."""
    for path in ("token", "introspect", "revoke"):
        answer = post(raw, path, body, **headers)
        assert (answer.status_code, answer.json()["error"]) == (status, "invalid_request")


@pytest.mark.parametrize("header", [None, "", "Basic", "Basic !", "Basic eA==", "Basic eDp5", "Basic /w==", "Bearer x"])
def test_every_endpoint_authenticates_the_client(raw: Raw, header: str | None) -> None:
    """Without a known client each endpoint answers 401 and names the scheme."""
    for path in ("token", "introspect", "revoke"):
        answer = post(raw, path, "grant_type=client_credentials&token=x", authorization=header)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
        assert answer.headers["www-authenticate"].startswith("Basic ")


def test_only_post_without_a_query_is_answered(raw: Raw) -> None:
    """Credentials in an address would be kept in logs."""
    refused = raw("GET", "/oauth/token")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    client = Client(raw)
    assert client.ask("token?x=1", grant_type="client_credentials").status_code == 400


def test_tokens_expire_on_the_clock_of_the_sandbox(raw: Raw, clock: ManualTime) -> None:
    """A token is valid until its last second and then 401 with ``invalid_token``; introspection agrees."""
    client = Client(raw)
    bearer = client.bearer()
    clock.now += 3599
    facts = client.introspect(bearer.key)
    assert (facts["active"], facts["client_id"], facts["exp"] - facts["iat"]) == (True, client.id, 3600)
    assert bearer("GET", CUSTOMERS).status_code == 200
    clock.now += 1
    refused = bearer("GET", CUSTOMERS)
    assert refused.status_code == 401
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    assert client.introspect(bearer.key) == {"active": False}


def test_a_revoked_token_is_refused_at_once(raw: Raw) -> None:
    """Revoking is repeatable, ends one token only, and is refused for a token of another client."""
    client, other = Client(raw), Client(raw)
    first, second = client.bearer(), client.bearer()
    assert other.ask("revoke", token=first.key).json()["error"] == "unauthorized_client"
    assert other.introspect(first.key) == {"active": False}
    assert first("GET", CUSTOMERS).status_code == 200
    for _ in range(2):
        done = client.ask("revoke", token=first.key, token_type_hint="refresh_token")
        assert (done.status_code, done.content) == (200, b"")
    assert [each("GET", CUSTOMERS).status_code for each in (first, second)] == [401, 200]


def test_a_revoked_client_loses_its_tokens(raw: Raw) -> None:
    """Neither its tokens nor its secret work afterwards, also not for a new client with the same id."""
    client = Client(raw)
    bearer = client.bearer()
    assert raw.sandbox.clients.revoke(client.id)
    assert bearer("GET", CUSTOMERS).status_code == 401
    raw.sandbox.clients.create_credential(client_id=client.id)
    assert bearer("GET", CUSTOMERS).status_code == 401
    assert client.ask("token", grant_type="client_credentials").status_code == 401


def test_the_next_token_of_a_client_finds_the_kept_response(raw: Raw) -> None:
    """A retry with the same key and a renewed token creates nothing twice."""
    client = Client(raw)
    body = raw.invoice()
    answers = [client.bearer()("POST", INVOICES, body, idempotency_key="k") for _ in range(2)]
    assert [each.status_code for each in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert len(raw.effects("?resource=invoice")) == 1


def test_a_token_belongs_to_the_tenant_of_its_client(raw: Raw) -> None:
    """With the slug of another tenant it is answered 403."""
    foreign = Client(raw, tenant="acme").bearer()
    assert foreign("GET", CUSTOMERS).status_code == 403
    assert foreign("GET", CUSTOMERS, x_tenant_slug="acme").status_code == 200


def test_neither_secrets_nor_tokens_are_stored(raw: Raw, sandbox: Sandbox, tmp_path: Any) -> None:
    """No file of the sandbox contains a secret or a token."""
    client = Client(raw)
    token = client.token()
    stored = [path.read_bytes() for path in tmp_path.iterdir()]
    assert all(each.encode() not in content for each in (client.secret, token) for content in stored)
