"""The documents of commands about single records."""

from typing import Any, Literal, NotRequired, TypedDict

from crossdock.values.json_documents.parts_of_several_documents import Columns, Difference, Instant


class OpenRecord(TypedDict):
    state: Literal[
        "rejected", "waiting", "in-doubt", "overdue", "pending", "unverified", "handed-over", "dropped", "inbox"
    ]
    stream: str
    key: str
    why: str
    at: str
    """Its file and line, or its address."""
    since: Instant | None
    stage: NotRequired[str]
    """Of a rejected record: what refused it."""
    pointer: NotRequired[str]
    """The member of the draft, as a JSON pointer."""
    attempts: NotRequired[int]


class ListedRecord(OpenRecord):
    records: NotRequired[int]
    """How many records wait for the same one. Without `--all` they are one element."""
    tenant: NotRequired[str]
    """With `--fleet`."""


class ShownRecord(OpenRecord):
    run: NotRequired[int]
    """The run that rejected it last."""
    first_run: NotRequired[int]
    """The run that rejected it first."""
    difference: NotRequired[list[Difference]]
    """Of a record that changed after it was delivered."""
    raw: NotRequired[Any]
    """With `--raw`: the record as it was read."""
    mapped: NotRequired[Any]
    """With `--raw`: the draft."""


class Candidate(TypedDict):
    id: str
    created_at: Instant | None
    currency: str | None
    total: str | None
    same_content: bool
    belongs_to: str | None
    """The record whose id it is already."""


class Candidates(TypedDict):
    candidates: list[Candidate]
    complete: bool
    """Whether all records since then were looked through."""


class Resolved(TypedDict):
    resolved: int


class Reopened(TypedDict):
    reopened: int


class Dropped(TypedDict):
    dropped: int


class History(TypedDict):
    streams: list[str]
    target: str | None
    resource: str | None
    namespace: str | None
    key: str
    bindings: list[Columns]
    """The records of the target that it is bound to. These and what follows are rows of the state, by column."""
    operations: list[Columns]
    """What was to be done, with each request in `sendings` and the changed members in `changed`."""
    rejected: list[Columns]
    waiting: list[Columns]


class AuditEntry(TypedDict):
    id: int
    at: Instant
    person: str
    address: str | None
    action: str
    """The command."""
    subject: str
    reason: str | None
    before: Any
    """Null, a text, or counts, ids and decisions by name."""
    after: Any
    outcome: Literal["begun", "done", "refused", "failed"]
    error: str | None
    tenant: NotRequired[str]
    """With `--fleet`."""


class Bound(TypedDict):
    bound: int
    """The number of records."""
