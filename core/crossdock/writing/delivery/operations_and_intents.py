"""Operations on the target, the intents made from them (law 2), and masks for the personal data in both."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal, cast

from msgspec import Struct, structs

from crossdock.reading.transport.http_answers_and_errors import MAX_POINTER, SHOWN
from crossdock.state import Binding, Intent, RecordIdentity, Scope, Step
from crossdock.values import exact_json
from crossdock.values.raw_rows_and_records import Record
from crossdock.writing.targets.answer_outcomes import Outcome
from crossdock.writing.targets.payload_comparison import (
    has_wanted_members,
    merge_patch_between,
    with_patch_applied,
    without_unwanted_members,
)
from crossdock.writing.targets.target import BatchItem, EndpointProfile, Request, Target, Update

Kind = Literal["create", "update", "delete"]
FROM_STATE = "state"  # the source of operations that no row of a source has brought


class Operation(Struct):
    """A create, update or delete of one record.

    Attributes:
        after: The whole payload that the target will hold.
        binding: What the target holds now; None for a create, and for a record that is taken over.
        taken_over: The id of a record with another name that becomes this one, by an update after a look-up.
    """

    kind: Kind
    identity: RecordIdentity
    scope: Scope
    record: Record
    after: dict[str, Any]
    changes: dict[str, Any]
    binding: Binding | None
    step: Step = "whole"
    taken_over: str | None = None

    def as_batch_item(self, target: Target) -> BatchItem:
        """Return it as a stored batch shows it; see the function of this name."""
        payload = self.binding.payload if self.kind == "delete" and self.binding is not None else self.after
        known = self.binding.target_id if self.binding is not None else None
        name = known or target.name_of(self.scope.resource, self.scope.namespace, self.identity.key) or ""
        return BatchItem(self.kind, name, payload)

    @property
    def counts_against_update_limits(self) -> bool:
        """Whether it counts against the limits of updates.

        A create whose second step is due does not, nor does an adopted record, whose content was unknown.
        """
        return self.binding is not None and self.binding.step not in {"open", "import"}


def make_idempotency_key(tenant: str, scope: Scope, key: str, kind: str, counter: int, salt: str = "") -> str:
    """Return 40 hex digits of SHA-256. *counter* makes the keys of A -> B -> A differ, *salt* those of two states."""
    facts = [tenant, scope.target, scope.resource, scope.namespace, key, kind, counter, *([salt] if salt else [])]
    return hashlib.sha256(exact_json.dumps(facts)).hexdigest()[:40]


def make_intent_of_operation(operation: Operation, target: Target, counter: int, salt: str = "") -> Intent:
    """Make the intent of *operation*, with the exact bytes that every attempt sends; without a path if they are made
    from a look-up.
    """
    key = make_idempotency_key(target.account, operation.scope, operation.identity.key, operation.kind, counter, salt)
    request = _make_request(operation, target)
    if request.path:
        request = target.with_key(operation.scope.resource, request, key)
    return _new_intent(operation, request, key, counter)


def make_intent_without_request(operation: Operation, target: Target, counter: int, salt: str = "") -> Intent:
    """Make the intent of an *operation* that has no request. It is settled without being sent."""
    key = make_idempotency_key(target.account, operation.scope, operation.identity.key, operation.kind, counter, salt)
    return _new_intent(operation, Request("", ""), key, counter)


def _new_intent(operation: Operation, request: Request, key: str, counter: int) -> Intent:
    scope, identity, binding = operation.scope, operation.identity, operation.binding
    before = binding.payload if binding else None
    return Intent(
        identity=identity,
        scope=scope,
        operation=operation.kind,
        step=operation.step,
        counter=counter,
        idempotency_key=key,
        method=request.method,
        path=request.path,
        body=request.body,
        before=before,
        after=None if request.holds_payload else operation.after,
        if_match=binding.etag if binding else None,
        raw=operation.record.raw(),
        target_id=binding.target_id if binding else operation.taken_over,
    )


def _make_request(operation: Operation, target: Target) -> Request:
    resource, binding = operation.scope.resource, operation.binding
    if operation.kind == "create":
        return request_to_create(resource, operation.after, target)
    before = binding.payload if binding else None
    if binding is None or is_looked_up_first(operation.kind, before, target.resources[resource].endpoint):
        return Request("", "")
    if operation.kind == "delete":
        return target.delete(resource, binding.target_id)
    update = Update(binding.payload, operation.changes, operation.after)
    return target.update(resource, binding.target_id, update)


def request_to_create(resource: str, payload: dict[str, Any], target: Target) -> Request:
    """Return the request of a create; one without a path if it is made from a look-up, by
    `create_intent_from_look_up`.
    """
    if is_looked_up_first("create", None, target.resources[resource].endpoint):
        return Request("POST", "")
    return target.create(resource, payload)


def is_looked_up_first(kind: str, before: dict[str, Any] | None, endpoint: EndpointProfile) -> bool:
    """Return whether the request of an operation is made from a look-up, and not before it.

    Args:
        before: What the target holds as far as known; None for a create, and for an update that takes a record over.
    """
    replaces_unknown = kind == "update" and (before is None or (not before and endpoint.compares))
    return replaces_unknown or kind in endpoint.looks_up_first


def current_request_unless_look_up_needed(intent: Intent, target: Target) -> Request | None:
    """Return the request that *target* makes of a stored operation now; None if that needs what the target holds."""
    after = payload_after_intent(intent)
    if intent.operation == "create":
        request = request_to_create(intent.resource, after, target)
        return request if request.path else None
    endpoint = target.resources[intent.resource].endpoint
    if intent.target_id is None or is_looked_up_first(intent.operation, intent.before, endpoint):
        return None
    if intent.operation == "delete":
        return target.delete(intent.resource, intent.target_id)
    before = intent.before or {}
    return target.update(intent.resource, intent.target_id, Update(before, merge_patch_between(before, after), after))


def payload_after_intent(intent: Intent) -> dict[str, Any]:
    payload: dict[str, Any] = intent.after if intent.after is not None else exact_json.loads(intent.body or b"{}")
    return payload


def old_and_new_values_of_update(intent: Intent, target: Target) -> dict[str, tuple[Any, Any]]:
    """Return the old and the new value of each member that an update changes, and that answers show as it was sent."""
    if intent.operation != "update" or not intent.before:
        return {}
    kind = target.resources[intent.resource]
    before, after = kind.comparable(intent.before), kind.comparable(payload_after_intent(intent))
    return {name: (before[name], each) for name, each in after.items() if name in before and before[name] != each}


def payload_shown_in_batch(intent: Intent) -> dict[str, Any]:
    """Return what a stored batch shows of an operation: what the target will hold, or of a delete what it holds."""
    return intent.before or {} if intent.operation == "delete" else payload_after_intent(intent)


def batch_item_of_intent(intent: Intent, target: Target) -> BatchItem:
    """Return an operation as a stored batch shows it."""
    name = intent.target_id or target.name_of(intent.resource, intent.scope.namespace, intent.identity.key) or ""
    return BatchItem(cast("Kind", intent.operation), name, payload_shown_in_batch(intent))


def encoded_payload_after_intent(intent: Intent) -> bytes:
    return exact_json.dumps(intent.after) if intent.after is not None else intent.body or b"{}"


def is_update_taking_over_record(intent: Intent, target: Target) -> bool:
    """Return whether *intent* is the first update of a record that the target has under another name."""
    if intent.operation != "update" or intent.scope.is_contribution:
        return False
    if not intent.before:
        return intent.before is None
    name = target.name_of(intent.resource, intent.scope.namespace, intent.identity.key)
    return target.name_in(intent.resource, intent.before) != name


def member_changed_by_others_with_message(
    intent: Intent, held: dict[str, Any], target: Target
) -> tuple[str, str] | None:
    """Return a member that others have changed, too, and a message. It shows only numbers, which are not personal."""
    kind = target.resources[intent.resource]
    before, after = kind.comparable(intent.before or {}), kind.comparable(payload_after_intent(intent))
    if not before:
        return None
    for name in merge_patch_between(before, after):
        values = before.get(name), held.get(name), after.get(name)
        if not any(has_wanted_members(values[1], each) for each in (values[0], values[2])):
            are_numbers = all(isinstance(value, int | Decimal) and not isinstance(value, bool) for value in values)
            shown = " from {} to {}; this would set {}".format(*values) if are_numbers else ""
            return name, f"somebody else has changed {name}{shown}; nothing was written"
    return None


def successor_intent_if_record_differs(
    intent: Intent, target: Target, held: dict[str, Any], etag: str | None
) -> Intent | None:
    """Make the intent that turns what the target *held* into what *intent* wants; None if nothing differs.

    An update changes only its own members and keeps what others have changed meanwhile. If the content of the target
    was unknown, ``before`` has the found values of the written members. Members that a look-up does not show as they
    were sent are sent again.
    """
    assert intent.target_id is not None
    after = payload_after_intent(intent)
    known = None if is_update_taking_over_record(intent, target) else intent.before
    wanted = after if known is None else merge_patch_between(known, after)
    before = without_unwanted_members(target.resources[intent.resource].comparable(held), wanted)
    changes = merge_patch_between(before, with_patch_applied(before, wanted))
    if intent.operation == "delete":
        kind: Kind = "delete"
        request = target.delete(intent.resource, intent.target_id)
    elif changes:
        kind = "update"
        request = target.update(intent.resource, intent.target_id, Update(held, changes, after))
    else:
        return None
    return structs.replace(_successor_intent(intent, target, kind, request), before=known or before, if_match=etag)


def create_intent_from_look_up(intent: Intent, target: Target, held: dict[str, Any]) -> Intent:
    request = target.create_from(intent.resource, payload_after_intent(intent), held)
    return _successor_intent(intent, target, "create", request)


def _successor_intent(intent: Intent, target: Target, kind: Kind, request: Request) -> Intent:
    counter = intent.counter + 1
    key = make_idempotency_key(
        target.account, intent.scope, intent.identity.key, kind, counter, salt=intent.idempotency_key
    )
    request = target.with_key(intent.resource, request, key)
    return structs.replace(
        intent,
        id=0,
        operation=kind,
        counter=counter,
        idempotency_key=key,
        method=request.method,
        path=request.path,
        body=request.body,
        after=payload_after_intent(intent),
        status="pending",
        attempts=0,
        first_sent_at=None,
        http_status=None,
    )


_TOKEN = re.compile(r"[\w@.+-]{3,}")


class PersonalDataMasks:
    """The personal members: those of resource models, and those that a config marks, by the name of the stream."""

    def __init__(
        self,
        marked: Mapping[str, frozenset[str]] = {},
        resources: Mapping[tuple[str, str], frozenset[str]] = {},
    ) -> None:
        self._marked, self._resources = marked, resources

    def personal_members(self, stream: str, scope: Scope) -> frozenset[str]:
        of_resource = self._resources.get((scope.target, scope.resource), frozenset())
        return of_resource | self._marked.get(stream, frozenset())

    def masked_outcome(self, intents: Sequence[Intent], outcome: Outcome) -> Outcome:
        """Shorten the message of *outcome* to `SHOWN` characters, with personal values and parts of them masked."""
        if not outcome.message and not outcome.pointer:
            return outcome
        values = [
            payload.get(name)
            for intent in intents
            for name in self.personal_members(intent.identity.stream, intent.scope)
            for payload in (intent.before or {}, payload_after_intent(intent))
        ]
        texts = [text.casefold() for text in _texts_in_value(values)]
        pointer = outcome.pointer and _message_with_values_masked(outcome.pointer, texts)[:MAX_POINTER]
        return replace(outcome, message=_message_with_values_masked(outcome.message, texts)[:SHOWN], pointer=pointer)


def _message_with_values_masked(message: str, texts: list[str]) -> str:
    words = {word for text in texts for word in _TOKEN.findall(text)}

    def mask(found: re.Match[str]) -> str:
        token = found[0].casefold()
        is_personal = any(token in text for text in texts) or any(word in token for word in words)
        return "(personal)" if is_personal else found[0]

    return _TOKEN.sub(mask, message) if texts else message


def _texts_in_value(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts_in_value(inner)
