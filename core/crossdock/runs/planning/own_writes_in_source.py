"""Recognizes records that crossdock itself wrote to the system that a stream reads, so that they do not circulate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.second_pass_for_changed_records import KeyedRecord
from crossdock.mapping.resource_types import ResourceType
from crossdock.state import Scope, State, Transaction
from crossdock.values.raw_rows_and_records import JSON
from crossdock.writing.targets.payload_comparison import has_wanted_members


class Origin(Struct, frozen=True):
    """The record from which crossdock created one that is read now."""

    key: str
    is_unchanged: bool


class OwnWrites:
    def __init__(self, bound: BoundStream) -> None:
        self._read, self._origins = bound.read_target_and_type, bound.namespaces_of_target_system

    def origins_by_key_hash(self, state: State, reads: Sequence[KeyedRecord]) -> dict[int, Origin]:
        if self._read is None or not self._origins:
            return {}
        with state.begin_read_only() as tx:
            return self._origins_by_key_hash(tx, reads, *self._read)

    def _origins_by_key_hash(
        self, tx: Transaction, reads: Sequence[KeyedRecord], target: str, kind: ResourceType
    ) -> dict[int, Origin]:
        by_id = {read.record.key_parts[0]: read for read in reads}
        members = {field.alias or name for name, field in kind.draft.model_fields.items()}
        found: dict[int, Origin] = {}
        for target_id, (key, written) in self._last_written(tx, target, kind.name, list(by_id)).items():
            read = by_id[target_id]
            held = read.record.json() if JSON in read.record.row else {}
            found[read.identity.key_hash] = Origin(key, _is_unchanged(held, written, members))
        return found

    def _last_written(
        self, tx: Transaction, target: str, resource: str, target_ids: Sequence[str]
    ) -> dict[str, tuple[str, dict[str, Any]]]:
        """Return the key and the last written payload of each record that crossdock created there, by id."""
        owned: dict[str, list[int]] = defaultdict(list)
        for _, namespace, key_hash, _ in tx.bindings.records_of_target_ids(target, resource, target_ids):
            if namespace in self._origins:
                owned[namespace].append(key_hash)
        written: dict[str, tuple[str, dict[str, Any]]] = {}
        for namespace, key_hashes in owned.items():
            for binding in tx.bindings.get(Scope(target, resource, namespace), key_hashes).values():
                written[binding.target_id] = binding.key, dict(binding.payload)
        for target_id, payload in tx.bindings.contributed_payloads(target, resource, list(written)):
            written[target_id][1].update(payload)
        return written


def _is_unchanged(held: dict[str, Any], written: dict[str, Any], members: set[str]) -> bool:
    added = {name for name in members - written.keys() if held.get(name) is not None}
    return bool(written) and not added and has_wanted_members(held, written)
