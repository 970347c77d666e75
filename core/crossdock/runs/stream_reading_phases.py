"""The phases in which a run reads a stream: changes, records that are not final, and the full list if it is due."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import polars as pl

from crossdock.config.project.connections import BoundStream
from crossdock.delta.latest_records import LatestRecords
from crossdock.delta.row_preparation import KEY_HASH
from crossdock.errors import CrossdockError, StateError, StoppedError
from crossdock.mapping.incremental_cursors import Cursor
from crossdock.reading.sources.list_completeness_evidence import IncompleteListError
from crossdock.runs.checked_batches import pulled_batches
from crossdock.runs.gone_records import SecondReading, is_reading_due
from crossdock.runs.parts_between_checkpoints import ReadParts, UnsortedError
from crossdock.runs.planning.snapshot_proof import Completeness
from crossdock.runs.records_followed_until_final import FollowedRecordFetch
from crossdock.state import State, Transaction
from crossdock.values.records import RawBatch
from crossdock.values.tally import Tally

Phase = Literal["changes", "open", "list"]


class SourcePhases:
    """Reads one stream. Each record is taken from the first phase that reads it. `error` belongs to a later one."""

    def __init__(
        self, bound: BoundStream, state: State, since: str | None, *, whole: bool, only_changes: bool = False
    ) -> None:
        self._bound, self._state, self._since = bound, state, since
        declared = bound.stream.cursor
        given = declared.pull_since(since) if declared else since
        self._changes = self._new_read_parts(
            given, declared, whole=whole, doubt_of_list=self._reason_list_is_incomplete
        )
        self._look = SecondReading(bound, lambda: pulled_batches(bound, given))
        self._list: ReadParts | None = None
        self._cursor: str | None = None
        self._seen: list[pl.DataFrame] = []
        self._is_begun = False
        self.followed = FollowedRecordFetch(bound, state)
        self.phase: Phase = "changes"
        self._left: list[Phase] = [] if only_changes else self._further_phases()
        self._unread: set[Phase] = set()
        self.error: CrossdockError | None = None

    def _reason_list_is_incomplete(self) -> str | None:
        return self._bound.context.run.open_lists.incomplete.get(self._bound.name)

    def _new_read_parts(
        self,
        since: str | None,
        declared: Cursor | None,
        *,
        whole: bool,
        doubt_of_list: Callable[[], str | None] = lambda: None,
    ) -> ReadParts:
        bound, run = self._bound, self._bound.context.run
        return ReadParts(
            pulled_batches(bound, since),
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
        if self.followed.choose_records():
            phases.append("open")
        if reread is not None and self._since is not None:
            with self._state.begin_read_only() as tx:
                last = tx.full_lists.last_read_time(self._bound.name)
                pending = reread.finds_gone and tx.pending_approvals.get(self._bound.name) is not None
            if pending or is_reading_due(last, reread.every, self._bound.context.run.clock.now()):
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
        proof: Completeness,
        advance: Callable[[int], None],
        known: Callable[[], pl.DataFrame | None] | None,
    ) -> Tally | None:
        """Read this part into *scan* and return the counts of its rows; None if a later phase could not be read."""
        counted = Tally()
        try:
            with self._bound.context.run.reading.mark_stream_being_read(self._bound.name):
                scan.read(
                    proof.collect_proofs(self.followed.track_not_final(self._batches(proof))), counted, advance, known
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
            self._reset_cursor(error)
            raise
        parts = self._changes if self.phase == "changes" else self._list if self.phase == "list" else None
        doubt = None if parts is None else parts.doubt or parts.held
        if parts is not None and doubt is not None:  # all of it is delivered, but nothing of it is evidence
            proof.doubt = self._bound.context.run.failures.setdefault(self._bound.name, doubt)
            if parts.doubt is not None:
                self._reset_cursor(parts.doubt)
        if not self.has_more:
            self.close()
        return counted

    def _batches(self, proof: Completeness) -> Iterable[RawBatch]:
        bound, run, name = self._bound, self._bound.context.run, self._bound.name
        if self.phase == "changes":
            return (
                self._batches_of_full_list(self._changes, proof)
                if bound.stream.mode == "snapshot"
                else self._changes.next_part()
            )
        if self.phase == "open":
            run.progress.begin(f"fetching the records of {name} that are not final", None)
            return self.followed.fetch_chosen({key for part in self._seen for key in part[KEY_HASH].to_list()})
        run.progress.begin(f"reading {name} in full", None)
        self._list, self._look = (
            self._new_read_parts(None, None, whole=True),
            SecondReading(bound, lambda: pulled_batches(bound, None)),
        )
        return self._batches_of_full_list(self._list, proof)

    def _batches_of_full_list(self, parts: ReadParts, proof: Completeness) -> Iterable[RawBatch]:
        """Yield the batches of a full list, which may be read again before a missing record counts as gone."""
        if self._bound.stream.on_gone == "nothing":
            return parts.next_part()
        proof.look_again = self._look.reread_and_compare_keys
        return self._look.keep_keys_of_first_reading(parts.next_part())

    def remove_already_read(self, scan: LatestRecords) -> int:
        """Remove from *scan* the records that an earlier phase has read, and count them."""
        before = scan.latest.height
        if self.phase != "changes":
            for part in self._seen:
                scan.latest = scan.latest.join(part, on=KEY_HASH, how="anti", maintain_order="left")
        if self._left:
            self._seen.append(scan.latest.select(KEY_HASH))
        return before - scan.latest.height

    def remove_records_with_doubtful_rows(self, scan: LatestRecords, changed: pl.DataFrame, proof: Completeness) -> int:
        """Remove from *scan* those of *changed* whose rows may not be theirs alone or not all, and count them."""
        found = None if self.phase == "open" else self._look.reread_and_compare_rows(changed)
        if found is None:
            return 0
        unproved, doubt = found
        proof.doubt = self._bound.context.run.failures.setdefault(self._bound.name, doubt)
        scan.latest = scan.latest.join(unproved, on=KEY_HASH, how="anti", maintain_order="left")
        return unproved.height

    @property
    def full_list_finds_gone(self) -> bool:
        is_list = self.phase == "list" and self.phase not in self._unread
        return is_list and self._bound.stream.rereads_gone

    @property
    def keys_of_earlier_phases(self) -> pl.DataFrame:
        return pl.concat(self._seen) if self._seen else pl.DataFrame(schema={KEY_HASH: pl.UInt128})

    def _reset_cursor(self, error: BaseException) -> None:
        """Restore the first cursor if *error* shows that the cursors of earlier parts may have skipped records."""
        if not isinstance(error, UnsortedError | IncompleteListError):
            return
        name, version = self._bound.name, self._bound.stream.cursor_version
        with self._state.begin_read_only() as tx:
            is_first = tx.cursors.get(name, version) == self._since
        if not is_first:  # never so in a plan, which cannot write
            with self._state.begin() as tx:
                tx.cursors.put_or_forget(name, version, self._since)

    def close(self) -> None:
        self._changes.close()
        if self._list is not None:
            self._list.close()

    @property
    def cursor_remark(self) -> str:
        """A remark about the cursor: the missing one (for a first reading only), dates in the future or, without
        ``reread``, which finds what is late, a missing overlap. Empty if there is none.
        """
        if self.phase != "changes":
            return ""
        no_overlap = self._changes.missing_overlap_remark if self._bound.stream.reread is None else ""
        return (
            self._changes.future or no_overlap or (self._changes.missing_cursor_remark if self._since is None else "")
        )

    def new_cursor(self, scan: LatestRecords) -> str | None:
        """Return where the next run continues once this part is settled; None to keep the cursor."""
        if self.phase == "changes":
            self._cursor = self._cursor_of_changes(scan)
        return self._cursor

    def _cursor_of_changes(self, scan: LatestRecords) -> str | None:
        declared, parts = self._bound.stream.cursor, self._changes
        if declared is not None and not declared.sorted:
            if not (parts.ended and parts.has_rows):  # it may be an outage
                return None
            settled = declared.settled(parts.start_of_reading)
            reached = min(settled, parts.latest or settled)  # its times may be behind, or it may be an old answer
            return max(self._since or "", reached)
        return parts.cursor if parts.cursor is not None and not scan.cursor else scan.cursor

    def store(self, tx: Transaction, *, is_done: bool) -> None:
        self.followed.store(tx, is_done=is_done)
        if is_done and self.has_listed_all and self._bound.stream.reread is not None:
            tx.full_lists.put(self._bound.name, at=self._bound.context.run.clock.now())

    @property
    def has_listed_all(self) -> bool:
        """Whether the last part ends a list of all records. One without rows may be an outage."""
        is_first = self._since is None and self._changes.ended and self.phase == "changes"
        parts = self._list if self.phase == "list" else self._changes if is_first else None
        return parts is not None and parts.has_rows and self.phase not in self._unread

    @property
    def problem(self) -> CrossdockError | None:
        """Why a record, or a later phase, could not be read; set once everything is read."""
        return None if self.has_more else self.error or self.followed.error
