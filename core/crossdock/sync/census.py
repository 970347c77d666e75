"""First pass over what a stream read: which rows make which record, and which record of a key wins.

Only hashes, positions and places are held; the rows lie on disk until the second pass asks for the changed ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from crossdock.connector import Stream
from crossdock.errors import RefusedError
from crossdock.records import LINE, RawBatch, Record
from crossdock.state import DeadLetter
from crossdock.sync import fingerprint
from crossdock.sync.rows import FP, KEY, KEY_HASH, POSITION, SKIP, TIE, prepare
from crossdock.sync.tally import Tally

UNIT, ROWS = "_unit", "_rows"
_OURS = {KEY, KEY_HASH, SKIP, FP, POSITION, TIE, LINE}
_PLACE = {LINE: pl.UInt32, UNIT: pl.UInt32}


class Census:
    """What one stream read in a run.

    Attributes:
        winners: One row a record: `KEY_HASH`, `FP`, `LINE` (its first), `UNIT` (index of the batches that hold it);
            `POSITION` and `TIE` with ``order_by``, `ROWS` (how many) where rows are grouped.
        cursor: Of the last batch that had one.
        keyless: Rows without a key, as dead letters.
    """

    def __init__(self, stream: Stream[Any], name: str, work: Path) -> None:
        self._stream, self._name, self._work = stream, name, work
        self._units: list[list[RawBatch]] = []
        self._parts: list[pl.DataFrame] = []
        self._group: list[pl.DataFrame] = []  # of the unit under way, where rows are grouped
        fp = pl.UInt64 if stream.fingerprint == "xxh3_64" else fingerprint.HASH
        ordered = {POSITION: pl.String, TIE: fingerprint.HASH} if stream.order_by else {}
        grouped = {ROWS: pl.UInt32} if stream.group_by else {}
        self._schema = {KEY_HASH: fingerprint.HASH, FP: fp, **_PLACE, **ordered, **grouped}
        self.winners = pl.DataFrame(schema=self._schema)
        self.cursor: str | None = None
        self.keyless: list[DeadLetter] = []

    def take(self, batches: Iterable[RawBatch], tally: Tally, read: Callable[[int], None]) -> None:
        """Count every row, and find the winner of each key.

        Args:
            read: Told how many rows each batch had.

        Raises:
            RefusedError: If a column that is used is missing, or rows of a snapshot compete without ``order_by``.
        """
        for name in self._stream.skip:
            tally.rows_filtered[name] = 0
        for number, batch in enumerate(batches):
            self.cursor = batch.cursor or self.cursor
            self._add(self._keep(number, batch), self._narrow(batch, tally, read))
        self._end_group()
        self._compete(tally)
        tally.count("read", self.winners.height)

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
            self.keyless += [self._letter(batch.source, row) for row in keyless.iter_rows(named=True)]
            frame = frame.filter(pl.col(KEY).is_not_null())
        return frame.select(pl.col(name).cast(kind) for name, kind in self._schema.items() if name in frame.columns)

    def _keep(self, number: int, batch: RawBatch) -> RawBatch:
        if isinstance(batch.rows, Path):
            return batch
        path = self._work / f"{self._name}-{number}.arrow"
        batch.rows.write_ipc(path)
        return RawBatch(batch.source, path)

    def _add(self, kept: RawBatch, rows: pl.DataFrame) -> None:
        if self._stream.group_by and self._units and self._units[-1][0].source == kept.source:
            self._units[-1].append(kept)
        else:
            self._end_group()
            self._units.append([kept])
        if self._stream.group_by:
            self._group.append(rows)
        else:
            self._parts.append(self._placed(rows))

    def _end_group(self) -> None:
        """Rows are grouped within one source."""
        if self._group:
            rows = pl.concat(self._group)
            grouped = fingerprint.of_groups(rows, KEY_HASH, FP, self._stream.fingerprint).rename({"rows": ROWS})
            self._parts.append(self._placed(grouped))
            self._group = []

    def _placed(self, rows: pl.DataFrame) -> pl.DataFrame:
        placed = rows.with_columns(pl.lit(len(self._units) - 1, dtype=pl.UInt32).alias(UNIT))
        return placed.select(pl.col(name).cast(kind) for name, kind in self._schema.items())

    def _compete(self, tally: Tally) -> None:
        """Keep the last candidate of each key; the others are superseded."""
        if not self._parts:
            return
        candidates = pl.concat(self._parts, rechunk=False)
        self._parts = []
        if candidates[KEY_HASH].n_unique() == candidates.height:
            self.winners = candidates
        else:
            several = pl.col(KEY_HASH).is_duplicated()
            competing = candidates.filter(several)
            self._refuse_duplicates(competing)
            order = [POSITION, TIE] if self._stream.order_by else [UNIT, LINE]
            competing = competing.sort(order, maintain_order=True).filter(pl.col(KEY_HASH).is_last_distinct())
            self.winners = pl.concat([candidates.filter(~several), competing], rechunk=False)
        won = self._rows(self.winners)
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
            one, other, *_ = differing.filter(pl.col(KEY_HASH) == first[KEY_HASH]).sort(UNIT, LINE)[[UNIT, LINE]].rows()
            place = f"{self._units[other[0]][0].source}:{other[1]}"
            earlier = f"{self._units[one[0]][0].source}:{one[1]}"
            raise RefusedError(
                f"names a record that {earlier} names too, and says otherwise of it",
                where=place,
                hint="say with order_by which row counts, or with duplicates: last that the last one does",
            )

    @property
    def sources(self) -> list[str]:
        """The names of the files or pages that were read."""
        return list(dict.fromkeys(unit[0].source for unit in self._units))

    def forget(self) -> None:
        """Hold no hashes any longer: they are compared."""
        self.winners = self.winners.clear()

    def filtered(self, keys: pl.Series) -> tuple[pl.Series, int]:
        """Of the rows that a filter left out: which of *keys* (hashes) they hold, and how many have no key at all.

        Reads everything again.
        """
        sought, found, keyless = keys.to_frame(KEY_HASH), [keys.clear()], 0
        for batch in (batch for unit in self._units for batch in unit):
            left_out = prepare(self._stream, batch.source, batch.load()).filter(pl.col(SKIP).is_not_null())
            found.append(left_out.join(sought, on=KEY_HASH, how="semi")[KEY_HASH])
            keyless += left_out[KEY].null_count()
        return pl.concat(found), keyless

    def records(self, chosen: pl.DataFrame) -> Iterator[tuple[Record, dict[str, Any]]]:
        """Second pass: the records of *chosen*, some of `winners`, each with its row of *chosen*, in source order."""
        for (unit,), wanted in chosen.sort(UNIT, LINE).group_by(UNIT, maintain_order=True):
            assert isinstance(unit, int)
            found = pl.concat([self._wanted(batch, wanted) for batch in self._units[unit]])
            source = self._units[unit][0].source
            facts = {row[KEY_HASH]: row for row in wanted.iter_rows(named=True)}
            rows: dict[int, list[dict[str, Any]]] = defaultdict(list)
            for row in found.sort(LINE).iter_rows(named=True):
                rows[row[KEY_HASH]].append(row)
            for key_hash, group in rows.items():
                yield _record(source, group), facts[key_hash]

    def _wanted(self, batch: RawBatch, wanted: pl.DataFrame) -> pl.DataFrame:
        frame = batch.load()
        if not self._stream.group_by:  # its line tells a row; groups are told by their key
            lines = wanted.select(pl.col(LINE).cast(pl.UInt64))
            frame = frame.join(lines, on=LINE, how="semi", maintain_order="left")
        frame = prepare(self._stream, batch.source, frame).filter(pl.col(SKIP).is_null())
        return frame.join(wanted.select(KEY_HASH), on=KEY_HASH, how="semi", maintain_order="left")

    def _letter(self, source: str, row: dict[str, Any]) -> DeadLetter:
        return DeadLetter(
            stream=self._name,
            key_hash=row[FP],
            key="",
            record_fp=row[FP],
            stage="key",
            code="key_missing",
            pointer=next((name for name in self._stream.key if not row[name]), None),
            message="is empty, so the row names no record",
            raw=_record(source, [row]).raw(),
            mapped=None,
            source=source,
            line=row[LINE],
        )


def _record(source: str, rows: list[dict[str, Any]]) -> Record:
    text = [name for name in rows[0] if name not in _OURS]
    cells = tuple({name: row[name] for name in text} for row in rows)
    return Record(rows[0][KEY] or "", cells, source, tuple(row[LINE] for row in rows))
