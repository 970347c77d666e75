"""The ids in a payload of the records that it refers to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args

from crossdock.mapping.resource_types import ResourceType
from crossdock.resources import Reference, ResourceModel

_Members = Mapping[str, Mapping[str, Any] | None]  # by wire name: None for a reference, otherwise its inner members


def referred_ids(kind: ResourceType, payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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
