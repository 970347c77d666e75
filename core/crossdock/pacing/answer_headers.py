"""What headers of an answer say: rate limits and waits, by the IETF drafts, the conventions before them and those of
some vendors; when the answer was made; and whether a cache gave it.

Nothing here raises. Values that make no sense are ignored, and so are fields longer than 256 characters.
"""

from __future__ import annotations

import math
import re
from collections import UserString
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

from msgspec import Struct

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


MAX_WAIT_S = 900.0  # longest wait that a server can demand
MOST = 1e9  # a larger number is a mistake or an attack
_RESETS = ("ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset")
_YEAR_2001_S = 1_000_000_000  # a larger number counts since 1970, as GitHub's; a smaller one from now, as ShipStation's
_WINDOWS = ("w", "window")  # the second name is that of the first drafts, and still in use

_is_seconds = re.compile(r"[0-9]+(?:\.[0-9]+)?").fullmatch
_is_whole = re.compile(r"[0-9]{1,12}").fullmatch
_is_decimal = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,20})?").fullmatch


@dataclass(frozen=True, slots=True)
class RateHeaders:
    """The rate limit that an answer reports; None for what it omits.

    Attributes:
        dialect: ``draft10``, ``draft07``, ``triple``, ``x-ratelimit``, ``shopify``, ``bigcommerce`` or ``amazon``.
        remaining: Tokens left after this request: 0 to *burst*, or to 1e9 without a burst.
        burst: Tokens in a full bucket, 1 to 1e9.
        rate_per_s: Tokens per second, 1e-9 to 1e9; never inferred from a reset.
    """

    dialect: str
    remaining: float | None = None
    burst: float | None = None
    rate_per_s: float | None = None


def read_rate_limit_headers(headers: Mapping[str, str]) -> RateHeaders | None:
    """Read the rate limit in *headers*, or return None. Of several dialects the newest standard counts.

    Args:
        headers: Names in lower case, lines of one name joined by commas.
    """
    if cache_age_s(headers) or header_showing_cache_hit(headers):
        return None  # from a cache: describes another moment, perhaps another client
    return next((found for reader in _READERS if (found := reader(headers)) is not None), None)


class _RateLimitPolicy(NamedTuple):
    name: str | None  # None in the drafts up to 07
    quota: float
    rate_per_s: float | None
    of_requests: bool


def _read_ratelimit_field(headers: Mapping[str, str]) -> RateHeaders | None:
    """Read the field ``RateLimit``: a dictionary up to draft 07, a list since."""
    text = header_text_unless_too_long(headers, "ratelimit")
    if not text:
        return None
    policies = _parsed_policies(header_text_unless_too_long(headers, "ratelimit-policy"))
    if not text.startswith('"') and "=" in text.partition(";")[0]:
        members = parsed_structured_field(text, "dictionary") or {}
        limit, remaining = (_number_if_in_bounds(members.get(name, (None,))[0]) for name in ("limit", "remaining"))
        return _limit_with_rate_of_policy("draft07", limit, remaining, policies)
    return _read_draft10_limits(text, policies)


def _read_draft10_limits(text: str, policies: tuple[_RateLimitPolicy, ...]) -> RateHeaders | None:
    """Return the limit with the least remaining in proportion to its policy's quota."""
    by_name = {policy.name: policy for policy in reversed(policies)}
    limits = []
    for value, parameters in parsed_structured_field(text, "list") or ():
        name, remaining = _text_of_string_or_token(value), _number_if_in_bounds(parameters.get("r"))
        policy = by_name.get(name)
        if name is None or remaining is None or (policy and not policy.of_requests):
            continue
        # without a policy the proportion is unknown, unless nothing remains
        share = remaining / policy.quota if policy and policy.quota else remaining * MOST
        limits.append((share, remaining, policy))
    if not limits:
        return None
    _, remaining, policy = min(limits, key=lambda limit: limit[:2])
    return _rate_headers_within_bounds("draft10", remaining, policy and policy.quota, policy and policy.rate_per_s)


def _read_separate_fields(dialect: str, prefix: str, headers: Mapping[str, str]) -> RateHeaders | None:
    """Read separate fields. The limit may be followed by its policies (``100, 100;w=10``)."""
    if prefix + "limit" not in headers and prefix + "remaining" not in headers:
        return None
    limits = _parsed_policies(header_text_unless_too_long(headers, prefix + "limit"))
    remaining = _decimal_in_header(headers, prefix + "remaining")
    policies = (*limits, *_parsed_policies(header_text_unless_too_long(headers, prefix + "policy")))
    return _limit_with_rate_of_policy(dialect, limits[0].quota if limits else None, remaining, policies)


def _limit_with_rate_of_policy(
    dialect: str, limit: float | None, remaining: float | None, policies: tuple[_RateLimitPolicy, ...]
) -> RateHeaders | None:
    """Return one limit, at the rate of the policy with its quota, or else of the first policy with a rate."""
    if limit is remaining is None:
        return None
    rated = [policy for policy in policies if policy.of_requests and policy.rate_per_s is not None]
    same = [policy for policy in rated if policy.quota == limit]
    rate = next((policy.rate_per_s for policy in same or rated), None)
    return _rate_headers_within_bounds(dialect, remaining, limit, rate)


def _read_policy_field(headers: Mapping[str, str]) -> RateHeaders | None:
    for policy in _parsed_policies(header_text_unless_too_long(headers, "ratelimit-policy")):
        if policy.of_requests:
            return _rate_headers_within_bounds(
                "draft07" if policy.name is None else "draft10", None, policy.quota, policy.rate_per_s
            )
    return None


def _read_shopify_header(headers: Mapping[str, str]) -> RateHeaders | None:
    used, _, capacity = header_text_unless_too_long(headers, "x-shopify-shop-api-call-limit").partition("/")
    spent, burst = _parsed_decimal_within_bounds(used), _parsed_decimal_within_bounds(capacity)
    return _rate_headers_within_bounds(
        "shopify", None if spent is None or burst is None else max(0.0, burst - spent), burst
    )


def _read_bigcommerce_headers(headers: Mapping[str, str]) -> RateHeaders | None:
    names = ("requests-left", "requests-quota", "time-window-ms")
    remaining, quota, window = (_decimal_in_header(headers, f"x-rate-limit-{name}") for name in names)
    return _rate_headers_within_bounds(
        "bigcommerce", remaining, quota, quota / window * 1000 if quota and window else None
    )


def _read_amazon_header(headers: Mapping[str, str]) -> RateHeaders | None:
    return _rate_headers_within_bounds("amazon", rate_per_s=_decimal_in_header(headers, "x-amzn-ratelimit-limit"))


_READERS: tuple[Callable[[Mapping[str, str]], RateHeaders | None], ...] = (
    _read_ratelimit_field,
    partial(_read_separate_fields, "triple", "ratelimit-"),
    partial(_read_separate_fields, "x-ratelimit", "x-ratelimit-"),
    partial(_read_separate_fields, "x-ratelimit", "x-rate-limit-"),
    _read_policy_field,  # after those that report what remains
    _read_shopify_header,
    _read_bigcommerce_headers,
    _read_amazon_header,
)


def _rate_headers_within_bounds(
    dialect: str, remaining: float | None = None, burst: float | None = None, rate_per_s: float | None = None
) -> RateHeaders | None:
    """Keep the values within the bounds of `RateHeaders`; None if there are none."""
    if burst is not None and burst < 1:
        burst = None  # no request would ever be accepted; some servers send 0 for "no limit"
    if remaining is not None and burst is not None and remaining > burst:
        remaining = None
    if rate_per_s is not None and not 1 / MOST <= rate_per_s <= MOST:
        rate_per_s = None
    if remaining is burst is rate_per_s is None:
        return None
    return RateHeaders(dialect, remaining, burst, rate_per_s)


@lru_cache(maxsize=64)  # a server repeats its policies in every answer
def _parsed_policies(text: str) -> tuple[_RateLimitPolicy, ...]:
    """Parse the policies of a list, named (``"default";q=100;w=10``) or not (``100;w=10``)."""
    found = []
    for value, parameters in parsed_structured_field(text, "list") or ():
        name = _text_of_string_or_token(value)
        quota = _number_if_in_bounds(value if name is None else parameters.get("q"))
        if quota is None:
            continue
        window_s = _number_if_in_bounds(next((parameters[each] for each in _WINDOWS if each in parameters), None))
        unit = _text_of_string_or_token(parameters.get("qu", "requests"))
        found.append(_RateLimitPolicy(name, quota, quota / window_s if window_s else None, unit == "requests"))
    return tuple(found)


def _text_of_string_or_token(value: object) -> str | None:
    """Return the name, which is a string; many servers omit the quotes."""
    return str(value) if isinstance(value, str | UserString) else None


def _decimal_in_header(headers: Mapping[str, str], name: str) -> float | None:
    return _parsed_decimal_within_bounds(header_text_unless_too_long(headers, name))


def _parsed_decimal_within_bounds(text: str) -> float | None:
    """Parse a number from 0 to 1e9, of digits with an optional fraction; no sign, no exponent."""
    return _number_if_in_bounds(float(text)) if _is_decimal(text) else None


def _number_if_in_bounds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return float(value) if 0 <= value <= MOST else None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of ``Retry-After`` (RFC 9110 section 10.2.3), 0 to 900; None if it is absent or invalid.

    Fractions of a second, which some vendors send, are read as well. A date is compared with the answer's own ``Date``,
    so the local clock does not matter.

    Args:
        headers: Names in lower case.
    """
    value = header_text_unless_too_long(headers, "retry-after") or header_text_unless_too_long(
        headers, "x-retry-after"
    )  # the second one is ShipBob's
    if _is_seconds(value):
        return min(float(value), MAX_WAIT_S)
    until, date = parse_http_date(value), parse_http_date(headers.get("date", ""))
    return None if until is None or date is None else min(max(until - date, 0.0), MAX_WAIT_S)


def seconds_until_reset_in_headers(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the rate limit is reset, 0 to 900; None if the headers do not state them.

    BigCommerce states milliseconds from now; ``X-RateLimit-Reset`` and the like count seconds from now, or since 1970,
    which is compared with the answer's ``Date``. Every answer may have them, so they are a wait only where the answer
    refuses a request.

    Args:
        headers: Names in lower case.
    """
    rest_ms = _decimal_in_header(headers, "x-rate-limit-time-reset-ms")
    if rest_ms is not None:
        return min(rest_ms / 1000, MAX_WAIT_S)
    text = next((header_text_unless_too_long(headers, name) for name in _RESETS if name in headers), "")
    if not _is_whole(text):
        return None
    reset_s, date = float(text), parse_http_date(headers.get("date", ""))
    if reset_s < _YEAR_2001_S:
        return min(reset_s, MAX_WAIT_S)
    return None if date is None else min(max(reset_s - date, 0.0), MAX_WAIT_S)


_LONGEST = 10_000  # bytes of a body that are searched
_STATED = re.compile(
    rb"(?:retry|again|wait)[^0-9]{0,40}?([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*"
    rb"(?:(milliseconds?|msecs?|ms)|(seconds?|secs?|s)|(minutes?|mins?|m))\b",
    re.IGNORECASE,
)
_UNITS_S = (0.001, 1.0, 60.0)


class Throttling(Struct, frozen=True):
    """An answer by which an API limits the rate. *wait_s* is the wait that a connector reads off it, if it does."""

    wait_s: float | None = None

    def wait_after_answer_s(self, headers: Mapping[str, str], body: bytes) -> float | None:
        """Return the wait after the answer with these headers and this body; see `wait_stated_by_answer_s`."""
        return wait_stated_by_answer_s(headers, body) if self.wait_s is None else self.wait_s


def throttling_from_connector_result(said: object) -> Throttling | None:
    """Return the meaning of what a connector says about an answer: True, or a wait in seconds, 0 included. A wait is
    brought between 0 and 900. None for False and other empty values.

    Raises:
        TypeError: If *said* is anything else.
    """
    if isinstance(said, int | float | Decimal) and not isinstance(said, bool) and not math.isnan(said):
        return Throttling(float(min(max(said, 0), MAX_WAIT_S)))
    if said is True:
        return Throttling()
    if said:
        raise TypeError
    return None


def wait_stated_by_answer_s(headers: Mapping[str, str], body: bytes) -> float | None:
    """Return the seconds of ``Retry-After``, else those that *body* states, else those until the reset, 0 to 900.

    None without any. A text states a wait by a number with a unit after "retry", "again" or "wait", such as ``retry
    after 1500 milliseconds``. ``X-RateLimit-Reset`` and the like count seconds from now, or since 1970.

    Args:
        headers: Names in lower case.
    """
    wait_s = retry_after_s(headers)
    wait_s = _wait_in_text_s(body[:_LONGEST]) if wait_s is None else wait_s
    return seconds_until_reset_in_headers(headers) if wait_s is None else wait_s


def stated_wait_s(value: str) -> float | None:
    """Return the wait that a member of an answer states, 0 to 900 seconds: a number of seconds, or one with a unit such
    as ``18 seconds``. None for any other text.
    """
    return _wait_in_text_s(f"wait {value} s".encode())


def _wait_in_text_s(text: bytes) -> float | None:
    stated = _STATED.search(text)
    if stated is None:
        return None
    number, *units = stated.groups()
    unit_s = next(seconds for seconds, unit in zip(_UNITS_S, units, strict=True) if unit)
    return min(float(number) * unit_s, MAX_WAIT_S)
