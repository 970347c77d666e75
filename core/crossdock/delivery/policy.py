"""What an outcome means for its intent: settled, sent again, looked up, left in doubt, or the end of the run."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta

from crossdock.clock import Clock
from crossdock.delivery import in_doubt_rules, retry_budget
from crossdock.delivery.circuit_breaker import Breaker
from crossdock.delivery.decisions import Verdicts
from crossdock.delivery.operations import decided_again
from crossdock.delivery.outbox import Outbox
from crossdock.delivery.outcomes import Outcome
from crossdock.delivery.senders import Errand, Trouble
from crossdock.delivery.settlement import Settled
from crossdock.errors import CrossdockError, UnavailableError
from crossdock.platform.platform_target import PlatformTarget
from crossdock.state import Intent

THROTTLED_AT_MOST_S = 1_800.0  # twice the longest Retry-After that is obeyed
NAME_POINTER = "/externalId"
POISON_AT_MOST = 10  # records that fail while the platform answers, before anything at all got through


class PutOffError(CrossdockError):
    """What an earlier run left does not get through now; the rest of the run is worth a try."""


class Judge:
    """Decides what becomes of what came back, and puts what shall leave into the outbox; writes nothing.

    Attributes:
        stop: Why the run must end, once it must.
        resuming: It is about what an earlier run left, which may be nothing but records that fail every night.
    """

    def __init__(self, target: PlatformTarget, clock: Clock, adopting: frozenset[str], *, suspicious: bool) -> None:
        self._profile, self._target, self._clock = target.profile, target, clock
        self._adopting, self._suspicious = adopting, suspicious
        self._rng = random.Random()  # noqa: S311  jitter needs no secrecy
        self._rounds: Counter[tuple[str, int]] = Counter()
        self._accepted: set[str] = set()
        self._left = 0
        self._throttled_since: float | None = None
        self.resuming = False
        self.outbox = Outbox(clock, target.profile.in_flight, self._rng)
        self.stop: BaseException | None = None

    def begin_anew(self) -> None:
        """After what was put off: nothing is held against the platform."""
        self.stop = None
        self.outbox.breaker = Breaker(self._profile.in_flight, self._rng)

    def admit(self, intent: Intent) -> None:
        """Take a new intent."""
        self.outbox.put(Errand(intent))

    def suspect(self, intent: Intent, verdicts: Verdicts) -> None:
        """Take a new intent of which nobody knows whether it was carried out before the state was restored."""
        if intent.operation != "create":
            self.admit(intent)
        elif self._profile.can_verify(intent.resource, intent.operation):
            self.outbox.put(Errand(intent, "look_up"))  # what is found may be of another day than ours
        else:
            intent.first_sent_at = self._clock.now()  # from now on it is treated like what was sent
            told = Outcome("in_doubt", "may have been delivered before the state was restored")
            verdicts.settle("in_doubt", intent, told)

    def resume(self, intent: Intent, verdicts: Verdicts) -> None:
        """Decide about an intent that an earlier run left: what it was, and how old its key is, decide."""
        if intent.first_sent_at is None:
            self.admit(intent)
            return
        rule = in_doubt_rules.rule_for(intent, self._profile, self._clock.now())
        errand = Errand(intent, "look_up" if rule == "verify" else "send", trouble=Trouble(ambiguous=True))
        match rule:
            case "resend":
                self.outbox.put(errand)
            case "verify":
                age_s = max(0.0, (self._clock.now() - intent.first_sent_at).total_seconds())
                self.outbox.delay(errand, self._profile.lookup.settle_s - age_s, free=True)
            case "park":
                told = Outcome("in_doubt", "sent by an earlier run, and cannot be sent again without risk")
                verdicts.settle("in_doubt", intent, told)

    def broke(self, errand: Errand, error: Exception) -> None:
        """An exception ends the run; one that nobody foresaw does not tell whether the request was sent."""
        errand.trouble.ambiguous |= errand.purpose == "send" and not isinstance(error, CrossdockError)
        self.stop = self.stop or error
        self.outbox.put(errand)

    def throttled(self, errand: Errand, outcome: Outcome, verdicts: Verdicts) -> None:
        """A 429 costs time, and is no failed attempt; but nothing is waited for without an end."""
        verdicts.note(errand, outcome, at=self._clock.now())
        self.outbox.put(errand, first=True)
        now = self._clock.monotonic()
        self._throttled_since = now if self._throttled_since is None else self._throttled_since
        if now - self._throttled_since >= THROTTLED_AT_MOST_S:
            told = f"answered nothing but 429 for {THROTTLED_AT_MOST_S:.0f} s"
            self.stop = self.stop or UnavailableError(told, where=self._profile.base_url, hint="is the rate right?")

    def judge(self, errand: Errand, outcome: Outcome, verdicts: Verdicts) -> None:
        """Decide what *outcome* means for the intent of *errand*."""
        intent = errand.intent
        if errand.purpose == "ping":
            self._pinged(errand, outcome, verdicts)
            return
        if outcome.kind == "expired":
            self._delay(errand, 0.0, outcome, verdicts, free=True)
            return
        verdicts.note(errand, outcome, at=self._clock.now())
        conflict = errand.trouble.conflict
        if conflict is not None and outcome.status in {403, 404, 405} and not self._expects(errand):
            self._unseen(errand, conflict, verdicts)
            return
        if outcome.kind in {"unavailable", "in_doubt"}:
            self.outbox.breaker.failed(self._clock.monotonic(), outcome.retry_after_s, probe=errand.probe)
            self._again(errand, outcome, verdicts)
            return
        self.outbox.breaker.succeeded()
        self._throttled_since = None
        match outcome.kind:
            case "delivered":
                self._accepted.add(intent.resource)
                verdicts.settle("delivered", intent, outcome)
            case "found":
                self._found(errand, outcome, verdicts)
            case "absent":
                self._absent(errand, outcome, verdicts)
            case "changed":
                self.outbox.put(replace(errand, purpose="look_up"))
            case _:
                self._refused(errand, outcome, verdicts)

    def may_leave(self, errand: Errand, verdicts: Verdicts) -> bool:
        """Whether *errand*, whose turn it is, may leave; if it was waiting for too long, it is decided on anew."""
        intent = errand.intent
        if errand.purpose != "send" or not errand.trouble.ambiguous:
            return True
        if in_doubt_rules.rule_for(intent, self._profile, self._clock.now()) == "resend":
            return True
        told = Outcome("in_doubt", "may have been carried out, and its idempotency key is too old to send it again")
        self._delay(errand, 0.0, told, verdicts, free=True)
        return False

    def give_back(self) -> list[Intent]:
        """Everything that did not leave, as the next run shall find it."""
        left = self.outbox.clear()
        for errand in left:
            self._leave_behind(errand)
        return [errand.intent for errand in left]

    def _refused(self, errand: Errand, outcome: Outcome, verdicts: Verdicts) -> None:
        intent, is_gone = errand.intent, outcome.status in {404, 410}
        if intent.operation == "delete" and is_gone:
            verdicts.settle("delivered", intent, outcome)  # which is what was wanted
        elif intent.operation == "update" and is_gone:
            verdicts.settle("rejected", intent, replace(outcome, reason="missing"))
        elif intent.operation != "create" or not self._in_the_way(errand, outcome, verdicts):
            self._rejected(errand, outcome, verdicts)

    def _in_the_way(self, errand: Errand, outcome: Outcome, verdicts: Verdicts) -> bool:
        """Whether another record may be why a creation was refused, so that this decides about it.

        It may be of our own first attempt, of a state that was lost, or one that is to be taken over.
        """
        is_conflict, expected = outcome.status == 409, self._expects(errand)
        about_name = is_conflict and outcome.pointer in {None, NAME_POINTER}
        may_be_ours = expected and (is_conflict or (outcome.status == 422 and outcome.pointer is None))
        if (about_name or may_be_ours) and self._profile.can_look_up(errand.intent.resource):
            errand.trouble.conflict = outcome
            self.outbox.put(replace(errand, purpose="look_up"))
        elif is_conflict and errand.trouble.ambiguous:
            self._again(errand, outcome, verdicts)
        elif is_conflict and not expected:
            self._unseen(errand, outcome, verdicts)
        else:
            return False
        return True

    def _rejected(self, errand: Errand, outcome: Outcome, verdicts: Verdicts) -> None:
        concerns_all = in_doubt_rules.concerns_all(errand.intent, outcome, self._profile, self._accepted)
        if concerns_all is None:
            verdicts.settle("rejected", errand.intent, outcome)
            return
        if not self.resuming or outcome.status == 401:  # else its stream may be gone from the config; others' go on
            self.stop = self.stop or concerns_all
        self._leave(errand, outcome, verdicts)

    def _found(self, errand: Errand, outcome: Outcome, verdicts: Verdicts) -> None:
        """The target holds the record. Whose work that is, and whether it is what we want, decides."""
        assert outcome.held is not None
        intent, ours = errand.intent, errand.trouble.ambiguous
        if errand.trouble.conflict is not None and not self._expects(errand):
            self._stop_forgetful(errand, verdicts)
            return
        unnamed = intent.platform_id is None
        intent.platform_id = outcome.platform_id
        if unnamed and ours and intent.stream not in self._adopting:
            verdicts.settle("delivered", intent, outcome)
            return
        successor = decided_again(intent, self._target, outcome.held, outcome.etag)
        if successor is None:
            verdicts.settle("delivered", intent, outcome, untouched=not ours)
            return
        place = (intent.stream, intent.key_hash)
        self._rounds[place] += 1
        if self._rounds[place] > self._profile.retry.attempts:
            told = Outcome("rejected", "is changed by others again and again", 412, reason="conflict")
            verdicts.settle("rejected", intent, told)
            return
        intent.status = "replaced"
        verdicts.moved.append(intent)
        verdicts.successors.append(successor)

    def _expects(self, errand: Errand) -> bool:
        """Whether the platform may have the record of a creation already, and nothing is wrong with the state."""
        intent = errand.intent
        was_tried = errand.trouble.ambiguous or intent.counter > 1  # also one that was refused, or given up, once
        return was_tried or self._suspicious or intent.stream in self._adopting

    def _unseen(self, errand: Errand, conflict: Outcome, verdicts: Verdicts) -> None:
        """The record in the way cannot be looked up, so the *conflict* itself decides."""
        if conflict.pointer == NAME_POINTER:
            self._stop_forgetful(errand, verdicts)
        else:
            verdicts.settle("rejected", errand.intent, conflict)

    def _stop_forgetful(self, errand: Errand, verdicts: Verdicts) -> None:
        """Nothing more is sent: what is written once may have been forgotten too."""
        self.stop = self.stop or in_doubt_rules.forgotten(errand.intent)
        self._leave(errand, Outcome("unavailable", "is there already"), verdicts)

    def _absent(self, errand: Errand, outcome: Outcome, verdicts: Verdicts) -> None:
        """The target does not hold the record: what was in doubt did not happen."""
        intent, trouble = errand.intent, errand.trouble
        if intent.operation == "delete":
            verdicts.settle("delivered", intent, outcome)
        elif intent.operation == "update":
            told = Outcome("rejected", "the platform has this record no longer", 404, reason="missing")
            verdicts.settle("rejected", intent, told)
        elif trouble.conflict is not None:
            verdicts.settle("rejected", intent, trouble.conflict)
        else:
            trouble.ambiguous = False
            self.outbox.put(replace(errand, purpose="send"))

    def _again(self, errand: Errand, outcome: Outcome, verdicts: Verdicts) -> None:
        """After a pause send it again or look it up, unless that could do it twice, or it failed too often."""
        intent, trouble, limits = errand.intent, errand.trouble, self._profile.retry
        settle_s = 0.0
        if errand.purpose == "send" and outcome.kind != "unavailable":
            trouble.ambiguous = True
            match self._profile.rule(intent.resource, intent.operation):
                case "park":
                    self._give_up_if_hopeless(trouble, outcome)
                    verdicts.settle("in_doubt", intent, outcome)
                    return
                case "verify":
                    errand, settle_s = replace(errand, purpose="look_up"), self._profile.lookup.settle_s
                case "resend":
                    pass
        trouble.failures += 1
        if trouble.failing_since is None:
            trouble.failing_since = self._clock.monotonic()
        if trouble.failures >= limits.attempts and not self._outage(trouble):
            self._leave(errand, outcome, verdicts)
            return
        if trouble.failures == limits.attempts and outcome.kind == "in_doubt" and not self._is_too_late():
            trouble.interrupted = "look_up" if errand.purpose == "look_up" else "send"
            self.outbox.put(replace(errand, purpose="ping"), first=True)  # is it the platform, or this one record?
            return
        self._give_up_if_hopeless(trouble, outcome)
        jitter = retry_budget.pause_s(trouble.failures, base_s=limits.base_s, cap_s=limits.cap_s, rng=self._rng)
        self._delay(errand, max(settle_s, jitter, outcome.retry_after_s or 0.0), outcome, verdicts)

    def _delay(
        self, errand: Errand, pause_s: float, outcome: Outcome, verdicts: Verdicts, *, free: bool = False
    ) -> None:
        """After *pause_s*; what was surely not done is pending meanwhile, and no key is used when it is forgotten."""
        intent = errand.intent
        if not errand.trouble.ambiguous:
            intent.status, intent.first_sent_at = "pending", None
            verdicts.moved.append(intent)
        elif errand.purpose == "send":
            rule = in_doubt_rules.rule_for(intent, self._profile, self._clock.now() + timedelta(seconds=pause_s))
            if rule == "park":
                verdicts.settle("in_doubt", intent, outcome)
                return
            errand = replace(errand, purpose="look_up" if rule == "verify" else "send")
        self.outbox.delay(errand, pause_s, free=free or errand.purpose == "look_up")

    def _pinged(self, errand: Errand, outcome: Outcome, verdicts: Verdicts) -> None:
        """One record failed and failed, and nothing else tells whether the platform works: its answer does."""
        poison = self.outbox.breaker.worked or self._left < POISON_AT_MOST
        if outcome.kind == "answered" and poison and not self._is_too_late():
            self._left += 1
            self._leave(errand, Outcome("in_doubt", "fails again and again"), verdicts)
            return
        if outcome.kind != "answered":
            self.outbox.breaker.failed(self._clock.monotonic(), outcome.retry_after_s, probe=errand.probe)
        self._give_up_if_hopeless(errand.trouble, replace(outcome, message=outcome.message or "carries nothing out"))
        errand = replace(errand, purpose=errand.trouble.interrupted)
        settle_s = self._profile.lookup.settle_s if errand.purpose == "look_up" else 0.0
        self._delay(errand, max(settle_s, self._profile.retry.base_s), outcome, verdicts)

    def _leave(self, errand: Errand, outcome: Outcome, verdicts: Verdicts) -> None:
        """It is not the platform's fault as a whole: the run goes on without it."""
        self._leave_behind(errand)
        verdicts.settled.append(Settled(errand.intent, outcome))

    def _give_up_if_hopeless(self, trouble: Trouble, outcome: Outcome) -> None:
        if not self._hopeless(trouble):
            return
        attempts = max(trouble.failures, self.outbox.breaker.probes)
        hint = "nothing was lost; run again when the platform answers"
        told, where = f"{outcome.message} ({attempts} attempts)", self._profile.base_url
        if self.resuming and outcome.kind != "unavailable":  # new records will show whether the platform works
            self.stop = self.stop or PutOffError(told)
        self.stop = self.stop or UnavailableError(told, where=where, hint=hint)

    def _outage(self, trouble: Trouble) -> bool:
        """True if nothing at all got through since this one began to fail: then it is not its own fault."""
        since = self.outbox.breaker.failing_since
        return since is not None and trouble.failing_since is not None and since <= trouble.failing_since

    def _hopeless(self, trouble: Trouble) -> bool:
        """True if it is time to give up: soon when nothing ever got through, later in the middle of a good run."""
        breaker = self.outbox.breaker
        if breaker.failing_since is None:
            return False
        if not breaker.worked:
            return max(trouble.failures, breaker.probes) >= self._profile.retry.attempts
        return self._is_too_late()

    def _is_too_late(self) -> bool:
        since = self.outbox.breaker.failing_since
        return since is not None and self._clock.monotonic() - since >= self._profile.retry.give_up_after_s

    @staticmethod
    def _leave_behind(errand: Errand) -> None:
        """For the next run: in doubt if it may have happened, else as if it had never left."""
        intent = errand.intent
        if errand.trouble.ambiguous:
            intent.status = "in_doubt"
        else:
            intent.status, intent.first_sent_at = "pending", None
