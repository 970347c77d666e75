"""First pass over what a stream read: which rows make which record, and which record of a key wins.

Hashes, positions and places are held, and rows that may have changed as long as they are few. The second pass asks for
the changed rows: of a source that can be read again only their lines are, others are kept on disk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, repeat
from pathlib import Path
from typing import Any

import polars as pl

from crossdock.connector import Stream
from crossdock.delta import fingerprint
from crossdock.delta.key_order import KeyOrder
from crossdock.delta.keyed_rows import (
    FP,
    KEY,
    KEY_HASH,
    OURS,
    POSITION,
    SAME,
    SKIP,
    TIE,
    among,
    in_parts,
    named,
    prepare,
)
from crossdock.delta.rows_without_key import RowsWithoutKey
from crossdock.errors import InternalError, RefusedError
from crossdock.local_files import create_private
from crossdock.records import LINE, Again, RawBatch, Record, kept
from crossdock.sources.source_context import writing
from crossdock.state import DeadLetter, RecordIdentity
from crossdock.tally import Tally

UNIT, ROWS = "_unit", "_rows"
_AT_ONCE = 10_000  # records that are made together
_HELD_BYTES = 32 << 20  # of rows that are held until it is known whether they changed
_VIEW_BYTES = 16  # of each cell, beside its text
_PLACE = {LINE: pl.UInt32, UNIT: pl.UInt32}


@dataclass(slots=True)
class KeyedRecord:
    """A record to decide on."""

    record: Record
    identity: RecordIdentity


@dataclass(slots=True)
class _Unit:
    """A file or page, or what a source gave at once.

    Attributes:
        kept: Arrow files that hold its rows, if it cannot be read again.
        held: All its rows that may have changed, prepared; None if they were too many.
    """

    source: str
    again: Again | None
    kept: list[Path]
    held: list[pl.DataFrame] | None = None

    def rows(self) -> Iterator[pl.DataFrame]:
        """All of them."""
        return self.again(None) if self.again else map(kept, self.kept)

    def rows_at(self, lines: pl.Series) -> Iterator[pl.DataFrame]:
        """The rows at *lines*, ascending, of which each is known to be there; some may be prepared."""
        if self.held is None and self.again:
            yield from self.again(lines.to_list())
            return
        wanted = lines.to_frame(LINE)  # in the order of lines, whatever the order of the rows
        alike = groupby(self.held or (), key=lambda frame: frame.columns)
        for frame in self.rows() if self.held is None else (pl.concat(list(frames)) for _, frames in alike):
            found = wanted.join(frame, on=LINE, how="inner", maintain_order="left").select(frame.columns)
            yield from found.iter_slices(_AT_ONCE)


class Scan:
    """What one stream read in a run.

    Attributes:
        latest: One row a record: `KEY_HASH`, `FP`, `SAME` (as it is known; others may be so, too), `LINE` (its first),
            `UNIT` (index of what it was read from); `POSITION` and `TIE` with ``order_by``, `ROWS` (how many) where
            rows are grouped.
        cursor: Of the last batch that had one.
        key_order: Of the rows with what is known, if it was given and rows are not grouped.
    """

    def __init__(self, stream: Stream[Any], name: str, work: Path) -> None:
        self._stream, self._name, self._work = stream, name, work
        self._units: list[_Unit] = []
        self._parts: list[pl.DataFrame] = []
        self._group: list[pl.DataFrame] = []  # of the unit under way, where rows are grouped
        self._room = _HELD_BYTES
        self.key_order: KeyOrder | None = None
        fp = pl.UInt64 if stream.fingerprint == "xxh3_64" else fingerprint.HASH
        ordered = {POSITION: pl.String, TIE: fingerprint.HASH} if stream.order_by else {}
        grouped = {ROWS: pl.UInt32} if stream.group_by else {}
        self._schema = {KEY_HASH: fingerprint.HASH, FP: fp, SAME: pl.Boolean, **_PLACE, **ordered, **grouped}
        self.latest = pl.DataFrame(schema=self._schema)
        self.cursor: str | None = None
        self._without_key = RowsWithoutKey(stream, name)

    def take(
        self,
        batches: Iterable[RawBatch],
        tally: Tally,
        read: Callable[[int], None],
        known: Callable[[], pl.DataFrame | None] | None = None,
    ) -> None:
        """Count every row, and find the winner of each key.

        Args:
            read: Told how many rows each batch had.
            known: Gives what is known of the keys, to find out at once of most rows that they are as they are known;
                None if that is not worth while.

        Raises:
            RefusedError: If a column that is used is missing, or rows of a snapshot compete without ``order_by``.
        """
        for name in self._stream.skip:
            tally.rows_filtered[name] = 0
        for number, batch in enumerate(batches):
            self.cursor = batch.cursor or self.cursor
            if known and not number and not self._stream.group_by and (frame := known()) is not None:
                self.key_order = KeyOrder(frame)
            self._place(number, batch)
            self._add(self._narrow(batch, tally, read))
        self._end_group()
        self._compete(tally)
        tally.count("read", self.latest.height)

    def _narrow(self, batch: RawBatch, tally: Tally, read: Callable[[int], None]) -> pl.DataFrame:
        frame = prepare(self._stream, batch.source, batch.load())
        tally.rows_read += frame.height
        read(frame.height)
        if self._stream.skip:
            for name, number in frame[SKIP].drop_nulls().value_counts().iter_rows():
                tally.rows_filtered[name] += number
            frame = frame.filter(pl.col(SKIP).is_null())
        if frame[KEY].null_count():
            keyless = frame.filter(pl.col(KEY).is_null())
            tally.rows_rejected += keyless.height
            self._without_key.take(batch.source, keyless)
            frame = frame.filter(pl.col(KEY).is_not_null())
        return frame

    def _place(self, number: int, batch: RawBatch) -> None:
        """Say where the rows of *batch* will be found."""
        again = None if self._stream.group_by else batch.again  # of a group all rows are needed, wherever they stand
        last = self._units[-1] if self._units else None
        goes_on = self._stream.group_by if again is None else last and last.again is again  # two files may share a name
        if last is None or last.source != batch.source or not goes_on:
            self._end_group()
            last = _Unit(batch.source, again, [], held=[] if self.key_order and self._room > 0 else None)
            self._units.append(last)
        if again is None:
            last.kept.append(self._kept(number, batch.rows))

    def _kept(self, number: int, rows: pl.DataFrame | Path) -> Path:
        if isinstance(rows, Path):
            return rows
        path = self._work / f"{self._name}-{number}.arrow"
        path.unlink(missing_ok=True)  # of an earlier try in this run
        with writing(self._work), create_private(path) as part:
            rows.write_ipc(part)
        return path

    def _add(self, rows: pl.DataFrame) -> None:
        if self._stream.group_by:
            columns = [pl.col(name).cast(kind) for name, kind in self._schema.items() if name in rows.columns]
            self._group.append(rows.select(columns))
        elif self.key_order:
            same = self.key_order.same(rows)
            self._parts.append(self._placed(rows, same))
            self._hold(self._units[-1], rows, same)
        else:
            self._parts.append(self._placed(rows))

    def _hold(self, unit: _Unit, rows: pl.DataFrame, same: pl.Series) -> None:
        """Hold those of *rows* that may have changed, unless they are too many by now."""
        if unit.held is None:
            return
        few = rows.filter(~same).with_columns(pl.col(pl.String) + "")  # new texts: the old ones keep all others, too
        unit.held.append(few)
        self._room -= int(few.estimated_size()) + _VIEW_BYTES * few.height * few.width
        if self._room <= 0:
            unit.held = None

    def _end_group(self) -> None:
        """Rows are grouped within one source."""
        if self._group:
            rows = pl.concat(self._group)
            grouped = fingerprint.of_groups(rows, KEY_HASH, FP, self._stream.fingerprint).rename({"rows": ROWS})
            self._parts.append(self._placed(grouped))
            self._group = []

    def _placed(self, rows: pl.DataFrame, same: pl.Series | None = None) -> pl.DataFrame:
        given = {UNIT: pl.lit(len(self._units) - 1), SAME: pl.lit(value=False) if same is None else pl.lit(same)}
        columns = {name: pl.col(name) for name in self._schema} | given
        return rows.select(columns[name].cast(kind).alias(name) for name, kind in self._schema.items())

    def _compete(self, tally: Tally) -> None:
        """Keep the last candidate of each key; the others are superseded."""
        if not self._parts:
            return
        candidates = pl.concat(self._parts, rechunk=False)
        self._parts = []
        if _differ(candidates, once=self.key_order is not None and self.key_order.once):
            self.latest = candidates
        else:
            several = pl.col(KEY_HASH).is_duplicated()
            competing = candidates.filter(several)
            self._refuse_duplicates(competing)
            order = [POSITION, TIE] if self._stream.order_by else [UNIT, LINE]
            competing = competing.sort(order, maintain_order=True).filter(pl.col(KEY_HASH).is_last_distinct())
            self.latest = pl.concat([candidates.filter(~several), competing], rechunk=False)
        won = self._rows(self.latest)
        tally.rows_in_records += won
        tally.rows_superseded += self._rows(candidates) - won

    def _rows(self, candidates: pl.DataFrame) -> int:
        return int(candidates[ROWS].sum()) if self._stream.group_by else candidates.height

    def _refuse_duplicates(self, competing: pl.DataFrame) -> None:
        """A snapshot lists each key once; rows that say the same do no harm."""
        stream = self._stream
        if stream.mode != "snapshot" or stream.order_by or stream.group_by or stream.duplicates == "last":
            return
        differing = competing.filter(pl.col(FP).n_unique().over(KEY_HASH) > 1)
        if differing.height:
            first = differing.sort(UNIT, LINE).row(0, named=True)
            is_first = pl.col(KEY_HASH) == pl.lit(first[KEY_HASH], fingerprint.HASH)  # polars guesses 127 bits at most
            one, other, *_ = differing.filter(is_first).sort(UNIT, LINE)[[UNIT, LINE]].rows()
            place, earlier = (f"{self._units[unit].source}:{line}" for unit, line in (other, one))
            raise RefusedError(
                f"names a record that {earlier} names too, and says otherwise of it",
                where=place,
                hint="say with order_by which row counts, or with duplicates: last that the last one does",
            )

    @property
    def keyless(self) -> list[DeadLetter]:
        """Rows without a key, as dead letters."""
        return self._without_key.dead_letters

    @property
    def sources(self) -> list[str]:
        """The names of the files or pages that were read."""
        return list(dict.fromkeys(unit.source for unit in self._units))

    def forget(self) -> None:
        """Hold no hashes any longer: they are compared."""
        self.latest, self.key_order = self.latest.clear(), None

    def filtered(self, keys: pl.Series) -> tuple[pl.Series, int]:
        """Of the rows that a filter left out: which of *keys* (hashes) they hold, and how many have no key at all.

        Reads everything again.
        """
        sought, found, keyless = keys.to_frame(KEY_HASH), [keys.clear()], 0
        for unit in self._units:
            for frame in unit.rows():
                skipped = prepare(self._stream, unit.source, frame).filter(pl.col(SKIP).is_not_null())
                found.append(skipped.join(sought, on=KEY_HASH, how="semi")[KEY_HASH])
                keyless += skipped[KEY].null_count()
        return pl.concat(found), keyless

    def records(self, chosen: pl.DataFrame) -> Iterator[KeyedRecord]:
        """Second pass: the records of *chosen*, some of `latest`, in source order."""
        find = self._groups if self._stream.group_by else self._singles
        for (number,), wanted in chosen.sort(UNIT, LINE).group_by(UNIT, maintain_order=True):
            assert isinstance(number, int)
            yield from find(self._units[number], wanted)

    def _singles(self, unit: _Unit, wanted: pl.DataFrame) -> Iterator[KeyedRecord]:
        """Records of one row, which a line tells: column by column, since there may be many."""
        done, other = 0, f"other rows stand in {unit.source} than before"
        for rows in unit.rows_at(wanted[LINE].cast(pl.UInt64)):
            part = wanted.slice(done, rows.height)
            done += rows.height
            found = rows if KEY in rows.columns else named(self._stream, rows)
            if not found[KEY_HASH].equals(part[KEY_HASH]):
                raise InternalError(other, hint="each row needs a line of its own, whatever gives them")
            text = [name for name in found.columns if name not in OURS]
            keys, lines_read = found[KEY].to_list(), part[LINE].to_list()
            positions = part[POSITION].to_list() if self._stream.order_by else repeat(None)
            hashes = zip(part[KEY_HASH].to_list(), part[FP].to_list(), positions, strict=False)
            cells = zip(*(found[name].to_list() for name in text), strict=True)
            for key, line, row, (key_hash, fp, position) in zip(keys, lines_read, cells, hashes, strict=True):
                record = Record(key, (dict(zip(text, row, strict=True)),), unit.source, (line,))
                yield KeyedRecord(record, RecordIdentity(self._name, key, key_hash, fp, position, unit.source, line))
        if done != wanted.height:
            raise InternalError(other, hint="a source that is read again gives the rows at all lines it is asked for")

    def _groups(self, unit: _Unit, wanted: pl.DataFrame) -> Iterator[KeyedRecord]:
        """Records of several rows, which a key tells."""
        facts = {row[KEY_HASH]: row for row in wanted.iter_rows(named=True)}
        found = pl.concat([self._of_keys(unit, frame, wanted) for frame in unit.rows()]).sort(LINE)
        text = [name for name in found.columns if name not in OURS]
        rows: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in found.iter_rows(named=True):
            rows[row[KEY_HASH]].append(row)
        for key_hash, group in rows.items():
            record, fact = _record(unit.source, group, text), facts[key_hash]
            place = fact[FP], fact.get(POSITION), unit.source, record.lines[0]
            yield KeyedRecord(record, RecordIdentity(self._name, record.key, key_hash, *place))

    def _of_keys(self, unit: _Unit, frame: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
        rows = prepare(self._stream, unit.source, frame).filter(pl.col(SKIP).is_null())
        return rows.join(wanted.select(KEY_HASH), on=KEY_HASH, how="semi", maintain_order="left")


def _differ(candidates: pl.DataFrame, *, once: bool) -> bool:
    """Whether each has a key of its own; where those that are `SAME` do (*once*), the others alone are looked at."""
    keys = candidates[KEY_HASH].to_frame()  # without the copy that select makes of many chunks
    others = keys.filter(~candidates[SAME])[KEY_HASH]
    if once and len(others) < keys.height / 10:
        return others.n_unique() == among(keys, others).height == len(others)
    return sum(some[KEY_HASH].n_unique() for (some,) in in_parts(keys)) == keys.height


def _record(source: str, rows: list[dict[str, Any]], text: Sequence[str]) -> Record:
    cells = tuple({name: row[name] for name in text} for row in rows)
    return Record(rows[0][KEY] or "", cells, source, tuple(row[LINE] for row in rows))
