"""Credentials are sent as each scheme requires, and renewed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest

from crossdock.errors import ConfigError, UnauthorizedError, UnavailableError
from crossdock.reading.sources.run_context import SourceContext
from crossdock.reading.transport.http_answers_and_errors import REFUSED_FOR_S, RefusedCredentials
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.sources import (
    Api,
    ApiClient,
    BasicAuth,
    BearerAuth,
    ClientCredentialsAuth,
    HeaderAuth,
    LoginAuth,
    RefreshTokenAuth,
)
from crossdock.testing.manual_clock import ManualClock
from crossdock.values import exact_json
from crossdock.values.config_base_types import Secret
from crossdock.values.run_progress_and_messages import SilentProgress

TOKEN_URL = "https://login.example/token"


class Vendor:
    """An API that accepts the latest token only, and its token endpoint.

    Attributes:
        forms: What the token endpoint was sent.
        seen: The credentials that the API was sent.
        refusal: What it answers to others.
    """

    def __init__(self, auth: httpx.Auth, grants: Mapping[str, Any] | None = None, status: int = 200) -> None:
        self.forms, self.seen, self.valid, self.clock = list[Any](), list[str](), "", ManualClock()
        self.auth: Any = auth
        self.refusal = httpx.Response(401, json={})
        self._grants, self._status = grants or {"access_token": "token-{}", "expires_in": 100}, status
        run = SourceContext(self.clock, SilentProgress(), EmptyIntakeLog(), Path(), Path(), Path())
        transport = httpx.MockTransport(self._handle)
        self.api = ApiClient(Api("https://shop.example", auth, transport=transport), run)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        if request.url.host == "login.example":
            is_json = request.headers["content-type"] == "application/json"
            self.forms.append(exact_json.loads(request.content) if is_json else parse_qs(request.content.decode()))
            grants = {name: str(value).format(len(self.forms)) for name, value in self._grants.items()}
            self.valid = f"Bearer token-{len(self.forms)}"
            return httpx.Response(self._status, json=grants)
        self.seen.append(request.headers.get("authorization", request.headers.get("x-key", "")))
        return httpx.Response(200, json={}) if self.valid in {"", self.seen[-1]} else self.refusal


@pytest.mark.parametrize(
    ("auth", "sent"),
    [
        (HeaderAuth("X-Key", "k"), "k"),
        (BearerAuth("t"), "Bearer t"),
        (BearerAuth("t", scheme="ShippoToken"), "ShippoToken t"),
        (BasicAuth("user", "pässword"), "Basic dXNlcjpww6Rzc3dvcmQ="),
    ],
)
def test_fixed_credentials(auth: httpx.Auth, sent: str) -> None:
    """In a header of their own, as a bearer token, or as user and password in UTF-8."""
    vendor = Vendor(auth)
    vendor.api.get("/")
    assert vendor.seen == [sent]


@pytest.mark.parametrize(
    "auth",
    [
        ClientCredentialsAuth(TOKEN_URL, "app", "secret", scheme="Zoho-oauthtoken"),
        RefreshTokenAuth(TOKEN_URL, "refresh", "app", scheme="Zoho-oauthtoken"),
    ],
)
def test_a_granted_token_is_sent_with_the_scheme_of_the_vendor(auth: httpx.Auth) -> None:
    """Some APIs accept their tokens by another word than Bearer."""
    vendor = Vendor(auth)
    vendor.valid = "none yet"
    vendor.refusal = httpx.Response(200, json={})
    vendor.api.get("/")
    assert vendor.seen == ["Zoho-oauthtoken token-1"]


@pytest.mark.parametrize("auth", [HeaderAuth, BearerAuth])
@pytest.mark.parametrize("text", ["canary-ä", "canary\r\nx: y"])
def test_a_secret_that_no_header_can_have(
    auth: type[HeaderAuth], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and not quoted."""
    monkeypatch.setenv("SHOP_KEY", text)
    secret = Secret("env:SHOP_KEY", tmp_path)
    vendor = Vendor(BearerAuth(secret) if auth is BearerAuth else HeaderAuth("X-Key", secret))
    with pytest.raises(ConfigError, match="env:SHOP_KEY contains characters") as failed:
        vendor.api.get("/")
    assert "canary" not in str(failed.value)


def test_client_credentials_are_renewed_before_they_expire() -> None:
    """After four fifths of their life; until then one token serves all requests."""
    vendor = Vendor(ClientCredentialsAuth(TOKEN_URL, "me", "secret", scopes=("a", "b"), client_auth="post"))
    for pause_s in (0, 79, 2):
        vendor.clock.advance(pause_s)
        vendor.api.get("/")
    assert vendor.seen == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]
    fields = {"grant_type": "client_credentials", "scope": "a b", "client_id": "me", "client_secret": "secret"}
    assert vendor.forms[0] == {name: [value] for name, value in fields.items()}


def test_a_token_that_expires_in_mid_read_is_replaced() -> None:
    """A 401 renews it once; the request is sent again."""
    vendor = Vendor(ClientCredentialsAuth(TOKEN_URL, "me", "secret"))
    vendor.api.get("/")
    vendor.valid = "Bearer another"
    vendor.api.get("/")
    assert vendor.seen == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]


GRANTS_ANOTHER = {"access_token": "token-{}", "refresh_token": "r-{}", "expires_in": 10}


def test_a_refresh_token_is_replaced_by_its_successor() -> None:
    """Until the run ends, at a vendor that accepts the first one further."""
    vendor = Vendor(RefreshTokenAuth(TOKEN_URL, "r-0", "me", reusable=True), GRANTS_ANOTHER)
    for _ in range(2):
        vendor.api.get("/")
        vendor.clock.advance(9)
    assert [form["refresh_token"] for form in vendor.forms] == [["r-0"], ["r-1"]]
    assert vendor.forms[0]["client_id"] == ["me"]


def test_a_successor_that_would_be_lost_is_refused() -> None:
    """One answer with another refresh token ends the reading: the one of the config may be accepted no more."""
    vendor = Vendor(RefreshTokenAuth(TOKEN_URL, "canary", "me"), GRANTS_ANOTHER)
    for _ in range(2):
        with pytest.raises(UnauthorizedError, match=r"replaced the refresh token.*") as failed:
            vendor.api.get("/")
        assert "use authorization_code" in str(failed.value)
        assert "canary" not in str(failed.value)
    assert (len(vendor.forms), vendor.seen) == (1, [])


@pytest.mark.parametrize("given", ["r-0", ""])
def test_a_refresh_token_that_stays_the_same(given: str) -> None:
    """An answer that repeats it, or has an empty one, replaces nothing."""
    vendor = Vendor(RefreshTokenAuth(TOKEN_URL, "r-0", "me"), {"access_token": "token-{}", "refresh_token": given})
    vendor.api.get("/")
    assert vendor.seen == ["Bearer token-1"]


def test_a_refresh_token_that_was_used_before() -> None:
    """The refusal names the credentials that keep its successors."""
    vendor = Vendor(RefreshTokenAuth(TOKEN_URL, "canary", "me"), {"error": "invalid_grant"}, 400)
    with pytest.raises(UnauthorizedError, match=r"invalid_grant \(HTTP 400\): .* use authorization_code") as failed:
        vendor.api.get("/")
    assert "canary" not in str(failed.value)


def test_a_login_returns_a_token() -> None:
    """From the member that the connector names."""
    auth = LoginAuth("https://login.example/login", {"user": "u", "password": "p"}, token="session")
    vendor = Vendor(auth, {"session": "token-{}"})
    vendor.api.get("/")
    assert (vendor.forms, vendor.seen) == ([{"user": "u", "password": "p"}], ["Bearer token-1"])


@pytest.mark.parametrize(
    ("place", "answer", "token"),
    [("", "k-1", "k-1"), ("", 71, "71"), ("/0/key", [{"key": "k-1"}], "k-1"), ("0.key", [{"key": "k-1"}], "k-1")],
)
def test_a_login_may_answer_with_any_json(place: str, answer: Any, token: str) -> None:
    """Such as the token alone, as the whole body."""
    asked, got = logged_in(place, answer)
    asked.get("/")
    assert got == [f"Bearer {token}"]


@pytest.mark.parametrize(
    ("place", "answer", "hint"),
    [
        ("", {"token": "k"}, "a JSON text that is the whole body"),
        ("", False, "a JSON text that is the whole body"),
        ("token", "k-1", "expected at 'token'"),
        ("token", {"token": True}, "expected at 'token'"),
    ],
)
def test_a_login_without_a_token_says_where_it_is_expected(place: str, answer: Any, hint: str) -> None:
    """Neither an object nor false is one."""
    asked, got = logged_in(place, answer)
    with pytest.raises(UnauthorizedError, match="no token that can be sent") as failed:
        asked.get("/")
    assert hint in str(failed.value.hint)
    assert got == []


def logged_in(place: str, answer: Any) -> tuple[ApiClient, list[str]]:
    """An API whose login answers so, and the credentials that it is sent."""
    got = list[str]()

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.host == "login.example":
            return httpx.Response(200, json=answer)
        got.append(request.headers["authorization"])
        return httpx.Response(200, json={})

    auth = LoginAuth("https://login.example/login", {"user": "u"}, token=place)
    run = SourceContext(ManualClock(), SilentProgress(), EmptyIntakeLog(), Path(), Path(), Path())
    return ApiClient(Api("https://shop.example", auth, transport=httpx.MockTransport(handle)), run), got


@pytest.mark.parametrize(
    ("grants", "status", "error", "message"),
    [
        ({"error": "invalid_client"}, 401, UnauthorizedError, r"invalid_client \(HTTP 401\)"),
        ({"error": "canary"}, 400, UnauthorizedError, r"token request: HTTP 400$"),
        ({"error": "canary"}, 503, UnavailableError, "no token obtained: HTTP 503"),
        ({"access_token": "a canary"}, 200, UnavailableError, "no token that can be sent"),
        ({}, 200, UnavailableError, "no token that can be sent"),
    ],
)
def test_a_token_that_is_not_granted(
    grants: Mapping[str, str], status: int, error: type[Exception], message: str
) -> None:
    """The error quotes only codes of the standard."""
    vendor = Vendor(ClientCredentialsAuth(TOKEN_URL, "me", "secret"), grants or {"x": "y"}, status)
    with pytest.raises(error, match=message) as failed:
        vendor.api.get("/")
    assert "canary" not in str(failed.value)
    assert vendor.seen == []


LOGIN = LoginAuth, ("https://login.example/login", {"user": "u", "password": "canary"})
CLIENT = ClientCredentialsAuth, (TOKEN_URL, "me", "canary")


@pytest.mark.parametrize(
    ("made", "grants", "status"),
    [
        pytest.param(LOGIN, {"message": "wrong password"}, 401, id="401"),
        pytest.param(LOGIN, {"message": "wrong password"}, 403, id="403"),
        pytest.param(LOGIN, {"message": "wrong password", "token": ""}, 200, id="200 and an empty token"),
        pytest.param(LOGIN, {"x": "y"}, 200, id="200 without a reason"),
        pytest.param(CLIENT, {"error": "invalid_client"}, 401, id="client"),
        pytest.param(CLIENT, {"error": "wrong", "access_token": ""}, 200, id="client, 200"),
    ],
)
def test_credentials_that_are_refused_are_not_repeated(made: Any, grants: Mapping[str, str], status: int) -> None:
    """Not by other streams of the run, and not by other runs of the process for a quarter of an hour."""
    (kind, arguments), known = made, RefusedCredentials()
    vendors = [Vendor(kind(*arguments), grants, status) for _ in range(2)]
    for vendor in vendors:
        vendor.auth.refused_before, vendor.auth.clock = known, vendors[0].clock
        for _ in range(3):
            with pytest.raises(UnauthorizedError, match="rejected|has no token") as failed:
                vendor.api.get("/")
            assert "canary" not in str(failed.value)
    assert [len(vendor.forms) for vendor in vendors] == [1, 0]
    vendors[0].clock.advance(REFUSED_FOR_S)
    with pytest.raises(UnauthorizedError):
        vendors[1].api.get("/")
    assert [len(vendor.forms) for vendor in vendors] == [1, 1]


@pytest.mark.parametrize(("status", "grants"), [(425, {"x": "y"}), (400, {"error": "temporarily_unavailable"})])
def test_a_failure_of_the_moment_is_no_refusal(status: int, grants: Mapping[str, str]) -> None:
    """The token is requested again, as after a 503."""
    vendor = Vendor(ClientCredentialsAuth(TOKEN_URL, "me", "secret"), grants, status)
    with pytest.raises(UnavailableError, match="failed 5 times; last error: no token obtained"):
        vendor.api.get("/")
    assert len(vendor.forms) == 5


def test_an_answer_that_means_an_ended_token() -> None:
    """Any kind of token is renewed after it, and the request is sent once more."""
    auth = ClientCredentialsAuth(
        TOKEN_URL, "me", "secret", expired=lambda status, body: "ended" in body and status == 403
    )
    vendor = Vendor(auth)
    vendor.refusal = httpx.Response(403, json={"ended": True})
    vendor.api.get("/")
    vendor.valid = "Bearer another"
    vendor.api.get("/")
    assert vendor.seen == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]


@pytest.mark.parametrize("url", ["http://login.example/token", "https://u:canary@login.example/"])
def test_token_urls_are_checked(url: str) -> None:
    """Secrets are sent there."""
    with pytest.raises(ConfigError, match="the token URL must") as refused:
        ClientCredentialsAuth(url, "me", "secret")
    assert "canary" not in str(refused.value)
