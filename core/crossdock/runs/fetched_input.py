"""Named records of one stream as the input of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import polars as pl

from crossdock.config.project.connector_instances import BoundStream
from crossdock.delta.compare import Delta
from crossdock.delta.row_preparation import KEY_HASH
from crossdock.planning.failure_count import FailureCount
from crossdock.planning.removals import Removals
from crossdock.planning.update_limits import UpdateCandidates
from crossdock.records import key_parts_of
from crossdock.runs.checked_batches import fetched_batches
from crossdock.runs.followed_records import FollowedRecords
from crossdock.runs.stream_input import StreamInput
from crossdock.state import Intent, NamedRecord, State, Transaction
from crossdock.values.tally import Tally
from crossdock.writing.delivery.records_in_progress import OwnRecords


class FetchedInput(StreamInput):
    """The records that `Stream.fetch` gives for *records*. It reads no list and moves no cursor.

    Attributes:
        named: The key hashes of *records*.
        taken: The key hashes of the records that `fetch` gave.
        blocked: The key hashes of records with an unsettled operation, which must be fetched again.
    """

    finds_changes = False
    named: Sequence[int]

    def __init__(
        self,
        bound: BoundStream,
        state: State,
        tally: Tally,
        run_id: int,
        records: Sequence[NamedRecord],
        own_records: OwnRecords,
    ) -> None:
        self._keys = [key_parts_of(record.key) for record in records]
        self._own_records = own_records
        self.named = [record.key_hash for record in records]
        self.taken: Collection[int] = ()
        self.blocked: Collection[int] = ()
        self._followed = FollowedRecords(bound, state)
        super().__init__(bound, state, tally, run_id)

    def read(self, unsettled: list[Intent], advance: Callable[[int], None]) -> None:
        super().read(unsettled, advance)
        self.blocked = {intent.identity.key_hash for intent in unsettled}

    def _compared(self, unsettled: list[Intent]) -> Delta:
        self.taken = self._scan.latest[KEY_HASH].to_list()
        if others := list({*self.taken} - {*self.named}):
            with self._state.look() as tx:
                unsettled += self._own_records.without_others(tx.intents.unsettled(self._bound.scope, others))
        return super()._compared(unsettled)

    def _begin_phase(self) -> bool:
        return False

    def _read_part(self, advance: Callable[[int], None]) -> Tally:
        counted = Tally()
        self._scan.take(self._followed.watched(fetched_batches(self._bound, self._keys)), counted, advance)
        return counted

    @property
    def _read_again(self) -> Sequence[str]:
        return self._scan.sources

    @property
    def _lists_all(self) -> bool:
        return False

    def _mapping_change(self, tx: Transaction) -> str:  # noqa: ARG002  the next run of the stream reports it
        return ""

    def _known(self) -> pl.DataFrame:
        return self._state.known_among(self._bound.scope, self._scan.latest[KEY_HASH].to_list())

    def _decided_removals(self, found: Delta, counted: Tally, unsettled: Sequence[Intent]) -> Removals:  # noqa: ARG002
        """Decide about the records that `fetch` names as deleted, within the daily limits of the run that is
        continued.
        """
        self._tally.count("ignored", self._gone.take(self._scan, found))
        return self._gone.of_marks(unsettled, self._tally.records["deleted"])

    def update_candidates(self) -> UpdateCandidates:
        """Return no candidates: the limits compare what changed with what was listed."""
        return UpdateCandidates(0, 0, self.records, "")

    def failure_count(self) -> FailureCount:
        """Return no limit: these are few records, each of which was named."""
        return FailureCount(self._bound, None)

    def finish(self) -> None:
        """Remove resolved dead letters, and store which records are not final."""
        assert self._delta is not None
        if self._scan.keyless or self._delta.cured or self._delta.unmoved or self._followed.has_news:
            with self._state.begin() as tx:
                self._clear_resolved(tx)
                self._followed.store(tx, is_done=not self._delta.blocked)
