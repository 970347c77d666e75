"""The coordinator's loop: intents into the state, bytes to the senders, outcomes back into the state.

One transaction a turn settles what came back, writes what is new and marks what leaves next; only after its commit do
the bytes leave. So one disk flush serves many requests, and after a crash at most what was in flight is in doubt.
"""

from __future__ import annotations

import heapq
import queue
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from crossdock.clock import Clock
from crossdock.delivery import retry, settling
from crossdock.delivery.operations import Operation, mint
from crossdock.delivery.outcomes import Outcome
from crossdock.delivery.senders import Senders, Sent
from crossdock.delivery.settling import Settled
from crossdock.errors import RemoteError, StoppedError, UnauthorizedError, UnavailableError
from crossdock.pacing.allowance import Allowance
from crossdock.platform.target import PlatformTarget
from crossdock.state import Intent, Scope, State, Transaction
from crossdock.state.intents import Status

GATHER_S = 0.004  # a turn that gathers outcomes this long shares its disk flush with more of them


class Chunk(Protocol):
    """Some operations, and what else their records leave in the state."""

    @property
    def operations(self) -> Sequence[Operation]: ...

    def write(self, tx: Transaction) -> None:
        """Write the rest: dead letters, waiting records, fingerprints of suppressed ones."""


@dataclass(slots=True)
class Counters:
    """Of a run so far. *requests* counts attempts, *throttled* those that were answered 429."""

    requests: int = 0
    throttled: int = 0


@dataclass(order=True, slots=True)
class _Delayed:
    ready_at: float
    number: int
    intent: Intent = field(compare=False)


class Dispatcher:
    """Delivers operations; one thread calls it and owns the state.

    Args:
        settled: Called once with each intent when this run is done with it, whatever became of it.
        interrupt: Set when the run shall end before its work is done.
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
        settled: Callable[[Settled], None],
        interrupt: threading.Event,
    ) -> None:
        self._state, self._target, self._allowance, self._senders = state, target, allowance, senders
        self._clock, self._run_id, self._listener = clock, run_id, settled
        self._interrupt = interrupt
        self._limit = target.profile.in_flight
        self._ready: deque[Intent] = deque()
        self._delayed: list[_Delayed] = []
        self._in_flight: dict[int, Intent] = {}
        self._rng = random.Random()  # noqa: S311  jitter needs no secrecy
        self._failures: Counter[int] = Counter()
        self._ambiguous: set[int] = set()
        self._accepted: set[str] = set()
        self._stop: BaseException | None = None
        self.counters = Counters()

    def park(self, intents: Sequence[Intent]) -> list[Intent]:
        """Leave in doubt what an earlier run sent and what cannot be sent again without risk.

        Returns:
            Those left in doubt: sent before, and the platform has forgotten their key by now, or knows no keys.
        """
        now, rule = self._clock.now(), self._target.profile
        forgotten = now - timedelta(seconds=rule.idempotency.kept_s)
        parked = [
            intent
            for intent in intents
            if intent.first_sent_at and (not rule.may_resend or intent.first_sent_at < forgotten)
        ]
        for intent in parked:
            intent.status = "in_doubt"
        with self._state.begin() as tx:
            tx.intents.move(parked, at=now)
        return parked

    def resume(self, intents: Sequence[Intent]) -> None:
        """Send what an earlier run left unsettled, with the same bytes; fails as `deliver` does.

        What never was sent goes to where the config says now: the path may have been the mistake.
        """
        for intent in intents:
            if intent.operation == "create" and intent.first_sent_at is None:
                intent.path = self._target.profile.path(intent.resource)
        self._ready.extend(intents)
        self._ambiguous.update(intent.id for intent in intents if intent.first_sent_at)
        self.deliver(iter(()))

    def deliver(self, chunks: Iterator[Chunk]) -> None:
        """Deliver all operations of *chunks*, in their order as far as answers allow.

        Raises:
            UnavailableError: If the platform stays out of reach; what was not settled stays in the state.
            UnauthorizedError: If it does not accept our credentials.
            StoppedError: If it was interrupted; what was in flight has been settled.
        """
        while self._turn(chunks):
            if self._interrupt.is_set() and self._stop is None:
                self._stop = StoppedError(
                    "stopped before its end", hint="what was in flight is settled; run again to go on"
                )
        if self._stop is not None:
            self._put_back()
            raise self._stop

    def _turn(self, chunks: Iterator[Chunk]) -> bool:
        chunk = None
        if self._stop is None and len(self._ready) < self._limit:
            chunk = next(chunks, None)
        fresh = self._mint(chunk.operations) if chunk else []
        settled = [item for sent in self._gather(wait=not chunk) if (item := self._judge(sent))]
        self._ready.extend(fresh)
        leaving = self._leaving() if self._stop is None else []
        if chunk or settled or leaving:
            self._commit(chunk, fresh, settled, leaving)
        if leaving:
            self.counters.requests += len(leaving)
            self._senders.put(leaving, len(self._in_flight))
        for item in settled:
            self._listener(item)
        return bool(chunk or self._in_flight or (self._stop is None and (self._ready or self._delayed)))

    def _mint(self, operations: Sequence[Operation]) -> list[Intent]:
        if not operations:
            return []
        counters: dict[tuple[Scope, int], int] = {}
        with self._state.begin() as tx:
            for scope in {operation.scope for operation in operations}:
                hashes = [operation.key_hash for operation in operations if operation.scope == scope]
                counters.update(((scope, h), n) for h, n in tx.intents.counters(scope, hashes).items())
        return [mint(o, self._target, self._counter(o, counters)) for o in operations]

    @staticmethod
    def _counter(operation: Operation, minted: dict[tuple[Scope, int], int]) -> int:
        bound = operation.binding.counter if operation.binding else 0
        return 1 + max(bound, minted.get((operation.scope, operation.key_hash), 0))

    def _commit(self, chunk: Chunk | None, fresh: list[Intent], settled: list[Settled], leaving: list[Intent]) -> None:
        now = self._clock.now()
        with self._state.begin() as tx:
            settling.write(tx, settled, run_id=self._run_id, at=now)
            if chunk:
                chunk.write(tx)
                tx.intents.add(fresh, run_id=self._run_id, fence=1, at=now)
            tx.intents.mark_sending(leaving, at=now)
            if leaving and self._allowance.spent_until:
                tx.buckets.put(self._target.name, self._allowance.spent_until)
        self._in_flight.update((intent.id, intent) for intent in leaving)

    def _leaving(self) -> list[Intent]:
        now = self._clock.monotonic()
        while self._delayed and self._delayed[0].ready_at <= now:
            self._ready.appendleft(heapq.heappop(self._delayed).intent)
        count = min(self._limit - len(self._in_flight), len(self._ready))
        return [self._ready.popleft() for _ in range(self._allowance.take_up_to(count))] if count > 0 else []

    def _gather(self, *, wait: bool) -> list[Sent]:
        """What has come back; waits for something to do if nothing can leave now."""
        wait_s = self._idle_s() if wait else 0.0
        results, gathered = self._senders.results, []
        if wait_s > 0 and not self._in_flight:
            self._clock.sleep(wait_s)
        elif wait_s > 0:
            try:
                gathered.append(results.get(timeout=wait_s))
                time.sleep(GATHER_S if len(self._in_flight) > 1 else 0)
            except queue.Empty:
                return []
        while True:
            try:
                gathered.append(results.get_nowait())
            except queue.Empty:
                return gathered

    def _idle_s(self) -> float:
        """How long nothing can leave, unless an answer comes first."""
        if self._stop is not None:
            return 1.0 if self._in_flight else 0.0
        waits = [1.0]
        if len(self._in_flight) < self._limit:
            if self._ready:
                waits.append(max(self._allowance.wait_s(), GATHER_S))
            if self._delayed:
                waits.append(max(self._delayed[0].ready_at - self._clock.monotonic(), self._allowance.wait_s(), 0.0))
        idle = not (self._in_flight or self._ready or self._delayed)
        return 0.0 if idle else min(waits)

    def _judge(self, sent: Sent) -> Settled | None:
        """Decide what an outcome means for its intent; None while it will be sent again."""
        intent, outcome = sent.intent, sent.outcome
        del self._in_flight[intent.id]
        if outcome is None:
            self._stop = self._stop or sent.error
            return None
        match outcome.kind:
            case "delivered" if outcome.platform_id or intent.platform_id:
                self._accepted.add(intent.resource)
                return self._to("delivered", intent, outcome)
            case "rejected" if outcome.status == 409 and intent.id in self._ambiguous:
                return self._again(intent, outcome)  # it is our own first attempt that is in the way
            case "rejected" | "unauthorized":
                concerns_all = self._concerns_all(intent, outcome)
                self._stop = self._stop or concerns_all
                return self._to("pending" if concerns_all else "rejected", intent, outcome)
            case "throttled":
                self.counters.throttled += 1
                self._allowance.refused(1.0 if outcome.retry_after_s is None else outcome.retry_after_s)
                self._ready.appendleft(intent)
                return None
            case _:
                return self._again(intent, outcome)

    def _again(self, intent: Intent, outcome: Outcome) -> Settled | None:
        """Send it again after a pause, unless that could do it twice, or it failed too often."""
        profile = self._target.profile
        if outcome.kind != "unavailable":
            self._ambiguous.add(intent.id)
            if not profile.may_resend:
                return self._to("in_doubt", intent, outcome)
        self._failures[intent.id] += 1
        failures, rule = self._failures[intent.id], profile.retry
        if failures >= rule.attempts:
            self._stop = self._stop or UnavailableError(
                f"{outcome.message or 'answers success without an id'} ({failures} attempts)",
                where=profile.base_url,
                hint="nothing was lost; run again when the platform answers",
            )
        pause = retry.pause_s(failures, base_s=rule.base_s, cap_s=rule.cap_s, rng=self._rng)
        ready_at = self._clock.monotonic() + max(pause, outcome.retry_after_s or 0.0)
        heapq.heappush(self._delayed, _Delayed(ready_at, intent.id, intent))
        return None

    def _concerns_all(self, intent: Intent, outcome: Outcome) -> RemoteError | None:
        """The error of a refusal that would meet every record, and says nothing about this one."""
        answer, where = f"{outcome.message} (HTTP {outcome.status})", self._target.profile.base_url
        if outcome.status == 401:
            hint = "check platform.auth.token; nothing was lost, run again when it is mended"
            return UnauthorizedError(f"refuses our credential: {answer}", where=where, hint=hint)
        if intent.resource in self._accepted:
            return None
        if outcome.status == 403:
            hint = "check platform.tenant and the scopes of the key; nothing was lost"
            return UnauthorizedError(f"lets us write no {intent.resource}: {answer}", where=where, hint=hint)
        if outcome.status in {404, 405} and intent.operation == "create":
            hint = f"check platform.base_url and platform.paths.{intent.resource}; nothing was lost"
            return RemoteError(f"has nothing at {intent.path}: {answer}", where=where, hint=hint)
        return None

    @staticmethod
    def _to(status: Status, intent: Intent, outcome: Outcome) -> Settled:
        intent.status = status
        if status == "pending":
            intent.first_sent_at = None  # it was answered and not done, so it is not in doubt
        return Settled(intent, outcome)

    def _put_back(self) -> None:
        """After a stop: what was sent and may have been done is in doubt, all else is pending."""
        left = [delayed.intent for delayed in self._delayed] + list(self._ready)
        outcome = Outcome("unavailable", "the run was stopped")
        put_back = [
            self._to("in_doubt" if intent.id in self._ambiguous else "pending", intent, outcome) for intent in left
        ]
        self._delayed.clear()
        self._ready.clear()
        with self._state.begin() as tx:
            tx.intents.move(left, at=self._clock.now())
        for item in put_back:
            self._listener(item)
