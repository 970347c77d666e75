"""The rules for operations in doubt, for refusals that concern every record, and for a state restored from a backup."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from crossdock.errors import RefusedError, RemoteError, UnauthorizedError
from crossdock.state import Intent, Transaction
from crossdock.writing.delivery.operations_and_intents import payload_after_intent
from crossdock.writing.targets.answer_outcomes import ACCEPTED, MOVED, Outcome, redirect_hint
from crossdock.writing.targets.payload_comparison import has_wanted_members
from crossdock.writing.targets.target import Rule, Target

MARGIN_S = 300  # the key is not used in the last seconds before it expires at the target
MAY_BE_OF_LOST_STATE = (
    "the target has one with the same customer and items that this state has not sent; if a lost state has sent it, run"
    " 'crossdock state restored' and sync again"
)
OTHERS_AT_MOST = 10  # records of others with this state's external ids, however few were accepted in the run
NO_PARENT_AT_MOST = 10  # creates below records that are not there, while nothing shows that the path is right
OTHERS_SHARE = 10  # beyond that, one of them per this many accepted records shows a lost state


def rule_for_sent_intent(intent: Intent, target: Target, now: datetime) -> Rule:
    """Return what may be done about a sent *intent*. A first attempt in the future shows a clock that was set back.

    What the target has accepted and not carried out yet is not sent again.
    """
    assert intent.first_sent_at is not None
    rule = target.resources[intent.resource].endpoint.rule(intent.operation)
    known = max_age_of_repeatable_request(target)
    is_forgotten = not known - timedelta(seconds=target.kept_s) <= now - intent.first_sent_at <= known
    is_unknown = not intent.attempts  # from a restored state: it was never sent under this key
    if is_unknown or intent.http_status == ACCEPTED or (rule == "resend" and is_forgotten):
        return target.resources[intent.resource].endpoint.rule_without_key(intent.operation)
    return rule


def max_age_of_repeatable_request(target: Target) -> timedelta:
    """Return how long after a request it may be repeated with its idempotency key."""
    return timedelta(seconds=target.kept_s - min(MARGIN_S, target.kept_s / 4))


def is_held_back_as_unverifiable(intent: Intent, target: Target, *, state_restored: bool) -> bool:
    """Return whether an unsent *intent* waits: an old state may have forgotten that such records were sent."""
    return not (state_restored or target.resources[intent.resource].endpoint.can_verify(intent.operation))


def waits_for_acknowledgements(intent: Intent, target: Target) -> bool:
    """Return whether *intent* waits until a run has read all: it counts as not delivered, and may be acknowledged."""
    profile = target.resources[intent.resource].batch
    return intent.is_to_be_sent_again and profile is not None and profile.acknowledged_within_s is not None


def may_be_executed_since_backup(intent: Intent) -> bool:
    """Return whether *intent* of a restored state may have been executed after the backup was made."""
    was_sent = intent.first_sent_at is not None and intent.attempts
    return intent.operation == "create" and intent.resolved_at is None and not was_sent


def is_record_made_by_others(intent: Intent, held: Mapping[str, Any], target: Target, member: str | None) -> bool:
    """Return whether an existing record with the external id is not the one that the create *intent* would make.

    A restored backup has forgotten records that it created itself. Such a record holds at least half of what the create
    would send, even if its source has changed since. Members that a look-up does not show as they were sent do not
    count.
    """
    wanted = _comparable_payload_without_name(intent, target)
    if member is not None and wanted.get(member) is not None:
        return bool(held.get(member) != wanted[member])
    return _matches_under_half_of_members(wanted, held)


def has_record_mostly_other_content(intent: Intent, held: Mapping[str, Any], target: Target) -> bool:
    """Return whether an existing record that the create *intent* may have made shows less than half of what it sent.

    Members that a look-up does not show say nothing.
    """
    return _matches_under_half_of_members(
        {name: value for name, value in _comparable_payload_without_name(intent, target).items() if name in held}, held
    )


def _comparable_payload_without_name(intent: Intent, target: Target) -> dict[str, Any]:
    kind = target.resources[intent.resource]
    names = kind.name_members
    return {name: each for name, each in kind.comparable(payload_after_intent(intent)).items() if name not in names}


def _matches_under_half_of_members(wanted: Mapping[str, Any], held: Mapping[str, Any]) -> bool:
    same = sum(has_wanted_members({name: held.get(name)}, {name: value}) for name, value in wanted.items())
    return 2 * same < len(wanted)


def is_number_of_conflicts_too_high(others: int, accepted: int) -> bool:
    return others > OTHERS_AT_MOST and others * OTHERS_SHARE > accepted


def rejected_outcome_of_taken_name(intent: Intent, outcome: Outcome, target: Target) -> Outcome:
    id_of = f", {outcome.target_id}" if outcome.target_id else ""
    message = f"{target.title} has another record under this name{id_of}, which was not sent from this state"
    pointer = target.resources[intent.resource].name_pointer
    return Outcome("rejected", f"{message}; nothing was written", 409, reason="conflict", pointer=pointer)


def state_forgot_records_error(intent: Intent, target: Target, *, matches: bool, others: int = 0) -> RefusedError:
    """Return the error for records that the target has and that the state considers new."""
    stream, key = intent.identity.stream, intent.identity.key
    adopt = "replace 'adopt: {by: ...}' by" if matches else "set"
    what = f"has {intent.resource} {key}, and the state has no record of sending it"
    alone = f"to leave this one alone, run 'crossdock records drop {stream} {key}'"
    if others:
        what = f"has {others} records under names that this run would give, and the state has no record of sending them"
        alone = "'crossdock records list --reason conflict' lists them"
    return RefusedError(
        f"{target.title} already {what}",
        where=stream,
        hint="if the state is in place of a lost one, or was restored from a backup, run 'crossdock state restored'; to"
        f" take over records of another program, {adopt} 'adopt: external_id' for the stream; {alone}."
        " Nothing was lost",
        code="record_exists",
    )


def error_if_refusal_concerns_all_records(
    intent: Intent, outcome: Outcome, target: Target, accepted: AbstractSet[str]
) -> RemoteError | None:
    """Return the error of a refusal that concerns every record. *accepted* are resources with a delivered record."""
    answer, where = f"{outcome.message} (HTTP {outcome.status})", target.address
    advice = target.advice(intent.resource, outcome.status)
    if outcome.status == 401:
        hint = f"{advice}, then run again; nothing was lost"
        return UnauthorizedError(
            f"does not accept the credentials: {answer}", where=where, hint=hint, code="target_unauthorized"
        )
    is_accepted = intent.resource in accepted
    if outcome.status in MOVED and (intent.operation == "create" or not is_accepted):  # else it may be of one record
        hint = f"{redirect_hint(target.place)}; nothing was lost"
        return RemoteError(answer, where=where, hint=hint, code="redirect_refused")
    if is_accepted:
        return None
    if outcome.status == 403:
        hint = f"{advice}; nothing was lost"
        return UnauthorizedError(
            f"does not permit writing {intent.resource}: {answer}", where=where, hint=hint, code="target_forbidden"
        )
    if outcome.status in {404, 405} and intent.operation == "create":
        hint = f"{advice}; nothing was lost"
        name = target.name_of(intent.resource, intent.scope.namespace, intent.identity.key)
        path = intent.path or target.look_up(intent.resource, name, None).path
        return RemoteError(f"has nothing at {path}: {answer}", where=where, hint=hint, code="target_path_unknown")
    return None


def may_lack_parent_in_path(intent: Intent, outcome: Outcome) -> bool:
    """Return whether a 404 to a create may only say that the record is gone which its path names, as that of a movement
    names the lot.
    """
    if outcome.status != 404 or intent.operation != "create":
        return False
    named = {each for each in payload_after_intent(intent).values() if isinstance(each, str)}
    return any(unquote(part) in named for part in intent.path.partition("?")[0].split("/"))


class StateDoubts(Struct, frozen=True):
    """Why the state may be wrong: it is a restored backup, or some bindings were not compared with the target yet."""

    restored: bool = False
    unverified: bool = False


NO_DOUBTS, MAY_BE_RESTORED = StateDoubts(), StateDoubts(restored=True)


def count_in_doubt_since_backup(tx: Transaction) -> int:
    return sum(each.status == "in_doubt" and may_be_executed_since_backup(each) for each in tx.intents.unsettled())


def trust_restored_state_if_verified(tx: Transaction) -> None:
    """Trust the state again after a complete comparison, if no create is in doubt because of the backup."""
    if tx.runs.is_restored_state_compared() and not any(map(may_be_executed_since_backup, tx.intents.unsettled())):
        tx.runs.forget_state_was_restored()
        tx.unverified.clear_all()
