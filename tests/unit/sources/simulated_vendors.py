"""Vendors that limit the rate of one reader, on a manual clock: each figure is the same in every run."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from crossdock.pacing.rate_limit_and_retry_settings import RateLimit
from crossdock.pacing.token_bucket import BucketState
from crossdock.reading.sources.api_token_buckets import RequestAllowanceOfRun, make_api_bucket
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.testing.manual_clock import ManualClock

REQUESTS = 400
PAUSE_S = 600.0  # between two runs; every bucket is full again


class Vendor(Protocol):
    """Lets *burst* requests through at once and *rate* a second in the long run."""

    rate: float
    burst: int

    def accepts(self, now: float) -> bool: ...

    @property
    def left(self) -> int:
        """Requests that it would accept at the time of the latest request."""

    @property
    def wait_s(self) -> float:
        """Seconds from then on until it accepts one."""


class TokenBucket:
    def __init__(self, rate: float, burst: int, now: float) -> None:
        self.rate, self.burst, self._level, self._at = rate, burst, float(burst), now

    def accepts(self, now: float) -> bool:
        self._level, self._at = min(self.burst, self._level + (now - self._at) * self.rate), now
        accepted = self._level >= 1 - 1e-9
        self._level -= accepted
        return accepted

    @property
    def left(self) -> int:
        return int(self._level + 1e-9)

    @property
    def wait_s(self) -> float:
        return (1 - self._level) / self.rate


class FixedWindow:
    """*burst* requests in each window of ``burst / rate`` seconds."""

    def __init__(self, rate: float, burst: int, now: float) -> None:
        self.rate, self.burst, self._window, self._used, self._at = rate, burst, -1, 0, now

    def accepts(self, now: float) -> bool:
        self._at = now
        window = math.floor(now * self.rate / self.burst)
        if window != self._window:
            self._window, self._used = window, 0
        accepted = self._used < self.burst
        self._used += accepted
        return accepted

    @property
    def left(self) -> int:
        return self.burst - self._used

    @property
    def wait_s(self) -> float:
        return (self._window + 1) * self.burst / self.rate - self._at


class SlidingWindow:
    """*burst* requests in any ``burst / rate`` seconds."""

    def __init__(self, rate: float, burst: int, now: float) -> None:
        self.rate, self.burst, self._at = rate, burst, now
        self._accepted: list[float] = []

    def accepts(self, now: float) -> bool:
        self._at = now
        self._accepted = [at for at in self._accepted if at > now - self.burst / self.rate + 1e-9]
        accepted = self.left > 0
        if accepted:
            self._accepted.append(now)
        return accepted

    @property
    def left(self) -> int:
        return self.burst - len(self._accepted)

    @property
    def wait_s(self) -> float:
        return self._accepted[0] + self.burst / self.rate - self._at


NewVendor = Callable[[float, int, float], Vendor]
Headers = Callable[[Vendor, bool], Mapping[str, str]]


def silent(vendor: Vendor, accepted: bool) -> Mapping[str, str]:
    return {}


def retry_after(vendor: Vendor, accepted: bool) -> Mapping[str, str]:
    return {} if accepted else {"retry-after": str(math.ceil(vendor.wait_s))}


def seconds(wait: int) -> Headers:
    """A wait that does not depend on the level."""
    return lambda _, accepted: {} if accepted else {"retry-after": str(wait)}


def shopify(vendor: Vendor, accepted: bool) -> Mapping[str, str]:
    return {"x-shopify-shop-api-call-limit": f"{vendor.burst - vendor.left}/{vendor.burst}"}


def draft(vendor: Vendor, accepted: bool) -> Mapping[str, str]:
    policy = f"{vendor.burst};w={vendor.burst / vendor.rate:g}"
    return {
        "ratelimit-limit": str(vendor.burst),
        "ratelimit-remaining": str(vendor.left),
        "ratelimit-policy": policy,
        **retry_after(vendor, accepted),
    }


def amazon(vendor: Vendor, accepted: bool) -> Mapping[str, str]:
    return {"x-amzn-ratelimit-limit": str(vendor.rate)}


def always_empty(vendor: Vendor, accepted: bool) -> Mapping[str, str]:
    """Some proxies make up a level."""
    return {"x-ratelimit-limit": "100", "x-ratelimit-remaining": "0"}


def another_limit(vendor: Vendor, accepted: bool) -> Mapping[str, str]:
    """The daily quota, while a limit per second is what refuses."""
    return {"x-ratelimit-limit": "100000", "x-ratelimit-remaining": "90000", "x-ratelimit-policy": "100000;w=86400"}


@dataclass
class Run:
    """What a vendor saw.

    Attributes:
        refused: The number of refused requests.
        used: The share used of what the vendor and the latency allow.
        state: The bucket at the end.
    """

    refused: int
    used: float
    state: BucketState


class Reader:
    """Reads from new vendors of one kind, run after run.

    Args:
        latency_s: A round trip, longer by a share of up to *jitter*.
        earlier: What is known of the vendor before the first run.
    """

    def __init__(
        self,
        new_vendor: NewVendor,
        rate: float,
        burst: int,
        headers: Headers,
        *,
        latency_s: float = 0.02,
        jitter: float = 0.0,
        limit: RateLimit | None = None,
        earlier: BucketState | None = None,
        seed: int = 7,
    ) -> None:
        self._new_vendor, self._rate, self._burst, self._headers = new_vendor, rate, burst, headers
        self._latency_s, self._jitter, self._limit = latency_s, jitter, limit or RateLimit()
        self._clock, self._random = ManualClock(), random.Random(seed)
        self._state = earlier
        self.vendor: Vendor

    def run(self, requests: int = REQUESTS, *, rate: float | None = None) -> Run:
        """Read until that many requests are accepted, from a vendor that allows *rate* from now on."""
        self.begin(rate)
        return self.read(requests)

    def begin(self, rate: float | None = None) -> None:
        """Begin a run with what the last one learned, and a full bucket."""
        self._rate = rate or self._rate
        self._clock.sleep(PAUSE_S + self._burst / self._rate)
        self.vendor = self._new_vendor(self._rate, self._burst, self._clock.monotonic())
        self._allowance = RequestAllowanceOfRun(self._clock, make_api_bucket(self._clock, self._limit, self._state))

    def read(self, requests: int) -> Run:
        """Continue the run until that many more requests are accepted."""
        clock, allowance, vendor, accepted = self._clock, self._allowance, self.vendor, 0
        began, left, refused = clock.monotonic(), vendor.left, allowance.usage.throttled
        while accepted < requests:
            sent = allowance.wait_for_token(None)
            clock.sleep(self._half_way())
            is_accepted = vendor.accepts(clock.monotonic())
            answer = Answer(200 if is_accepted else 429, self._headers(vendor, is_accepted), b"")
            clock.sleep(self._half_way())
            allowance.record_answer(sent, answer, throttled=not is_accepted)
            accepted += is_accepted
        self._state = allowance.bucket_state
        mean_s = self._latency_s * (1 + self._jitter / 2)
        least_s = max(requests * mean_s, (requests - left) / vendor.rate)
        return Run(allowance.usage.throttled - refused, least_s / (clock.monotonic() - began), self._state)

    def _half_way(self) -> float:
        return self._latency_s / 2 * (1 + self._random.random() * self._jitter)
