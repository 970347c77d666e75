"""The key index: what the state knows of each key, in columns, in files beside it.

The state is the truth. Every transaction that changes the bindings of a scope gives the scope a new stamp, drawn at
random, so that a file is current exactly if it bears the scope's stamp: one that is missing, damaged, behind, or of
another state (a restored one too) is made anew. Only what was committed ever enters a file.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import polars as pl
from polars.exceptions import PolarsError
from sqlalchemy import Connection, bindparam, select, update

from crossdock.local_files import create_private, replace_file
from crossdock.state.db import sql_statements
from crossdock.state.db.schema import bindings, key_stamps
from crossdock.state.tables.scopes import Scope, within, within_given

KEY_HASH, KNOWN_FP, KNOWN_POSITION = "_key_hash", "_known_fp", "_known_position"
HASH = pl.UInt128
_MERGED = 500_000  # keys at once that changes are looked for in
ORDERED = 2_000_000
"""Keys at most that are put in order, which takes some 100 bytes for each, and held while rows are read."""
JOURNAL = 200_000  # changes that are remembered in memory; more of them, and the file is made anew
_FORMAT = 4
_LIVE = "_is_live"
_BATCH = 50_000
_PART_BYTES = 256 << 10


class Change(NamedTuple):
    """What a transaction writes of one key; *is_live* is false once the target no longer has the record."""

    key_hash: int
    fingerprint: int | None
    position: str | None
    is_live: bool = True


_RENEW = sql_statements.Bulk(
    update(key_stamps)
    .where(within_given(key_stamps), key_stamps.c.stamp == bindparam("before"))
    .values(stamp=bindparam("after"))
)


@dataclass(slots=True)
class Touched:
    """What one transaction changes in a scope, and the stamps before and after it; 0 where there was none."""

    before: int
    after: int
    changes: list[Change] = field(default_factory=list)


@dataclass(slots=True)
class _Journal:
    base: int
    last: int
    changes: list[Change] | None


class Stamps:
    """The stamps in one transaction.

    Args:
        expected: The stamp that a scope had when this process changed it last, or 0.
    """

    def __init__(self, connection: Connection, expected: Callable[[Scope], int]) -> None:
        self._connection, self._expected = connection, expected
        self.touched: dict[Scope, Touched] = {}

    def changed(self, scope: Scope, changes: list[Change]) -> None:
        """Some bindings of *scope* are written in this transaction."""
        if scope not in self.touched:
            self.touched[scope] = self._renew(scope)
        self.touched[scope].changes += changes

    def _renew(self, scope: Scope) -> Touched:
        after, before = secrets.randbits(62) + 1, self._expected(scope)
        stamps = {"before": [before], "after": [after]}
        if not before or not _RENEW.run(self._connection, stamps, scope.columns):
            before = stamp_of(self._connection, scope)
            sql_statements.upsert(self._connection, key_stamps, [{**scope.columns, "stamp": after}])
        return Touched(before, after)


def stamp_of(connection: Connection, scope: Scope) -> int:
    """The stamp of *scope*, 0 if nothing of it was ever written."""
    return connection.execute(select(key_stamps.c.stamp).where(within(key_stamps, scope))).scalar() or 0


class KeyIndex:
    """The files of one state, and what this process has committed since they were written.

    Args:
        folder: Where they are; it may be missing, and is made when one is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._journals: dict[Scope, _Journal] = {}

    def expected(self, scope: Scope) -> int:
        """The stamp of *scope* as this process left it, 0 if it has not touched it."""
        journal = self._journals.get(scope)
        return journal.last if journal else 0

    def committed(self, touched: dict[Scope, Touched]) -> None:
        """A transaction is in the state now."""
        for scope, touch in touched.items():
            journal = self._journals.setdefault(scope, _Journal(touch.before, touch.before, []))
            if journal.last != touch.before or journal.changes is None:
                journal.changes = None  # somebody else wrote in between
            elif len(journal.changes) + len(touch.changes) > JOURNAL:
                journal.changes = None
            else:
                journal.changes += touch.changes
            journal.last = touch.after

    def load(self, scope: Scope, stamp: int) -> pl.DataFrame | None:
        """The file of *scope* if it is whole and bears *stamp*."""
        told = self._told(scope, stamp)
        try:
            with self._path(scope).with_name(told["file"]).open("rb") as data:
                if told["crc32"] != _crc32(data):
                    return None
                data.seek(0)
                return pl.read_ipc_stream(data)
        except (OSError, ValueError, KeyError, TypeError, PolarsError):
            return None  # whatever it is, it is no index

    def height(self, scope: Scope, stamp: int) -> int:
        """How many keys the file of *scope* says that it has, if it bears *stamp*; else 0."""
        keys = self._told(scope, stamp).get("keys")
        return keys if isinstance(keys, int) else 0

    def _told(self, scope: Scope, stamp: int) -> dict[str, Any]:
        """The note of *scope*, if it bears *stamp*."""
        try:
            told = json.loads(self._path(scope).with_suffix(".json").read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        current = isinstance(told, dict) and stamp and (told.get("format"), told.get("stamp")) == (_FORMAT, stamp)
        return told if current else {}

    def publish(
        self, scope: Scope, stamp: int, all_of_them: Callable[[], pl.DataFrame], order: pl.Series | None = None
    ) -> None:
        """Bring the file of *scope* up to *stamp*, from the one before and the journal, or from *all_of_them*.

        Args:
            order: Key hashes, each once, some of which may not be known: the file's order from now on, as what is new
                is added at its end. Any order is right; the one in which exports list their records saves looking up.
                Where there are too many keys to put them in order within a run's memory, they stay as they are.
        """
        journal = self._journals.pop(scope, None)
        frame = None
        if journal is not None and journal.changes is not None and journal.last == stamp:
            frame = self.load(scope, journal.base)
            frame = None if frame is None else _merged(frame, journal.changes)
        elif journal is None:
            frame = self.load(scope, stamp)
            if frame is not None and order is None:
                return
        whole = all_of_them() if frame is None else frame
        whole = whole if order is None or whole.height > ORDERED else _ordered(whole, order)
        with suppress(OSError):  # a full disk costs the next run time, and nothing else
            self._write(scope, stamp, whole)

    def _write(self, scope: Scope, stamp: int, frame: pl.DataFrame) -> None:
        """First the data under a new name, then the note that names it: a kill leaves the one or the other."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        note = self._path(scope).with_suffix(".json")
        data = note.with_name(f"{note.stem}-{stamp:x}-{secrets.token_hex(4)}.arrow")
        with create_private(data) as file:
            _narrow(frame).write_ipc_stream(file)  # which is read without holding the file and the frame at once
        with data.open("rb") as written:
            crc32 = _crc32(written)
        told = {"format": _FORMAT, "stamp": stamp, "keys": frame.height, "file": data.name, "crc32": crc32}
        replace_file(note, json.dumps(told).encode())
        for old in self._folder.glob(f"{note.stem}-*.arrow"):
            if old != data:
                old.unlink(missing_ok=True)

    def _path(self, scope: Scope) -> Path:
        text = "\0".join(scope.columns.values())
        return self._folder / hashlib.sha256(text.encode()).hexdigest()[:24]


def _crc32(file: BinaryIO) -> int:
    """Of the whole file, a part at a time: memory that is new to the process takes longer to get than to fill."""
    crc32 = 0
    while part := file.read(_PART_BYTES):
        crc32 = zlib.crc32(part, crc32)
    return crc32


def nothing() -> pl.DataFrame:
    """What is known of a scope without bindings."""
    return pl.DataFrame(schema={KEY_HASH: HASH, KNOWN_FP: HASH})


def from_bindings(connection: Connection, scope: Scope) -> pl.DataFrame:
    """What the live bindings of *scope* say: `KEY_HASH`, `KNOWN_FP`, and `KNOWN_POSITION` if any has one."""
    columns = (bindings.c.key_hash, bindings.c.record_fp, bindings.c.position)
    raw = [sql_statements.as_stored(column) for column in columns]
    query = select(*raw).where(within(bindings, scope), bindings.c.deleted_at.is_(None))
    result = connection.execute(query.execution_options(yield_per=_BATCH))
    frames = [_frame([tuple(row) for row in part]) for part in result.partitions()]
    whole = pl.concat(frames) if frames else _frame([])
    if whole[KNOWN_POSITION].null_count() == whole.height:
        return whole.drop(KNOWN_POSITION)
    return whole


def _frame(rows: Sequence[tuple[bytes, bytes, str | None]]) -> pl.DataFrame:
    schema = {KEY_HASH: pl.Binary, KNOWN_FP: pl.Binary, KNOWN_POSITION: pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(pl.col(KEY_HASH, KNOWN_FP).bin.reinterpret(dtype=HASH, endianness="big"))


def _narrow(frame: pl.DataFrame) -> pl.DataFrame:
    """*frame* with fingerprints of 64 bits, if none has more."""
    fits = frame.schema[KNOWN_FP] == pl.UInt64 or (frame[KNOWN_FP] < 2**64).all()
    return frame.cast({KNOWN_FP: pl.UInt64}) if fits else frame


def _merged(frame: pl.DataFrame, changes: list[Change]) -> pl.DataFrame:
    """*frame* after *changes*, of which the latest of each key counts; what is new stands at the end."""
    latest = {change.key_hash: change for change in changes}
    schema = {KEY_HASH: HASH, KNOWN_FP: HASH, KNOWN_POSITION: pl.String, _LIVE: pl.Boolean}
    new = pl.DataFrame(list(latest.values()), schema=schema, orient="row")
    if KNOWN_POSITION not in frame.columns and new[KNOWN_POSITION].null_count() == new.height:
        new = new.drop(KNOWN_POSITION)
    given = new.with_columns(_changed=True)
    parts = [_updated(part, given) for part in frame.iter_slices(_MERGED)]
    known = pl.concat([given.clear(), *(part.filter("_changed") for part in parts)])
    added = given.join(known, on=KEY_HASH, how="anti", maintain_order="left")
    kept = [name for name in new.columns if name != _LIVE]
    return pl.concat([part.filter(pl.col(_LIVE)).select(kept) for part in (*parts, added)])


def _updated(part: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """*part* with the columns of *new*, and its values where it has any; ``_changed`` tells where, else it is null."""
    part = part.with_columns(pl.lit(value=True).alias(_LIVE))
    part = pl.concat([new.clear().drop("_changed"), part.cast({KNOWN_FP: HASH})], how="diagonal")
    found = part.join(new, on=KEY_HASH, how="left", maintain_order="left", suffix="_new")
    values = [name for name in part.columns if name != KEY_HASH]
    chosen = (pl.when("_changed").then(f"{name}_new").otherwise(name).alias(name) for name in values)
    return found.select(KEY_HASH, *chosen, "_changed")


def _ordered(frame: pl.DataFrame, order: pl.Series) -> pl.DataFrame:
    """*frame* in the *order* of its key hashes; what is not named there comes last."""
    named = order.to_frame(KEY_HASH).join(frame, on=KEY_HASH, how="inner", maintain_order="left")
    others = frame.join(named, on=KEY_HASH, how="anti", maintain_order="left")
    return pl.concat([named.select(frame.columns), others], rechunk=True)
