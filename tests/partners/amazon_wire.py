"""What all answers of the fake of Amazon have in common: times, refusals and the spelling of statuses."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


class RefusedError(Exception):
    """A request that Amazon refuses, with the members of its error body (``ErrorList`` in its API documents)."""

    def __init__(self, status: int, code: str, message: str, details: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.details = status, code, message, details

    def body(self) -> dict[str, Any]:
        return {"errors": [{"code": self.code, "message": self.message, "details": self.details}]}


def invalid(message: str) -> RefusedError:
    """A refusal as Amazon writes it (github.com/amzn/selling-partner-api-models, issues 2979 and 1759)."""
    return RefusedError(400, "InvalidInput", message)


def absent(what: str) -> RefusedError:
    """A refusal with the documents' 404. What Amazon really writes in it is not public."""
    return RefusedError(404, "NotFound", f"{what} does not exist.")


def timestamp(instant: datetime) -> str:
    """RFC 3339 in UTC at a resolution of one second, as in the examples of Amazon's documents."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def instant(text: str) -> datetime:
    """The instant that an RFC 3339 text names.

    Raises:
        ValueError: If it is none, or has no offset from UTC.
    """
    if not _RFC_3339.fullmatch(text):
        raise ValueError(f"{text!r} is not an RFC 3339 date-time")
    return datetime.fromisoformat(text)


def upper_case(status: str) -> str:
    """A status as the documents' own examples spell it; ``COMPLETE_PARTIALLED`` is that of the earlier service, MWS."""
    return "COMPLETE_PARTIALLED" if status == "CompletePartialled" else status.upper()
