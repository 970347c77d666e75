"""Contributions to records that another stream creates, and records that crossdock itself wrote to a stream's source.

What crossdock wrote is recognized, so that it does not circulate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from msgspec import Struct, structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.changed_record_reading import KeyedRecord
from crossdock.mapping.resource_types import ResourceType
from crossdock.runs.planning.references import ScopedKey, placeholder_of_planned_record_id
from crossdock.state import Binding, RecordIdentity, Scope, State, Transaction
from crossdock.values.raw_rows_and_records import JSON, Record
from crossdock.writing.delivery.operations_and_intents import FROM_STATE, Operation
from crossdock.writing.targets.payload_comparison import has_wanted_members


class OriginRecord(Struct, frozen=True):
    """The record from which crossdock created one that is read now."""

    key: str
    is_unchanged: bool


class OwnWrites:
    def __init__(self, bound: BoundStream) -> None:
        self._read, self._origins = bound.read_target_and_type, bound.namespaces_of_target_system

    def origins_by_key_hash(self, state: State, reads: Sequence[KeyedRecord]) -> dict[int, OriginRecord]:
        if self._read is None or not self._origins:
            return {}
        with state.begin_read_only() as tx:
            return self._origins_by_key_hash(tx, reads, *self._read)

    def _origins_by_key_hash(
        self, tx: Transaction, reads: Sequence[KeyedRecord], target: str, kind: ResourceType
    ) -> dict[int, OriginRecord]:
        by_id = {read.record.key_parts[0]: read for read in reads}
        members = {field.alias or name for name, field in kind.draft.model_fields.items()}
        found: dict[int, OriginRecord] = {}
        for target_id, (key, written) in self._last_written(tx, target, kind.name, list(by_id)).items():
            read = by_id[target_id]
            held = read.record.json() if JSON in read.record.row else {}
            found[read.identity.key_hash] = OriginRecord(key, _is_unchanged(held, written, members))
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


class Contributions:
    def __init__(self, bound: BoundStream) -> None:
        self._scope, self._by_id, self._stream = bound.scope, bound.stream.matches != "key", bound.name
        self._members_of_own = bound.members_of_own
        self.needed = bool(bound.stream.contributes)

    def record_that_must_exist_first(self, read: KeyedRecord) -> list[ScopedKey]:
        """Return the record that must exist first; none for a record that is named by its target id."""
        return [(self._scope.whole_record_scope, read.identity.key)] if self.needed and not self._by_id else []

    def contributions_to_existing_and_deleted(
        self, tx: Transaction, reads: Sequence[KeyedRecord], origins: Mapping[int, OriginRecord]
    ) -> tuple[dict[int, Binding], dict[int, Binding]]:
        """Return what this stream contributed to *reads* that exist, and to those that were deleted since, by key hash.

        A record without a contribution, or one that was created again since, has an empty payload.
        """
        key_hashes = [read.identity.key_hash for read in reads]
        own = tx.bindings.get(self._scope, key_hashes)
        wholes = {} if self._by_id else tx.bindings.get(self._scope.whole_record_scope, key_hashes)
        found: dict[int, Binding] = {}
        for read in reads:
            key_hash, mine = read.identity.key_hash, own.get(read.identity.key_hash)
            whole = wholes.get(key_hash)
            if whole is None and not self._by_id:
                continue
            target_id = _target_id_of(read, origins) if whole is None else whole.target_id
            if mine is None or mine.target_id != target_id:
                mine = _empty_contribution(key_hash, read.identity.key, target_id, mine.counter if mine else 0)
            found[key_hash] = (
                mine if whole is None else structs.replace(mine, etag=whole.etag, changed_at=whole.changed_at)
            )
        return found, {key_hash: mine for key_hash, mine in own.items() if key_hash not in found}

    def operations_for_records_created_again(self, tx: Transaction, left_out: Collection[int]) -> Iterator[Operation]:
        """Yield what was contributed to records that were created again since: their rows may not be read again."""
        if self._by_id:
            return
        found = tx.bindings.contributions_to_recreated_records(self._scope)
        wholes = tx.bindings.get(self._scope.whole_record_scope, [mine.key_hash for mine in found])
        for mine in found:
            key_hash, key = mine.key_hash, mine.key
            whole = wholes.get(key_hash) or _empty_contribution(
                key_hash, key, placeholder_of_planned_record_id(self._scope.whole_record_scope, key), 0
            )
            payload = self._members_of_own(mine.payload)
            if key_hash not in left_out and payload and whole.target_id != mine.target_id:
                identity = RecordIdentity(self._stream, key, key_hash, None, mine.position, FROM_STATE, 0)
                held = _empty_contribution(key_hash, key, whole.target_id, mine.counter)
                held = structs.replace(held, etag=whole.etag, changed_at=whole.changed_at)
                record = Record(key, (), FROM_STATE, (0,))
                yield Operation("update", identity, self._scope, record, payload, payload, held)

    def binding_before_first_contribution(self, read: KeyedRecord) -> Binding:
        """Return the empty contribution to a record that the plan creates before."""
        key = read.identity.key
        return _empty_contribution(
            read.identity.key_hash, key, placeholder_of_planned_record_id(self._scope.whole_record_scope, key), 0
        )


def _target_id_of(read: KeyedRecord, origins: Mapping[int, OriginRecord]) -> str:
    origin = origins.get(read.identity.key_hash)
    return unquote(origin.key) if origin else read.record.key_parts[0]


def _empty_contribution(key_hash: int, key: str, target_id: str, counter: int) -> Binding:
    return Binding(key_hash, key, target_id, None, None, "import", {}, None, counter)
