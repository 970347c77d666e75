"""Addresses that notifications go to, checked before anything is sent there. No refusal repeats the address."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from crossdock.platform.profile import is_loopback

_LABEL = "[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_MAILBOX = re.compile(rf"(?=.{{3,254}}$){_ATOM}(\.{_ATOM})*@{_LABEL}(\.{_LABEL})*")
_AN_ADDRESS = "must be an address such as https://hooks.example.com/crossdock"


def host_name(text: str) -> str:
    """*text*, if it names a host.

    Raises:
        ValueError: If it cannot.
    """
    if len(text) > 253 or not (_HOST.fullmatch(text) or _is_ip(text)):
        raise ValueError("must be a host name or an IP address")
    return text


def mailbox(text: str) -> str:
    """*text*, if it is a mail address without a name beside it.

    Raises:
        ValueError: If it is not.
    """
    if not _MAILBOX.fullmatch(text):
        raise ValueError("must be a plain mail address such as ops@example.com")
    return text


def web_address(url: str) -> str:
    """*url*, if it is one that may be posted to: https, or http on this machine.

    Raises:
        ValueError: If it is not.
    """
    try:
        parts = urlsplit(url)
        host, _ = host_name(parts.hostname or ""), parts.port
    except ValueError:
        raise ValueError(_AN_ADDRESS) from None
    if parts.scheme not in {"http", "https"} or parts.fragment or not url.isprintable() or " " in url:
        raise ValueError(_AN_ADDRESS)
    if "@" in parts.netloc:
        raise ValueError("must not hold a user or a password")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError("must be https; http is for a receiver on this machine only")
    return url


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
