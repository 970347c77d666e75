"""What is to be sent, in which order and when, and the threads that send it. They have no access to the state.

The queue waits for pauses, for the retry budget, and for the circuit breaker of a target that fails. Each thread has
its own HTTP client: at 100 threads and 50 ms latency, a shared connection pool sends 387 requests a second, separate
clients send 1,360.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
import queue
import random
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Literal, Self, TypeVar

from msgspec import Struct, field, structs

from crossdock.errors import RecordError
from crossdock.pacing.answer_headers import RateHeaders
from crossdock.pacing.backoff import MAX_DOUBLINGS, jittered_backoff_pause_s
from crossdock.pacing.request_allowance import TakenToken
from crossdock.reading.transport.http_answers_and_errors import AmbiguousError, Answer, NotSentError
from crossdock.state import Intent, StoredBatch
from crossdock.values import exact_json
from crossdock.values.author_code_errors import AUTH, AuthorCodeError, convert_author_errors
from crossdock.values.clock import Clock
from crossdock.writing.delivery.operations_and_intents import (
    PersonalDataMasks,
    old_and_new_values_of_update,
    payload_after_intent,
    payload_shown_in_batch,
)
from crossdock.writing.targets import answer_outcomes
from crossdock.writing.targets.answer_outcomes import ExpectedRecord, Outcome
from crossdock.writing.targets.target import (
    GONE,
    HAND_OVER,
    HAND_OVER_AGAIN,
    STAGE,
    Client,
    Request,
    Target,
    external_id_of_no_record,
    reason_if_gone_is_unproved,
)

T = TypeVar("T")


class RetryState(Struct):
    """The facts about an intent that was not delivered at the first attempt.

    Attributes:
        ambiguous: Whether it may have been executed.
        accepted: Whether the target has accepted it to execute it later, so that it must not be sent again.
        refusal: What becomes of it unless a look-up shows that it was executed all the same.
        interrupted: The purpose to which it returns after a ping.
        is_tag_refused: Whether the target has answered that it holds another version than that of the entity tag.
        throttled_since: When it was first answered 429; None if it was not.
    """

    failures: int = 0
    failing_since: float | None = None
    ambiguous: bool = False
    accepted: bool = False
    conflict: Outcome | None = None
    refusal: Outcome | None = None
    interrupted: Literal["send", "look_up"] = "send"
    status: int | None = None
    is_tag_refused: bool = False
    throttled_since: float | None = None

    def record_failure(self, now: float, status: int | None) -> None:
        self.failures, self.status = self.failures + 1, status
        self.failing_since = now if self.failing_since is None else self.failing_since


class SendTask(Struct):
    """What is to be sent for an intent.

    Attributes:
        purpose: ``send`` it, ``stage`` its stored batch before that, ``look_up`` whether it was executed, or ``ping`` a
            target that seems to fail.
        batch_limit: The most operations of the next request, smaller after a failure; None for those of the target.
        batch_size: The number of operations of its last request, this one included.
        is_first: Whether it is the one of them that stands for the request where requests are counted.
        stored: The stored batch that it is a part of. The first task of the batch stands for the *others* in the queue.
        is_led: Whether that first task stands for this one.
        is_staged: Whether the first part of that was sent.
        group: What the operations of its stored batch have in common, once that is known.
        is_pending: Whether its stored batch waits for the target, which carries it out later, or others before it.
        size: The bytes that it takes in a stored batch of limited size, once they are known.
    """

    intent: Intent
    purpose: Literal["send", "stage", "look_up", "ping"] = "send"
    probe: bool = False
    retry_state: RetryState = field(default_factory=RetryState)
    batch_limit: int | None = None
    batch_size: int = 1
    is_first: bool = True
    stored: StoredBatch | None = None
    others: Sequence[SendTask] = ()
    is_led: bool = False
    is_staged: bool = False
    group: str | None = None
    size: int | None = None
    is_pending: bool = False

    @property
    def is_only_asked_for_result(self) -> bool:
        """Whether the target has its stored batch already, and is only asked what became of it."""
        return self.is_pending and self.retry_state.ambiguous

    def assign_stored_batch(self, others: Sequence[SendTask], stored: StoredBatch) -> None:
        """Make this task and *others* those of a stored batch."""
        self.others = others
        for number, task in enumerate((self, *others)):
            task.stored, task.is_led, task.batch_size = stored, number > 0, 1

    def keep_batch_receipt(self, receipt: str) -> None:
        """Keep what the target needs for the next part of the stored batch."""
        assert self.stored is not None
        self.stored = structs.replace(self.stored, receipt=receipt)


class SendBatch(Struct):
    """One request: for one task, or for several operations that the target takes together.

    Attributes:
        may_leave: Returns False once the time in which its transaction permits sending is over.
        stored: The stored batch that its transaction has made of the tasks; None for others.
        unmade: Why that could not be made of them.
        key: What makes the transaction that stores it known if it is repeated; empty until then.
    """

    tasks: Sequence[SendTask]
    token: TakenToken
    may_leave: Callable[[], bool] = lambda: True
    stored: StoredBatch | None = None
    unmade: RecordError | AuthorCodeError | None = None
    key: str = ""


class SendResult(Struct, frozen=True):
    """A finished request.

    Attributes:
        outcomes: One for each task; none after an error.
        refused_whole: Whether one refusal is the answer to several operations.
        error: An unexpected exception.
        headers: The rate limit that the answer reports.
    """

    batch: SendBatch
    outcomes: Sequence[Outcome]
    refused_whole: bool = False
    error: BaseException | None = None
    answered: bool = False
    headers: RateHeaders | None = None


class SenderThreads:
    """A pool of at most *limit* threads, one for each request in flight."""

    def __init__(self, target: Target, limit: int, masks: PersonalDataMasks | None = None) -> None:
        self._target = target
        self._masks = masks or PersonalDataMasks({})
        self._limit = limit
        self._work: queue.SimpleQueue[SendBatch | None] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[SendResult] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._resources_with_verified_filter: set[str] = (
            set()
        )  # resources whose look-up by name was verified in this run
        self._verifying = threading.Lock()

    def give_batches_to_threads(self, batches: Sequence[SendBatch], in_flight: int) -> None:
        """Send *batches*, which *in_flight* includes."""
        while len(self._threads) < min(in_flight, self._limit):
            thread = threading.Thread(target=self._send_until_closed, name=f"sender-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        for batch in batches:
            self._work.put(batch)

    def _send_until_closed(self) -> None:
        with ExitStack() as stack:
            client: Client | None = None
            while (batch := self._work.get()) is not None:
                try:
                    if client is None:
                        client = self._target.client()
                        stack.callback(_close_client, client)
                    result = self._send_batch_and_judge_answer(client, batch)
                except BaseException as error:  # noqa: BLE001  the coordinator fails the run with it
                    result = SendResult(batch, (), error=error)
                self.results.put(result)

    def _send_batch_and_judge_answer(self, client: Client, batch: SendBatch) -> SendResult:
        task = batch.tasks[0]
        try:
            answer, judged = self._send_for_answer_and_outcome(client, batch)
            limit = self._target.limit(answer)
            is_refusal = isinstance(judged, Outcome) and judged.kind in {"rejected", "changed"}  # 4xx, and 412
            refused_whole, each = is_refusal and len(batch.tasks) > 1, self._masked_outcomes_of_tasks(batch, judged)
            _mark_decided_task_as_first(batch, each)
            return SendResult(batch, each, refused_whole, answered=True, headers=limit)
        except (NotSentError, AmbiguousError) as error:
            return SendResult(
                batch,
                self._masked_outcomes_of_tasks(
                    batch, answer_outcomes.outcome_without_answer(error, harmless=task.purpose != "send")
                ),
            )
        except (AuthorCodeError, RecordError) as error:
            if isinstance(error, AuthorCodeError) and error.method == AUTH:
                raise  # it was not sent, and no other request will be
            is_sent = isinstance(error, AuthorCodeError) and error.method == "send" and task.purpose == "send"
            outcome = replace(
                answer_outcomes.rejected_outcome_of_author_error(error), kind="undecided" if is_sent else "unmade"
            )
            return SendResult(batch, self._masked_outcomes_of_tasks(batch, outcome))

    def _masked_outcomes_of_tasks(self, batch: SendBatch, told: Outcome | Sequence[Outcome]) -> list[Outcome]:
        intents = [task.intent for task in batch.tasks]
        if isinstance(told, Outcome):  # it may show what any of them has
            return [self._masks.masked_outcome(intents, told)] * len(intents)
        return [self._masks.masked_outcome([intent], one) for intent, one in zip(intents, told, strict=True)]

    def _send_for_answer_and_outcome(
        self, client: Client, batch: SendBatch
    ) -> tuple[Answer, Outcome | Sequence[Outcome]]:
        task, target = batch.tasks[0], self._target
        intent = task.intent
        if task.purpose == "look_up" and intent.target_id is None:
            with self._verifying:
                failed = (
                    None
                    if intent.resource in self._resources_with_verified_filter
                    else self._outcome_if_look_up_filter_fails(client, intent.resource)
                )
            if failed is not None:
                return failed
        answer = self._send_request_of_batch(client, batch)
        judged = _interpreted_answer_or_undecided(lambda: self._outcome_of_answer(batch, answer), answer)
        is_gone = isinstance(judged, Outcome) and judged.kind == "absent" and answer.status in GONE
        if (
            is_gone
            and intent.operation != "create"
            and (reason := reason_if_gone_is_unproved(target, intent.resource, answer, partial(target.send, client)))
        ):
            return answer, Outcome("unavailable", reason, answer.status)
        return answer, judged

    def _outcome_if_look_up_filter_fails(self, client: Client, resource: str) -> tuple[Answer, Outcome] | None:
        """Look up a name that does not exist. The answer shows whether the target ignores the filter."""
        target, kind = self._target, self._target.resources[resource]
        name = external_id_of_no_record(target, resource)
        answer = target.send(client, resource, target.look_up(resource, name, None))
        outcome = _interpreted_answer_or_undecided(
            lambda: target.found(resource, answer, ExpectedRecord(name=name)), answer
        )
        if outcome.kind == "absent":
            self._resources_with_verified_filter.add(resource)
            return None
        if outcome.status == 200 and outcome.kind != "undecided":
            setting = f"{target.place}.{kind.look_up_setting}"
            message = (
                f"ignores the filter {kind.look_up_filter or 'of a look-up'}; if it has none, set {setting}: false"
            )
            outcome = Outcome("unavailable", message, 200)
        return answer, outcome

    def _is_sent_in_batch(self, task: SendTask) -> bool:
        kind = self._target.resources[task.intent.resource]
        return task.purpose == "send" and kind.together(task.intent.operation) is not None

    def _outcome_of_answer(self, batch: SendBatch, answer: Answer) -> Outcome | Sequence[Outcome]:
        task, target = batch.tasks[0], self._target
        intent = task.intent
        match task.purpose:
            case "send" if self._is_sent_in_batch(task):
                expected = [self._expected_record(task.intent) for task in batch.tasks]
                told = target.batch_outcomes(intent.resource, answer, expected)
                if isinstance(told, Outcome) or self._counts_accepted_as_delivered(intent):
                    return told
                return [answer_outcomes.outcome_or_pending_if_accepted(each, each.status) for each in told]
            case "send":
                told = target.outcome(intent.resource, answer, self._expected_record(intent))
                return (
                    told
                    if self._counts_accepted_as_delivered(intent)
                    else answer_outcomes.outcome_or_pending_if_accepted(told, answer.status)
                )
            case "look_up":
                wanted = ExpectedRecord(target_id=intent.target_id, name=self._external_id_to_look_up(intent))
                told = answer_outcomes.outcome_or_unavailable_if_moved(
                    target.found(intent.resource, answer, wanted), answer
                )
                return answer_outcomes.outcome_or_unavailable_if_cached(told, answer)
            case "stage":
                return answer_outcomes.outcome_of_staging_batch(answer)
            case "ping":
                return answer_outcomes.outcome_of_ping(answer)

    def _counts_accepted_as_delivered(self, intent: Intent) -> bool:
        return self._target.resources[intent.resource].endpoint.accepted

    def _expected_record(self, intent: Intent) -> ExpectedRecord:
        return ExpectedRecord(
            intent.path,
            intent.target_id,
            self._external_id_after(intent),
            intent.operation == "delete",
            old_and_new_values_of_update(intent, self._target),
        )

    def _external_id_to_look_up(self, intent: Intent) -> str | None:
        """Return the external id that the record has; None if any is right, since it is found by its id and renamed."""
        target, before = self._target, intent.before
        if before is None:
            return self._own_external_id(intent) if intent.operation == "create" else None
        held = target.name_in(intent.resource, before)
        changes = intent.operation == "update" and target.name_in(intent.resource, payload_after_intent(intent)) != held
        return None if changes else held

    def _external_id_after(self, intent: Intent) -> str | None:
        """Return the external id that the record has after *intent*. An undo restores the record's earlier one."""
        if intent.operation != "update" or intent.scope.is_contribution:
            return self._own_external_id(intent)
        return self._target.name_in(intent.resource, payload_after_intent(intent))

    def _own_external_id(self, intent: Intent) -> str | None:
        if intent.scope.is_contribution:
            return None
        return self._target.name_of(intent.resource, intent.scope.namespace, intent.identity.key)

    def _send_request_of_batch(self, client: Client, batch: SendBatch) -> Answer:
        task, target = batch.tasks[0], self._target
        intent = task.intent
        match task.purpose:
            case "stage" | "send" if task.stored is not None:
                method = STAGE if task.purpose == "stage" else HAND_OVER
                method = HAND_OVER_AGAIN if method == HAND_OVER and task.retry_state.ambiguous else method
                request = Request(method, f"/{task.stored.name}", task.stored.body, receipt=task.stored.receipt)
                return target.send(client, intent.resource, request, may_leave=batch.may_leave)
            case "send":
                requests = [Request(one.intent.method, one.intent.path, one.intent.body) for one in batch.tasks]
                if self._is_sent_in_batch(task):
                    request = target.batch(intent.resource, requests)
                    return target.send(client, intent.resource, request, may_leave=batch.may_leave)
                return target.send(
                    client, intent.resource, requests[0], intent.idempotency_key, intent.if_match, batch.may_leave
                )
            case "look_up":
                request = target.look_up(intent.resource, self._external_id_to_look_up(intent), intent.target_id)
                return target.send(client, intent.resource, request)
            case _:
                return target.send(client, intent.resource, target.ping(intent.resource))

    def close(self) -> None:
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, Exception):
            return  # return at once: the threads are daemons, and their intents are in the state
        self.close()


def _mark_decided_task_as_first(batch: SendBatch, told: Sequence[Outcome]) -> None:
    """Let an operation that was decided stand for the request, since it shows that the target works."""
    decided = (number for number, one in enumerate(told) if one.kind not in {"unavailable", "in_doubt"})
    first = next(decided, 0)
    for number, task in enumerate(batch.tasks):
        task.is_first = number == first


def _interpreted_answer_or_undecided(read: Callable[[], T], answer: Answer) -> T | Outcome:
    """Let the target's code interpret *answer*. If it fails, the request may have been executed."""
    try:
        return read()
    except (AuthorCodeError, RecordError) as error:
        return Outcome("undecided", f"{error.message} (the answer was HTTP {answer.status})", answer.status)


def _close_client(client: Client) -> None:
    with suppress(Exception), convert_author_errors("close", None, code=client):  # of any author: everything was sent
        client.close()


WATCHED = 20  # latest outcomes
OPENS_AT = 16  # failures among them: in an outage nearly all fail; at half of them, work still gets done
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 30.0  # between two probes; half of it is fixed, half is jitter


class CircuitBreaker:
    """Limits the requests in flight, on the caller's clock.

    It opens after `OPENS_AT` failures among the last `WATCHED` outcomes, and then lets one probe through after each
    pause. After a successful probe the limit grows by one with each success, as in TCP, up to *limit*.
    """

    def __init__(self, limit: int, rng: random.Random) -> None:
        self._limit, self._rng = limit, rng
        self._latest: deque[bool] = deque(maxlen=WATCHED)
        self._window = limit
        self._probe_at: float | None = None  # set while it is open
        self.probes = 0
        self.failing_since: float | None = None
        self.worked = False

    @property
    def is_open(self) -> bool:
        return self._probe_at is not None

    def free_slots(self, now: float, in_flight: int) -> int:
        if self._probe_at is not None:
            return 1 if in_flight == 0 and now >= self._probe_at else 0
        return max(0, self._window - in_flight)

    def seconds_to_next_probe(self, now: float) -> float:
        return 0.0 if self._probe_at is None else max(0.0, self._probe_at - now)

    def record_success(self) -> None:
        """Record that the target decided on a request, whatever the decision."""
        self.worked, self.failing_since, self.probes = True, None, 0
        if self._probe_at is not None:
            self._probe_at, self._window = None, 1
            self._latest.clear()
        elif self._window < self._limit:
            self._window += 1
        self._latest.append(True)

    def record_failure(self, now: float, retry_after_s: float | None, *, probe: bool) -> None:
        """Record that a request got no decision. Only a *probe* was sent while the breaker was open."""
        if self.failing_since is None:
            self.failing_since = now
        self._latest.append(False)
        if self._probe_at is not None:
            if not probe:
                return
            self.probes += 1
        elif self._latest.count(False) < OPENS_AT:
            return
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self.probes, MAX_DOUBLINGS))
        pause = longest / 2 + jittered_backoff_pause_s(1, base_s=longest / 2, cap_s=longest, rng=self._rng)
        self._probe_at = now + max(pause, retry_after_s or 0.0)


DELAYED = 20  # multiple of the limit of requests in flight: a bound on memory
MORE = 1.25  # times as many operations must be ready before they are put together again, which costs time for each
TOGETHER_S = 0.01  # retries of one request are due within this time, and share the next one
LOOK_AHEAD = 1_000  # operations of other kinds that a batch may pass over, so that mixed ones fill their batches


@dataclasses.dataclass(order=True, slots=True)
class _DelayedTask:
    ready_at: float
    number: int
    task: SendTask = dataclasses.field(compare=False)
    free: bool = dataclasses.field(compare=False)


class SendQueue:
    """The operations that are to be sent.

    Args:
        limit: Most requests in flight.
        sizes: How many operations a request takes, by resource and operation; otherwise one.
        mixed: The resources whose requests take operations of all kinds, and the member that those have in common.
        most_bytes: The most bytes of a request, by resource.
        size_of: Returns the bytes that an operation takes in one.
    """

    def __init__(
        self,
        clock: Clock,
        limit: int,
        rng: random.Random,
        sizes: Mapping[tuple[str, str], int] = {},
        mixed: Mapping[str, str | None] = {},
        most_bytes: Mapping[str, int] = {},
        size_of: Callable[[Intent], int] = lambda _: 0,
    ) -> None:
        self._clock, self._limit, self._sizes = clock, limit * max(sizes.values(), default=1), sizes
        self._mixed, self._most_bytes, self._size_of = mixed, most_bytes, size_of
        self._ready: deque[SendTask] = deque()
        self._delayed: list[_DelayedTask] = []
        self._held: list[SendTask] = []
        self._numbers = count()
        self._too_few = 0  # operations that were ready when no batch of them was full
        self._budget = RetryBudget(clock.monotonic())
        self.circuit_breaker = CircuitBreaker(limit, rng)

    def put(self, task: SendTask, *, first: bool = False) -> None:
        if task.is_led:
            return
        if first:
            self._ready.appendleft(task)
        else:
            self._ready.append(task)

    def delay(self, task: SendTask, seconds: float, *, free: bool = False) -> None:
        """Send *task* after *seconds*, when the retry budget allows. A *free* one costs no budget."""
        if task.is_led:
            return
        ready_at = self._clock.monotonic() + seconds
        heapq.heappush(self._delayed, _DelayedTask(ready_at, next(self._numbers), task, free))

    def hold_back_until_released(self, task: SendTask) -> None:
        if not task.is_led:
            self._held.append(task)

    def release_held_back(self, but: AbstractSet[str] = frozenset(), *, at_end: bool = True) -> None:
        """Make ready what is held back, except of the streams *but*, and *at_end* of a run what is to be sent again."""
        held, self._held = self._held, []
        for task in held:
            intent = task.intent
            waits = intent.identity.stream in but or (intent.is_to_be_sent_again and not at_end)
            (self._held if waits else self._ready).append(task)

    def remove_held_back(self, ids: AbstractSet[int]) -> None:
        self._held = [task for task in self._held if task.intent.id not in ids]

    def take_batches(self, number: int, *, only_full: bool = False) -> list[list[SendTask]]:
        """Take the operations of at most *number* requests. *only_full* leaves those that others could still join."""
        taken, left = list[list[SendTask]](), list[list[SendTask]]()
        if only_full and len(self._ready) < self._too_few * MORE:
            return taken
        while self._ready and len(taken) < number:
            batch, size = self._next_batch_and_size_limit()
            (left if only_full and len(batch) < size else taken).append(batch)
        self.put_back_batches(left)
        self._too_few = 0 if taken else len(self._ready)
        return taken

    def _next_batch_and_size_limit(self) -> tuple[list[SendTask], int]:
        first = self._ready.popleft()
        size = self._batch_size(first)
        if first.stored is not None:
            for other in first.others:
                other.purpose, other.is_staged = first.purpose, first.is_staged
            return [first, *first.others], 1
        if size == 1:
            return [first], 1
        batch, others, records, kind = (
            [first],
            list[SendTask](),
            {_identity_of_record(first)},
            self._facts_shared_by_batch(first),
        )
        left = self._most_bytes.get(first.intent.resource, math.inf) - self._size_in_bytes(first)
        while size > len(batch) and self._ready and len(others) < LOOK_AHEAD:
            task = self._ready.popleft()
            fits = (
                self._facts_shared_by_batch(task) == kind
                and self._batch_size(task) == size
                and _identity_of_record(task) not in records
            )
            if fits and (left := left - self._size_in_bytes(task)) < 0:
                others.append(task)
                size = len(batch)
                break
            (batch if fits else others).append(task)
            records.add(_identity_of_record(task))
        self._ready.extendleft(reversed(others))
        return batch, size

    def _size_in_bytes(self, task: SendTask) -> int:
        if task.intent.resource not in self._most_bytes:
            return 0
        if task.size is None:
            task.size = self._size_of(task.intent)
        return task.size

    def _facts_shared_by_batch(self, task: SendTask) -> tuple[str, ...]:
        intent = task.intent
        if intent.resource in self._mixed:
            if task.group is None:
                task.group = _batch_group_of_intent(intent, self._mixed[intent.resource])
            return task.purpose, intent.resource, task.group
        return task.purpose, intent.resource, intent.operation, intent.method, intent.path

    def _batch_size(self, task: SendTask) -> int:
        if task.purpose != "send":
            return 1
        most = self._sizes.get((task.intent.resource, task.intent.operation), 1)
        return most if task.batch_limit is None else min(most, task.batch_limit)

    def put_back_batches(self, batches: Sequence[Sequence[SendTask]]) -> None:
        """Put back what `take_batches` has taken, at its place."""
        for batch in reversed(batches):
            self._ready.extendleft(task for task in reversed(batch) if not task.is_led)

    def count_sent_requests(self, batches: Sequence[Sequence[SendTask]]) -> None:
        """Count the requests that are sent: first attempts earn retries."""
        self._budget.add_first_attempts(
            sum(batch[0].purpose == "send" and batch[0].intent.attempts == 0 for batch in batches)
        )
        for batch in batches:
            for number, task in enumerate(batch):
                if task.stored is None:
                    task.batch_size, task.is_first = len(batch), number == 0
                task.probe = self.circuit_breaker.is_open

    def remove_tasks(self, resource: str | None = None) -> list[SendTask]:
        """Take out the operations on *resource*, or all of them, also those that are held."""
        left = [*(delayed.task for delayed in self._delayed), *self._ready, *self._held]
        taken = [task for task in left if resource in {None, task.intent.resource}]
        out = {id(task) for task in taken}
        self._delayed = [delayed for delayed in self._delayed if id(delayed.task) not in out]
        heapq.heapify(self._delayed)
        self._ready = deque(task for task in self._ready if id(task) not in out)
        self._held = [task for task in self._held if id(task) not in out]
        return [each for task in taken for each in (task, *task.others)]

    def __bool__(self) -> bool:
        return bool(self._ready or self._delayed)

    @property
    def has_only_batches_awaiting_results(self) -> bool:
        """Whether nothing is left but stored batches that their target carries out later."""
        return not self._ready and bool(self._delayed) and all(each.task.is_pending for each in self._delayed)

    @property
    def has_few_ready_operations_and_no_outage(self) -> bool:
        """Whether few are ready, and no outage delays the rest. Failing records must not block the others."""
        many = len(self._ready) >= self._limit or len(self._delayed) >= DELAYED * self._limit
        return not many and not (self and self.circuit_breaker.is_open)

    def move_due_and_count_ready(self) -> int:
        """Make retries ready whose pause is over and that the budget allows, and count the ready tasks."""
        now, due = self._clock.monotonic(), list[SendTask]()
        while (
            self._delayed
            and self._delayed[0].ready_at <= now
            and (self._delayed[0].free or self._budget.remaining(now))
        ):
            delayed = heapq.heappop(self._delayed)
            self._budget.spend(0 if delayed.free else 1 / self._batch_size(delayed.task))
            due.append(delayed.task)
        self._ready.extendleft(reversed(due))
        return len(self._ready)

    def seconds_to_next_task(self, now: float) -> float:
        """Return the seconds until a delayed task, and those shortly after it, are ready.

        0.0 without one, 1.0 if it only waits for the budget.
        """
        if not self._delayed:
            return 0.0
        first = self._delayed[0].ready_at
        if first <= now:
            return 1.0
        return max(each.ready_at for each in self._delayed if each.ready_at <= first + TOGETHER_S) - now


def _batch_group_of_intent(intent: Intent, member: str | None) -> str:
    if member is None:
        return ""
    return batch_group_of_payload(payload_shown_in_batch(intent), member)


def batch_group_of_payload(payload: Mapping[str, Any], member: str | None) -> str:
    """Return what operations of one stored batch have in common: the value of *member*, as JSON."""
    return "" if member is None else exact_json.dumps(payload.get(member)).decode()


def _identity_of_record(task: SendTask) -> tuple[object, ...]:
    """Return what makes two operations on one record equal: they are never in one request."""
    intent = task.intent
    return (intent.target_id,) if intent.target_id is not None else (intent.scope, intent.identity.key_hash)


class RetryBudget:
    """The budget for retries: a tenth of the first attempts (Google SRE book, chapter 21) and some per second.

    Without it, a recovering target would receive a multiple of its load. The minimum allows retries on a poor network.
    """

    FLOOR = 10
    FLOOR_PER_S = 10.0

    def __init__(self, now: float) -> None:
        self._began, self._firsts, self._spent = now, 0, 0.0

    def add_first_attempts(self, number: int) -> None:
        self._firsts += number

    def remaining(self, now: float) -> int:
        return max(0, int(self.FLOOR + self._firsts / 10 + (now - self._began) * self.FLOOR_PER_S - self._spent))

    def spend(self, number: float) -> None:
        self._spent += number
