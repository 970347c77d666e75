"""How often somebody may try to sign in: a token for each attempt, which success gives back."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address, ip_network

from crossdock.pacing.token_bucket import Bucket
from crossdock.values.clock import Clock

_REMEMBERED = 10_000
# A name is limited for each address, so that nobody locks others out from theirs; less strictly for all addresses.
_OF_NAME_AND_ADDRESS = Bucket(rate_per_s=1 / 30, burst=5)
_OF_ADDRESS = Bucket(rate_per_s=1 / 10, burst=20)
_OF_NAME = Bucket(rate_per_s=1 / 10, burst=50)
_Key = tuple[str, str]


class TooManyAttemptsError(Exception):
    def __init__(self, wait_s: float) -> None:
        super().__init__()
        self.wait_s = wait_s


class TooManyPasswordChecksError(Exception):
    """Too many passwords are being checked at this moment."""


class AttemptLimiter:
    """Names that are no accounts count like others, so that refusals tell nothing about them."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._buckets: OrderedDict[_Key, Bucket] = OrderedDict()

    def count_or_refuse_attempt(self, name: str, address: str) -> None:
        """Count an attempt, before anything is computed. Raises TooManyAttemptsError."""
        now = self._clock.monotonic()
        with self._lock:
            buckets = {key: self._buckets.get(key, full) for key, full in _limits_of_attempt(name, address)}
            wait_s = max(bucket.wait_s(now) for bucket in buckets.values())
            if wait_s > 0:
                raise TooManyAttemptsError(wait_s)
            for key, bucket in buckets.items():
                self._buckets[key] = bucket.after_taking_tokens(now, 1)
                self._buckets.move_to_end(key)
            while len(self._buckets) > _REMEMBERED:
                self._buckets.popitem(last=False)

    def refund_attempt(self, name: str, address: str) -> None:
        now = self._clock.monotonic()
        with self._lock:
            for key, full in _limits_of_attempt(name, address):
                bucket = self._buckets.get(key, full)
                self._buckets[key] = bucket.with_level(now, bucket.level(now) + 1)


def _limits_of_attempt(name: str, address: str) -> Iterator[tuple[_Key, Bucket]]:
    network = _network(address)
    yield (name, network), _OF_NAME_AND_ADDRESS
    yield ("", network), _OF_ADDRESS
    yield (name, ""), _OF_NAME


def _network(address: str) -> str:
    """Return the network that one client has: of IPv6, it can use all addresses of a /64."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    return str(ip_network((found, 64), strict=False)) if isinstance(found, IPv6Address) else address
