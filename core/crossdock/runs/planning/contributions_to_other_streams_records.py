"""Contributions to records that another stream creates, and what they need of the whole record."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from urllib.parse import unquote

from msgspec import structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.second_pass_for_changed_records import KeyedRecord
from crossdock.runs.planning.own_writes_in_source import Origin
from crossdock.runs.planning.target_ids_of_references import ScopedKey, placeholder
from crossdock.state import Binding, RecordIdentity, Transaction
from crossdock.values.raw_rows_and_records import Record
from crossdock.writing.delivery.operations_and_intents import FROM_STATE, Operation


class Contributions:
    def __init__(self, bound: BoundStream) -> None:
        self._scope, self._by_id, self._stream = bound.scope, bound.stream.matches != "key", bound.name
        self._members_of_own = bound.members_of_own
        self.needed = bool(bound.stream.contributes)

    def record_that_must_exist_first(self, read: KeyedRecord) -> list[ScopedKey]:
        """Return the record that must exist first; none for a record that is named by its target id."""
        return [(self._scope.whole_record_scope, read.identity.key)] if self.needed and not self._by_id else []

    def contributions_to_existing_and_deleted(
        self, tx: Transaction, reads: Sequence[KeyedRecord], origins: Mapping[int, Origin]
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

    def operations_for_recreated(self, tx: Transaction, left_out: Collection[int]) -> Iterator[Operation]:
        """Yield what was contributed to records that were created again since: their rows may not be read again."""
        if self._by_id:
            return
        found = tx.bindings.contributions_to_recreated_records(self._scope)
        wholes = tx.bindings.get(self._scope.whole_record_scope, [mine.key_hash for mine in found])
        for mine in found:
            key_hash, key = mine.key_hash, mine.key
            whole = wholes.get(key_hash) or _empty_contribution(
                key_hash, key, placeholder(self._scope.whole_record_scope, key), 0
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
        return _empty_contribution(read.identity.key_hash, key, placeholder(self._scope.whole_record_scope, key), 0)


def _target_id_of(read: KeyedRecord, origins: Mapping[int, Origin]) -> str:
    origin = origins.get(read.identity.key_hash)
    return unquote(origin.key) if origin else read.record.key_parts[0]


def _empty_contribution(key_hash: int, key: str, target_id: str, counter: int) -> Binding:
    return Binding(key_hash, key, target_id, None, None, "import", {}, None, counter)
