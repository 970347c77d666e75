"""What requests are authorized with: a key, or an access token that is got, renewed and replaced in time.

Tokens come by OAuth 2.0 client credentials (RFC 6749 section 4.4). Neither they nor the client's secret are ever told.
"""

from __future__ import annotations

import random
import re
import threading
from base64 import b64encode
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol
from urllib.parse import quote_plus, urlencode

from crossdock import exact_json
from crossdock.clock import Clock
from crossdock.config_file import Secret
from crossdock.errors import ConfigError, UnauthorizedError, UnavailableError
from crossdock.platform.profile import ClientCredentials, Profile
from crossdock.transport.http_answers import Answer

ATTEMPTS = 3
ASSUMED_LIFE_S = 300.0  # of a token that does not say how long it lives
MAX_LIFE_S = 86_400.0
RENEWED_AT = 0.8  # of its life
MIN_PAUSE_S = 1.0  # between failed renewals of a token that is still good
MAX_ANSWER_BYTES = 64 * 1024
_ERROR_CODES = frozenset({
    "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
    "invalid_scope",  # RFC 6749 section 5.2
    "invalid_target",  # RFC 8707
})  # fmt: skip
_SCOPES = re.compile(r"[ !#-\[\]-~]{0,4096}")
_SECONDS = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class GrantedToken:
    """What a token may do, and how long.

    Attributes:
        life_s: From when it was asked for; at most a day.
        scopes: As granted; empty if none were asked for and none told.
        unasked: Those of them that go beyond what was asked.
    """

    life_s: float
    scopes: tuple[str, ...]
    unasked: tuple[str, ...]


class Credential(Protocol):
    """Who we are to the platform; shared by the threads of a run."""

    def prepare(self) -> None:
        """Read the secret, before anything else is asked of this.

        Raises:
            ConfigError: If that cannot be done.
        """

    def authorization(self) -> str:
        """The ``authorization`` header of a request.

        Raises:
            UnauthorizedError: If we get no token and asking again is pointless.
            UnavailableError: If there is no token now.
        """

    def refused(self, authorization: str) -> bool:
        """Take note that *authorization* was answered 401; True if asking for a new one makes sense."""

    @property
    def grant(self) -> GrantedToken | None:
        """Of the present token; None without one."""


def credential(profile: Profile, clock: Clock) -> Credential:
    """What *profile* says we are; nothing is read or asked for yet."""
    if isinstance(profile.auth, ClientCredentials):
        return TokenCredential(profile, profile.auth, clock)
    return KeyCredential(profile.auth.token)


class KeyCredential:
    """A key that is sent as it is."""

    grant = None

    def __init__(self, key: Secret) -> None:
        self._key = key
        self._authorization = ""

    def prepare(self) -> None:
        self._authorization = f"Bearer {self._key.reveal_token()}"

    def authorization(self) -> str:
        return self._authorization

    def refused(self, authorization: str) -> bool:  # noqa: ARG002  there is no other key
        return False


@dataclass(frozen=True, slots=True)
class _Token:
    """*renew_at* and *expires_at* are on the monotonic clock."""

    authorization: str = field(repr=False)
    grant: GrantedToken
    renew_at: float
    expires_at: float


class TokenCredential:
    """A token that one thread gets for all; while it is renewed the others go on with the old one, as long as it lives.

    A refusal is final: nobody asks again with what was refused.
    """

    def __init__(self, profile: Profile, rule: ClientCredentials, clock: Clock) -> None:
        self._profile, self._rule, self._clock = profile, rule, clock
        self._url = rule.address(profile.base_url)
        self._rng = random.Random()  # noqa: S311  jitter needs no secrecy
        self._secret = ""
        self._lock = threading.Lock()
        self._token: _Token | None = None
        self._asking: Future[_Token] | None = None
        self._refusal: UnauthorizedError | None = None

    def prepare(self) -> None:
        secret = self._rule.client_secret.reveal()
        if not secret.isprintable():
            raise ConfigError(f"{self._rule.client_secret.reference} holds characters that no client secret can have")
        self._secret = secret

    @property
    def grant(self) -> GrantedToken | None:
        token = self._token
        return token.grant if token else None

    def refused(self, authorization: str) -> bool:
        with self._lock:
            if self._token and self._token.authorization == authorization:
                self._token = None  # else another thread has a newer one already
        return True

    def authorization(self) -> str:
        with self._lock:
            if self._refusal:
                raise self._refusal
            now, token, is_asked_for = self._clock.monotonic(), self._token, self._asking is not None
            if token and now < (token.expires_at if is_asked_for else token.renew_at):
                return token.authorization
            asking = self._asking = self._asking or Future()
        if not is_asked_for:
            self._ask_for_all(asking)
        return asking.result().authorization  # whoever asks has a deadline, so all who wait have

    def _ask_for_all(self, asking: Future[_Token]) -> None:
        """Get a token, or fail, for every thread that waits for one."""
        token: _Token | None = None
        failure: BaseException | None = None
        try:
            token = self._asked()
        except BaseException as error:  # noqa: BLE001  whatever it is, nobody may wait for ever
            failure = error
        with self._lock:
            self._asking = None
            if isinstance(failure, UnauthorizedError):
                self._refusal = failure
            if isinstance(failure, UnavailableError):
                token = self._kept()
            self._token = token
        if token:
            asking.set_result(token)
        else:
            asking.set_exception(failure)

    def _kept(self) -> _Token | None:
        """The old token if it is still good, to be renewed after half of what is left of it."""
        now, old = self._clock.monotonic(), self._token
        if old is None or now >= old.expires_at:
            return None
        pause_s = max(MIN_PAUSE_S, (old.expires_at - now) / 2)
        return replace(old, renew_at=min(now + pause_s, old.expires_at))

    def _asked(self) -> _Token:
        from crossdock.transport.http_client import HttpClient, trust  # noqa: PLC0415  most commands ask for no token

        body, headers = self._form()
        http, retry, reason = self._profile.http, self._profile.retry, ""
        client = HttpClient(
            self._url,
            headers=headers,
            connect_timeout_s=http.connect_timeout_s,
            read_timeout_s=http.read_timeout_s,
            total_timeout_s=http.total_timeout_s,
            max_response_bytes=MAX_ANSWER_BYTES,
            tls=trust(http.ca_file),
        )
        with closing(client):
            for attempt in range(ATTEMPTS):
                if attempt:
                    self._clock.sleep(self._rng.uniform(0.0, min(retry.cap_s, retry.base_s * 2.0 ** (attempt - 1))))
                asked_at = self._clock.monotonic()
                try:
                    return self._read(client.send("POST", "", body=body), asked_at)
                except UnavailableError as error:
                    reason = error.message
        raise UnavailableError(f"gives no token: {reason} ({ATTEMPTS} attempts)", where=self._url)

    def _form(self) -> tuple[bytes, dict[str, str]]:
        rule, form = self._rule, {"grant_type": "client_credentials"}
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        if rule.scopes:
            form["scope"] = " ".join(rule.scopes)
        if rule.client_auth == "post":
            form |= {"client_id": rule.client_id, "client_secret": self._secret}
        else:
            pair = f"{quote_plus(rule.client_id)}:{quote_plus(self._secret)}"  # RFC 6749 section 2.3.1
            headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        return urlencode(form).encode(), headers

    def _read(self, answer: Answer, asked_at: float) -> _Token:
        status, members = answer.status, _members(answer.body)
        if status in {408, 429} or status >= 500:
            raise UnavailableError(f"HTTP {status}")
        if not 200 <= status < 300:
            raise self._refused_with(status, members.get("error"))
        token, kind = members.get("access_token"), members.get("token_type", "Bearer")
        if not (isinstance(token, str) and token and token.isascii() and token.isprintable() and " " not in token):
            raise UnavailableError("answers success without an access_token that a header can carry")
        if not (isinstance(kind, str) and kind.lower() == "bearer"):
            raise UnavailableError("answers with a token of another type than Bearer")
        life_s = _life_s(members.get("expires_in"))
        grant = self._granted(life_s, members.get("scope"))
        return _Token(f"Bearer {token}", grant, asked_at + RENEWED_AT * life_s, asked_at + life_s)

    def _refused_with(self, status: int, code: object) -> UnauthorizedError:
        known = isinstance(code, str) and code in _ERROR_CODES  # any other text may quote a secret
        told = f"{code} (HTTP {status})" if known else f"HTTP {status}"
        hint = "see platform.auth: client_id, client_secret, client_auth, scopes and token_url"
        return UnauthorizedError(f"refuses us a token: {told}", where=self._url, hint=hint)

    def _granted(self, life_s: float, scope: object) -> GrantedToken:
        asked = self._rule.scopes
        if scope is None:
            return GrantedToken(life_s, asked, ())
        if not (isinstance(scope, str) and _SCOPES.fullmatch(scope)):
            raise UnavailableError("answers with scopes that are none")
        granted = tuple(scope.split())
        if missing := [name for name in asked if name not in granted]:
            raise UnauthorizedError(
                f"grants less than asked; missing scopes: {' '.join(missing)}",
                where=self._url,
                hint="have them granted to the client, or take them off platform.auth.scopes",
            )
        return GrantedToken(life_s, granted, tuple(name for name in granted if asked and name not in asked))


def _members(body: bytes) -> Mapping[str, Any]:
    try:
        document = exact_json.loads(body)
    except ValueError:
        return {}  # its text could quote the body
    return document if isinstance(document, dict) else {}


def _life_s(told: object) -> float:
    """Seconds that a token lives; one of no sense counts as not told, since a 401 still replaces the token in time."""
    if isinstance(told, str) and _SECONDS.fullmatch(told):
        told = int(told)
    if isinstance(told, bool) or not isinstance(told, int | Decimal) or told <= 0:
        return ASSUMED_LIFE_S
    return float(min(told, Decimal(MAX_LIFE_S)))
