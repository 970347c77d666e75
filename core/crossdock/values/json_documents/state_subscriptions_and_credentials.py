"""The documents of commands about the state, subscriptions and the sandbox's credentials."""

from typing import TypedDict

from crossdock.values.json_documents.parts_of_several_documents import Instant


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
