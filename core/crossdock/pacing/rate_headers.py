"""What an answer tells of a rate limit: the drafts of a standard, the customs before it, and those of some systems.

Nothing here raises. What makes no sense is taken as not said, and a field longer than 256 characters is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import http_sf

MAX_WAIT_S = 900.0  # whatever a server says, it is asked again after so long
MOST = 1e9  # beyond it a number is a mistake or a trap
LONGEST_FIELD = 256  # the slowest text of this length takes an eighth of a millisecond to read

_EPOCH_S, _EPOCH_MS = 1e9, 1e11  # a reset beyond these is a time and no delay
_WINDOWS = ("w", "window")  # the second name is that of the first drafts, and still spoken

_is_decimal = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,20})?").fullmatch


@dataclass(frozen=True, slots=True)
class RateHeaders:
    """What one answer tells; None where it is silent.

    Attributes:
        dialect: How it was told: ``draft10``, ``draft07``, ``triple``, ``x-ratelimit``, ``shopify``, ``bigcommerce``,
            ``amazon`` or ``graphql-cost``.
        remaining: Tokens, or points, left after this request: 0 to *burst*, or to 1e9 where that is not told.
        burst: The most there can be, 1 to 1e9.
        rate_per_s: Tokens a second, 1e-9 to 1e9; only where it is told, never guessed from a reset.
        more_in_s: Until there is more, 0 to 900.
        full_in_s: Until the window ends or the bucket is full, 0 to 900.
    """

    dialect: str
    remaining: float | None = None
    burst: float | None = None
    rate_per_s: float | None = None
    more_in_s: float | None = None
    full_in_s: float | None = None


def read(headers: Mapping[str, str], now_s: float) -> RateHeaders | None:
    """What *headers* tell; None if nothing. Of two dialects the newer standard counts.

    Args:
        headers: Names in lower case, lines of one name joined by commas.
        now_s: Seconds since the epoch on our clock. A reset that is a time is held against the answer's own ``Date``,
            and against this only where there is none.
    """
    if _number_in(headers, "age"):
        return None  # out of a cache: true of another moment, perhaps of another caller
    for reader in _READERS:
        told = reader(headers, now_s)
        if told is not None:
            return told
    return None


def read_cost(body: object) -> RateHeaders | None:
    """What a GraphQL answer of a shop tells in ``extensions.cost.throttleStatus``; None if nothing."""
    for name in ("extensions", "cost", "throttleStatus"):
        if not isinstance(body, dict):
            return None
        body = body.get(name)
    if not isinstance(body, dict):
        return None
    available, most = _number(body.get("currentlyAvailable")), _number(body.get("maximumAvailable"))
    return _told("graphql-cost", available, most, _number(body.get("restoreRate")))


class _Policy(NamedTuple):
    name: str | None  # none in the drafts up to 07
    quota: float
    rate_per_s: float | None
    of_requests: bool


def _ratelimit(headers: Mapping[str, str], _now_s: float) -> RateHeaders | None:
    """The field ``RateLimit``: a dictionary up to draft 07, a list since."""
    text = _field(headers, "ratelimit")
    if not text:
        return None
    policies = _policies(_field(headers, "ratelimit-policy"))
    if not text.startswith('"') and "=" in text.partition(";")[0]:
        return _draft07(text, policies)
    return _draft10(text, policies)


def _draft10(text: str, policies: tuple[_Policy, ...]) -> RateHeaders | None:
    """The limit with the least left in proportion to its policy's quota."""
    by_name = {policy.name: policy for policy in reversed(policies)}
    limits = []
    for value, parameters in _parsed(text, "list") or ():
        name, left = _name(value), _number(parameters.get("r"))
        policy = by_name.get(name)
        if name is None or left is None or (policy and not policy.of_requests):
            continue
        # without a policy nobody knows how much that is, unless it is nothing
        share = left / policy.quota if policy and policy.quota else left * MOST
        limits.append((share, left, _number(parameters.get("t")), policy))
    if not limits:
        return None
    _, left, more_in_s, policy = min(limits, key=lambda limit: limit[:2])
    if policy is None:
        return _told("draft10", left, more_in_s=more_in_s)
    return _told("draft10", left, policy.quota, policy.rate_per_s, more_in_s=more_in_s)


def _draft07(text: str, policies: tuple[_Policy, ...]) -> RateHeaders | None:
    members = _parsed(text, "dictionary") or {}
    limit, left, reset = (_number(members.get(name, (None,))[0]) for name in ("limit", "remaining", "reset"))
    return _window("draft07", limit, left, reset, policies)


def _triple(dialect: str, prefix: str, headers: Mapping[str, str], now_s: float) -> RateHeaders | None:
    """Three fields; the limit may be followed by the policies it comes from (``100, 100;w=10``)."""
    if not (prefix + "limit" in headers or prefix + "remaining" in headers or prefix + "reset" in headers):
        return None  # a short way for most answers
    limits = _policies(_field(headers, prefix + "limit"))
    limit = limits[0].quota if limits else None
    left = _number_in(headers, prefix + "remaining")
    reset = _reset_s(_field(headers, prefix + "reset"), headers, now_s)
    return _window(dialect, limit, left, reset, (*limits, *_policies(_field(headers, prefix + "policy"))))


def _window(
    dialect: str, limit: float | None, left: float | None, reset: float | None, policies: tuple[_Policy, ...]
) -> RateHeaders | None:
    """One limit, at the rate of the policy that has it as quota, or else of the first that has a rate."""
    if limit is left is reset is None:
        return None
    rated = [policy for policy in policies if policy.of_requests and policy.rate_per_s is not None]
    same = [policy for policy in rated if policy.quota == limit]
    rate = next((policy.rate_per_s for policy in same or rated), None)
    return _told(dialect, left, limit, rate, full_in_s=reset)


def _policy_alone(headers: Mapping[str, str], _now_s: float) -> RateHeaders | None:
    for policy in _policies(_field(headers, "ratelimit-policy")):
        if policy.of_requests:
            return _told("draft07" if policy.name is None else "draft10", None, policy.quota, policy.rate_per_s)
    return None


def _shopify(headers: Mapping[str, str], _now_s: float) -> RateHeaders | None:
    used, _, capacity = _field(headers, "x-shopify-shop-api-call-limit").partition("/")
    spent, most = _number(_decimal(used)), _number(_decimal(capacity))
    left = None if spent is None or most is None else max(0.0, most - spent)
    return _told("shopify", left, most)


def _bigcommerce(headers: Mapping[str, str], _now_s: float) -> RateHeaders | None:
    names = ("requests-left", "requests-quota", "time-window-ms", "time-reset-ms")
    left, quota, window, reset = (_number_in(headers, f"x-rate-limit-{name}") for name in names)
    rate = quota / window * 1000 if quota and window else None
    return _told("bigcommerce", left, quota, rate, full_in_s=None if reset is None else reset / 1000)


def _amazon(headers: Mapping[str, str], _now_s: float) -> RateHeaders | None:
    return _told("amazon", rate_per_s=_number_in(headers, "x-amzn-ratelimit-limit"))


_READERS: tuple[Callable[[Mapping[str, str], float], RateHeaders | None], ...] = (
    _ratelimit,
    partial(_triple, "triple", "ratelimit-"),
    partial(_triple, "x-ratelimit", "x-ratelimit-"),
    partial(_triple, "x-ratelimit", "x-rate-limit-"),
    _policy_alone,  # after all that tell of the moment
    _shopify,
    _bigcommerce,
    _amazon,
)


def _told(
    dialect: str,
    remaining: float | None = None,
    burst: float | None = None,
    rate_per_s: float | None = None,
    *,
    more_in_s: float | None = None,
    full_in_s: float | None = None,
) -> RateHeaders | None:
    """What is left of it within the bounds that `RateHeaders` promises; None if nothing."""
    if burst is not None and burst < 1:
        burst = None  # no request would ever pass; some say 0 for "no limit"
    if remaining is not None and burst is not None and remaining > burst:
        remaining = None
    if rate_per_s is not None and not 1 / MOST <= rate_per_s <= MOST:
        rate_per_s = None
    more_in_s, full_in_s = (None if wait is None else min(wait, MAX_WAIT_S) for wait in (more_in_s, full_in_s))
    if remaining is burst is rate_per_s is more_in_s is full_in_s is None:
        return None
    return RateHeaders(dialect, remaining, burst, rate_per_s, more_in_s, full_in_s)


@lru_cache(maxsize=64)  # a server says the same in every answer
def _policies(text: str) -> tuple[_Policy, ...]:
    """Policies of a list, named (``"default";q=100;w=10``) or not (``100;w=10``)."""
    found = []
    for value, parameters in _parsed(text, "list") or ():
        name = _name(value)
        quota = _number(value if name is None else parameters.get("q"))
        if quota is None:
            continue
        window_s = _number(next((parameters[each] for each in _WINDOWS if each in parameters), None))
        unit = _name(parameters.get("qu", "requests"))
        found.append(_Policy(name, quota, quota / window_s if window_s else None, unit == "requests"))
    return tuple(found)


def _parsed(text: str, kind: Literal["list", "dictionary"]) -> Any:
    """A structured field (RFC 9651), each value with its parameters; None if any of it is malformed."""
    try:
        return http_sf.parse(text.encode("ascii"), tltype=kind)
    except ValueError:
        return None


def _name(value: object) -> str | None:
    """A name is a string; many servers leave out the quotes."""
    return str(value) if isinstance(value, str | http_sf.Token) else None


def _field(headers: Mapping[str, str], name: str) -> str:
    text = headers.get(name, "")
    return text.strip() if len(text) <= LONGEST_FIELD else ""


def _number_in(headers: Mapping[str, str], name: str) -> float | None:
    return _number(_decimal(_field(headers, name)))


def _decimal(text: str) -> float | None:
    """Digits, perhaps with a fraction; no sign, no exponent."""
    return float(text) if _is_decimal(text) else None


def _number(value: object) -> float | None:
    """*value* if it is a number from 0 to 1e9."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):  # a NaN that signals, an integer beyond all floats
        return None
    return number if 0 <= number <= MOST else None


def _reset_s(text: str, headers: Mapping[str, str], now_s: float) -> float | None:
    """Seconds until a reset told as a delay in seconds, as seconds or milliseconds since the epoch, or as a date."""
    reset = _decimal(text)
    if reset is None:
        reset = _instant(text)
    elif reset > _EPOCH_MS:
        reset /= 1000
    elif reset <= _EPOCH_S:
        return reset
    if reset is None:
        return None
    date = _instant(_field(headers, "date"))
    return max(0.0, reset - (now_s if date is None else date))


@lru_cache(maxsize=64)  # many answers come in one second
def _instant(text: str) -> float | None:
    """Seconds since the epoch of a date of ISO 8601, in UTC where it names no zone, or of one of HTTP."""
    try:
        return _in_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return http_date(text)


def http_date(text: str) -> float | None:
    """Seconds since the epoch of a date in one of the three forms of HTTP (RFC 9110 section 5.6.7); None if it is none.

    All of them are in UTC, said or not. A text longer than 256 characters is none.
    """
    if len(text) > LONGEST_FIELD:
        return None
    try:
        return _in_utc(parsedate_to_datetime(text))
    except (ValueError, OverflowError):
        return None


def _in_utc(instant: datetime) -> float:
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()
