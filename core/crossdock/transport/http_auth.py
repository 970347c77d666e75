"""Credentials of an HTTP API as `httpx.Auth` objects. Secrets are read when the first request is sent."""

from __future__ import annotations

import threading
from abc import abstractmethod
from base64 import b64encode
from collections.abc import Generator, Mapping
from typing import Any

import httpx

from crossdock.addresses import endpoint
from crossdock.clock import Clock, SystemClock
from crossdock.config_file import Secret
from crossdock.errors import ConfigError, UnauthorizedError, UnavailableError
from crossdock.transport import oauth_tokens
from crossdock.transport.oauth_tokens import ClientAuth

RENEWED_AT = 0.8  # of a token's life

Flow = Generator[httpx.Request, httpx.Response, None]


class HeaderAuth(httpx.Auth):
    """A credential in a header of its own, such as ``X-Api-Key``."""

    def __init__(self, name: str, value: Secret | str) -> None:
        self._name, self._value = name, value

    def auth_flow(self, request: httpx.Request) -> Flow:
        request.headers[self._name] = _in_header(self._value)
        yield request


class BearerAuth(HeaderAuth):
    """A fixed token, sent as ``Authorization: Bearer ...`` (RFC 6750)."""

    def __init__(self, token: Secret | str) -> None:
        super().__init__("authorization", token)

    def auth_flow(self, request: httpx.Request) -> Flow:
        request.headers["authorization"] = f"Bearer {_in_header(self._value)}"
        yield request


class BasicAuth(httpx.Auth):
    """A user and a password (RFC 7617)."""

    def __init__(self, user: Secret | str, password: Secret | str) -> None:
        self._user, self._password = user, password

    def auth_flow(self, request: httpx.Request) -> Flow:
        pair = f"{_revealed(self._user)}:{_revealed(self._password)}"
        request.headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        yield request


class TimedAuth(httpx.Auth):
    """Credentials that depend on the time.

    Attributes:
        clock: Replaced by that of the run.
    """

    clock: Clock = SystemClock()


class TokenAuth(TimedAuth):
    """A bearer token that the API grants. It is renewed before it expires, and once after a 401.

    Threads may share it: one renews the token for all.

    Attributes:
        header: That carries the token, after *scheme*.
        expired_statuses: Of answers that a new token may help against.
    """

    header, scheme = "authorization", "Bearer "
    expired_statuses: frozenset[int] = frozenset({401})
    requires_response_body = True

    def __init__(self, token_url: str) -> None:
        try:
            self._token_url = endpoint(token_url)
        except ValueError as error:
            raise ConfigError(f"the token URL {error}") from None
        self._token, self._renew_at = "", 0.0
        self._renewing = threading.Lock()

    @abstractmethod
    def token_request(self) -> httpx.Request:
        """The request for a token."""

    def granted(self, answer: Mapping[str, Any]) -> object:
        """The token in the members of an answer; None without one."""
        return answer.get("access_token")

    def auth_flow(self, request: httpx.Request) -> Flow:
        with self._renewing:
            if not self._token or self.clock.monotonic() >= self._renew_at:
                yield from self._renew()
            token = self._token
        request.headers[self.header] = f"{self.scheme}{token}"
        response = yield request
        if response.status_code in self.expired_statuses:
            with self._renewing:
                if self._token == token:  # else another thread has renewed it
                    yield from self._renew()
                token = self._token
            request.headers[self.header] = f"{self.scheme}{token}"
            yield request

    def _renew(self) -> Flow:
        asked_at = self.clock.monotonic()
        response = yield self.token_request()
        status, members = response.status_code, oauth_tokens.members(response.content)
        if status in {408, 429} or status >= 500:
            raise UnavailableError(f"no token obtained: HTTP {status}", where=self._token_url)
        if not 200 <= status < 300:
            reason = oauth_tokens.refusal(status, members.get("error"))
            raise UnauthorizedError(f"rejected the token request: {reason}", where=self._token_url)
        token = self.granted(members)
        if not oauth_tokens.is_token(token):
            raise UnavailableError("the answer has no token that can be sent in a header", where=self._token_url)
        self._token = str(token)
        self._renew_at = asked_at + RENEWED_AT * oauth_tokens.life_s(members.get("expires_in"))


class ClientCredentialsAuth(TokenAuth):
    """OAuth 2.0 client credentials (RFC 6749 section 4.4).

    Args:
        token_url: May be on another host than the API.
        client_auth: HTTP Basic, or ``client_id`` and ``client_secret`` in the form (``post``).
        extra: Further fields of the form, such as ``audience``.

    Raises:
        ConfigError: If *token_url* is neither https nor http on this machine, or contains a user or a query.
    """

    def __init__(
        self,
        token_url: str,
        client_id: Secret | str,
        client_secret: Secret | str,
        *,
        scopes: tuple[str, ...] = (),
        client_auth: ClientAuth = "basic",
        extra: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(token_url)
        self._client_id, self._client_secret, self._client_auth = client_id, client_secret, client_auth
        self._form = {"grant_type": "client_credentials", **({"scope": " ".join(scopes)} if scopes else {})}
        self._form |= extra or {}

    def token_request(self) -> httpx.Request:
        client_id, secret = _revealed(self._client_id), _revealed(self._client_secret)
        fields, headers = oauth_tokens.client_fields(client_id, secret, self._client_auth)
        return httpx.Request("POST", self._token_url, data=self._form | fields, headers=_json(headers))


class RefreshTokenAuth(TokenAuth):
    """An OAuth 2.0 refresh token (RFC 6749 section 6). A new one in an answer replaces it until the run ends.

    For the arguments and errors see `ClientCredentialsAuth`; an empty *client_secret* is that of a public client.
    """

    def __init__(
        self,
        token_url: str,
        refresh_token: Secret | str,
        client_id: Secret | str,
        client_secret: Secret | str = "",
        *,
        client_auth: ClientAuth = "post",
    ) -> None:
        super().__init__(token_url)
        self._refresh_token = refresh_token
        self._client_id, self._client_secret, self._client_auth = client_id, client_secret, client_auth

    def token_request(self) -> httpx.Request:
        form = {"grant_type": "refresh_token", "refresh_token": _revealed(self._refresh_token)}
        client_id, secret = _revealed(self._client_id), _revealed(self._client_secret)
        if secret:
            fields, headers = oauth_tokens.client_fields(client_id, secret, self._client_auth)
        else:
            fields, headers = {"client_id": client_id}, {}
        return httpx.Request("POST", self._token_url, data=form | fields, headers=_json(headers))

    def granted(self, answer: Mapping[str, Any]) -> object:
        following = answer.get("refresh_token")
        if isinstance(following, str) and following:
            self._refresh_token = following
        return super().granted(answer)


class LoginAuth(TokenAuth):
    """A token that a login request returns.

    Args:
        login_url: Where *credentials* are posted as a JSON object.
        token: The member of the answer with the token.

    Raises:
        ConfigError: See `ClientCredentialsAuth`.
    """

    def __init__(self, login_url: str, credentials: Mapping[str, Secret | str], *, token: str = "token") -> None:  # noqa: S107  the name of a member
        super().__init__(login_url)
        self._credentials, self._member = credentials, token

    def token_request(self) -> httpx.Request:
        body = {name: _revealed(value) for name, value in self._credentials.items()}
        return httpx.Request("POST", self._token_url, json=body, headers=_json({}))

    def granted(self, answer: Mapping[str, Any]) -> object:
        return answer.get(self._member)


def _json(headers: Mapping[str, str]) -> dict[str, str]:
    return {"accept": "application/json", **headers}


def _revealed(value: Secret | str) -> str:
    return value if isinstance(value, str) else value.reveal()


def _in_header(value: Secret | str) -> str:
    """*value*, for use in a header.

    Raises:
        ConfigError: If it cannot be read, or contains characters that no header can have.
    """
    text = _revealed(value)
    if not (text.isascii() and text.isprintable()):
        name = "the credential" if isinstance(value, str) else value.reference
        raise ConfigError(f"{name} contains characters that are not allowed in a header")
    return text
