"""Places, counts and numbers as texts of sentences and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

_PREFIXES = "KMGTP"


def place_text(item: Mapping[str, Any]) -> str:
    """Return FILE:LINE, without a line if there is none, as for an undo."""
    return f"{item['source']}:{item['line']}" if item.get("line") else str(item["source"])


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def aligned_decimals(values: Iterable[Decimal]) -> list[str]:
    """Format numbers with all their digits and the same number of decimal places: ``9.50``, not ``9.5``."""
    numbers = list(values)
    places = max((-int(each.as_tuple().exponent) for each in numbers), default=0)
    return [f"{each:,.{max(places, 0)}f}" for each in numbers]


def parents_text(waits_for: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(f"{each['resource']} {each['namespace']}:{each['key']}" for each in waits_for)


def size_text(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, len(_PREFIXES))
    return f"{size / (1 << 10 * power):,.1f} {_PREFIXES[power - 1]}iB"
