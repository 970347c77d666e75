"""What may be done about an operation in doubt, and which refusals concern every record."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from datetime import datetime

from crossdock.errors import RefusedError, RemoteError, UnauthorizedError
from crossdock.state import Intent
from crossdock.targets.outcomes import Outcome
from crossdock.targets.target import Rule, Target

MARGIN_S = 300  # a key is not used this long before the target forgets it


def rule_for(intent: Intent, target: Target, now: datetime) -> Rule:
    """What may be done about an *intent* that was sent before. An expired idempotency key does not protect it.

    If the first attempt lies in the future, the clock was set back and the key's age is unknown.
    """
    assert intent.first_sent_at is not None
    rule = target.rule(intent.resource, intent.operation)
    kept_s = target.kept_s
    margin_s = min(MARGIN_S, kept_s / 4)
    age_s = (now - intent.first_sent_at).total_seconds()
    is_forgotten = not -margin_s <= age_s <= kept_s - margin_s
    is_unknown = not intent.attempts  # from a restored state: it was never sent under this key
    if is_unknown or (rule == "resend" and is_forgotten):
        return target.rule_without_key(intent.resource, intent.operation)
    return rule


def is_held(intent: Intent, target: Target, *, state_restored: bool) -> bool:
    """True if an unsent *intent* of an earlier run must wait until other records have shown that the state is sound.

    Only what cannot be looked up waits: the state may be an old one, which has forgotten that it was sent.
    """
    return not (state_restored or target.can_verify(intent.resource, intent.operation))


def is_forgettable(resource: str, operation: str, target: Target, *, state_restored: bool) -> bool:
    """True for a create that may have been delivered before the state was restored, which no look-up can tell."""
    return state_restored and operation == "create" and not target.can_verify(resource, operation)


def forgotten(intent: Intent, target: Target) -> RefusedError:
    """The error when the target has a record under our name that the state considers new."""
    return RefusedError(
        f"{target.title} already has {intent.resource} {intent.identity.key}, and the state has no record of sending"
        " it",
        where=intent.identity.stream,
        hint="if the state was restored from a backup, run 'crossdock state restored'; to take over existing records, "
        "set 'adopt: external_id' for the stream. Nothing was lost",
    )


def concerns_all(intent: Intent, outcome: Outcome, target: Target, accepted: AbstractSet[str]) -> RemoteError | None:
    """The error of a refusal that concerns every record; None if it concerns this one.

    Args:
        accepted: Resources of which something was delivered.
    """
    answer, where = f"{outcome.message} (HTTP {outcome.status})", target.address
    advice = target.advice(intent.resource, outcome.status)
    if outcome.status == 401:
        hint = f"{advice}, then run again; nothing was lost"
        return UnauthorizedError(f"does not accept the credentials: {answer}", where=where, hint=hint)
    if intent.resource in accepted:
        return None
    if outcome.status == 403:
        hint = f"{advice}; nothing was lost"
        return UnauthorizedError(f"does not permit writing {intent.resource}: {answer}", where=where, hint=hint)
    if outcome.status in {404, 405} and intent.operation == "create":
        hint = f"{advice}; nothing was lost"
        return RemoteError(f"has nothing at {intent.path}: {answer}", where=where, hint=hint)
    return None
