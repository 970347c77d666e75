"""What an outcome means for its intent: settled, sent again, looked up, left in doubt, or the end of the run."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta

from crossdock.clock import Clock
from crossdock.delivery import in_doubt_rules, retry_budget
from crossdock.delivery.circuit_breaker import CircuitBreaker
from crossdock.delivery.decisions import Decisions
from crossdock.delivery.operations import decided_again
from crossdock.delivery.outbox import Outbox
from crossdock.delivery.outcomes import Outcome
from crossdock.delivery.senders import RetryState, SendTask
from crossdock.delivery.settlement import Settlement
from crossdock.errors import CrossdockError, UnavailableError
from crossdock.platform.platform_target import PlatformTarget
from crossdock.state import Intent

THROTTLED_AT_MOST_S = 1_800.0  # twice the longest Retry-After that is obeyed
NAME_POINTER = "/externalId"
POISON_AT_MOST = 10  # records that fail while the platform answers, before anything at all got through


class PostponedError(CrossdockError):
    """What an earlier run left does not get through now; the rest of the run is worth a try."""


class Policy:
    """Decides what becomes of what came back, and puts what shall leave into the outbox; writes nothing.

    Attributes:
        stop: Why the run must end, once it must.
        resuming: It is about what an earlier run left, which may be nothing but records that fail every night.
    """

    def __init__(self, target: PlatformTarget, clock: Clock, adopting: frozenset[str], *, state_restored: bool) -> None:
        self._profile, self._target, self._clock = target.profile, target, clock
        self._adopting, self._state_restored = adopting, state_restored
        self._rng = random.Random()  # noqa: S311  jitter needs no secrecy
        self._rounds: Counter[tuple[str, int]] = Counter()
        self._accepted: set[str] = set()
        self._left = 0
        self._throttled_since: float | None = None
        self.resuming = False
        self.outbox = Outbox(clock, target.profile.in_flight, self._rng)
        self.stop: BaseException | None = None

    def reset(self) -> None:
        """After what was put off: nothing is held against the platform."""
        self.stop = None
        self.outbox.circuit_breaker = CircuitBreaker(self._profile.in_flight, self._rng)

    def admit(self, intent: Intent) -> None:
        """Take a new intent."""
        self.outbox.put(SendTask(intent))

    def suspect(self, intent: Intent, decisions: Decisions) -> None:
        """Take a new intent of which nobody knows whether it was carried out before the state was restored."""
        if intent.operation != "create":
            self.admit(intent)
        elif self._profile.can_verify(intent.resource, intent.operation):
            self.outbox.put(SendTask(intent, "look_up"))  # what is found may be of another day than ours
        else:
            intent.first_sent_at = self._clock.now()  # from now on it is treated like what was sent
            told = Outcome("in_doubt", "may have been delivered before the state was restored")
            decisions.settle("in_doubt", intent, told)

    def resume(self, intent: Intent, decisions: Decisions) -> None:
        """Decide about an intent that an earlier run left: what it was, and how old its key is, decide."""
        if intent.first_sent_at is None:
            self.admit(intent)
            return
        rule = in_doubt_rules.rule_for(intent, self._profile, self._clock.now())
        task = SendTask(intent, "look_up" if rule == "verify" else "send", retry_state=RetryState(ambiguous=True))
        match rule:
            case "resend":
                self.outbox.put(task)
            case "verify":
                age_s = max(0.0, (self._clock.now() - intent.first_sent_at).total_seconds())
                self.outbox.delay(task, self._profile.lookup.settle_s - age_s, free=True)
            case "park":
                told = Outcome("in_doubt", "sent by an earlier run, and cannot be sent again without risk")
                decisions.settle("in_doubt", intent, told)

    def broke(self, task: SendTask, error: Exception) -> None:
        """An exception ends the run; one that nobody foresaw does not tell whether the request was sent."""
        task.retry_state.ambiguous |= task.purpose == "send" and not isinstance(error, CrossdockError)
        self.stop = self.stop or error
        self.outbox.put(task)

    def throttled(self, task: SendTask, outcome: Outcome, decisions: Decisions) -> None:
        """A 429 costs time, and is no failed attempt; but nothing is waited for without an end."""
        decisions.note(task, outcome, at=self._clock.now())
        self.outbox.put(task, first=True)
        now = self._clock.monotonic()
        self._throttled_since = now if self._throttled_since is None else self._throttled_since
        if now - self._throttled_since >= THROTTLED_AT_MOST_S:
            told = f"answered nothing but 429 for {THROTTLED_AT_MOST_S:.0f} s"
            self.stop = self.stop or UnavailableError(told, where=self._profile.base_url, hint="is the rate right?")

    def policy(self, task: SendTask, outcome: Outcome, decisions: Decisions) -> None:
        """Decide what *outcome* means for the intent of *task*."""
        intent = task.intent
        if task.purpose == "ping":
            self._pinged(task, outcome, decisions)
            return
        if outcome.kind == "expired":
            self._delay(task, 0.0, outcome, decisions, free=True)
            return
        decisions.note(task, outcome, at=self._clock.now())
        conflict = task.retry_state.conflict
        if conflict is not None and outcome.status in {403, 404, 405} and not self._expects(task):
            self._unseen(task, conflict, decisions)
            return
        if outcome.kind in {"unavailable", "in_doubt"}:
            self.outbox.circuit_breaker.failed(self._clock.monotonic(), outcome.retry_after_s, probe=task.probe)
            self._again(task, outcome, decisions)
            return
        self.outbox.circuit_breaker.succeeded()
        self._throttled_since = None
        match outcome.kind:
            case "delivered":
                self._accepted.add(intent.resource)
                decisions.settle("delivered", intent, outcome)
            case "found":
                self._found(task, outcome, decisions)
            case "absent":
                self._absent(task, outcome, decisions)
            case "changed":
                self.outbox.put(replace(task, purpose="look_up"))
            case _:
                self._refused(task, outcome, decisions)

    def may_leave(self, task: SendTask, decisions: Decisions) -> bool:
        """Whether *task*, whose turn it is, may leave; if it was waiting for too long, it is decided on anew."""
        intent = task.intent
        if task.purpose != "send" or not task.retry_state.ambiguous:
            return True
        if in_doubt_rules.rule_for(intent, self._profile, self._clock.now()) == "resend":
            return True
        told = Outcome("in_doubt", "may have been carried out, and its idempotency key is too old to send it again")
        self._delay(task, 0.0, told, decisions, free=True)
        return False

    def give_back(self) -> list[Intent]:
        """Everything that did not leave, as the next run shall find it."""
        left = self.outbox.clear()
        for task in left:
            self._leave_behind(task)
        return [task.intent for task in left]

    def _refused(self, task: SendTask, outcome: Outcome, decisions: Decisions) -> None:
        intent, is_gone = task.intent, outcome.status in {404, 410}
        if intent.operation == "delete" and is_gone:
            decisions.settle("delivered", intent, outcome)  # which is what was wanted
        elif intent.operation == "update" and is_gone:
            decisions.settle("rejected", intent, replace(outcome, reason="missing"))
        elif intent.operation != "create" or not self._in_the_way(task, outcome, decisions):
            self._rejected(task, outcome, decisions)

    def _in_the_way(self, task: SendTask, outcome: Outcome, decisions: Decisions) -> bool:
        """Whether another record may be why a creation was refused, so that this decides about it.

        It may be of our own first attempt, of a state that was lost, or one that is to be taken over.
        """
        is_conflict, expected = outcome.status == 409, self._expects(task)
        about_name = is_conflict and outcome.pointer in {None, NAME_POINTER}
        may_be_ours = expected and (is_conflict or (outcome.status == 422 and outcome.pointer is None))
        if (about_name or may_be_ours) and self._profile.can_look_up(task.intent.resource):
            task.retry_state.conflict = outcome
            self.outbox.put(replace(task, purpose="look_up"))
        elif is_conflict and task.retry_state.ambiguous:
            self._again(task, outcome, decisions)
        elif is_conflict and not expected:
            self._unseen(task, outcome, decisions)
        else:
            return False
        return True

    def _rejected(self, task: SendTask, outcome: Outcome, decisions: Decisions) -> None:
        concerns_all = in_doubt_rules.concerns_all(task.intent, outcome, self._profile, self._accepted)
        if concerns_all is None:
            decisions.settle("rejected", task.intent, outcome)
            return
        if not self.resuming or outcome.status == 401:  # else its stream may be gone from the config; others' go on
            self.stop = self.stop or concerns_all
        self._leave(task, outcome, decisions)

    def _found(self, task: SendTask, outcome: Outcome, decisions: Decisions) -> None:
        """The target holds the record. Whose work that is, and whether it is what we want, decides."""
        assert outcome.held is not None
        intent, ours = task.intent, task.retry_state.ambiguous
        if task.retry_state.conflict is not None and not self._expects(task):
            self._stop_forgetful(task, decisions)
            return
        unnamed = intent.platform_id is None
        intent.platform_id = outcome.platform_id
        if unnamed and ours and intent.identity.stream not in self._adopting:
            decisions.settle("delivered", intent, outcome)
            return
        successor = decided_again(intent, self._target, outcome.held, outcome.etag)
        if successor is None:
            decisions.settle("delivered", intent, outcome, untouched=not ours)
            return
        place = (intent.identity.stream, intent.identity.key_hash)
        self._rounds[place] += 1
        if self._rounds[place] > self._profile.retry.attempts:
            told = Outcome("rejected", "is changed by others again and again", 412, reason="conflict")
            decisions.settle("rejected", intent, told)
            return
        intent.status = "replaced"
        decisions.moved.append(intent)
        decisions.successors.append(successor)

    def _expects(self, task: SendTask) -> bool:
        """Whether the platform may have the record of a creation already, and nothing is wrong with the state."""
        intent = task.intent
        was_tried = task.retry_state.ambiguous or intent.counter > 1  # also one that was refused, or given up, once
        return was_tried or self._state_restored or intent.identity.stream in self._adopting

    def _unseen(self, task: SendTask, conflict: Outcome, decisions: Decisions) -> None:
        """The record in the way cannot be looked up, so the *conflict* itself decides."""
        if conflict.pointer == NAME_POINTER:
            self._stop_forgetful(task, decisions)
        else:
            decisions.settle("rejected", task.intent, conflict)

    def _stop_forgetful(self, task: SendTask, decisions: Decisions) -> None:
        """Nothing more is sent: what is written once may have been forgotten too."""
        self.stop = self.stop or in_doubt_rules.forgotten(task.intent)
        self._leave(task, Outcome("unavailable", "is there already"), decisions)

    def _absent(self, task: SendTask, outcome: Outcome, decisions: Decisions) -> None:
        """The target does not hold the record: what was in doubt did not happen."""
        intent, retry_state = task.intent, task.retry_state
        if intent.operation == "delete":
            decisions.settle("delivered", intent, outcome)
        elif intent.operation == "update":
            told = Outcome("rejected", "the platform has this record no longer", 404, reason="missing")
            decisions.settle("rejected", intent, told)
        elif retry_state.conflict is not None:
            decisions.settle("rejected", intent, retry_state.conflict)
        else:
            retry_state.ambiguous = False
            self.outbox.put(replace(task, purpose="send"))

    def _again(self, task: SendTask, outcome: Outcome, decisions: Decisions) -> None:
        """After a pause send it again or look it up, unless that could do it twice, or it failed too often."""
        intent, retry_state, limits = task.intent, task.retry_state, self._profile.retry
        settle_s = 0.0
        if task.purpose == "send" and outcome.kind != "unavailable":
            retry_state.ambiguous = True
            match self._profile.rule(intent.resource, intent.operation):
                case "park":
                    self._give_up_if_hopeless(retry_state, outcome)
                    decisions.settle("in_doubt", intent, outcome)
                    return
                case "verify":
                    task, settle_s = replace(task, purpose="look_up"), self._profile.lookup.settle_s
                case "resend":
                    pass
        retry_state.failures += 1
        if retry_state.failing_since is None:
            retry_state.failing_since = self._clock.monotonic()
        if retry_state.failures >= limits.attempts and not self._outage(retry_state):
            self._leave(task, outcome, decisions)
            return
        if retry_state.failures == limits.attempts and outcome.kind == "in_doubt" and not self._is_too_late():
            retry_state.interrupted = "look_up" if task.purpose == "look_up" else "send"
            self.outbox.put(replace(task, purpose="ping"), first=True)  # is it the platform, or this one record?
            return
        self._give_up_if_hopeless(retry_state, outcome)
        jitter = retry_budget.pause_s(retry_state.failures, base_s=limits.base_s, cap_s=limits.cap_s, rng=self._rng)
        self._delay(task, max(settle_s, jitter, outcome.retry_after_s or 0.0), outcome, decisions)

    def _delay(
        self, task: SendTask, pause_s: float, outcome: Outcome, decisions: Decisions, *, free: bool = False
    ) -> None:
        """After *pause_s*; what was surely not done is pending meanwhile, and no key is used when it is forgotten."""
        intent = task.intent
        if not task.retry_state.ambiguous:
            intent.status, intent.first_sent_at = "pending", None
            decisions.moved.append(intent)
        elif task.purpose == "send":
            rule = in_doubt_rules.rule_for(intent, self._profile, self._clock.now() + timedelta(seconds=pause_s))
            if rule == "park":
                decisions.settle("in_doubt", intent, outcome)
                return
            task = replace(task, purpose="look_up" if rule == "verify" else "send")
        self.outbox.delay(task, pause_s, free=free or task.purpose == "look_up")

    def _pinged(self, task: SendTask, outcome: Outcome, decisions: Decisions) -> None:
        """One record failed and failed, and nothing else tells whether the platform works: its answer does."""
        poison = self.outbox.circuit_breaker.worked or self._left < POISON_AT_MOST
        if outcome.kind == "answered" and poison and not self._is_too_late():
            self._left += 1
            self._leave(task, Outcome("in_doubt", "fails again and again"), decisions)
            return
        if outcome.kind != "answered":
            self.outbox.circuit_breaker.failed(self._clock.monotonic(), outcome.retry_after_s, probe=task.probe)
        self._give_up_if_hopeless(task.retry_state, replace(outcome, message=outcome.message or "carries nothing out"))
        task = replace(task, purpose=task.retry_state.interrupted)
        settle_s = self._profile.lookup.settle_s if task.purpose == "look_up" else 0.0
        self._delay(task, max(settle_s, self._profile.retry.base_s), outcome, decisions)

    def _leave(self, task: SendTask, outcome: Outcome, decisions: Decisions) -> None:
        """It is not the platform's fault as a whole: the run goes on without it."""
        self._leave_behind(task)
        decisions.settled.append(Settlement(task.intent, outcome))

    def _give_up_if_hopeless(self, retry_state: RetryState, outcome: Outcome) -> None:
        if not self._hopeless(retry_state):
            return
        attempts = max(retry_state.failures, self.outbox.circuit_breaker.probes)
        hint = "nothing was lost; run again when the platform answers"
        told, where = f"{outcome.message} ({attempts} attempts)", self._profile.base_url
        if self.resuming and outcome.kind != "unavailable":  # new records will show whether the platform works
            self.stop = self.stop or PostponedError(told)
        self.stop = self.stop or UnavailableError(told, where=where, hint=hint)

    def _outage(self, retry_state: RetryState) -> bool:
        """True if nothing at all got through since this one began to fail: then it is not its own fault."""
        since = self.outbox.circuit_breaker.failing_since
        return since is not None and retry_state.failing_since is not None and since <= retry_state.failing_since

    def _hopeless(self, retry_state: RetryState) -> bool:
        """True if it is time to give up: soon when nothing ever got through, later in the middle of a good run."""
        circuit_breaker = self.outbox.circuit_breaker
        if circuit_breaker.failing_since is None:
            return False
        if not circuit_breaker.worked:
            return max(retry_state.failures, circuit_breaker.probes) >= self._profile.retry.attempts
        return self._is_too_late()

    def _is_too_late(self) -> bool:
        since = self.outbox.circuit_breaker.failing_since
        return since is not None and self._clock.monotonic() - since >= self._profile.retry.give_up_after_s

    @staticmethod
    def _leave_behind(task: SendTask) -> None:
        """For the next run: in doubt if it may have happened, else as if it had never left."""
        intent = task.intent
        if task.retry_state.ambiguous:
            intent.status = "in_doubt"
        else:
            intent.status, intent.first_sent_at = "pending", None
