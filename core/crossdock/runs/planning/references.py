"""References in drafts and payloads: keys become target ids, and ids in payloads name the records referred to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any, get_args

from crossdock.delta.fingerprint import key_hashes
from crossdock.mapping.resource_types import ResourceType
from crossdock.resources import Reference, ResourceModel
from crossdock.state import Binding, Scope, Transaction
from crossdock.values.record_keys import trimmed_key
from crossdock.values.texts_of_numbers_and_times import json_time_text
from crossdock.writing.delivery.operations_and_intents import Operation

_Members = Mapping[str, Mapping[str, Any] | None]  # by wire name: None for a reference, otherwise its inner members


def referred_resources_and_ids(kind: ResourceType, payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the resource and id of each record that a *payload* of *kind* refers to.

    If the name of a member does not determine the resource, the id counts for each that the kind may refer to.
    """
    for name, found in _ids_in_payload(_reference_members(kind.draft), payload):
        for resource in _resources_member_may_refer_to(kind.parents, name):
            yield resource, found


def _ids_in_payload(members: _Members, payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, inside in members.items():
        value = payload.get(name)
        if inside is None:
            if isinstance(value, str):
                yield name, value
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                yield from _ids_in_payload(inside, each)


@cache
def _reference_members(model: type[ResourceModel]) -> _Members:
    found: dict[str, Mapping[str, Any] | None] = {}
    for name, field in model.model_fields.items():
        kinds = set(_types_in_annotation(field.annotation))
        inside = [
            _reference_members(each) for each in kinds if isinstance(each, type) and issubclass(each, ResourceModel)
        ]
        if Reference in kinds:
            found[field.alias or name] = None
        elif any(inside):
            found[field.alias or name] = {member: deeper for each in inside for member, deeper in each.items()}
    return found


def _types_in_annotation(annotation: Any) -> Iterator[Any]:
    yield annotation
    for each in get_args(annotation):
        yield from _types_in_annotation(each)


@cache
def _resources_member_may_refer_to(parents: frozenset[str], name: str) -> tuple[str, ...]:
    ending = name.removesuffix("Id").lower()
    named = [each for each in sorted(parents) if ending.endswith(each.rpartition("_")[2])]
    return tuple(named or sorted(parents))


_PLAIN = frozenset({str, int, bool, Decimal, type(None)})  # types of most members; they hold no reference
CACHED = 200_000  # ids kept between chunks; limits memory only

ScopedKey = tuple[Scope, str]  # what a reference points to: a scope and a record key
NameOf = Callable[[Reference], tuple[str, str]]  # the namespace of what a reference points to, and its record key


def collect_references_in_value(value: Any) -> list[Reference]:
    if isinstance(value, Reference):
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for member in members if type(member) not in _PLAIN for found in collect_references_in_value(member)]


class References:
    """Resolves references with the bindings. In a plan, the records in *planned* resolve to a placeholder."""

    def __init__(self, target: str, planned: set[tuple[Scope, int]] | None = None) -> None:
        self._target = target
        self._planned = planned
        self._ids: dict[ScopedKey, str] = {}
        self._first_steps: dict[tuple[Scope, int], Binding] = {}
        self._earlier: dict[Scope, Mapping[str, str]] = {}

    @property
    def is_plan(self) -> bool:
        """Whether this is a plan, in which nothing is delivered."""
        return self._planned is not None

    def is_planned(self, scope: Scope, key_hash: int) -> bool:
        """Return whether a plan creates or updates the record; False in a sync, where the state has it."""
        return self._planned is not None and (scope, key_hash) in self._planned

    def remember_planned_first_step(self, operation: Operation) -> None:
        """In a plan, keep the binding that the first of two steps would create."""
        if self._planned is None:
            return
        scope, identity, step, payload = operation.scope, operation.identity, operation.step, operation.after
        self._first_steps[scope, identity.key_hash] = Binding(
            identity.key_hash,
            identity.key,
            placeholder_of_planned_record_id(scope, identity.key),
            None,
            identity.position,
            step,
            payload,
            None,
            1,
        )

    def planned_first_step_binding(self, scope: Scope, key_hash: int) -> Binding | None:
        """Return the binding of a planned first step; None in a sync, where the state has it."""
        return self._first_steps.get((scope, key_hash))

    def scoped_keys(self, references: Iterable[Reference], name_of: NameOf) -> list[ScopedKey]:
        return list(dict.fromkeys(self._scoped_key(reference, name_of) for reference in references))

    def look_up(self, keys: Iterable[ScopedKey], tx: Transaction) -> None:
        if len(self._ids) > CACHED:
            self._ids.clear()
        unknown: dict[Scope, set[str]] = defaultdict(set)
        for scope, key in keys:
            if (scope, key) not in self._ids:
                unknown[scope].add(key)
        for scope, names in unknown.items():
            if scope not in self._earlier:
                self._earlier[scope] = stored_key_by_trimmed_key(tx, scope)
            earlier = self._earlier[scope]
            stored = key_hashes(sorted({earlier.get(name, name) for name in names}))
            hashes = {name: stored[earlier.get(name, name)] for name in sorted(names)}
            ids = tx.bindings.target_id_by_key_hash(scope, list(hashes.values()))
            for key, key_hash in hashes.items():
                if key_hash in ids:
                    self._ids[scope, key] = ids[key_hash]
                elif self._planned and (scope, key_hash) in self._planned:
                    self._ids[scope, key] = placeholder_of_planned_record_id(scope, key)

    def missing(self, keys: Iterable[ScopedKey]) -> list[ScopedKey]:
        return [key for key in keys if key not in self._ids]

    def resolve(self, value: Any, name_of: NameOf) -> Any:
        """Replace each reference in *value* by its id, and dates and times by their text. No id may be missing."""
        if isinstance(value, dict):
            return {
                name: member if type(member) in _PLAIN else self.resolve(member, name_of)
                for name, member in value.items()
            }
        if isinstance(value, Reference):
            return self._ids[self._scoped_key(value, name_of)]
        if isinstance(value, list):
            return [self.resolve(item, name_of) for item in value]
        return json_time_text(value) if isinstance(value, date) else value

    def _scoped_key(self, reference: Reference, name_of: NameOf) -> ScopedKey:
        namespace, key = name_of(reference)
        return Scope(self._target, reference.resource, namespace), key


def stored_key_by_trimmed_key(tx: Transaction, scope: Scope, stream: str | None = None) -> dict[str, str]:
    """Return the keys under which records were stored before keys were trimmed, by their trimmed keys.

    Without them, such a record would be created a second time. A record that is also stored under its trimmed key has
    that one. The rejected and waiting records of *stream* count as well.
    """
    stored = [
        *tx.untrimmed_keys.untrimmed_keys_of_scope(scope),
        *(tx.untrimmed_keys.untrimmed_keys_of_rejected_and_waiting(stream) if stream else ()),
    ]
    if not stored:
        return {}
    found = {trimmed_key(key): key for key in reversed(stored)}
    hashes = key_hashes(list(found))
    bound = tx.bindings.target_id_by_key_hash(scope, list(hashes.values()))
    return {name: key for name, key in found.items() if name and hashes[name] not in bound}


def placeholder_of_planned_record_id(scope: Scope, key: str) -> str:
    """Return the text that a plan shows for the id of a record that does not exist yet."""
    return f"<{scope.resource} {scope.namespace}:{key}>"


def external_id_in_placeholder(record_id: str) -> str | None:
    """Return the external id in a `placeholder_of_planned_record_id`; None for a real id."""
    is_placeholder = record_id.startswith("<") and record_id.endswith(">") and " " in record_id
    return record_id[1:-1].partition(" ")[2] if is_placeholder else None
