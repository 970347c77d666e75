"""The key index: the facts about each key as a column file per scope, beside the database.

Every transaction that changes the bindings of a scope gives it a new random stamp, so a file is current exactly if it
has the scope's stamp. Any other file is replaced. Only committed changes enter a file.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
from msgspec import Struct
from polars.exceptions import PolarsError
from sqlalchemy import ColumnElement, Connection, case, null, select

from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.schema import bindings
from crossdock.state.tables.record_bindings import KeyIndexChange, ScopeChanges
from crossdock.state.tables.record_identity_and_scope import Scope, scope_condition, scope_condition_with_parameters
from crossdock.values.raw_rows_and_records import internal_column_name
from crossdock.values.safe_local_files import create_private_file, replace_file_atomically

KEY_HASH, KNOWN_FP, KNOWN_POSITION = (
    internal_column_name("key_hash"),
    internal_column_name("known_fp"),
    internal_column_name("known_position"),
)
HASH = pl.UInt128
ORDERED = 2_000_000  # keys that are sorted at most; that takes about 100 bytes per key while rows are read
JOURNAL = 200_000  # changes kept in memory; beyond them the file is rebuilt from the bindings
_MERGED = 500_000  # keys merged with changes at a time
_FORMAT = 5
_LIVE = "_is_live"
_BATCH = 50_000
_PART_BYTES = 256 << 10


class _Journal(Struct):
    """Changes by this process since the file with the stamp *base*; None if they are too many or incomplete."""

    base: int
    last: int
    changes: list[KeyIndexChange] | None


class KeyIndex:
    """The files of one state in *folder*, and what this process has committed since they were written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._journals: dict[Scope, _Journal] = {}

    def last_own_stamp(self, scope: Scope) -> int:
        journal = self._journals.get(scope)
        return journal.last if journal else 0

    def journal_committed_changes(self, touched: dict[Scope, ScopeChanges]) -> None:
        for scope, touch in touched.items():
            journal = self._journals.setdefault(scope, _Journal(touch.before, touch.before, []))
            changes = journal.changes
            if changes is None or journal.last != touch.before or len(changes) + len(touch.changes) > JOURNAL:
                journal.changes = None
            else:
                changes += touch.changes
            journal.last = touch.after

    def load(self, scope: Scope, stamp: int) -> pl.DataFrame | None:
        """Return the index of *scope* if its file is intact and has *stamp*."""
        note = self._read_metadata(scope, stamp)
        try:
            with self._path(scope).with_name(note["file"]).open("rb") as data:
                if note["crc32"] != _crc32(data):
                    return None
                data.seek(0)
                return pl.read_ipc_stream(data)
        except (OSError, ValueError, KeyError, TypeError, PolarsError):
            return None

    def key_count(self, scope: Scope, stamp: int) -> int:
        """Return the number of keys in the file of *scope* if it has *stamp*, otherwise 0."""
        keys = self._read_metadata(scope, stamp).get("keys")
        return keys if isinstance(keys, int) else 0

    def _read_metadata(self, scope: Scope, stamp: int) -> dict[str, Any]:
        try:
            note = json.loads(self._path(scope).with_suffix(".json").read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        current = isinstance(note, dict) and stamp and (note.get("format"), note.get("stamp")) == (_FORMAT, stamp)
        return note if current else {}

    def update(
        self, scope: Scope, stamp: int, rebuild: Callable[[], pl.DataFrame], order: pl.Series | None = None
    ) -> None:
        """Update the file of *scope* to *stamp* from the last file and the journal, or from *rebuild*.

        Up to `ORDERED` keys follow *order*, and new ones are appended: the order of the exports saves look-ups.
        """
        journal = self._journals.pop(scope, None)
        frame = None
        if journal is not None and journal.changes is not None and journal.last == stamp:
            frame = self.load(scope, journal.base)
            frame = None if frame is None else key_index_frame_with_changes(frame, journal.changes)
        elif journal is None:
            frame = self.load(scope, stamp)
            if frame is not None and order is None:
                return
        whole = rebuild() if frame is None else frame
        whole = whole if order is None or whole.height > ORDERED else _rows_in_given_order(whole, order)
        with suppress(OSError):  # a full disk only makes the next run slower
            self._write(scope, stamp, whole)

    def _write(self, scope: Scope, stamp: int, frame: pl.DataFrame) -> None:
        """Write the data under a new name, then the note that names it: a kill leaves the old or the new index."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._path(scope).with_suffix(".json")
        data = path.with_name(f"{path.stem}-{stamp:x}-{secrets.token_hex(4)}.arrow")
        with create_private_file(data) as file:
            _with_narrow_fingerprints(frame).write_ipc_stream(
                file
            )  # a stream can be read without holding both file and frame in memory
        with data.open("rb") as written:
            crc32 = _crc32(written)
        note = {"format": _FORMAT, "stamp": stamp, "keys": frame.height, "file": data.name, "crc32": crc32}
        replace_file_atomically(path, json.dumps(note).encode())
        for old in self._folder.glob(f"{path.stem}-*.arrow"):
            if old != data:
                old.unlink(missing_ok=True)

    def _path(self, scope: Scope) -> Path:
        text = "\0".join(scope.columns.values())
        return self._folder / hashlib.sha256(text.encode()).hexdigest()[:24]


def _crc32(file: BinaryIO) -> int:
    crc32 = 0
    while part := file.read(_PART_BYTES):
        crc32 = zlib.crc32(part, crc32)
    return crc32


def empty_key_index_frame() -> pl.DataFrame:
    return pl.DataFrame(schema={KEY_HASH: HASH, KNOWN_FP: HASH})


_IS_MAPPED_AGAIN = bindings.c.unverified.is_(True) | (bindings.c.step == "import")
_VERIFIED_FP = case((_IS_MAPPED_AGAIN, null()), else_=bindings.c.record_fp).label("record_fp")
_COLUMNS: tuple[ColumnElement[Any], ...] = (bindings.c.key_hash, _VERIFIED_FP, bindings.c.position)


def key_index_frame_from_bindings(connection: Connection, scope: Scope) -> pl.DataFrame:
    """Return the live bindings of *scope*: `KEY_HASH`, `KNOWN_FP`, and `KNOWN_POSITION` if any has one."""
    stored = [sql_types_and_statements.unconverted_column(column) for column in _COLUMNS]
    query = select(*stored).where(scope_condition(bindings, scope), bindings.c.deleted_at.is_(None))
    result = connection.execute(query.execution_options(yield_per=_BATCH))
    frames = [_frame_of_rows([tuple(row) for row in part]) for part in result.partitions()]
    return _without_empty_position_column(pl.concat(frames) if frames else _frame_of_rows([]))


_OF_KEYS = sql_types_and_statements.QueryByKeys(
    select(*_COLUMNS).where(scope_condition_with_parameters(bindings), bindings.c.deleted_at.is_(None)),
    bindings.c.key_hash,
)


def key_index_frame_of_given_keys(connection: Connection, scope: Scope, key_hashes: Sequence[int]) -> pl.DataFrame:
    rows = list(_OF_KEYS.rows(connection, scope.columns, key_hashes))
    schema = {KEY_HASH: HASH, KNOWN_FP: HASH, KNOWN_POSITION: pl.String}
    return _without_empty_position_column(pl.DataFrame(rows, schema=schema, orient="row"))


def _frame_of_rows(rows: Sequence[tuple[bytes, bytes, str | None]]) -> pl.DataFrame:
    schema = {KEY_HASH: pl.Binary, KNOWN_FP: pl.Binary, KNOWN_POSITION: pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(pl.col(KEY_HASH, KNOWN_FP).bin.reinterpret(dtype=HASH, endianness="big"))


def _without_empty_position_column(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop(KNOWN_POSITION) if frame[KNOWN_POSITION].null_count() == frame.height else frame


def _with_narrow_fingerprints(frame: pl.DataFrame) -> pl.DataFrame:
    fits = frame.schema[KNOWN_FP] == pl.UInt64 or (frame[KNOWN_FP] < 2**64).all()
    return frame.cast({KNOWN_FP: pl.UInt64}) if fits else frame


def key_index_frame_with_changes(frame: pl.DataFrame, changes: list[KeyIndexChange]) -> pl.DataFrame:
    """Apply *changes* to *frame*. The last change of each key counts, and new keys are appended."""
    latest = {change.key_hash: change for change in changes}
    schema = {KEY_HASH: HASH, KNOWN_FP: HASH, KNOWN_POSITION: pl.String, _LIVE: pl.Boolean}
    new = pl.DataFrame(list(latest.values()), schema=schema, orient="row")
    if KNOWN_POSITION not in frame.columns:
        new = _without_empty_position_column(new)
    given = new.with_columns(_changed=True)
    parts = [_part_with_new_values(part, given) for part in frame.iter_slices(_MERGED)]
    known = pl.concat([given.clear(), *(part.filter("_changed") for part in parts)])
    added = given.join(known, on=KEY_HASH, how="anti", maintain_order="left")
    kept = [name for name in new.columns if name != _LIVE]
    return pl.concat([part.filter(pl.col(_LIVE)).select(kept) for part in (*parts, added)])


def _part_with_new_values(part: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Replace values of *part* by those of *new* for the same keys, where ``_changed`` is true, else by null."""
    part = part.with_columns(pl.lit(value=True).alias(_LIVE))
    part = pl.concat([new.clear().drop("_changed"), part.cast({KNOWN_FP: HASH})], how="diagonal")
    found = part.join(new, on=KEY_HASH, how="left", maintain_order="left", suffix="_new")
    values = [name for name in part.columns if name != KEY_HASH]
    chosen = (pl.when("_changed").then(f"{name}_new").otherwise(name).alias(name) for name in values)
    return found.select(KEY_HASH, *chosen, "_changed")


def _rows_in_given_order(frame: pl.DataFrame, order: pl.Series) -> pl.DataFrame:
    named = order.to_frame(KEY_HASH).join(frame, on=KEY_HASH, how="inner", maintain_order="left")
    others = frame.join(named, on=KEY_HASH, how="anti", maintain_order="left")
    return pl.concat([named.select(frame.columns), others], rechunk=True)
