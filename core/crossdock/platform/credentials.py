"""What requests to the platform are authorized with: an API key, or an access token that is renewed in time.

Access tokens are requested by OAuth 2.0 client credentials (RFC 6749 section 4.4). Errors contain no secret.
"""

from __future__ import annotations

import random
import re
import threading
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlencode

from crossdock.errors import ConfigError, UnauthorizedError, UnavailableError
from crossdock.pacing.backoff import jittered_backoff_pause_s
from crossdock.platform.platform_config import ClientCredentials, Profile
from crossdock.reading.transport import oauth_messages
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.values.clock import Clock
from crossdock.values.config_base_types import Secret

ATTEMPTS = 3
MAX_ANSWER_BYTES = 64 * 1024
_SCOPES = re.compile(r"[ !#-\[\]-~]{0,4096}")


@dataclass(frozen=True, slots=True)
class GrantedToken:
    """An access token. *life_s* begins at *requested_at* (monotonic). *scopes* default to the requested ones."""

    authorization: str = field(repr=False)
    requested_at: float
    life_s: float
    scopes: tuple[str, ...]
    extra_scopes: tuple[str, ...]


class TokenEndpoint:
    def __init__(self, profile: Profile, rule: ClientCredentials, clock: Clock) -> None:
        self._profile, self._rule, self._clock = profile, rule, clock
        self._url = rule.token_address(profile.base_url)
        self._rng = random.Random()  # noqa: S311  jitter needs no secrecy
        self._secret = ""

    def read_secret(self) -> None:
        secret = self._rule.client_secret.reveal()
        if not secret.isprintable():
            raise ConfigError(
                f"{self._rule.client_secret.reference} contains characters that no client secret can have",
                code="secret_invalid",
            )
        self._secret = secret

    def request_token(self) -> GrantedToken:
        """Request a token, up to three times. Only an UnauthorizedError makes further requests pointless."""
        from crossdock.reading.transport.httpcore_client import HttpClient  # noqa: PLC0415  most commands need no token

        body, headers = self._request_body_and_headers()
        http, reason = self._profile.http, ""
        limits: dict[str, Any] = {"max_response_bytes": MAX_ANSWER_BYTES, **http.timeouts()}
        client = HttpClient(self._url, headers=headers, connection=http, **limits)
        with closing(client):
            for attempt in range(ATTEMPTS):
                if attempt:
                    retry = self._profile.retry
                    self._clock.sleep(
                        jittered_backoff_pause_s(attempt, base_s=retry.base_s, cap_s=retry.cap_s, rng=self._rng)
                    )
                requested_at = self._clock.monotonic()
                try:
                    return self._granted_token_or_raise(client.send("POST", "", body=body), requested_at)
                except UnavailableError as error:
                    reason = error.message
        raise UnavailableError(
            f"no token obtained: {reason} ({ATTEMPTS} attempts)", where=self._url, code="token_unavailable"
        )

    def _request_body_and_headers(self) -> tuple[bytes, dict[str, str]]:
        rule, form = self._rule, {"grant_type": "client_credentials"}
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        if rule.scopes:
            form["scope"] = " ".join(rule.scopes)
        fields, authorization = oauth_messages.client_authentication_fields_and_headers(
            rule.client_id, self._secret, rule.client_auth
        )
        return urlencode(form | fields).encode(), headers | authorization

    def _granted_token_or_raise(self, answer: Answer, requested_at: float) -> GrantedToken:
        status, members = answer.status, oauth_messages.json_object_or_empty(answer.body)
        if oauth_messages.is_temporary_failure(status, members):
            raise UnavailableError(f"HTTP {status}", code="token_unavailable")
        if not 200 <= status < 300:
            raise self._rejection_error(status, members.get("error"))
        token, kind = members.get("access_token"), members.get("token_type", "Bearer")
        if not oauth_messages.is_valid_access_token(token):
            raise UnavailableError(
                "the response has no access_token that can be sent in a header", code="token_unavailable"
            )
        if not (isinstance(kind, str) and kind.lower() == "bearer"):
            raise UnavailableError("the token_type is not Bearer", code="token_unavailable")
        scopes, extra = self._granted_and_extra_scopes_or_raise(members.get("scope"))
        life_s = oauth_messages.token_life_s(members.get("expires_in"))
        return GrantedToken(f"Bearer {token}", requested_at, life_s, scopes, extra)

    def _rejection_error(self, status: int, code: object) -> UnauthorizedError:
        reason = oauth_messages.token_refusal_text(status, code)
        hint = "see platform.auth: client_id, client_secret, client_auth, scopes and token_url"
        return UnauthorizedError(
            f"rejected the token request: {reason}", where=self._url, hint=hint, code="token_refused"
        )

    def _granted_and_extra_scopes_or_raise(self, scope: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
        requested = self._rule.scopes
        if scope is None:
            return requested, ()
        if not (isinstance(scope, str) and _SCOPES.fullmatch(scope)):
            raise UnavailableError("the scopes in the response are malformed", code="token_unavailable")
        granted = tuple(scope.split())
        if missing := [name for name in requested if name not in granted]:
            raise UnauthorizedError(
                f"granted fewer scopes than requested; missing scopes: {' '.join(missing)}",
                where=self._url,
                hint="have them granted to the client, or remove them from platform.auth.scopes",
                code="scopes_missing",
            )
        return granted, tuple(name for name in granted if requested and name not in requested)


RENEWED_AT = 0.8  # of a token's life
MIN_PAUSE_S = 1.0  # between failed renewals of a token that is still valid


class Credential(Protocol):
    def read_secret(self) -> None:
        """Read the secret. Call this first. Raises ConfigError if it cannot be read or used."""

    def authorization(self) -> str:
        """Return the ``authorization`` header. UnauthorizedError is final, UnavailableError is not."""

    def record_refusal_and_allow_retry(self, authorization: str) -> bool:
        """Record a 401 for *authorization*, and return whether a retry with a new token makes sense."""

    @property
    def current_token(self) -> GrantedToken | None:
        """The current access token; None without one."""


def make_credential_of_profile(profile: Profile, clock: Clock) -> Credential:
    """Make the credential of *profile*. Nothing is read or requested yet."""
    if isinstance(profile.auth, ClientCredentials):
        return AccessTokenCredential(TokenEndpoint(profile, profile.auth, clock), clock)
    return ApiKeyCredential(profile.auth.token)


class ApiKeyCredential:
    current_token = None

    def __init__(self, key: Secret) -> None:
        self._key = key
        self._authorization = ""

    def read_secret(self) -> None:
        self._authorization = f"Bearer {self._key.reveal_for_header()}"

    def authorization(self) -> str:
        return self._authorization

    def record_refusal_and_allow_retry(self, authorization: str) -> bool:  # noqa: ARG002  there is no other key
        return False


class AccessTokenCredential:
    """An access token that one thread requests for all. They use the old one while it is valid. A refusal is final."""

    def __init__(self, endpoint: TokenEndpoint, clock: Clock) -> None:
        self._endpoint, self._clock, self._lock = endpoint, clock, threading.Lock()
        self.current_token: GrantedToken | None = None
        self._renew_at = 0.0
        self._pending: Future[GrantedToken] | None = None
        self._refusal: UnauthorizedError | None = None

    def read_secret(self) -> None:
        self._endpoint.read_secret()

    def record_refusal_and_allow_retry(self, authorization: str) -> bool:
        with self._lock:
            if self.current_token and self.current_token.authorization == authorization:
                self.current_token = None  # otherwise another thread has already replaced it
        return True

    def authorization(self) -> str:
        with self._lock:
            if self._refusal:
                raise self._refusal
            token, is_pending = self.current_token, self._pending is not None
            usable_until = _expires_at(token) if token and is_pending else self._renew_at
            if token and self._clock.monotonic() < usable_until:
                return token.authorization
            pending = self._pending = self._pending or Future()
        if not is_pending:
            self._request_token_for_waiting_threads(pending)
        return pending.result().authorization  # the requesting thread has a deadline, so all that wait have one

    def _request_token_for_waiting_threads(self, pending: Future[GrantedToken]) -> None:
        token: GrantedToken | None = None
        failure: BaseException | None = None
        try:
            token = self._endpoint.request_token()
        except BaseException as error:  # noqa: BLE001  whatever it is, the waiting threads must continue
            failure = error
        with self._lock:
            self._pending = None
            if isinstance(failure, UnauthorizedError):
                self._refusal = failure
            if token:
                self._renew_at = token.requested_at + RENEWED_AT * token.life_s
            elif isinstance(failure, UnavailableError):
                token = self._old_token_if_still_valid()
            self.current_token = token
        if token:
            pending.set_result(token)
        else:
            pending.set_exception(failure)

    def _old_token_if_still_valid(self) -> GrantedToken | None:
        """Return the old token if it is still valid, to be renewed after half of its remaining life."""
        now, token = self._clock.monotonic(), self.current_token
        if token is None or now >= _expires_at(token):
            return None
        self._renew_at = min(now + max(MIN_PAUSE_S, (_expires_at(token) - now) / 2), _expires_at(token))
        return token


def _expires_at(token: GrantedToken) -> float:
    return token.requested_at + token.life_s
