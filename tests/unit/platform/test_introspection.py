"""The scopes of our credential are requested by introspection (RFC 7662)."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest
from tests.servers import served
from tests.unit.targets.test_platform_access import profile_of

from crossdock.errors import RemoteError, UnauthorizedError, UnavailableError
from crossdock.platform.platform_config import Profile
from crossdock.writing.targets import platform_access_and_clock_checks


class Platform(HTTPServer):
    """Answers lists, token requests and introspections; the last with *status* and *answer*."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.answer = 200, json.dumps({"active": True, "scope": "products:write"})
        self.asked: list[tuple[str, dict[str, list[str]]]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Platform

    def do_GET(self) -> None:
        self._respond(200, "{}")

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        if self.path == "/oauth/token":
            self._respond(200, json.dumps({"access_token": "t0ken", "token_type": "Bearer", "scope": "orders:write"}))
        else:
            self.server.asked.append((self.headers["authorization"], form))
            self._respond(self.server.status, self.server.answer)

    def _respond(self, status: int, text: str) -> None:
        self.send_response_only(status)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Iterator[Platform]:
    monkeypatch.setenv("KEY", "k3y")
    with served(Platform()) as server:
        yield server


def profile(server: Platform, **settings: Any) -> Profile:
    base = f"http://127.0.0.1:{server.server_port}"
    return profile_of(base, introspection_url=f"{base}/introspect", **settings)


def test_an_api_key_asks_about_itself(platform: Platform) -> None:
    """It is the credential of the request and the token in its form."""
    assert platform_access_and_clock_checks.read_platform_access_or_raise(profile(platform), ["product"]).scopes == (
        "products:write",
    )
    assert platform.asked == [("Bearer k3y", {"token": ["k3y"]})]


def test_a_client_authenticates_as_at_the_token_endpoint(platform: Platform) -> None:
    """It asks about its token; the answer takes precedence over what the token endpoint said."""
    auth = {"kind": "oauth2_client_credentials", "client_id": "c", "client_secret": "env:KEY"}
    assert platform_access_and_clock_checks.read_platform_access_or_raise(
        profile(platform, auth=auth), ["product"]
    ).scopes == ("products:write",)
    assert platform.asked == [(f"Basic {b64encode(b'c:k3y').decode()}", {"token": ["t0ken"]})]


def test_an_answer_without_scopes_says_nothing(platform: Platform) -> None:
    """The member is optional (RFC 7662 section 2.2)."""
    platform.answer = '{"active": true}'
    assert platform_access_and_clock_checks.read_platform_access_or_raise(profile(platform), ["product"]).scopes is None


@pytest.mark.parametrize(
    ("status", "answer", "error", "text"),
    [
        (401, "", UnauthorizedError, r"refused the introspection \(HTTP 401\)"),
        (200, '{"active": false}', UnauthorizedError, "not active"),
        (200, '{"active": "k3y"}', UnavailableError, "no introspection answer"),
        (200, '{"active": true, "scope": ["k3y"]}', UnavailableError, "no introspection answer"),
        (200, "k3y", UnavailableError, "no introspection answer"),
        (404, "{}", UnavailableError, "HTTP 404"),
        (500, "", UnavailableError, "HTTP 500"),
    ],
)
def test_a_bad_answer_is_an_error_without_the_credential(
    platform: Platform, status: int, answer: str, error: type[RemoteError], text: str
) -> None:
    """It names the address and the setting."""
    platform.status, platform.answer = status, answer
    with pytest.raises(error, match=text) as failed:
        platform_access_and_clock_checks.read_platform_access_or_raise(profile(platform), ["product"])
    assert "/introspect: " in str(failed.value)
    assert "k3y" not in str(failed.value)
