"""The token endpoint: authentication, scopes, failures, and secrecy."""

from __future__ import annotations

import json
import logging
import traceback
from base64 import b64decode, b64encode
from collections.abc import Callable
from urllib.parse import parse_qs, unquote_plus

import pytest
from tests.integration.platform.token_server import (
    Reply,
    Seen,
    TokenServer,
    answer,
    send,
    token,
    tokens_sent,
)

from crossdock.errors import ConfigError, RemoteError, UnauthorizedError, UnavailableError
from crossdock.platform.credentials import ATTEMPTS
from crossdock.reading.transport.http_answers_and_errors import NotSentError
from crossdock.testing.manual_clock import ManualClock
from crossdock.writing.targets import platform_access_and_clock_checks
from crossdock.writing.targets.platform_target import PlatformTarget


@pytest.mark.parametrize(
    ("expires_in", "life_s"),
    [
        pytest.param("3600", 3600, id="number"),
        pytest.param("59.5", 59.5, id="fraction"),
        pytest.param('"3600"', 3600, id="digits as text"),
        pytest.param("null", 300, id="null"),
        pytest.param('"soon"', 300, id="text"),
        pytest.param('"-5"', 300, id="negative text"),
        pytest.param("-5", 300, id="negative"),
        pytest.param("0", 300, id="zero"),
        pytest.param("true", 300, id="truth value"),
        pytest.param("[3600]", 300, id="list"),
        pytest.param("1e400", 86_400, id="huge"),
        pytest.param("9" * 400, 86_400, id="huge whole number"),
        pytest.param(f'"{"9" * 12}"', 86_400, id="huge text"),
    ],
)
def test_the_life_of_a_token(server: TokenServer, expires_in: str, life_s: float) -> None:
    """An invalid life counts as five minutes, and none is longer than a day."""
    body = b'{"access_token":"T","expires_in":%s}' % expires_in.encode()
    server.tokens = lambda _: (200, {}, body)
    target = PlatformTarget(server.profile())
    send(target)
    assert target.credential.current_token
    assert target.credential.current_token.life_s == life_s


def test_a_token_without_a_life(server: TokenServer) -> None:
    """Without ``expires_in`` a token is valid for five minutes."""
    server.tokens = lambda seen: answer(200, {"access_token": f"T{seen.number}"})
    clock = ManualClock()
    target = PlatformTarget(server.profile(), clock)
    for pause in (0, 239, 1):
        clock.advance(pause)
        send(target)
    assert tokens_sent(server) == ["T1", "T1", "T2"]


@pytest.mark.parametrize(
    ("client_id", "secret"),
    [
        pytest.param("me", "plain", id="plain"),
        pytest.param("a:b", "c:d", id="colons"),
        pytest.param("a+b c", "100% & more=less", id="plus, blanks and form signs"),
        pytest.param("Käse", "Größe €", id="letters beyond ASCII"),
    ],
)
@pytest.mark.parametrize("client_auth", ["basic", "post"])
def test_the_client_authenticates(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch, client_auth: str, client_id: str, secret: str
) -> None:
    """Id and secret arrive unchanged, either in the header or in the form."""
    monkeypatch.setenv("CLIENT_SECRET", secret)
    send(PlatformTarget(server.profile({"client_id": client_id, "client_auth": client_auth, "scopes": ["a:b", "c"]})))
    (seen,) = server.asked
    form = {name: value for name, (value,) in parse_qs(seen.body.decode("ascii"), strict_parsing=True).items()}
    if client_auth == "basic":
        kind, _, pair = seen.headers["authorization"].partition(" ")
        user, password = b64decode(pair, validate=True).decode("ascii").split(":")
        received = (kind, unquote_plus(user), unquote_plus(password))
    else:
        received = ("Basic", form.pop("client_id"), form.pop("client_secret"))
        assert "authorization" not in seen.headers
    assert received == ("Basic", client_id, secret)
    assert form == {"grant_type": "client_credentials", "scope": "a:b c"}
    assert (seen.method, seen.headers["content-type"]) == ("POST", "application/x-www-form-urlencoded")
    assert "x-tenant-slug" not in seen.headers


def test_without_scopes_none_are_requested(server: TokenServer) -> None:
    """An empty list leaves the choice to the server."""
    send(PlatformTarget(server.profile()))
    assert server.asked[0].body == b"grant_type=client_credentials"


def test_an_unreadable_secret_is_reported_early(server: TokenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a client fails before any request, and without showing the secret."""
    monkeypatch.delenv("CLIENT_SECRET")
    with pytest.raises(ConfigError, match="CLIENT_SECRET is not set"):
        PlatformTarget(server.profile()).client()
    monkeypatch.setenv("CLIENT_SECRET", "can\nary")
    with pytest.raises(ConfigError, match="no client secret") as refused:
        PlatformTarget(server.profile()).client()
    assert "ary" not in str(refused.value)
    assert server.asked == []


def test_fewer_scopes_than_requested_are_an_error(server: TokenServer) -> None:
    """The error names the missing scopes; nothing is sent, and no second token requested."""
    server.tokens = lambda seen: token(seen, scope="orders:read admin")
    target = PlatformTarget(server.profile({"scopes": ["invoices:write", "orders:read", "ledger:4000:write"]}))
    for _ in range(2):
        with pytest.raises(UnauthorizedError, match=r"missing scopes: invoices:write ledger:4000:write\n"):
            send(target)
    assert (len(server.asked), server.sent) == (1, [])


@pytest.mark.parametrize(
    ("scopes", "reported", "text"),
    [
        pytest.param(["a"], {}, "scopes: a", id="not reported: as requested"),
        pytest.param(["a", "b"], {"scope": "b a"}, "scopes: b a", id="in another order"),
        pytest.param(["a"], {"scope": "a root"}, "scopes: a root; more than requested: root", id="wider"),
        pytest.param([], {"scope": "a b"}, "scopes: a b", id="none requested"),
        pytest.param([], {}, "scopes: not reported", id="none requested, none reported"),
    ],
)
def test_granted_scopes_are_shown(server: TokenServer, scopes: list[str], reported: dict[str, str], text: str) -> None:
    """The access check shows the token's life and scopes, and those that were not requested."""
    server.tokens = lambda seen: token(seen, **reported)
    server.platform = lambda _: answer(200, {"data": []})
    shown = platform_access_and_clock_checks.read_platform_access_or_raise(
        server.profile({"scopes": scopes}), ["product"]
    )
    assert shown.text == f"{server.base_url} grants access, with a token for 100 s; {text}"


def refusal(status: int, body: bytes) -> Callable[[Seen], Reply]:
    return lambda _: (status, {}, body)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        pytest.param(401, b'{"error":"invalid_client"}', r"invalid_client \(HTTP 401\)", id="client"),
        pytest.param(400, b'{"error":"invalid_scope"}', r"invalid_scope \(HTTP 400\)", id="scope"),
        pytest.param(401, b"<html>no</html>", "request: HTTP 401", id="no JSON"),
        pytest.param(400, b'{"error":{"code":1}}', "request: HTTP 400", id="error of another shape"),
        pytest.param(400, b'["invalid_client"]', "request: HTTP 400", id="no object"),
        pytest.param(400, b'{"error":"bad\\u001b[31m"}', "request: HTTP 400", id="control characters"),
        pytest.param(400, b'{"error":"hunter_two"}', "request: HTTP 400", id="a nonstandard code"),
        pytest.param(404, b"", "request: HTTP 404", id="nothing there"),
        pytest.param(302, b"", "request: HTTP 302", id="redirect"),
    ],
)
def test_a_refusal_is_final(server: TokenServer, status: int, body: bytes, message: str) -> None:
    """The error shows the endpoint's error code; it is asked once."""
    server.tokens = refusal(status, body)
    target = PlatformTarget(server.profile())
    for _ in range(2):
        with pytest.raises(UnauthorizedError, match=message) as refused:
            send(target)
    assert f"{server.base_url}/oauth/token: " in str(refused.value)
    assert (len(server.asked), server.sent) == (1, [])


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        pytest.param(None, "request failed", id="no answer"),
        pytest.param((503, {}, b""), "HTTP 503", id="down"),
        pytest.param((500, {}, b'{"error":"server_error"}'), "HTTP 500", id="error"),
        pytest.param((429, {"retry-after": "1"}, b""), "HTTP 429", id="throttled"),
        pytest.param((425, {}, b""), "HTTP 425", id="too early"),
        pytest.param((400, {}, b'{"error":"temporarily_unavailable"}'), "HTTP 400", id="down for a moment"),
        pytest.param((200, {}, b"<html>"), "no access_token", id="no JSON"),
        pytest.param((200, {}, b'{"access_token":"a","access_token":"b"}'), "no access_token", id="two tokens"),
        pytest.param((200, {}, b"[]"), "no access_token", id="no object"),
        pytest.param((200, {}, b"{}"), "no access_token", id="no access_token"),
        pytest.param((200, {}, b'{"access_token":""}'), "no access_token", id="empty token"),
        pytest.param((200, {}, b'{"access_token":17}'), "no access_token", id="number as token"),
        pytest.param((200, {}, b'{"access_token":"a\\r\\nx: y"}'), "no access_token", id="line end in token"),
        pytest.param((200, {}, '{"access_token":"ä"}'.encode()), "no access_token", id="umlaut in token"),
        pytest.param((200, {}, b'{"access_token":"a","token_type":"mac"}'), "not Bearer", id="token type"),
        pytest.param((200, {}, b'{"access_token":"a","scope":["x"]}'), "scopes", id="list of scopes"),
        pytest.param((200, {}, b'{"access_token":"a","scope":"x\\u001b"}'), "scopes", id="control in scopes"),
        pytest.param((200, {}, b'{"access_token":"a","scope":"%s"}' % (b"x" * 5_000)), "scopes", id="endless scopes"),
        pytest.param((200, {}, b'{"access_token":"a","expires_in":1e400000000}'), "access_token", id="endless life"),
        pytest.param((200, {"content-encoding": "gzip"}, b"{}"), "request failed", id="broken packing"),
        pytest.param((200, {}, b'{"access_token":"%s"}' % (b"a" * 70_000)), "more than", id="endless token"),
    ],
)
def test_without_a_token_nothing_is_sent(server: TokenServer, reply: Reply, message: str) -> None:
    """A failing token endpoint is asked three times; then the request counts as certainly not sent."""
    server.tokens = lambda _: reply
    clock = ManualClock()
    target = PlatformTarget(server.profile(), clock)
    with pytest.raises(NotSentError, match=message) as failed:
        send(target)
    assert f"{server.base_url}/oauth/token: no token obtained: " in failed.value.message
    assert (len(server.asked), server.sent) == (ATTEMPTS, [])
    assert 0.0 < clock.monotonic() < 1.5
    server.tokens = token
    assert send(target).status == 201


def test_an_endpoint_that_cannot_be_reached(server: TokenServer) -> None:
    """A closed port is a request that was not sent."""
    target = PlatformTarget(server.profile({"token_url": "http://127.0.0.1:1/token"}), ManualClock())
    with pytest.raises(NotSentError, match="cannot be reached"):
        send(target)
    assert server.sent == []


SECRET = "canarysecret"
PAIR = b64encode(f"me:{SECRET}".encode()).decode()
TOKEN = "canary.token"
ECHO = json.dumps({"error": SECRET, "error_description": f"{SECRET} {TOKEN}"}).encode()


@pytest.mark.parametrize("client_auth", ["basic", "post"])
@pytest.mark.parametrize(
    ("tokens", "platform"),
    [
        pytest.param((401, {}, ECHO), (201, {}, b"{}"), id="refused, with an echo"),
        pytest.param((500, {}, ECHO), (201, {}, b"{}"), id="failed, with an echo"),
        pytest.param((200, {}, b'{"access_token":"canary.token'), (201, {}, b"{}"), id="cut answer"),
        pytest.param((200, {}, b'{"access_token":"canary.token\\n"}'), (201, {}, b"{}"), id="unusable token"),
        pytest.param((200, {}, b'{"access_token":"canary.token","scope":"z"}'), (201, {}, b"{}"), id="narrowed"),
        pytest.param((200, {}, b'{"access_token":"canary.token"}'), (401, {}, b"{}"), id="refused by the platform"),
        pytest.param((200, {}, b'{"access_token":"canary.token"}'), None, id="platform broke off"),
        pytest.param((200, {}, b'{"access_token":"canary.token"}'), (200, {}, b"{}"), id="all is well"),
    ],
)
def test_neither_secret_nor_token_is_shown(
    server: TokenServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    client_auth: str,
    tokens: Reply,
    platform: Reply,
) -> None:
    """However it fails, no error, traceback, repr or log line holds the secret or the token."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("CLIENT_SECRET", SECRET)
    server.tokens, server.platform = lambda _: tokens, lambda _: platform
    profile = server.profile({"client_auth": client_auth, "scopes": ["orders:read"]}, retry={"base_s": 0.001})
    target = PlatformTarget(profile)
    texts = [repr(profile), str(profile)]
    looks: tuple[Callable[[], str], ...] = (
        lambda: platform_access_and_clock_checks.read_platform_access_or_raise(profile, ["product"]).text,
        lambda: repr(send(target)),
    )
    for look in looks:
        try:
            texts.append(look())
        except RemoteError as error:
            texts += [str(error), repr(error), error.message, "".join(traceback.format_exception(error))]
    texts += [repr(target), repr(target.credential), repr(target.credential.current_token), caplog.text]
    held = target.credential.current_token
    texts += [repr(held), str(held)]
    assert server.asked
    assert caplog.text  # the libraries below do log
    assert not [text for text in texts if "canary" in text or PAIR in text]


def test_the_access_check_reports_an_unavailable_endpoint(server: TokenServer) -> None:
    """A platform whose token endpoint is down cannot be reached."""
    server.tokens = lambda _: answer(503, {})
    with pytest.raises(UnavailableError, match="no token obtained: HTTP 503"):
        platform_access_and_clock_checks.read_platform_access_or_raise(
            server.profile(retry={"base_s": 0.001}), ["product"]
        )
