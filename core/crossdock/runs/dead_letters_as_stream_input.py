"""Replay of dead letters: maps and delivers rejected records again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.second_pass_for_changed_records import KeyedRecord, stored_records_prepared_again
from crossdock.runs import stream_reading_and_state_comparison
from crossdock.runs.planning.mapping_to_drafts import FailureCounter
from crossdock.runs.planning.removals import Removals
from crossdock.runs.planning.unchanged_waits import IdleWaits
from crossdock.runs.planning.update_limits import UpdateCandidates, WithheldUpdates
from crossdock.state import DeadLetter, Intent, RecordFilter, State
from crossdock.values.run_states_and_tally import Tally
from crossdock.values.texts_of_numbers_and_times import count_with_noun

_NAMED = 3  # records that a note names
_MISSING = "missing"  # the reason of records that the target has no longer


class ReplayInput:
    """The dead letters of one stream. That of a removal repeats the removal, if the stream still removes records.

    A record that is chosen by its key, or as missing, and that the target turns out not to have once more, is created
    again in a second part.
    """

    finds_changes_without_webhooks, requested_key_hashes = False, None

    def __init__(
        self, bound: BoundStream, state: State, tally: Tally, choice: RecordFilter, note: Callable[[str, str], None]
    ) -> None:
        self._bound, self._state, self._tally, self._note = bound, state, tally, note
        self._choice = structs.replace(choice, stream=bound.name)
        self._dead_letters: list[DeadLetter] = []
        self._missing: set[int] | None = None  # key hashes, from the first part on
        self.removals = Removals()
        self.has_more, self.formerly_waiting_key_hashes, self.idle_waits, self.prepared_operations = (
            False,
            frozenset[int](),
            IdleWaits(),
            (),
        )
        self.postponed_as_unsettled_count = 0

    def close(self) -> None:
        """Do nothing: no source is open."""

    def read_next_part(self, unsettled: list[Intent], advance: Callable[[int], None]) -> None:
        """Take the chosen dead letters, except rows without a key, and unsettled or newly filtered records."""
        skipped = {intent.identity.key_hash for intent in unsettled}
        with self._state.begin_read_only() as tx:
            chosen = tx.dead_letters.rejected_matching(self._choice)
        chosen = [each for each in chosen if each.identity.key and each.identity.key_hash not in skipped]
        if self._missing is None:
            self._missing = {each.identity.key_hash for each in chosen if self._may_be_created_again(each)}
            self.has_more = bool(self._missing)
        else:
            chosen = self._unbind_missing(chosen, self._missing)
            self.has_more = False
        found = [each for each in chosen if each.raw]
        self._note_emptied([each for each in chosen if not each.raw and each.step != "remove"])
        filtered = stream_reading_and_state_comparison.find_and_note_newly_filtered(self._bound, "rejected", found)
        self._dead_letters = [each for each in found if each.identity.key_hash not in filtered]
        if self._bound.stream.on_gone != "nothing":
            refused = [each for each in chosen if each.step == "remove"]
            self.removals = Removals(removed=tuple(each.identity.key_hash for each in refused), source="replay")
        self._tally.count("carried_over", self.expected_record_count + len(filtered))
        self._tally.count("carried_on", len(filtered))
        advance(self.expected_record_count)

    def _may_be_created_again(self, rejected: DeadLetter) -> bool:
        is_meant = self._choice.key is not None or self._choice.code == _MISSING
        is_whole = rejected.step == "whole" and not self._bound.scope.is_contribution
        return is_meant and is_whole and rejected.code == _MISSING

    def _unbind_missing(self, chosen: list[DeadLetter], tried: set[int]) -> list[DeadLetter]:
        """Return those of *tried* that were found to be missing again. The target has them no longer."""
        found = [each for each in chosen if each.identity.key_hash in tried and self._may_be_created_again(each)]
        at = self._bound.context.run.clock.now()
        with self._state.begin() as tx:
            tx.bindings.mark_deleted(self._bound.scope, [each.identity.key_hash for each in found], at=at)
        return found

    def _note_emptied(self, emptied: list[DeadLetter]) -> None:
        if not emptied:
            return
        name, keys = self._bound.name, ", ".join(each.identity.key for each in emptied[:_NAMED])
        more = f" and {len(emptied) - _NAMED:,} more" if len(emptied) > _NAMED else ""
        number = count_with_noun(len(emptied), "record")
        advice = f"have each sent again, or drop it: crossdock records drop {name} KEY"
        self._note(name, f"{number} not replayed, whose data retention has removed ({keys}{more}): {advice}")

    def give_up_after_failed_read(self) -> None:
        self._tally.count("carried_on", self.expected_record_count)

    @property
    def expected_record_count(self) -> int:
        return len(self._dead_letters) + len(self.removals.removed)

    def new_failure_counter(self) -> FailureCounter:
        """Return no limit: the records are dead letters already."""
        return FailureCounter(self._bound, None)

    def records(self) -> Iterator[KeyedRecord]:
        return stored_records_prepared_again(
            self._bound.stream, ((each.identity, each.raw) for each in self._dead_letters)
        )

    def updates_for_limit_check(self) -> UpdateCandidates:
        """Return no candidates: an operator chose these records, and the limits apply to what a source brings."""
        return UpdateCandidates(0, 0, self.records, "")

    def withhold_all_records(self, withheld: WithheldUpdates | None) -> None:  # noqa: ARG002  none of its updates needs approval
        self._tally.count("carried_on", self.expected_record_count)

    def store_completion(self) -> None:
        """Do nothing: no source was read."""
