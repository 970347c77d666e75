"""Cycles among waiting records, and the record of each that is created first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def cycle_breakers(waits_for: Mapping[int, Sequence[int]], can_open: Sequence[int]) -> list[int]:
    """Return at most one record of each cycle, to be created before the records that it waits for.

    A record that waits, directly or not, for one that is not a key of *waits_for* is in no cycle that can be broken.

    Args:
        waits_for: For each waiting record, the records it waits for.
        can_open: The records that can be created without those.
    """
    stuck, allowed = _stuck(waits_for), set(can_open)
    chosen: list[int] = []
    seen: set[int] = set()
    for start in waits_for:
        path: dict[int, None] = {}
        node: int | None = start
        while node in stuck and node not in seen and node not in path:
            path[node] = None
            node = next(iter(waits_for[node]), None)
        if node in path:
            cycle = list(path)[list(path).index(node) :]
            chosen += [key for key in cycle if key in allowed][:1]
        seen.update(path)
    return chosen


def _stuck(waits_for: Mapping[int, Sequence[int]]) -> set[int]:
    stuck = set(waits_for)
    while lost := {key for key in stuck if not stuck.issuperset(waits_for[key])}:
        stuck -= lost
    return stuck
