"""The host names that a server answers to.

A web page of another site can send requests to a server on this machine: directly, and as if it had the same origin
if its name resolves to 127.0.0.1 (DNS rebinding). The first is visible in Origin, or as an image or a frame in the
Fetch Metadata (https://www.w3.org/TR/fetch-metadata/), the second in Host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import Scope

from crossdock.errors import ConfigError
from crossdock.values.web_address_checks import is_loopback

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?")  # RFC 3986 section 3.2, as hosts are named


class ServerNames:
    """Loopback names and the connection's address, with the port, and *allowed* names: ``HOST`` or ``HOST:PORT``."""

    def __init__(self, allowed: Iterable[str], command: str) -> None:
        self._allowed = frozenset(name.lower() for name in allowed)
        self._command = command
        for name in self._allowed:
            if not _AUTHORITY.fullmatch(name):
                hint = "Use HOST or HOST:PORT, for example metrics.example.com:9464."
                raise ConfigError(
                    f"{name!r} is not a valid host", where="--allow-host", hint=hint, code="option_value_invalid"
                )

    def refusal_reason(self, scope: Scope) -> str | None:
        """Return why a request must not be answered, or None if it is for these names and from no other site's page."""
        headers = Headers(scope=scope)
        has_tls = scope.get("scheme") == "https"
        default = 443 if has_tls else 80
        local, port = scope.get("server") or ("", None)
        host = headers.get("host", "").lower()
        if not self._is_allowed_host(host, local, port or default, default):
            return (
                f"Host is not this server. Use localhost:{port or default} or 127.0.0.1:{port or default}, or allow the"
                f" name: {self._command} --allow-host NAME."
            )
        own = {f"https://{host}"} if has_tls else {f"http://{host}", f"https://{host}"}  # https: a proxy may have TLS
        if any(origin.lower() not in own for origin in headers.getlist("origin")):
            return "Origin is another site. Send the request from a page of this server, or without Origin."
        if is_cross_site_request(headers) and not _opens_a_page(headers):
            return "The request is part of a page of another site. Open the address itself."
        return None

    def _is_allowed_host(self, host: str, local: str, local_port: int, default_port: int) -> bool:
        found = _AUTHORITY.fullmatch(host)
        if found is None:
            return False
        name, port = found[1], int(found[2] or default_port)
        if name in self._allowed or host in self._allowed:
            return True
        address = name.strip("[]")
        return port == local_port and (is_loopback(address) or _is_same_ip_address(address, local))


def is_cross_site_request(headers: Headers) -> bool:
    """Return whether a browser says that a page of another site, or of another port, has caused the request."""
    return headers.get("sec-fetch-site") in {"cross-site", "same-site"}


def _opens_a_page(headers: Headers) -> bool:
    """Return whether it opens a tab, as by a link in a ticket: such a page cannot see what is answered."""
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")


def _is_same_ip_address(address: str, other: str) -> bool:
    try:
        return ip_address(address) == ip_address(other)
    except ValueError:
        return False
