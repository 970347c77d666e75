"""The wait after an answer by which an API limits the rate."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal

from msgspec import Struct

from crossdock.pacing.rate_limit_headers import MAX_WAIT_S, retry_after_s, until_reset_s

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


def throttling_said_by_connector(said: object) -> Throttling | None:
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
    return until_reset_s(headers) if wait_s is None else wait_s


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
