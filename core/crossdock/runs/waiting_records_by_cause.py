"""Waiting records, grouped by their root causes: one rejected account may block a whole hierarchy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct, structs

from crossdock.delta.fingerprint import key_hashes
from crossdock.state import RecordFilter, Scope, Transaction

Parent = tuple[str, str, str]
"""Resource, namespace and key of a record that another one refers to."""
_Streams = Mapping[tuple[str, str], list[str]]  # by resource and namespace


class WaitingGroup(Struct, frozen=True):
    """Records of one stream that wait for the same records, directly or through others that wait.

    Attributes:
        roots: The records that must be delivered first. None of them waits itself, unless they wait for each other.
        since: When the record that has waited longest began to wait.
        waits_for: What its records wait for directly.
    """

    stream: str
    roots: tuple[Parent, ...]
    rejected: Mapping[Parent, str]
    number: int
    since: datetime
    first_key: str
    waits_for: tuple[list[dict[str, str]], ...]


def waiting_groups(tx: Transaction, scopes: Mapping[str, Scope], choice: RecordFilter) -> list[WaitingGroup]:
    """Group the waiting records of *choice*, longest waiting first."""
    counts = tx.waiting_records.counts_by_awaited_records(choice)
    streams = defaultdict(list)
    for name, scope in scopes.items():
        streams[scope.resource, scope.namespace].append(name)
    roots = _root_causes(
        _what_parents_wait_for(tx, streams, {parent for each in counts for parent in _parents(each.waits_for)})
    )
    codes = _rejection_code_by_parent(tx, streams, {root for each in roots.values() for root in each})
    groups: dict[tuple[str, tuple[Parent, ...]], WaitingGroup] = {}
    for each in counts:
        ends = tuple(sorted({root for parent in _parents(each.waits_for) for root in roots[parent]}))
        rejected = {root: codes[root] for root in ends if root in codes}
        group = WaitingGroup(each.stream, ends, rejected, each.number, each.since, each.first_key, (each.waits_for,))
        if other := groups.get((each.stream, ends)):
            since, first_key = min(other.since, each.since), min(other.first_key, each.first_key)
            number, waits_for = other.number + each.number, (*other.waits_for, each.waits_for)
            group = structs.replace(other, number=number, since=since, first_key=first_key, waits_for=waits_for)
        groups[each.stream, ends] = group
    return sorted(groups.values(), key=lambda group: (group.since, group.stream, group.first_key))


def _parents(waits_for: Iterable[Mapping[str, str]]) -> list[Parent]:
    return [(each["resource"], each["namespace"], each["key"]) for each in waits_for]


def _what_parents_wait_for(tx: Transaction, streams: _Streams, parents: set[Parent]) -> dict[Parent, list[Parent]]:
    """Return what each of *parents* waits for, and so on; an empty list for one that does not wait."""
    found: dict[Parent, list[Parent]] = {}
    while parents:
        found |= {parent: [] for parent in parents}
        for stream, hashes in _parent_key_hashes_by_stream(streams, parents):
            waits = tx.waiting_records.awaited_references(stream, list(hashes))
            found |= {hashes[key_hash]: _parents(waits_for) for key_hash, waits_for in waits.items()}
        parents = {each for parent in parents for each in found[parent]} - set(found)
    return found


def _rejection_code_by_parent(tx: Transaction, streams: _Streams, parents: set[Parent]) -> dict[Parent, str]:
    return {
        hashes[key_hash]: code
        for stream, hashes in _parent_key_hashes_by_stream(streams, parents)
        for key_hash, code in tx.dead_letters.reason_code_by_key_hash(stream, list(hashes)).items()
    }


def _parent_key_hashes_by_stream(streams: _Streams, parents: set[Parent]) -> Iterable[tuple[str, dict[int, Parent]]]:
    places = defaultdict(list)
    for resource, namespace, key in parents:
        places[resource, namespace].append(key)
    for (resource, namespace), keys in places.items():
        hashes = {key_hash: (resource, namespace, key) for key, key_hash in key_hashes(keys).items()}
        for stream in streams.get((resource, namespace), ()):
            yield stream, hashes


def _root_causes(waits: Mapping[Parent, list[Parent]]) -> dict[Parent, set[Parent]]:
    """Return where the chains from each record end; in a cycle of waiting records, at itself."""
    children = defaultdict(list)
    for child, parents in waits.items():
        for parent in parents:
            children[parent].append(child)
    roots: dict[Parent, set[Parent]] = {each: set() for each in waits}
    for root in [each for each, parents in waits.items() if not parents]:
        reached = [root]
        while reached:
            each = reached.pop()
            if root not in roots[each]:
                roots[each].add(root)
                reached += children[each]
    return {each: found or {each} for each, found in roots.items()}
