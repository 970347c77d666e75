"""The settings of HTTP connections: proxy, certificates, and whether the environment may change them."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from crossdock.values.config_base_types import ConfigModel, ConfigPath, SecretRef
from crossdock.values.web_address_checks import check_proxy_address

_NEEDS = {
    "proxy_user": "proxy",
    "proxy_password": "proxy_user",
    "client_key": "client_certificate",
    "client_key_passphrase": "client_certificate",
}


class HttpConnection(ConfigModel):
    """The settings that all HTTP connections have in common.

    Plain http is for this machine only, so it never goes through a proxy.
    """

    proxy: Annotated[str, AfterValidator(check_proxy_address)] | None = None
    """The proxy for https, such as ``http://proxy.example.com:3128``, without a user or a password."""
    proxy_user: SecretRef | None = None
    """The user for the proxy, as ``env:NAME`` or ``file:PATH``."""
    proxy_password: SecretRef | None = None
    """The password for the proxy."""
    ca_file: ConfigPath | None = None
    """PEM file of CA certificates to trust instead of the system's; verification cannot be disabled."""
    client_certificate: ConfigPath | None = None
    """PEM file of the certificate to show to servers that require one, followed by its chain; it may hold the key."""
    client_key: ConfigPath | None = None
    """PEM file of its private key, which only its owner may read. Default: it is in ``client_certificate``."""
    client_key_passphrase: SecretRef | None = None
    """The passphrase of an encrypted private key."""
    trust_env: bool = False
    """Whether HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR of the environment are used, where
    ``proxy`` or ``ca_file`` is not set."""

    @model_validator(mode="after")
    def _check_settings_needed_by_others(self) -> Self:
        for key, needed in _NEEDS.items():
            if getattr(self, key) is not None and getattr(self, needed) is None:
                raise ValueError(f"{key} needs {needed}")
        return self

    def anonymous(self) -> HttpConnection:
        """Return the same without the client certificate, for servers that receive no credentials."""
        kept = {name: getattr(self, name) for name in HttpConnection.model_fields if not name.startswith("client_")}
        return HttpConnection.model_validate(kept)


DIRECT = HttpConnection()
"""No proxy, the system's certificates, nothing from the environment."""
