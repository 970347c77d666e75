"""What the documents of several commands have in common."""

from datetime import date, datetime
from typing import Any, Literal, TypedDict

Instant = datetime
Date = date
Columns = dict[str, Any]


class Message(TypedDict):
    """An error, a warning or a note of a run."""

    level: Literal["error", "warning", "note"]
    """An error stopped a stream or the run. People are notified about a warning, and not about a note."""
    stream: str
    """The stream, connection or target; empty for the run itself."""
    message: str
    """What happened, without the place, secrets and personal data."""
    code: str | None
    """What happened, as one of the error codes; null for notes, and for warnings of a connector
    without one."""
    place: str | None
    """Where it happened: a file with its line, an address or a key of the config."""
    advice: str | None
    """What to do."""
    category: (
        Literal[
            "config", "refused", "connector", "remote", "unauthorized", "unavailable", "clock", "state", "state_busy",
            "stopped", "internal",
        ]
        | None
    )  # fmt: skip
    """The category of an error, for decisions; null for warnings and notes, and for errors of jobs that did not
    begin."""


class Rows(TypedDict):
    """The rows of a stream: `read` is the sum of the others."""

    read: int
    filtered: dict[str, int]
    superseded: int
    rejected: int
    in_records: int


class Records(TypedDict):
    """The records of a stream: the sum of `carried_over`, `read` and `gone` is that of the others but `delivered`."""

    carried_over: int
    read: int
    gone: int
    unchanged: int
    suppressed: int
    created: int
    updated: int
    deleted: int
    handed_over: int
    acknowledged: int
    rejected: int
    replaced: int
    ignored: int
    dropped: int
    carried_on: int
    delivered: int
    """The sum of `created`, `updated` and `deleted`."""


class Tally(TypedDict):
    """The rows and records of one stream."""

    rows: Rows
    records: Records
    parts: dict[str, int]
    """Parts of records that the mapping left out, changed or assumed, by what was done."""
    balanced: bool | None
    """Whether both sides of rows and of records are equal; null for a partial tally that does not balance."""


class Open(TypedDict):
    """Records that are not delivered, or not known to be."""

    rejected: int
    waiting: int
    pending: int
    in_doubt: int
    overdue: int
    unverified: int


class Forecast(TypedDict):
    """How long requests take."""

    requests: int
    at_once: int | None
    """How many can be sent now; null if the limit is unknown."""
    rate_per_s: float | None
    """The rate of the others; null if unknown."""
    seconds: float | None
    """Until the last one can be sent; null if the limit is unknown."""


class ApiUsage(TypedDict):
    """Requests to the API of a source."""

    requests: int
    throttled: int
    """Requests that were refused because of the rate limit."""
    waited_ms: int
    """How long was waited for the rate limit, in milliseconds."""


class Difference(TypedDict):
    """A member that differs."""

    pointer: str
    """A JSON pointer."""
    before: Any
    after: Any
