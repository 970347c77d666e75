"""The wait after an answer by which an API limits the rate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from crossdock.pacing.rate_headers import MAX_WAIT_S, retry_after_s, window_rest_s

_LONGEST = 10_000  # bytes of a body that are searched
_STATED = re.compile(
    rb"(?:retry|again|wait)[^0-9]{0,40}?([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*"
    rb"(?:(milliseconds?|msecs?|ms)|(seconds?|secs?|s)|(minutes?|mins?|m))\b",
    re.IGNORECASE,
)
_UNITS_S = (0.001, 1.0, 60.0)


def throttled_wait_s(headers: Mapping[str, str], body: bytes) -> float | None:
    """Return the seconds of ``Retry-After``, else those stated in the text of *body*, 0 to 900, else those until the
    window of the rate limit ends, as BigCommerce states them (``X-Rate-Limit-Time-Reset-Ms``); None without all three.

    A text states a wait by a number with a unit after "retry", "again" or "wait", such as ``retry after 1500
    milliseconds``.

    Args:
        headers: Names in lower case.
    """
    wait_s = retry_after_s(headers)
    wait_s = _stated_s(body[:_LONGEST]) if wait_s is None else wait_s
    return window_rest_s(headers) if wait_s is None else wait_s


def stated_wait(value: str) -> timedelta | None:
    """Return the wait that a member of an answer states, 0 to 900 seconds: a number of seconds, or one with a unit such
    as ``18 seconds``. None for any other text.
    """
    stated_s = _stated_s(f"wait {value} s".encode())
    return None if stated_s is None else timedelta(seconds=stated_s)


def _stated_s(text: bytes) -> float | None:
    stated = _STATED.search(text)
    if stated is None:
        return None
    number, *units = stated.groups()
    unit_s = next(seconds for seconds, unit in zip(_UNITS_S, units, strict=True) if unit)
    return min(float(number) * unit_s, MAX_WAIT_S)
