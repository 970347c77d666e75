"""What requests to the platform are authorized with: an API key, or an access token that is renewed in time."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Protocol

from crossdock.errors import UnauthorizedError, UnavailableError
from crossdock.platform.client_credentials_token_requests import GrantedToken, TokenEndpoint
from crossdock.platform.platform_config import ClientCredentials, Profile
from crossdock.values.clock import Clock
from crossdock.values.config_base_types import Secret

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


def make_credential(profile: Profile, clock: Clock) -> Credential:
    """Make the credential of *profile*. Nothing is read or requested yet."""
    if isinstance(profile.auth, ClientCredentials):
        return TokenCredential(TokenEndpoint(profile, profile.auth, clock), clock)
    return KeyCredential(profile.auth.token)


class KeyCredential:
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


class TokenCredential:
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
                token = self._keep_old_token()
            self.current_token = token
        if token:
            pending.set_result(token)
        else:
            pending.set_exception(failure)

    def _keep_old_token(self) -> GrantedToken | None:
        """Return the old token if it is still valid, to be renewed after half of its remaining life."""
        now, token = self._clock.monotonic(), self.current_token
        if token is None or now >= _expires_at(token):
            return None
        self._renew_at = min(now + max(MIN_PAUSE_S, (_expires_at(token) - now) / 2), _expires_at(token))
        return token


def _expires_at(token: GrantedToken) -> float:
    return token.requested_at + token.life_s
