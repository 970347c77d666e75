"""Known records of a stream that are gone, according to its snapshot, marks or list of existing records.

A list in pages, or one that may be old, is read twice before a missing record counts as gone. So is a list in pages
whose rows make records together, before what they make is delivered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

import polars as pl
from msgspec import Struct, field, structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.latest_records import LatestRecords
from crossdock.delta.row_preparation import (
    DELETED,
    FP,
    KEY,
    KEY_HASH,
    POSITION,
    comparable_positions_expression,
    compute_keys,
)
from crossdock.delta.state_comparison import Delta, known_keys_missing_in_list
from crossdock.errors import CrossdockError, StateError, StoppedError
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError, IncompleteListError
from crossdock.runs.batches_read_from_connector import checked_batches_of_existing_records, fetch_checked_batches
from crossdock.runs.planning.removals import (
    Removals,
    SnapshotCompleteness,
    SnapshotFacts,
    decide_removals_of_records_named_deleted,
    decide_removals_of_unlisted_records,
    find_never_sent_records_proved_gone,
)
from crossdock.state import Intent, State, Transaction, Wait
from crossdock.values.config_base_types import parse_duration
from crossdock.values.raw_rows_and_records import RawBatch
from crossdock.values.record_keys import key_parts_of
from crossdock.values.run_states_and_tally import Tally

_HINT = (
    "what was read is delivered, nothing counts as gone, and the next run reads the list again; read it when little"
    " changes, in smaller parts, or with a cursor of the API"
)
_CHANGED = "the list changed while it was read (read again, it {}), so that records may have been passed over"
_OTHERS = "all others are delivered, nothing counts as gone, and the next run reads the list again"
_SHOWN = 5  # keys
_KEYS = {KEY_HASH: pl.UInt128, KEY: pl.String}
_SEND_AGAIN = "declare reread, or send each with 'crossdock sync STREAM --key KEY', which needs fetch"
_CUT = "what was read is delivered, and nothing counts as gone"


class SecondListReading:
    """Compares two readings of one list, which *again* reads from its beginning.

    A record is missed only if another one, which was read before it, leaves the list. That record is missing in the
    second reading, so two readings with the same records have missed none. Of a list that nothing shows to be paged by
    position, the second reading must only lack the records that seem to be gone: it may have new ones.
    """

    def __init__(self, bound: BoundStream, again: Callable[[], Iterable[object]]) -> None:
        self._bound, self._again = bound, again
        self._first: list[pl.DataFrame] = []
        bound.context.run.open_lists.forget_stream(bound.name)

    def keep_keys_of_first_reading(self, batches: Iterable[RawBatch]) -> Iterator[RawBatch]:
        """Yield *batches*, and keep the keys of those that an API lists."""
        for batch in batches:
            if self._bound.name in self._bound.context.run.open_lists.begun:
                self._first.append(self._keys_of_batch(batch))
            yield batch

    def error_if_reread_keys_differ(self, missing: pl.Series) -> CrossdockError | None:
        """Return why the list may lack existing records: it may be cut or old, or a second reading differs."""
        bound, lists = self._bound, self._bound.context.run.open_lists
        if (text := lists.doubted.get(bound.name)) is not None:
            return IncompleteListError(text, where=bound.name, hint=_CUT, code="list_changed")
        is_position = bound.name in lists.unproved
        if not is_position and bound.name not in lists.in_pages:
            return None
        bound.context.run.progress.begin(f"reading {bound.name} again, since records seem to be gone", None)
        try:
            second = [self._keys_of_batch(batch) for batch in self._again() if isinstance(batch, RawBatch)]
        except (StateError, StoppedError):
            raise
        except CrossdockError as error:
            return error
        sign = _describe_difference_of_readings(
            _distinct_keys(self._first), _distinct_keys(second), missing if not is_position else None
        )
        return (
            None
            if sign is None
            else DoubtfulListError(_CHANGED.format(sign), where=bound.name, hint=_HINT, code="list_changed")
        )

    def records_differing_when_reread(self, changed: pl.DataFrame) -> tuple[pl.DataFrame, CrossdockError] | None:
        """Return those of *changed* whose rows differ in a second reading, and why none of them is delivered, or None.

        A row that changes while a list is read may be on two pages, in two versions, or move another one to a page
        that was read already. Without a key of rows, nothing else shows it.
        """
        bound, lists = self._bound, self._bound.context.run.open_lists
        is_paged = bound.name in lists.unproved or bound.name in lists.in_pages
        if bound.name not in lists.joined or not is_paged or not changed.height:
            return None
        bound.context.run.progress.begin(f"reading {bound.name} again, since its rows make records together", None)
        second = LatestRecords(bound.stream, f"{bound.name}-again", bound.context.run.work)
        try:
            second.find_latest_of_each_key(
                (batch for batch in self._again() if isinstance(batch, RawBatch)), Tally(), lambda _: None
            )
        except (StateError, StoppedError):
            raise
        except CrossdockError as error:
            return changed.select(KEY_HASH), error
        others = changed.join(second.latest, on=[KEY_HASH, FP], how="anti").select(KEY_HASH)
        number = "1 record has" if others.height == 1 else f"{others.height:,} records have"
        sign = f"the list changed while it was read (read again, {number} other rows)"
        return (
            (others, DoubtfulListError(sign, where=bound.name, hint=_OTHERS, code="list_changed"))
            if len(others)
            else None
        )

    def _keys_of_batch(self, batch: RawBatch) -> pl.DataFrame:
        return compute_keys(self._bound.stream, batch.source, batch.load()).select(KEY_HASH)


def _distinct_keys(parts: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(parts).unique().sort(KEY_HASH) if parts else pl.DataFrame(schema={KEY_HASH: pl.UInt128})


def _describe_difference_of_readings(
    first: pl.DataFrame, second: pl.DataFrame, missing: pl.Series | None
) -> str | None:
    """Describe how a second reading differs, or which of the *missing* records it has; None if it does not."""
    if missing is not None:
        there = second.filter(pl.col(KEY_HASH).is_in(missing.implode())).height
        return f"has {there:,} of the records that seemed to be gone" if there else None
    if first.equals(second):
        return None
    gone = first.join(second, on=KEY_HASH, how="anti").height
    new = second.join(first, on=KEY_HASH, how="anti").height
    return f"lacks {gone:,} of its records and has {new:,} others"


_MARKED = "_marked"  # position of the row that names a record as deleted


class GoneRecords:
    """The known records of one stream that are gone. `listed_rows` is None if no list was read, or if it was empty."""

    def __init__(self, bound: BoundStream, state: State) -> None:
        self._bound, self._state = bound, state
        self._deleted: pl.Series | None = None  # key hashes of known records that the source names as deleted
        self._source = ""  # the source that first named one
        self._read: list[pl.DataFrame] = []  # key hashes of what was read, where a list says what exists
        self._marks: list[pl.DataFrame] = []  # key hashes and positions of what the source names as deleted
        self.listed_rows: int | None = None
        self.digest = b""

    @property
    def undecided_deletion_count(self) -> int:
        """The number of known records that the source names as deleted, until `decide_by_deletion_marks` decides about
        them.
        """
        return 0 if self._deleted is None else len(self._deleted)

    def decide_by_snapshot(
        self,
        scan: LatestRecords,
        found: Delta,
        rows: Tally,
        proof: SnapshotCompleteness,
        waiting: Sequence[Wait],
        unsettled: Sequence[Intent],
    ) -> Removals:
        facts = _snapshot_facts("snapshot", scan, rows, proof, waiting, unsettled)
        return decide_removals_of_unlisted_records(
            self._state, self._bound, found.gone, facts, at=self._bound.context.run.clock.now()
        )

    def find_unsent_records_proved_gone(
        self,
        unsent: Sequence[int],
        scan: LatestRecords,
        rows: Tally,
        proof: SnapshotCompleteness,
        waiting: Sequence[Wait],
        unsettled: Sequence[Intent],
    ) -> list[int]:
        """Return those of *unsent*, key hashes of waiting and rejected records, that a snapshot proves to be gone and
        that were never sent.
        """
        keys = pl.DataFrame({KEY_HASH: unsent}, schema={KEY_HASH: pl.UInt128})
        unlisted = known_keys_missing_in_list(keys, scan.latest)
        if unlisted.is_empty():
            return []
        known = self._state.key_index_frame_of_keys(self._bound.scope, unlisted.to_list())
        facts = _snapshot_facts("snapshot", scan, rows, proof, waiting, unsettled)
        return find_never_sent_records_proved_gone(
            self._state, self._bound, known_keys_missing_in_list(unlisted.to_frame(KEY_HASH), known), facts
        )

    def decide_by_full_list(
        self,
        scan: LatestRecords,
        seen: pl.DataFrame,
        rows: Tally,
        proof: SnapshotCompleteness,
        waiting: Sequence[Wait],
        unsettled: Sequence[Intent],
    ) -> Removals:
        """Decide about the records that a full list lacks, and that the run has not *seen* before it."""
        self.listed_rows = rows.rows_read or None  # an empty list is not evidence
        if not scan.source_names:
            return Removals()
        gone = known_keys_missing_in_list(
            self._state.key_index_frame_of_scope(self._bound.scope), pl.concat([scan.latest.select(KEY_HASH), seen])
        )
        facts = structs.replace(
            _snapshot_facts("full list", scan, rows, proof, waiting, unsettled),
            records=scan.latest.height + seen.height,
        )
        return decide_removals_of_unlisted_records(
            self._state, self._bound, gone, facts, at=self._bound.context.run.clock.now()
        )

    def remove_rows_older_than_deletion(self, scan: LatestRecords) -> int:
        """Remove and count the rows of *scan* that are older than the deletion of their record in an earlier part."""
        if POSITION not in scan.latest.columns or DELETED not in scan.latest.columns:
            return 0
        before = scan.latest.height
        for marks in self._marks:
            is_older = (pl.col(POSITION) < pl.col(_MARKED)) & comparable_positions_expression(POSITION, _MARKED)
            older = scan.latest.join(marks, on=KEY_HASH).filter(is_older)
            scan.latest = scan.latest.join(older, on=KEY_HASH, how="anti", maintain_order="left")
        marks = scan.latest.filter(pl.col(DELETED) & pl.col(POSITION).is_not_null())
        if marks.height:
            self._marks.append(marks.select(KEY_HASH, pl.col(POSITION).alias(_MARKED)))
        return before - scan.latest.height

    def add_part_and_count_undeleted(self, scan: LatestRecords, found: Delta) -> int:
        """Add what one part reads. Return how many records that earlier parts named as deleted it has again."""
        if self._bound.stream.lists_existing:
            self._read.append(scan.latest.select(KEY_HASH))
        before = self.undecided_deletion_count
        if before and self._deleted is not None:
            self._deleted = known_keys_missing_in_list(self._deleted.to_frame(KEY_HASH), scan.latest)
        superseded = before - self.undecided_deletion_count
        if len(found.deleted):
            self._source = self._source or scan.source_names[0]
            self._deleted = found.deleted if self._deleted is None else pl.concat([self._deleted, found.deleted])
        return superseded

    def decide_by_deletion_marks(
        self, unsettled: Sequence[Intent], before: int = 0, fetched: Sequence[int] | None = None
    ) -> Removals:
        if self._deleted is None:
            return Removals()
        deleted, self._deleted = self._deleted, None
        at = self._bound.context.run.clock.now()
        return decide_removals_of_records_named_deleted(
            self._state, self._bound, deleted, self._source, unsettled, at=at, before=before, fetched=fetched
        )

    @property
    def existing_list_is_due(self) -> bool:
        """Whether to read the list of existing records: as often as declared, and while removals need approval."""
        stream, now = self._bound.stream, self._bound.context.run.clock.now()
        if not stream.lists_existing or stream.on_gone == "nothing":
            return False
        if stream.gone.every is None:
            return True
        with self._state.begin_read_only() as tx:
            last, pending = (
                tx.snapshots.last_snapshot_time(self._bound.name),
                tx.pending_approvals.get(self._bound.name),
            )
        return pending is not None or is_list_due_again(last, stream.gone.every, now)

    def decide_by_existing_list(self, unsettled: Sequence[Intent]) -> Removals:
        """Read the list of existing records, and decide about those that it lacks: none if it cannot be read."""
        bound = self._bound
        bound.context.run.progress.begin(f"listing the records of {bound.name} that exist", None)
        proof, listed = SnapshotCompleteness(), _ExistingKeys()
        look = SecondListReading(bound, lambda: checked_batches_of_existing_records(bound))
        proof.look_again = look.error_if_reread_keys_differ
        try:
            for batch in proof.collect_proofs(
                look.keep_keys_of_first_reading(checked_batches_of_existing_records(bound))
            ):
                listed.add(bound, batch)
                bound.context.run.progress.advance(batch.load().height)
        except StateError:
            raise
        except CrossdockError as error:
            return Removals(refusal=error)
        keys = listed.keys()
        self.listed_rows, self.digest = listed.rows or None, _digest_of_keys(keys)  # an empty list is not evidence
        known = self._state.key_index_frame_of_scope(bound.scope)
        gone = known_keys_missing_in_list(known, pl.concat([keys, *self._read]))  # what this run read exists
        with self._state.begin_read_only() as tx:
            waiting = tx.waiting_records.waits_of_stream(bound.name)  # also those of earlier parts
            self._warn_of_reappeared_records(tx, keys, waiting)
        facts = SnapshotFacts(
            listed.source,
            listed.rows,
            listed.without_key,
            keys.height,
            proof,
            waiting,
            unsettled,
            self._fetched_of_unlisted(proof) if bound.stream.fetches_unlisted else None,
            name="list of existing records",
        )
        return decide_removals_of_unlisted_records(self._state, bound, gone, facts, at=bound.context.run.clock.now())

    def _fetched_of_unlisted(self, proof: SnapshotCompleteness) -> Callable[[pl.Series], tuple[pl.Series, int]]:
        """Return a function for `SnapshotFacts.filtered` that fetches records which seem to be gone."""
        bound = self._bound

        def fetch(unlisted: pl.Series) -> tuple[pl.Series, int]:
            found = [pl.Series(dtype=pl.UInt128)]
            if self._is_refused_by_limit(len(unlisted)):
                return found[0], 0
            bound.context.run.progress.begin(f"fetching records of {bound.name} that seem to be gone", None)
            try:
                for part in unlisted.to_frame(KEY_HASH).iter_slices(bound.stream.fetch_size):
                    with self._state.begin_read_only() as tx:
                        bindings = tx.bindings.get(bound.scope, part[KEY_HASH].to_list()).values()
                    batches = fetch_checked_batches(bound, [key_parts_of(each.key) for each in bindings])
                    found += [compute_keys(bound.stream, each.source, each.load())[KEY_HASH] for each in batches]
            except (StateError, StoppedError):
                raise
            except CrossdockError as error:
                proof.doubt = bound.context.run.failures.setdefault(bound.name, error)
            return pl.concat(found), 0

        return fetch

    def _is_refused_by_limit(self, number: int) -> bool:
        """Return whether the removal of so many records needs an approval, and has none."""
        name = self._bound.name
        with self._state.begin_read_only() as tx:
            approval = tx.pending_approvals.get(name)
            rejected = sum(each.step == "remove" for each in tx.dead_letters.facts_of_all_letters_of_stream(name))
        is_approved = approval is not None and approval.approved_at is not None
        return not is_approved and number - rejected > self._bound.stream.gone.at_most

    def _warn_of_reappeared_records(self, tx: Transaction, listed: pl.DataFrame, waiting: Sequence[Wait]) -> None:
        """Warn of records that were removed, and exist again, although no list of changes has shown them."""
        parts = (
            pl.DataFrame(part, schema=_KEYS, orient="row")
            for part in tx.snapshots.keys_removed_at_target(self._bound.scope)
        )
        there = pl.concat([pl.DataFrame(schema=_KEYS), *(each.join(listed, on=KEY_HASH, how="semi") for each in parts)])
        letters = [each.key_hash for each in tx.dead_letters.facts_of_all_letters_of_stream(self._bound.name)]
        is_open = pl.Series([*letters, *(each.identity.key_hash for each in waiting)], dtype=pl.UInt128)
        read = pl.concat([listed.clear(), *self._read])
        there = there.filter(~pl.col(KEY_HASH).is_in(is_open.implode()))
        again = there.join(read, on=KEY_HASH, how="anti")[KEY].sort().to_list()
        if not again:
            return
        number = "1 record that was removed is" if len(again) == 1 else f"{len(again):,} records that were removed are"
        text = (
            f"{number} listed as existing again, and not as changed, so that nothing sends what was removed:"
            f" {', '.join(again[:_SHOWN])}{' and others' if len(again) > _SHOWN else ''}; {_SEND_AGAIN}"
        )
        self._bound.context.run.warn(self._bound.name, text, code="removed_exists")


def is_list_due_again(last: datetime | None, every: str, now: datetime) -> bool:
    """Return whether *every* has passed since *last*. A tenth of it is tolerance, for daily jobs with ``1d``."""
    return last is None or not timedelta() <= now - last < parse_duration(every) * 9 / 10


def _snapshot_facts(
    name: Literal["snapshot", "full list"],
    scan: LatestRecords,
    rows: Tally,
    proof: SnapshotCompleteness,
    waiting: Sequence[Wait],
    unsettled: Sequence[Intent],
) -> SnapshotFacts:
    return SnapshotFacts(
        scan.source_names[0],
        rows.rows_read,
        rows.rows_rejected,
        scan.latest.height,
        proof,
        waiting,
        unsettled,
        filtered=scan.keys_in_filtered_rows_and_keyless_count if any(rows.rows_filtered.values()) else None,
        name=name,
    )


class _ExistingKeys(Struct):
    source: str = ""
    rows: int = 0
    without_key: int = 0
    _parts: list[pl.DataFrame] = field(default_factory=list)

    def add(self, bound: BoundStream, batch: RawBatch) -> None:
        found = compute_keys(bound.stream, batch.source, batch.load())
        found = found.drop_nulls(KEY) if bound.stream.own_keys else found  # of others
        self.source = self.source or batch.source
        self.rows += found.height
        with_key = found.filter(pl.col(KEY).is_not_null())
        self.without_key += found.height - with_key.height
        self._parts.append(with_key.select(KEY_HASH))

    def keys(self) -> pl.DataFrame:
        return pl.concat(self._parts).unique() if self._parts else pl.DataFrame(schema={KEY_HASH: pl.UInt128})


def _digest_of_keys(keys: pl.DataFrame) -> bytes:
    summed = hashlib.sha256()
    for value in _sorted_hashes(keys):
        summed.update(value.to_bytes(16, "big"))
    return summed.digest()


def _sorted_hashes(keys: pl.DataFrame) -> Iterator[int]:
    for part in keys.sort(KEY_HASH).iter_slices():
        yield from part[KEY_HASH].to_list()
