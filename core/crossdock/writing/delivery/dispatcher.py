"""The coordinator's loop: intents into the state, bytes to the senders, outcomes back into the state."""

from __future__ import annotations

import queue
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from crossdock.errors import (
    ConfigError,
    CrossdockError,
    RefusedError,
    StoppedError,
    UnauthorizedError,
    add_code_to_first_line,
)
from crossdock.pacing.request_allowance import RequestAllowance
from crossdock.state import Intent, StoredBatch
from crossdock.writing.delivery.delivery_context import (
    NOTHING_TAKEN_OVER,
    AdoptionRules,
    DeliveringRun,
    DeliveryContext,
    RecordsForgottenByState,
)
from crossdock.writing.delivery.in_doubt_and_refusal_rules import NO_DOUBTS, StateDoubts
from crossdock.writing.delivery.outcome_policy import OutcomePolicy
from crossdock.writing.delivery.retries_and_look_ups import DeliveryPostponedError
from crossdock.writing.delivery.send_queue_and_threads import SendBatch, SenderThreads, SendResult, SendTask
from crossdock.writing.delivery.state_writer import DeliverableChunk, Settlement, StateWriter, TurnDecisions
from crossdock.writing.targets import answer_outcomes
from crossdock.writing.targets.answer_outcomes import Outcome
from crossdock.writing.targets.target import Target

OF_A_PLACE = RefusedError, ConfigError, UnauthorizedError  # why a stored batch cannot be handed over
GATHER_S = 0.004  # waiting this long for outcomes lets more of them share one disk flush


class Dispatcher:
    """Delivers operations in the thread that owns the state. *settled* is called once for each intent."""

    def __init__(
        self,
        run: DeliveringRun,
        target: Target,
        allowance: RequestAllowance,
        senders: SenderThreads,
        settled: Callable[[Settlement], None],
        *,
        rules: AdoptionRules = NOTHING_TAKEN_OVER,
        doubts: StateDoubts = NO_DOUBTS,
        forgotten: RecordsForgottenByState | None = None,
    ) -> None:
        self._run, self._own_records, self._clock = run, run.own_records, run.clock
        self._allowance, self._senders, self._settled = allowance, senders, settled
        self._delivery = DeliveryContext(target, run.clock, rules, doubts, forgotten)
        self._policy, self._queue = OutcomePolicy(self._delivery), self._delivery.queue
        self._writer = StateWriter(run, target, allowance, doubts)
        self._in_flight: dict[int, SendBatch] = {}  # by the id of the first intent
        self._is_unavailable = False

    def resume_unsettled_intents(
        self, intents: Sequence[Intent], *, held_back_streams: AbstractSet[str] = frozenset()
    ) -> Iterator[None]:
        """Settle what an earlier run left. Yields where `deliver` pauses, and fails as it does.

        Unsent records of *held_back_streams* that are written once are sent only when
        `deliver_held_back_operations` is called. So is what a person has settled as not delivered: an acknowledgement
        of it may be read before. So is once more what was refused, if that may concern every record: by then others
        were accepted, or none.
        """
        decisions = TurnDecisions()
        self._own_records.record_begin_of_work(intents)
        for intent in intents:
            if intent.place is None:
                self._policy.resume_intent(intent, decisions)
        for stored, members in self._stored_batches_with_intents(intents):
            self._policy.resume_stored_batch(stored, members, decisions)
        self._commit_outcomes_and_new_intents(decisions)
        self._delivery.resuming = self._delivery.holds_back = True
        try:
            yield from self._deliver_queued_yielding_at_pauses()
            self._queue.release_held_back(but=held_back_streams, at_end=False)
            yield from self._deliver_queued_yielding_at_pauses()
        except DeliveryPostponedError as error:
            self._postpone_operations_of_earlier_run(error)
        self._delivery.resuming = self._delivery.holds_back = False

    def _postpone_operations_of_earlier_run(self, error: DeliveryPostponedError) -> None:
        text = f"delivery of what the last run left unsettled is postponed: {error.message}"
        self._run.warn(add_code_to_first_line(text, "delivery_postponed"))
        self._delivery.clear_stop_and_circuit_breaker()

    def _stored_batches_with_intents(self, intents: Sequence[Intent]) -> Iterator[tuple[StoredBatch, list[Intent]]]:
        """Yield the stored batches with their operations among *intents*, in the order of their numbers."""
        members: dict[int, list[Intent]] = defaultdict(list)
        for intent in intents:
            if intent.batch_id is not None and intent.place is not None:
                members[intent.batch_id].append(intent)
        with self._run.state.begin_read_only() as tx:
            batches = tx.batches.batches_by_id(members)
        for stored in sorted(batches.values(), key=lambda each: each.number):
            yield stored, sorted(members[stored.id], key=lambda each: each.place or 0)

    def take_undelivered_batch_errors(self) -> Sequence[CrossdockError]:
        """Return why stored batches were left out since the last call; they stay in the state."""
        return self._delivery.take_undelivered_batch_errors()

    def deliver_held_back_operations(self, *, but: AbstractSet[str] = frozenset(), at_end: bool = True) -> bool:
        """Deliver what was held back, except of the streams *but*. Returns and fails as `deliver`.

        What a person has settled as not delivered is sent *at_end* of a run, when all acknowledgements were read.
        A refusal that may concern all is an error, and does not end the run: new records will show whether it does.
        """
        self._queue.release_held_back(but, at_end=at_end)
        self._delivery.resuming, self._delivery.left_refusal = True, None
        try:
            return self.deliver(iter(()))
        except DeliveryPostponedError as error:
            self._postpone_operations_of_earlier_run(error)
            return True
        finally:
            self._delivery.resuming = False
            if self._delivery.left_refusal is not None:
                self._delivery.add_undelivered_batch_error(self._delivery.left_refusal)

    def _deliver_queued_yielding_at_pauses(self) -> Iterator[None]:
        while not self.deliver(iter(())):
            yield

    def deliver(self, chunks: Iterator[DeliverableChunk]) -> bool:
        """Deliver all operations of *chunks*, in their order as far as answers allow.

        It returns False if the target is unavailable, or carries out later what it was given, and there is other work;
        call it again then with the same *chunks*. When it raises an error, unsettled operations stay in the state.
        """
        while self._deliver_one_turn_and_end_planning(chunks):
            if self._run.interrupt.is_set():
                hint = "requests in flight are settled; run again to continue"
                self._delivery.stop_delivery_with_error(StoppedError("stopped before its end", hint=hint))
            elif self._is_target_unavailable_or_busy() and not self._in_flight and self._run.may_pause():
                return False
        if self._delivery.stop is not None:
            self.leave_to_next_run()
            raise self._delivery.stop
        return True

    def _is_target_unavailable_or_busy(self) -> bool:
        """Whether the target is unavailable, or has not carried out what it was given."""
        return self._queue.circuit_breaker.is_open or self._queue.has_only_batches_awaiting_results

    def leave_to_next_run(self) -> None:
        """After a stop, leave sent operations that may have been executed in doubt, and all others pending."""
        left = self._policy.leave_queued_to_next_run()
        self._writer.write_outcomes(left)
        for intent in left:
            self._report_settled_and_end_work(Settlement(intent, Outcome("unavailable", "the run was stopped")))

    def _report_settled_and_end_work(self, item: Settlement, successors: Sequence[Intent] = ()) -> None:
        self._settled(item)
        intent = item.intent
        goes_on = any(
            (one.scope, one.identity.key_hash) == (intent.scope, intent.identity.key_hash) for one in successors
        )
        if not goes_on:
            self._own_records.record_end_of_work(intent)

    def _deliver_one_turn_and_end_planning(self, chunks: Iterator[DeliverableChunk]) -> bool:
        try:
            return self._decide_commit_and_send_one_turn(chunks)
        finally:
            self._own_records.end_exclusive_planning()

    def _decide_commit_and_send_one_turn(self, chunks: Iterator[DeliverableChunk]) -> bool:
        decisions = TurnDecisions()
        chunk: DeliverableChunk | None = None
        fresh: list[Intent] = []
        if self._delivery.stop is None and self._queue.has_few_ready_operations_and_no_outage:
            chunk, fresh = self._next_chunk_and_new_intents(chunks, decisions)
            if chunk is None:
                # nothing was planned: others need not wait until an answer comes
                self._own_records.end_exclusive_planning()
        if chunk is not None:
            decisions.add_acknowledged_settlements(
                self._acknowledged_unless_sent_again(chunk.acknowledged_settlements), at=self._clock.now()
            )
        for intent in fresh:
            if intent.status != "rejected":
                self._policy.queue_or_settle_new_intent(intent, decisions)
        for result in self._wait_for_and_collect_results(wait=not chunk):
            self._decide_on_result(result, decisions)
        for intent in decisions.successors:
            self._policy.queue_or_settle_new_intent(intent, decisions, looked_up=True)
        self._warn_if_availability_changed()
        leaving = (
            self._take_batches_to_send(decisions, only_full=chunk is not None) if self._delivery.stop is None else []
        )
        if chunk or leaving or decisions:
            self._commit_outcomes_and_new_intents(decisions, chunk, fresh, leaving)
        self._give_batches_to_senders(leaving)
        return bool(chunk or self._in_flight or (self._delivery.stop is None and self._queue))

    def _acknowledged_unless_sent_again(self, settled: Sequence[Settlement]) -> list[Settlement]:
        """Return *settled* without operations that another run sends again; this one sends the others no more."""
        again = {item.intent.id: item.intent for item in settled if not item.acknowledged}
        if not again:
            return [*settled]
        self._queue.remove_held_back(again.keys())
        sent = [
            each
            for each in again.values()
            if self._own_records.is_busy_in_other_run(each.scope, each.identity.key_hash)
        ]
        for intent in sent:
            self._run.warn(
                f"{intent.identity.stream} {intent.identity.key}: an acknowledgement of it came while another run hands"
                f" it over again: {self._delivery.target.title} may have it twice"
            )
        return [item for item in settled if item.intent not in sent]

    def _give_batches_to_senders(self, leaving: Sequence[SendBatch]) -> None:
        for batch in leaving:
            if batch.unmade is not None:  # its operations are tried in smaller ones
                for task in batch.tasks:
                    task.purpose = "send"
                outcome = replace(answer_outcomes.rejected_outcome_of_author_error(batch.unmade), kind="unmade")
                self._senders.results.put(SendResult(batch, [outcome] * len(batch.tasks)))
        if made := [batch for batch in leaving if batch.unmade is None]:
            self._senders.give_batches_to_threads(made, len(self._in_flight))

    def _next_chunk_and_new_intents(
        self, chunks: Iterator[DeliverableChunk], decisions: TurnDecisions
    ) -> tuple[DeliverableChunk | None, list[Intent]]:
        """Return the next chunk with its intents. An error here ends the run once all answers have arrived."""
        try:
            chunk = next(chunks, None)
            fresh = self._writer.make_intents_to_store(chunk.operations, decisions) if chunk else []
            for intent in fresh:
                intent.only_unchanged = self._run.only_unchanged
            return chunk, fresh
        except BaseException as error:  # noqa: BLE001  raised again at the end of `deliver`
            self._delivery.stop_delivery_with_error(error)
            return None, []

    def _decide_on_result(self, result: SendResult, decisions: TurnDecisions) -> None:
        batch = result.batch
        del self._in_flight[batch.tasks[0].intent.id]
        if batch.tasks[0].stored is not None and isinstance(result.error, OF_A_PLACE):
            self._allowance.record_unanswered(batch.token)
            self._policy.leave_batch_or_resource_to_next_run(batch.tasks, result.error, decisions)
            return
        if result.error is not None:
            for task in batch.tasks:
                self._policy.stop_delivery_after_exception(task, result.error)
            return
        throttled = next((each for each in result.outcomes if each.kind == "throttled"), None)
        self._run.counters.throttled += throttled is not None
        if result.answered:
            self._allowance.record_answer(
                batch.token,
                accepted=throttled is None,
                headers=result.headers,
                retry_after_s=None if throttled is None else throttled.retry_after_s,
            )
        else:
            self._allowance.record_unanswered(batch.token)
        if result.outcomes[0].kind == "expired":  # it was not sent
            self._run.counters.requests -= 1
            self._writer.double_time_allowed_to_send()
        for task, outcome in zip(batch.tasks, result.outcomes, strict=True):
            self._policy.decide(task, outcome, decisions, refused_whole=result.refused_whole)

    def _commit_outcomes_and_new_intents(
        self,
        decisions: TurnDecisions,
        chunk: DeliverableChunk | None = None,
        fresh: Sequence[Intent] = (),
        leaving: Sequence[SendBatch] = (),
    ) -> None:
        self._run.counters.requests += sum(batch.tasks[0].purpose != "stage" for batch in leaving)
        self._own_records.record_begin_of_work([*fresh, *decisions.successors])
        self._writer.commit(decisions, chunk, list(fresh), list(leaving))
        self._in_flight.update((batch.tasks[0].intent.id, batch) for batch in leaving)
        for item in decisions.settled:
            self._report_settled_and_end_work(item, decisions.successors)

    def _warn_if_availability_changed(self) -> None:
        breaker, target = self._queue.circuit_breaker, self._delivery.target
        is_unavailable = breaker.is_open and self._delivery.stop is None
        if is_unavailable is self._is_unavailable:
            return
        self._is_unavailable = is_unavailable
        if is_unavailable:
            limits = target.retry
            up_to = f"{limits.give_up_after_s:.0f} s" if breaker.worked else f"{limits.attempts} times"
            text = f"{target.address} is unavailable; probing for at most {up_to}"
            self._run.warn(add_code_to_first_line(text, "target_unavailable"))
        elif self._delivery.stop is None:
            self._run.warn(f"{target.address} is available again")

    def _take_batches_to_send(self, decisions: TurnDecisions, *, only_full: bool) -> list[SendBatch]:
        """Return what is sent now; *only_full* batches while more operations are planned that could join them."""
        batches = self._queue.take_batches(
            min(self._free_in_flight_slots(), self._queue.move_due_and_count_ready()), only_full=only_full
        )
        tokens = self._allowance.take_available(len(batches)) if batches else []
        self._queue.put_back_batches(batches[len(tokens) :])
        leaving = []
        for batch, token in zip(batches, tokens, strict=False):
            tasks = [task for task in batch if self._policy.may_task_be_sent_now(task, decisions)]
            if tasks:
                leaving.append(SendBatch(self._set_purpose_stage_or_send(tasks), token))
            else:
                self._allowance.record_unanswered(token)
        self._queue.count_sent_requests([batch.tasks for batch in leaving])
        return leaving

    def _set_purpose_stage_or_send(self, tasks: list[SendTask]) -> list[SendTask]:
        """Have a stored batch staged before it is handed over."""
        profile = self._delivery.target.resources[tasks[0].intent.resource].batch
        if profile is not None and profile.stored:
            for task in tasks:
                task.purpose = "send" if task.is_staged else "stage"
        return tasks

    def _free_in_flight_slots(self) -> int:
        number = len(self._in_flight)
        return min(
            self._allowance.free_in_flight_slots(number),
            self._queue.circuit_breaker.free_slots(self._clock.monotonic(), number),
        )

    def _wait_for_and_collect_results(self, *, wait: bool) -> list[SendResult]:
        wait_s = self._seconds_until_next_send() if wait else 0.0
        results, gathered = self._senders.results, []
        if wait_s > 0 and not self._in_flight:
            self._clock.sleep(wait_s)
        elif wait_s > 0:
            try:
                gathered.append(results.get(timeout=wait_s))
                if results.qsize() + 1 < len(self._in_flight):  # else all of them have come
                    time.sleep(GATHER_S)
            except queue.Empty:
                return []
        while True:
            try:
                gathered.append(results.get_nowait())
            except queue.Empty:
                return gathered

    def _seconds_until_next_send(self) -> float:
        """Return how long nothing can be sent, unless an answer comes first."""
        if self._delivery.stop is not None or not self._queue:
            return 1.0 if self._in_flight else 0.0
        if self._in_flight and self._free_in_flight_slots() == 0:
            return 1.0
        now = self._clock.monotonic()
        if not self._queue.move_due_and_count_ready():
            wait_s = self._queue.seconds_to_next_task(now)
        else:
            wait_s = max(self._queue.circuit_breaker.seconds_to_next_probe(now), self._allowance.wait_s())
        return min(1.0, max(GATHER_S, wait_s))
