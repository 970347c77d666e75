"""Where the records of a stream come from in a run: its source (`StreamInput`) or its dead letters (`Replay`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol

from crossdock.config.project.connector_instances import BoundStream
from crossdock.delta.records_of_rows import KeyedRecord
from crossdock.planning.failure_count import FailureCount
from crossdock.planning.idle_records import Idle
from crossdock.planning.removals import Removals
from crossdock.planning.update_limits import UpdateCandidates, WithheldUpdates
from crossdock.state import Intent
from crossdock.values.tally import Tally
from crossdock.writing.delivery.operations import Operation


class RecordSource(Protocol):
    """What a run asks of either."""

    @property
    def named(self) -> Sequence[int] | None:
        """The key hashes of the records that it reads; None if they are not known before."""

    def read(self, unsettled: list[Intent], advance: Callable[[int], None]) -> None:
        """Read everything, or the next part; records with an operation in *unsettled* are left alone."""

    @property
    def finds_changes(self) -> bool:
        """True if it finds by itself what has changed, whether or not a webhook has told of it."""

    @property
    def waited(self) -> Collection[int]:
        """The key hashes of the records that waited before `read`, and are decided about again."""

    @property
    def idle(self) -> Idle:
        """The waiting records about which nothing is to be decided."""

    @property
    def has_more(self) -> bool:
        """True if `read` has read only a part, and will read the next one."""

    def close(self) -> None:
        """Read no further."""

    def abandon(self) -> None:
        """The source failed: what waited before continues to wait."""

    @property
    def expected(self) -> int:
        """How many records `records` yields, and how many are removed."""

    def records(self) -> Iterator[KeyedRecord]:
        """The records to decide on."""

    @property
    def operations(self) -> Iterable[Operation]:
        """Operations that need no decision; they are sent after those of the records."""

    def update_candidates(self) -> UpdateCandidates:
        """What the update limits are compared with."""

    def refuse(self, withheld: WithheldUpdates | None) -> None:
        """Nothing of it is carried out; store what an operator may approve."""

    def finish(self) -> None:
        """Every record is settled, or kept in the state."""

    def failure_count(self) -> FailureCount:
        """Counts failures of the mapping."""

    @property
    def removals(self) -> Removals:
        """Which records are removed, and why others are not."""


SourceFactory = Callable[[BoundStream, Tally, int], RecordSource]
"""Makes the source of a stream, given its tally and the run's id."""
