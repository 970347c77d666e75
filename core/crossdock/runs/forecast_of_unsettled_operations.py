"""Operations that earlier runs left unsettled, and what the next run does with each before it reads a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

from msgspec import Struct, field

from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.runs.plan_result import PlanListener
from crossdock.runs.planning.target_ids_of_references import placeholder
from crossdock.runs.run_report import tally_term_if_target_accepts
from crossdock.state import Binding, ExpectedDelivery, Intent, Scope
from crossdock.values.run_states_and_tally import Tally
from crossdock.writing.delivery.in_doubt_and_refusal_rules import (
    is_held_back_as_unverifiable,
    may_be_executed_since_backup,
    rule_for_sent_intent,
    waits_for_acknowledgements,
)
from crossdock.writing.delivery.operations_and_intents import payload_after_intent
from crossdock.writing.targets.target import Target


class UnsettledOperations(Struct):
    """Unsettled operations, grouped by their treatment.

    Attributes:
        held: They are sent before the first stream of records that are written once, or at the end of the run.
        in_doubt: They are not sent, and a person decides.
        nowhere: They are not sent, because the config no longer has their target or resource.
        awaited: Their target has them, or may have them, and acknowledges them later.
    """

    sent_first: list[Intent] = field(default_factory=list)
    held: list[Intent] = field(default_factory=list)
    in_doubt: list[Intent] = field(default_factory=list)
    awaited: list[Intent] = field(default_factory=list)
    nowhere: list[Intent] = field(default_factory=list)

    @classmethod
    def grouped_by_treatment(
        cls,
        unsettled: Sequence[Intent],
        targets: Mapping[str, Target],
        now: datetime,
        *,
        streams: AbstractSet[str],
        state_restored: bool,
    ) -> UnsettledOperations:
        """Decide as `crossdock.writing.delivery.outcome_policy.OutcomePolicy.resume_intent` does."""
        left = cls()
        for intent in unsettled:
            target = targets.get(intent.scope.target)
            if intent.awaits_acknowledgement:
                left.awaited.append(intent)
                continue
            if target is None or intent.resource not in target.resources:
                left.nowhere.append(intent)
                continue
            if state_restored and may_be_executed_since_backup(intent):
                is_in_doubt = cannot_be_verified_after_restore(intent.resource, intent.operation, target)
            elif intent.first_sent_at:
                is_in_doubt = intent.place is None and rule_for_sent_intent(intent, target, now) == "park"
            elif waits_for_acknowledgements(intent, target) or (
                intent.identity.stream in streams
                and is_held_back_as_unverifiable(intent, target, state_restored=state_restored)
            ):
                left.held.append(intent)
                continue
            else:
                is_in_doubt = False
            (left.in_doubt if is_in_doubt else left.sent_first).append(intent)
        return left

    def count_and_report(
        self, tally_of_stream: Callable[[str], Tally], listener: PlanListener, targets: Mapping[str, Target]
    ) -> set[tuple[Scope, int]]:
        """Count and report the results as if the targets accept everything. Return the records with a first step."""
        first_steps = set[tuple[Scope, int]]()
        for intent in self.nowhere:
            listener.in_doubt(intent.identity)
        for intent in self.in_doubt:
            listener.in_doubt(intent.identity)
            if intent.step != "open":
                tally_of_stream(intent.identity.stream).count("carried_over")
                tally_of_stream(intent.identity.stream).count("carried_on")
        for intent in (*self.sent_first, *self.held):
            listener.resend(intent)
            record = intent.scope, intent.identity.key_hash
            if intent.step == "open":
                first_steps.add(record)
                continue
            is_first = intent.operation == "create" or record in first_steps
            tally_of_stream(intent.identity.stream).count("carried_over")
            term = tally_term_if_target_accepts(
                targets[intent.scope.target], intent.resource, intent.operation, first_time=is_first
            )
            tally_of_stream(intent.identity.stream).count(term)
        return first_steps


def assumed_delivery(intent: Intent) -> ExpectedDelivery:
    identity, scope, step = intent.identity, intent.scope, intent.step
    binding = Binding(
        identity.key_hash,
        identity.key,
        intent.target_id or placeholder(scope, identity.key),
        identity.fingerprint if step == "whole" else None,
        identity.position,
        step,
        payload_after_intent(intent),
        None,
        intent.counter,
    )
    deletes = intent.operation == "delete"
    return ExpectedDelivery(
        identity.stream, scope, identity.key_hash, None if deletes else binding, is_whole=step != "open"
    )


def cannot_be_verified_after_restore(resource: str, operation: str, target: Target) -> bool:
    """Return whether a restored state leaves this operation in doubt. The platform's lists show forgotten records."""
    if operation != "create":
        return False
    return target.name != PLATFORM and not target.resources[resource].endpoint.can_verify(operation)
