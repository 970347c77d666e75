"""Records of a stream with ``open_until``: each run fetches those that are not final, whatever the cursor is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import polars as pl
from msgspec import structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.fingerprint import key_hashes
from crossdock.delta.row_preparation import KEY, KEY_HASH, compute_keys
from crossdock.errors import CrossdockError, StateError, StoppedError
from crossdock.mapping.external_ids import key_texts_without_foreign_records
from crossdock.mapping.stream_declaration import OpenUntil
from crossdock.runs.checked_batches import fetched_batches
from crossdock.state import FollowedRecord, State, Transaction
from crossdock.values.raw_rows_and_records import RawBatch, cells_of_column, with_path_columns
from crossdock.values.record_keys import key_parts_of

MISSED_AT_MOST = 3  # runs in a row in which the source does not have a record
FAILED_ALONE = 3  # in a row; then the failure is not caused by single records
LISTED = 5  # keys in a note


class FollowedRecordFetch:
    """The records of one stream that are not final, in one run. `error` is the first failure of a fetch."""

    def __init__(self, bound: BoundStream, state: State) -> None:
        self._bound, self._state = bound, state
        self._rule: OpenUntil | None = bound.stream.open_until
        self._chosen: dict[int, FollowedRecord] = {}
        self._followed: set[int] | None = None
        self.error: CrossdockError | None = None
        self.discard_unstored()

    def discard_unstored(self) -> None:
        """Discard what was read since the last `store`."""
        self._open: dict[int, str] = {}
        self._final, self._read, self._answered, self._failed = set[int](), set[int](), set[int](), set[int]()

    @property
    def has_unstored_changes(self) -> bool:
        return bool(self._open or self._final or self._answered or self._failed)

    def track_not_final(self, batches: Iterable[RawBatch]) -> Iterator[RawBatch]:
        """Yield *batches*, and note which of their records are not final, including those that a filter leaves out."""
        for batch in batches:
            if self._rule is not None:
                self._track_batch(batch, self._rule)
            yield batch

    def _track_batch(self, batch: RawBatch, rule: OpenUntil) -> None:
        stream, rows = self._bound.stream, batch.load()
        self._mark_followed_as_final(
            key_hashes(list(key_texts_without_foreign_records(stream.own_keys, batch.deleted))).values()
        )
        marks = stream.deleted
        try:
            frame = with_path_columns(rows, [rule.field, *(marks.columns() if marks is not None else ())])
            is_final = cells_of_column(frame, rule.field).fill_null("").is_in(list(rule.in_))
        except (ValueError, pl.exceptions.ColumnNotFoundError):
            return  # the stream refuses the batch
        if marks is not None:
            is_final |= frame.select(marks.expression()).to_series()
        keys = compute_keys(stream, batch.source, rows)
        self._read |= self._chosen.keys() & set(keys[KEY_HASH].to_list())
        self._mark_followed_as_final(keys.filter(is_final)[KEY_HASH].to_list())
        for key, key_hash in keys.filter(~is_final).drop_nulls(KEY).select(KEY, KEY_HASH).iter_rows():
            self._open[key_hash] = key
            self._final.discard(key_hash)

    def _mark_followed_as_final(self, final: Collection[int]) -> None:
        if final and self._followed is None:
            with self._state.begin_read_only() as tx:
                self._followed = tx.followed_records.key_hashes(self._bound.name)
        ended = {each for each in final if each in (self._followed or ()) or each in self._open}
        self._final |= ended
        for key_hash in ended:
            self._open.pop(key_hash, None)

    def choose_records(self) -> bool:
        """Choose the records that this run fetches. Return False if there are none."""
        if self._rule is None:
            return False
        with self._state.begin_read_only() as tx:
            chosen = tx.followed_records.least_recently_read(self._bound.name, self._rule.at_most)
            number = tx.followed_records.count(self._bound.name)
        self._chosen = {each.key_hash: each for each in chosen}
        if number > len(chosen):
            text = f"{number:,} records are not final, and {len(chosen):,} of them are fetched (open_until.at_most)"
            self._bound.context.run.note(self._bound.name, text)
        return bool(chosen)

    def fetch_chosen(self, already_read: Collection[int]) -> Iterator[RawBatch]:
        """Yield the chosen records, without those of *already_read*, which the run has read already."""
        wanted = [each for key_hash, each in self._chosen.items() if key_hash not in already_read]
        size, failed_alone = self._bound.stream.fetch_size, 0
        for start in range(0, len(wanted), size):
            for answer in self._fetch_part(wanted[start : start + size]):
                if isinstance(answer, CrossdockError):
                    failed_alone += 1
                    self.error = self.error or answer
                else:
                    failed_alone = 0
                    yield from answer
                if failed_alone == FAILED_ALONE:
                    return

    def _fetch_part(self, wanted: Sequence[FollowedRecord]) -> Iterator[list[RawBatch] | CrossdockError]:
        """Fetch a part. If that fails, fetch each record alone, so that one does not block the others."""
        try:
            found = list(fetched_batches(self._bound, [key_parts_of(each.key) for each in wanted]))
        except (StateError, StoppedError):
            raise
        except CrossdockError as error:
            if len(wanted) == 1:
                self._failed.add(wanted[0].key_hash)
                yield error
                return
            for each in wanted:
                yield from self._fetch_part([each])
            return
        self._answered.update(each.key_hash for each in wanted)
        yield found

    def store(self, tx: Transaction, *, is_done: bool) -> None:
        """Store what was read so far. For a part that must be read again, store only which records are open."""
        if self._rule is None:
            return
        name, at, records = self._bound.name, self._bound.context.run.clock.now(), tx.followed_records
        records.put(FollowedRecord(name, key_hash, key, at) for key_hash, key in self._open.items())
        records.put(
            structs.replace(self._chosen[each], read_at=at) for each in self._failed
        )  # others are requested first
        if is_done:
            absent = [self._chosen[each] for each in sorted(self._answered - self._read - self._final)]
            missing = [structs.replace(each, read_at=at, missed=each.missed + 1) for each in absent]
            left = [each for each in missing if each.missed >= MISSED_AT_MOST]
            records.put(each for each in missing if each.missed < MISSED_AT_MOST)
            records.forget(name, [*self._final, *(each.key_hash for each in left)])
            self._note_given_up_as_missing(left)
            self._followed = None
        self.discard_unstored()

    def _note_given_up_as_missing(self, left: Sequence[FollowedRecord]) -> None:
        if not left:
            return
        listed = ", ".join(each.key for each in left[:LISTED]) + (", ..." if len(left) > LISTED else "")
        records = "1 record" if len(left) == 1 else f"{len(left):,} records"
        text = f"in {MISSED_AT_MOST} runs the source did not have {records}, which will not be fetched again: {listed}"
        self._bound.context.run.note(self._bound.name, text)
