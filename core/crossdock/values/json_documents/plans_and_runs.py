"""The documents of commands that plan, start and show runs, and what several documents have in common."""

from datetime import date, datetime
from typing import Any, Literal, NotRequired, TypedDict

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


class Shown(TypedDict):
    """A record of a plan."""

    do: str
    """What would be done, such as `create`, `update`, `resend`, `reject`, `wait` or `hold`."""
    stream: str
    key: str
    changes: NotRequired[Columns]
    """Of a request: `before` and `after` of each member."""
    removal: NotRequired[str]
    """Of a removal that needs approval: how the record would be removed."""
    waits_for: NotRequired[list[Columns]]
    """Of a record that waits: the records that it refers to."""
    idempotency_key: NotRequired[str]
    """Of an operation that is stored already."""
    code: NotRequired[str]
    """Of a rejected record: one of the reason codes."""
    at: NotRequired[str]
    """Of a rejected record: its file and line, or its address."""
    pointer: NotRequired[str | None]
    message: NotRequired[str]


class PlannedFile(TypedDict):
    target: str
    name: str
    records: int


class Plan(TypedDict):
    operations: dict[str, int]
    """Requests, by kind."""
    forecast: Forecast
    """How long the requests to the platform take."""
    files: list[PlannedFile]
    """The files that targets would be given."""
    other_forecasts: dict[str, Forecast]
    """By target."""
    streams: dict[str, Tally]
    rejected_before: dict[str, int]
    """Records that are rejected and have not changed since, by stream."""
    left_alone: dict[str, int]
    """Records that their source does not list any more and that stay as they are, by stream."""
    on_hold: dict[str, int]
    """Updates and removals that need approval, by stream."""
    shown: list[Shown]
    """The first records, as many as `--limit` says."""
    errors: dict[str, str]
    """By stream."""
    messages: list[Message]
    """The same errors."""


class ReadFile(TypedDict):
    name: str
    rows: int | None
    """Null if its content was known, so that it was not read again."""


class NewestFile(TypedDict):
    name: str
    modified_at: Instant


class StreamOfRun(Tally):
    """A stream of a run: a tally, and what follows."""

    open: NotRequired[Open]
    """The open records of the stream at the end of the run."""
    notes: list[str]
    """The warnings and notes about the stream."""
    input: NotRequired[Literal["new", "unchanged", "none"]]
    """Of a stream of files: whether files with new content came, only known ones, or none."""
    files: NotRequired[list[ReadFile]]
    """Of a stream of files: at most 100 of the files that it read."""
    more_files: NotRequired[int]
    newest_file: NotRequired[NewestFile | None]


class ResultOfRun(TypedDict):
    run: int
    business_date: Date
    seconds: float | None
    """The duration; null of a run that was killed."""
    requests: int
    throttled: int
    """Requests that were refused because of the rate limit."""
    balanced: bool | None
    """Whether each tally balances; null for a partial one, or without a tally."""
    open: Open | None
    """The open records of all streams at the end; null of a run that was killed."""
    streams: dict[str, StreamOfRun]
    errors: dict[str, str]
    """By stream, and `run` for the run itself."""
    messages: list[Message]
    """The same errors, with warnings and notes."""


class Report(ResultOfRun):
    """A run that has ended."""

    status: Literal["done", "degraded", "incomplete", "failed"]
    apis: dict[str, ApiUsage]
    """Requests to the APIs of sources, by connection."""


class Run(ResultOfRun):
    """A run as the state has it."""

    status: Literal["running", "done", "degraded", "incomplete", "failed"]
    job: str | None
    command: str | None
    """What started a run of no job."""
    started_at: Instant
    tenant: NotRequired[str]
    """With `--fleet`."""


class Step(TypedDict):
    step: str
    seconds: float
    percent: float


class Allowance(TypedDict):
    lowest: int
    highest: int
    seconds_below_a_quarter: float


class Reason(TypedDict):
    stream: str
    code: str
    records: int
    """Records of this run and earlier ones."""
    own: int
    """Records of this run."""


class ChangedMember(TypedDict):
    stream: str
    member: str
    updates: int


class ChangedMembers(TypedDict):
    operations: int
    """How many updates were looked at."""
    are_all: bool
    members: list[ChangedMember]


class ShownRun(Run):
    slowest_steps: NotRequired[list[Step]]
    allowance: NotRequired[Allowance | None]
    apis: NotRequired[dict[str, ApiUsage]]
    operations: dict[str, int] | None
    """Operations by state, of a run without a tally."""
    rejected_by_reason: list[Reason]
    changed_members: ChangedMembers


class StoppedRun(TypedDict):
    run: int


class EndedUndo(TypedDict):
    streams: list[str]
    unsent: int
    """Operations that were not sent."""
    unanswered: int
    """Operations that were sent without an answer. The next run settles them."""


class Approval(TypedDict):
    stream: str
    number: int
    what: str
    """Such as `removals` or `updates`."""
    since: Instant
    approved_at: Instant | None


class KeptRecords(TypedDict):
    stream: str
    reason: str
    records: int


class UndoneRecord(TypedDict):
    do: str
    """One of the words in `streams`."""
    stream: str
    key: str
    id: str | None
    members: list[str]
    reason: str


class UndoPlan(TypedDict):
    undone: str
    runs: list[int]
    operations: dict[str, int]
    """Requests, by kind."""
    streams: dict[str, dict[str, int]]
    """By stream, the number of records for `delete`, `restore`, `left alone` and `impossible`."""
    kept: list[KeptRecords]
    """Records that stay as they are."""
    shown: list[UndoneRecord]
    """The first records, as many as `--limit` says."""


class Number(TypedDict):
    number: int
    before: int
    """In the month before."""


class JobTimes(TypedDict):
    job: str
    degraded_s: int
    outages: int
    longest_outage_s: int
    longest_outage_from: Instant | None


class Day(TypedDict):
    business_date: Date
    runs: int
    delivered: int
    rejected: int
    requests: int
    throttled: int
    open: int | None
    """Open records at its end; null if unknown."""


class CalendarDay(TypedDict):
    job: str | None
    """Null for runs that were started by hand."""
    business_date: Date
    status: str
    """As of a run, or `missed`."""
    runs: int
    run: int | None
    """The newest one."""
    remarks: list[str]


class LateFile(TypedDict):
    job: str
    business_date: Date
    run: int
    stream: str
    name: str
    due: Instant
    came: Instant | None
    """Null if it did not come."""


class Month(TypedDict):
    month: str
    until: Date
    runs_since: Instant | None
    """Since when all runs are counted, if retention has removed earlier ones of this month or the one before."""
    totals: dict[str, Number]
    delivered: dict[str, Number]
    """By resource."""
    rejected_now: dict[str, Number]
    """By reason code."""
    jobs: list[JobTimes]
    days: list[Day]
    calendar: list[CalendarDay]
    late_files: list[LateFile]
    late_files_since: Instant | None
    """Since when the files that were read are looked at, if they are more than 50,000."""


class ScheduledRun(TypedDict):
    job: str
    business_date: Date
    due: Instant
    status: str
    run: int | None
    attempts: int
    note: str | None
    """The errors as one text, or why there was no run."""
    messages: list[Message]


class Jobs(TypedDict):
    paused: list[str]
    """The jobs that are paused."""
    nights: list[ScheduledRun]
    """The newest runs first."""


class DueRun(TypedDict):
    job: str
    business_date: Date
    begins: Instant
    expected_end: Instant | None
    """Null if the job has not run yet."""
    expected_requests: int | None
    tenant: NotRequired[str]
    """With `--fleet`."""


class Demo(TypedDict):
    folder: str
    runs: list[Report]
    effects: NotRequired[dict[str, int]]
    """Without `--shop` and `--warehouse`: what the platform did, by kind."""
    orders: NotRequired[list[Any]]
    """With `--shop` or `--warehouse`: what became of each order."""
