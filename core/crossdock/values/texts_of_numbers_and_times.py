"""Places, counts, numbers, instants and durations as texts of sentences and tables, and times as JSON has them.

Also the years of dates that people may give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

USABLE_YEARS = range(1900, 9999)
USABLE_YEARS_TEXT = f"the years {USABLE_YEARS[0]} to {USABLE_YEARS[-1]}"


def json_time_text(value: date) -> str:
    """Format a day in ISO 8601, or an instant in RFC 3339, in UTC with ``Z``. A naive time is a ValueError."""
    if not isinstance(value, datetime):
        return value.isoformat()
    if value.tzinfo is None:
        raise ValueError("a time without a time zone is not an instant")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


_PREFIXES = "KMGTP"


def place_text(item: Mapping[str, Any]) -> str:
    """Return FILE:LINE, without a line if there is none, as for an undo."""
    return f"{item['source']}:{item['line']}" if item.get("line") else str(item["source"])


def count_with_noun(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def aligned_decimals(values: Iterable[Decimal]) -> list[str]:
    """Format numbers with all their digits and the same number of decimal places: ``9.50``, not ``9.5``."""
    numbers = list(values)
    places = max((-int(each.as_tuple().exponent) for each in numbers), default=0)
    return [f"{each:,.{max(places, 0)}f}" for each in numbers]


def awaited_records_text(waits_for: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(f"{each['resource']} {each['namespace']}:{each['key']}" for each in waits_for)


def byte_size_text(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, len(_PREFIXES))
    return f"{size / (1 << 10 * power):,.1f} {_PREFIXES[power - 1]}iB"


def instant_text(at: datetime) -> str:
    """Format *at*, which is aware, in its own time zone: ``2026-03-01 05:00:07Z`` or ``2026-03-01 06:00:07+01:00``."""
    text = at.isoformat(" ", "seconds")
    return f"{text.removesuffix('+00:00')}Z" if text.endswith("+00:00") else text


def instant_text_to_minute(at: datetime) -> str:
    """Format *at*, which is aware, to the minute in UTC: ``2026-03-01 05:00Z``."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}Z"


def duration_text(duration: timedelta | float) -> str:
    """Format a duration (a number is in seconds): ``1.2 s``, ``3 min 4 s``, ``2 h 5 min`` or ``24 h``."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60:,} h {minutes % 60} min".removesuffix(" 0 min")
