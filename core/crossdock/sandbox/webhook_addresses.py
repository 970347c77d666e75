"""The addresses that webhooks may be sent to: this machine and the public internet, and nothing between.

A subscription's URL is checked in its text when it is stored, and the addresses of its host at every attempt.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

MAX_URL = 2048  # characters

_PRINTABLE = re.compile(r"[!-\[\]-~]+")  # ASCII without a backslash
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # a last label like this makes the name an IPv4 address (WHATWG URL)
_WRONG_URL = "must be an address such as https://hooks.example.com/crossdock"
_PLAIN_HTTP = "must be https; http is for this machine only"
_WRONG_FORM = "must name its host as a DNS name, a dotted IPv4 address or a bracketed IPv6 address, in its usual form"
_INTERNAL = "must be on the public internet or on this machine"
# `is_global` is true for these, but each of them can reach an internal address.
_NOT_PUBLIC = (
    IPv4Network("168.63.129.16/32"),  # the metadata service of Azure
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv6Network("64:ff9b::/96"),  # NAT64
    IPv6Network("2001::/23"),  # Teredo and other protocols
    IPv6Network("2002::/16"),  # 6to4
    IPv6Network("fec0::/10"),  # once site-local
)


def url_fault(url: str) -> str | None:
    """Why a webhook must not be sent to *url*; None if it may, as far as its text shows."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return _WRONG_URL
    if len(url) > MAX_URL or not _PRINTABLE.fullmatch(url) or parts.scheme not in {"http", "https"} or not host:
        return _WRONG_URL
    if "@" in parts.netloc or "#" in url or parts.netloc.endswith(":") or port == 0:
        return f"{_WRONG_URL}, without a user, a password or a fragment"
    address = _literal(host)
    if address is None and (not _NAME.fullmatch(host) or len(host) > 253 or _NUMBER.fullmatch(host.split(".")[-1])):
        return _WRONG_FORM
    if address is not None and not is_allowed(str(address), host):
        return _INTERNAL
    return _PLAIN_HTTP if parts.scheme == "http" and not _is_this_machine(host) else None


def is_allowed(address: str, host: str) -> bool:
    """Whether a connection to *address* may be made for a URL with this *host*.

    Only hosts that say so lead to this machine: a public name that is resolved to 127.0.0.1 is refused.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv6Address) and (found.ipv4_mapped or found.scope_id):
        return False
    if found.is_loopback:
        return _is_this_machine(host)
    return is_public(found) and not _is_this_machine(host)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    reserved = address.is_multicast or address.is_reserved
    return address.is_global and not reserved and not any(address in each for each in _NOT_PUBLIC)


def _is_this_machine(host: str) -> bool:
    literal = _literal(host)
    return host == "localhost" if literal is None else literal.is_loopback


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
