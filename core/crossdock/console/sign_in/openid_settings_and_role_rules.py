"""The file of ``--oidc``: an OpenID Connect provider, and which of its claims give which roles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from crossdock.reading.transport.oauth_messages import ClientAuth
from crossdock.reading.transport.proxy_and_certificate_settings import HttpConnection
from crossdock.values import config_file
from crossdock.values.config_base_types import ConfigModel, SecretRef
from crossdock.values.web_address_checks import check_address_without_query


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
    document = config_file.read(path)
    return document.validated_as_model(OpenIdSettings, document.data)
