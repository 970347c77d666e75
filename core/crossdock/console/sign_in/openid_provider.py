"""Signs people in at an OpenID Connect provider: Authorization Code with PKCE (RFC 6749, RFC 7636).

A browser carries its flow in ``state``, which is signed and belongs to its session, so that the console stores nothing
for people who have not signed in. Requests go through the HTTP door of `crossdock.reading.transport`.
"""

from __future__ import annotations

import hmac
import re
import secrets
import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from msgspec import Struct
from pydantic import AfterValidator, Field

from crossdock.console.visitors_and_roles import ALL_TENANTS, Person, Role
from crossdock.errors import ConfigError, UnauthorizedError
from crossdock.reading.transport.httpcore_client import HttpClient
from crossdock.reading.transport.oauth_messages import (
    ClientAuth,
    client_authentication_fields_and_headers,
    json_object_or_empty,
    oauth_error_code,
    pkce_challenge,
    token_refusal_text,
)
from crossdock.reading.transport.proxy_and_tls_settings import HttpConnection
from crossdock.values import config_file
from crossdock.values.clock import Clock
from crossdock.values.config_base_types import ConfigModel, SecretRef
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock.values.web_address_checks import check_address_without_query, check_https_or_loopback_address


class RoleRule(ConfigModel):
    """A role of those whose claim has a value."""

    claim: str
    """The claim, such as ``groups``, or its path, such as ``realm_access.roles``."""
    value: str
    """The value that it has, or that its list contains."""
    role: Literal["viewer", "operator", "administrator"]
    """The role that this gives."""
    tenants: tuple[str, ...] = ()
    """The tenants at which it gives the role; by default all."""


class OpenIdSettings(ConfigModel):
    """A provider at which the console is registered as a client."""

    issuer: Annotated[str, AfterValidator(check_address_without_query)]
    """The issuer, exactly as the provider names itself; https, or http on this machine."""
    client_id: str
    """The name of the console at the provider."""
    client_secret: SecretRef | None = None
    """Its secret, as ``env:NAME`` or ``file:PATH``; none for a public client."""
    client_auth: ClientAuth = "basic"
    """How the secret is sent: HTTP Basic, or ``post`` in the form."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    """What is asked for."""
    name: str = "OpenID Connect"
    """What the button calls the provider."""
    person: str = "email"
    """The claim that names people; ``sub`` if it is missing, or an address that is not verified."""
    roles: Annotated[tuple[RoleRule, ...], Field(min_length=1)]
    """Who may do what. Of several rules that fit, the highest role counts."""
    http: HttpConnection = HttpConnection()
    """Proxy and certificates, as in ``platform.http``."""


def load_openid_settings(path: Path) -> OpenIdSettings:
    """Read the file. Raises ConfigError."""
    document = config_file.read_config_with_overrides(path)
    return document.validated_as_model(OpenIdSettings, document.data)


ANSWER_PATH = "/sign-in/openid/answer"
LASTS_S = 600  # for a person to sign in at the provider
_FRESH_S = 3600.0  # what the provider says of itself
_TIMEOUT_S = 10.0
_MAX_BYTES = 1 << 20
_MAX_WANTED = 500  # characters: providers limit the length of a state
_CODE = re.compile("[a-z_]{1,40}")
_NAME_LENGTH = 200


class SignInRefusedError(Exception):
    """Nobody was signed in: what happened, and what to do."""

    def __init__(self, message: str, advice: str = "Begin again at the page where one signs in.") -> None:
        super().__init__(message)
        self.message, self.advice = message, advice


class _Flow(Struct, frozen=True):
    state: str
    nonce: str
    verifier: str
    wanted: str


class _Flows:
    """Flows that have begun. All of one are made from its state by a key that only this process knows."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._key = clock, secrets.token_bytes(32)

    def begin(self, session: str, wanted: str) -> _Flow:
        ends_at = int(self._clock.monotonic()) + LASTS_S
        kept = urlsafe_b64encode(wanted.encode() if len(wanted) <= _MAX_WANTED else b"/").decode().rstrip("=")
        return self._derive_flow_from_content(session, f"{ends_at}.{secrets.token_hex(16)}.{kept}")

    def flow_of_valid_state(self, session: str, state: str) -> _Flow | None:
        """Return the flow of a *state* that was given to this *session* and has not ended."""
        content, _, _ = state.rpartition(".")
        flow = self._derive_flow_from_content(session, content)
        if not hmac.compare_digest(flow.state.encode(), state.encode(errors="replace")):
            return None
        return flow if int(content.partition(".")[0]) > self._clock.monotonic() else None

    def _derive_flow_from_content(self, session: str, content: str) -> _Flow:
        sign = partial(self._keyed_hash_for_purpose, f"{session}.{content}")
        kept = content.rpartition(".")[2] if content.isascii() else ""
        try:
            wanted = urlsafe_b64decode(kept + "=" * (-len(kept) % 4)).decode()
        except ValueError:
            wanted = "/"
        return _Flow(f"{content}.{sign('state')}", sign("nonce"), sign("verifier"), wanted)

    def _keyed_hash_for_purpose(self, text: str, purpose: str) -> str:
        return hmac.new(self._key, f"{purpose}.{text}".encode(errors="replace"), sha256).hexdigest()


class _Metadata(Struct, frozen=True):
    authorization_endpoint: str
    token_endpoint: str
    keys: object
    read_at: float


class OpenIdProvider:
    """A provider. Any thread may use it. Nothing is requested before the first person signs in."""

    def __init__(self, settings: OpenIdSettings, clock: Clock) -> None:
        import_id_token_verification()
        self.settings, self._clock = settings, clock
        self._flows, self._lock = _Flows(clock), threading.Lock()
        self._metadata: _Metadata | None = None

    def authorization_address(self, session: str, origin: str, wanted: str) -> str:
        """Return where the browser goes, to come back to *origin* and then to *wanted*. Raises RemoteError."""
        flow = self._flows.begin(session, wanted)
        found = self._read_metadata(fresh=False).authorization_endpoint
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self.settings.client_id,
                "redirect_uri": origin + ANSWER_PATH,
                "scope": " ".join(self.settings.scopes),
                "state": flow.state,
                "nonce": flow.nonce,
                "code_challenge": pkce_challenge(flow.verifier),
                "code_challenge_method": "S256",
            }
        )
        return f"{found}{'&' if '?' in found else '?'}{query}"

    def identify_person_from_answer(self, session: str, origin: str, query: Mapping[str, str]) -> tuple[Person, str]:
        """Return who has signed in, and the page that was wanted. Raises RefusedError or RemoteError."""
        flow = self._flows.flow_of_valid_state(session, query.get("state", ""))
        if flow is None:
            raise SignInRefusedError("This answer belongs to no sign-in of this browser, or it came too late.")
        if query.get("iss", self.settings.issuer) != self.settings.issuer:  # RFC 9207
            raise SignInRefusedError("The answer is from another provider.")
        if "code" not in query:
            code = query.get("error", "")
            raise SignInRefusedError(f"The provider refused: {code if _CODE.fullmatch(code) else 'it sent no code'}.")
        token = self._request_id_token(query["code"], origin, flow)
        found = self._verified_claims(token, flow)
        return self._person_with_roles(found), flow.wanted

    def _person_with_roles(self, found: Mapping[str, Any]) -> Person:
        name = _name_of_person(found, self.settings.person)
        roles = dict[str, Role]()
        for rule in self.settings.roles:
            if _has_claim_value(found, rule):
                for tenant in rule.tenants or (ALL_TENANTS,):
                    roles[tenant] = max(Role[rule.role.upper()], roles.get(tenant, Role.VIEWER))
        everywhere = roles.get(ALL_TENANTS, Role.VIEWER)
        roles = {tenant: max(role, everywhere) for tenant, role in roles.items()}
        if not roles:
            raise SignInRefusedError(f"{name} has no role here.", "Ask an administrator of this console for one.")
        return Person(name, roles)

    # ---- requests

    def _request_id_token(self, code: str, origin: str, flow: _Flow) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": origin + ANSWER_PATH,
            "code_verifier": flow.verifier,
        }
        fields, headers = {"client_id": self.settings.client_id}, dict[str, str]()
        if self.settings.client_secret is not None:
            secret = self.settings.client_secret.reveal()
            fields, headers = client_authentication_fields_and_headers(
                self.settings.client_id, secret, self.settings.client_auth
            )
        address = self._read_metadata(fresh=False).token_endpoint
        headers |= {"content-type": "application/x-www-form-urlencoded"}
        answer = self._send("POST", address, urlencode(form | fields).encode(), headers)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise SignInRefusedError("The provider gave no ID token.")
        return token

    def _verified_claims(self, token: str, flow: _Flow) -> Mapping[str, Any]:
        verifier, now = import_id_token_verification(), int(self._clock.now().timestamp())
        expected = verifier.ExpectedClaims(self.settings.issuer, self.settings.client_id, flow.nonce)

        def claims(keys: object) -> Mapping[str, Any]:
            found: Mapping[str, Any] = verifier.verified_claims(token, keys, expected, now)
            return found

        try:
            try:
                return claims(self._read_metadata(fresh=False).keys)
            except verifier.UnknownKeyError:
                return claims(self._read_metadata(fresh=True).keys)
        except verifier.InvalidIdTokenError as error:
            raise SignInRefusedError(f"The ID token of the provider is not valid: {error}.") from None

    def _read_metadata(self, *, fresh: bool) -> _Metadata:
        """Return what the provider says of itself (OpenID Connect Discovery), and its keys."""
        with self._lock:
            now = self._clock.monotonic()
            if fresh or self._metadata is None or now - self._metadata.read_at > _FRESH_S:
                address = f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration"
                found = self._send("GET", address)
                if found.get("issuer") != self.settings.issuer:
                    raise UnauthorizedError(
                        "the provider names another issuer", where=address, code="openid_provider_refused"
                    )
                keys = self._send(
                    "GET", _checked_address_in_metadata(found, "jwks_uri", check_https_or_loopback_address)
                ).get("keys")
                self._metadata = _Metadata(
                    _checked_address_in_metadata(found, "authorization_endpoint", check_https_or_loopback_address),
                    _checked_address_in_metadata(found, "token_endpoint", check_address_without_query),
                    keys,
                    now,
                )
            return self._metadata

    def _send(
        self, method: str, address: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Mapping[str, Any]:
        client = HttpClient(
            self.settings.issuer,
            headers={"accept": "application/json"},
            total_timeout_s=_TIMEOUT_S,
            max_response_bytes=_MAX_BYTES,
            connection=self.settings.http,
        )
        with closing(client):
            answer = client.send(method, address, body=body, headers=headers)
        found = json_object_or_empty(answer.body)
        if answer.status != 200:
            message = f"the provider refused: {token_refusal_text(answer.status, oauth_error_code(found))}"
            raise UnauthorizedError(message, where=self.settings.issuer, code="openid_provider_refused")
        return found


def _checked_address_in_metadata(found: Mapping[str, Any], name: str, check: Callable[[str], str]) -> str:
    value = found.get(name)
    try:
        return check(value if isinstance(value, str) else "")
    except ValueError as error:
        raise UnauthorizedError(f"{name} of the provider {error}", code="openid_provider_refused") from None


def _name_of_person(found: Mapping[str, Any], claim: str) -> str:
    value = found.get(claim)
    is_name = (
        isinstance(value, str) and value.strip() and not (claim == "email" and found.get("email_verified") is False)
    )
    return str(value if is_name else found["sub"]).strip()[:_NAME_LENGTH]


def _has_claim_value(found: Mapping[str, Any], rule: RoleRule) -> bool:
    value = value_at_path_or_missing(found, rule.claim)
    return rule.value in value if isinstance(value, list) else bool(value == rule.value)


def import_id_token_verification() -> ModuleType:
    """Return `id_token_verification`. Raises ConfigError if its library is not installed."""
    if find_spec("joserfc") is None:
        raise ConfigError(
            "OpenID Connect needs joserfc", hint="pip install 'crossdock[console]'", code="library_missing"
        )
    from crossdock.console.sign_in import id_token_verification as module  # noqa: PLC0415  few consoles have a provider

    return module
