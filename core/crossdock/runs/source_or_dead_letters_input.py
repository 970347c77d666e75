"""The input of a stream in a run: its source (`StreamInput`) or its dead letters (`ReplayInput`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.second_pass_for_changed_records import KeyedRecord
from crossdock.runs.planning.mapping_to_drafts import FailureCounter
from crossdock.runs.planning.removals import Removals
from crossdock.runs.planning.unchanged_waits import IdleWaits
from crossdock.runs.planning.update_limits import UpdateCandidates, WithheldUpdates
from crossdock.state import Intent
from crossdock.values.run_states_and_tally import Tally
from crossdock.writing.delivery.operations_and_intents import Operation


class RunInput(Protocol):
    @property
    def requested_key_hashes(self) -> Sequence[int] | None:
        """The key hashes of the records that it reads; None if they are not known in advance."""

    def read_next_part(self, unsettled: list[Intent], advance: Callable[[int], None]) -> None:
        """Read everything, or the next part. Records with an operation in *unsettled* are left alone."""

    @property
    def finds_changes_without_webhooks(self) -> bool:
        """Whether it finds changes by itself, without webhooks."""

    @property
    def formerly_waiting_key_hashes(self) -> Collection[int]:
        """The key hashes of the records that waited before `read_next_part` and are decided again."""

    @property
    def postponed_as_unsettled_count(self) -> int:
        """The number of records that `read_next_part` leaves to the next run, because an operation on them is not
        settled.
        """

    @property
    def idle_waits(self) -> IdleWaits:
        """The waiting records that need no decision."""

    @property
    def has_more(self) -> bool:
        """Whether `read_next_part` has read only a part, and will read the next one."""

    def close(self) -> None:
        """Stop reading."""

    def give_up_after_failed_read(self) -> None:
        """Handle a failed source: what waited before continues to wait."""

    @property
    def expected_record_count(self) -> int:
        """The number of records that `records` yields, plus removals."""

    def records(self) -> Iterator[KeyedRecord]:
        """Yield the records to decide on."""

    @property
    def prepared_operations(self) -> Iterable[Operation]:
        """Operations that need no decision. They are sent after those of the records."""

    def updates_for_limit_check(self) -> UpdateCandidates:
        """Return the updates that are compared with the limits."""

    def withhold_all_records(self, withheld: WithheldUpdates | None) -> None:
        """Execute nothing of it, and store what an operator may approve."""

    def store_completion(self) -> None:
        """Finish the input: every record is settled, or kept in the state."""

    def new_failure_counter(self) -> FailureCounter:
        """Counts failures of the mapping."""

    @property
    def removals(self) -> Removals:
        """The records that are removed, and the reasons why others are not."""


RunInputFactory = Callable[[BoundStream, Tally, int], RunInput]
"""Makes the source of a stream from the stream, its tally and the run's id."""
