"""The meaning of an outcome for its intent: settled, sent again, looked up, left in doubt, or the end of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Literal

from msgspec import structs

from crossdock.errors import CrossdockError, RecordError, RefusedError, RemoteError, UnavailableError
from crossdock.state import Intent, StoredBatch
from crossdock.values.author_code_errors import AuthorCodeError
from crossdock.writing.delivery import in_doubt_and_refusal_rules
from crossdock.writing.delivery.delivery_context import DeliveryContext
from crossdock.writing.delivery.operations_and_intents import (
    current_request_unless_look_up_needed,
    is_looked_up_first,
    payload_after_intent,
    request_to_create,
)
from crossdock.writing.delivery.retries_and_look_ups import DeliveryPostponedError, LookUpDecisions, RetryDecisions
from crossdock.writing.delivery.send_queue_and_threads import RetryState, SendTask
from crossdock.writing.delivery.state_writer import TurnDecisions
from crossdock.writing.targets import answer_outcomes
from crossdock.writing.targets.answer_outcomes import Outcome
from crossdock.writing.targets.target import GONE, Request, Rule

FORBIDDEN = 403
FORBIDDEN_AT_MOST = 10  # records in a row, until a ping shows whether the credential was revoked
CONFLICT = 409  # to a delete: other records refer to it
FAILED_DEPENDENCY = 424  # of one of several operations: not executed, because another one failed (RFC 4918)
UNFIT = frozenset({400, 409, 422})  # refusals of a delete that the state of its record may be the reason of
UNREAD = frozenset({405, 413, 415})  # refusals of a whole batch by which nothing of it was executed
MAY_BE_FORGOTTEN = "may have been delivered before the state was restored"
ONLY_ACCEPTED = (
    "the target has only accepted the request, and cannot be asked whether it was carried out: declare a look-up, or"
    " accepted, if it refuses nothing afterwards"
)
THROTTLED_AT_MOST_S = 1_800.0  # twice the longest Retry-After that is obeyed


class OutcomePolicy:
    """Decides about intents and fills the queue. It writes nothing."""

    def __init__(self, run: DeliveryContext) -> None:
        self._run, self._target, self._clock = run, run.target, run.clock
        self._retries = RetryDecisions(run)
        self._look_up_results = LookUpDecisions(run, self._retries)
        self._accepted: set[str] = set()  # resources for which something was delivered
        self._nothing_at = Counter[str]()  # by resource, creates below a record that is not there
        self._forbidden_in_a_row = Counter[str]()  # by resource, since one was accepted
        self._throttled_since: float | None = None
        self._pending_since = dict[int, float]()  # stored batches by their ids
        self._known_at = dict[int, float]()  # when the target last showed that it knows one, or was first asked
        self._busy_since: float | None = None
        self._not_finished, self._forgotten = set[int](), set[int]()

    # ---- what is to be sent

    def queue_or_settle_new_intent(self, intent: Intent, decisions: TurnDecisions, *, looked_up: bool = False) -> None:
        """Accept a new intent. *looked_up* means that it was made from the result of a look-up."""
        if not looked_up:
            self._look_up_results.reset_decision_count_of_record(intent)
        with self._settled_if_author_code_fails(intent, decisions):
            self._queue_or_settle(intent, decisions, looked_up=looked_up)

    def _queue_or_settle(self, intent: Intent, decisions: TurnDecisions, *, looked_up: bool) -> None:
        if intent.resource in self._run.blocked:
            self._retries.leave_to_next_run(SendTask(intent), Outcome("unavailable"), decisions)
        elif not looked_up and self._may_be_executed_since_backup(intent):
            self._decide_possibly_executed_since_backup(intent, decisions)
        elif not looked_up and self._claim_record_of_lost_state(intent):
            self._put_in_doubt_as_of_lost_state(intent, decisions)
        elif not looked_up and self._needs_look_up_before_sending(intent):
            self._run.queue.put(SendTask(intent, "look_up"))
        else:
            self._run.queue.put(SendTask(intent))

    def _claim_record_of_lost_state(self, intent: Intent) -> bool:
        """Return whether the target has a record like one that is written once, for which no other was in doubt yet."""
        known, is_once = self._run.forgotten, self._target.resources[intent.resource].write_once
        return known is not None and is_once and known.take_id_of_created_record(intent) is not None

    def _put_in_doubt_as_of_lost_state(self, intent: Intent, decisions: TurnDecisions) -> None:
        intent.first_sent_at = self._clock.now()  # from now on it counts as sent
        decisions.settle("in_doubt", intent, Outcome("in_doubt", in_doubt_and_refusal_rules.MAY_BE_OF_LOST_STATE))

    def _may_be_executed_since_backup(self, intent: Intent) -> bool:
        return self._run.doubts.restored and in_doubt_and_refusal_rules.may_be_executed_since_backup(intent)

    def _decide_possibly_executed_since_backup(self, intent: Intent, decisions: TurnDecisions) -> None:
        known = self._run.forgotten
        if self._target.resources[intent.resource].endpoint.can_verify(intent.operation):
            self._run.queue.put(SendTask(intent, "look_up"))  # what is found may be older than the record
        elif known is None or not known.can_tell_if_created(intent):
            intent.first_sent_at = self._clock.now()  # from now on it counts as sent
            decisions.settle("in_doubt", intent, Outcome("in_doubt", MAY_BE_FORGOTTEN))
        elif (target_id := known.take_id_of_created_record(intent)) is None:
            self._run.queue.put(SendTask(intent))
        else:
            intent.target_id = target_id
            decisions.settle("delivered", intent, Outcome("found", target_id=target_id), untouched=True)

    def _needs_look_up_before_sending(self, intent: Intent) -> bool:
        """Return whether the request is made from what the target holds, or replaces something unknown or uncertain."""
        endpoint = self._target.resources[intent.resource].endpoint
        if is_looked_up_first(intent.operation, intent.before, endpoint):
            return True
        if not endpoint.reads:
            return False
        replaces_unknown = intent.operation == "update" and not intent.before
        is_unsure = intent.only_unchanged and intent.operation != "create" and not self._is_conditional(intent)
        return is_unsure or (replaces_unknown and self._run.doubts.restored)

    def _is_conditional(self, intent: Intent) -> bool:
        return intent.if_match is not None and self._target.resources[intent.resource].endpoint.conditional

    def resume_intent(self, intent: Intent, decisions: TurnDecisions) -> None:
        with self._settled_if_author_code_fails(
            intent, decisions, RetryState(ambiguous=intent.first_sent_at is not None)
        ):
            if intent.first_sent_at is None:
                self._resume_unsent_intent(intent, decisions)
            elif self._may_be_executed_since_backup(intent):
                self._decide_possibly_executed_since_backup(intent, decisions)
            else:
                self._resume_sent_intent(intent, decisions, intent.first_sent_at)

    def resume_stored_batch(self, stored: StoredBatch, intents: Sequence[Intent], decisions: TurnDecisions) -> None:
        """Hand a stored batch over that an earlier run left. What may have been handed over is looked for first."""
        was_sent = any(intent.first_sent_at is not None for intent in intents)
        if not was_sent and self._run.doubts.restored:
            for intent in intents:
                intent.first_sent_at = self._clock.now()
                decisions.settle("in_doubt", intent, Outcome("in_doubt", MAY_BE_FORGOTTEN))
            return
        profile = self._target.resources[stored.resource].batch
        is_taken = profile is not None and profile.stored
        if was_sent and not (is_taken and stored.destination == self._target.destination(stored.resource)):
            message = f"may have been handed over to {stored.destination}, and the config has another place now"
            for intent in intents:
                decisions.record_doubt_reason(intent, Outcome("in_doubt", message), at=self._clock.now())
                decisions.settle("in_doubt", intent, Outcome("in_doubt", message))
            return
        tasks = [SendTask(intent, retry_state=RetryState(ambiguous=was_sent), is_staged=was_sent) for intent in intents]
        first, *others = tasks
        first.assign_stored_batch(others, stored)
        self._run.queue.put(first)

    def _resume_sent_intent(self, intent: Intent, decisions: TurnDecisions, sent_at: datetime) -> None:
        age_s = max(0.0, (self._clock.now() - sent_at).total_seconds())
        if intent.http_status == answer_outcomes.ACCEPTED:
            self._look_up_accepted(SendTask(intent), decisions, self._target.settle_s - age_s)
            return
        rule = in_doubt_and_refusal_rules.rule_for_sent_intent(intent, self._target, self._clock.now())
        task = SendTask(intent, "look_up" if rule == "verify" else "send", retry_state=RetryState(ambiguous=True))
        changed = self._current_request_if_different(intent)
        if changed is not None and rule == "resend":  # such as one of a batch that is sent alone now
            can_verify = self._target.resources[intent.resource].endpoint.can_verify(intent.operation)
            rule, task = ("verify" if can_verify else "park"), structs.replace(task, purpose="look_up")
        if changed is not None and intent.operation == "create":  # for one that the look-up does not find
            intent.method, intent.path = changed.method, changed.path
        match rule:
            case "resend":
                self._run.queue.put(task)
            case "verify":
                self._run.queue.delay(task, self._target.settle_s - age_s, free=True)
            case "park":
                outcome = Outcome("in_doubt", "sent by an earlier run; sending it again could duplicate it")
                decisions.settle("in_doubt", intent, outcome)

    def _resume_unsent_intent(self, intent: Intent, decisions: TurnDecisions) -> None:
        """Send an unsent create to the path of the current config: the path may have been the mistake."""
        if intent.operation == "create":
            request = request_to_create(intent.resource, payload_after_intent(intent), self._target)
            intent.method, intent.path = request.method, request.path
        rules, restored = in_doubt_and_refusal_rules, self._run.doubts.restored
        if rules.waits_for_acknowledgements(intent, self._target) or rules.is_held_back_as_unverifiable(
            intent, self._target, state_restored=restored
        ):
            if self._claim_record_of_lost_state(intent):
                self._put_in_doubt_as_of_lost_state(intent, decisions)
            else:
                self._run.queue.hold_back_until_released(SendTask(intent))
        elif intent.operation != "create" and self._current_request_if_different(intent) is not None:
            self._run.queue.put(SendTask(intent, "look_up"))  # it is made again from what the target holds
        else:
            self.queue_or_settle_new_intent(intent, decisions)

    def _current_request_if_different(self, intent: Intent) -> Request | None:
        """Return the request that the target makes of *intent* now, if its config or code has changed; else None."""
        request = current_request_unless_look_up_needed(intent, self._target)
        is_same = request is None or (request.method, request.path) == (intent.method, intent.path)
        return None if is_same else request

    def may_task_be_sent_now(self, task: SendTask, decisions: TurnDecisions) -> bool:
        """Return whether *task* may be sent now. If its key expired while it waited, it is decided again."""
        if task.purpose != "send" or not task.retry_state.ambiguous or task.stored is not None:
            return True
        rule: Rule | None = None
        with self._settled_if_author_code_fails(task.intent, decisions, task.retry_state):
            rule = in_doubt_and_refusal_rules.rule_for_sent_intent(task.intent, self._target, self._clock.now())
        if rule in {"resend", None}:
            return rule is not None
        outcome = Outcome("in_doubt", "may have been carried out, and its idempotency key is too old to send it again")
        self._retries.retry_after_pause(task, 0.0, outcome, decisions, free=True)
        return False

    def leave_queued_to_next_run(self) -> list[Intent]:
        left = self._run.queue.remove_tasks()
        for task in left:
            self._run.leave_to_next_run(task)
        return [task.intent for task in left]

    # ---- what came back

    def stop_delivery_after_exception(self, task: SendTask, error: BaseException) -> None:
        """End the run after an exception. An unexpected one does not show whether the request was sent."""
        task.retry_state.ambiguous |= task.purpose == "send" and not isinstance(error, CrossdockError)
        self._run.stop_delivery_with_error(error)
        self._run.queue.put(task)

    def leave_batch_or_resource_to_next_run(
        self, tasks: Sequence[SendTask], error: CrossdockError, decisions: TurnDecisions
    ) -> None:
        """Leave out a stored batch whose place takes nothing, and all others of its resource.

        If only its name is taken, the others go on.
        """
        self._run.add_undelivered_batch_error(error)
        if not isinstance(error, RefusedError):
            self._run.blocked.add(tasks[0].intent.resource)
            tasks = [*tasks, *self._run.queue.remove_tasks(tasks[0].intent.resource)]
        for task in tasks:
            self._retries.leave_to_next_run(task, Outcome("unavailable", error.message), decisions)

    def decide(
        self, task: SendTask, outcome: Outcome, decisions: TurnDecisions, *, refused_whole: bool = False
    ) -> None:
        """Decide about an intent. *refused_whole* means that its batch was refused, and not this operation alone."""
        with self._settled_if_author_code_fails(task.intent, decisions, task.retry_state):
            is_apart = outcome.kind == "unmade" or (outcome.kind, outcome.status) == ("rejected", FAILED_DEPENDENCY)
            is_undone = is_apart and not refused_whole and task.purpose == "send" and task.batch_size > 1
            is_divided = refused_whole and outcome.status not in answer_outcomes.MOVED
            if task.stored is not None and refused_whole:
                self._remake_stored_batch_smaller(task, task.stored, outcome, decisions)
            elif is_undone or (is_divided and self._error_if_refusal_concerns_all(task, outcome) is None):
                self._resend_in_smaller_batches(
                    task, outcome, decisions, is_undone=is_undone or outcome.status in UNREAD
                )
            else:
                self._decide_on_outcome(task, outcome, decisions)

    def _resend_in_smaller_batches(
        self, task: SendTask, outcome: Outcome, decisions: TurnDecisions, *, is_undone: bool
    ) -> None:
        """Send the operations of a refused batch again in smaller ones, so that a wrong record is refused alone."""
        if outcome.status is not None and task.is_first:
            self._run.queue.circuit_breaker.record_success()
        profile = self._target.resources[task.intent.resource].batch
        assert profile is not None
        message = f"refused {task.batch_size} records together: {outcome.message}"
        if is_undone or profile.atomic:
            decisions.add_attempt_result(task, replace(outcome, kind="rejected", message=message), at=self._clock.now())
            self._retries.retry_in_smaller_batch(task, outcome, decisions)
        else:
            doubt = replace(outcome, kind="in_doubt", message=message, reason=None)
            decisions.add_attempt_result(task, doubt, at=self._clock.now())
            self._retries.retry_unless_unsafe_or_hopeless(task, doubt, decisions)

    def _remake_stored_batch_smaller(
        self, task: SendTask, stored: StoredBatch, outcome: Outcome, decisions: TurnDecisions
    ) -> None:
        """Make smaller batches of one that was refused, once while nothing shows that the target accepts others."""
        intent = task.intent
        intent.batch_id = intent.place = None
        if intent.operation == "create":
            intent.target_id = None
        again = SendTask(intent, batch_limit=task.batch_limit, batch_size=stored.records)
        if task.batch_limit is None or intent.resource in self._accepted:
            self._retries.retry_in_smaller_batch(again, outcome, decisions)
            return
        if task.is_first:
            hint = "the next run makes smaller files; if the config is wrong, correct it before"
            self._run.add_undelivered_batch_error(
                RefusedError(outcome.message, where=stored.name, hint=hint, code="job_failed")
            )
        self._retries.leave_to_next_run(again, outcome, decisions)

    def _decide_on_outcome(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        if outcome.kind in {"unmade", "undecided"}:
            if task.purpose == "ping":
                outcome = replace(outcome, kind="unavailable")
            else:
                self._settle_failed_author_code(task, outcome, decisions)
                return
        if task.purpose == "ping" and outcome.kind != "throttled":
            is_forbidden = _is_forbidden(task.retry_state.refusal)
            decide = self._decide_forbidden_after_ping if is_forbidden else self._retries.decide_after_ping
            decide(task, outcome, decisions)
            return
        if outcome.kind == "expired":
            self._retries.retry_after_pause(task, 0.0, outcome, decisions, free=True)
            return
        decisions.keep_batch_receipt(task, outcome)
        decisions.add_attempt_result(task, outcome, at=self._clock.now())
        if outcome.kind == "throttled":
            self._retry_throttled_or_stop(task, outcome, decisions)
            return
        conflict = task.retry_state.conflict
        if (
            conflict is not None
            and outcome.status in {403, 404, 405}
            and not self._look_up_results.may_created_record_exist_already(task)
        ):
            self._look_up_results.decide_by_conflict_alone(task, conflict, decisions)
            return
        is_created = outcome.kind == "in_doubt" and outcome.target_id is not None and task.purpose == "send"
        if outcome.kind in {"unavailable", "in_doubt"} and not is_created:
            if task.is_first:
                self._record_undecided_request(task, outcome)
            self._retries.retry_unless_unsafe_or_hopeless(task, outcome, decisions)
            return
        if task.is_first:
            self._run.queue.circuit_breaker.record_success()
        self._throttled_since = None
        self._decide_on_answer(task, outcome, decisions)

    def _record_undecided_request(self, task: SendTask, outcome: Outcome) -> None:
        """Record a failure, unless the target works: it knows the idempotency key, or its answer of success denies a
        change or delete, which a look-up decides.
        """
        breaker, operation = self._run.queue.circuit_breaker, task.intent.operation
        is_denied = task.purpose == "send" and outcome.kind == "in_doubt" and outcome.reason is not None
        can_verify = self._target.resources[task.intent.resource].endpoint.can_verify(operation)
        if is_denied and (outcome.status == answer_outcomes.UNFIT or (operation != "create" and can_verify)):
            breaker.record_success()
        else:
            breaker.record_failure(self._clock.monotonic(), outcome.retry_after_s, probe=task.probe)

    def _ask_again_or_leave_stored_batch(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        """Hand a stored batch over or ask for its outcomes after a pause. After too many, leave that to the next run.

        One that the target has said not to know in all of that time is in doubt.
        """
        assert task.stored is not None
        task.is_pending, batch = True, task.stored.id
        task.retry_state.ambiguous |= outcome.kind == "pending"
        if not task.is_led:
            self._end_wait_for_batch_if_too_long(task.stored, outcome)
        if batch in self._forgotten:
            self._look_up_results.settle_as_in_doubt(task, outcome.message, decisions)
        elif batch in self._not_finished:
            self._retries.leave_to_next_run(task, outcome, decisions)
        else:
            self._retries.retry_after_pause(task, outcome.retry_after_s or 0.0, outcome, decisions, free=True)

    def _end_wait_for_batch_if_too_long(self, stored: StoredBatch, outcome: Outcome) -> None:
        """Mark a stored batch for which the run has waited long enough.

        The time of batches that the target has not accepted counts anew whenever one that it has is asked for. It has
        forgotten one if no answer of that time shows that it knows it: a gateway may have given a few of them.
        """
        profile, now = self._target.resources[stored.resource].batch, self._clock.monotonic()
        assert profile is not None
        if outcome.kind == "busy":
            since = self._busy_since = now if self._busy_since is None else self._busy_since
            hint = "the next run tries again"
        else:
            self._busy_since, since = None, self._pending_since.setdefault(stored.id, now)
            hint = "the next run asks again; nothing is sent twice"
        is_known = outcome.status not in GONE
        known_at = self._known_at[stored.id] = now if is_known else self._known_at.get(stored.id, now)
        if not is_known and now - known_at >= profile.results_within_s:
            self._forgotten.add(stored.id)
        elif now - since >= profile.results_within_s:
            self._not_finished.add(stored.id)
            self._run.add_undelivered_batch_error(
                RefusedError(outcome.message, where=stored.name, hint=hint, code="delivery_stopped")
            )

    def _look_up_accepted(self, task: SendTask, decisions: TurnDecisions, after_s: float) -> None:
        """Look up whether the target has carried out what it accepted; without a look-up it is in doubt."""
        intent = task.intent
        intent.http_status, task.retry_state.ambiguous, task.retry_state.accepted = answer_outcomes.ACCEPTED, True, True
        if not self._target.resources[intent.resource].endpoint.can_verify(intent.operation):
            self._look_up_results.settle_as_in_doubt(task, ONLY_ACCEPTED, decisions)
            return
        decisions.intents_with_new_status.append(intent)  # after a crash it must not be sent again
        self._run.queue.delay(structs.replace(task, purpose="look_up"), after_s, free=True)

    def _settle_failed_author_code(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        """Settle an intent for which the target's code failed, without another attempt: the code would fail again."""
        may_be_done = outcome.kind == "undecided" and task.purpose == "send"
        if outcome.status is not None:
            self._run.queue.circuit_breaker.record_success()
        decisions.add_attempt_result(
            task, replace(outcome, kind="in_doubt" if may_be_done else "rejected"), at=self._clock.now()
        )
        self._settle_as_doubt_or_rejected(
            task.intent, outcome, decisions, ambiguous=may_be_done or task.retry_state.ambiguous
        )

    @contextmanager
    def _settled_if_author_code_fails(
        self, intent: Intent, decisions: TurnDecisions, retry_state: RetryState | None = None
    ) -> Iterator[None]:
        try:
            yield
        except (AuthorCodeError, RecordError) as error:
            ambiguous = retry_state is not None and retry_state.ambiguous  # the present value
            self._settle_as_doubt_or_rejected(
                intent, answer_outcomes.rejected_outcome_of_author_error(error), decisions, ambiguous=ambiguous
            )

    def _settle_as_doubt_or_rejected(
        self, intent: Intent, outcome: Outcome, decisions: TurnDecisions, *, ambiguous: bool
    ) -> None:
        if self._may_be_executed_since_backup(intent):
            ambiguous, intent.first_sent_at = True, self._clock.now()  # it may have been delivered before
        kind: Literal["in_doubt", "rejected"] = "in_doubt" if ambiguous else "rejected"
        reason = None if ambiguous else outcome.reason or "target_failed"
        if ambiguous and intent.id:
            decisions.record_doubt_reason(intent, outcome, at=self._clock.now())
        decisions.settle(kind, intent, replace(outcome, kind=kind, reason=reason))

    def _retry_throttled_or_stop(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        """Handle a 429. It is not a failed attempt, but requests are not throttled for an unlimited time.

        If others were answered meanwhile, it may be a limit of this record or operation, for which no others wait.
        """
        if task.stored is not None and not task.retry_state.ambiguous:  # its target may have no way to find that out
            self._run.leave_to_next_run(task)
            decisions.intents_with_new_status.append(task.intent)
        now, state = self._clock.monotonic(), task.retry_state
        self._throttled_since = now if self._throttled_since is None else self._throttled_since
        is_again = state.throttled_since is not None  # others have their turn, which show whose limit it is
        state.throttled_since = now if state.throttled_since is None else state.throttled_since
        message = f"answered only 429 for {THROTTLED_AT_MOST_S:.0f} s"
        are_others_answered = state.throttled_since < self._throttled_since
        if are_others_answered and task.stored is None and now - state.throttled_since >= THROTTLED_AT_MOST_S:
            self._retries.leave_to_next_run(task, replace(outcome, message=message), decisions)
            return
        self._run.queue.put(task, first=not is_again)
        if now - self._throttled_since >= THROTTLED_AT_MOST_S:
            if self._run.resuming:  # new records will show whether the target accepts others
                self._run.stop_delivery_with_error(DeliveryPostponedError(message))
            hint = self._target.advice(task.intent.resource, outcome.status)
            self._run.stop_delivery_with_error(
                UnavailableError(message, where=self._target.address, hint=hint, code="target_throttled")
            )

    def _decide_on_answer(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        match outcome.kind:
            case "staged":
                self._run.queue.put(structs.replace(task, purpose="send", is_staged=True), first=True)
            case "pending" | "busy" if task.stored is not None:
                self._ask_again_or_leave_stored_batch(task, outcome, decisions)
            case "pending" | "in_doubt":
                self._accepted.add(task.intent.resource)
                settle_s = max(self._target.settle_s, outcome.retry_after_s or 0.0)
                self._look_up_accepted(structs.replace(task, batch_size=1), decisions, settle_s)
            case "delivered" if self._awaits_acknowledgement(task):
                decisions.settle("handed_over", task.intent, outcome)
            case "delivered":
                self._accepted.add(task.intent.resource)
                self._forbidden_in_a_row[task.intent.resource] = 0
                self._look_up_results.accepted += 1
                decisions.settle("delivered", task.intent, outcome)
            case "found" | "absent" | "removed":
                self._look_up_results.decide(task, outcome, decisions)
            case "changed" if self._is_create_without_look_up(task.intent):
                refused = replace(outcome, kind="rejected", reason="conflict")
                self._decide_on_refusal(task, refused, decisions)
            case "changed" if self._is_for_unchanged_record_alone(task):
                self._look_up_results.reject_as_changed_by_others(task, decisions)
            case "changed":
                task.retry_state.is_tag_refused = True
                self._run.queue.put(structs.replace(task, purpose="look_up"))
            case _:
                self._decide_on_refusal(task, outcome, decisions)

    def _awaits_acknowledgement(self, task: SendTask) -> bool:
        profile = self._target.resources[task.intent.resource].batch
        return task.stored is not None and profile is not None and profile.acknowledged_within_s is not None

    def _is_create_without_look_up(self, intent: Intent) -> bool:
        """Return whether *intent* is a create that is not made of a look-up, so that nothing can have changed since."""
        looks_up_first = self._target.resources[intent.resource].endpoint.looks_up_first
        return intent.operation == "create" and "create" not in looks_up_first

    def _is_for_unchanged_record_alone(self, task: SendTask) -> bool:
        """Return whether a 412 alone refuses the operation: its tag is the target's own, so others changed it."""
        tag = task.intent.if_match or ""
        is_own_tag = answer_outcomes.tag_without_compression_marks(tag) == tag
        return task.intent.only_unchanged == "record" and is_own_tag and not self._may_be_own_change(task)

    def _may_be_own_change(self, task: SendTask) -> bool:
        """Return whether an earlier attempt of the same operation may be the change. A delete leaves no record."""
        return task.retry_state.ambiguous and task.intent.operation != "delete"

    def _decide_on_refusal(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        intent, is_gone = task.intent, outcome.status in GONE
        if intent.operation != "create" and is_gone:
            self._look_up_gone_record(task, outcome, decisions)
        elif intent.operation == "delete" and outcome.status == CONFLICT and self._may_be_referred_to(intent.resource):
            decisions.settle("rejected", intent, replace(outcome, reason="referenced_by"))
        elif intent.operation == "delete" and outcome.status in UNFIT and task.retry_state.refusal is None:
            self._look_up_refused_delete(task, outcome, decisions)
        elif not self._is_decided_as_repeat_or_duplicate(task, outcome, decisions):
            self._reject_one_or_stop_run(task, outcome, decisions)

    def _is_decided_as_repeat_or_duplicate(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> bool:
        results = self._look_up_results
        if task.intent.operation == "create" and results.decide_create_refused_as_duplicate(task, outcome, decisions):
            return True
        return results.decide_refused_repeat(task, outcome, decisions)

    def _look_up_gone_record(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        """Look a record up that a change or delete did not find: its path may be wrong, or a gateway has answered."""
        intent, retry_state = task.intent, task.retry_state
        request = f"{intent.method} {intent.path.partition('?')[0]}"
        message = f"{outcome.message}, in answer to {request}"
        if not self._target.resources[intent.resource].endpoint.reads:
            if intent.operation == "update":
                decisions.settle("rejected", intent, replace(outcome, reason="missing"))
                return
            message = f"{message}: the record may be gone or the request wrong, and the target cannot be asked for it"
            decisions.settle("in_doubt", intent, replace(outcome, kind="in_doubt", message=message))
            return
        does = "deletes" if intent.operation == "delete" else "changes"
        message = f"{message}, although the target still has the record: check the request that {does} it"
        retry_state.refusal = replace(outcome, message=message)
        settle_s = self._target.settle_s if retry_state.ambiguous else 0.0
        self._run.queue.delay(structs.replace(task, purpose="look_up"), settle_s, free=True)

    def _look_up_refused_delete(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        """Look a record up whose delete was refused: the target may have deleted or cancelled it before."""
        if not self._target.resources[task.intent.resource].endpoint.reads:
            decisions.settle("rejected", task.intent, outcome)
            return
        task.retry_state.refusal = outcome
        self._run.queue.delay(structs.replace(task, purpose="look_up"), 0.0, free=True)

    def _may_be_referred_to(self, resource: str) -> bool:
        return any(resource in kind.parents for kind in self._target.resources.values())

    def _error_if_refusal_concerns_all(self, task: SendTask, outcome: Outcome) -> RemoteError | None:
        return in_doubt_and_refusal_rules.error_if_refusal_concerns_all_records(
            task.intent, outcome, self._target, self._accepted
        )

    def _reject_one_or_stop_run(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        if in_doubt_and_refusal_rules.may_lack_parent_in_path(task.intent, outcome):
            self._nothing_at[task.intent.resource] += 1
            if self._nothing_at[task.intent.resource] <= in_doubt_and_refusal_rules.NO_PARENT_AT_MOST:
                decisions.settle("rejected", task.intent, outcome)
                return
        if (concerns_all := self._error_if_refusal_concerns_all(task, outcome)) is None:
            self._reject_or_ping_if_many_forbidden(task, outcome, decisions)
            return
        self._stop_run_or_hold_back(task, outcome, concerns_all, decisions)

    def _reject_or_ping_if_many_forbidden(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        """Reject a record. After many that were forbidden, ask first whether the credential permits anything still."""
        forbidden, resource = self._forbidden_in_a_row, task.intent.resource
        forbidden[resource] += _is_forbidden(outcome)
        if not _is_forbidden(outcome) or forbidden[resource] % FORBIDDEN_AT_MOST or task.stored is not None:
            decisions.settle("rejected", task.intent, outcome)
            return
        task.retry_state.refusal = outcome
        self._run.queue.put(structs.replace(task, purpose="ping"), first=True)

    def _decide_forbidden_after_ping(self, task: SendTask, answered: Outcome, decisions: TurnDecisions) -> None:
        """Reject a forbidden record, or stop if the target refuses the ping as well: the credential was revoked."""
        task, outcome = structs.replace(task, purpose="send"), task.retry_state.refusal
        assert outcome is not None
        error = in_doubt_and_refusal_rules.error_if_refusal_concerns_all_records(
            task.intent, outcome, self._target, frozenset()
        )
        if answered.status in {401, FORBIDDEN} and error is not None:
            self._accepted.discard(task.intent.resource)
            self._stop_run_or_hold_back(task, outcome, error, decisions)
        else:
            decisions.settle("rejected", task.intent, outcome)

    def _stop_run_or_hold_back(
        self, task: SendTask, outcome: Outcome, concerns_all: RemoteError, decisions: TurnDecisions
    ) -> None:
        if not self._run.resuming or outcome.status == 401:  # otherwise its stream may be removed from the config
            self._run.stop_delivery_with_error(concerns_all)
        elif self._run.holds_back and task.stored is None:
            self._run.leave_to_next_run(task)  # what the state has until then
            decisions.intents_with_new_status.append(task.intent)
            self._run.queue.hold_back_until_released(task)
            return
        self._run.left_refusal = self._run.left_refusal or concerns_all
        self._retries.leave_to_next_run(task, outcome, decisions)


def _is_forbidden(outcome: Outcome | None) -> bool:
    return outcome is not None and outcome.status == FORBIDDEN
