"""``crossdock`` without a platform: everything is real but the senders, which answer 201 with an id at once.

With ``--fill`` before its arguments the dispatcher is replaced too, by one that binds what it is given in large
transactions and writes no intents: a quick way to a state in which everything was delivered, for benchmarks of what
comes after.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from itertools import count
from unittest import mock

from crossdock.cli import main as command
from crossdock.errors import CrossdockError
from crossdock.pacing.request_allowance import RequestAllowance
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.runs import active_run
from crossdock.state import Binding, Intent
from crossdock.values.clock import SystemClock
from crossdock.writing.delivery.delivery_context import DeliveringRun
from crossdock.writing.delivery.dispatcher import Dispatcher
from crossdock.writing.delivery.operations_and_intents import Operation, make_intent_of_operation
from crossdock.writing.delivery.send_queue_and_threads import SendBatch, SenderThreads, SendResult
from crossdock.writing.delivery.state_writer import DeliverableChunk, Settlement
from crossdock.writing.targets import answer_outcomes
from crossdock.writing.targets.answer_outcomes import ExpectedRecord, Outcome
from crossdock.writing.targets.platform_target import PlatformTarget

BOUND_AT_ONCE = 10_000


class Answering(SenderThreads):
    """Answers every errand with 201 and an id before it could have left."""

    def give_batches_to_threads(self, batches: Sequence[SendBatch], in_flight: int) -> None:
        for batch in batches:
            intent = batch.tasks[0].intent
            answer = Answer(201, {}, b'{"id":"prd_%d"}' % intent.id)
            self.results.put(
                SendResult(
                    batch, [answer_outcomes.outcome_of_write(answer, ExpectedRecord(intent.path))], answered=True
                )
            )


class Filling(Dispatcher):
    """Binds every record that would be created."""

    def __init__(
        self,
        run: DeliveringRun,
        target: PlatformTarget,
        allowance: RequestAllowance,
        senders: SenderThreads,
        settled: Callable[[Settlement], None],
        **_: object,
    ) -> None:
        del allowance, senders  # nothing is sent
        self._run, self._target, self._settled, self._ids = run, target, settled, count(1)

    def deliver_held_back_operations(self, *, but: AbstractSet[str] = frozenset(), at_end: bool = True) -> bool:
        """Nothing was held back."""
        del but
        return True

    def take_undelivered_batch_errors(self) -> Sequence[CrossdockError]:
        """Nothing was left out."""
        return ()

    def leave_to_next_run(self) -> None:
        """Nothing is left."""

    def resume_unsettled_intents(
        self, intents: Sequence[Intent], *, held_back_streams: AbstractSet[str] = frozenset()
    ) -> Iterator[None]:
        assert not intents
        return iter(())

    def deliver(self, chunks: Iterator[DeliverableChunk]) -> bool:
        waiting: list[Operation] = []
        for chunk in chunks:
            waiting += chunk.operations
            if len(waiting) >= BOUND_AT_ONCE:
                self._bind(waiting)
                waiting = []
        self._bind(waiting)
        return True

    def _bind(self, operations: Sequence[Operation]) -> None:
        with self._run.state.begin() as tx:
            for scope in {operation.scope for operation in operations}:
                bound = [self._binding(each) for each in operations if each.scope == scope]
                tx.bindings.put(scope, bound, run_id=self._run.id, at=SystemClock().now())
        for operation in operations:
            intent = make_intent_of_operation(operation, self._target, 1)
            intent.status = "delivered"
            self._settled(Settlement(intent, Outcome("delivered")))

    def _binding(self, operation: Operation) -> Binding:
        assert operation.kind == "create"
        return Binding(
            key_hash=operation.identity.key_hash,
            key=operation.record.key,
            target_id=f"prd_{next(self._ids)}",
            fingerprint=operation.identity.fingerprint,
            position=operation.identity.position,
            step="whole",
            payload=operation.after,
            etag=None,
            counter=1,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fill", action="store_true")
    given, arguments = parser.parse_known_args()
    replaced = mock.patch.object(active_run, "Dispatcher", Filling) if given.fill else nullcontext()
    with mock.patch.object(active_run, "SenderThreads", Answering), replaced:
        command.main(arguments)


if __name__ == "__main__":
    main()
