"""The input of a stream in a run: its source (`StreamInput`) or its dead letters (`Replay`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol

from crossdock.config.project.connections import BoundStream
from crossdock.delta.records_of_rows import KeyedRecord
from crossdock.runs.planning.draft_records import FailureCount
from crossdock.runs.planning.removals import Removals
from crossdock.runs.planning.unchanged_waits import IdleWaits
from crossdock.runs.planning.update_limits import UpdateCandidates, WithheldUpdates
from crossdock.state import Intent
from crossdock.values.tally import Tally
from crossdock.writing.delivery.operations import Operation


class RunInput(Protocol):
    @property
    def named(self) -> Sequence[int] | None:
        """The key hashes of the records that it reads; None if they are not known in advance."""

    def read(self, unsettled: list[Intent], advance: Callable[[int], None]) -> None:
        """Read everything, or the next part. Records with an operation in *unsettled* are left alone."""

    @property
    def finds_changes(self) -> bool:
        """Whether it finds changes by itself, without webhooks."""

    @property
    def waited(self) -> Collection[int]:
        """The key hashes of the records that waited before `read` and are decided again."""

    @property
    def postponed(self) -> int:
        """The number of records that `read` leaves to the next run, because an operation on them is not settled."""

    @property
    def idle(self) -> IdleWaits:
        """The waiting records that need no decision."""

    @property
    def has_more(self) -> bool:
        """Whether `read` has read only a part, and will read the next one."""

    def close(self) -> None:
        """Stop reading."""

    def abandon(self) -> None:
        """Handle a failed source: what waited before continues to wait."""

    @property
    def expected_records(self) -> int:
        """The number of records that `records` yields, plus removals."""

    def records(self) -> Iterator[KeyedRecord]:
        """Yield the records to decide on."""

    @property
    def operations(self) -> Iterable[Operation]:
        """Operations that need no decision. They are sent after those of the records."""

    def update_estimate(self) -> UpdateCandidates:
        """Return the updates that are compared with the limits."""

    def refuse(self, withheld: WithheldUpdates | None) -> None:
        """Execute nothing of it, and store what an operator may approve."""

    def finish(self) -> None:
        """Finish the input: every record is settled, or kept in the state."""

    def failure_count(self) -> FailureCount:
        """Counts failures of the mapping."""

    @property
    def removals(self) -> Removals:
        """The records that are removed, and the reasons why others are not."""


RunInputFactory = Callable[[BoundStream, Tally, int], RunInput]
"""Makes the source of a stream from the stream, its tally and the run's id."""
