"""The addresses that webhooks may be sent to: this machine and the public internet, and nothing between.

The text of a URL is checked when a subscription is stored, and the addresses of its host at every attempt. A host is a
DNS name, or a usual form of a loopback address. All other IP addresses are refused, in every form that there is:
decimal, octal, hexadecimal, IPv4 in IPv6, with a zone.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

MAX_URL = 2048  # characters

_LABEL = "([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"  # after its first character
_NAME = rf"([A-Za-z0-9_]{_LABEL}\.)*[A-Za-z]{_LABEL}"  # the last label is not a number: 1.2.3.0x4 is an address
_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_THIS_MACHINE = rf"(localhost|127(\.{_OCTET}){{3}}|\[::1\])"
_PORT = "(:(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}))?"
URL_PATTERN = rf"^(https://{_NAME}|https?://{_THIS_MACHINE}){_PORT}([/?][A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?$"
_URL = re.compile(URL_PATTERN, re.ASCII)
_WRONG_URL = (
    "must be https with a DNS name as its host, such as https://hooks.example.com/crossdock, or http or https with"
    f" localhost, 127.0.0.1 or [::1]; without a user or a fragment, and at most {MAX_URL} characters"
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")  # without NAT64 and the site-local addresses of old
# `is_global` is true for these, but each of them can reach an internal address.
_NOT_PUBLIC = (
    IPv4Network("168.63.129.16/32"),  # the metadata service of Azure
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv6Network("2001::/23"),  # Teredo and other protocols
    IPv6Network("2002::/16"),  # 6to4
)


def url_refusal_reason(url: str) -> str | None:
    """Return why a webhook must not be sent to *url*, as far as its text shows, or None."""
    return None if len(url) <= MAX_URL and _URL.fullmatch(url) else _WRONG_URL


def is_address_allowed(address: str, host: str) -> bool:
    """Return whether a connection to *address* may be made for a URL with this *host*, in lower case without brackets.

    Only hosts that say so lead to this machine: a public name that is resolved to 127.0.0.1 is refused.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if host == "localhost" or _is_loopback_address(host):
        return found.is_loopback and not (isinstance(found, IPv6Address) and (found.ipv4_mapped or found.scope_id))
    return _is_public(found)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address) and (address not in _GLOBAL_UNICAST or address.scope_id):
        return False
    special = address.is_multicast or address.is_reserved or any(address in each for each in _NOT_PUBLIC)
    return address.is_global and not special


def _is_loopback_address(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
