"""Replay of dead letters: maps and delivers rejected records again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import structs

from crossdock.config.project.connections import BoundStream
from crossdock.delta.records_of_rows import KeyedRecord, stored_records_prepared_again
from crossdock.runs import stream_input
from crossdock.runs.planning.draft_records import FailureCount
from crossdock.runs.planning.removals import Removals
from crossdock.runs.planning.unchanged_waits import IdleWaits
from crossdock.runs.planning.update_limits import UpdateCandidates, WithheldUpdates
from crossdock.state import DeadLetter, Intent, RecordFilter, State
from crossdock.values.tally import Tally


class ReplayInput:
    """The dead letters of one stream. That of a removal repeats the removal, if the stream still removes records."""

    finds_changes, named = False, None

    def __init__(self, bound: BoundStream, state: State, tally: Tally, choice: RecordFilter) -> None:
        self._bound, self._state, self._tally = bound, state, tally
        self._choice = structs.replace(choice, stream=bound.name)
        self._dead_letters: list[DeadLetter] = []
        self.removals = Removals()
        self.has_more, self.waited, self.idle, self.operations = False, frozenset[int](), IdleWaits(), ()
        self.postponed = 0

    def close(self) -> None:
        """Do nothing: no source is open."""

    def read(self, unsettled: list[Intent], advance: Callable[[int], None]) -> None:
        """Take the chosen dead letters, except rows without a key, and unsettled or newly filtered records."""
        skipped = {intent.identity.key_hash for intent in unsettled}
        with self._state.read_only() as tx:
            chosen = tx.dead_letters.rejected_matching(self._choice)
        chosen = [each for each in chosen if each.identity.key and each.identity.key_hash not in skipped]
        found = [each for each in chosen if each.raw]
        filtered = stream_input.newly_filtered(self._bound, "rejected", found)
        self._dead_letters = [each for each in found if each.identity.key_hash not in filtered]
        if self._bound.stream.on_gone != "nothing":
            refused = [each for each in chosen if each.step == "remove"]
            self.removals = Removals(removed=tuple(each.identity.key_hash for each in refused), source="replay")
        self._tally.count("carried_over", self.expected_records + len(filtered))
        self._tally.count("carried_on", len(filtered))
        advance(self.expected_records)

    def abandon(self) -> None:
        self._tally.count("carried_on", self.expected_records)

    @property
    def expected_records(self) -> int:
        return len(self._dead_letters) + len(self.removals.removed)

    def failure_count(self) -> FailureCount:
        """Return no limit: the records are dead letters already."""
        return FailureCount(self._bound, None)

    def records(self) -> Iterator[KeyedRecord]:
        return stored_records_prepared_again(
            self._bound.stream, ((each.identity, each.raw) for each in self._dead_letters)
        )

    def update_estimate(self) -> UpdateCandidates:
        """Return no candidates: an operator chose these records, and the limits apply to what a source brings."""
        return UpdateCandidates(0, 0, self.records, "")

    def refuse(self, withheld: WithheldUpdates | None) -> None:  # noqa: ARG002  none of its updates needs approval
        self._tally.count("carried_on", self.expected_records)

    def finish(self) -> None:
        """Do nothing: no source was read."""
