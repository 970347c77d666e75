"""The handling of a request without a decision: sent again, looked up, left in doubt, or the end of the run.

Results of look-ups and conflicts decide about records that the target has or no longer has.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from msgspec import structs

from crossdock.errors import CrossdockError, RecordError, UnavailableError
from crossdock.pacing.backoff import jittered_backoff_pause_s
from crossdock.state import Intent
from crossdock.values.raw_rows_and_records import Reason
from crossdock.writing.delivery import in_doubt_and_refusal_rules
from crossdock.writing.delivery.delivery_context import DeliveryContext
from crossdock.writing.delivery.operations_and_intents import (
    create_intent_from_look_up,
    is_update_taking_over_record,
    member_changed_by_others_with_message,
    payload_after_intent,
    successor_intent_if_record_differs,
)
from crossdock.writing.delivery.send_queue_and_threads import RetryState, SendTask
from crossdock.writing.delivery.state_writer import Settlement, TurnDecisions
from crossdock.writing.targets.answer_outcomes import (
    MOVED,
    REDIRECTS,
    Outcome,
    redirect_hint,
    tag_without_compression_marks,
)
from crossdock.writing.targets.payload_comparison import has_wanted_members

SMALLER = 4  # after a failure a batch is divided by this, so that four failures of a hundred records find the wrong one
THROTTLED = 429
OF_ALL = frozenset({401, 403, 404, 405, 410, *MOVED})  # refusals that hardly concern one record
FAILING_RECORDS_AT_MOST = 10  # left out while the target answers pings, before anything was delivered


class DeliveryPostponedError(CrossdockError):
    """What an earlier run left cannot be delivered now, but the rest of the run is worth a try."""

    code = "delivery_postponed"


class RetryDecisions:
    def __init__(self, run: DeliveryContext) -> None:
        self._run, self._target, self._clock = run, run.target, run.clock
        self._left_out = 0

    def retry_unless_unsafe_or_hopeless(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        """Send or look up again after a pause, unless that could execute it twice, or it failed too often."""
        retry_state, limits = task.retry_state, self._target.retry
        settle_s, is_alone = 0.0, task.batch_size == 1
        if outcome.status != THROTTLED:  # of which the rate is the reason, and no record
            _reduce_batch_size(task)
        if task.purpose == "send" and outcome.kind != "unavailable":
            retry_state.ambiguous = True
            endpoint, operation = self._target.resources[task.intent.resource].endpoint, task.intent.operation
            is_refusal = outcome.kind == "in_doubt" and outcome.reason is not None  # again, it would be answered alike
            rule = endpoint.rule_without_key(operation) if is_refusal else endpoint.rule(operation)
            retry_state.refusal = replace(outcome, kind="rejected") if is_refusal else None
            if rule == "park":
                self._stop_if_target_is_given_up(retry_state, outcome)
                decisions.settle("in_doubt", task.intent, outcome)
                return
            if rule == "verify":
                task, settle_s = structs.replace(task, purpose="look_up"), self._target.settle_s
        if is_alone:  # otherwise one wrong record may be why all of them failed
            retry_state.record_failure(self._clock.monotonic(), outcome.status)
        if retry_state.failures >= limits.attempts and not self._has_target_failed_since_before(retry_state):
            self.leave_to_next_run(task, outcome, decisions)
            return
        may_be_its_own = outcome.kind == "in_doubt" or outcome.status == THROTTLED  # in a result
        may_be_its_own = may_be_its_own and task.stored is None  # a file has the fate of all of its records
        if retry_state.failures == limits.attempts and may_be_its_own and not self._has_target_failed_too_long():
            retry_state.interrupted = "look_up" if task.purpose == "look_up" else "send"
            self._run.queue.put(
                structs.replace(task, purpose="ping"), first=True
            )  # is it the target, or this one record?
            return
        self._stop_if_target_is_given_up(retry_state, outcome)
        jitter_s = jittered_backoff_pause_s(
            max(1, retry_state.failures), base_s=limits.base_s, cap_s=limits.cap_s, rng=self._run.rng
        )
        self.retry_after_pause(task, max(settle_s, jitter_s, outcome.retry_after_s or 0.0), outcome, decisions)

    def retry_in_smaller_batch(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        """Send an operation again at once, with fewer others. Its request has changed nothing."""
        _reduce_batch_size(task)
        self.retry_after_pause(task, 0.0, outcome, decisions, free=True)

    def retry_after_pause(
        self, task: SendTask, pause_s: float, outcome: Outcome, decisions: TurnDecisions, *, free: bool = False
    ) -> None:
        """Send or look up after *pause_s*, but not with an idempotency key that expires before then."""
        intent = task.intent
        if not task.retry_state.ambiguous:
            intent.status, intent.first_sent_at = "pending", None
            decisions.intents_with_new_status.append(intent)
        elif task.purpose == "send" and task.stored is None:
            rule = in_doubt_and_refusal_rules.rule_for_sent_intent(
                intent, self._target, self._clock.now() + timedelta(seconds=pause_s)
            )
            if rule == "park":
                decisions.settle("in_doubt", intent, outcome)
                return
            task = structs.replace(task, purpose="look_up" if rule == "verify" else "send")
        self._run.queue.delay(task, pause_s, free=free or task.purpose == "look_up")

    def decide_after_ping(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        """Handle a ping's answer after repeated failures of one record: it shows whether the target works."""
        breaker, last = self._run.queue.circuit_breaker, task.retry_state.status
        may_leave_out = breaker.worked or self._left_out < FAILING_RECORDS_AT_MOST
        if outcome.kind == "answered" and may_leave_out and not self._has_target_failed_too_long():
            self._left_out += 1
            self.leave_to_next_run(task, Outcome("in_doubt", _message_with_status("fails repeatedly", last)), decisions)
            return
        if outcome.kind != "answered":
            breaker.record_failure(self._clock.monotonic(), outcome.retry_after_s, probe=task.probe)
        message = outcome.message or "answers, but every request fails"
        status = last if outcome.kind == "answered" else outcome.status
        self._stop_if_target_is_given_up(task.retry_state, replace(outcome, message=message, status=status))
        task = structs.replace(task, purpose=task.retry_state.interrupted)
        settle_s = self._target.settle_s if task.purpose == "look_up" else 0.0
        self.retry_after_pause(task, max(settle_s, self._target.retry.base_s), outcome, decisions)

    def leave_to_next_run(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        self._run.leave_to_next_run(task)
        decisions.settled.append(Settlement(task.intent, outcome))

    def _stop_if_target_is_given_up(self, retry_state: RetryState, outcome: Outcome) -> None:
        if not self._should_give_up_on_target(retry_state):
            return
        attempts = max(retry_state.failures, self._run.queue.circuit_breaker.probes)
        message = f"{_message_with_status(outcome.message, outcome.status)} ({attempts} attempts)"
        if self._run.resuming and outcome.kind != "unavailable":  # new records will show whether the target works
            self._run.stop_delivery_with_error(DeliveryPostponedError(message))
        hint = "nothing was lost; run again when it answers"
        if outcome.status in REDIRECTS:
            hint = f"{redirect_hint(self._target.place)}; nothing was lost"
        self._run.stop_delivery_with_error(
            UnavailableError(message, where=self._target.address, hint=hint, code="target_unavailable")
        )

    def _has_target_failed_since_before(self, retry_state: RetryState) -> bool:
        since = self._run.queue.circuit_breaker.failing_since
        return since is not None and retry_state.failing_since is not None and since <= retry_state.failing_since

    def _should_give_up_on_target(self, retry_state: RetryState) -> bool:
        """Give up early if nothing was ever answered, and later in the middle of a good run."""
        breaker = self._run.queue.circuit_breaker
        if breaker.failing_since is None:
            return False
        if not breaker.worked:
            return max(retry_state.failures, breaker.probes) >= self._target.retry.attempts
        return self._has_target_failed_too_long()

    def _has_target_failed_too_long(self) -> bool:
        since = self._run.queue.circuit_breaker.failing_since
        return since is not None and self._clock.monotonic() - since >= self._target.retry.give_up_after_s


def _reduce_batch_size(task: SendTask) -> None:
    if task.batch_size > 1:
        task.batch_limit, task.batch_size = max(1, task.batch_size // SMALLER), 1


def _message_with_status(message: str, status: int | None) -> str:
    return message if status is None or f"HTTP {status}" in message else f"{message}: HTTP {status}"


_CHANGED = Outcome(
    "rejected", "somebody else has changed the record since; nothing was written", 412, reason="conflict"
)

_TAKEN_AND_NOT_SHOWN = (
    "the target says that a record of this name exists, and does not show it: it may be this one, and the next run"
    " looks again"
)
_NOT_SEEN = (
    "the target has accepted the request, and does not show its effect, or not under this name; the next run looks"
    " again"
)


class LookUpDecisions:
    """Decides whether this state's operation made an existing record, and whether the record is as wanted."""

    def __init__(self, run: DeliveryContext, retries: RetryDecisions) -> None:
        self._run, self._retries, self._target = run, retries, run.target
        self._rounds: Counter[tuple[str, int]] = Counter()  # repeated decisions, by stream and key hash
        self._others = 0  # records of others with this state's external ids
        self.accepted = 0  # operations that the target has executed

    def may_created_record_exist_already(self, task: SendTask) -> bool:
        """Return whether the target may already have the record of a create although the state is sound."""
        intent = task.intent
        was_tried = task.retry_state.ambiguous or intent.counter > 1  # also if it was rejected or dropped before
        return was_tried or self._run.doubts.restored or intent.identity.stream in self._run.rules.adopting

    def decide_create_refused_as_duplicate(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> bool:
        """Decide about a refused create if another record may be the reason; otherwise return False."""
        is_conflict, expected = outcome.reason == "conflict", self.may_created_record_exist_already(task)
        resource = self._target.resources[task.intent.resource]
        may_be_ours = expected and (is_conflict or (outcome.status == 422 and outcome.pointer is None))
        if (self._says_refusal_name_is_taken(task.intent, outcome) or may_be_ours) and resource.endpoint.look_up:
            task.retry_state.conflict = outcome
            settle_s = self._target.settle_s if task.retry_state.ambiguous else 0.0
            self._run.queue.delay(structs.replace(task, purpose="look_up"), settle_s, free=True)
        elif is_conflict and task.retry_state.ambiguous:
            self._retries.retry_unless_unsafe_or_hopeless(task, outcome, decisions)
        elif is_conflict and not expected:
            self.decide_by_conflict_alone(task, outcome, decisions)
        else:
            return False
        return True

    def _says_refusal_name_is_taken(self, intent: Intent, refusal: Outcome) -> bool:
        """Return whether *refusal* says that another record has the external id."""
        names = {None, self._target.resources[intent.resource].name_pointer}
        return refusal.reason == "conflict" and refusal.pointer in names

    def decide_refused_repeat(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> bool:
        """Decide about an operation that was refused when it was sent again; otherwise return False.

        The first attempt may have been carried out and be the reason, such as of a lack of stock. A target that keeps
        the idempotency key would have repeated its first answer.
        """
        endpoint, operation = self._target.resources[task.intent.resource].endpoint, task.intent.operation
        is_repeat = task.retry_state.ambiguous and task.stored is None and not endpoint.has_key(operation)
        if not is_repeat or outcome.status in OF_ALL:
            return False
        if endpoint.can_verify(operation):
            task.retry_state.refusal = replace(outcome, kind="rejected")
            self._run.queue.delay(structs.replace(task, purpose="look_up"), self._target.settle_s, free=True)
        else:
            message = f"refused when it was sent again, and may have been carried out before: {outcome.message}"
            self.settle_as_in_doubt(task, message, decisions)
        return True

    def decide(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        match outcome.kind:
            case "found":
                self.decide_on_found_record(task, outcome, decisions)
            case "absent":
                self.decide_on_absent_record(task, outcome, decisions)
            case _:
                self.decide_on_removed_record(task, outcome, decisions)

    def decide_on_found_record(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        if self._decide_if_made_by_others(task, outcome, decisions):
            return
        assert outcome.held is not None
        intent, ours = task.intent, task.retry_state.ambiguous
        unnamed = intent.target_id is None
        intent.target_id = outcome.target_id
        write_once = self._target.resources[intent.resource].write_once  # it is ours, and cannot be changed
        if unnamed and (write_once or (ours and intent.identity.stream not in self._run.rules.adopting)):
            decisions.settle("delivered", intent, outcome, untouched=not ours)
            return
        if (lost := self._rejection_if_matched_member_changed(intent, outcome.held)) is not None:
            decisions.settle("rejected", intent, lost)
            return
        etag = outcome.etag
        if etag is not None and etag == intent.if_match and task.retry_state.is_tag_refused:  # it was not changed
            etag = tag_without_compression_marks(etag)
        successor = successor_intent_if_record_differs(intent, self._run.target, outcome.held, etag)
        if successor is None:
            decisions.settle("delivered", intent, outcome, untouched=not ours)
            return
        refused = task.retry_state.refusal or self._rejection_if_changed_by_others(intent, outcome.held, outcome.etag)
        if refused is not None:
            decisions.settle("rejected", intent, refused)
            return
        if task.retry_state.accepted:
            self.settle_as_in_doubt(task, _NOT_SEEN, decisions)
            return
        self._replace_intent_or_reject(intent, successor, decisions)

    def _decide_if_made_by_others(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> bool:
        """Decide about an existing record that may not be ours; otherwise return False."""
        assert outcome.held is not None
        intent, target_id = task.intent, outcome.target_id
        takes_any = self._run.doubts.restored or intent.identity.stream in self._run.rules.adopting
        is_unsure, ambiguous = intent.target_id is None and not takes_any, task.retry_state.ambiguous
        if task.retry_state.conflict is not None and not self.may_created_record_exist_already(task):
            self._decide_unexpected_record(task, outcome, decisions)
        elif (
            is_unsure and task.retry_state.conflict and not ambiguous and self._is_made_by_others(intent, outcome.held)
        ):
            self._reject_taken_name(intent, outcome, decisions)
        elif (
            is_unsure
            and ambiguous
            and in_doubt_and_refusal_rules.has_record_mostly_other_content(intent, outcome.held, self._target)
        ):
            message = f"the target has a record of this name, {target_id}, with other content: it may be of others"
            self.settle_as_in_doubt(task, message, decisions)
        else:
            return False
        return True

    def _rejection_if_matched_member_changed(self, intent: Intent, held: dict[str, Any]) -> Outcome | None:
        member = self._run.rules.matching.get(intent.identity.stream)
        if member is None or not is_update_taking_over_record(intent, self._target):
            return None
        if held.get(member) == payload_after_intent(intent).get(member):
            return None
        message = f"the record that was to be taken over has another {member} now; nothing was written"
        return Outcome("rejected", message, 412, reason="conflict", pointer=f"/{member}")

    def _rejection_if_changed_by_others(self, intent: Intent, held: dict[str, Any], etag: str | None) -> Outcome | None:
        """Return the rejection of an operation that must not overwrite what others have changed, or None."""
        tags = [None if each is None else tag_without_compression_marks(each) for each in (intent.if_match, etag)]
        is_newer = None not in tags and tags[0] != tags[1]
        before = None if intent.before is None else self._target.resources[intent.resource].comparable(intent.before)
        if intent.only_unchanged and (
            not has_wanted_members(held, before) or (is_newer and intent.only_unchanged == "record")
        ):
            return _CHANGED
        is_rejecting = intent.identity.stream in self._run.rules.rejecting
        if is_rejecting and (change := member_changed_by_others_with_message(intent, held, self._target)):
            member, message = change
            return Outcome("rejected", message, 412, reason="conflict", pointer=f"/{member}")
        return None

    def reject_as_changed_by_others(self, task: SendTask, decisions: TurnDecisions) -> None:
        decisions.settle("rejected", task.intent, _CHANGED)

    def reset_decision_count_of_record(self, intent: Intent) -> None:
        """Count the decisions about a record anew: a run of a service may deliver many versions of it."""
        self._rounds.pop((intent.identity.stream, intent.identity.key_hash), None)

    def _replace_intent_or_reject(self, intent: Intent, successor: Intent, decisions: TurnDecisions) -> None:
        place = intent.identity.stream, intent.identity.key_hash
        self._rounds[place] += 1
        if self._rounds[place] > self._target.retry.attempts:
            message = "others change this record repeatedly"
            decisions.settle("rejected", intent, Outcome("rejected", message, 412, reason="conflict"))
            return
        intent.status = "replaced"
        decisions.intents_with_new_status.append(intent)
        decisions.successors.append(successor)

    def decide_on_absent_record(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        """Handle a look-up that found nothing: what was in doubt was not executed."""
        intent, retry_state = task.intent, task.retry_state
        if intent.operation == "delete":
            decisions.settle("delivered", intent, outcome)
        elif intent.operation == "update":
            message = "the target no longer has this record"
            decisions.settle("rejected", intent, Outcome("rejected", message, 404, reason="missing"))
        elif retry_state.accepted:
            self.settle_as_in_doubt(task, _NOT_SEEN, decisions)
        elif self._may_be_shown_later(task, outcome):
            self.settle_as_in_doubt(task, _TAKEN_AND_NOT_SHOWN, decisions)
        elif (refusal := retry_state.conflict or retry_state.refusal) is not None:
            decisions.settle("rejected", intent, refusal)
        elif intent.operation in self._target.resources[intent.resource].endpoint.looks_up_first:
            self._replace_create_after_look_up(intent, outcome.held or {}, decisions)
        else:
            retry_state.ambiguous = False
            self._run.queue.put(structs.replace(task, purpose="send"))

    def _may_be_shown_later(self, task: SendTask, outcome: Outcome) -> bool:
        """Return whether an absent record of this state may be the one that has the name, by the target's refusal."""
        conflict = task.retry_state.conflict
        is_ours = task.retry_state.ambiguous and outcome.kind == "absent"
        return is_ours and conflict is not None and self._says_refusal_name_is_taken(task.intent, conflict)

    def _replace_create_after_look_up(self, intent: Intent, held: dict[str, Any], decisions: TurnDecisions) -> None:
        try:
            successor = create_intent_from_look_up(intent, self._target, held)
        except RecordError as error:
            refused = Outcome("rejected", error.message, reason=cast("Reason", error.code), pointer=error.pointer)
            decisions.settle("rejected", intent, refused)
        else:
            self._replace_intent_or_reject(intent, successor, decisions)

    def decide_on_removed_record(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        """Handle a look-up that found only removed records: the create may have been executed and undone."""
        if task.retry_state.conflict is not None:
            self.decide_on_absent_record(task, outcome, decisions)
            return
        message = "the target has a removed record of this name, which may be this one"
        self.settle_as_in_doubt(task, message, decisions)

    def settle_as_in_doubt(self, task: SendTask, message: str, decisions: TurnDecisions) -> None:
        doubt = Outcome("in_doubt", message)
        decisions.add_attempt_result(structs.replace(task, purpose="send"), doubt, at=self._run.clock.now())
        decisions.settle("in_doubt", task.intent, doubt)

    def decide_by_conflict_alone(self, task: SendTask, conflict: Outcome, decisions: TurnDecisions) -> None:
        """Let the *conflict* itself decide, because the conflicting record cannot be looked up."""
        if conflict.pointer == self._target.resources[task.intent.resource].name_pointer:
            self._stop_because_state_forgot_records(task, decisions)
        else:
            decisions.settle("rejected", task.intent, conflict)

    def _decide_unexpected_record(self, task: SendTask, outcome: Outcome, decisions: TurnDecisions) -> None:
        """Reject a record of others. One that this state made, or many of others, show that it has lost operations."""
        assert outcome.held is not None
        if not self._is_made_by_others(task.intent, outcome.held):
            self._stop_because_state_forgot_records(task, decisions)
            return
        self._others += 1
        if in_doubt_and_refusal_rules.is_number_of_conflicts_too_high(self._others, self.accepted):
            self._stop_because_state_forgot_records(task, decisions, others=self._others)
            return
        self._reject_taken_name(task.intent, outcome, decisions)

    def _is_made_by_others(self, intent: Intent, held: dict[str, Any]) -> bool:
        member = self._run.rules.matching.get(intent.identity.stream)
        return in_doubt_and_refusal_rules.is_record_made_by_others(intent, held, self._target, member)

    def _reject_taken_name(self, intent: Intent, found: Outcome, decisions: TurnDecisions) -> None:
        refused = in_doubt_and_refusal_rules.rejected_outcome_of_taken_name(intent, found, self._target)
        decisions.settle("rejected", intent, refused)

    def _stop_because_state_forgot_records(self, task: SendTask, decisions: TurnDecisions, *, others: int = 0) -> None:
        """Send nothing more: the state may also have forgotten records that are written once."""
        matches = task.intent.identity.stream in self._run.rules.matching
        self._run.stop_delivery_with_error(
            in_doubt_and_refusal_rules.state_forgot_records_error(
                task.intent, self._target, matches=matches, others=others
            )
        )
        self._retries.leave_to_next_run(task, Outcome("unavailable", "already exists"), decisions)
