"""The credentials of an API in a config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

import httpx
from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from crossdock import ConfigModel, SecretRef
from crossdock.sources import (
    AuthorizationCodeAuth,
    BasicAuth,
    BearerAuth,
    ClientAssertion,
    ClientCredentialsAuth,
    ConfigPath,
    HeaderAuth,
    LoginAuth,
    RefreshTokenAuth,
    SignatureAlgorithm,
)
from crossdock.values.config_base_types import Secret, differs_from_default, make_pydantic_error_at_key
from crossdock.values.web_address_checks import (
    check_address_without_query,
    check_https_or_loopback_address,
    has_secret_parameter,
)
from crossdock_connectors.http_json.recognized_answers import error_members_in, is_text_in_body


def _discriminator_of_text_or_reference(value: Any) -> str:
    is_reference = isinstance(value, Secret) or (isinstance(value, str) and value.startswith(("env:", "file:")))
    return "reference" if is_reference else "text"


TextOrSecret = Annotated[
    Annotated[str, Tag("text")] | Annotated[SecretRef, Tag("reference")],
    Discriminator(_discriminator_of_text_or_reference),
    WithJsonSchema({"type": "string"}),
]
"""A text, or a reference to a secret."""


def raise_if_literal_secret(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return *values*, or raise ValueError if one with a usual name of a secret is written as text."""
    for name, value in values.items():
        if isinstance(value, str) and (
            name.lower() in _CREDENTIALS or has_secret_parameter(f"{name.replace('-', '_')}=")
        ):
            raise ValueError(f"{name}: a secret is never written here: refer to it by env:NAME or file:PATH")
    return values


_CREDENTIALS = {"authorization", "proxy-authorization", "cookie"}
HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
TokenUrl = Annotated[str, AfterValidator(check_address_without_query)]
ClientAuth = Literal["basic", "post"]


class HeaderCredential(ConfigModel):
    """A credential in a header of its own."""

    kind: Literal["header"]
    name: HeaderName
    """The header, such as X-Api-Key."""
    value: SecretRef
    """The value of the header."""

    def auth(self) -> httpx.Auth:
        return HeaderAuth(self.name, self.value)


class BasicCredential(ConfigModel):
    """A user and a password (RFC 7617)."""

    kind: Literal["basic"]
    user: TextOrSecret
    """The user."""
    password: SecretRef | None = None
    """The password. Default: an empty one, as APIs want whose key is the user."""

    def auth(self) -> httpx.Auth:
        return BasicAuth(self.user, self.password or "")


Scheme = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
"""The scheme of a credential (RFC 9110, section 11.1)."""


class BearerCredential(ConfigModel):
    """A fixed token (RFC 6750)."""

    kind: Literal["bearer"]
    token: SecretRef
    """The token."""
    scheme: Scheme = "Bearer"
    """The word before the token, such as ``ShippoToken``."""

    def auth(self) -> httpx.Auth:
        return BearerAuth(self.token, scheme=self.scheme)


class Assertion(ConfigModel):
    """A JWT by which a client authenticates with a private key (RFC 7523)."""

    private_key: SecretRef
    """The key, in PEM, without a passphrase."""
    key_id: TextOrSecret | None = None
    """The id by which the vendor knows the certificate or public key (``kid``)."""
    algorithm: SignatureAlgorithm = "PS256"
    """How it is signed (RFC 7518)."""
    claims: Annotated[Mapping[str, Any], AfterValidator(raise_if_literal_secret)] = {}
    """Claims that are added to those of the RFC, or take their place, such as ``scope`` or ``aud``."""

    @property
    def client_assertion_signer(self) -> ClientAssertion:
        return ClientAssertion(self.private_key, self.key_id, self.algorithm, self.claims)


class ExpiredAnswer(ConfigModel):
    """An answer against which a new token may help."""

    status: Annotated[int, Field(ge=200, le=599)]
    """The status of the answer."""
    text: Annotated[str, Field(min_length=1)] | None = None
    """Part of the JSON body, in upper or lower case; in an answer of success, of its members ``errors`` and ``error``.
    Default: any answer of this status."""

    @model_validator(mode="after")
    def _raise_if_success_without_text(self) -> Self:
        if self.status < 300 and self.text is None:
            raise make_pydantic_error_at_key(
                ("text",), "is missing: without it, each answer of success would need a new token"
            )
        return self

    def matches(self, status: int, body: Any) -> bool:
        if status != self.status or self.text is None:
            return status == self.status
        return is_text_in_body(error_members_in(body) if status < 300 else body, self.text)


class _TokenCredential(ConfigModel):
    expired: tuple[ExpiredAnswer, ...] = ()
    """Answers against which a new token may help, besides those with the status 401."""

    @property
    def _expired_answer_predicate(self) -> Callable[[int, Any], bool] | None:
        rules = self.expired
        return (lambda status, body: any(rule.matches(status, body) for rule in rules)) if rules else None


class _GrantedToken(_TokenCredential):
    scheme: Scheme = "Bearer"
    """The word before the token in requests, such as ``Zoho-oauthtoken``."""


class ClientCredentialsGrant(_GrantedToken):
    """OAuth 2.0 client credentials (RFC 6749 section 4.4)."""

    kind: Literal["client_credentials"]
    token_url: TokenUrl
    """The token endpoint, which may be on another host than the API."""
    client_id: TextOrSecret
    """The id of the client."""
    client_secret: SecretRef | None = None
    """The secret of the client; left out with ``client_assertion``."""
    client_assertion: Assertion | None = None
    """How the client authenticates in place of a secret."""
    client_auth: ClientAuth = "basic"
    """How the client authenticates: HTTP Basic, or ``client_id`` and ``client_secret`` in the form (``post``)."""
    scopes: tuple[str, ...] = ()
    """Scopes to request."""
    extra: Mapping[str, str] = {}
    """Further fields of the form, such as audience."""
    body: Literal["form", "json"] = "form"
    """How the fields are sent: as a form, as the RFC says, or as a JSON object."""

    @model_validator(mode="after")
    def _check_one_secret(self) -> Self:
        if (self.client_secret is None) == (self.client_assertion is None):
            raise make_pydantic_error_at_key(("client_secret",), "name client_secret or client_assertion, and not both")
        return self

    def auth(self) -> httpx.Auth:
        return ClientCredentialsAuth(
            self.token_url,
            self.client_id,
            self.client_secret or "",
            scopes=self.scopes,
            client_auth=self.client_auth,
            extra=self.extra,
            assertion=self.client_assertion.client_assertion_signer if self.client_assertion else None,
            json=self.body == "json",
            expired=self._expired_answer_predicate,
            scheme=self.scheme,
        )


class RefreshTokenGrant(_GrantedToken):
    """An OAuth 2.0 refresh token (RFC 6749 section 6)."""

    kind: Literal["refresh_token"]
    token_url: TokenUrl
    """The token endpoint, which may be on another host."""
    refresh_token: SecretRef
    """The refresh token."""
    client_id: TextOrSecret
    """The client, as the vendor has registered it."""
    client_secret: SecretRef | None = None
    """The secret of the client; left out for a public client."""
    client_auth: ClientAuth = "post"
    """How the client authenticates: HTTP Basic (``basic``), or in the form (``post``)."""
    reusable: bool = False
    """Whether the vendor accepts this refresh token further after it has answered with another one, as Microsoft does.
    Otherwise such an answer is refused, since the other one is lost at the end of the run: use authorization_code."""

    def auth(self) -> httpx.Auth:
        return RefreshTokenAuth(
            self.token_url,
            self.refresh_token,
            self.client_id,
            self.client_secret or "",
            client_auth=self.client_auth,
            reusable=self.reusable,
            expired=self._expired_answer_predicate,
            scheme=self.scheme,
        )


class AuthorizationCode(_GrantedToken):
    """OAuth 2.0 tokens of an account whose owner gives access once, by ``crossdock connect`` (RFC 6749 section 4.1)."""

    kind: Literal["authorization_code"]
    authorize_url: Annotated[str, AfterValidator(check_https_or_loopback_address)] | None = None
    """Where the owner gives access in a browser."""
    device_url: TokenUrl | None = None
    """Where a code for another device is requested instead (RFC 8628)."""
    token_url: TokenUrl
    """The token endpoint, which may be on another host."""
    client_id: TextOrSecret
    """The client, as the vendor has registered it."""
    client_secret: SecretRef | None = None
    """The secret of the client; left out for a public client."""
    client_auth: ClientAuth = "basic"
    """How the client authenticates: HTTP Basic (``basic``), or in the form (``post``)."""
    scopes: tuple[str, ...] = ()
    """Scopes to request."""
    extra: Annotated[Mapping[str, str], AfterValidator(raise_if_literal_secret)] = {}
    """Further parameters of the address that the owner opens, such as access_type."""
    pkce: bool = True
    """Whether the request for the first tokens proves where it comes from (RFC 7636); others ignore it."""
    redirect_url: Annotated[str, AfterValidator(check_https_or_loopback_address)] | None = None
    """Where the vendor sends the browser, if it must be registered: an address of this machine with a port, or an https
    address, which the owner then copies. Default: a free port of this machine."""
    tokens: ConfigPath | None = None
    """The file of the tokens; default: in a folder beside the state. Tenants with one account share one file."""

    @model_validator(mode="after")
    def _check_authorize_or_device_url(self) -> Self:
        if (self.authorize_url is None) == (self.device_url is None):
            raise make_pydantic_error_at_key(("authorize_url",), "name authorize_url or device_url, and not both")
        return self

    def auth(self) -> httpx.Auth:
        return AuthorizationCodeAuth(
            self.token_url,
            self.client_id,
            self.client_secret or "",
            authorize_url=self.authorize_url,
            device_url=self.device_url,
            scopes=self.scopes,
            client_auth=self.client_auth,
            extra=self.extra,
            pkce=self.pkce,
            redirect_url=self.redirect_url,
            tokens=self.tokens,
            expired=self._expired_answer_predicate,
            scheme=self.scheme,
        )


def _resolve_secrets_or_raise_if_literal(value: Any, info: ValidationInfo) -> Any:
    """Convert references in *value* to secrets. Raises ValueError if a usual name of a secret has a text."""
    if isinstance(value, Mapping):
        raise_if_literal_secret(
            {name: each for name, each in value.items() if _discriminator_of_text_or_reference(each) == "text"}
        )
        return {name: _resolve_secrets_or_raise_if_literal(each, info) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_resolve_secrets_or_raise_if_literal(each, info) for each in value]
    if isinstance(value, str) and _discriminator_of_text_or_reference(value) == "reference":
        return _REFERENCE.validate_python(value, context=info.context)
    return value


_REFERENCE: TypeAdapter[Secret] = TypeAdapter(SecretRef)
_Credentials = Annotated[Mapping[str, Any], Field(min_length=1), AfterValidator(_resolve_secrets_or_raise_if_literal)]


class LoginRequest(_TokenCredential):
    """A token that a login request returns."""

    kind: Literal["login"]
    login_url: TokenUrl
    """Where the credentials are posted as JSON."""
    credentials: _Credentials
    """The members of the JSON object that is posted; values may be references, objects and lists."""
    graphql: Annotated[str, Field(min_length=1)] | None = None
    """A GraphQL mutation that logs in, of which ``credentials`` are the variables."""
    token_member: str = "token"  # noqa: S105  the name of a member
    """Where the answer has the token: a member, a dotted path or a JSON pointer; empty if the whole body is the token;
    or a text with such places in braces, of which it is made: ``export:{result.0}:{result.1}``."""
    token_header: HeaderName | None = None
    """The header of the answer that has the token instead, such as vendure-auth-token."""
    token_cookie: HeaderName | None = None
    """The cookie of the answer that has the token instead, such as session_id."""
    base64: bool = False
    """Whether the token is encoded in Base64 before it is sent."""
    header: HeaderName = "Authorization"
    """The header of requests that has the token."""
    value: Annotated[str, Field(pattern=r"\{token\}")] = "Bearer {token}"
    """What this header has, with ``{token}``."""

    @model_validator(mode="after")
    def _check_one_token(self) -> Self:
        given = [each for each in ("token_member", "token_header", "token_cookie") if differs_from_default(self, each)]
        if len(given) > 1:
            raise make_pydantic_error_at_key((given[1],), f"cannot be used with {given[0]}: the token is in one place")
        if self.base64 and (self.token_header or self.token_cookie):
            raise make_pydantic_error_at_key(("base64",), "needs token_member")
        return self

    def auth(self) -> httpx.Auth:
        return LoginAuth(
            self.login_url,
            self.credentials,
            token=self.token_member,
            token_header=self.token_header,
            token_cookie=self.token_cookie,
            graphql=self.graphql,
            header=self.header,
            value=self.value,
            base64=self.base64,
            expired=self._expired_answer_predicate,
        )


Credential = Annotated[
    HeaderCredential
    | BasicCredential
    | BearerCredential
    | ClientCredentialsGrant
    | RefreshTokenGrant
    | AuthorizationCode
    | LoginRequest,
    Field(discriminator="kind"),
]
