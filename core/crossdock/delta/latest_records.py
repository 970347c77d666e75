"""First pass over a stream's rows: the rows of each record, the latest record of each key, and keys listed repeatedly.

Hashes, positions and places are held in memory, and rows that may have changed while they are few. The second pass
reads the rows of changed records: from the source by their lines if it can be read again, else from files on disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from crossdock.connector import Stream
from crossdock.delta import fingerprint, row_preparation
from crossdock.delta.changed_record_reading import (
    PART_OF_PAGE,
    KeyedRecord,
    SmallBatches,
    SourceUnit,
    read_records_of_unit,
    records_from_rows_in_memory,
    rows_after_last_deletion,
    size_in_memory,
    without_shared_buffers,
)
from crossdock.delta.row_preparation import (
    BEFORE,
    DELETED,
    FP,
    KEY,
    KEY_HASH,
    POSITION,
    ROWS,
    SAME,
    SKIP,
    UNIT,
    DeadLettersOfRowsWithoutKey,
    NotationConsistencyCheck,
    add_key_filter_and_fingerprint_columns,
    compute_keys,
    is_column_added_by_engine,
    names_of_skip_filters,
    rows_with_given_keys,
    split_into_parts_by_key,
)
from crossdock.delta.state_comparison import KnownKeysInExportOrder
from crossdock.errors import RefusedError
from crossdock.mapping.external_ids import NOT_OURS
from crossdock.mapping.row_order_and_cursors import as_order_by_objects
from crossdock.reading.formats.suspicious_cells import Suspicion, find_suspicious_cells_by_column
from crossdock.state import DeadLetter
from crossdock.values.raw_rows_and_records import (
    JSON,
    LINE,
    Again,
    RawBatch,
    cells_of_column,
    record_number_column,
    with_path_columns,
)
from crossdock.values.run_states_and_tally import Tally

KEEP_TOGETHER = (
    "if these are parts of it, let the sender keep its rows together,"
    " or add to 'key' what tells them apart, such as the number of a shipment"
)
EXAMPLES = 5
_PLACES = 3  # of each example


class RepeatedKey(NamedTuple):
    """A key and the places where it is listed: the first places, and the last one that counts."""

    key: str
    places: tuple[str, ...]


class RepeatedKeys(NamedTuple):
    number: int = 0
    examples: tuple[RepeatedKey, ...] = ()


class RowsOfRepeatedKeys:
    """Rows of a scan with the same key. *last* has the row that counts for each key."""

    def __init__(self, last: pl.DataFrame | None = None, listed: pl.DataFrame | None = None) -> None:
        self._number = 0 if last is None else last.height
        self._last = self._listed = pl.DataFrame()
        if last is not None and listed is not None:
            is_row = pl.col(LINE) > 0 if DELETED not in last.columns else ~pl.col(DELETED) & (pl.col(LINE) > 0)
            self._last = last.filter(is_row).head(EXAMPLES)
            self._listed = listed.filter(pl.col(LINE) > 0).join(self._last, on=KEY_HASH, how="semi")

    def repeated_keys(
        self,
        read_records: Callable[[pl.DataFrame], Iterator[KeyedRecord]],
        place_of_row: Callable[[int, int], str],
        *,
        with_examples: bool,
    ) -> RepeatedKeys:
        """Return the number of repeated keys; *with_examples*, also the first keys with their places."""
        if not with_examples or not self._last.height:
            return RepeatedKeys(self._number)
        examples = []
        for each in read_records(self._last):
            rows = self._listed.filter(pl.col(KEY_HASH) == pl.lit(each.identity.key_hash, pl.UInt128))
            places = [place_of_row(*row) for row in rows.sort(UNIT, LINE)[[UNIT, LINE]].rows()]
            kept = places if len(places) <= _PLACES else [*places[: _PLACES - 1], places[-1]]
            examples.append(RepeatedKey(each.identity.key, tuple(kept)))
        return RepeatedKeys(self._number, tuple(examples))


class RecordsChangedWhileListed(NamedTuple):
    """How many records were in several answers with different content, and the place where the first came again."""

    number: int
    place: str


def find_records_changed_while_listed(
    listed: pl.DataFrame, place_of_row: Callable[[int, int], str]
) -> RecordsChangedWhileListed | None:
    """Return what a list of several answers shows to have changed while it was read: the later answer counts."""
    differing = _rows_of_keys_with_several_fingerprints(listed)
    if not differing.height:
        return None
    _, again = _places_of_first_record(differing, place_of_row)
    return RecordsChangedWhileListed(differing[KEY_HASH].n_unique(), again)


def raise_if_duplicates_differ(
    listed: pl.DataFrame,
    place_of_row: Callable[[int, int], str],
    answer: pl.Expr | None = None,
    *,
    is_declared_in_config: bool,
) -> None:
    """Refuse a list of everything in which two rows of a key differ. Identical rows are accepted.

    If the rows are from several answers, *answer* is the number of a row's own: rows of others may differ.
    """
    differing = _rows_of_keys_with_several_fingerprints(listed, *([] if answer is None else [answer]))
    if differing.height:
        first, second = _places_of_first_record(differing, place_of_row)
        hint = "Ask the sender which one is right, or to keep the rows of a record together"
        if is_declared_in_config:
            hint += "; order_by or duplicates can say which one counts, if one always does"
        raise RefusedError(
            f"duplicate of the record at {first}, with different content",
            where=second,
            hint=f"{hint}.",
            code="records_repeated",
        )


def _rows_of_keys_with_several_fingerprints(listed: pl.DataFrame, *within: pl.Expr) -> pl.DataFrame:
    return listed.filter(pl.col(FP).n_unique().over(KEY_HASH, *within) > 1).sort(UNIT, LINE)


def _places_of_first_record(differing: pl.DataFrame, place_of_row: Callable[[int, int], str]) -> list[str]:
    """Return the first two places of the first record of *differing*."""
    # with its type: polars infers at most 127 bits for a literal
    is_first = pl.col(KEY_HASH) == pl.lit(differing[KEY_HASH][0], fingerprint.HASH)
    return [place_of_row(*row) for row in differing.filter(is_first)[[UNIT, LINE]].rows()[:2]]


def drop_candidates_contradicted_by_later_batch(candidates: pl.DataFrame) -> pl.DataFrame:
    """Remove candidates that a later batch contradicts. Keys that a batch names as deleted have `LINE` 0."""
    if DELETED not in candidates.columns:
        return candidates
    is_named, of_key = pl.col(DELETED) & (pl.col(LINE) == 0), pl.col(KEY_HASH)
    named_in = pl.when(is_named).then(pl.col(UNIT)).max().over(of_key)
    row_in = pl.when(~is_named).then(pl.col(UNIT)).max().over(of_key)
    later_row = (row_in >= named_in).fill_null(value=False)
    return candidates.filter(
        pl.when(later_row).then(~is_named).otherwise(named_in.is_null() | (is_named & (pl.col(UNIT) == named_in)))
    )


def has_unique_keys(candidates: pl.DataFrame, *, matched_once: bool) -> bool:
    """Return whether no key occurs twice. With *matched_once*, only the rows that are not `SAME` are searched."""
    keys = candidates[KEY_HASH].to_frame()  # `select` would copy its many chunks
    others = keys.filter(~candidates[SAME])[KEY_HASH]
    if matched_once and len(others) < keys.height / 10:
        return others.n_unique() == rows_with_given_keys(keys, others).height == len(others)
    return sum(part[KEY_HASH].n_unique() for (part,) in split_into_parts_by_key(keys)) == keys.height


_HELD_BYTES = 32 << 20  # of rows that may have changed
_DIGESTED_AT_ONCE = 10_000
_EXAMINED_RECORDS = 3  # that several files have
_SAMPLED_KEYS, _SAMPLED_AT_ONCE = 10_000, 100  # that are compared in other notations, and those of one frame
_POSITIONS = {KEY_HASH: fingerprint.HASH, UNIT: pl.UInt32, LINE: pl.UInt32, POSITION: pl.String}
_OF_NO_ROW = {POSITION: None, ROWS: 1, DELETED: False}


class LatestRecords:
    """What one stream read in a run.

    Attributes:
        latest: One row per record: `KEY_HASH`, `FP`, `SAME` (true if known to be unchanged; false does not prove a
            change), `LINE` (of its first row), `UNIT` (index of its file or page); `POSITION` with ``order_by``; `ROWS`
            (number of rows) with ``group_by``; `DELETED` (true if its latest row says so) if the stream finds deleted
            records.
        replaced: Which records of a list of everything were in several answers to requests, with different content.
    """

    def __init__(
        self,
        stream: Stream[Any],
        name: str,
        work: Path,
        *,
        lists_all: bool | None = None,
        are_answers: Callable[[], bool] = lambda: False,
    ) -> None:
        self._stream, self._name, self._work, self._are_answers = stream, name, work, are_answers
        self._lists_all = stream.mode == "snapshot" if lists_all is None else lists_all
        self._units: list[SourceUnit] = []
        self._again_of_last: Again | None = None
        self._record_number = record_number_column(stream.key)
        self._parts: list[pl.DataFrame] = []
        self._group: list[pl.DataFrame] = []  # rows of the current unit, with ``group_by``
        self._edges = dict[int, tuple[int, int]]()  # the keys of the first and the last row, with ``group_by``, by unit
        self.divided_record: str | None = None
        self.disjoint_versions: str | None = None
        self._rows_before_deletion = 0  # of the same key and unit, with ``group_by``
        self._free_bytes = _HELD_BYTES
        self._small = SmallBatches(stream)
        self._without_key = DeadLettersOfRowsWithoutKey(stream, name)
        self._notations = NotationConsistencyCheck(as_order_by_objects(stream.order_by))
        fp = pl.UInt64 if stream.fingerprint == "xxh3_64" else fingerprint.HASH
        ordered = {POSITION: pl.String} if stream.order_by else {}
        grouped = {ROWS: pl.UInt32} if stream.group_by else {}
        marked = {DELETED: pl.Boolean} if stream.yields_deleted or stream.deleted is not None else {}
        places = {LINE: pl.UInt32, UNIT: pl.UInt32}
        self._schema = {KEY_HASH: fingerprint.HASH, FP: fp, SAME: pl.Boolean, **places, **ordered, **grouped, **marked}
        self.latest = pl.DataFrame(schema=self._schema)
        self._repeated = RowsOfRepeatedKeys()
        self.suspicious = SuspiciousCells(stream)
        self.trimmed_rows = list[int]()  # numbers of rows whose key had white space around it
        self._key_samples = list[str]()
        self.changed_names = 0  # external ids that are those of others, unless the partner has changed them
        self.cursor: str | None = None
        self.replaced: RecordsChangedWhileListed | None = None
        self.key_order: KnownKeysInExportOrder | None = None

    # ---- first pass

    def find_latest_of_each_key(
        self,
        batches: Iterable[RawBatch],
        tally: Tally,
        advance: Callable[[int], None],
        known: Callable[[], pl.DataFrame | None] | None = None,
    ) -> None:
        """Count every row, and find the latest record of each key. *known* returns None if a join is faster."""
        for name in names_of_skip_filters(self._stream):
            tally.rows_filtered[name] = 0
        for number, batch in enumerate(batches):
            self.cursor = batch.cursor or self.cursor
            if known and not number and not self._stream.group_by and (frame := known()) is not None:
                self.key_order = KnownKeysInExportOrder(frame)
            begins = self._begin_or_continue_unit(number, batch)
            self._add_keys_named_as_deleted(batch, tally)
            tally.parts.update(batch.left_out)
            is_small = begins and self._small.is_small_without_special_checks(batch)
            parts = [*self._small.pop_batch_of_unit(len(self._units) - 1), batch]  # all batches of its unit
            if not (is_small and self._small.has_room(batch)):
                self._add_small_batches(tally, advance)
            if is_small:
                self._small.add(len(self._units) - 1, batch)
            else:
                for part in parts:
                    frame = add_key_filter_and_fingerprint_columns(
                        self._stream, part.source, part.load(), self.trimmed_rows.append
                    )
                    self._add_rows(self._filter_and_require_keys(frame, tally, advance))
        self._add_small_batches(tally, advance)
        if self._lists_all and self._units and not tally.rows_read and self._stream.empty != "all_gone":
            hint = "check the source; a page without rows does not show that records are gone"
            raise RefusedError(
                "is a snapshot without rows", where=self._units[-1].source, hint=hint, code="snapshot_empty"
            )
        self._group_rows_of_unit()
        self._select_latest(tally)
        tally.count("read", self.latest.height)

    def _begin_or_continue_unit(self, number: int, batch: RawBatch) -> bool:
        """Store the rows of *batch* if they cannot be read again. Return whether it begins a unit."""
        again = None if self._stream.group_by else batch.again  # a group needs all its rows, wherever they are
        last = self._units[-1] if self._units else None
        is_of_last = batch.again is self._again_of_last and (self._stream.group_by or again)  # names are not unique
        begins = last is None or last.source != batch.source or not is_of_last or bool(batch.deleted)
        self._again_of_last = batch.again
        if last is None or begins:
            self._group_rows_of_unit()
            last = SourceUnit(batch.source, again, [], held=[] if self.key_order and self._free_bytes > 0 else None)
            self._units.append(last)
        if again is None:
            last.store(batch.rows, self._work / f"{self._name}-{number}.arrow")
        return begins

    def _add_keys_named_as_deleted(self, batch: RawBatch, tally: Tally) -> None:
        """Add the keys that *batch* names as deleted, before its rows, which show what exists again."""
        if not batch.deleted:
            return
        names = self._stream.key
        if wrong := next((key for key in batch.deleted if len(key) != len(names)), None):
            message = f"a deleted record has a key of {len(wrong)} parts instead of {len(names)}"
            raise RefusedError(
                message, where=batch.source, hint=f"the key is {', '.join(names)}", code="deleted_keys_wrong"
            )
        cells = pl.DataFrame(batch.deleted, schema=dict.fromkeys(names, pl.String), orient="row")
        keys = compute_keys(self._stream, batch.source, cells)
        frame = cells.with_columns(keys).with_columns(
            pl.lit(0, pl.UInt64).alias(LINE), pl.lit(value=True).alias(DELETED)
        )
        tally.rows_read += frame.height
        if self._stream.own_keys is not None:
            tally.rows_filtered[NOT_OURS] += frame[KEY].null_count()
            frame = frame.filter(pl.col(KEY).is_not_null())
        frame = frame.with_columns(
            fingerprint.row_fingerprints(names, "", "xxh3_64").alias(FP)
        )  # for those without a key
        frame = self._reject_rows_without_key(frame, tally)
        self._parts.append(self._as_candidates(frame))

    def _add_small_batches(self, tally: Tally, advance: Callable[[int], None]) -> None:
        """Add the rows of small batches, and hold those that may have changed in one block."""
        if not (units := self._small.units):
            return
        rows = self._filter_and_require_keys(
            self._small.prepare_all_rows_and_empty(self.trimmed_rows.append), tally, advance
        )
        same = self.key_order.unchanged_row_mask(rows) if self.key_order else None
        self._parts.append(self._as_candidates(rows, same))
        few = rows if same is None else without_shared_buffers(rows.filter(~same))
        size = size_in_memory(few)
        block = few if size <= self._free_bytes else None
        self._free_bytes -= 0 if block is None else size
        for unit in units:
            self._units[unit].held, self._units[unit].block = None, block

    def _filter_and_require_keys(
        self, frame: pl.DataFrame, tally: Tally, advance: Callable[[int], None]
    ) -> pl.DataFrame:
        tally.rows_read += frame.height
        advance(frame.height)
        if names_of_skip_filters(self._stream):
            for name, number in frame[SKIP].drop_nulls().value_counts().iter_rows():
                tally.rows_filtered[name] += number
            self.changed_names += self._count_external_ids_partner_changed(frame)
            frame = frame.filter(pl.col(SKIP).is_null())
        frame = self._reject_rows_without_key(frame, tally)
        if len(self._key_samples) < _SAMPLED_KEYS:
            self._key_samples += frame[KEY].head(_SAMPLED_AT_ONCE).to_list()
        self._notations.check(self._units[-1].source, frame)
        return self.suspicious.collect_and_raise_if_too_many(self._units[-1].source, frame)

    def _count_external_ids_partner_changed(self, frame: pl.DataFrame) -> int:
        """Return how many rows of others have a name that may be ours and changed by the partner."""
        if (ours := self._stream.ours) is None:
            return 0
        others, before = frame.filter(pl.col(SKIP) == NOT_OURS), f"{BEFORE}{ours.member}"
        return sum(map(ours.is_changed, cells_of_column(others, before if before in frame.columns else ours.member)))

    def _reject_rows_without_key(self, frame: pl.DataFrame, tally: Tally) -> pl.DataFrame:
        """Return the rows of *frame* (of the last unit, or of each `UNIT`) that have a key, and reject the others."""
        if not frame[KEY].null_count():
            return frame
        without_key = frame.filter(pl.col(KEY).is_null())
        tally.rows_rejected += without_key.height
        of_units = UNIT in frame.columns
        for rows in without_key.partition_by(UNIT, maintain_order=True) if of_units else [without_key]:
            self._without_key.add(self._units[rows[UNIT][0] if of_units else -1].source, rows)
        return frame.filter(pl.col(KEY).is_not_null())

    def _add_rows(self, rows: pl.DataFrame) -> None:
        if self._stream.group_by:
            if DELETED in rows.columns:  # they belong to no group
                self._parts.append(self._as_candidates(rows.filter(DELETED)))
            kinds = self._schema | {self._record_number: pl.String}
            columns = [pl.col(name).cast(kind) for name, kind in kinds.items() if name in rows.columns]
            self._group.append(rows.select(columns))
        elif self.key_order:
            same = self.key_order.unchanged_row_mask(rows)
            self._parts.append(self._as_candidates(rows, same))
            self._hold_changed_rows_in_memory(self._units[-1], rows, same)
        else:
            self._parts.append(self._as_candidates(rows))

    def _hold_changed_rows_in_memory(self, unit: SourceUnit, rows: pl.DataFrame, same: pl.Series) -> None:
        if unit.held is None or same.all():
            return
        few = without_shared_buffers(rows.filter(~same))
        unit.held.append(few)
        self._free_bytes -= size_in_memory(few)
        if self._free_bytes <= 0:
            unit.held = None

    def _group_rows_of_unit(self) -> None:
        """Make records of the current unit's rows. Groups span neither units nor numbered records of a file."""
        if self._group:
            rows = rows_after_last_deletion(read := pl.concat(self._group))
            deleted = int(read[DELETED].sum()) if DELETED in read.columns else 0
            self._rows_before_deletion += read.height - deleted - rows.height
            rows = rows.drop(DELETED, strict=False)
            if rows.height:
                self._edges[len(self._units) - 1] = rows[KEY_HASH][0], rows[KEY_HASH][-1]
            of_record = [name for name in (KEY_HASH, self._record_number) if name in rows.columns]
            grouped = fingerprint.group_fingerprints(rows, of_record, FP, self._stream.fingerprint).rename(
                {"rows": ROWS}
            )
            self.disjoint_versions = self.disjoint_versions or self._place_of_versions_without_common_row(rows)
            self._parts.append(self._as_candidates(grouped))
            self._group = []

    def _as_candidates(self, rows: pl.DataFrame, same: pl.Series | None = None) -> pl.DataFrame:
        unit = pl.col(UNIT) if UNIT in rows.columns else pl.lit(len(self._units) - 1)
        given = {UNIT: unit, SAME: pl.lit(value=False) if same is None else pl.lit(same)}
        missing = {name: pl.lit(value) for name, value in _OF_NO_ROW.items() if name not in rows.columns}
        columns = {name: pl.col(name) for name in self._schema} | missing | given
        if DELETED in rows.columns:  # a fingerprint says what a record is, not that it was deleted
            columns[FP] = pl.when(~pl.col(DELETED)).then(columns[FP])
            columns[SAME] = columns[SAME] & ~pl.col(DELETED)
        return rows.select(columns[name].cast(kind).alias(name) for name, kind in self._schema.items())

    def _select_latest(self, tally: Tally) -> None:
        if not self._parts:
            return
        candidates = pl.concat(self._parts, rechunk=False)
        self._parts = []
        if has_unique_keys(candidates, matched_once=self.key_order is not None and self.key_order.once):
            self.latest = candidates
        else:
            duplicated = pl.col(KEY_HASH).is_duplicated()
            competing = drop_candidates_contradicted_by_later_batch(candidates.filter(duplicated))
            stream = self._stream
            if self._lists_all and not (stream.order_by or stream.duplicates == "last"):
                self._raise_if_rows_contradict(competing)
            self.divided_record = self._place_of_divided_record(competing)
            if not (self.divided_record or self.disjoint_versions):
                self.disjoint_versions = self._place_of_files_without_common_row(competing)
            if self._is_ordered_by_cursor_only:
                competing = self._with_positions_by_cursor(competing)
            order = [POSITION, UNIT, LINE] if POSITION in competing.columns else [UNIT, LINE]  # of equal ones the last
            # a row whose position is unknown counts as the newest, so that its record is rejected and not lost
            last = competing.sort(order, nulls_last=True, maintain_order=True).filter(
                pl.col(KEY_HASH).is_last_distinct()
            )
            self.latest = pl.concat([candidates.filter(~duplicated), last.select(candidates.columns)], rechunk=False)
            self._repeated = RowsOfRepeatedKeys(last, competing)
        in_records = self._row_count(self.latest)
        tally.rows_in_records += in_records
        tally.rows_superseded += self._row_count(candidates) + self._rows_before_deletion - in_records

    def _place_of_versions_without_common_row(self, rows: pl.DataFrame) -> str | None:
        """Return where numbered records of one key are in the unit that may be parts of one: only the last one counts.

        A version and its correction usually have a row in common; a shipment of an order and the next one have none.
        """
        number = self._record_number
        if number not in rows.columns or self._stream.order_by:  # which says that they are versions
            return None
        is_several, is_common = (pl.col(number).n_unique().over(KEY_HASH, *by) > 1 for by in ([], [FP]))
        apart = rows.filter(is_several).filter(~is_common.any().over(KEY_HASH))
        if not apart.height:
            return None
        first, *_, last = (
            apart.filter(pl.col(KEY_HASH) == pl.col(KEY_HASH).first())
            .group_by(number)
            .agg(pl.col(LINE).min())[LINE]
            .sort()
        )
        return " and ".join(self.place_of_row(len(self._units) - 1, line) for line in (first, last))

    def _place_of_files_without_common_row(self, competing: pl.DataFrame) -> str | None:
        """Return where two files have a record of several rows that may be in parts, as an export in shards has.

        Few records are examined, because their files are read again for it: in shards, almost all are divided.
        """
        if not (self._stream.group_by and self._stream.reads_files) or self._stream.order_by:
            return None
        differs = (pl.col(FP).n_unique().over(KEY_HASH) > 1) & (pl.col(ROWS).max().over(KEY_HASH) > 1)
        versions = competing.filter(pl.col(FP).is_not_null()).filter(differs).sort(UNIT, LINE)  # not of deletions
        for key in versions[KEY_HASH].unique(maintain_order=True).head(_EXAMINED_RECORDS):
            *_, before, last = versions.filter(pl.col(KEY_HASH) == pl.lit(key, fingerprint.HASH))[[UNIT, LINE]].rows()
            if before[0] != last[0] and self._fingerprints_of_rows(key, *before).isdisjoint(
                self._fingerprints_of_rows(key, *last)
            ):
                return f"{self.place_of_row(*before)} and {self.place_of_row(*last)}"
        return None

    def _fingerprints_of_rows(self, key: int, number: int, line: int) -> set[int]:
        """Return those of the rows of *key* in a file, from *line* on."""
        unit, found = self._units[number], set[int]()
        for frame in unit.read_rows():
            rows = add_key_filter_and_fingerprint_columns(self._stream, unit.source, frame)
            is_of_key = pl.col(KEY_HASH) == pl.lit(key, fingerprint.HASH)
            found.update(rows.filter(is_of_key, pl.col(SKIP).is_null(), pl.col(LINE) >= line)[FP].to_list())
        return found

    def _place_of_divided_record(self, competing: pl.DataFrame) -> str | None:
        """Return where a record is with which one unit ends and the next one begins, of which only the latter counts.

        An export that was divided by rows looks so, and so does a record with two versions.
        """
        edges = {} if self._are_answers() else self._edges
        for number, (first, _) in edges.items():
            if (before := edges.get(number - 1)) is None or before[1] != first:
                continue
            is_of_both = pl.col(UNIT).is_in([number - 1, number])
            versions = competing.filter((pl.col(KEY_HASH) == pl.lit(first, fingerprint.HASH)) & is_of_both)
            if versions[FP].n_unique() > 1:
                return f"{self._units[number - 1].source} and {self._units[number].source}"
        return None

    def _raise_if_rows_contradict(self, competing: pl.DataFrame) -> None:
        """Refuse rows that contradict each other, unless they are answers to requests one after the other."""
        declared = self._stream.is_declared_in_config
        if not self._are_answers():
            raise_if_duplicates_differ(competing, self.place_of_row, is_declared_in_config=declared)
            return
        names = [unit.source.partition(PART_OF_PAGE)[0] for unit in self._units]
        numbers = {name: number for number, name in enumerate(names)}
        answers = pl.Series([numbers[name] for name in names], dtype=pl.UInt32)
        answer = pl.lit(answers).gather(pl.col(UNIT))
        raise_if_duplicates_differ(competing, self.place_of_row, answer, is_declared_in_config=declared)
        self.replaced = find_records_changed_while_listed(competing, self.place_of_row)

    @property
    def _is_ordered_by_cursor_only(self) -> bool:
        """Whether a list of changes has no order, so that only the cursor tells which row of a key is the newest."""
        cursor = self._stream.cursor
        return cursor is not None and not cursor.sorted and not self._stream.order_by

    def _with_positions_by_cursor(self, competing: pl.DataFrame) -> pl.DataFrame:
        """Add `POSITION` to candidates of one key that differ; null for others, and where the cursor cannot be read."""
        cursor, found = self._stream.cursor, [pl.DataFrame(schema=_POSITIONS)]
        assert cursor is not None
        differing = competing.filter(pl.col(FP).n_unique().over(KEY_HASH) > 1)
        for number in differing[UNIT].unique():
            unit, of_unit = self._units[number], pl.lit(number, pl.UInt32).alias(UNIT)
            for frame in unit.read_rows():
                rows = add_key_filter_and_fingerprint_columns(
                    self._stream, unit.source, with_path_columns(frame, [cursor.column])
                )
                if cursor.column in rows.columns:
                    rows = rows.filter(pl.col(SKIP).is_null()).join(differing, on=KEY_HASH, how="semi")
                    at = row_preparation.sortable_text_of_column(cursor, rows).alias(POSITION)
                    found.append(rows.select(KEY_HASH, of_unit, pl.col(LINE).cast(pl.UInt32), at))
        if not self._stream.group_by:
            return competing.join(pl.concat(found), on=[KEY_HASH, UNIT, LINE], how="left")
        newest = pl.when(pl.col(POSITION).null_count() == 0).then(pl.col(POSITION).max())
        of_groups = pl.concat(found).group_by(KEY_HASH, UNIT).agg(newest)
        return competing.join(of_groups, on=[KEY_HASH, UNIT], how="left")

    def _row_count(self, candidates: pl.DataFrame) -> int:
        return int(candidates[ROWS].sum()) if self._stream.group_by else candidates.height

    # ---- results

    @property
    def dead_letters_without_key(self) -> list[DeadLetter]:
        return self._without_key.dead_letters

    @property
    def sampled_keys(self) -> pl.DataFrame:
        """Some keys of rows that were read, from each of the first frames: `KEY` and `KEY_HASH`."""
        hashes = fingerprint.key_hashes(list(dict.fromkeys(self._key_samples)))
        return pl.DataFrame(
            {KEY: list(hashes), KEY_HASH: list(hashes.values())}, schema={KEY: pl.String, KEY_HASH: fingerprint.HASH}
        )

    @property
    def source_names(self) -> list[str]:
        return list(dict.fromkeys(unit.source for unit in self._units))

    def place_of_row(self, unit: int, line: int) -> str:
        """Return ``FILE:LINE`` of a row of `latest`."""
        return f"{self._units[unit].source}:{line}"

    def repeated_keys(self, *, with_examples: bool) -> RepeatedKeys:
        """Return the keys that were listed several times. The rows of one group are one listing."""
        return self._repeated.repeated_keys(self.read_chosen_records, self.place_of_row, with_examples=with_examples)

    def digest_of_all_records(self, more: bytes) -> str:
        """Hash `latest`, independent of its order, with the stream's version and *more*."""
        ordered = self.latest.select(KEY_HASH, FP).sort(KEY_HASH)
        summed = hashlib.sha256(self._stream.version.encode())
        for name in (KEY_HASH, FP):
            for part in ordered.select(name).iter_slices(_DIGESTED_AT_ONCE):
                summed.update(b"".join((value or 0).to_bytes(16, "big") for value in part.to_series().to_list()))
        summed.update(more)
        return summed.hexdigest()

    def release_rows(self) -> None:
        self.latest, self.key_order = self.latest.clear(), None

    def keys_in_filtered_rows_and_keyless_count(self, keys: pl.Series) -> tuple[pl.Series, int]:
        """Read all rows. Return those of *keys* that the filtered ones have, and how many of these have no key."""
        wanted, found, without_key = keys.to_frame(KEY_HASH), [keys.clear()], 0
        for unit in self._units:
            for frame in unit.read_rows():
                skipped = add_key_filter_and_fingerprint_columns(self._stream, unit.source, frame).filter(
                    pl.col(SKIP).is_not_null()
                )
                found.append(skipped.join(wanted, on=KEY_HASH, how="semi")[KEY_HASH])
                without_key += skipped.filter(pl.col(SKIP) != NOT_OURS)[KEY].null_count()  # others have no key of ours
                without_key += self._count_external_ids_partner_changed(skipped)
        return pl.concat(found), without_key

    def read_chosen_records(self, chosen: pl.DataFrame) -> Iterator[KeyedRecord]:
        ordered, start = chosen.sort(UNIT, LINE), 0
        runs = ordered[UNIT].rle().struct.unnest().iter_rows()
        for _, of_holder in groupby(runs, key=lambda run: id(self._units[run[1]].rows_holder)):
            lengths, units = zip(*of_holder, strict=True)
            wanted = ordered.slice(start, sum(lengths))  # without a copy, which `group_by` would make
            start += sum(lengths)
            unit = self._units[units[0]]
            if unit.block is None:
                yield from read_records_of_unit(self._stream, self._name, unit, wanted)
            else:
                sources = [self._units[each].source for each in wanted[UNIT]]
                yield from records_from_rows_in_memory(self._stream, self._name, unit.block, wanted, sources)


class SuspiciousCells:
    """Finds the suspicious cells of the examined rows, if the stream declares a limit."""

    def __init__(self, stream: Stream[Any]) -> None:
        self._stream, self._limit = stream, stream.suspicious
        self.found: list[Suspicion] = []

    def collect_and_raise_if_too_many(self, source: str, rows: pl.DataFrame) -> pl.DataFrame:
        """Return *rows* after examining the columns that the stream uses, or all if it may use any."""
        if self._limit is None:
            return rows
        stream = self._stream
        names = rows.columns if stream.uses is None else sorted(stream.used_columns)
        for each in find_suspicious_cells_by_column(
            rows, [name for name in names if name != JSON and not is_column_added_by_engine(name)]
        ):
            self.found.append(each)
            if self.cell_count > self._limit.at_most:
                hint = "Have the sender correct the export; suspicious.at_most is how many such cells are accepted."
                message = (
                    f"{self.cell_count:,} suspicious cells, and at most {self._limit.at_most:,} are accepted; {each}"
                )
                raise RefusedError(message, where=f"{source}:{each.line}", hint=hint, code="cells_suspicious")
        return rows

    @property
    def cell_count(self) -> int:
        return sum(each.cells for each in self.found)
