"""Reads from headers when an answer was made, and whether a cache gave it; with parsers that others use too.

Nothing here raises. Values that make no sense are ignored, and so are fields longer than 256 characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Literal

_DATE_IS_ROUNDED_S = 2.0
_BELIEVED_S = 26 * 3_600.0  # a clock may be in a wrong time zone
_LONGEST_FIELD = 256  # the slowest text of this length takes an eighth of a millisecond to parse

_CACHES = (
    *("x-cache", "x-cache-status", "cf-cache-status", "x-proxy-cache", "x-proxy-cache-status", "x-nginx-cache"),
    *("x-nginx-cache-status", "x-fastcgi-cache", "x-litespeed-cache", "x-varnish-cache", "x-vercel-cache", "cdn-cache"),
    *(
        "x-cdn-cache",
        "x-cdn-cache-status",
        "x-edge-cache",
        "x-edge-cache-status",
        "x-drupal-cache",
        "x-kong-cache-status",
    ),
)
_HIT = re.compile(  # a later cache may add its own word to that of an earlier one
    r"(?:^|,)\s*+(?:originshield|tcp_(?!refresh_)(?:[a-z]+_)?)?(?:hit|stale|updating)\b", re.IGNORECASE
)


def cache_age_s(headers: Mapping[str, str]) -> int | None:
    """Return the age of an answer from a cache in seconds, by ``Age`` (RFC 9111 section 5.1).

    Args:
        headers: Names in lower case.

    Returns:
        0 if the answer comes from no cache; None if the header is invalid.
    """
    age = headers.get("age", "0").strip()
    return int(age) if age.isascii() and age.isdigit() and len(age) < 10 else None


def header_showing_cache_hit(headers: Mapping[str, str]) -> str | None:
    """Return what says that a cache gave the answer without asking the API, such as ``x-cache: HIT``; None if nothing.

    By ``Cache-Status`` (RFC 9211), and by the headers of nginx, Varnish, Squid, Fastly, CloudFront, Cloudflare, Akamai,
    Azure and others. Not those that the API confirmed (``REVALIDATED``, ``RefreshHit``, ``TCP_REFRESH_HIT``).

    Args:
        headers: Names in lower case.
    """
    if "cache-status" in headers:
        status = parsed_structured_field(header_text_unless_too_long(headers, "cache-status"), "list") or ()
        if any(parameters.get("hit") is True for _, parameters in status):
            return "cache-status: hit"
    found = ((name, _HIT.search(header_text_unless_too_long(headers, name))) for name in _CACHES if name in headers)
    return next((f"{name}: {hit[0].strip(', ')}" for name, hit in found if hit), None)


def server_clock_lag_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return by how many seconds the server's clock is behind the local one, by ``Date`` and ``Age`` of an answer.

    A difference of two seconds counts as none: a ``Date`` has whole seconds, and an answer takes time.

    Args:
        headers: Names in lower case.
        now: The local time since the epoch, in seconds.

    Returns:
        0 if it is not behind; None if the answer does not show it, comes from a cache that does not state its age, or
        shows more than a day: it was stored somewhere, or its time is in the future.
    """
    date, age = parse_http_date(headers.get("date", "")), cache_age_s(headers)
    if date is None or age is None or (not age and header_showing_cache_hit(headers)):
        return None
    found = now - date - age - _DATE_IS_ROUNDED_S
    return max(0.0, found) if abs(found) <= _BELIEVED_S else None


def parse_http_date(text: str) -> float | None:
    """Parse a date in one of HTTP's three forms (RFC 9110 section 5.6.7) to seconds since the epoch; None if invalid.

    The date is in UTC, stated or not. A text longer than 256 characters is invalid.
    """
    if len(text) > _LONGEST_FIELD:
        return None
    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def parsed_structured_field(text: str, kind: Literal["list", "dictionary"]) -> Any:
    """Parse a structured field (RFC 9651), each value with its parameters; None if it is malformed."""
    import http_sf  # noqa: PLC0415  most APIs send no structured fields

    try:
        return http_sf.parse(text.encode("ascii"), tltype=kind)
    except ValueError:
        return None


def header_text_unless_too_long(headers: Mapping[str, str], name: str) -> str:
    text = headers.get(name, "")
    return text.strip() if len(text) <= _LONGEST_FIELD else ""
