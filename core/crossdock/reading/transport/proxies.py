"""The choice of the proxy for an HTTP client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore

from crossdock.errors import ConfigError
from crossdock.reading.transport.http_connection import HttpConnection
from crossdock.reading.transport.tls_context import tls_context
from crossdock.values.addresses import proxy_address


@dataclass(frozen=True, slots=True)
class ChosenProxy:
    server: httpcore.Proxy
    is_bypassed: Callable[[str], bool]

    @property
    def has_tls(self) -> bool:
        return self.server.url.scheme == b"https"


def chosen_proxy(connection: HttpConnection) -> ChosenProxy | None:
    """Return the proxy of *connection*, or of the environment where that is trusted.

    Raises:
        ConfigError: If its credentials cannot be read, or the environment names something else than a proxy for HTTP.
    """
    if connection.proxy is not None:
        user, password = connection.proxy_user, connection.proxy_password
        login = (user.reveal(), password.reveal() if password else "") if user else None
        return ChosenProxy(_server(connection, connection.proxy, login), lambda _: False)
    if not connection.trust_env:
        return None
    found = getproxies()
    address = found.get("https") or found.get("all")
    return (
        ChosenProxy(_from_environment(connection, address), lambda host: bool(proxy_bypass(host))) if address else None
    )


def _from_environment(connection: HttpConnection, address: str) -> httpcore.Proxy:
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        url = proxy_address(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl())
    except ValueError:  # the text could contain a password
        message = "the proxy in HTTPS_PROXY or ALL_PROXY is not an address such as http://proxy.example.com:3128"
        raise ConfigError(message, hint="correct the variable, or set trust_env: false") from None
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return _server(connection, url, login)


def _server(connection: HttpConnection, url: str, login: tuple[str, str] | None) -> httpcore.Proxy:
    tls = tls_context(connection.anonymous()) if url.startswith("https:") else None
    encoded = (login[0].encode(), login[1].encode()) if login else None
    return httpcore.Proxy(url, auth=encoded, ssl_context=tls)
