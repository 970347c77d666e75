"""The credentials of an API, as a config declares them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import httpx
from pydantic import AfterValidator, Discriminator, Field, Tag, WithJsonSchema

from crossdock import ConfigModel, SecretRef
from crossdock.addresses import endpoint, names_secret
from crossdock.config_file import Secret
from crossdock.sources import (
    BasicAuth,
    BearerAuth,
    ClientCredentialsAuth,
    HeaderAuth,
    LoginAuth,
    RefreshTokenAuth,
)


def _is_reference(value: Any) -> str:
    is_reference = isinstance(value, Secret) or (isinstance(value, str) and value.startswith(("env:", "file:")))
    return "reference" if is_reference else "text"


TextOrSecret = Annotated[
    Annotated[str, Tag("text")] | Annotated[SecretRef, Tag("reference")],
    Discriminator(_is_reference),
    WithJsonSchema({"type": "string"}),
]
"""A text, or a reference to a secret."""


def without_literal_secrets(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """*values*, unless one with a name that is usual for a secret is written as text.

    Raises:
        ValueError: With its name.
    """
    for name, value in values.items():
        if isinstance(value, str) and (name.lower() in _CREDENTIALS or names_secret(f"{name.replace('-', '_')}=")):
            raise ValueError(f"{name}: a secret is never written here: refer to it by env:NAME or file:PATH")
    return values


_CREDENTIALS = {"authorization", "proxy-authorization", "cookie"}
HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
TokenUrl = Annotated[str, AfterValidator(endpoint)]
ClientAuth = Literal["basic", "post"]


class HeaderCredential(ConfigModel):
    """A credential in a header of its own."""

    kind: Literal["header"]
    name: HeaderName
    """The header, such as X-Api-Key."""
    value: SecretRef

    def auth(self) -> httpx.Auth:
        return HeaderAuth(self.name, self.value)


class BasicCredential(ConfigModel):
    """A user and a password (RFC 7617)."""

    kind: Literal["basic"]
    user: TextOrSecret
    password: SecretRef | None = None
    """Default: an empty password, as APIs want whose key is the user."""

    def auth(self) -> httpx.Auth:
        return BasicAuth(self.user, self.password or "")


class BearerCredential(ConfigModel):
    """A fixed token (RFC 6750)."""

    kind: Literal["bearer"]
    token: SecretRef

    def auth(self) -> httpx.Auth:
        return BearerAuth(self.token)


class ClientCredentialsGrant(ConfigModel):
    """OAuth 2.0 client credentials (RFC 6749 section 4.4)."""

    kind: Literal["client_credentials"]
    token_url: TokenUrl
    """May be on another host than the API."""
    client_id: TextOrSecret
    client_secret: SecretRef
    client_auth: ClientAuth = "basic"
    """How the client authenticates: HTTP Basic, or ``client_id`` and ``client_secret`` in the form (``post``)."""
    scopes: tuple[str, ...] = ()
    extra: Mapping[str, str] = {}
    """Further fields of the form, such as audience."""

    def auth(self) -> httpx.Auth:
        return ClientCredentialsAuth(
            self.token_url,
            self.client_id,
            self.client_secret,
            scopes=self.scopes,
            client_auth=self.client_auth,
            extra=self.extra,
        )


class RefreshTokenGrant(ConfigModel):
    """An OAuth 2.0 refresh token (RFC 6749 section 6)."""

    kind: Literal["refresh_token"]
    token_url: TokenUrl
    refresh_token: SecretRef
    client_id: TextOrSecret
    client_secret: SecretRef | None = None
    """Left out for a public client."""
    client_auth: ClientAuth = "post"

    def auth(self) -> httpx.Auth:
        secret = self.client_secret or ""
        return RefreshTokenAuth(
            self.token_url, self.refresh_token, self.client_id, secret, client_auth=self.client_auth
        )


class LoginRequest(ConfigModel):
    """A token that a login request returns."""

    kind: Literal["login"]
    login_url: TokenUrl
    """Where the credentials are posted as a JSON object."""
    credentials: Annotated[Mapping[str, TextOrSecret], Field(min_length=1), AfterValidator(without_literal_secrets)]
    """The members of that object."""
    token_member: str = "token"  # noqa: S105  the name of a member
    """The member of the answer with the token."""

    def auth(self) -> httpx.Auth:
        return LoginAuth(self.login_url, self.credentials, token=self.token_member)


Credential = Annotated[
    HeaderCredential | BasicCredential | BearerCredential | ClientCredentialsGrant | RefreshTokenGrant | LoginRequest,
    Field(discriminator="kind"),
]
