"""Decisions of an operator about operations in doubt and records to drop."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import structs

from crossdock.errors import ConfigError
from crossdock.state import Binding, DeadLetter, Intent, RecordFilter, Scope, Transaction, WaitingRecord
from crossdock.state.tables.intents_and_stored_batches import AWAITED, Status
from crossdock.values import exact_json
from crossdock.values.field_types import is_valid_target_id
from crossdock.writing.delivery import in_doubt_and_refusal_rules, state_writer
from crossdock.writing.delivery.operations_and_intents import payload_after_intent
from crossdock.writing.delivery.state_writer import Settlement
from crossdock.writing.targets.answer_outcomes import Outcome


def raise_if_target_id_impossible(intents: Sequence[Intent], target_id: str | None) -> None:
    """Raise ConfigError if *target_id* cannot be the id of these records, as far as that shows without a look-up."""
    if target_id is not None and not is_valid_target_id(target_id):
        raise ConfigError(
            "an id must have 1 to 64 printable characters and not be '.' or '..'",
            where=target_id,
            code="decision_impossible",
        )
    has_no_id = any(intent.operation == "create" and intent.target_id is None for intent in intents)
    if (has_no_id and target_id is None) or (target_id is not None and len(intents) > 1):
        hint = "look it up at the target, then: crossdock records resolve STREAM KEY --delivered-as ID"
        raise ConfigError(
            "to settle a create, give the record's id at the target, one record at a time",
            hint=hint,
            code="decision_impossible",
        )
    others = {intent.target_id for intent in intents} - {None, target_id}
    if target_id is not None and others:
        raise ConfigError(
            f"the record has the id {others.pop()} at the target", where=target_id, code="decision_impossible"
        )


def settle_intents_as_delivered(
    tx: Transaction, intents: Sequence[Intent], target_id: str | None, *, at: datetime
) -> None:
    """Settle operations in doubt as delivered. A create needs *target_id*.

    Raises ConfigError as `raise_if_target_id_impossible`.
    """
    raise_if_target_id_impossible(intents, target_id)
    if not intents:
        return
    for intent in intents:
        intent.status, intent.resolved_at = "delivered", at
    outcome = Outcome("delivered", target_id=target_id)
    state_writer.store_outcomes_and_bindings(
        tx, [Settlement(intent, outcome) for intent in intents], run_id=_last_run_id(tx), at=at
    )
    if any(intent.status == "in_doubt" for intent in intents):
        hint = "'crossdock trace ID' shows which; look up the id of this record at the target"
        raise ConfigError("this id belongs to another record", where=target_id, hint=hint, code="decision_impossible")
    tx.intents.write_raw_records_again(intents)  # until retention removes it; `return_last_operation_to_doubt` needs it
    in_doubt_and_refusal_rules.trust_restored_state_if_verified(tx)


def return_last_operation_to_doubt(tx: Transaction, scope: Scope, key_hash: int, *, at: datetime) -> Intent:
    """Return the last operation on a record to doubt, as before a person settled it."""
    operations = tx.intents.intents_of_record(scope, key_hash)
    last = operations[-1] if operations else None
    if last is None or last.status not in {"delivered", "pending"} or not last.raw or not last.attempts:
        hint = "only what 'crossdock records resolve' settled can be reopened, until its data is purged"
        raise ConfigError("the last operation on this record cannot be reopened", hint=hint, code="decision_impossible")
    if last.status == "delivered":
        _restore_binding_before_operation(tx, last, at=at)
    else:
        last.first_sent_at = tx.intents.first_attempt_at(last) or at
    if last.operation == "create" and last.batch_id is None:  # the id in a file is the name of the record
        last.target_id = None
    last.status, last.http_status, last.resolved_at = "in_doubt", None, None
    tx.intents.write_outcomes([last], at=at)
    return last


def _restore_binding_before_operation(tx: Transaction, intent: Intent, *, at: datetime) -> None:
    scope, identity, target_id = intent.scope, intent.identity, intent.target_id
    assert target_id is not None
    if intent.operation == "create":
        text = exact_json.dumps(target_id)
        if any(text in body for body in tx.intents.bodies_of_all_later_intents(intent)):
            hint = "correct it at the target; later operations refer to this record"
            raise ConfigError(
                f"another record that refers to {target_id} was sent since", hint=hint, code="decision_impossible"
            )
        tx.bindings.mark_deleted(scope, [identity.key_hash], at=at)
        return
    held = Binding(
        identity.key_hash,
        identity.key,
        target_id,
        None,
        identity.position,
        "whole",
        intent.before or {},
        None,
        intent.counter,
    )
    tx.bindings.put(scope, [held], run_id=_last_run_id(tx), at=at)


def settle_intents_as_not_delivered(tx: Transaction, intents: Sequence[Intent], *, at: datetime) -> None:
    """Settle operations in doubt as not delivered. The next run sends them with the same key and bytes."""
    for intent in intents:
        intent.status, intent.first_sent_at, intent.resolved_at = "pending", None, at
        intent.place = None  # it goes into another batch, with another number
    tx.intents.write_outcomes(intents, at=at)
    in_doubt_and_refusal_rules.trust_restored_state_if_verified(tx)


def drop_records(
    tx: Transaction,
    dead_letters: Sequence[DeadLetter],
    waiting: Sequence[WaitingRecord],
    intents: Sequence[Intent],
    *,
    at: datetime,
) -> None:
    """Drop records in their present version, with pending *intents*. A changed version is delivered again."""
    if not (dead_letters or waiting or intents):
        return
    raise_if_any_in_doubt([each for each in intents if each.status != "pending"])
    if (member := next((each for each in intents if each.place is not None), None)) is not None:
        hint = "run a sync, which hands the file over; then withdraw the record by a change or a cancellation"
        message = f"the {member.operation} of {member.identity.key} is part of a file, which is handed over as it is"
        raise ConfigError(message, hint=hint, code="decision_impossible")
    given_up = [_dead_letter_of_intent(intent) for intent in intents]
    unsent = _pending_intents_of_records(tx, [*dead_letters, *waiting])
    for intent in (*intents, *unsent):
        intent.status = "dropped"
    tx.intents.write_outcomes([*intents, *unsent], at=at)
    # a record may wait for its second step while the first is in doubt: then the waiting one counts, and comes last
    given_up += [_dead_letter_of_waiting(record) for record in waiting]
    tx.dead_letters.put(given_up, run_id=_last_run_id(tx), at=at)
    for stream in {each.identity.stream for each in (*dead_letters, *given_up)}:
        hashes = [each.identity.key_hash for each in (*dead_letters, *given_up) if each.identity.stream == stream]
        tx.dead_letters.mark_dropped(stream, hashes)
        tx.waiting_records.remove_records(stream, hashes)


def raise_if_any_in_doubt(doubtful: Sequence[Intent]) -> None:
    if not doubtful:
        return
    first, number = doubtful[0], len(doubtful)
    stream, key = first.identity.stream, first.identity.key
    if len({each.identity.stream for each in doubtful}) > 1:
        stream = stream.partition(".")[0]
    what = f"the {first.operation} of {stream} {key} is" if number == 1 else f"{number:,} operations of {stream} are"
    doubt = "in doubt" if any(each.status == "in_doubt" for each in doubtful) else "not acknowledged yet"
    of = f"{stream} {key}" if number == 1 else stream
    raise ConfigError(
        f"{what} {doubt}: dropped now, a later version could be delivered beside it",
        hint=f"find out whether it arrived, and settle it first: crossdock records resolve {of}",
        code="decision_impossible",
    )


def raise_if_sent_without_answer(tx: Transaction, choice: RecordFilter) -> None:
    """Raise ConfigError if an operation on a record of *choice* was sent by a run that was killed before the answer."""
    sent = next((each for each in _filtered_unsettled_intents(tx, choice, "sending") if each.place is None), None)
    if sent is not None:
        raise ConfigError(
            f"the {sent.operation} of {sent.identity.stream} {sent.identity.key} was sent, and its answer is not known",
            hint="run a sync, which finds out or leaves it in doubt; then settle or drop what is left",
            code="decision_impossible",
        )


def intents_for_person_to_decide(tx: Transaction, choice: RecordFilter) -> list[Intent]:
    """Return what a person decides: operations in doubt or overdue, and of a key also one that is handed over."""
    named = (*AWAITED, "sending")  # a batch that was handed over, about which its target does not decide
    found = _filtered_unsettled_intents(tx, choice, "in_doubt", *(("overdue",) if choice.key is None else named))
    return [each for each in found if each.status != "sending" or each.place is not None]


def filtered_pending_intents(tx: Transaction, choice: RecordFilter) -> list[Intent]:
    return _filtered_unsettled_intents(tx, choice, "pending")


def _filtered_unsettled_intents(tx: Transaction, choice: RecordFilter, *statuses: Status) -> list[Intent]:
    found = [each for each in tx.intents.unsettled() if each.status in statuses]
    return [
        each
        for each in found
        if choice.includes_stream(each.identity.stream) and choice.key in {None, each.identity.key}
    ]


def _pending_intents_of_records(tx: Transaction, records: Sequence[DeadLetter | WaitingRecord]) -> list[Intent]:
    meant = {(record.identity.stream, record.identity.key_hash) for record in records}
    return [
        each
        for each in tx.intents.unsettled()
        if each.status == "pending" and (each.identity.stream, each.identity.key_hash) in meant
    ]


def _last_run_id(tx: Transaction) -> int:
    return tx.runs.listed(limit=1)[0].id


def _dead_letter_of_waiting(record: WaitingRecord) -> DeadLetter:
    return DeadLetter(
        identity=record.identity,
        stage="references",
        code="missing_reference",
        pointer=None,
        message="dropped by an operator while it waited",
        raw=record.raw,
        mapped=None,
    )


def _dead_letter_of_intent(intent: Intent) -> DeadLetter:
    outcome = Outcome("rejected", "dropped by an operator while it was pending")
    dead_letter = state_writer.make_dead_letter_of_refusal(Settlement(intent, outcome))
    return structs.replace(dead_letter, code="conflict", mapped=payload_after_intent(intent))
