"""The documents of commands about projects, single records, the state, subscriptions and the sandbox's credentials."""

from typing import Any, Literal, NotRequired, TypedDict

from crossdock.values.json_documents.plans_and_runs import Columns, Difference, Instant, Message


class State(TypedDict):
    state: str
    """Its address."""
    made: bool
    """False if it existed already."""
    base_url: str
    tenant: str


class StateOfTenant(State):
    tenant: str


class Connected(TypedDict):
    connection: str
    tokens: str
    """The path of the file with the tokens."""
    status: str


class Finding(TypedDict):
    subject: str
    ok: bool
    text: str
    code: str | None
    """Of a failure or a warning: one of the error codes, if it has one."""
    category: str | None
    """Of a failure: as of a message, if it has one."""
    tenant: NotRequired[str]
    """With `--fleet`."""


class Check(TypedDict):
    findings: list[Finding]
    assumptions: NotRequired[dict[str, str]]
    """What is assumed about the platform; not with `--fleet`."""


class OpenApiDifference(TypedDict):
    where: str
    what: str
    fix: str | None
    """The setting to try."""
    error: bool
    """Whether every such request would fail."""


class OpenApiCheck(TypedDict):
    file: str
    resources: list[str]
    differences: list[OpenApiDifference]


Proposal = TypedDict(
    "Proposal",
    {
        "stream": list[str],
        "target": list[str],
        "TODO": list[str],
        "left out": list[str],
    },
)


class NewProject(TypedDict):
    folder: str
    kind: str
    files: list[str]
    proposal: NotRequired[Proposal]
    """With `--openapi`: what each stream reads, the target, what the author must find out, and the operations that
    are left out, with reasons."""


class Setting(TypedDict):
    key: str
    basis: str
    """What the guess rests on."""
    notes: list[str]


class Column(TypedDict):
    column: str
    form: Any
    """How its values are written: keys of `columns` in a config."""
    basis: str
    unsure: Any
    """Null, or what else the values may be."""


class GuessedLayout(TypedDict):
    file: str
    format: Columns
    """The keys of `format` in a config."""
    settings: list[Setting]
    columns: list[Column]
    key: str
    """The column that may identify records; empty if there is none."""
    remarks: list[str]
    config: str
    """The layout as YAML."""


class Cell(TypedDict):
    column: str
    place: str
    text: str | None
    bytes: NotRequired[str]
    """With `--raw`, in binary records: in hexadecimal."""


class LayoutRecord(TypedDict):
    line: int
    cells: list[Cell]
    raw: NotRequired[str]
    """With `--raw`."""


class LayoutFile(TypedDict):
    file: str
    rows: int
    records: list[LayoutRecord]
    error: str | None


class LayoutArchive(TypedDict):
    file: str
    members: list[LayoutFile]


class LayoutLines(TypedDict):
    file: str
    lines: list[str]
    lengths: list[int]
    """In characters."""


class WrittenFile(TypedDict):
    name: str
    bytes: int
    """Their number."""
    content_base64: str | None
    """Null without `--raw`."""


class Problem(TypedDict):
    code: str
    message: str
    pointer: str | None
    line: int | None
    raised: NotRequired[list[str]]
    """With `--raw`: lines about the exceptions of the connector's code."""


class TriedRecord(TypedDict):
    key: str
    source: str
    lines: list[int]
    record: Columns
    """Values by column, or by JSON pointer."""
    draft: Columns | None
    """Values by member."""
    problem: Problem | None


class Recording(TypedDict):
    folder: str
    requests: int
    replaced: Any


class Trial(TypedDict):
    stream: str
    records: list[TriedRecord]
    filtered: dict[str, int]
    """Rows, by filter."""
    deleted: int
    empty_columns: list[str]
    error: str | None
    messages: list[Message]
    """The same error."""
    recording: NotRequired[Recording]
    """With `--record`."""
    raised: NotRequired[list[str]]
    """With `--raw`: lines about the exceptions of the connector's code."""


class Explanation(TypedDict):
    code: str
    page: str
    """The explanation, as Markdown."""


class Purged(TypedDict):
    dry_run: bool
    before: Instant
    """Data that ended before this time is removed."""
    operations_removed: int
    operations_emptied: int
    dead_letters_emptied: int
    runs_removed: int
    nights_removed: int
    """Scheduled runs."""
    files_removed: int
    snapshots_removed: int
    files_out_removed: int
    """Files that were handed over."""
    audit_entries_removed: int


class Restored(TypedDict):
    restored: bool
    unverified: int


class Readmitted(TypedDict):
    readmitted: int


class SetAsideInput(TypedDict):
    stream: str
    name: str
    killed: int
    """How many processes were killed while they read it."""
    here: int
    """How many of them in a row at the same place."""
    batches: int
    """The place: how many batches were read before it."""
    at: Instant
    set_aside_at: Instant | None


class SetAside(TypedDict):
    set_aside: list[SetAsideInput]


class Table(TypedDict):
    name: str
    rows: int
    size: int
    """The size of its rows in bytes, without indexes; on SQLite an estimate."""


class UnsettledOperation(TypedDict):
    stream: str
    status: str
    since: Instant


class Stats(TypedDict):
    size: int
    """Bytes on disk."""
    free: int | None
    """Unused bytes; null on PostgreSQL."""
    tables: list[Table]
    bindings: dict[str, int]
    """By resource."""
    unsettled: dict[str, int]
    """Operations that are not settled, by state."""
    oldest: UnsettledOperation | None
    """The oldest one; null if there is none."""


class Compacted(TypedDict):
    before: int
    """Bytes on disk."""
    after: int


class Subscription(TypedDict):
    id: str
    topic: str
    address: str
    active: bool


class NewClient(TypedDict):
    client_id: str
    client_secret: str
    tenant: str
    scopes: list[str]


class NewKey(TypedDict):
    id: str
    tenant: str
    scopes: list[str]
    api_key: str


class Credential(TypedDict):
    id: str
    tenant: str
    scopes: list[str]
    createdAt: Instant


class Revoked(TypedDict):
    revoked: str
    """The id."""


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
