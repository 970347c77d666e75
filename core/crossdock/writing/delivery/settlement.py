"""Stores the outcomes of intents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct, structs

from crossdock.state import AcceptedBinding, Attempt, DeadLetter, Intent, Scope, Transaction
from crossdock.writing.delivery.in_doubt_and_refusal_rules import MAY_BE_RESTORED, StateDoubts
from crossdock.writing.delivery.operations_and_intents import encoded_payload_after, payload_after
from crossdock.writing.targets.answer_outcomes import ACCEPTED, Outcome
from crossdock.writing.targets.target import Answers, Target


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
    _write_bindings(tx, delivered, run_id=run_id, at=at, unverified=doubts.unverified)
    if doubts.restored and delivered:
        _mark_operations_from_backup_unverified(tx, delivered)
    refused = (
        _dead_letter_of_whole_record(tx, make_dead_letter(item)) for item in settled if item.intent.status == "rejected"
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
        for also in target.also_changes(item.intent.resource, payload_after(item.intent))
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


def _write_bindings(
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
        payload=encoded_payload_after(intent).decode(),
        etag=item.outcome.etag,
        counter=intent.counter,
        changed_at=item.outcome.changed_at,
    )


def make_dead_letter(item: Settlement) -> DeadLetter:
    intent, outcome = item.intent, item.outcome
    return DeadLetter(
        identity=intent.identity,
        stage="delivery",
        code=outcome.reason or "rejected",
        pointer=outcome.pointer,
        message=outcome.message,
        raw=intent.raw,
        mapped=payload_after(intent),
        step=intent.step,
    )


def _key_hashes_by_stream(items: Iterable[Intent | DeadLetter]) -> dict[str, list[int]]:
    by_stream: dict[str, list[int]] = defaultdict(list)
    for item in items:
        by_stream[item.identity.stream].append(item.identity.key_hash)
    return by_stream
