"""RFC 3339 dates and times: the patterns that are accepted, and the form in which times are written."""

from __future__ import annotations

import re
from datetime import UTC, datetime

DATE_PATTERN = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", re.ASCII)
_TIME = r"T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)"
INSTANT_PATTERN = re.compile(DATE_PATTERN.pattern + _TIME, re.ASCII)


def instant_text(moment: datetime | float) -> str:
    """Format a time in UTC with fixed width, so that text order is time order. A number is seconds since the epoch."""
    if not isinstance(moment, datetime):
        moment = datetime.fromtimestamp(moment, UTC)
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
