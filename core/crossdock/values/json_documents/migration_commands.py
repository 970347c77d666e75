"""The documents of commands that move a legacy system once, and compare it."""

from typing import Any, Literal, NotRequired, TypedDict

from crossdock.values.json_documents.plans_and_runs import (
    Forecast,
    Instant,
    Message,
    Open,
    Records,
    Report,
    Rows,
    Tally,
)


class RehearsedWave(TypedDict):
    name: str
    streams: list[str]
    requests: int
    begins_at: Instant | None
    ends_at: Instant | None
    """Null if the rate limit is unknown."""
    seconds: float | None


class RejectedExample(TypedDict):
    key: str
    at: str
    pointer: str | None
    message: str


class RejectedRecords(TypedDict):
    records: int
    examples: list[RejectedExample]


class RepeatedKey(TypedDict):
    key: str
    at: list[str]


class UnresolvedExample(TypedDict):
    key: str
    references: int
    why: str


class Unresolved(TypedDict):
    resource: str
    namespace: str
    references: int
    records: int
    """How many different records are referred to."""
    why: dict[str, int]
    """Records, by reason."""
    examples: list[UnresolvedExample]


class Match(TypedDict):
    key: str
    id: str | None
    message: NotRequired[str]


class Matched(TypedDict):
    one: int
    several: int
    none: int


class Conflicts(TypedDict):
    records: int
    examples: list[str]
    """Keys."""


class ProfiledCell(TypedDict):
    at: str
    value: NotRequired[str | None]
    """With `--raw`."""


class CellFinding(TypedDict):
    cells: int
    examples: list[ProfiledCell]


class ProfiledColumn(TypedDict):
    name: str
    filled: int
    distinct: int
    distinct_is_estimate: bool
    whole: int
    """Cells that are whole numbers."""
    decimal: int
    """Cells that are decimal numbers."""
    dates: Any
    shortest: int | None
    """In characters."""
    longest: int | None
    lengths: dict[str, int]
    """Cells, by length."""
    findings: dict[str, CellFinding]
    """What is odd about cells."""
    smallest: NotRequired[Any]
    """With `--raw`."""
    largest: NotRequired[Any]
    """With `--raw`."""


class Profile(TypedDict):
    rows: int
    has_more_columns: bool
    columns: list[ProfiledColumn]


class RehearsedStream(Tally):
    """A stream of a rehearsal: a tally, and what follows."""

    wave: str
    rejected_by_reason: dict[str, RejectedRecords]
    """By reason code."""
    rejected_before: int
    repeated_keys: int
    repeated_examples: list[RepeatedKey]
    unresolved: list[Unresolved]
    """References to records that will not be there."""
    waiting: int
    in_doubt: int
    on_hold: int
    already_there: int | None
    """Records that the platform has already; null without `--against-platform`."""
    already_there_examples: list[Match]
    matched: Matched | None
    """Records for which `adopt` finds one record of the platform, several, or none."""
    take_over_examples: list[Match]
    ambiguous_examples: list[Match]
    conflicts: Conflicts | None
    """Records that others have changed."""
    profile: Profile | None
    joined_profiles: dict[str, Profile]
    """By look-up or join."""


class Rehearsal(TypedDict):
    migration: str
    tenant: str
    began_at: Instant
    ends_at: Instant | None
    requests: int
    waves: list[RehearsedWave]
    streams: dict[str, RehearsedStream]
    forecast: Forecast
    other_forecasts: dict[str, Forecast]
    """By target."""
    warnings: list[str]
    errors: dict[str, str]
    """By stream."""
    messages: list[Message]
    """The same errors."""


class Gate(TypedDict):
    state: Literal["open", "closed", "waits for a person", "approved"]
    """`open`: it has passed."""
    why: str


class Wave(TypedDict):
    wave: str
    streams: list[str]
    state: Literal["not begun", "running", "incomplete", "done"]
    run: int | None
    run_status: str | None
    at: Instant | None
    records: int
    delivered: int
    open: Open
    gate: Gate | None


class LoadedWave(Wave):
    report: Report


class Load(TypedDict):
    runs: list[LoadedWave]
    ended_at: str | None
    """The wave at which it ended; null if all are loaded."""
    error: str | None
    messages: list[Message]
    """The same error."""


class Migration(TypedDict):
    name: str
    started_at: Instant
    started_by: str
    paused_at: Instant | None
    paused_by: str | None
    freeze: Any
    """As `migrate freeze` printed it; null before."""
    reconciliation: Any
    """As `migrate reconcile` printed it, without records; null before."""
    signed_off_at: Instant | None
    signed_off_by: str | None
    report_sha256: str | None


class Status(TypedDict):
    migration: Migration | None
    """Null before one began."""
    rehearsed: bool
    """Whether a rehearsal was given."""
    requests_left: int | None
    """Null without a rehearsal."""
    seconds_left: int | None
    """Null without a rehearsal."""
    taken_per_s: float | None
    """Requests that the targets took in the last minute; null if the allowance is what limits them."""
    next: str | None
    """A wave; null if all are done."""
    waves: list[Wave]


class Totals(TypedDict):
    records: int
    quantity: Any
    """An exact number."""
    amounts: dict[str, Any]
    """Exact numbers, by currency."""


class DifferingTotal(TypedDict):
    resource: str
    name: str
    currency: str | None
    source: Any
    platform: Any


class Sides(TypedDict):
    source: Totals
    state: Totals
    platform: Totals
    differing: list[DifferingTotal]


Differences = TypedDict("Differences", {"resource": str, "class": str, "records": int})


class Repair(TypedDict):
    operations: dict[str, int]
    """Requests, by kind."""
    corrections: int
    """Corrections of the state."""


ShownDifference = TypedDict(
    "ShownDifference",
    {
        "class": str,
        "resource": str,
        "namespace": str,
        "key": str | None,
        "at": str | None,
        "id": str | None,
        "members": list[str],
        "remark": str,
    },
)


class Sample(TypedDict):
    compared: int
    of: int
    differing_at_most: float
    """The largest share that may differ."""
    confidence: float


class Reconciliation(TypedDict):
    at: Instant
    compared: dict[str, int]
    """Records, by resource."""
    differences: list[Differences]
    totals: dict[str, Sides]
    """By resource."""
    kept: dict[str, int]
    """By stream."""
    unavailable: dict[str, int]
    """By stream."""
    sources: dict[str, str]
    """A hash of what each stream read."""
    requests: int
    repair: Repair
    shown: list[ShownDifference]
    """The first records, as many as `--limit` says. `at` is the place of a row without a key."""
    errors: dict[str, str]
    """By stream."""
    messages: list[Message]
    """The same errors."""
    sample: NotRequired[dict[str, Sample]]
    """With `--sample`, by resource."""


class Freeze(TypedDict):
    at: Instant
    since: Instant
    """When the present content was first read."""
    waited_s: int
    sources: dict[str, str]
    """A hash of what each stream read."""
    newest_files: NotRequired[dict[str, Instant]]
    """When the newest content of each stream of files was written; not in a check that an earlier version made."""


class SignOff(TypedDict):
    name: str
    signed_off_at: Instant
    signed_off_by: str
    accepted_exceptions: str | None
    """The reason; null without exceptions."""
    report: str
    """Its file."""
    sha256: str


class Verified(TypedDict):
    sha256: str
    name: str | None
    """Null without a config, as the following."""
    signed_off_at: Instant | None
    signed_off_by: str | None


class Signature(TypedDict):
    name: str
    tenant: str
    base_url: str
    started_at: Instant
    started_by: str
    signed_off_at: Instant
    signed_off_by: str
    accepted_exceptions: str | None
    """The reason; null without exceptions."""


class SignedGate(TypedDict):
    state: str | None
    why: str | None
    rejected_at_most: int | None
    rejected_at_most_percent: Any
    person: bool


class GateApproval(TypedDict):
    at: Instant
    by: str
    open: Open


class SignedWave(TypedDict):
    wave: str
    streams: list[str]
    state: str
    records: int
    delivered: int
    open: Open
    gate: SignedGate
    approval: GateApproval | None


class SignedTally(TypedDict):
    rows: Rows
    records: Records


class SignedRun(TypedDict):
    run: int
    kind: Literal["load", "repair", "undo"]
    wave: str | None
    started_at: Instant
    ended_at: Instant | None
    status: str
    requests: int
    throttled: int
    streams: dict[str, SignedTally]


class DeadLetters(TypedDict):
    stream: str
    code: str
    """One of the reason codes."""
    records: int
    places: list[str]
    """Files with lines, at most 100."""


WaitingRecords = TypedDict("WaitingRecords", {"stream": str, "for": str, "records": int})


class Exceptions(TypedDict):
    differences: list[Differences]
    rejected: list[DeadLetters]
    dropped: list[DeadLetters]
    waiting: list[WaitingRecords]
    """`for` has the resources that they wait for."""
    kept: dict[str, int]
    """Records, by stream."""
    unavailable: dict[str, int]
    """Records whose source cannot be read any more, by stream: only the state and the platform were compared."""
    without_file: list[str]
    """Streams of which no file was read, at least since they were undone."""


class ImportedFile(TypedDict):
    stream: str
    name: str
    size: int
    sha256: str
    modified_at: Instant
    imported_at: Instant


class SignOffReport(TypedDict):
    """The line of JSON in the report that `migrate sign-off` writes."""

    format: str
    crossdock: str
    """The version."""
    migration: Signature
    rehearsal: Any
    """Null without one."""
    waves: list[SignedWave]
    runs: list[SignedRun]
    reconciliation: Any
    """As `migrate reconcile` printed it, without records and without `differing`. Null if no stream can be compared."""
    freeze: Freeze | None
    sources: dict[str, str]
    """A hash of what each stream read at the sign-off."""
    exceptions: Exceptions
    already_there: dict[str, int]
    """Operations that wrote nothing, by stream."""
    files: list[ImportedFile]
