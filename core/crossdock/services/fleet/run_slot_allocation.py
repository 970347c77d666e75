"""The choice of waiting runs that may start: with limits for the fleet and each host, and fairness between tenants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from msgspec import Struct

SLOW_S = 600.0
"""A run is slow if it is expected to take longer, or if its tenant's last run did not complete."""


@dataclass(frozen=True, slots=True, order=True)
class QueuedRun:
    """The place of a run in the queue: earliest due first, and among equals the shortest."""

    due: datetime
    expected_s: float
    tenant: str
    hosts: frozenset[str] = field(compare=False, default=frozenset())
    is_slow: bool = field(compare=False, default=False)


class RunSlots(Struct, frozen=True):
    at_once: int
    per_host: int

    @property
    def most_slow_runs_at_once(self) -> int:
        """The most slow runs at the same time: half of all, so that the others always have slots."""
        return max(1, self.at_once // 2)

    def choose_runs_to_start(self, waiting: Iterable[QueuedRun], running: Iterable[QueuedRun]) -> list[QueuedRun]:
        in_use = list(running)
        free, slow = self.at_once - len(in_use), sum(each.is_slow for each in in_use)
        hosts = Counter(host for each in in_use for host in each.hosts)
        chosen: list[QueuedRun] = []
        for each in sorted(waiting):
            if free <= len(chosen):
                break
            if any(hosts[host] >= self.per_host for host in each.hosts) or (
                each.is_slow and slow >= self.most_slow_runs_at_once
            ):
                continue
            chosen.append(each)
            slow += each.is_slow
            hosts.update(each.hosts)
        return chosen
