"""Which of the waiting runs may start: a limit for the fleet, one for each host, and no tenant at another's expense."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

SLOW_S = 600.0
"""A run that is expected to take longer, or whose tenant's last run did not complete, is slow."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The place of a run in the queue: those due first are first, and among equals the shortest.

    Attributes:
        expected_s: How long it will take; 0 if that is unknown.
        tenant: Which has one run at a time.
    """

    due: datetime
    expected_s: float
    tenant: str
    hosts: frozenset[str] = field(compare=False, default=frozenset())
    is_slow: bool = field(compare=False, default=False)


@dataclass(frozen=True, slots=True)
class RunSlots:
    """The limits.

    Attributes:
        at_once: The most runs at the same time.
        per_host: The most of them that read from one host.
    """

    at_once: int
    per_host: int

    @property
    def for_slow(self) -> int:
        """The most slow runs at the same time: half of all, so that the others always have slots."""
        return max(1, self.at_once // 2)

    def next(self, waiting: Iterable[Place], running: Iterable[Place]) -> list[Place]:
        """Those of *waiting* that may start now, in order."""
        in_use = list(running)
        free, slow = self.at_once - len(in_use), sum(each.is_slow for each in in_use)
        hosts = Counter(host for each in in_use for host in each.hosts)
        chosen: list[Place] = []
        for each in sorted(waiting):
            if free <= len(chosen):
                break
            if any(hosts[host] >= self.per_host for host in each.hosts) or (each.is_slow and slow >= self.for_slow):
                continue
            chosen.append(each)
            slow += each.is_slow
            hosts.update(each.hosts)
        return chosen
