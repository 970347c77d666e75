"""References between the platform's resources, and the names of expanded records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from crossdock.mapping.resource_types import RESOURCES, personal_members
from crossdock.resources import Line, ResourceName

_NAMED: Mapping[str, ResourceName] = {
    "customerId": "customer",
    "productId": "product",
    "binId": "warehouse_bin",
    "parentId": "ledger_account",
}


def reference_members(resource: ResourceName) -> dict[str, ResourceName]:
    """Map the members of *resource*, or of its items, that name another record to that record's resource."""
    fields = RESOURCES[resource].wire.model_fields
    models = (fields, Line.model_fields) if "items" in fields else (fields,)
    names = {field.alias for model in models for field in model.values()}
    return {name: kind for name, kind in _NAMED.items() if name in names}


def expanded_record_member(member: str) -> str:
    """Return the member that holds the record which *member* names: ``customer`` for ``customerId``."""
    return member.removesuffix("Id")


def personal_members_with_expanded_records(resource: ResourceName, expand: Sequence[str]) -> Iterator[str]:
    """Yield the dotted paths of personal members of *resource* and of the records expanded in it."""
    yield from personal_members(RESOURCES[resource].wire)
    kinds = reference_members(resource)
    for member in expand:
        for name in personal_members(RESOURCES[kinds[member]].wire):
            yield f"{expanded_record_member(member)}.{name}"
