"""Credentials of an HTTP API as `httpx.Auth` objects: headers and passwords, and tokens that the API grants, by OAuth
2.0 or a login of another form. Secrets are read when the first request is sent.
"""

from __future__ import annotations

import re
import threading
from abc import abstractmethod
from base64 import b64encode
from collections.abc import Callable, Generator, Mapping
from http.cookies import SimpleCookie
from typing import Any

import httpx

from crossdock.errors import ConfigError, UnauthorizedError, UnavailableError
from crossdock.reading.transport import oauth_messages
from crossdock.reading.transport.client_assertions import ASSERTION_TYPE, ClientAssertion
from crossdock.reading.transport.http_answers_and_errors import RefusedCredentials
from crossdock.reading.transport.oauth_messages import ClientAuth
from crossdock.values import exact_json
from crossdock.values.clock import Clock, SystemClock
from crossdock.values.config_base_types import Secret
from crossdock.values.json_paths import json_value_as_column_text, value_at_path_or_missing, value_at_pointer_or_missing
from crossdock.values.web_address_checks import check_address_without_query

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
        pair = f"{revealed_secret_or_text(self._user)}:{revealed_secret_or_text(self._password)}"
        request.headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        yield request


class TimedAuth(httpx.Auth):
    """Credentials that depend on the time. `clock` is replaced by that of the run."""

    clock: Clock = SystemClock()


def revealed_secret_or_text(value: Secret | str) -> str:
    return value if isinstance(value, str) else value.reveal()


def _secret_text_allowed_in_header(value: Secret | str) -> str:
    text = revealed_secret_or_text(value)
    if not (text.isascii() and text.isprintable()):
        name = "the credential" if isinstance(value, str) else value.reference
        raise ConfigError(f"{name} contains characters that are not allowed in a header", code="secret_invalid")
    return text


RENEWED_AT = 0.8  # fraction of a token's life


class TokenAuth(TimedAuth):
    """A bearer token that the API grants. It is renewed before it expires, and once after a 401.

    Threads may share it: one renews the token for all. Refused credentials are not sent again soon.

    Attributes:
        expired_statuses: A new token may help against answers with these.
        always_grants: Whether each answer of success to right credentials has a token; else it may come later.
        advice: What to do about an answer of success without a token, or None.
        message_of: The message of an error document, without credentials; replaced by that of the API's client.
        refused_before: The refusals that the connection remembers; replaced by those of the connection.
    """

    header, scheme = "authorization", "Bearer"
    expired_statuses: frozenset[int] = frozenset({401})
    requires_response_body = True
    always_grants = False
    advice: str | None = None
    message_of: Callable[[Any], str] = staticmethod(lambda _: "")

    def __init__(self, token_url: str, expired: Expired | None = None, scheme: str | None = None) -> None:
        try:
            self._token_url = check_address_without_query(token_url)
        except ValueError as error:
            raise ConfigError(f"the token URL {error}", code="address_invalid") from None
        self._token, self._renew_at = "", 0.0
        self._expired, self.refused_before = expired, RefusedCredentials()
        self.scheme = self.scheme if scheme is None else scheme
        self._renewing = threading.Lock()

    @abstractmethod
    def token_request(self) -> httpx.Request: ...

    def token_of_members(self, answer: Mapping[str, Any]) -> object:
        """Return the token in the members of an answer, or None."""
        return answer.get("access_token")

    def token_of_response(self, response: httpx.Response) -> object:
        """Return the token in a successful answer, or None."""
        return self.token_of_members(oauth_messages.json_object_or_empty(response.content))

    def refused(self, response: httpx.Response) -> str:
        """Return why an answer has no token, without credentials, if it says so."""
        del response
        return ""

    def is_expired(self, response: httpx.Response) -> bool:
        status = response.status_code
        if self._expired is None or status in self.expired_statuses:
            return status in self.expired_statuses
        return self._expired(status, oauth_messages.json_object_or_empty(response.content))

    def header_value(self, token: str) -> str:
        return f"{self.scheme} {token}".lstrip()

    def auth_flow(self, request: httpx.Request) -> Flow:
        with self._renewing:
            if not self._token or self.clock.monotonic() >= self._renew_at:
                yield from self._renew()
            token = self._token
        request.headers[self.header] = self.header_value(token)
        response = yield request
        if self.is_expired(response):
            with self._renewing:
                if self._token == token:  # else another thread has renewed it
                    yield from self._renew()
                token = self._token
            request.headers[self.header] = self.header_value(token)
            yield request

    def _renew(self) -> Flow:
        self.refused_before.raise_if_refused("", self.clock)
        asked_at = self.clock.monotonic()
        response = yield self.token_request()
        with self.refused_before.remembering_refusal("", self.clock):
            self._token = self._token_from_response(response)
        expires_in = oauth_messages.json_object_or_empty(response.content).get("expires_in")
        self._renew_at = asked_at + RENEWED_AT * oauth_messages.token_life_s(expires_in)

    def _token_from_response(self, response: httpx.Response) -> str:
        status, members = response.status_code, oauth_messages.json_object_or_empty(response.content)
        is_success = 200 <= status < 300
        token = self.token_of_response(response) if is_success else None
        if oauth_messages.is_valid_access_token(token):
            return str(token)
        if oauth_messages.is_temporary_failure(status, members):
            raise UnavailableError(f"no token obtained: HTTP {status}", where=self._token_url, code="token_unavailable")
        said = self.refused(response)
        if not is_success or said or oauth_messages.oauth_error_code(members):
            reason = oauth_messages.token_refusal_text(status, members.get("error")) + (f": {said}" if said else "")
            reason = said if said and is_success else reason
            raise UnauthorizedError(
                f"rejected the token request: {reason}", where=self._token_url, code="token_refused"
            )
        kind = UnauthorizedError if self.always_grants else UnavailableError
        message = "the answer has no token that can be sent in a header"
        raise kind(message, where=self._token_url, hint=self.advice)


class ClientCredentialsAuth(TokenAuth):
    """OAuth 2.0 client credentials (RFC 6749 section 4.4).

    Args:
        token_url: May be on another host than the API.
        client_auth: HTTP Basic, or ``client_id`` and ``client_secret`` in the form (``post``).
        extra: Further fields of the form, such as ``audience``.
        assertion: By which the client authenticates in place of *client_secret*.
        json: Send the fields as a JSON object in place of a form.
        expired: Recognizes an answer against which a new token may help, by its status and JSON body, besides a 401.
        scheme: The word before the token in requests, such as ``Zoho-oauthtoken``; by default ``Bearer``.

    Raises:
        ConfigError: If *token_url* is neither https nor http on this machine, or contains a user or a query.
    """

    def __init__(  # noqa: PLR0913  public keyword arguments
        self,
        token_url: str,
        client_id: Secret | str,
        client_secret: Secret | str = "",
        *,
        scopes: tuple[str, ...] = (),
        client_auth: ClientAuth = "basic",
        extra: Mapping[str, str] | None = None,
        assertion: ClientAssertion | None = None,
        json: bool = False,
        expired: Expired | None = None,
        scheme: str | None = None,
    ) -> None:
        super().__init__(token_url, expired, scheme)
        self._client_id, self._client_secret, self._client_auth = client_id, client_secret, client_auth
        self._assertion, self._json = assertion, json
        self._form = {"grant_type": "client_credentials", **({"scope": " ".join(scopes)} if scopes else {})}
        self._form |= extra or {}

    def token_request(self) -> httpx.Request:
        client_id, secret = revealed_secret_or_text(self._client_id), revealed_secret_or_text(self._client_secret)
        if self._assertion is None:
            fields, headers = oauth_messages.client_authentication_fields_and_headers(
                client_id, secret, self._client_auth
            )
        else:
            token = self._assertion.token(client_id, self._token_url, self.clock.now())
            fields, headers = {"client_assertion_type": ASSERTION_TYPE, "client_assertion": token}, dict[str, str]()
        members, headers = self._form | fields, _headers_accepting_json(headers)
        if self._json:
            headers["content-type"] = "application/json"
            return httpx.Request("POST", self._token_url, content=exact_json.dumps(members), headers=headers)
        return httpx.Request("POST", self._token_url, data=members, headers=headers)


class RefreshTokenAuth(TokenAuth):
    """An OAuth 2.0 refresh token that is not replaced (RFC 6749 section 6).

    An answer with another one is refused: the vendor may accept the first no more, and this one would be lost when the
    run ends. *reusable* says that the vendor accepts the first one further, as Microsoft does; then the other one
    replaces it until the run ends. For the other arguments and the errors see `ClientCredentialsAuth`; an empty
    *client_secret* is that of a public client.
    """

    def __init__(
        self,
        token_url: str,
        refresh_token: Secret | str,
        client_id: Secret | str,
        client_secret: Secret | str = "",
        *,
        client_auth: ClientAuth = "post",
        reusable: bool = False,
        expired: Expired | None = None,
        scheme: str | None = None,
    ) -> None:
        super().__init__(token_url, expired, scheme)
        self._refresh_token, self._reusable = refresh_token, reusable
        self._client_id, self._client_secret, self._client_auth = client_id, client_secret, client_auth

    def token_request(self) -> httpx.Request:
        form = {"grant_type": "refresh_token", "refresh_token": revealed_secret_or_text(self._refresh_token)}
        client_id, secret = revealed_secret_or_text(self._client_id), revealed_secret_or_text(self._client_secret)
        return token_request_of_client(self._token_url, form, client_id, secret, self._client_auth)

    def refused(self, response: httpx.Response) -> str:
        if oauth_messages.json_object_or_empty(response.content).get("error") != "invalid_grant":
            return ""
        why = "it was withdrawn, has ended, or was used before"
        return f"{why}; for an API that replaces refresh tokens, use authorization_code"

    def token_of_members(self, answer: Mapping[str, Any]) -> object:
        following = answer.get("refresh_token")
        if following and following != revealed_secret_or_text(self._refresh_token):
            if not self._reusable:
                message = "the vendor replaced the refresh token, and may no longer accept the one in the config"
                hint = "use authorization_code, which keeps the new ones; or, if it does accept it, set reusable: true"
                raise UnauthorizedError(message, where=self._token_url, hint=hint, code="tokens_outdated")
            if oauth_messages.is_valid_refresh_token(following):
                self._refresh_token = str(following)
        return super().token_of_members(answer)


class LoginAuth(TokenAuth):
    """A token that a login request returns.

    Args:
        login_url: Where *credentials* are posted as JSON: texts, secrets, and objects or lists of them.
        token: Where the body of the answer has the token: a member, a dotted path or a JSON pointer. It is empty if the
            whole body is the token, as a JSON text. A text with such places in braces is made of them:
            ``me:{result.0}:{result.1}``.
        token_header: The header of the answer that has it instead.
        token_cookie: The cookie of the answer that has it instead.
        graphql: A mutation, of which *credentials* are the variables.
        header: The header of requests that has the token.
        value: Its value, in which ``{token}`` is the token.
        base64: Encode the token.
        expired: See `ClientCredentialsAuth`.

    Raises:
        ConfigError: See `ClientCredentialsAuth`.
    """

    always_grants = True

    def __init__(  # noqa: PLR0913  public keyword arguments
        self,
        login_url: str,
        credentials: Mapping[str, Any],
        *,
        token: str = "token",  # noqa: S107  the name of a member
        token_header: str | None = None,
        token_cookie: str | None = None,
        graphql: str | None = None,
        header: str = "authorization",
        value: str = "Bearer {token}",
        base64: bool = False,
        expired: Expired | None = None,
    ) -> None:
        super().__init__(login_url, expired)
        self._credentials, self._graphql, self._place = credentials, graphql, token
        self._token_header, self._token_cookie = token_header, token_cookie
        if token_header is None and token_cookie is None:
            found = f"at {token!r}" if token else "as a JSON text that is the whole body"
            self.advice = f"it is expected {found}"
        self.header, self._value, self._base64 = header, value, base64

    def token_request(self) -> httpx.Request:
        body = _with_secrets_revealed(self._credentials)
        if self._graphql is not None:
            body = {"query": self._graphql, "variables": body}
        headers = _headers_accepting_json({"content-type": "application/json"})
        return httpx.Request("POST", self._token_url, content=exact_json.dumps(body), headers=headers)

    def token_of_response(self, response: httpx.Response) -> object:
        if self._token_header is not None:
            return response.headers.get(self._token_header)
        if self._token_cookie is not None:
            found = (SimpleCookie(line).get(self._token_cookie) for line in response.headers.get_list("set-cookie"))
            return next((cookie.value for cookie in found if cookie is not None), None)
        document = _parsed_json_or_none(response.content)
        if "{" not in self._place:
            return self._token_in_base64_if_configured(_text_at_place(document, self._place))
        parts = {place: _text_at_place(document, place) for place in _PLACES.findall(self._place)}
        if None in parts.values():
            return None
        return self._token_in_base64_if_configured(_PLACES.sub(lambda found: parts[found[1]] or "", self._place))

    def _token_in_base64_if_configured(self, token: str | None) -> str | None:
        return b64encode(token.encode()).decode() if token and self._base64 else token

    def header_value(self, token: str) -> str:
        return self._value.replace("{token}", token)

    def refused(self, response: httpx.Response) -> str:
        return self.message_of(oauth_messages.json_object_or_empty(response.content))


_PLACES = re.compile(r"\{([^{}]+)\}")


def _parsed_json_or_none(body: bytes) -> Any:
    try:
        return exact_json.loads(body)
    except ValueError:
        return None


def _text_at_place(document: Any, place: str) -> str | None:
    found = (
        value_at_pointer_or_missing(document, place)
        if place[:1] in {"", "/"}
        else value_at_path_or_missing(document, place)
    )
    return json_value_as_column_text(found) if isinstance(found, str | int) and not isinstance(found, bool) else None


def _with_secrets_revealed(value: Any) -> Any:
    match value:
        case Secret():
            return value.reveal()
        case Mapping():
            return {name: _with_secrets_revealed(each) for name, each in value.items()}
        case list() | tuple():
            return [_with_secrets_revealed(each) for each in value]
    return value


def token_request_of_client(
    url: str, form: Mapping[str, str], client_id: str, secret: str, how: ClientAuth
) -> httpx.Request:
    """Return the request of a client with *form*. A client without a secret is public, and only states its id."""
    fields, headers = {"client_id": client_id}, dict[str, str]()
    if secret:
        fields, headers = oauth_messages.client_authentication_fields_and_headers(client_id, secret, how)
    return httpx.Request("POST", url, data={**form, **fields}, headers=_headers_accepting_json(headers))


def _headers_accepting_json(headers: Mapping[str, str]) -> dict[str, str]:
    return {"accept": "application/json", **headers}
