"""References of the platform's records that the payloads in the state do not have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from crossdock.mapping.resource_types import RESOURCES
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.runs.bindings_by_target_id import Bound, load_bindings_by_target_id
from crossdock.runs.planning.referred_ids import referred_ids
from crossdock.state import State, UnrecordedReference
from crossdock.values.field_types import is_valid_target_id

_AT_ONCE = 500  # ids that are looked up together


def unrecorded_references(
    resource: str, page: Sequence[Mapping[str, Any]], bound: Bound
) -> Iterator[tuple[Any, set[tuple[str, str]]]]:
    """Yield the id of each record of *page* with references that the payloads *bound* to it do not have, and these."""
    kind = RESOURCES[resource]
    for held in page if kind.parents else ():
        name = held.get("id")
        bindings = bound.get(name, ()) if isinstance(name, str) else ()
        known = {each for _, binding in bindings for each in referred_ids(kind, binding.payload)}
        if found := set(referred_ids(kind, held)) - known:
            yield name, found


def store_unrecorded_references(state: State, resource: str, page: Sequence[Mapping[str, Any]], bound: Bound) -> None:
    """Store the unknown references of *page* to bound records, so that these are kept. *bound* is not corrected yet."""
    names = [name for name, _ in unrecorded_references(resource, page, bound) if _is_id(name)]
    if not names:
        return
    corrected = load_bindings_by_target_id(state, resource, names)
    left = [each for each in page if _is_id(each.get("id")) and each["id"] in corrected]
    found = dict(unrecorded_references(resource, left, corrected))
    ours = _references_to_bound_records(state, {each for references in found.values() for each in references})
    shown = [
        UnrecordedReference(resource, name, *each)
        for name, references in found.items()
        for each in references
        if each in ours
        or (each[0] == resource and is_valid_target_id(each[1]))  # this list binds its records at its end
    ]
    state.run_transaction(lambda tx: tx.unrecorded_references.add(PLATFORM, shown))


def _references_to_bound_records(state: State, references: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    ids = defaultdict[str, list[str]](list)
    for resource, target_id in references:
        ids[resource].append(target_id)
    with state.begin_read_only() as tx:
        return {
            (resource, target_id)
            for resource, wanted in ids.items()
            for start in range(0, len(wanted), _AT_ONCE)
            for target_id, *_ in tx.bindings.records_of_target_ids(PLATFORM, resource, wanted[start : start + _AT_ONCE])
        }


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and is_valid_target_id(value)
