"""The input of a stream in a run: what it reads, what has changed, also in its mapping, and what waited."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Literal

import polars as pl
from msgspec import structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta import state_comparison
from crossdock.delta.changed_record_reading import (
    KeyedRecord,
    keys_filtered_out_now,
    stored_records_repaired_and_filtered_again,
)
from crossdock.delta.latest_records import KEEP_TOGETHER, LatestRecords
from crossdock.delta.row_preparation import (
    KEY_HASH,
    UNIT,
    notation_differs_from_stored_error,
    rows_with_given_keys,
    split_into_parts_by_key,
)
from crossdock.errors import CrossdockError, StateError, StoppedError
from crossdock.mapping.external_ids import NOT_OURS
from crossdock.mapping.row_order_and_cursors import Cursor, format_stored_instant
from crossdock.reading.sources.list_completeness_evidence import (
    DoubtfulListError,
    IncompleteListError,
    list_changed_error,
)
from crossdock.runs.batches_read_from_connector import (
    FetchOfRecordsNotFinal,
    converting_errors_of_stream_method,
    pull_checked_batches,
)
from crossdock.runs.gone_records import GoneRecords, SecondListReading, is_list_due_again
from crossdock.runs.imported_file_log import mapping_changed_since_text
from crossdock.runs.parts_between_checkpoints import CheckpointedReading, UnsortedError
from crossdock.runs.planning.contributions_and_own_writes import Contributions
from crossdock.runs.planning.mapping_to_drafts import AuthorCodeFailureCounter
from crossdock.runs.planning.references import stored_key_by_trimmed_key
from crossdock.runs.planning.removals import (
    Removals,
    SnapshotCompleteness,
    store_snapshot_for_later_comparisons,
    warn_if_unlike_past_snapshots,
)
from crossdock.runs.planning.update_limits import UpdateCandidates, WithheldUpdates
from crossdock.runs.planning.waiting_records import IdleWaits, IdleWaitSeparator
from crossdock.runs.refusals_to_send_records_twice import raise_if_records_known_under_other_names
from crossdock.state import DeadLetter, Intent, State, Transaction, WaitingRecord
from crossdock.state.sidecar_files import key_index_files
from crossdock.state.tables.dead_letters_and_waiting_records import DeadLetterFacts
from crossdock.values.raw_rows_and_records import LINE, RawBatch, is_same_source
from crossdock.values.run_states_and_tally import Tally
from crossdock.values.texts_of_numbers_and_times import count_with_noun
from crossdock.writing.delivery.operations_and_intents import Operation

Phase = Literal["changes", "open", "list"]


class SourcePhases:
    """Reads one stream. Each record is taken from the first phase that reads it. `error` belongs to a later one."""

    def __init__(
        self, bound: BoundStream, state: State, since: str | None, *, whole: bool, only_changes: bool = False
    ) -> None:
        self._bound, self._state, self._since = bound, state, since
        declared = bound.stream.cursor
        given = declared.pull_since(since) if declared else since
        self._changes = self._begin_reading_in_parts(
            given, declared, whole=whole, doubt_of_list=self._reason_list_is_incomplete
        )
        self._look = SecondListReading(bound, lambda: pull_checked_batches(bound, given))
        self._list: CheckpointedReading | None = None
        self._cursor: str | None = None
        self._seen: list[pl.DataFrame] = []
        self._is_begun = False
        self.followed = FetchOfRecordsNotFinal(bound, state)
        self.phase: Phase = "changes"
        self._left: list[Phase] = [] if only_changes else self._further_phases()
        self._unread: set[Phase] = set()
        self.error: CrossdockError | None = None

    def _reason_list_is_incomplete(self) -> str | None:
        return self._bound.context.run.open_lists.incomplete.get(self._bound.name)

    def _begin_reading_in_parts(
        self,
        since: str | None,
        declared: Cursor | None,
        *,
        whole: bool,
        doubt_of_list: Callable[[], str | None] = lambda: None,
    ) -> CheckpointedReading:
        bound, run = self._bound, self._bound.context.run
        return CheckpointedReading(
            pull_checked_batches(bound, since),
            declared,
            run.clock,
            whole=whole,
            is_open=lambda: bound.name in run.open_lists,
            by_its_clock=lambda moment: run.by_clock_of(bound.context.connection, moment),
            doubt_of_list=doubt_of_list,
            reread_to=declared.reread_to(self._since) if declared and self._since else "",
        )

    def _further_phases(self) -> list[Phase]:
        reread, phases = self._bound.stream.reread, list[Phase]()
        if self.followed.choose_records_to_fetch():
            phases.append("open")
        if reread is not None and self._since is not None:
            with self._state.begin_read_only() as tx:
                last = tx.full_lists.last_read_time(self._bound.name)
                pending = reread.finds_gone and tx.pending_approvals.get(self._bound.name) is not None
            if pending or is_list_due_again(last, reread.every, self._bound.context.run.clock.now()):
                phases.append("list")
        return phases

    @property
    def has_more(self) -> bool:
        return not self._changes.ended or bool(self._left)

    def begin_part(self) -> bool:
        """Begin the next part. Return whether waiting records are decided with it."""
        is_first, self._is_begun = not self._is_begun, True
        if self._changes.ended:
            self.phase, is_first = self._left.pop(0), True
        return is_first and not self._left

    def read_part_and_count_rows(
        self,
        scan: LatestRecords,
        proof: SnapshotCompleteness,
        advance: Callable[[int], None],
        known: Callable[[], pl.DataFrame | None] | None,
    ) -> Tally | None:
        """Read this part into *scan* and return the counts of its rows; None if a later phase could not be read."""
        counted = Tally()
        try:
            with self._bound.context.run.reading.mark_stream_being_read(self._bound.name):
                scan.find_latest_of_each_key(
                    proof.collect_proofs(self.followed.track_not_final(self._batches_of_phase(proof))),
                    counted,
                    advance,
                    known,
                )
        except BaseException as error:
            self._bound.context.run.intakes.discard_for_stream(self._bound.name)
            is_fatal = self.phase == "changes" or isinstance(error, StateError | StoppedError)
            if isinstance(error, CrossdockError) and not is_fatal:
                self.error = self.error or error
                self._unread.add(self.phase)
                self.followed.discard_unstored()  # nothing of it is used
                return None
            self.close()
            self._restore_cursor_of_run_start(error)
            raise
        parts = self._changes if self.phase == "changes" else self._list if self.phase == "list" else None
        doubt = None if parts is None else parts.doubt or parts.held or self._doubt_about_replaced_records(scan)
        if parts is not None and doubt is not None:  # all of it is delivered, but nothing of it is evidence
            proof.doubt = self._bound.context.run.failures.setdefault(self._bound.name, doubt)
            if parts.doubt is not None:
                self._restore_cursor_of_run_start(parts.doubt)
        if not self.has_more:
            self.close()
        return counted

    def _doubt_about_replaced_records(self, scan: LatestRecords) -> DoubtfulListError | None:
        """Return the doubt if a record was on two pages of a list that was cut off by position; remark on others."""
        if (replaced := scan.replaced) is None:
            return None
        number = "1 record was" if replaced.number == 1 else f"{replaced.number:,} records were"
        what, run = f"{number} on several pages with different content", self._bound.context.run
        if self._bound.name in run.open_lists.unproved:
            return list_changed_error(what, replaced.place)
        text = f"{what}, and the last page counts ({replaced.place}); if several records have one key, change the key"
        run.note(self._bound.name, text)
        return None

    def _batches_of_phase(self, proof: SnapshotCompleteness) -> Iterable[RawBatch]:
        bound, run, name = self._bound, self._bound.context.run, self._bound.name
        if self.phase == "changes":
            return (
                self._batches_of_full_list(self._changes, proof)
                if bound.stream.mode == "snapshot"
                else self._changes.batches_of_next_part()
            )
        if self.phase == "open":
            run.progress.begin(f"fetching the records of {name} that are not final", None)
            return self.followed.fetch_chosen({key for part in self._seen for key in part[KEY_HASH].to_list()})
        run.progress.begin(f"reading {name} in full", None)
        self._list, self._look = (
            self._begin_reading_in_parts(None, None, whole=True),
            SecondListReading(bound, lambda: pull_checked_batches(bound, None)),
        )
        return self._batches_of_full_list(self._list, proof)

    def _batches_of_full_list(self, parts: CheckpointedReading, proof: SnapshotCompleteness) -> Iterable[RawBatch]:
        """Yield the batches of a full list, which may be read again before a missing record counts as gone."""
        if self._bound.stream.on_gone == "nothing":
            return parts.batches_of_next_part()
        proof.look_again = self._look.error_if_reread_keys_differ
        return self._look.keep_keys_of_first_reading(parts.batches_of_next_part())

    def remove_already_read(self, scan: LatestRecords) -> int:
        """Remove from *scan* the records that an earlier phase has read, and count them."""
        before = scan.latest.height
        if self.phase != "changes":
            for part in self._seen:
                scan.latest = scan.latest.join(part, on=KEY_HASH, how="anti", maintain_order="left")
        if self._left:
            self._seen.append(scan.latest.select(KEY_HASH))
        return before - scan.latest.height

    def remove_records_with_doubtful_rows(
        self, scan: LatestRecords, changed: pl.DataFrame, proof: SnapshotCompleteness
    ) -> int:
        """Remove from *scan* those of *changed* whose rows may not be theirs alone or not all, and count them."""
        found = None if self.phase == "open" else self._look.records_differing_when_reread(changed)
        if found is None:
            return 0
        unproved, doubt = found
        proof.doubt = self._bound.context.run.failures.setdefault(self._bound.name, doubt)
        scan.latest = scan.latest.join(unproved, on=KEY_HASH, how="anti", maintain_order="left")
        return unproved.height

    @property
    def has_full_list_showing_gone(self) -> bool:
        is_list = self.phase == "list" and self.phase not in self._unread
        return is_list and self._bound.stream.rereads_gone

    @property
    def keys_of_earlier_phases(self) -> pl.DataFrame:
        return pl.concat(self._seen) if self._seen else pl.DataFrame(schema={KEY_HASH: pl.UInt128})

    def _restore_cursor_of_run_start(self, error: BaseException) -> None:
        """Restore the first cursor if *error* shows that the cursors of earlier parts may have skipped records."""
        if not isinstance(error, UnsortedError | IncompleteListError):
            return
        name, version = self._bound.name, self._bound.cursor_version
        with self._state.begin_read_only() as tx:
            is_first = tx.cursors.get_if_same_version(name, version) == self._since
        if not is_first:  # never so in a plan, which cannot write
            with self._state.begin() as tx:
                tx.cursors.put_or_delete_cursor(name, version, self._since)

    def close(self) -> None:
        self._changes.close()
        if self._list is not None:
            self._list.close()

    @property
    def cursor_column_problem_remark(self) -> str:
        """A remark about the cursor: the missing one (for a first reading only), dates in the future or, without
        ``reread``, which finds what is late, a missing overlap. Empty if there is none.
        """
        if self.phase != "changes":
            return ""
        no_overlap = self._changes.cursor_without_overlap_remark if self._bound.stream.reread is None else ""
        return (
            self._changes.future
            or no_overlap
            or (self._changes.rows_without_cursor_remark if self._since is None else "")
        )

    def new_cursor(self, scan: LatestRecords) -> str | None:
        """Return where the next run continues once this part is settled; None to keep the cursor."""
        if self.phase == "changes":
            self._cursor = self._new_cursor_after_changes(scan)
        return self._cursor

    def _new_cursor_after_changes(self, scan: LatestRecords) -> str | None:
        declared, parts = self._bound.stream.cursor, self._changes
        if declared is not None and not declared.sorted:
            if not (parts.ended and parts.has_rows):  # it may be an outage
                return None
            return max(self._since or "", format_stored_instant(parts.late.missing_from(parts.reading_start_time)))
        return parts.cursor if parts.cursor is not None and not scan.cursor else scan.cursor

    def store_followed_and_read_time(self, tx: Transaction, *, is_done: bool) -> None:
        self.followed.store(tx, is_done=is_done)
        if is_done and self.has_listed_all and self._bound.stream.reread is not None:
            tx.full_lists.put_read_time(self._bound.name, at=self._bound.context.run.clock.now())

    @property
    def has_listed_all(self) -> bool:
        """Whether the last part ends a list of all records. One without rows may be an outage."""
        is_first = self._since is None and self._changes.ended and self.phase == "changes"
        parts = self._list if self.phase == "list" else self._changes if is_first else None
        return parts is not None and parts.has_rows and self.phase not in self._unread

    @property
    def reading_error_at_end(self) -> CrossdockError | None:
        """Why a record, or a later phase, could not be read; set once everything is read."""
        return None if self.has_more else self.error or self.followed.error


class StreamInput:
    """The input of one stream, whole or in parts that end at checkpoints. If *digested*, it is read at once."""

    finds_changes_without_webhooks = True
    only_changes = False  # neither records that are not final nor a full list
    requested_key_hashes: Sequence[int] | None = None
    prepared_operations: Sequence[Operation] = ()

    def __init__(
        self,
        bound: BoundStream,
        state: State,
        tally: Tally,
        run_id: int,
        *,
        digested: bool = False,
        whole: bool = False,
    ) -> None:
        self._bound, self._state, self._tally, self._run_id = bound, state, tally, run_id
        self._digested, self.digest = digested, ""
        self._whole = whole or digested or bound.stream.mode == "snapshot"
        self._phases: SourcePhases | None = None
        self._is_held_back = False  # a part must be read again, so no later cursor is stored
        self._gone = GoneRecords(bound, state)
        self._waits = IdleWaitSeparator(bound, takes_up_all=whole or digested)
        load_keys_stored_before_trimming(bound, state)
        self._reset_part()

    def _reset_part(self) -> None:
        self._waits.reset()
        self._waiting: list[WaitingRecord] = []
        self._reset_latest_records()
        self._delta: state_comparison.Delta | None = None
        self._order: pl.Series | None = None  # the keys as listed, if the index has another order
        self._completeness, self.removals = SnapshotCompleteness(), Removals()
        self._rows = self._known_count = self._known_changed = 0  # also records that the state knows, and their changes
        self._mapping_changed = ""
        self._still_dropped: dict[int, int | None] = {}  # fingerprints by key hashes
        self._left_alone: set[int] = set()  # waiting keys with an unsettled operation, or filtered out

    def _reset_latest_records(self) -> None:
        bound, run = self._bound, self._bound.context.run
        self._scan = LatestRecords(
            bound.stream,
            bound.name,
            run.work,
            lists_all=self._lists_all,
            are_answers=lambda: bound.name in run.open_lists.begun,
        )

    def read_next_part(self, unsettled: list[Intent], advance: Callable[[int], None]) -> None:
        """Read the source, compare it with the state, and count what needs no decision. A failure imports nothing."""
        bound, name, decides_waiting = self._bound, self._bound.name, self._begin_part_and_return_decides_waiting()
        self._reset_part()
        with self._state.begin_read_only() as tx:
            if self._phases and decides_waiting:
                seen = set(self._phases.keys_of_earlier_phases[KEY_HASH].to_list())
                self._waiting = self._waits.separate_idle_and_return_others(tx, unsettled, seen=seen)
            mapping_changed = self._time_of_mapping_change_text(tx)
        bound.context.run.progress.begin(f"reading {name}", None)
        counted = self._read_part(advance)
        if not self._has_read_snapshot:
            self._tally.count("ignored", self._gone.remove_rows_older_than_deletion(self._scan))
        if not decides_waiting:
            with self._state.begin_read_only() as tx:
                self._waiting = self._waits.separate_idle_and_return_others(
                    tx, unsettled, among=self._scan.latest[KEY_HASH].to_list()
                )
        found = self._compare_with_state(unsettled)
        if self._phases and (
            unproved := self._phases.remove_records_with_doubtful_rows(self._scan, found.changed, self._completeness)
        ):
            self._tally.count("ignored", unproved)
            found = self._compare_with_state(unsettled)
        self._delta = found
        self._withdraw_or_release_waiting_records(found, counted, unsettled)
        self.removals = self._decide_removals(found, counted, unsettled)
        self.digest = self._scan.digest_of_all_records(self._gone.digest) if self._digested else ""
        raise_if_records_known_under_other_names(bound, self._state, self._scan, found.changed[KEY_HASH])
        self.raise_if_input_unexpected()
        bound.context.run.intakes.accept(name)
        if self._phases is not None and (remark := self._phases.cursor_column_problem_remark):
            bound.context.run.note(name, remark)
        report_doubtful_rows(bound, self._scan)
        if mapping_changed and self._scan.source_names:
            self._mapping_changed = mapping_changed
            bound.context.run.note(
                name,
                f"the mapping or the format has changed {mapping_changed}: "
                "all records that the source still has are mapped again",
            )
        self._state.preload_database(found.changed.height)
        key_order, latest = self._scan.key_order, self._scan.latest
        self._order = key_order.keys_if_reordered(latest[KEY_HASH], found.known) if key_order else None
        self._scan.release_rows()
        self._rows = counted.rows_read
        if self._has_read_snapshot:
            new = found.changed.height - self._known_changed
            warn_if_unlike_past_snapshots(
                bound, self._state, self._completeness, self._rows, self._known_count, len(found.gone), new
            )
        self._tally.take_rows(counted)
        if self.removals.warning is not None:
            bound.context.run.note(name, self.removals.warning)
        busy = {intent.identity.key_hash for intent in unsettled} - set(found.replaced)
        self._left_alone = busy & {each.identity.key_hash for each in self._waiting}
        self._left_alone |= find_and_note_newly_filtered(bound, "waiting", [*self._waiting_decided_now()])
        self._count_records_needing_no_decision(found)
        if bound.stream.contributes and self.finds_changes_without_webhooks and not self.has_more:
            self.prepared_operations = self._contributions_to_recreated(found, busy)

    def _contributions_to_recreated(self, found: state_comparison.Delta, busy: Collection[int]) -> Sequence[Operation]:
        waiting = {each.identity.key_hash for each in (*self._waiting, *self.idle_waits.records)}
        left_out = {*busy, *waiting, *found.changed[KEY_HASH].to_list()}
        with self._state.begin_read_only() as tx:
            return [*Contributions(self._bound).operations_for_records_created_again(tx, left_out)]

    def _time_of_mapping_change_text(self, tx: Transaction) -> str:
        return mapping_changed_since_text(tx, self._bound.name, self._bound.stream.version)

    def _withdraw_or_release_waiting_records(
        self, found: state_comparison.Delta, counted: Tally, unsettled: list[Intent]
    ) -> None:
        if self._has_read_snapshot:
            self._withdraw_unsent_records_gone(found, counted, unsettled)
        with self._state.begin_read_only() as tx:
            self._waiting += self._waits.release_children_of_decided(tx, found, self._waiting)

    def _withdraw_unsent_records_gone(
        self, found: state_comparison.Delta, counted: Tally, unsettled: list[Intent]
    ) -> None:
        """Withdraw waiting and rejected records that were never sent, and that the source proves to have no longer."""
        name, waits = self._bound.name, [*self._waiting, *self.idle_waits.records]
        with self._state.begin_read_only() as tx:
            letters = tx.dead_letters.rejected_identities_with_reason_codes(name)
        waiting, rejected = (
            {each.identity.key_hash for each in waits},
            {each.key_hash for each, _ in letters if each.key},
        )
        if not waiting | rejected:
            return
        gone = self._gone.find_unsent_records_proved_gone(
            sorted(waiting | rejected), self._scan, counted, self._completeness, waits, unsettled
        )
        withdrawn = [each for each in gone if each in waiting]
        found.replaced += withdrawn
        found.unmoved += withdrawn
        found.cured += [each for each in gone if each in rejected]
        for one, more, number in (
            ("waited is", "waited are", len(withdrawn)),
            ("was rejected is", "were rejected are", len(gone) - len(withdrawn)),
        ):
            if number:
                records = f"{count_with_noun(number, 'record')} that {one if number == 1 else more}"
                self._bound.context.run.note(name, f"{records} not listed any more, and not sent")

    def _decide_removals(self, found: state_comparison.Delta, counted: Tally, unsettled: list[Intent]) -> Removals:
        """Decide about the records that are gone; where parts are read, with the last one."""
        gone, phases, waits = self._gone, self._phases, [*self._waiting, *self.idle_waits.records]
        if self._has_read_snapshot:
            return gone.decide_by_snapshot(self._scan, found, counted, self._completeness, waits, unsettled)
        self._tally.count("ignored", gone.add_part_and_count_undeleted(self._scan, found))
        if self.has_more or phases is None:
            return Removals()
        if phases.has_full_list_showing_gone:
            decided = gone.decide_by_full_list(
                self._scan, phases.keys_of_earlier_phases, counted, self._completeness, waits, unsettled
            )
        else:
            decided = (
                gone.decide_by_existing_list(unsettled)
                if gone.existing_list_is_due
                else gone.decide_by_deletion_marks(unsettled)
            )
        return structs.replace(decided, refusal=decided.refusal or phases.reading_error_at_end)

    def _begin_part_and_return_decides_waiting(self) -> bool:
        if self._phases is None:
            only_changes, since = self._digested or self.only_changes, self._stored_cursor()
            self._phases = SourcePhases(self._bound, self._state, since, whole=self._whole, only_changes=only_changes)
        return self._phases.begin_part()

    def _read_part(self, advance: Callable[[int], None]) -> Tally:
        phases = self._phases
        assert phases is not None
        try:
            counted = phases.read_part_and_count_rows(
                self._scan, self._completeness, advance, self._loader_of_known_keys_in_export_order
            )
        except BaseException:
            self._phases = None  # a late file is read again
            raise
        if counted is None:
            self._reset_latest_records()
            return Tally()
        self._tally.count("ignored", phases.remove_already_read(self._scan))
        return counted

    def _stored_cursor(self) -> str | None:
        with self._state.begin_read_only() as tx:
            return tx.cursors.get_if_same_version(self._bound.name, self._bound.cursor_version)

    @property
    def _loader_of_known_keys_in_export_order(
        self,
    ) -> Callable[[], pl.DataFrame | None] | None:  # what a snapshot is compared with
        return partial(self._state.key_index_frame_unless_too_many, self._bound.scope) if self._lists_all else None

    def close(self) -> None:
        """Stop reading and close the source. Deleted records without a decision continue to wait."""
        if self._phases is not None:
            self._phases.close()
        self._tally.count("carried_on", self._gone.undecided_deletion_count)

    @property
    def has_more(self) -> bool:
        return self._phases is not None and self._phases.has_more

    def _compare_with_state(self, unsettled: list[Intent]) -> state_comparison.Delta:
        scan, snapshot = self._scan, self._has_read_snapshot
        nothing = not scan.latest.height and not snapshot
        known = key_index_files.empty_key_index_frame() if nothing else self._known_records()
        with self._state.begin_read_only() as tx:
            letters = tx.dead_letters.facts_of_all_letters_of_stream(self._bound.name)
        compared = partial(
            state_comparison.compare_latest_records_with_state,
            scan.latest,
            known,
            dead_letters=letters,
            unsettled=unsettled,
        )
        found = compared(waiting=self._waiting, idle=self.idle_waits.records, snapshot=snapshot)
        self._leave_out_dropped_records(found, letters)
        for unit, line in found.incomparable[[UNIT, LINE]].rows()[:1]:
            raise notation_differs_from_stored_error(scan.place_of_row(unit, line))
        self._known_count = known.height
        keys = split_into_parts_by_key(found.changed.select(KEY_HASH), known.select(KEY_HASH))
        self._known_changed = sum(ours.join(theirs, on=KEY_HASH, how="semi").height for ours, theirs in keys)
        return found

    def _leave_out_dropped_records(self, found: state_comparison.Delta, letters: Sequence[DeadLetterFacts]) -> None:
        """Leave dropped records out of the changes whose source is the same: only what is made of it has changed."""
        dropped = [each.key_hash for each in letters if each.status == "dropped"]
        rows = rows_with_given_keys(found.changed, pl.Series(KEY_HASH, dropped, dtype=pl.UInt128)) if dropped else None
        if rows is None or not rows.height:
            return
        with self._state.begin_read_only() as tx:
            stored = {each: tx.dead_letters.get(self._bound.name, each) for each in rows[KEY_HASH]}
        self._still_dropped = {}
        for read in self._scan.read_chosen_records(rows):
            letter = stored[read.identity.key_hash]
            if letter is not None and letter["raw"] and is_same_source(letter["raw"], read.record.raw()):
                self._still_dropped[read.identity.key_hash] = read.identity.fingerprint
        same = pl.Series(KEY_HASH, list(self._still_dropped), dtype=pl.UInt128)
        found.changed = found.changed.filter(~pl.col(KEY_HASH).is_in(same.implode()))
        found.dropped += len(same)

    def _known_records(self) -> pl.DataFrame:
        held = order.known if (order := self._scan.key_order) else None
        return self._state.key_index_frame_of_scope(self._bound.scope) if held is None else held

    def raise_if_input_unexpected(self) -> None:
        """Called after everything is read, before any of it is counted. It may refuse the input."""

    @property
    def _lists_all(self) -> bool:
        return self._bound.stream.mode == "snapshot"

    @property
    def _has_read_snapshot(self) -> bool:
        return self._lists_all and bool(self._scan.source_names)

    def _count_records_needing_no_decision(self, found: state_comparison.Delta) -> None:
        self._tally.count("carried_over", len(self.formerly_waiting_key_hashes))
        found.count_needing_no_decision(self._tally)
        self._tally.records.update(self.removals.terms)
        self._tally.count("carried_on", len(self._left_alone))

    def give_up_after_failed_read(self) -> None:
        self._bound.context.run.intakes.discard_for_stream(self._bound.name)
        self._tally.count("carried_over", len(self.formerly_waiting_key_hashes))
        self._tally.count("carried_on", len(self.formerly_waiting_key_hashes))

    @property
    def idle_waits(self) -> IdleWaits:
        return self._waits.idle_waits

    @property
    def postponed_as_unsettled_count(self) -> int:
        return self._delta.postponed if self._delta else 0

    @property
    def formerly_waiting_key_hashes(self) -> Collection[int]:
        return self._waits.found

    @property
    def expected_record_count(self) -> int:
        return self._count_of_records_to_map + len(self.removals.removed)

    @property
    def _count_of_records_to_map(self) -> int:
        assert self._delta is not None
        return self._delta.changed.height + sum(1 for _ in self._waiting_decided_now())

    def _waiting_decided_now(self) -> Iterator[WaitingRecord]:
        """Yield the waiting records that are decided in the version in which they wait."""
        assert self._delta is not None
        passed_over = {*self._delta.replaced, *self._left_alone}
        return (each for each in self._waiting if each.identity.key_hash not in passed_over)

    def updates_for_limit_check(self) -> UpdateCandidates:
        number, known = self._known_changed + len(self._waiting), self._known_count
        if number and not known:  # nothing was read, so the state was not asked
            with self._state.begin_read_only() as tx:
                known = tx.snapshots.count_records_present_at_target(self._bound.scope)
        source = next(iter(self._scan.source_names), "")
        return UpdateCandidates(number, known, self._read_waiting_then_changed, source, self._mapping_changed)

    def withhold_all_records(self, withheld: WithheldUpdates | None) -> None:
        """Execute nothing of the stream, so that the next run reads it again, and store updates to approve."""
        self._tally.count("carried_on", self.expected_record_count)
        if withheld is not None:
            with self._state.begin() as tx:
                tx.pending_approvals.request_approval(withheld.pending)

    def new_failure_counter(self) -> AuthorCodeFailureCounter:
        return AuthorCodeFailureCounter(self._bound, self._count_of_records_to_map + len(self.idle_waits.records))

    @property
    def latest_records(self) -> LatestRecords:
        return self._scan

    def records(self) -> Iterator[KeyedRecord]:
        """Yield what waited, longest first, then changes in source order. After a failure, the rest keeps waiting."""
        given = 0
        try:
            for given, read in enumerate(self._read_waiting_then_changed(), 1):  # noqa: B007
                yield read
        except CrossdockError:
            self._tally.count("carried_on", self._count_of_records_to_map - given)
            raise

    def _read_waiting_then_changed(self) -> Iterator[KeyedRecord]:
        assert self._delta is not None
        waited = ((each.identity, each.raw) for each in self._waiting_decided_now())
        return chain(
            stored_records_repaired_and_filtered_again(self._bound.stream, waited),
            self._scan.read_chosen_records(self._delta.changed),
        )

    def store_completion(self) -> None:
        """Finish the input: the source need not be read again, and resolved dead letters are removed."""
        bound, phases = self._bound, self._phases
        assert phases is not None
        with self._state.begin() as tx:
            self._store_keyless_and_clear_resolved(tx)
            done = self._completeness.doubt is None and self._store_snapshot_or_approval_request(tx)
            self._is_held_back = self._is_held_back or not done
            cursor = phases.new_cursor(self._scan)
            if cursor is not None and not (self._is_held_back or self._gone.undecided_deletion_count):
                tx.cursors.put(bound.name, bound.cursor_version, cursor)
            phases.store_followed_and_read_time(tx, is_done=done)
        self._state.update_key_index(bound.scope, self._order)
        if not self._is_held_back and not self.has_more:
            with converting_errors_of_stream_method(bound, "finished"):
                bound.stream.finished(bound.context)

    def _store_keyless_and_clear_resolved(self, tx: Transaction) -> None:
        """Store the rows without a key, and remove dead letters and waiting records that are resolved."""
        assert self._delta is not None
        name, at = self._bound.name, self._bound.context.run.clock.now()
        tx.dead_letters.replace_dead_letters_without_key(
            name,
            self._scan.dead_letters_without_key,
            self._sources_whose_keyless_rows_are_replaced,
            run_id=self._run_id,
            at=at,
        )
        tx.dead_letters.remove_records(name, self._delta.cured)
        tx.dead_letters.set_fingerprints_of_dropped(name, self._still_dropped)
        tx.waiting_records.remove_records(name, self._delta.unmoved)

    @property
    def _sources_whose_keyless_rows_are_replaced(self) -> Sequence[str] | None:
        """The sources whose rows without a key are known anew; None for all."""
        if self._has_read_snapshot:
            return None
        if self._bound.stream.mode != "incremental":
            return self._scan.source_names
        # pages of changes have the same addresses in each run, and others records
        return None if self._phases is not None and self._phases.has_listed_all else ()

    def _store_snapshot_or_approval_request(self, tx: Transaction) -> bool:
        """Return False if the source must be read again, for example because of an unsettled operation."""
        assert self._delta is not None
        withheld, listed = self.removals.withheld, self._gone.listed_rows is not None
        if withheld is not None:
            tx.pending_approvals.request_approval(withheld)
        elif (self._scan.source_names or listed) and not self.has_more:
            self._withdraw_approval_request(tx)
        if self._delta.postponed or self.removals.unsettled:
            return False
        is_unproved = self.removals.unproved
        if (self._has_read_snapshot or listed) and (withheld is None or is_unproved):
            rows = self._rows if self._gone.listed_rows is None else self._gone.listed_rows
            store_snapshot_for_later_comparisons(
                tx, self._bound, rows, self._completeness, self._run_id, unproved=is_unproved
            )
        return listed or not (withheld or is_unproved)  # a list of existing records is read in each run

    def _withdraw_approval_request(self, tx: Transaction) -> None:
        """Withdraw the request for approval, unless webhooks have named its records, which this input may not show."""
        name = self._bound.name
        pending = tx.pending_approvals.get(name)
        if pending is not None and not tx.inbox.key_hashes_among(name, pending.key_hashes):
            tx.pending_approvals.forget(name)


def load_keys_stored_before_trimming(bound: BoundStream, state: State) -> None:
    """Let the stream keep the names of records that the state stored before keys were trimmed."""
    if bound.stream.trim_keys:
        with state.begin_read_only() as tx:
            bound.stream.earlier_keys = stored_key_by_trimmed_key(tx, bound.scope, bound.name)


def report_doubtful_rows(bound: BoundStream, scan: LatestRecords) -> None:
    """Report how many keys were trimmed or may have been changed by a partner, cells that look damaged, and a record
    whose rows are in two files.
    """
    note = bound.context.run.note
    if number := sum(scan.trimmed_rows):
        rows = "1 row" if number == 1 else f"{number:,} rows"
        note(bound.name, f"white space around the key was removed in {rows}")
    if number := scan.changed_names:
        names = "1 external id" if number == 1 else f"{number:,} external ids"
        of_ours = f"{names} of {NOT_OURS} would be ours but for case, white space or encoding"
        text = f"{of_ours}; if the partner changes names, choose another name_form"
        bound.context.run.warn(bound.name, text, code="external_ids_similar")
    if scan.divided_record is not None:
        text = f"a record is at the border of {scan.divided_record}, and only its latter rows count"
        hint = "if the export was divided by rows, let the sender keep the rows of a record together"
        bound.context.run.warn(bound.name, f"{text}: {hint}", code="records_repeated")
    if scan.disjoint_versions is not None:
        text = f"a record is at {scan.disjoint_versions} without a row in common, and only the last one counts"
        bound.context.run.warn(bound.name, f"{text}: {KEEP_TOGETHER}", code="records_repeated")
    for found in scan.suspicious.found:
        note(bound.name, str(found))


def find_and_note_newly_filtered(
    bound: BoundStream, state_name: str, kept: Sequence[WaitingRecord | DeadLetter]
) -> set[int]:
    """Return the key hashes of *kept* records that a filter excludes now, and note that they stay in *state_name*."""
    found = keys_filtered_out_now(bound.stream, [(each.identity, each.raw) for each in kept])
    if found:
        which = f"1 record that is {state_name}" if len(found) == 1 else f"{len(found):,} records that are {state_name}"
        text = f"filters (skip) exclude {which}, so that nothing was sent"
        bound.context.run.note(bound.name, f"{text}; 'crossdock records drop {bound.name} KEY' removes one")
    return found
