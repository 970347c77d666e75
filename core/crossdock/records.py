"""What travels: raw rows with their provenance, keys as text, and why a record was refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import quote

import polars as pl

from crossdock import exact_json
from crossdock.errors import RefusedError
from crossdock.printable import is_storable, printable

Reason = Literal[
    "key_missing",  # a row without its key columns
    "rows_disagree",  # rows of one record differ where they must agree
    "bad_value",  # a cell is not what the mapping declares
    "mapping_failed",  # the code of the mapping raised an exception other than RecordError
    "invalid_draft",  # the mapped record breaks a rule of its resource
    "changed_after_delivery",  # a write-once record reads differently now
    "rejected",  # the target says the record is wrong
    "forbidden",  # the target does not let our credential write this record
    "conflict",  # the target has another record of this name, or others change it all the time
    "missing_reference",  # it waited for a record until a person gave it up
    "in_doubt",  # it may have been delivered, and a person gave it up
    "missing",  # the target has the record no longer
]
REASONS: frozenset[str] = frozenset(get_args(Reason))

LINE = "_line"  # line or position in its file or page, from 1
JSON = "_json"  # canonical text of a record that came as JSON

Again = Callable[[Sequence[int] | None], Iterator[pl.DataFrame]]
"""Reads a source again: the rows that begin at these lines (ascending), or all of them; in their order."""


def key_text(parts: Sequence[str]) -> str:
    """The text form of a record key: each part percent-encoded (RFC 3986 unreserved stay), joined by ``|``."""
    return "|".join(quote(part, safe="") for part in parts)


@dataclass(frozen=True, slots=True)
class Proof:
    """What a source knows of a snapshot's wholeness.

    Attributes:
        content: Names what was read: the same name on another day is the same snapshot again. Only asked when something
            may be removed, and when a run remembers the snapshot.
        counted: The source told how many rows there must be, and so many there are.
        cut: It ends as what was cut ends: in the middle of a line.
    """

    content: Callable[[], str]
    counted: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class RawBatch:
    """Some rows of one file or page, as they came.

    Attributes:
        source: Name of the file or page, for provenance; what could not be seen of it is escaped.
        rows: Text columns and `LINE` (UInt64); in a file's case possibly the path of an Arrow file that holds them.
        cursor: Where an incremental stream goes on once this batch and all before it are settled.
        proof: Of a snapshot, in every batch of it.
        again: Reads the source again, as often as one likes until the run ends; the same in every batch of it. Without
            it, what is needed later is kept.

    Raises:
        RefusedError: If the state cannot keep *cursor* as it is, since the source must be asked with it again.
    """

    source: str
    rows: pl.DataFrame | Path
    cursor: str | None = None
    proof: Proof | None = None
    again: Again | None = None

    def __post_init__(self) -> None:
        if isinstance(self.cursor, str) and not is_storable(self.cursor):
            hint = "it holds NUL or half a character: have the source mended, or make the cursor of something else"
            raise RefusedError("its cursor cannot be kept", where=self.source, hint=hint)
        if isinstance(self.source, str):  # else what pulls it says so
            object.__setattr__(self, "source", printable(self.source))

    @classmethod
    def json(
        cls, items: Iterable[dict[str, Any]], *, source: str, key: Sequence[str], cursor: str | None = None
    ) -> RawBatch:
        """Rows from JSON objects: the columns *key* as text (null where missing), and the whole object."""
        listed = list(items)
        columns = {name: [_key_part(item.get(name)) for item in listed] for name in key}
        columns[JSON] = [exact_json.dumps(item).decode() for item in listed]
        frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
        return cls(source, frame.with_row_index(LINE, offset=1).cast({LINE: pl.UInt64}), cursor)

    def load(self) -> pl.DataFrame:
        return kept(self.rows) if isinstance(self.rows, Path) else self.rows


def kept(path: Path) -> pl.DataFrame:
    """The rows of an Arrow file; polars itself would take a star or a bracket in the path for a pattern."""
    with path.open("rb") as file:
        return pl.read_ipc(file)


def _key_part(value: object) -> str | None:
    return value if isinstance(value, str) or value is None else exact_json.dumps(value).decode()


@dataclass(frozen=True, slots=True)
class Record:
    """One external item: its rows, and where they stood.

    Attributes:
        rows: One mapping of column to text for each row, in the order of the source.
        lines: The line of each row in *source*.
    """

    key: str
    rows: tuple[dict[str, str | None], ...]
    source: str
    lines: tuple[int, ...]

    @property
    def row(self) -> dict[str, str | None]:
        """The first row; all there is of a record that is not grouped."""
        return self.rows[0]

    def copy(self) -> Record:
        """The same record, with rows of its own that may be changed."""
        return Record(self.key, tuple([dict(row) for row in self.rows]), self.source, self.lines)

    def json(self) -> Any:
        """The object that came, of a record that came as JSON."""
        return exact_json.loads(self.row[JSON] or "null")

    def raw(self) -> dict[str, Any]:
        """A compact form that the state keeps, and `restored` reads; empty of a record that has no rows any more."""
        if not self.rows:
            return {}
        columns = list(self.row)
        return {
            "columns": columns,
            "rows": [[row[name] for name in columns] for row in self.rows],
            "lines": list(self.lines),
        }

    @classmethod
    def restored(cls, key: str, source: str, raw: dict[str, Any]) -> Record:
        rows = tuple(dict(zip(raw["columns"], cells, strict=True)) for cells in raw["rows"])
        return cls(key, rows, source, tuple(raw["lines"]))
