"""The result of a plan: decisions for a listener, and numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

from crossdock.delta.latest_records import RepeatedKeys
from crossdock.errors import CrossdockError, worst_exit_code
from crossdock.pacing.token_bucket import Forecast
from crossdock.reading.sources.run_context import Observe
from crossdock.runs import tables_and_sentences_of_run
from crossdock.runs.planned_target_files import PlannedFile
from crossdock.runs.planning.planner import PlannedChunk
from crossdock.state import Binding, DeadLetter, Intent, RecordIdentity, Scope, WaitingRecord
from crossdock.values.run_progress_and_messages import RunMessage, error_texts
from crossdock.values.run_states_and_tally import Tally
from crossdock.values.texts_of_numbers_and_times import count_with_noun
from crossdock.writing.delivery.operations_and_intents import Operation


def _ignore(_: object) -> None:
    """Ignore a decision."""


@dataclass(frozen=True, slots=True)
class PlanListener:
    """Receives the decisions of a plan: one call for each record that is read or waits and needs more than a count.

    Attributes:
        operation: A create in two steps is given once, whole.
        refused: Also a row without a key.
        in_doubt: A record with an operation that is not sent, because it may have been carried out.
        withheld: An update or removal that needs approval.
        suppressed: A record that was mapped and of which the target holds everything already.
    """

    operation: Callable[[Operation], None]
    refused: Callable[[DeadLetter], None]
    waiting: Callable[[WaitingRecord], None]
    resend: Callable[[Intent], None]
    in_doubt: Callable[[RecordIdentity], None]
    withheld: Callable[[Operation], None]
    suppressed: Callable[[Scope, Binding], None] = field(default=lambda _scope, _binding: None, kw_only=True)
    observe: Observe | None = field(default=None, kw_only=True)

    @classmethod
    def ignoring(cls, *, operation: Callable[[Operation], None] = _ignore) -> PlanListener:
        """Return a listener that ignores all decisions but *operation*."""
        return cls(operation, *[_ignore] * 5)


@dataclass(slots=True, repr=False)
class PlanResult:
    """What a plan found, mostly by stream. Printed, it is the tally of each stream, the errors and the requests.

    Attributes:
        tallies: As in the report of the sync if the platform accepts everything.
        operations: Requests by kind, with ``archive`` apart, and ``resend`` for what an earlier run left unsettled.
        requests: By target and stream, including operations that an earlier run left for streams that are not selected.
        sources: A hash of what each stream read, if requested.
        rejected_before: The number of records that are rejected and have not changed since.
        left_alone: The number of records that are gone and stay as they are.
        files: The files that targets would be given.
    """

    forecast: Forecast

    tallies: dict[str, Tally] = field(default_factory=dict)
    errors: dict[str, CrossdockError] = field(default_factory=dict)
    other_forecasts: dict[str, Forecast] = field(default_factory=dict)
    operations: Counter[str] = field(default_factory=Counter)
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    unread: int = 0
    sources: dict[str, str] = field(default_factory=dict)
    rejected_before: Counter[str] = field(default_factory=Counter)
    repeated_keys: dict[str, RepeatedKeys] = field(default_factory=dict)
    left_alone: dict[str, int] = field(default_factory=dict)
    files: Sequence[PlannedFile] = ()

    @property
    def exit_code(self) -> int:
        return worst_exit_code(self.errors.values())

    def __str__(self) -> str:
        tallies = (
            tables_and_sentences_of_run.tally_sentence(name, tally.as_json()) for name, tally in self.tallies.items()
        )
        errors = error_texts(RunMessage.of_error(name, error) for name, error in self.errors.items())
        operations = ", ".join(f"{number:,} {kind}" for kind, number in self.operations.items())
        return "\n".join((*tallies, *errors, self.summary(operations)))

    __repr__ = __str__

    def summary(self, counts: str) -> str:
        """Return the sentence with the *counts* of what the sync would do, which says whether all streams were read."""
        if self.unread:
            streams = count_with_noun(self.unread, "stream")
            return f"plan incomplete: {streams} could not be read; {counts or 'nothing else to do'}"
        return f"plan: {counts or 'nothing to do'}"


class WaitingReporter:
    """Reports each waiting record of one stream once: at the end, if it is held until then."""

    def __init__(self, held: Container[int], listener: PlanListener) -> None:
        self._held, self._listener = held, listener
        self._kept: dict[int, WaitingRecord] = {}

    def report_or_hold_waiting(self, decided: PlannedChunk) -> None:
        for record in decided.waits:
            if record.identity.key_hash in self._held:
                self._kept[record.identity.key_hash] = record
            else:
                self._listener.waiting(record)
        if self._kept:
            sent = [operation.identity.key_hash for operation in decided.operations if operation.step != "open"]
            rejected = [dead_letter.identity.key_hash for dead_letter in decided.dead_letters]
            suppressed = [binding.key_hash for binding in decided.suppressed]
            for key_hash in (*sent, *rejected, *suppressed):
                self._kept.pop(key_hash, None)

    def report_waiting_at_end(self) -> None:
        for record in self._kept.values():
            self._listener.waiting(record)
