"""Checks of addresses in a config. No error repeats an address: it may hold a secret."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

_LABEL = "[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_MAILBOX = re.compile(rf"(?=.{{3,254}}$){_ATOM}(\.{_ATOM})*@{_LABEL}(\.{_LABEL})*")
_AN_ADDRESS = "must be an address such as https://api.example.com"
_NO_USER = f"{_AN_ADDRESS}, and must not hold a user or a password: refer to a secret by env:NAME or file:PATH"
_NO_CREDENTIAL = "must not contain a credential, since addresses are shown"
_A_PROXY = "must be an address such as http://proxy.example.com:3128"
_NO_PLAIN_HTTP = "must be https; http is for this machine only"
_MEMBER = re.compile(r"([\w.-]{1,64})\s*=")
_SECRET = re.compile("pass(?!file)|pwd|secret|token|credential|scram_|api_?key|access_?key|signature")
_SECRET_IN_QUERY = frozenset({"key", "sig", "code"})
_NAMES_ADDRESS = re.compile("(^|_)(url|uri|address|endpoint)$", re.IGNORECASE)
_WITH_USER = re.compile(r"https?://[^/?#\s]*@", re.IGNORECASE)
_MOST_ENCODED = 5  # levels of percent-encoding that are decoded
_DEFAULT_PORTS = {"http": 80, "https": 443}
_PLAIN_LINK = (
    "have the operator of the API set X-Forwarded-Proto in the proxy that ends TLS: over http, others could read the"
    " credentials"
)


def check_host_name(text: str) -> str:
    if len(text) > 253 or not (_HOST.fullmatch(text) or _is_ip(text)):
        raise ValueError("must be a host name or an IP address")
    return text


def check_email_address(text: str) -> str:
    if not _MAILBOX.fullmatch(text):
        raise ValueError("must be a plain email address such as ops@example.com")
    return text


def check_https_or_loopback_address(url: str) -> str:
    """Check that an address may get secrets and data: https, or http on this machine. Otherwise raise ValueError."""
    parts = _checked_web_parts(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError(_NO_PLAIN_HTTP)
    return url


def _checked_web_parts(url: str) -> SplitResult:
    parts = split_url_refusing_credentials(url)
    try:
        check_host_name(parts.hostname or "")
        _ = parts.port
    except ValueError:
        raise ValueError(_AN_ADDRESS) from None
    if parts.scheme not in {"http", "https"} or "#" in url or not url.isprintable() or " " in url or "\\" in url:
        raise ValueError(_AN_ADDRESS)
    if parts.netloc.endswith(":"):
        raise ValueError(f"{_AN_ADDRESS}; the port is empty")
    return parts


def check_address_without_query(url: str) -> str:
    """Check a web address to which paths are appended or forms are sent, so that it has no query."""
    if "?" in check_https_or_loopback_address(url):
        raise ValueError(f"{_AN_ADDRESS}, without a query")
    return url


def checked_base_url_without_slash(url: str) -> str:
    """Check as `check_address_without_query` does, refuse a credential, and return the address without a slash at its
    end.
    """
    if has_secret_parameter(check_address_without_query(url)):
        raise ValueError(_NO_CREDENTIAL)
    return url.rstrip("/")


def check_proxy_address(url: str) -> str:
    if _WITH_USER.search(_percent_decoded(url)):
        raise ValueError("must not hold a user or a password: set proxy_user and proxy_password")
    try:
        parts = _checked_web_parts(url)
    except ValueError:
        raise ValueError(_A_PROXY) from None
    if parts.path not in {"", "/"} or parts.query:
        raise ValueError(_A_PROXY)
    return url


def split_url_refusing_credentials(url: str) -> SplitResult:
    """Split *url* into its parts. Raises ValueError if it has a user or a password, even an empty one."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError(_AN_ADDRESS) from None
    if "@" in _percent_decoded(parts.netloc):
        raise ValueError(_NO_USER)
    return parts


def forbidden_setting_address_reason(name: str | None, text: str) -> str | None:
    """Return why *text* must not be the value of a setting. Without its *name*, only a user is a fault."""
    if _WITH_USER.search(_percent_decoded(text)):
        return _NO_USER
    if name is None or not _NAMES_ADDRESS.search(name) or not text.lower().startswith(("http:", "https:")):
        return None
    try:
        check_https_or_loopback_address(text)
    except ValueError as error:
        return str(error)
    return _NO_CREDENTIAL if query_has_secret(text) else None


def places_of_forbidden_addresses(
    settings: Any, place: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the places of forbidden addresses, with the reasons. In streams, names are those of records' members."""
    if isinstance(settings, str):
        name = next((part for part in reversed(place) if isinstance(part, str)), None)
        fault = forbidden_setting_address_reason(None if place[:1] == ("streams",) else name, settings)
        if fault:
            yield place, fault
    elif isinstance(settings, Mapping | list | tuple):
        for key, item in settings.items() if isinstance(settings, Mapping) else enumerate(settings):
            yield from places_of_forbidden_addresses(item, (*place, key))


def has_secret_parameter(address: str) -> bool:
    """Return whether *address* contains ``NAME=VALUE`` with a usual NAME of a secret, in any case or encoding."""
    return any(_SECRET.search(name) for name in _parameter_names(address))


def query_has_secret(url: str) -> bool:
    """Return whether the query of a web address has a parameter for a secret. Such an address is itself a secret."""
    return has_secret_parameter(url) or any(name in _SECRET_IN_QUERY for name in _parameter_names(url))


def _parameter_names(address: str) -> list[str]:
    return [found[1].casefold() for found in _MEMBER.finditer(_percent_decoded(address))]


# ---- addresses that an API gave


def address_within_origin(address: str, own: str) -> str | None:
    """Return *address* with its scheme, host and port as *own* has them, if they are the same (RFC 6454, section 5),
    also in other letter case or with the default port; otherwise None. One with a user or a password is none.
    """
    parts, base = urlsplit(address), urlsplit(own)
    if parts[:2] == base[:2]:
        return address
    if "@" in parts.netloc or _origin(parts) != _origin(base):
        return None
    return parts._replace(scheme=base.scheme, netloc=base.netloc).geturl()


def other_origin_text_and_hint(address: str, own: str, hint: str) -> tuple[str, str]:
    """Return how an *address* outside of the origin of *own* differs, and what to do: *hint* if its host does."""
    parts, base = urlsplit(address), urlsplit(own)
    same_scheme = parts._replace(scheme=base.scheme).geturl()
    if parts.scheme not in _DEFAULT_PORTS or address_within_origin(same_scheme, own) is None:
        return "is on another host", hint
    text = f"has the scheme {parts.scheme}, and the connection has {base.scheme}"
    return text, _PLAIN_LINK if parts.scheme == "http" else "write https in the address of the connection"


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    try:
        port = parts.port
    except ValueError:
        port = -1  # of no origin
    return parts.scheme, parts.hostname, _DEFAULT_PORTS.get(parts.scheme) if port is None else port


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _percent_decoded(text: str) -> str:
    """Decode percent-encoding, even if it was applied repeatedly."""
    for _ in range(_MOST_ENCODED):
        if (plain := unquote(text)) == text:
            break
        text = plain
    return text


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
