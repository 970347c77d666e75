"""Sender threads. They take requests and return outcomes, and have no access to the state.

Each has its own HTTP client: at 100 threads and 50 ms latency, a shared connection pool sends 387 requests a second,
separate clients send 1,360.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Literal, Self, TypeVar

from msgspec import Struct, field, structs

from crossdock.errors import RecordError
from crossdock.pacing.rate_limit_headers import RateHeaders
from crossdock.pacing.request_allowance import Token
from crossdock.reading.transport.http_answer_and_error_types import AmbiguousError, Answer, NotSentError
from crossdock.state import Intent, StoredBatch
from crossdock.values.author_code_errors import AUTH, AuthorCodeError, convert_author_errors
from crossdock.writing.delivery.operations_and_intents import old_and_new_changed_values, payload_after
from crossdock.writing.delivery.personal_data_masks import PersonalDataMasks
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
    def is_taken(self) -> bool:
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
    token: Token
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


class Senders:
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
                    result = self._send_batch(client, batch)
                except BaseException as error:  # noqa: BLE001  the coordinator fails the run with it
                    result = SendResult(batch, (), error=error)
                self.results.put(result)

    def _send_batch(self, client: Client, batch: SendBatch) -> SendResult:
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
            outcome = replace(answer_outcomes.rejected_by_author_code(error), kind="undecided" if is_sent else "unmade")
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
                    else self._failure_of_look_up_filter(client, intent.resource)
                )
            if failed is not None:
                return failed
        answer = self._send_request(client, batch)
        judged = _interpret_answer(lambda: self._outcome_of_answer(batch, answer), answer)
        is_gone = isinstance(judged, Outcome) and judged.kind == "absent" and answer.status in GONE
        if (
            is_gone
            and intent.operation != "create"
            and (reason := reason_if_gone_is_unproved(target, intent.resource, answer, partial(target.send, client)))
        ):
            return answer, Outcome("unavailable", reason, answer.status)
        return answer, judged

    def _failure_of_look_up_filter(self, client: Client, resource: str) -> tuple[Answer, Outcome] | None:
        """Look up a name that does not exist. The answer shows whether the target ignores the filter."""
        target, kind = self._target, self._target.resources[resource]
        name = external_id_of_no_record(target, resource)
        answer = target.send(client, resource, target.look_up(resource, name, None))
        outcome = _interpret_answer(lambda: target.found(resource, answer, ExpectedRecord(name=name)), answer)
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
                return [answer_outcomes.pending_if_accepted(each, each.status) for each in told]
            case "send":
                told = target.outcome(intent.resource, answer, self._expected_record(intent))
                return (
                    told
                    if self._counts_accepted_as_delivered(intent)
                    else answer_outcomes.pending_if_accepted(told, answer.status)
                )
            case "look_up":
                wanted = ExpectedRecord(target_id=intent.target_id, name=self._external_id_to_look_up(intent))
                told = answer_outcomes.unavailable_if_moved(target.found(intent.resource, answer, wanted), answer)
                return answer_outcomes.unavailable_if_cached(told, answer)
            case "stage":
                return answer_outcomes.outcome_of_staging_batch(answer)
            case "ping":
                return answer_outcomes.outcome_of_ping(answer)

    def _counts_accepted_as_delivered(self, intent: Intent) -> bool:
        """Return whether a request that the target has only accepted counts as delivered."""
        return self._target.resources[intent.resource].endpoint.accepted

    def _expected_record(self, intent: Intent) -> ExpectedRecord:
        return ExpectedRecord(
            intent.path,
            intent.target_id,
            self._external_id_after(intent),
            intent.operation == "delete",
            old_and_new_changed_values(intent, self._target),
        )

    def _external_id_to_look_up(self, intent: Intent) -> str | None:
        """Return the external id that the record has; None if any is right, since it is found by its id and renamed."""
        target, before = self._target, intent.before
        if before is None:
            return self._own_external_id(intent) if intent.operation == "create" else None
        held = target.name_in(intent.resource, before)
        changes = intent.operation == "update" and target.name_in(intent.resource, payload_after(intent)) != held
        return None if changes else held

    def _external_id_after(self, intent: Intent) -> str | None:
        """Return the external id that the record has after *intent*. An undo restores the record's earlier one."""
        if intent.operation != "update" or intent.scope.is_contribution:
            return self._own_external_id(intent)
        return self._target.name_in(intent.resource, payload_after(intent))

    def _own_external_id(self, intent: Intent) -> str | None:
        if intent.scope.is_contribution:
            return None
        return self._target.name_of(intent.resource, intent.scope.namespace, intent.identity.key)

    def _send_request(self, client: Client, batch: SendBatch) -> Answer:
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


def _interpret_answer(read: Callable[[], T], answer: Answer) -> T | Outcome:
    """Let the target's code interpret *answer*. If it fails, the request may have been executed."""
    try:
        return read()
    except (AuthorCodeError, RecordError) as error:
        return Outcome("undecided", f"{error.message} (the answer was HTTP {answer.status})", answer.status)


def _close_client(client: Client) -> None:
    with suppress(Exception), convert_author_errors("close", None, code=client):  # of any author: everything was sent
        client.close()
