"""The settings of HTTP connections: proxy, certificates, and whether the environment may change them; and the TLS
contexts that they make, which verify servers and present a configured client certificate.
"""

from __future__ import annotations

import os
import ssl
import threading
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from crossdock.errors import ConfigError
from crossdock.values.config_base_types import ConfigModel, ConfigPath, Secret, SecretRef
from crossdock.values.safe_local_files import open_regular_file
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
    def _raise_if_needed_setting_is_missing(self) -> Self:
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

_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_Version = tuple[int, int, int, int]
_ONE_READS = (
    threading.Lock()
)  # the senders of a run start together; a hundred would each read all authorities, in 20 ms


def tls_context(connection: HttpConnection = DIRECT) -> ssl.SSLContext:
    """Return the TLS context of *connection*. It is cached until a file or variable changes: reading is slow."""
    variables = tuple(map(os.environ.get, _CERTIFICATE_VARIABLES)) if connection.trust_env else None
    files = (connection.ca_file, connection.client_certificate, connection.client_key)
    with _ONE_READS:
        return _make_context(*files, connection.client_key_passphrase, variables, tuple(map(_file_version, files)))


@lru_cache(maxsize=16)
def _make_context(
    ca_file: Path | None,
    certificate: Path | None,
    key: Path | None,
    passphrase: Secret | None,
    variables: tuple[str | None, ...] | None,
    _versions: tuple[_Version | None, ...],
) -> ssl.SSLContext:
    # ssl.create_default_context would write the keys of all connections to the file that SSLKEYLOGFILE names.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file is not None:
        _trust_ca_file(context, ca_file)
    elif variables is not None:
        context.load_default_certs()  # OpenSSL reads SSL_CERT_FILE and SSL_CERT_DIR
    else:
        _trust_system_certificates(context)
    if certificate is not None:
        load_certificate_and_key(context, certificate, key, passphrase)
    return context


def _file_version(path: Path | None) -> _Version | None:
    try:
        found = path.stat() if path is not None else None
    except OSError:
        return None
    return (found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns) if found else None


def _trust_ca_file(context: ssl.SSLContext, ca_file: Path) -> None:
    try:
        open_regular_file(ca_file).close()  # opening a pipe would block
        context.load_verify_locations(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"contains no certificates: {error}", where=str(ca_file), code="tls_files_unusable"
        ) from error


def _trust_system_certificates(context: ssl.SSLContext) -> None:
    """Trust what OpenSSL was built to trust, regardless of the environment."""
    paths = ssl.get_default_verify_paths()
    file, folder = Path(paths.openssl_cafile), Path(paths.openssl_capath)
    if file.is_file():
        context.load_verify_locations(cafile=file)
    if folder.is_dir():
        context.load_verify_locations(capath=folder)


def load_certificate_and_key(
    context: ssl.SSLContext, certificate: Path, key: Path | None, passphrase: Secret | None = None
) -> None:
    """Let *context* show a certificate. Raises ConfigError if it or its key is of no use, or the key is not private."""
    secret = passphrase.reveal() if passphrase is not None else ""
    _raise_if_others_may_read_key(key or certificate)
    try:
        open_regular_file(certificate).close()
        context.load_cert_chain(certificate, key, lambda: secret)  # without a function, OpenSSL asks at the terminal
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(
                "the private key is not that of the certificate",
                where=str(key or certificate),
                code="tls_files_unusable",
            ) from None
        hint = "it must be PEM; an encrypted client_key needs its client_key_passphrase"
        raise ConfigError(
            "contains no usable certificate with its key", where=str(certificate), hint=hint, code="tls_files_unusable"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"cannot be read: {error.strerror}", where=str(certificate), code="tls_files_unusable"
        ) from None


def _raise_if_others_may_read_key(key: Path) -> None:
    try:
        with open_regular_file(key) as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise ConfigError(
                    "others may read this private key", where=str(key), hint=f"chmod 600 {key}", code="file_exposed"
                )
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(key), code="tls_files_unusable") from None
