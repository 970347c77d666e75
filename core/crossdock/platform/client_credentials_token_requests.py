"""Requests access tokens by OAuth 2.0 client credentials (RFC 6749 section 4.4). Errors contain no secret."""

from __future__ import annotations

import random
import re
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from crossdock.errors import ConfigError, UnauthorizedError, UnavailableError
from crossdock.pacing.backoff import pause_s
from crossdock.platform.platform_config import ClientCredentials, Profile
from crossdock.reading.transport import oauth_messages
from crossdock.reading.transport.http_answer_and_error_types import Answer
from crossdock.values.clock import Clock

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
                    self._clock.sleep(pause_s(attempt, base_s=retry.base_s, cap_s=retry.cap_s, rng=self._rng))
                requested_at = self._clock.monotonic()
                try:
                    return self._token_in(client.send("POST", "", body=body), requested_at)
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
        fields, authorization = oauth_messages.client_authentication(rule.client_id, self._secret, rule.client_auth)
        return urlencode(form | fields).encode(), headers | authorization

    def _token_in(self, answer: Answer, requested_at: float) -> GrantedToken:
        status, members = answer.status, oauth_messages.json_members(answer.body)
        if oauth_messages.is_temporary_failure(status, members):
            raise UnavailableError(f"HTTP {status}", code="token_unavailable")
        if not 200 <= status < 300:
            raise self._rejection_error(status, members.get("error"))
        token, kind = members.get("access_token"), members.get("token_type", "Bearer")
        if not oauth_messages.is_token(token):
            raise UnavailableError(
                "the response has no access_token that can be sent in a header", code="token_unavailable"
            )
        if not (isinstance(kind, str) and kind.lower() == "bearer"):
            raise UnavailableError("the token_type is not Bearer", code="token_unavailable")
        scopes, extra = self._granted_and_extra_scopes(members.get("scope"))
        life_s = oauth_messages.token_life_s(members.get("expires_in"))
        return GrantedToken(f"Bearer {token}", requested_at, life_s, scopes, extra)

    def _rejection_error(self, status: int, code: object) -> UnauthorizedError:
        reason = oauth_messages.refusal_text(status, code)
        hint = "see platform.auth: client_id, client_secret, client_auth, scopes and token_url"
        return UnauthorizedError(
            f"rejected the token request: {reason}", where=self._url, hint=hint, code="token_refused"
        )

    def _granted_and_extra_scopes(self, scope: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
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
