"""Operations that were decided before, as the input of a run: those of an undo, for example."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from crossdock.config.project.connections import BoundStream
from crossdock.delta.records_of_rows import KeyedRecord
from crossdock.runs.planning.failure_count import FailureCount
from crossdock.runs.planning.removals import Removals
from crossdock.runs.planning.unchanged_waits import IdleWaits
from crossdock.runs.planning.update_limits import UpdateCandidates, WithheldUpdates
from crossdock.state import Intent
from crossdock.writing.delivery.operations import Operation


class UndoInput:
    """Operations of one stream, which may be created lazily, since they may be many. No source is read."""

    finds_changes, named, has_more, waited, idle = False, None, False, frozenset[int](), IdleWaits()
    postponed = 0
    removals = Removals()

    def __init__(self, bound: BoundStream, operations: Iterable[Operation], expected: int) -> None:
        self._bound, self.operations, self.expected_records = bound, operations, expected

    def close(self) -> None:
        """Nothing is open."""

    def read(self, unsettled: list[Intent], advance: Callable[[int], None]) -> None:
        """Nothing is read."""

    def abandon(self) -> None:
        """Nothing was read."""

    def failure_count(self) -> FailureCount:
        """Return no failures: nothing is mapped."""
        return FailureCount(self._bound, None)

    def records(self) -> Iterator[KeyedRecord]:
        return iter(())

    def update_estimate(self) -> UpdateCandidates:
        """Return no candidates: a person has seen these operations."""
        return UpdateCandidates(0, 0, self.records, "")

    def refuse(self, withheld: WithheldUpdates | None) -> None:
        """Nothing needs an approval."""

    def finish(self) -> None:
        """Do nothing: no source was read."""
