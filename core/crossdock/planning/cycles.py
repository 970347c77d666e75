"""Records that wait for each other: which of them must go first so that the others can follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def cycle_breakers(waits_for: Mapping[int, Sequence[int]], can_open: Sequence[int]) -> list[int]:
    """One record of each circle, to be created before what it waits for.

    Args:
        waits_for: For each record that waits, what it waits for; others than the keys are not to be had.
        can_open: Those that can be created without.

    Returns:
        Keys of *waits_for*, at most one of each circle. Records that wait for something that is not to be had are in
        no circle that could be opened.
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
            circle = list(path)[list(path).index(node) :]
            chosen += [key for key in circle if key in allowed][:1]
        seen.update(path)
    return chosen


def _stuck(waits_for: Mapping[int, Sequence[int]]) -> set[int]:
    """Records that wait for nothing but records that wait."""
    stuck = set(waits_for)
    while lost := {key for key in stuck if not stuck.issuperset(waits_for[key])}:
        stuck -= lost
    return stuck
