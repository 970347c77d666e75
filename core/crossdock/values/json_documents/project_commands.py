"""The documents of commands that make, check and try a project."""

from typing import Any, NotRequired, TypedDict

from crossdock.values.json_documents.parts_of_several_documents import Columns, Message


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
