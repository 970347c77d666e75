"""Raw rows with their origin, records with keys as text, and reasons for refusing a record."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import polars as pl
import polars.selectors as cs

from crossdock.errors import RecordError, RefusedError
from crossdock.printable import is_storable, printable
from crossdock.values import exact_json, json_paths
from crossdock.values.json_access import JsonAccess, JsonElement
from crossdock.values.json_paths import json_value_as_column_text, value_at_path_or_missing
from crossdock.values.record_keys import key_parts_of

Reason = Literal[
    "key_missing",  # a row without its key columns
    "unreadable",  # a part of a file that is damaged and has no rows, such as a set of an EDI interchange
    "rows_disagree",  # rows of one record differ where they must agree
    "unmatched",  # a look-up or join found no row, or joined rows have no record
    "bad_value",  # a cell is not what the mapping declares
    "mapping_failed",  # the code of the mapping raised an exception other than RecordError
    "target_failed",  # the code of the target raised an exception, before anything was sent
    "invalid_draft",  # the mapped record breaks a rule of its resource
    "changed_after_delivery",  # a write-once record reads differently now
    "rejected",  # the target says the record is wrong
    "forbidden",  # the target does not let our credential write this record
    "conflict",  # the target has another record of this name, or others keep changing it
    "ambiguous_match",  # several records of the platform may be this one, or another record has taken the only one
    "missing_reference",  # it waited for a record for too long, or until an operator dropped it
    "referenced_by",  # it is gone from its source and not deleted, because other records refer to it
    "in_doubt",  # it may have been delivered; an operator dropped it
    "missing",  # the target no longer has the record
]
"""Why a record is a dead letter; ``crossdock explain`` says more."""
REASONS: frozenset[str] = frozenset(get_args(Reason))
"""All values of `Reason`."""

LINE = "_line"  # line or position in its file or page, from 1
JSON = "_json"  # canonical text of a record that was read as JSON
ELEMENT = "_element"
"""JSON pointer of the list element that a row was made of, in the object as it was read; for a row of a file, an empty
text. Null in a row that stands for an object or record without elements."""
RESERVED = (LINE, JSON, ELEMENT)
"""Columns of rows beside those of their source, which therefore cannot have these names."""
_OWN = "\x1d"
REFUSED = f"{_OWN}refused"
"""A column of rows that stand for a part of a file that was refused: why, else empty. Such a row has no other cells."""
MAX_EXPLODED = 256 << 20  # bytes of the rows of one page: each row repeats what surrounds the list
_ROW_BYTES = 512  # of a row, besides its text

Empty = Literal["refuse", "all_gone", "no_change"]
"""What an empty export is: no evidence of anything, a list of everything that has nothing, or no change."""
Again = Callable[[Sequence[int] | None], Iterator[pl.DataFrame]]
"""Reads a source again, in file order: the rows that begin at these lines (ascending), or all of them."""


def internal_column_name(name: str) -> str:
    """Return the name of a column that crossdock adds to rows while it works; no source has such a name."""
    return _OWN + name


def record_number_column(key: Iterable[str]) -> str:
    """Return the column of rows with the number of the record of its file that all their cells of *key* are of.

    Such a record has all rows of its key, so that another one in the file is another version; a row with an empty cell
    is of none. Formats without records of several rows have no such column.
    """
    return internal_column_name("\x1e".join(["record of", *key]))


def is_internal_column(column: str) -> bool:
    return column.startswith(_OWN)


def is_reserved_column(name: str) -> bool:
    """Return whether no column of a source, and no path in JSON, may have this name."""
    return name in RESERVED or is_internal_column(name)


def letters_of_column_name(name: str) -> str:
    """Return the letters and digits of *name*, by which its notations are recognized."""
    return re.sub(r"[\W_]", "", name).casefold()


def column_expression_by_exact_name(name: str) -> pl.Expr:
    """Return the column with exactly this *name*: ``pl.col`` reads ``*`` and ``^...$`` as patterns of names."""
    return cs.by_name(name).as_expr()


def column_expressions_by_exact_names(names: Iterable[str]) -> list[pl.Expr]:
    return [column_expression_by_exact_name(name) for name in names]


def cells_of_column(rows: pl.DataFrame, name: str) -> pl.Series:
    """Return the cells of that column without its name, which most methods of a series read as a pattern, too."""
    return rows[name].alias("")


@dataclass(frozen=True, slots=True)
class Proof:
    """The facts of a source about the completeness of a snapshot.

    Attributes:
        content: Returns a name of the content: the same name on another day is the same snapshot. Called only when
            records may be removed, and when a run remembers the snapshot.
        counted: Whether the source states the number of rows, and the number is right.
        cut: Whether it ends in the middle of a line, as a truncated file does.
        export: A text that distinguishes exports of the same content, such as the name and time of a file; may be
            empty.
        unread: What was not read and may belong to the snapshot, such as ``S_1.zip/BRE.CSV``; empty if there is nothing
            of the kind. Nothing is gone then unless a person approves. It may be known with the last batch only.
    """

    content: Callable[[], str]
    counted: bool = False
    cut: bool = False
    export: str = ""
    unread: str = ""


@dataclass(frozen=True, slots=True)
class RawBatch:
    """Some rows of one file or page, as they were read.

    Attributes:
        source: Name of the file or page; invisible characters are escaped.
        rows: Text columns and `LINE` (UInt64); for a file, it may be the path of an Arrow file with them.
        cursor: Where an incremental stream continues once this batch and all before it are settled.
        proof: For a snapshot, the same in every batch of it, except for what was not read.
        again: Reads the source again, repeatedly until the run ends; the same in every batch of it. Without it, the
            engine keeps the rows that it may need later.
        deleted: The keys of records that the source has deleted, each as the texts of the key columns; None where there
            is none. A row of the same batch or a later one shows that the record exists again.
        left_out: What was read and has no row, with its number, for the tally of the run.

    Raises:
        RefusedError: If the state cannot store *cursor*.
    """

    source: str
    rows: pl.DataFrame | Path
    cursor: str | None = None
    proof: Proof | None = None
    again: Again | None = None
    deleted: tuple[tuple[str | None, ...], ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.cursor, str) and not is_storable(self.cursor):
            hint = "it contains NUL or a lone surrogate: correct the source, or use another value as the cursor"
            raise RefusedError("its cursor cannot be stored", where=self.source, hint=hint, code="connector_rows_wrong")
        if isinstance(self.source, str):  # the engine reports other types
            object.__setattr__(self, "source", printable(self.source))

    @classmethod
    def json(
        cls,
        items: Iterable[Any],
        *,
        source: str,
        key: str | Sequence[str] = (),
        cursor: str | None = None,
        explode: str | None = None,
        keeps_empty: bool = False,
        deleted: Iterable[Any] = (),
    ) -> RawBatch:
        """Make rows from JSON objects, with a column for every dotted path that the stream declares.

        Args:
            items: Objects; anything else is a row without a key.
            key: Paths to make columns of at once. Those of the stream need not be repeated.
            explode: Path of a list: each element becomes a row with the members of its object, in which the element
                takes the place of the list. An empty list or null gives no row, and is counted; an object without
                a list is kept as a row.
            keeps_empty: An object whose list is empty or null is kept as a row, too, in which the list is null.
            deleted: The keys of records that the source has deleted: texts or whole numbers, or lists of them where the
                key has several parts. The stream declares ``yields_deleted``.

        Raises:
            RefusedError: If *explode* gives more than 256 MiB.
            TypeError: If *items* is one object or a text.
        """
        if isinstance(items, str | bytes | Mapping):
            raise TypeError("the items are a list of objects, not one object or a text")
        paths = (key,) if isinstance(key, str) else tuple(key)
        keys = tuple(
            tuple(map(json_value_as_column_text, each if isinstance(each, list | tuple) else [each]))
            for each in deleted
        )
        rows, empty = _rows_and_number_of_empty_items(items, source, paths, explode, keeps_empty=keeps_empty)
        left_out = {f"record without elements in {explode}": empty} if empty else {}
        return cls(source, rows, cursor, deleted=keys, left_out=left_out)

    def load(self) -> pl.DataFrame:
        return read_arrow_file(self.rows) if isinstance(self.rows, Path) else self.rows


def read_arrow_file(path: Path) -> pl.DataFrame:
    """Read the rows of an Arrow file. polars would treat a star or bracket in its path as a pattern."""
    with path.open("rb") as file:
        return pl.read_ipc(file)


def _rows_and_number_of_empty_items(
    items: Iterable[Any],
    source: str,
    paths: Sequence[str],
    explode: str | None,
    *,
    keeps_empty: bool,
) -> tuple[pl.DataFrame, int]:
    """Return the rows of *items*, and how many items have none because their list is empty."""
    columns: dict[str, list[str | None]] = {path: [] for path in (*paths, JSON, *([ELEMENT] if explode else []))}
    size, empty = 0, 0
    for item in items:
        number = 0
        for row, element in (
            json_paths.explode_list_with_pointers(item, explode, keeps_empty=keeps_empty) if explode else [(item, None)]
        ):
            number += 1
            text = exact_json.dumps(row).decode()
            size += len(text) + _ROW_BYTES
            if explode and size > MAX_EXPLODED:
                hint = "request smaller pages, or pass only the members that the mapping needs"
                message = f"the rows of explode={explode!r} exceed {MAX_EXPLODED >> 20:,} MiB"
                raise RefusedError(message, where=source, hint=hint, code="file_too_large")
            for path in paths:
                columns[path].append(json_value_as_column_text(value_at_path_or_missing(row, path)))
            columns[JSON].append(text)
            if explode:
                columns[ELEMENT].append(element)
        empty += not number
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return frame.with_row_index(LINE, offset=1).cast({LINE: pl.UInt64}), empty


def with_path_columns(rows: pl.DataFrame, paths: Iterable[str]) -> pl.DataFrame:
    """Add a text column to *rows* of JSON objects for each of the dotted *paths* that has none yet.

    Raises:
        ValueError: If the column `JSON` contains anything else.
    """
    if JSON not in rows.columns or not (missing := sorted(set(paths) - set(rows.columns))):
        return rows
    columns: dict[str, list[str | None]] = {path: [] for path in missing}
    for text in rows[JSON].to_list():  # one object at a time: all of a frame would take many times their text
        item = exact_json.loads(text or "null")
        for path, cells in columns.items():
            cells.append(json_value_as_column_text(value_at_path_or_missing(item, path)))
    return rows.with_columns(pl.Series(path, cells, pl.String) for path, cells in columns.items())


@dataclass(frozen=True, slots=True)
class Record(JsonAccess):
    """One external item: its rows and their origin.

    Attributes:
        rows: A mapping of column to text for each row, in source order.
        lines: The line of each row in *source*.
        before: For each row, the original text of the cells that repairs have changed.
        parts: What the mapping has told by `count`, with its number.
    """

    key: str
    rows: tuple[dict[str, str | None], ...]
    source: str
    lines: tuple[int, ...]
    before: tuple[dict[str, str], ...] = field(default=(), repr=False, compare=False)
    parts: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    _documents: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)  # by their text

    @property
    def key_parts(self) -> tuple[str, ...]:
        """The texts of the key columns, as a `crossdock.Reference` takes them."""
        return key_parts_of(self.key)

    @property
    def row(self) -> dict[str, str | None]:
        """The first row, which is the only one of a record that is not grouped."""
        return self.rows[0]

    def each_row(self) -> list[JsonElement]:
        """Return the object of each row of a record that was read as JSON, such as one that `Stream.group_by` has made
        of several. They have the same methods as the record, which reads the first one.
        """
        return [JsonElement(exact_json.loads(row[JSON] or "null"), "") for row in self.rows]

    def count(self, part: str) -> None:
        """Tell that the mapping leaves out, changes or assumes a part of the record, for the tally of the run.

        Args:
            part: What is done, in a few words without data, such as ``address left out``.
        """
        self.parts[part] = self.parts.get(part, 0) + 1

    def copy(self) -> Record:
        """Return a copy whose rows may be changed."""
        return Record(self.key, tuple([dict(row) for row in self.rows]), self.source, self.lines, self.before)

    def with_paths(self, paths: Collection[str]) -> Record:
        """Return a copy with a column for each of *paths* if it was read as JSON, as `with_path_columns` makes them.

        A record from the state may lack paths that its stream has declared since.
        """
        copied = self.copy()
        for row in copied.rows:
            if JSON in row and (missing := [path for path in paths if path not in row]):
                item = exact_json.loads(row[JSON] or "null")
                row.update({path: json_value_as_column_text(value_at_path_or_missing(item, path)) for path in missing})
        return copied

    def json(self) -> Any:
        """Return the object of a record that was read as JSON."""
        return exact_json.loads(self.row[JSON] or "null")

    @property
    def _json_document(self) -> Any:
        text = self.row[JSON] or "null"
        if text not in self._documents:
            self._documents[text] = exact_json.loads(text)
        return self._documents[text]

    def _full_pointer(self, pointer: str) -> str:
        return _pointer_as_read(self.row, pointer)

    def joined(self, name: str) -> tuple[dict[str, str | None], ...]:
        """Return the rows of join *name*, in the order of their files and lines."""
        return tuple(exact_json.loads(self.row[name] or "[]"))

    def raw(self) -> dict[str, Any]:
        """Return a compact form for the state, which `restored` reads; empty if the record no longer has rows."""
        if not self.rows:
            return {}
        columns = list(self.row)
        return {
            "columns": columns,
            "rows": [[row[name] for name in columns] for row in self.rows],
            "lines": list(self.lines),
        } | ({"before": list(self.before)} if any(self.before) else {})

    @classmethod
    def restored(cls, key: str, source: str, raw: dict[str, Any]) -> Record:
        rows = tuple(dict(zip(raw["columns"], cells, strict=True)) for cells in raw["rows"])
        return cls(key, rows, source, tuple(raw["lines"]), tuple(raw.get("before") or ({} for _ in rows)))


def is_same_source(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two results of `Record.raw` have the same cells, before repairs, in the columns of both."""
    rows, others = _cells_before_repairs(one), _cells_before_repairs(other)
    pairs = zip(rows, others, strict=False)
    return len(rows) == len(others) and all(a[name] == b[name] for a, b in pairs for name in a.keys() & b.keys())


def _cells_before_repairs(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    before = raw.get("before") or [{}] * len(raw["rows"])
    return [dict(zip(raw["columns"], cells, strict=True)) | was for cells, was in zip(raw["rows"], before, strict=True)]


def _pointer_as_read(row: Mapping[str, str | None], pointer: str) -> str:
    """Return *pointer* as it is in the object that was read, where a list element has its index."""
    element = row.get(ELEMENT) or ""
    parent = element.rpartition("/")[0]
    inside = element and f"{pointer}/".startswith(f"{parent}/")
    return element + pointer[len(parent) :] if inside else pointer


def invalid_json_value_error(record: Record) -> RecordError | None:
    """Return the error of a record that was read as JSON and has a value that is no exact JSON, or None."""
    for row, line in zip(record.rows, record.lines, strict=True):
        found = json_paths.pointer_and_fault_of_invalid_value(row.get(JSON) or "")
        if found is not None:
            pointer, fault = found
            return RecordError("bad_value", fault, pointer=_pointer_as_read(row, pointer)).at(line)
    return None
