"""The handling of a request without a decision: sent again, looked up, left in doubt, or the end of the run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from crossdock.errors import CrossdockError, UnavailableError
from crossdock.pacing.backoff import pause_s
from crossdock.writing.delivery import in_doubt_rules
from crossdock.writing.delivery.delivery_context import DeliveryContext
from crossdock.writing.delivery.senders import RetryState, SendTask
from crossdock.writing.delivery.settlement import Settlement
from crossdock.writing.delivery.turn_writer import Decisions
from crossdock.writing.targets.outcomes import Outcome

SMALLER = 4  # after a failure a batch is divided by this, so that four failures of a hundred records find the wrong one
THROTTLED = 429
FAILING_RECORDS_AT_MOST = 10  # left out while the target answers pings, before anything was delivered


class PostponedError(CrossdockError):
    """What an earlier run left cannot be delivered now, but the rest of the run is worth a try."""

    code = "delivery_postponed"


class Retries:
    def __init__(self, run: DeliveryContext) -> None:
        self._run, self._target, self._clock = run, run.target, run.clock
        self._left_out = 0

    def retry(self, task: SendTask, outcome: Outcome, decisions: Decisions) -> None:
        """Send or look up again after a pause, unless that could execute it twice, or it failed too often."""
        retry_state, limits = task.retry_state, self._target.retry
        settle_s, is_alone = 0.0, task.batch_size == 1
        _reduce_batch_size(task)
        if task.purpose == "send" and outcome.kind != "unavailable":
            retry_state.ambiguous = True
            endpoint, operation = self._target.resources[task.intent.resource].endpoint, task.intent.operation
            is_refusal = outcome.kind == "in_doubt" and outcome.reason is not None  # again, it would be answered alike
            rule = endpoint.rule_without_key(operation) if is_refusal else endpoint.rule(operation)
            retry_state.refusal = replace(outcome, kind="rejected") if is_refusal else None
            if rule == "park":
                self._stop_if_hopeless(retry_state, outcome)
                decisions.settle("in_doubt", task.intent, outcome)
                return
            if rule == "verify":
                task, settle_s = replace(task, purpose="look_up"), self._target.settle_s
        if is_alone:  # otherwise one wrong record may be why all of them failed
            retry_state.record_failure(self._clock.monotonic(), outcome.status)
        if retry_state.failures >= limits.attempts and not self._is_outage(retry_state):
            self.leave_out(task, outcome, decisions)
            return
        may_be_its_own = outcome.kind == "in_doubt" or outcome.status == THROTTLED  # in a result
        may_be_its_own = may_be_its_own and task.stored is None  # a file has the fate of all of its records
        if retry_state.failures == limits.attempts and may_be_its_own and not self._has_failed_too_long():
            retry_state.interrupted = "look_up" if task.purpose == "look_up" else "send"
            self._run.queue.put(replace(task, purpose="ping"), first=True)  # is it the target, or this one record?
            return
        self._stop_if_hopeless(retry_state, outcome)
        jitter_s = pause_s(max(1, retry_state.failures), base_s=limits.base_s, cap_s=limits.cap_s, rng=self._run.rng)
        self.retry_after_pause(task, max(settle_s, jitter_s, outcome.retry_after_s or 0.0), outcome, decisions)

    def retry_in_smaller_batch(self, task: SendTask, outcome: Outcome, decisions: Decisions) -> None:
        """Send an operation again at once, with fewer others. Its request has changed nothing."""
        _reduce_batch_size(task)
        self.retry_after_pause(task, 0.0, outcome, decisions, free=True)

    def retry_after_pause(
        self, task: SendTask, pause_s: float, outcome: Outcome, decisions: Decisions, *, free: bool = False
    ) -> None:
        """Send or look up after *pause_s*, but not with an idempotency key that expires before then."""
        intent = task.intent
        if not task.retry_state.ambiguous:
            intent.status, intent.first_sent_at = "pending", None
            decisions.moved.append(intent)
        elif task.purpose == "send" and task.stored is None:
            rule = in_doubt_rules.rule_for(intent, self._target, self._clock.now() + timedelta(seconds=pause_s))
            if rule == "park":
                decisions.settle("in_doubt", intent, outcome)
                return
            task = replace(task, purpose="look_up" if rule == "verify" else "send")
        self._run.queue.delay(task, pause_s, free=free or task.purpose == "look_up")

    def decide_after_ping(self, task: SendTask, outcome: Outcome, decisions: Decisions) -> None:
        """Handle a ping's answer after repeated failures of one record: it shows whether the target works."""
        breaker, last = self._run.queue.circuit_breaker, task.retry_state.status
        may_leave_out = breaker.worked or self._left_out < FAILING_RECORDS_AT_MOST
        if outcome.kind == "answered" and may_leave_out and not self._has_failed_too_long():
            self._left_out += 1
            self.leave_out(task, Outcome("in_doubt", _with_status("fails repeatedly", last)), decisions)
            return
        if outcome.kind != "answered":
            breaker.record_failure(self._clock.monotonic(), outcome.retry_after_s, probe=task.probe)
        message = outcome.message or "answers, but every request fails"
        status = last if outcome.kind == "answered" else outcome.status
        self._stop_if_hopeless(task.retry_state, replace(outcome, message=message, status=status))
        task = replace(task, purpose=task.retry_state.interrupted)
        settle_s = self._target.settle_s if task.purpose == "look_up" else 0.0
        self.retry_after_pause(task, max(settle_s, self._target.retry.base_s), outcome, decisions)

    def leave_out(self, task: SendTask, outcome: Outcome, decisions: Decisions) -> None:
        self._run.leave_to_next_run(task)
        decisions.settled.append(Settlement(task.intent, outcome))

    def _stop_if_hopeless(self, retry_state: RetryState, outcome: Outcome) -> None:
        if not self._is_hopeless(retry_state):
            return
        attempts = max(retry_state.failures, self._run.queue.circuit_breaker.probes)
        message = f"{_with_status(outcome.message, outcome.status)} ({attempts} attempts)"
        if self._run.resuming and outcome.kind != "unavailable":  # new records will show whether the target works
            self._run.stop_with(PostponedError(message))
        hint = "nothing was lost; run again when it answers"
        self._run.stop_with(UnavailableError(message, where=self._target.address, hint=hint, code="target_unavailable"))

    def _is_outage(self, retry_state: RetryState) -> bool:
        since = self._run.queue.circuit_breaker.failing_since
        return since is not None and retry_state.failing_since is not None and since <= retry_state.failing_since

    def _is_hopeless(self, retry_state: RetryState) -> bool:
        """Give up early if nothing was ever answered, and later in the middle of a good run."""
        breaker = self._run.queue.circuit_breaker
        if breaker.failing_since is None:
            return False
        if not breaker.worked:
            return max(retry_state.failures, breaker.probes) >= self._target.retry.attempts
        return self._has_failed_too_long()

    def _has_failed_too_long(self) -> bool:
        since = self._run.queue.circuit_breaker.failing_since
        return since is not None and self._clock.monotonic() - since >= self._target.retry.give_up_after_s


def _reduce_batch_size(task: SendTask) -> None:
    if task.batch_size > 1:
        task.batch_limit, task.batch_size = max(1, task.batch_size // SMALLER), 1


def _with_status(message: str, status: int | None) -> str:
    return message if status is None or f"HTTP {status}" in message else f"{message}: HTTP {status}"
