"""Instants and durations as text for people; `crossdock.values.json_times.time_text` is their form in JSON."""

from __future__ import annotations

from datetime import datetime, timedelta


def instant_text(at: datetime) -> str:
    """Format *at*, which is aware, in its own time zone: ``2026-03-01 05:00:07Z`` or ``2026-03-01 06:00:07+01:00``."""
    text = at.isoformat(" ", "seconds")
    return f"{text.removesuffix('+00:00')}Z" if text.endswith("+00:00") else text


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
