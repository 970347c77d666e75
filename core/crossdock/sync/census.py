"""First pass over what a stream read: which rows make which record, and which record of a key wins.

Only hashes, positions and places are held; the rows stay on disk until the second pass asks for the changed ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from crossdock.connector import Stream
from crossdock.records import LINE, RawBatch, Record
from crossdock.state import DeadLetter
from crossdock.sync import fingerprint
from crossdock.sync.rows import FP, KEY, KEY_HASH, POSITION, SKIP, TIE, prepare
from crossdock.sync.tally import Tally

UNIT = "_unit"
_WINNERS = {
    KEY_HASH: fingerprint.HASH,
    FP: fingerprint.HASH,
    LINE: pl.UInt64,
    "rows": pl.UInt32,
    POSITION: pl.String,
    TIE: fingerprint.HASH,
    UNIT: pl.UInt32,
}
_OURS = {KEY, KEY_HASH, SKIP, FP, POSITION, TIE, LINE}


class Census:
    """What one stream read in a run.

    Attributes:
        winners: One row a record: ``_key_hash``, ``_fp``, ``_line`` (its first), ``rows`` (how many), ``_position``,
            ``_unit`` (index of the batches that hold it).
        cursor: Of the last batch that had one.
        keyless: Rows without a key, as dead letters.
    """

    def __init__(self, stream: Stream[Any], name: str, work: Path) -> None:
        self._stream, self._name, self._work = stream, name, work
        self._units: list[list[RawBatch]] = []
        self.winners = pl.DataFrame(schema=_WINNERS)
        self.cursor: str | None = None
        self.keyless: list[DeadLetter] = []

    def take(self, batches: Iterable[RawBatch], tally: Tally, read: Callable[[int], None]) -> None:
        """Count every row, and find the winner of each key.

        Args:
            read: Told how many rows each batch had.
        """
        for name in self._stream.skip:
            tally.rows_filtered[name] = 0
        parts: list[pl.DataFrame] = []
        for number, batch in enumerate(batches):
            if not (self._stream.group_by and self._units and self._units[-1][0].source == batch.source):
                self._compete(parts, tally)
                parts = []
                self._units.append([])
            self._units[-1].append(self._keep(number, batch))
            parts.append(self._narrow(self._units[-1][-1], tally, read))
        self._compete(parts, tally)
        tally.rows_in_records += int(self.winners["rows"].sum())
        tally.count("read", self.winners.height)

    def _keep(self, number: int, batch: RawBatch) -> RawBatch:
        self.cursor = batch.cursor or self.cursor
        if isinstance(batch.rows, Path):
            return batch
        path = self._work / f"{self._name}-{number}.arrow"
        batch.rows.write_ipc(path)
        return RawBatch(batch.source, path)

    def _narrow(self, batch: RawBatch, tally: Tally, read: Callable[[int], None]) -> pl.DataFrame:
        frame = prepare(self._stream, batch)
        tally.rows_read += frame.height
        read(frame.height)
        for name, number in frame[SKIP].drop_nulls().value_counts().iter_rows():
            tally.rows_filtered[name] += number
        frame = frame.filter(pl.col(SKIP).is_null())
        keyless = frame.filter(pl.col(KEY).is_null())
        if keyless.height:
            tally.rows_rejected += keyless.height
            self.keyless += [self._letter(batch.source, row) for row in keyless.iter_rows(named=True)]
        narrow = frame.filter(pl.col(KEY).is_not_null()).select(KEY_HASH, FP, LINE, POSITION, TIE)
        return narrow if self._stream.group_by else narrow.with_columns(pl.lit(1, dtype=pl.UInt32).alias("rows"))

    def _compete(self, parts: list[pl.DataFrame], tally: Tally) -> None:
        """Let the rows of one unit compete with the winners so far; a unit is one source where rows are grouped."""
        if not parts:
            return
        candidates = pl.concat(parts).with_columns(pl.lit(len(self._units) - 1, dtype=pl.UInt32).alias(UNIT))
        if self._stream.group_by:
            candidates = fingerprint.of_groups(candidates, KEY_HASH, FP, self._stream.fingerprint)
        order = [POSITION, TIE] if self._stream.order_by else [UNIT, LINE]
        both = pl.concat([self.winners, candidates.select(list(_WINNERS)).cast(_WINNERS)]).sort(order)  # type: ignore[arg-type]  # polars types schemas invariantly
        last = pl.col(KEY_HASH).is_last_distinct()
        tally.rows_superseded += int(both.filter(~last)["rows"].sum())
        self.winners = both.filter(last)

    @property
    def sources(self) -> list[str]:
        """The names of the files or pages that were read."""
        return list(dict.fromkeys(unit[0].source for unit in self._units))

    def records(self, chosen: pl.DataFrame) -> Iterator[tuple[Record, dict[str, Any]]]:
        """Second pass: the records of *chosen*, some of `winners`, each with its row of *chosen*, in source order."""
        for (unit,), wanted in chosen.sort(UNIT, LINE).group_by(UNIT, maintain_order=True):
            assert isinstance(unit, int)
            on = [KEY_HASH] if self._stream.group_by else [KEY_HASH, LINE]
            found = pl.concat([self._wanted(batch, wanted, on) for batch in self._units[unit]])
            source = self._units[unit][0].source
            facts = {row[KEY_HASH]: row for row in wanted.iter_rows(named=True)}
            rows: dict[int, list[dict[str, Any]]] = defaultdict(list)
            for row in found.sort(LINE).iter_rows(named=True):
                rows[row[KEY_HASH]].append(row)
            for key_hash, group in rows.items():
                yield _record(source, group), facts[key_hash]

    def _wanted(self, batch: RawBatch, wanted: pl.DataFrame, on: list[str]) -> pl.DataFrame:
        frame = prepare(self._stream, batch).filter(pl.col(SKIP).is_null())
        return frame.join(wanted.select(on), on=on, how="semi", maintain_order="left")

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
