"""Credentials of an HTTP API as `httpx.Auth` objects. Secrets are read when the first request is sent."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Generator
from typing import Any

import httpx

from crossdock.errors import ConfigError
from crossdock.values.clock import Clock, SystemClock
from crossdock.values.config_base_types import Secret

Flow = Generator[httpx.Request, httpx.Response, None]
Expired = Callable[[int, Any], bool]
"""Recognizes an answer against which a new token may help, by its status and JSON body, besides a 401."""


class HeaderAuth(httpx.Auth):
    """A credential in a header of its own, such as ``X-Api-Key``."""

    def __init__(self, name: str, value: Secret | str) -> None:
        self._name, self._value = name, value

    def auth_flow(self, request: httpx.Request) -> Flow:
        request.headers[self._name] = _secret_text_allowed_in_header(self._value)
        yield request


class BearerAuth(HeaderAuth):
    """A fixed token, sent as ``Authorization: Bearer ...`` (RFC 6750).

    Args:
        scheme: Another word before the token, such as ``ShippoToken``.
    """

    def __init__(self, token: Secret | str, *, scheme: str = "Bearer") -> None:
        super().__init__("authorization", token)
        self._scheme = scheme

    def auth_flow(self, request: httpx.Request) -> Flow:
        request.headers["authorization"] = f"{self._scheme} {_secret_text_allowed_in_header(self._value)}"
        yield request


class BasicAuth(httpx.Auth):
    """A user and a password (RFC 7617)."""

    def __init__(self, user: Secret | str, password: Secret | str) -> None:
        self._user, self._password = user, password

    def auth_flow(self, request: httpx.Request) -> Flow:
        pair = f"{secret_text(self._user)}:{secret_text(self._password)}"
        request.headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        yield request


class TimedAuth(httpx.Auth):
    """Credentials that depend on the time. `clock` is replaced by that of the run."""

    clock: Clock = SystemClock()


def secret_text(value: Secret | str) -> str:
    return value if isinstance(value, str) else value.reveal()


def _secret_text_allowed_in_header(value: Secret | str) -> str:
    text = secret_text(value)
    if not (text.isascii() and text.isprintable()):
        name = "the credential" if isinstance(value, str) else value.reference
        raise ConfigError(f"{name} contains characters that are not allowed in a header", code="secret_invalid")
    return text
