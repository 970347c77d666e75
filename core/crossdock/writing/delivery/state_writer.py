"""Writes one turn of the dispatcher into the state, in one transaction: new intents, outcomes and their records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import uuid4

from msgspec import Struct, field, structs

from crossdock.errors import RecordError, RefusedError, add_code_to_first_line
from crossdock.pacing.request_allowance import RequestAllowance
from crossdock.state import AcceptedBinding, Attempt, DeadLetter, Intent, Scope, StoredBatch, Transaction
from crossdock.state.tables.intents_and_stored_batches import ACKNOWLEDGED, Status
from crossdock.values.author_code_errors import AuthorCodeError
from crossdock.writing.delivery.delivery_context import DeliveringRun
from crossdock.writing.delivery.in_doubt_and_refusal_rules import MAY_BE_RESTORED, StateDoubts
from crossdock.writing.delivery.operations_and_intents import (
    Operation,
    batch_item_of_intent,
    encoded_payload_after_intent,
    make_intent_of_operation,
    make_intent_without_request,
    payload_after_intent,
)
from crossdock.writing.delivery.send_queue_and_threads import SendBatch, SendTask
from crossdock.writing.targets import answer_outcomes
from crossdock.writing.targets.answer_outcomes import ACCEPTED, Outcome
from crossdock.writing.targets.target import Answers, Request, Target


class Settlement(Struct, frozen=True):
    """What became of an intent: *acknowledged* after it had been handed over, in this run or an earlier one, unless a
    person has settled it as not delivered since.

    Attributes:
        said_by: The row that has acknowledged it, for `Attempt.message`; empty if that row cannot be about another
            operation.
    """

    intent: Intent
    outcome: Outcome
    untouched: bool = False
    acknowledged: bool = False
    said_by: str = ""


def store_outcomes_and_bindings(
    tx: Transaction,
    settled: Sequence[Settlement],
    *,
    run_id: int,
    at: datetime,
    doubts: StateDoubts = MAY_BE_RESTORED,
) -> None:
    """Move the intents, and write bindings or dead letters for their records.

    An operation that does not depend on what an unverified binding says verifies it.
    """
    _mark_in_doubt_if_id_taken(tx, settled, at=at)
    for item in settled:
        is_accepted = item.intent.status == "in_doubt" and item.intent.http_status == ACCEPTED
        if not is_accepted:  # what the target has accepted must not be sent again
            item.intent.http_status = item.outcome.status
        item.intent.untouched = item.untouched
        if item.intent.status == "delivered":
            item.intent.target_id = item.intent.target_id or item.outcome.target_id
    tx.intents.write_outcomes([item.intent for item in settled], at=at)
    delivered = [item for item in settled if item.intent.status == "delivered"]
    _write_bindings_of_delivered(tx, delivered, run_id=run_id, at=at, unverified=doubts.unverified)
    if doubts.restored and delivered:
        _mark_operations_from_backup_unverified(tx, delivered)
    refused = (
        _dead_letter_of_whole_record(tx, make_dead_letter_of_refusal(item))
        for item in settled
        if item.intent.status == "rejected"
    )
    dead_letters = [each for each in refused if each is not None]
    tx.bindings.clear_change_times(
        [
            (item.intent.scope.target, item.intent.resource, item.intent.target_id)
            for item in settled
            if item.intent.status == "rejected" and item.outcome.status == 412 and item.intent.target_id is not None
        ]
    )
    tx.dead_letters.put(dead_letters, run_id=run_id, at=at)
    taken = [item for item in settled if item.intent.status in {"delivered", "handed_over"}]
    through = _key_hashes_by_stream(
        item.intent for item in taken if item.intent.step != "open"
    )  # otherwise a step is to come
    for stream, key_hashes in through.items():
        tx.dead_letters.remove_records(stream, key_hashes)
    for stream, key_hashes in (*through.items(), *_key_hashes_by_stream(dead_letters).items()):
        tx.waiting_records.remove_records(stream, key_hashes)


def clear_payloads_of_affected_records(tx: Transaction, settled: Sequence[Settlement], target: Target) -> None:
    """Clear what the target held for records that the writes of others have changed there."""
    if getattr(type(target), "also_changes", None) is Answers.also_changes:
        return  # nothing, and no body needs to be read for it
    changed = {
        also
        for item in settled
        if item.intent.status == "delivered"
        for also in target.also_changes(item.intent.resource, payload_after_intent(item.intent))
    }
    for resource, beginning in sorted(changed):
        tx.bindings.clear_payloads_by_key_prefix(target.name, resource, beginning)


def clear_fingerprints_of_records_with_former_ids(
    tx: Transaction, settled: Sequence[Settlement], target: Target
) -> int:
    """Have records mapped again that refer to a record which is created again: they have its former id.

    Call it before the new ids are stored. It returns the number of these records.
    """
    number = 0
    again = [item for item in settled if item.intent.status == "delivered" and item.intent.counter > 1]
    for scope, key_hashes in _created_key_hashes_by_scope(again).items():
        if former := tx.bindings.former_target_ids(scope, key_hashes):
            for name, kind in target.resources.items():
                if scope.resource in kind.parents and not kind.write_once:
                    number += tx.bindings.clear_fingerprints_of_referring_records(target.name, name, former)
    return number


def _mark_in_doubt_if_id_taken(tx: Transaction, settled: Sequence[Settlement], *, at: datetime) -> None:
    found: dict[tuple[str, str], list[tuple[str, Intent]]] = defaultdict(list)
    for item in settled:
        intent, target_id = item.intent, item.outcome.target_id or item.intent.target_id
        is_whole = intent.operation != "delete" and not intent.scope.is_contribution
        if intent.status == "delivered" and is_whole and target_id is not None:
            found[intent.scope.target, intent.resource].append((target_id, intent))
    for (target, resource), each in found.items():
        owners = {
            target_id: (namespace, key_hash, key)
            for target_id, namespace, key_hash, key in tx.bindings.records_of_target_ids(
                target, resource, [name for name, _ in each]
            )
        }
        for target_id, intent in each:
            own = intent.scope.namespace, intent.identity.key_hash, intent.identity.key
            namespace, _, key = owner = owners.setdefault(target_id, own)
            if owner != own:
                intent.status = "in_doubt"
                if intent.operation == "create":
                    intent.http_status = ACCEPTED  # something was created: a second one must not be
                message = f"the target answered with an id that belongs to another record, {namespace}:{key}"
                tx.intents.store_attempt_results([Attempt(intent.id, intent.attempts, at, "in_doubt", None, message)])


def _dead_letter_of_whole_record(tx: Transaction, dead_letter: DeadLetter) -> DeadLetter | None:
    """Return the dead letter of the whole record if the first of two steps was rejected; None if it no longer waits."""
    if dead_letter.step != "open":
        return dead_letter
    identity = dead_letter.identity
    whole = tx.waiting_records.fingerprint(identity.stream, identity.key_hash)
    return (
        None
        if whole is None
        else structs.replace(dead_letter, identity=identity._replace(fingerprint=whole), step="whole")
    )


def _write_bindings_of_delivered(
    tx: Transaction, delivered: Sequence[Settlement], *, run_id: int, at: datetime, unverified: bool
) -> None:
    gone: dict[Scope, list[int]] = defaultdict(list)
    for item in delivered:
        if item.intent.operation == "delete":
            gone[item.intent.scope].append(item.intent.identity.key_hash)
    accepted = [
        _accepted_binding(item, unverified=unverified) for item in delivered if item.intent.operation != "delete"
    ]
    tx.bindings.put_accepted(accepted, run_id=run_id, at=at)
    for scope, key_hashes in _created_key_hashes_by_scope(delivered).items():
        tx.bindings.clear_contribution_fingerprints(scope, key_hashes)
    tx.bindings.store_record_versions([each for each in accepted if each.scope.is_contribution])
    if unverified:
        for item in delivered:
            if item.intent.operation != "delete" and not item.intent.before:
                tx.bindings.mark_verified(item.intent.scope, [_accepted_binding(item)])
    for scope, key_hashes in gone.items():
        tx.bindings.mark_deleted(scope, key_hashes, at=at)


def _mark_operations_from_backup_unverified(tx: Transaction, delivered: Sequence[Settlement]) -> None:
    """Compare again what a restored backup had left: a target answers an idempotency key that it knows as before."""
    last = tx.runs.last_restored_intent()
    for item in delivered:
        if item.intent.id <= last:
            kept = [] if item.intent.operation == "delete" else [_accepted_binding(item)]
            tx.unverified.mark_bindings_and_resource(item.intent.scope, kept)


def _created_key_hashes_by_scope(delivered: Sequence[Settlement]) -> dict[Scope, list[int]]:
    found: dict[Scope, list[int]] = defaultdict(list)
    for item in delivered:
        if item.intent.operation == "create" and not item.intent.scope.is_contribution:
            found[item.intent.scope].append(item.intent.identity.key_hash)
    return found


def _accepted_binding(item: Settlement, *, unverified: bool = False) -> AcceptedBinding:
    """Return what the target accepted. A possibly unverified record has no fingerprint, so it is mapped again."""
    intent, identity = item.intent, item.intent.identity
    assert intent.target_id is not None
    is_sure = not (unverified and intent.before)
    return AcceptedBinding(
        scope=intent.scope,
        key_hash=identity.key_hash,
        key=identity.key,
        target_id=intent.target_id,
        fingerprint=identity.fingerprint if intent.step == "whole" and is_sure else None,
        position=identity.position,
        step=intent.step,
        payload=encoded_payload_after_intent(intent).decode(),
        etag=item.outcome.etag,
        counter=intent.counter,
        changed_at=item.outcome.changed_at,
    )


def make_dead_letter_of_refusal(item: Settlement) -> DeadLetter:
    intent, outcome = item.intent, item.outcome
    return DeadLetter(
        identity=intent.identity,
        stage="delivery",
        code=outcome.reason or "rejected",
        pointer=outcome.pointer,
        message=outcome.message,
        raw=intent.raw,
        mapped=payload_after_intent(intent),
        step=intent.step,
    )


def _key_hashes_by_stream(items: Iterable[Intent | DeadLetter]) -> dict[str, list[int]]:
    by_stream: dict[str, list[int]] = defaultdict(list)
    for item in items:
        by_stream[item.identity.stream].append(item.identity.key_hash)
    return by_stream


LEAVE_WITHIN_S = 1.0  # after the lease was confirmed; a slower machine gets more time
LEAVE_AT_MOST_S = 20.0  # much less than `crossdock.state.db.run_lease.LEASE_S`


class DeliverableChunk(Protocol):
    @property
    def operations(self) -> Sequence[Operation]: ...

    @property
    def acknowledged_settlements(self) -> Sequence[Settlement]:
        """Operations that its records acknowledge."""

    def store_all_but_operations(self, tx: Transaction) -> None:
        """Write the rest: dead letters, waiting records, fingerprints of suppressed records."""


class StateWriter:
    """The dispatcher's access to the state.

    One commit settles what came back, stores what is new and marks what is sent next; requests are sent only after it.
    So one disk flush serves many requests, and after a crash at most the requests in flight are in doubt.
    """

    def __init__(self, run: DeliveringRun, target: Target, allowance: RequestAllowance, doubts: StateDoubts) -> None:
        self._run, self._target, self._allowance, self._doubts = run, target, allowance, doubts
        self._state, self._clock = run.state, run.clock
        self._salt = uuid4().hex
        self._leave_within_s = LEAVE_WITHIN_S

    def make_intents_to_store(self, operations: Sequence[Operation], decisions: TurnDecisions) -> list[Intent]:
        """Make intents, each with the next counter. One for which the target's code makes no request is rejected."""
        if not operations:
            return []
        counters: dict[tuple[Scope, int], int] = {}

        def count(tx: Transaction) -> None:
            for scope in {operation.scope for operation in operations}:
                hashes = [operation.identity.key_hash for operation in operations if operation.scope == scope]
                for known in (
                    tx.bindings.idempotency_counters(scope, hashes),
                    tx.intents.idempotency_counters(scope, hashes),
                ):
                    for key_hash, number in known.items():
                        counters[scope, key_hash] = max(number, counters.get((scope, key_hash), 0))

        self._state.run_read_only(count)
        made = list[Intent]()
        for operation in operations:
            counter = 1 + counters.get((operation.scope, operation.identity.key_hash), 0)
            try:
                made.append(
                    make_intent_of_operation(operation, self._target, counter, self._idempotency_salt(operation))
                )
            except (AuthorCodeError, RecordError) as error:
                made.append(make_intent_without_request(operation, self._target, counter))
                decisions.settle("rejected", made[-1], answer_outcomes.rejected_outcome_of_author_error(error))
        return made

    def _idempotency_salt(self, operation: Operation) -> str:
        """Return what makes the key differ from that of the same operation of another state.

        A target answers a key that it knows as it did then, and does nothing. Only creates that no look-up finds have
        the same key in each state that is trusted: a new state that sends them again makes no second record.
        """
        resource, kind = operation.scope.resource, operation.kind
        is_found = kind != "create" or self._target.resources[resource].endpoint.can_verify(kind)
        return self._salt if is_found or self._doubts.restored else ""

    def commit(
        self,
        decisions: TurnDecisions,
        chunk: DeliverableChunk | None,
        fresh: list[Intent],
        leaving: list[SendBatch],
    ) -> None:
        """Commit one turn. *leaving* may be sent within `LEAVE_WITHIN_S` of the lease's confirmation."""
        run, now = self._run, self._clock.now()
        sent = [
            task
            for batch in leaving
            for task in batch.tasks
            if task.purpose == "send" and not task.is_only_asked_for_result
        ]
        sending = [task.intent for task in sent]
        for intent in sending:
            intent.mark_as_sending(now)
        new, known = [*fresh, *decisions.successors], [intent for intent in sending if intent.id]

        with_former_ids = 0

        def write(tx: Transaction) -> None:
            nonlocal with_former_ids
            tx.intents.add(new, run_id=run.id, fence=run.state.fence_number, at=now)
            with_former_ids = clear_fingerprints_of_records_with_former_ids(tx, decisions.settled, self._target)
            store_outcomes_and_bindings(tx, decisions.settled, run_id=run.id, at=now, doubts=self._doubts)
            clear_payloads_of_affected_records(tx, decisions.settled, self._target)
            tx.intents.write_outcomes(decisions.intents_with_new_status, at=now)
            tx.intents.store_attempt_results(decisions.attempts)
            if chunk:
                chunk.store_all_but_operations(tx)
            tx.intents.write_as_sending(known)  # the new ones were written as sending
            for batch in leaving:
                self._store_batch_before_staging(tx, batch, at=now)
            for batch_id, receipt in decisions.receipts.items():
                tx.batches.store_receipt(batch_id, receipt)
            self._mark_batches_handed_over(tx, decisions.settled, at=now)
            if leaving:
                tx.buckets.put(self._target.name, self._allowance.bucket_state)
                tx.runs.store_request_counts(run.id, requests=run.counters.requests, throttled=run.counters.throttled)

        leave_by = self._clock.monotonic() + self._leave_within_s
        run_transaction = self._state.run_transaction_before_sending if sent else self._state.run_transaction
        run_transaction(write)
        if with_former_ids:
            run.warn(add_code_to_first_line(_warning_about_former_ids(with_former_ids), code="references_outdated"))
        for batch in leaving:
            batch.may_leave = lambda: self._clock.monotonic() <= leave_by
            if batch.stored is not None:
                first, *others = batch.tasks
                first.assign_stored_batch(others, batch.stored)

    def _store_batch_before_staging(self, tx: Transaction, batch: SendBatch, *, at: datetime) -> None:
        """Make and store a batch that is about to be staged, unless it is. *tx* may be repeated after its commit."""
        first = batch.tasks[0]
        if first.purpose != "stage" or first.stored is not None:
            return
        intents = [task.intent for task in batch.tasks]
        batch.key = batch.key or uuid4().hex
        stored = tx.batches.batch_added_under_key(batch.key)
        if stored is None:
            number = tx.batches.next_unused_number(self._target.name, self._target.first_number)
            request = self._make_batch_request_or_reason(batch, number, at)
            if request is None:
                return
            name, body = request.path.removeprefix("/"), request.body or b""
            resource = intents[0].resource
            place = self._target.destination(resource)
            made = StoredBatch(0, self._target.name, resource, number, name, place, body, len(intents))
            stored = tx.batches.add(made, batch.key, run_id=self._run.id, at=at)
        for intent in intents:
            intent.target_id = intent.target_id or self._external_id(intent)
        tx.batches.assign_operations(stored, intents)
        batch.stored = stored

    def _make_batch_request_or_reason(self, batch: SendBatch, number: int, at: datetime) -> Request | None:
        """Return the request with this number, or None and why there is none."""
        intents = [task.intent for task in batch.tasks]
        batch.unmade = None
        try:
            return self._target.stored_batch(
                intents[0].resource, [batch_item_of_intent(intent, self._target) for intent in intents], number, at
            )
        except RefusedError as error:
            place = f"{error.where}: " if error.where else ""
            batch.unmade = RecordError("invalid_draft", f"{place}{error.message}")
        except (RecordError, AuthorCodeError) as error:
            batch.unmade = error
        return None

    def _external_id(self, intent: Intent) -> str | None:
        return self._target.name_of(intent.resource, intent.scope.namespace, intent.identity.key)

    def _mark_batches_handed_over(self, tx: Transaction, settled: Sequence[Settlement], *, at: datetime) -> None:
        ids: dict[str, set[int]] = defaultdict(set)
        for intent in (item.intent for item in settled):
            if intent.batch_id is not None and intent.status in {"delivered", "handed_over"}:
                ids[intent.resource].add(intent.batch_id)
        for resource, of_resource in ids.items():
            profile = self._target.resources[resource].batch
            within_s = profile.acknowledged_within_s if profile is not None else None
            due_at = None if within_s is None else at + timedelta(seconds=within_s)
            tx.batches.mark_handed_over(of_resource, at=at, due_at=due_at)

    def double_time_allowed_to_send(self) -> None:
        """Double the time for the next request. One was too late to be sent, so the machine may be slow."""
        self._leave_within_s = min(LEAVE_AT_MOST_S, 2 * self._leave_within_s)

    def write_outcomes(self, intents: Sequence[Intent]) -> None:
        now = self._clock.now()
        self._state.run_transaction(lambda tx: tx.intents.write_outcomes(intents, at=now))


class TurnDecisions(Struct):
    """The decisions of one turn. *intents_with_new_status* get nothing else; *successors* are made from a look-up.

    *receipts* are what targets answered to parts of stored batches, by the ids of these.
    """

    settled: list[Settlement] = field(default_factory=list)
    intents_with_new_status: list[Intent] = field(default_factory=list)
    successors: list[Intent] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    receipts: dict[int, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.settled or self.intents_with_new_status or self.successors or self.attempts or self.receipts)

    def settle(self, status: Status, intent: Intent, outcome: Outcome, *, untouched: bool = False) -> None:
        intent.status = status
        self.settled.append(Settlement(intent, outcome, untouched=untouched))

    def add_acknowledged_settlements(self, settled: Sequence[Settlement], *, at: datetime) -> None:
        self.settled += settled
        for intent, said_by in ((item.intent, item.said_by) for item in settled if item.said_by):
            self.attempts.append(Attempt(intent.id, intent.attempts + 1, at, ACKNOWLEDGED, None, said_by))

    def keep_batch_receipt(self, task: SendTask, outcome: Outcome) -> None:
        """Keep what the target answered to a part of the stored batch of *task*."""
        if task.stored is not None and not task.is_led and outcome.receipt not in {None, task.stored.receipt}:
            assert outcome.receipt is not None
            task.keep_batch_receipt(outcome.receipt)
            self.receipts[task.stored.id] = outcome.receipt

    def record_doubt_reason(self, intent: Intent, outcome: Outcome, *, at: datetime) -> None:
        """Record why *intent* is in doubt, replacing the result of its last attempt."""
        if self.attempts and self.attempts[-1].intent_id == intent.id:
            self.attempts.pop()
        self.attempts.append(Attempt(intent.id, intent.attempts, at, "in_doubt", outcome.status, outcome.message))

    def add_attempt_result(self, task: SendTask, outcome: Outcome, *, at: datetime) -> None:
        intent = task.intent
        if (
            task.purpose == "send"
            and outcome.kind not in {"pending", "busy"}
            and (outcome.kind != "delivered" or intent.attempts > 1)
        ):
            attempt = Attempt(intent.id, intent.attempts, at, outcome.kind, outcome.status, outcome.message)
            self.attempts.append(attempt)


def _warning_about_former_ids(number: int) -> str:
    records = "1 record refers" if number == 1 else f"{number:,} records refer"
    return (
        f"{records} to a record that was created again, by its former id, until their source lists them again;"
        " 'crossdock reconcile -o repair.plan' makes a repair for those that it does not list"
    )
