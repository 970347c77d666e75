"""All records of one stream as the input of a run, even if they were delivered before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import polars as pl
from msgspec import structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.row_preparation import KEY_HASH
from crossdock.delta.state_comparison import Delta, keys_not_listed
from crossdock.runs.planning.mapping_to_drafts import FailureCounter
from crossdock.runs.planning.removals import Removals
from crossdock.runs.planning.update_limits import UpdateCandidates
from crossdock.runs.stream_reading_and_state_comparison import StreamInput
from crossdock.state import Binding, Intent, RecordIdentity, State, Transaction
from crossdock.state.sidecar_files import key_index_files
from crossdock.values.raw_rows_and_records import Record
from crossdock.values.run_states_and_tally import Tally
from crossdock.writing.delivery.operations_and_intents import FROM_STATE, Operation
from crossdock.writing.targets.payload_comparison import merge_patch_between


class FullInputIgnoringEarlierRuns(StreamInput):
    """The whole content of the source. Each record is mapped and compared with the state's payload.

    It moves no cursor, records no file and removes nothing.

    Args:
        wanted: The bindings that the target must hold, by key hash, each with its present binding, or None for a
            missing record. Used for records that the source no longer names, unless it was read as a list of all.
    """

    finds_changes_without_webhooks = False
    only_changes = True

    def __init__(
        self,
        bound: BoundStream,
        state: State,
        tally: Tally,
        run_id: int = 0,
        *,
        wanted: Mapping[int, tuple[Binding, Binding | None]] = {},
        only: Collection[int] | None = None,
        digested: bool = True,
    ) -> None:
        self._wanted, self._only = wanted, only
        self.absent = pl.Series(KEY_HASH, [], dtype=pl.UInt128)
        super().__init__(bound, state, tally, run_id, digested=digested, whole=True)

    def _stored_cursor(self) -> str | None:
        return None

    @property
    def _loader_of_known_keys_in_export_order(self) -> Callable[[], pl.DataFrame | None] | None:
        return None

    @property
    def _has_read_snapshot(self) -> bool:
        return False

    @property
    def has_read_whole_list(self) -> bool:
        """Whether the source lists all records, and has a list: its file may be in the archive."""
        return self._lists_all and bool(self._scan.source_names)

    def _time_of_mapping_change_text(self, tx: Transaction) -> str:  # noqa: ARG002  everything is mapped in any case
        return ""

    def _known_records(self) -> pl.DataFrame:
        return key_index_files.empty_key_index_frame()

    def _compare_with_state(self, unsettled: list[Intent]) -> Delta:
        read = self._scan.latest.select(KEY_HASH)
        if self._only is not None:
            before = self._scan.latest.height
            self._scan.latest = _rows_with_given_keys(self._scan.latest, self._only)
            self._tally.count("ignored", before - self._scan.latest.height)
        self.absent = keys_not_listed(self._state.key_index_frame_of_scope(self._bound.scope), read)
        if not self.has_read_whole_list:
            named = set(_rows_with_given_keys(read, self._wanted)[KEY_HASH].to_list())
            others = {intent.identity.key_hash for intent in unsettled}
            left = (pair for key, pair in self._wanted.items() if key not in named and key not in others)
            self.prepared_operations = [
                each for each in (self._operation_from_accepted_payload(*pair) for pair in left) if each.changes
            ]
        return super()._compare_with_state(unsettled)

    def _operation_from_accepted_payload(self, wanted: Binding, held: Binding | None) -> Operation:
        """Write what the target accepted before, since the source no longer names the record."""
        bound, after = self._bound, self._bound.members_of_own(wanted.payload)
        held = held and structs.replace(held, payload=bound.members_of_own(held.payload))
        identity = RecordIdentity(bound.name, wanted.key, wanted.key_hash, None, wanted.position, FROM_STATE, 0)
        changes = after if held is None else merge_patch_between(held.payload, after)
        kind: Any = "create" if held is None else "update"
        return Operation(kind, identity, bound.scope, Record(wanted.key, (), FROM_STATE, (0,)), after, changes, held)

    def _decide_removals(self, found: Delta, counted: Tally, unsettled: Sequence[Intent]) -> Removals:  # noqa: ARG002
        """Remove nothing. Records that the source names as deleted are not compared."""
        return Removals()

    def updates_for_limit_check(self) -> UpdateCandidates:
        """Return no candidates: a person has seen the differences."""
        return UpdateCandidates(0, 0, self._read_waiting_then_changed, "")

    def new_failure_counter(self) -> FailureCounter:
        """Return no limit: failures are listed."""
        return FailureCounter(self._bound, None)

    def store_completion(self) -> None:
        with self._state.begin() as tx:
            self._store_keyless_and_clear_resolved(tx)
        self._state.update_key_index(self._bound.scope)


def _rows_with_given_keys(rows: pl.DataFrame, key_hashes: Collection[int]) -> pl.DataFrame:
    keys = pl.Series(KEY_HASH, list(key_hashes), dtype=rows.schema[KEY_HASH]).to_frame()
    return rows.join(keys, on=KEY_HASH, how="semi", maintain_order="left")
