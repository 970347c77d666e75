"""Second pass over a stream's rows: reads the changed records from their file or page, in chunks of bounded size.

A file or page is a `SourceUnit`, whose rows can be read again. Small ones are prepared together, which is faster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice, repeat
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import Struct

from crossdock.connector import Stream
from crossdock.delta.row_preparation import (
    BEFORE,
    DELETED,
    FP,
    KEY,
    KEY_HASH,
    POSITION,
    ROWS,
    SKIP,
    UNIT,
    add_key_filter_and_fingerprint_columns,
    is_column_added_by_engine,
    repair_and_add_key_columns,
)
from crossdock.errors import ConnectorError, CrossdockError
from crossdock.mapping.convert import Row
from crossdock.reading.sources.run_context import os_errors_as_state_errors
from crossdock.state import RecordIdentity
from crossdock.values.exact_json import REPLACED_VALUE
from crossdock.values.raw_rows_and_records import (
    JSON,
    LINE,
    Again,
    RawBatch,
    Record,
    internal_column_name,
    read_arrow_file,
    record_number_column,
)
from crossdock.values.safe_local_files import create_private_file

AT_ONCE = 10_000  # rows per frame
PART_OF_PAGE = "#"  # stands before the number of a part, in the name of a page that was divided
_VIEW_BYTES = 16  # for each cell, in addition to its text
SMALL = 1_000  # rows of a file
_ROWS_AT_ONCE, _FILES_AT_ONCE, _BYTES_AT_ONCE = 10_000, 1_000, 4 << 20


class SourceUnit(Struct):
    """A file or page, or another batch of a source.

    Attributes:
        again: Reads the source again; None if its rows are stored.
        held: Its prepared rows that may have changed; None if they were too many to hold.
        block: Holds them together with those of other small files instead; otherwise None.
    """

    source: str
    again: Again | None
    stored: list[Path]
    held: list[pl.DataFrame] | None = None
    block: pl.DataFrame | None = None

    def store(self, rows: pl.DataFrame | Path, path: Path) -> None:
        """Store *rows*, which cannot be read again, at *path*, unless they are in a file."""
        if isinstance(rows, pl.DataFrame):
            path.unlink(missing_ok=True)  # of an earlier attempt in this run
            with os_errors_as_state_errors(path.parent), create_private_file(path) as part:
                rows.write_ipc(part)
        self.stored.append(path if isinstance(rows, pl.DataFrame) else rows)

    @property
    def rows_holder(self) -> object:
        """The source of its records: the block, or the unit itself."""
        return self if self.block is None else self.block

    def read_rows(self) -> Iterator[pl.DataFrame]:
        return self.again(None) if self.again else map(read_arrow_file, self.stored)

    def read_rows_at_lines(self, lines: pl.Series) -> Iterator[pl.DataFrame]:
        """Yield the rows at *lines*, which are ascending and exist. Held rows are prepared already."""
        if self.held is None and self.again:
            yield from self.again(lines.to_list())
            return
        wanted = lines.to_frame(LINE)  # joined from the left: the result has the order of *lines*
        alike = groupby(self.held or (), key=lambda frame: frame.columns)
        for frame in self.read_rows() if self.held is None else (pl.concat(list(frames)) for _, frames in alike):
            found = wanted.join(frame, on=LINE, how="inner", maintain_order="left")[frame.columns]
            yield from found.iter_slices(AT_ONCE)


def without_shared_buffers(few: pl.DataFrame) -> pl.DataFrame:
    """Copy the texts of *few*: otherwise they keep the buffers of all rows alive that they were filtered from."""
    return few.with_columns(pl.col(pl.String) + "")


def size_in_memory(rows: pl.DataFrame) -> int:
    """Return the bytes that *rows* take, including those of their empty cells."""
    return int(rows.estimated_size()) + _VIEW_BYTES * rows.height * rows.width


@dataclass
class SmallBatches:
    stream: Stream[Any]
    units: list[int] = field(default_factory=list)
    _batches: list[RawBatch] = field(default_factory=list)
    _rows: int = 0
    _bytes: int = 0

    def is_small_without_special_checks(self, batch: RawBatch) -> bool:
        """Return whether *batch* is small, can be read again, and needs no special check."""
        stream = self.stream
        is_plain = not (stream.group_by or stream.order_by or stream.suspicious or batch.deleted or not batch.again)
        return is_plain and isinstance(batch.rows, pl.DataFrame) and batch.rows.height <= SMALL

    def has_room(self, batch: RawBatch) -> bool:
        rows = batch.load()
        return not self._batches or (
            self._rows + rows.height <= _ROWS_AT_ONCE
            and len(self._batches) < _FILES_AT_ONCE
            and self._bytes + rows.estimated_size() <= _BYTES_AT_ONCE
            and rows.schema == self._batches[-1].load().schema
        )

    def add(self, unit: int, batch: RawBatch) -> None:
        rows = batch.load()
        self.units.append(unit)
        self._batches.append(batch)
        self._rows += rows.height
        self._bytes += int(rows.estimated_size())

    def pop_batch_of_unit(self, unit: int) -> list[RawBatch]:
        """Remove and return the batch of *unit*, because others of the same unit follow."""
        if not self.units or self.units[-1] != unit:
            return []
        self.units.pop()
        batch = self._batches.pop()
        self._rows -= batch.load().height
        self._bytes -= int(batch.load().estimated_size())
        return [batch]

    def prepare_all_rows_and_empty(self, report_trimmed_count: Callable[[int], object]) -> pl.DataFrame:
        """Prepare all rows together, each with its `UNIT`, and empty the collection."""
        batches, units = self._batches, self.units
        self._batches, self.units, self._rows, self._bytes = [], [], 0, 0
        frames = [batch.load() for batch in batches]
        heights = pl.Series([rows.height for rows in frames], dtype=pl.UInt32)
        numbers = pl.DataFrame({UNIT: pl.Series(units, dtype=pl.UInt32)}).select(pl.col(UNIT).repeat_by(heights))
        trimmed = list[int]()
        try:
            frame = add_key_filter_and_fingerprint_columns(
                self.stream, batches[0].source, pl.concat(frames), trimmed.append
            )
        except CrossdockError:
            for batch, rows in zip(batches, frames, strict=True):
                add_key_filter_and_fingerprint_columns(
                    self.stream, batch.source, rows
                )  # raises the error with the name of the file
            raise
        for number in trimmed:
            report_trimmed_count(number)
        return frame.with_columns(numbers.explode(UNIT)[UNIT].drop_nulls())


_LINES = "a connector must give each row of a file or page its own line number"
_AT_ONCE = 1_000  # kept records that are repaired
MAX_BYTES = 8 << 20  # of the records of a chunk
_WANTED = internal_column_name("wanted:")  # begins the columns with facts about the record that a row belongs to
_CELL_BYTES = 64  # for each cell, in addition to its text; commas count as cells: a JSON text has that many values


class KeyedRecord(Struct):
    record: Record
    identity: RecordIdentity


def read_records_of_unit(
    stream: Stream[Any], name: str, unit: SourceUnit, wanted: pl.DataFrame
) -> Iterator[KeyedRecord]:
    """Yield the records of *wanted*, which are rows of `LatestRecords.latest` of one unit, in the order of the source.

    With ``group_by``, it is that of their last rows.
    """
    read = _read_grouped_records if stream.group_by else _read_single_row_records
    return read(stream, name, unit, wanted)


def _read_single_row_records(
    stream: Stream[Any], name: str, unit: SourceUnit, wanted: pl.DataFrame
) -> Iterator[KeyedRecord]:
    """Yield records of one row, found by line, in columns, which is faster."""
    done, message = 0, f"{unit.source} returned different rows when it was read again"
    for rows in unit.read_rows_at_lines(wanted[LINE].cast(pl.UInt64)):
        part = wanted.slice(done, rows.height)
        done += rows.height
        found = rows if KEY in rows.columns else repair_and_add_key_columns(stream, rows)
        if not found[KEY_HASH].equals(part[KEY_HASH]):
            raise ConnectorError(message, where=name, hint=_LINES, code="connector_rows_wrong")
        yield from _records_from_columns(stream, name, found, part, [unit.source] * part.height)
    if done != wanted.height:
        raise ConnectorError(
            message,
            where=name,
            hint="RawBatch.again must return the row of every requested line",
            code="connector_rows_wrong",
        )


def records_from_rows_in_memory(
    stream: Stream[Any], name: str, held: pl.DataFrame, wanted: pl.DataFrame, sources: Sequence[str]
) -> Iterator[KeyedRecord]:
    """Yield the records of *wanted*, which are rows of `LatestRecords.latest`, from the prepared rows *held*."""
    places = wanted.select(UNIT, pl.col(LINE).cast(pl.UInt64))
    for start in range(0, wanted.height, AT_ONCE):
        part = wanted.slice(start, AT_ONCE)
        found = places.slice(start, AT_ONCE).join(held, on=[UNIT, LINE], how="inner", maintain_order="left")
        if not found[KEY_HASH].equals(part[KEY_HASH]):
            message = f"{sources[start]} has several rows with the same line number"
            raise ConnectorError(message, where=name, hint=_LINES, code="connector_rows_wrong")
        yield from _records_from_columns(stream, name, found, part, sources[start : start + AT_ONCE])


def _records_from_columns(
    stream: Stream[Any], name: str, found: pl.DataFrame, wanted: pl.DataFrame, sources: Sequence[str]
) -> Iterator[KeyedRecord]:
    text = [name for name in found.columns if not is_column_added_by_engine(name)]
    keys, lines = found[KEY].to_list(), wanted[LINE].to_list()
    positions = wanted[POSITION].to_list() if stream.order_by else repeat(None)
    hashes = zip(wanted[KEY_HASH].to_list(), wanted[FP].to_list(), positions, strict=False)
    cells = zip(*(found[name].to_list() for name in text), strict=True)
    before, rows = _cells_before_repair(found), zip(keys, lines, sources, cells, hashes, strict=True)
    for (key, line, source, row, (key_hash, fp, position)), was in zip(rows, before, strict=False):
        record = Record(key, (dict(zip(text, row, strict=True)),), source, (line,), (was,))
        yield KeyedRecord(record, RecordIdentity(name, key, key_hash, fp, position, source, line))


def keys_filtered_out_now(stream: Stream[Any], kept: Sequence[tuple[RecordIdentity, dict[str, Any]]]) -> set[int]:
    """Return the key hashes of stored records of which the filters of *stream* leave no row now."""
    if not stream.skip:
        return set()
    left = {each.identity.key_hash for each in stored_records_repaired_and_filtered_again(stream, kept)}
    return {identity.key_hash for identity, _ in kept} - left


def stored_records_repaired_and_filtered_again(
    stream: Stream[Any], kept: Iterable[tuple[RecordIdentity, dict[str, Any]]]
) -> Iterator[KeyedRecord]:
    """Yield stored records with the current repairs (except of the key) and filters, as if they were read again."""
    repairs = {name: repair for name, repair in stream.columns.items() if name not in stream.key}
    remaining, is_left = iter(kept), _row_remains_predicate(stream) if stream.skip else None
    while some := list(islice(remaining, _AT_ONCE)):
        restored = ((identity, Record.restored(identity.key, identity.source, raw)) for identity, raw in some)
        records = [KeyedRecord(_record_before_repairs(record, stream), identity) for identity, record in restored]
        for name, repair in repairs.items():
            pairs = [
                (row, was)
                for each in records
                for row, was in _rows_paired_with_unrepaired_cells(each.record)
                if row.get(name) is not None
            ]
            texts = pl.DataFrame({name: [row[name] for row, _ in pairs]}, schema={name: pl.String})
            for (row, was), text in zip(pairs, texts.select(repair.expression(name))[name].to_list(), strict=True):
                if text != row[name]:
                    was[name], row[name] = row[name] or "", text
        for each in records:
            record = each.record if is_left is None else _without_filtered_rows(each.record, is_left)
            if record is not None:
                yield KeyedRecord(record, each.identity)


def _row_remains_predicate(stream: Stream[Any]) -> Callable[[Row], bool]:
    filters = [each.predicate() for each in stream.skip.values()]
    incomplete = None if stream.incomplete is None else stream.incomplete.predicate()
    without = dict.fromkeys(stream.used_columns)

    def is_left(row: Row) -> bool:
        cells = {**without, **row}
        is_incomplete = (incomplete is not None and incomplete(cells)) or REPLACED_VALUE in (row.get(JSON) or "")
        return is_incomplete or not any(matches(cells) for matches in filters)

    return is_left


def _without_filtered_rows(record: Record, is_left: Callable[[Row], bool]) -> Record | None:
    left = [number for number, row in enumerate(record.rows) if is_left(row)]
    if not left:
        return None
    rows, lines = tuple(record.rows[number] for number in left), tuple(record.lines[number] for number in left)
    return replace(record, rows=rows, lines=lines, before=tuple(record.before[number] for number in left))


def _record_before_repairs(record: Record, stream: Stream[Any]) -> Record:
    """Return *record* before its repairs, and with paths that the stream has declared since."""
    copied = record.with_paths(stream.used_columns)
    before: tuple[dict[str, str], ...] = tuple({} for _ in copied.rows)
    for row, was, new in zip(copied.rows, record.before, before, strict=False):
        row.update({name: text for name, text in was.items() if name not in stream.key})
        new.update({name: text for name, text in was.items() if name in stream.key})
    return replace(copied, before=before)


def _rows_paired_with_unrepaired_cells(record: Record) -> Iterator[tuple[dict[str, str | None], dict[str, str]]]:
    return zip(record.rows, record.before, strict=True)


def _cells_before_repair(rows: pl.DataFrame) -> Iterator[dict[str, str]]:
    names = [name for column in rows.columns if (name := column.removeprefix(BEFORE)) != column]
    if not names:
        return repeat({})
    was = zip(*(rows[f"{BEFORE}{name}"].to_list() for name in names), strict=True)
    now = zip(*(rows[name].to_list() for name in names), strict=True)
    return (
        {name: old for name, old, new in zip(names, olds, news, strict=True) if old != new}
        for olds, news in zip(was, now, strict=True)
    )


def _read_grouped_records(
    stream: Stream[Any], name: str, unit: SourceUnit, wanted: pl.DataFrame
) -> Iterator[KeyedRecord]:
    """Yield each record as soon as all of its rows are read, so that only rows that are apart are held."""
    held: defaultdict[int, list[tuple[dict[str, Any], dict[str, str]]]] = defaultdict(list)
    for found in _rows_of_wanted_records(stream, unit, wanted):
        text = [each for each in found.columns if not is_column_added_by_engine(each)]
        for row, was in zip(found.iter_rows(named=True), _cells_before_repair(found), strict=False):
            rows = held[row[KEY_HASH]]
            rows.append((row, was))
            if len(rows) == row[_WANTED + ROWS]:
                yield _record_of_rows(name, unit.source, text, held.pop(row[KEY_HASH]))


def _record_of_rows(
    name: str, source: str, text: Sequence[str], read: Sequence[tuple[dict[str, Any], dict[str, str]]]
) -> KeyedRecord:
    rows, before = zip(*sorted(read, key=lambda each: each[0][LINE]), strict=True)
    cells = tuple({each: row[each] for each in text} for row in rows)
    record = Record(rows[0][KEY] or "", cells, source, tuple(row[LINE] for row in rows), before)
    place = rows[0][_WANTED + FP], rows[0].get(_WANTED + POSITION), source, record.lines[0]
    return KeyedRecord(record, RecordIdentity(name, record.key, rows[0][KEY_HASH], *place))


def _rows_of_wanted_records(stream: Stream[Any], unit: SourceUnit, wanted: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows that form the records of *wanted*, with the facts about these, in frames of bounded size."""
    facts = wanted.select(KEY_HASH, pl.col(FP, ROWS, LINE, *({POSITION} & {*wanted.columns})).name.prefix(_WANTED))
    parts = (
        add_key_filter_and_fingerprint_columns(stream, unit.source, frame).filter(pl.col(SKIP).is_null())
        for frame in unit.read_rows()
    )
    frames: Iterator[pl.DataFrame] = (part.join(facts, on=KEY_HASH, maintain_order="left") for part in parts)
    if stream.deleted is not None:  # a later row may say that the rows before it no longer count
        frames = iter([rows_after_last_deletion(pl.concat(frames))])
    number, begun = record_number_column(stream.key), list[pl.DataFrame]()
    for found in frames:
        rows = found
        if number in found.columns:  # other records of the file may have the same keys
            begun.append(found.filter(pl.col(LINE) == pl.col(_WANTED + LINE)).select(KEY_HASH, number))
            rows = found.join(pl.concat(begun), on=[KEY_HASH, number], how="semi", maintain_order="left")
        yield from rows.iter_slices(AT_ONCE)


def rows_after_last_deletion(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of one unit that form groups, without those that are deleted or older than a deletion."""
    if DELETED not in rows.columns:
        return rows
    order = pl.col(POSITION if POSITION in rows.columns else LINE)
    last_deleted = order.filter(pl.col(DELETED)).max().over(KEY_HASH)
    is_older = (order < last_deleted).fill_null(value=False)  # a row of an unknown position counts as the newest
    return rows.filter(~pl.col(DELETED) & ~is_older)


def chunks_of_bounded_count_and_size(reads: Iterator[KeyedRecord], most: int) -> Iterator[list[KeyedRecord]]:
    """Yield *reads* in lists of *most* records, or fewer if records are large."""
    chunk, free_bytes = list[KeyedRecord](), MAX_BYTES
    for read in reads:
        chunk.append(read)
        rows = read.record.rows
        text = "".join([cell for row in rows for cell in row.values() if cell])
        free_bytes -= _CELL_BYTES * (sum(map(len, rows)) + text.count(",")) + len(text)
        if len(chunk) == most or free_bytes <= 0:
            yield chunk
            chunk, free_bytes = [], MAX_BYTES
    if chunk:
        yield chunk
