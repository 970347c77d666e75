"""Raw rows with their origin, records with keys as text, and reasons for refusing a record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import quote, unquote

import polars as pl

from crossdock import exact_json
from crossdock.errors import RefusedError
from crossdock.printable import is_storable, printable

Reason = Literal[
    "key_missing",  # a row without its key columns
    "rows_disagree",  # rows of one record differ where they must agree
    "unmatched",  # a look-up or join found no row, or joined rows have no record
    "bad_value",  # a cell is not what the mapping declares
    "mapping_failed",  # the code of the mapping raised an exception other than RecordError
    "invalid_draft",  # the mapped record breaks a rule of its resource
    "changed_after_delivery",  # a write-once record reads differently now
    "rejected",  # the target says the record is wrong
    "forbidden",  # the target does not let our credential write this record
    "conflict",  # the target has another record of this name, or others keep changing it
    "missing_reference",  # it waited for a record until an operator dropped it
    "in_doubt",  # it may have been delivered; an operator dropped it
    "missing",  # the target no longer has the record
]
REASONS: frozenset[str] = frozenset(get_args(Reason))

LINE = "_line"  # line or position in its file or page, from 1
JSON = "_json"  # canonical text of a record that was read as JSON

Again = Callable[[Sequence[int] | None], Iterator[pl.DataFrame]]
"""Reads a source again, in file order: the rows that begin at these lines (ascending), or all of them."""


def key_text(parts: Sequence[str]) -> str:
    """The text form of a record key: each part percent-encoded (RFC 3986 unreserved stay), joined by ``|``."""
    return "|".join(quote(part, safe="") for part in parts)


@dataclass(frozen=True, slots=True)
class Proof:
    """What a source knows about the completeness of a snapshot.

    Attributes:
        content: Returns a name of the content: the same name on another day is the same snapshot. Called only when
            records may be removed, and when a run remembers the snapshot.
        counted: The source states the number of rows, and it is right.
        cut: It ends in the middle of a line, as a truncated file does.
    """

    content: Callable[[], str]
    counted: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class RawBatch:
    """Some rows of one file or page, as they were read.

    Attributes:
        source: Name of the file or page; invisible characters are escaped.
        rows: Text columns and `LINE` (UInt64); of a file possibly the path of an Arrow file that holds them.
        cursor: Where an incremental stream continues once this batch and all before it are settled.
        proof: For a snapshot, the same in every batch of it.
        again: Reads the source again, repeatedly until the run ends; the same in every batch of it. Without it, the
            engine keeps the rows that it may need later.

    Raises:
        RefusedError: If the state cannot store *cursor*.
    """

    source: str
    rows: pl.DataFrame | Path
    cursor: str | None = None
    proof: Proof | None = None
    again: Again | None = None

    def __post_init__(self) -> None:
        if isinstance(self.cursor, str) and not is_storable(self.cursor):
            hint = "it contains NUL or a lone surrogate: correct the source, or use another value as the cursor"
            raise RefusedError("its cursor cannot be stored", where=self.source, hint=hint)
        if isinstance(self.source, str):  # the engine reports other types
            object.__setattr__(self, "source", printable(self.source))

    @classmethod
    def json(
        cls, items: Iterable[dict[str, Any]], *, source: str, key: Sequence[str], cursor: str | None = None
    ) -> RawBatch:
        """Rows from JSON objects: the columns *key* as text (null if missing), and the whole object."""
        listed = list(items)
        columns = {name: [_key_part(item.get(name)) for item in listed] for name in key}
        columns[JSON] = [exact_json.dumps(item).decode() for item in listed]
        frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
        return cls(source, frame.with_row_index(LINE, offset=1).cast({LINE: pl.UInt64}), cursor)

    def load(self) -> pl.DataFrame:
        return kept(self.rows) if isinstance(self.rows, Path) else self.rows


def kept(path: Path) -> pl.DataFrame:
    """The rows of an Arrow file; polars would treat a star or bracket in its path as a pattern."""
    with path.open("rb") as file:
        return pl.read_ipc(file)


def _key_part(value: object) -> str | None:
    return value if isinstance(value, str) or value is None else exact_json.dumps(value).decode()


@dataclass(frozen=True, slots=True)
class Record:
    """One external item: its rows and their origin.

    Attributes:
        rows: A mapping of column to text for each row, in source order.
        lines: The line of each row in *source*.
    """

    key: str
    rows: tuple[dict[str, str | None], ...]
    source: str
    lines: tuple[int, ...]

    @property
    def key_parts(self) -> tuple[str, ...]:
        """The texts of the key columns, as a `crossdock.Reference` takes them."""
        return tuple(unquote(part) for part in self.key.split("|"))

    @property
    def row(self) -> dict[str, str | None]:
        """The first row; the only one of a record that is not grouped."""
        return self.rows[0]

    def copy(self) -> Record:
        """A copy whose rows may be changed."""
        return Record(self.key, tuple([dict(row) for row in self.rows]), self.source, self.lines)

    def json(self) -> Any:
        """The object of a record that was read as JSON."""
        return exact_json.loads(self.row[JSON] or "null")

    def joined(self, name: str) -> tuple[dict[str, str | None], ...]:
        """The rows of join *name*, in the order of their files and lines."""
        return tuple(exact_json.loads(self.row[name] or "[]"))

    def raw(self) -> dict[str, Any]:
        """A compact form for the state, read by `restored`; empty if the record has no rows any more."""
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
