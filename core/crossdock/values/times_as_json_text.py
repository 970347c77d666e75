"""Times as JSON has them: text in ISO 8601 and RFC 3339."""

from __future__ import annotations

from datetime import UTC, date, datetime


def time_text(value: date) -> str:
    """Format a day in ISO 8601, or an instant in RFC 3339, in UTC with ``Z``. A naive time is a ValueError."""
    if not isinstance(value, datetime):
        return value.isoformat()
    if value.tzinfo is None:
        raise ValueError("a time without a time zone is not an instant")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
