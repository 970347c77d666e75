"""The coordinator's loop: intents into the state, bytes to the senders, outcomes back into the state.

One transaction a turn settles what came back, writes what is new and marks what leaves next; only after its commit do
the bytes leave. So one disk flush serves many requests, and after a crash at most what was in flight is in doubt.
What an outcome means for its intent is decided next door, in `crossdock.delivery.policy`.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from crossdock.clock import Clock
from crossdock.delivery import settlement
from crossdock.delivery.decisions import Decisions
from crossdock.delivery.operations import Operation, mint
from crossdock.delivery.outcomes import Outcome
from crossdock.delivery.policy import Policy, PostponedError
from crossdock.delivery.senders import Senders, SendResult, SendTask
from crossdock.delivery.settlement import Settlement
from crossdock.errors import StoppedError
from crossdock.pacing.allowance import Allowance
from crossdock.platform.platform_target import PlatformTarget
from crossdock.state import Intent, Scope, State, Transaction

AFTER_RESTORE = 1_000  # counters that a backup does not know of may have been used: their keys must not come again
LEAVE_WITHIN_S = 1.0  # after the lease was confirmed; a machine that is slower gets more time
LEAVE_AT_MOST_S = 20.0  # which is far less than `crossdock.state.db.run_lease.LEASE_S`
GATHER_S = 0.004  # a turn that gathers outcomes this long shares its disk flush with more of them


class Chunk(Protocol):
    """Some operations, and what else their records leave in the state."""

    @property
    def operations(self) -> Sequence[Operation]: ...

    def write(self, tx: Transaction) -> None:
        """Write the rest: dead letters, waiting records, fingerprints of suppressed ones."""


@dataclass(slots=True)
class Counters:
    """Of a run so far. *requests* counts attempts, look-ups among them; *throttled* those that were answered 429."""

    requests: int = 0
    throttled: int = 0


class Dispatcher:
    """Delivers operations; one thread calls it and owns the state.

    Args:
        settled: Called once with each intent when this run is done with it, whatever became of it.
        interrupt: Set when the run shall end before its work is done.
        adopting: Streams that take over what the platform already has under our name for it.
        warn: Told when the platform ceases to answer, and when it answers again.
        state_restored: The state is a restored backup, so what looks new may have been delivered long ago.
    """

    def __init__(
        self,
        state: State,
        target: PlatformTarget,
        allowance: Allowance,
        senders: Senders,
        clock: Clock,
        *,
        run_id: int,
        settled: Callable[[Settlement], None],
        interrupt: threading.Event,
        warn: Callable[[str], None] = lambda _: None,
        adopting: frozenset[str] = frozenset(),
        state_restored: bool = False,
    ) -> None:
        self._state, self._target, self._allowance, self._senders = state, target, allowance, senders
        self._clock, self._run_id, self._listener = clock, run_id, settled
        self._interrupt, self._warn, self._state_restored = interrupt, warn, state_restored
        self._away = False
        self._leave_within_s = LEAVE_WITHIN_S
        self._in_flight: dict[int, SendTask] = {}
        self._policy = Policy(target, clock, adopting, state_restored=state_restored)
        self._outbox = self._policy.outbox
        self.counters = Counters()

    def resume(self, intents: Sequence[Intent], *, later: AbstractSet[str] = frozenset()) -> None:
        """Settle what an earlier run left unsettled; fails as `deliver` does.

        What was sent is sent again with the same bytes, looked up, or left in doubt, as its rule says. What never was
        sent goes to where the config says now: the path may have been the mistake. Of that, what is written once goes
        last, since other records may show that the state is an old one which has forgotten what was sent.

        Args:
            later: Streams of which such records leave only when `release` is called.
        """
        profile, decisions = self._target.profile, Decisions()
        for intent in intents:
            if intent.operation == "create" and intent.first_sent_at is None:
                intent.path = profile.path(intent.resource)
            if self._state_restored and intent.first_sent_at is None:
                self._policy.suspect(intent, decisions)  # a backup does not know what was sent after it was made
            elif intent.first_sent_at is None and not profile.can_verify(intent.resource, intent.operation):
                self._outbox.hold(SendTask(intent))
            else:
                self._policy.resume(intent, decisions)
        self._commit(None, [], decisions, [])
        self._tell(decisions)
        self._policy.resuming = True
        try:
            self.deliver(iter(()))
            self._outbox.release(but=later)
            self.deliver(iter(()))
        except PostponedError as error:
            self._warn(f"what the last run left is put off: {error.message}")
            self._policy.reset()
        self._policy.resuming = False

    def release(self) -> None:
        """Deliver what `resume` has held back; fails as `deliver` does."""
        self._outbox.release()
        self.deliver(iter(()))

    def deliver(self, chunks: Iterator[Chunk]) -> None:
        """Deliver all operations of *chunks*, in their order as far as answers allow.

        Raises:
            UnavailableError: If the platform stays out of reach; what was not settled stays in the state.
            UnauthorizedError: If it does not accept our credentials.
            StoppedError: If it was interrupted; what was in flight has been settled.
        """
        policy = self._policy
        while self._turn(chunks):
            if self._interrupt.is_set() and policy.stop is None:
                hint = "what was in flight is settled; run again to go on"
                policy.stop = StoppedError("stopped before its end", hint=hint)
        if policy.stop is not None:
            self.put_back()
            raise policy.stop

    def _turn(self, chunks: Iterator[Chunk]) -> bool:
        policy, decisions = self._policy, Decisions()
        chunk: Chunk | None = None
        fresh: list[Intent] = []
        if policy.stop is None and self._outbox.wants_more:
            chunk, fresh = self._next(chunks)
        for intent in fresh:
            if self._state_restored:
                policy.suspect(intent, decisions)
            else:
                policy.admit(intent)
        for returned in self._gather(wait=not chunk):
            del self._in_flight[returned.task.intent.id]
            self.counters.throttled += returned.outcome is not None and returned.outcome.kind == "throttled"
            self._learn(returned)
            self._judge_one(returned, decisions)
        for intent in decisions.successors:
            policy.admit(intent)
        self._watch_breaker()
        leaving = self._leaving(decisions) if policy.stop is None else []
        if chunk or leaving or decisions:
            self._commit(chunk, fresh, decisions, leaving)
        if leaving:
            self.counters.requests += len(leaving)
            self._senders.put(leaving, len(self._in_flight))
        self._tell(decisions)
        return bool(chunk or self._in_flight or (policy.stop is None and self._outbox))

    def _next(self, chunks: Iterator[Chunk]) -> tuple[Chunk | None, list[Intent]]:
        """The next chunk with its intents; what fails there ends the run once all answers are in."""
        try:
            chunk = next(chunks, None)
            return chunk, self._mint(chunk.operations) if chunk else []
        except Exception as error:  # noqa: BLE001  raised again at the end of `deliver`
            self._policy.stop = self._policy.stop or error
            return None, []

    def _watch_breaker(self) -> None:
        away = self._outbox.circuit_breaker.is_open and self._policy.stop is None
        if away is not self._away:
            self._away = away
            profile = self._target.profile
            if away:
                limits = profile.retry
                up_to = (
                    f"{limits.give_up_after_s:.0f} s"
                    if self._outbox.circuit_breaker.worked
                    else f"{limits.attempts} times"
                )
                self._warn(f"{profile.base_url} does not work: asking now and then, at most {up_to}")
            elif self._policy.stop is None:
                self._warn(f"{profile.base_url} works again")

    def _learn(self, returned: SendResult) -> None:
        if returned.answered and returned.outcome is not None:
            assert returned.task.token is not None
            refused = returned.outcome.kind == "throttled"
            self._allowance.answered(
                returned.task.token,
                accepted=not refused,
                headers=returned.headers,
                retry_after_s=returned.outcome.retry_after_s if refused else None,
            )

    def _judge_one(self, returned: SendResult, decisions: Decisions) -> None:
        if returned.outcome is None:
            assert returned.error is not None
            self._policy.broke(returned.task, returned.error)
        elif returned.outcome.kind == "expired":  # the next one gets more time, if it is only the machine that is slow
            self._leave_within_s = min(LEAVE_AT_MOST_S, 2 * self._leave_within_s)
            self._policy.policy(returned.task, returned.outcome, decisions)
        elif returned.outcome.kind == "throttled":
            self._policy.throttled(returned.task, returned.outcome, decisions)
        else:
            self._policy.policy(returned.task, returned.outcome, decisions)

    def _mint(self, operations: Sequence[Operation]) -> list[Intent]:
        if not operations:
            return []
        counters: dict[tuple[Scope, int], int] = {}

        def count(tx: Transaction) -> None:
            for scope in {operation.scope for operation in operations}:
                hashes = [operation.key_hash for operation in operations if operation.scope == scope]
                for minted in (tx.bindings.counters(scope, hashes), tx.intents.counters(scope, hashes)):
                    for key_hash, number in minted.items():
                        counters[scope, key_hash] = max(number, counters.get((scope, key_hash), 0))

        self._state.ask(count)
        step = AFTER_RESTORE if self._state_restored else 1
        return [mint(o, self._target, step + counters.get((o.scope, o.key_hash), 0)) for o in operations]

    def _commit(self, chunk: Chunk | None, fresh: list[Intent], decisions: Decisions, leaving: list[SendTask]) -> None:
        now = self._clock.now()
        sending = [task.intent for task in leaving if task.purpose == "send"]
        for intent in sending:
            intent.leave(now)
        new, known = [*fresh, *decisions.successors], [intent for intent in sending if intent.id]

        def write(tx: Transaction) -> None:
            tx.intents.add(new, run_id=self._run_id, fence=self._state.fence, at=now)
            settlement.write(tx, decisions.settled, run_id=self._run_id, at=now)
            tx.intents.move(decisions.moved, at=now)
            tx.intents.note(decisions.attempts)
            if chunk:
                chunk.write(tx)
            tx.intents.mark_sending(known)  # the new ones were written as they leave
            if leaving:
                tx.buckets.put(self._target.name, self._allowance.bucket_state)

        if leaving:
            self._state.mark_sending()
        leave_by = self._clock.monotonic() + self._leave_within_s
        self._state.apply(write)
        for task in leaving:
            task.may_leave = lambda: self._clock.monotonic() <= leave_by
        self._in_flight.update((task.intent.id, task) for task in leaving)

    def _leaving(self, decisions: Decisions) -> list[SendTask]:
        room = self._allowance.room(len(self._in_flight))
        room = min(room, self._outbox.circuit_breaker.room(self._clock.monotonic(), len(self._in_flight)))
        count = min(room, self._outbox.due())
        tickets = self._allowance.take(count) if count > 0 else []
        tasks = self._outbox.take(len(tickets))
        for task, token in zip(tasks, tickets, strict=True):
            task.token = token
        return [task for task in tasks if self._policy.may_leave(task, decisions)]

    def _gather(self, *, wait: bool) -> list[SendResult]:
        """What has come back; waits for something to do if nothing can leave now."""
        wait_s = self._idle_s() if wait else 0.0
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

    def _idle_s(self) -> float:
        """How long nothing can leave, unless an answer comes first."""
        policy = self._policy
        if policy.stop is not None or not self._outbox:
            return 1.0 if self._in_flight else 0.0
        now = self._clock.monotonic()
        number = len(self._in_flight)
        if number and min(self._allowance.room(number), self._outbox.circuit_breaker.room(now, number)) == 0:
            return 1.0
        wait_s = (
            max(self._outbox.circuit_breaker.wait_s(now), self._allowance.wait_s())
            if self._outbox.due()
            else self._outbox.next_s(now)
        )
        return min(1.0, max(GATHER_S, wait_s))

    def _tell(self, decisions: Decisions) -> None:
        for item in decisions.settled:
            self._listener(item)

    def put_back(self) -> None:
        """After a stop: what was sent and may have been done is in doubt, all else is pending."""
        outcome = Outcome("unavailable", "the run was stopped")
        left = self._policy.give_back()
        now = self._clock.now()
        self._state.apply(lambda tx: tx.intents.move(left, at=now))
        for intent in left:
            self._listener(Settlement(intent, outcome))
