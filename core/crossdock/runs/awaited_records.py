"""Records to fetch in addition to named ones: those that they refer to, and those that waited for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from crossdock.config.project.connector_instances import BoundStream
from crossdock.planning.references import key_hashes
from crossdock.state import NamedRecord, Scope, State

WAITING_AT_MOST = 1_000  # waiting records of one stream that are searched


class AwaitedRecords:
    def __init__(self, state: State, streams: Iterable[BoundStream]) -> None:
        self._state, self._streams = state, {bound.name: bound for bound in streams}
        self._writers = {bound.scope: bound for bound in self._streams.values()}

    def missing(self, fetched: Mapping[str, Collection[int]]) -> Iterator[NamedRecord]:
        """Yield the records for which records with the key hashes *fetched*, by stream, wait."""
        for name, hashes in fetched.items():
            with self._state.look() as tx:
                waits = tx.waiting_records.waits_of(name, list(hashes)).values()
            waits_for = [each for record in waits for each in record]
            for scope, key, key_hash in _awaited(self._streams[name], waits_for):
                if (writer := self._writers.get(scope)) is not None:
                    yield NamedRecord(writer.name, key, key_hash)

    def waits(self, records: Iterable[NamedRecord]) -> Iterator[tuple[NamedRecord, list[NamedRecord]]]:
        by_stream: dict[str, dict[int, NamedRecord]] = {}
        for record in records:
            by_stream.setdefault(record.stream, {})[record.key_hash] = record
        for name, asked in by_stream.items():
            with self._state.look() as tx:
                waits = tx.waiting_records.waits_of(name, list(asked))
            for key_hash, waits_for in waits.items():
                found = _awaited(self._streams[name], waits_for)
                writers = ((self._writers.get(scope), key, awaited) for scope, key, awaited in found)
                yield asked[key_hash], [NamedRecord(each.name, key, awaited) for each, key, awaited in writers if each]

    def waiting(self, fetched: Mapping[str, Collection[int]]) -> set[str]:
        """Return the streams with records that wait among the key hashes *fetched*."""
        with self._state.look() as tx:
            return {name for name, hashes in fetched.items() if tx.waiting_records.waits_of(name, list(hashes))}

    def released(self, fetched: Mapping[str, Collection[int]]) -> Iterator[NamedRecord]:
        """Yield the records that wait for records with the key hashes *fetched*."""
        parents = {self._streams[name].scope: set(hashes) for name, hashes in fetched.items()}
        resources = {scope.resource for scope in parents}
        for bound in self._writers.values():
            if resources.isdisjoint(bound.kind.parents):
                continue
            with self._state.look() as tx:
                waiting = tx.waiting_records.first(bound.name, WAITING_AT_MOST)
            for record in waiting:
                awaited = _awaited(bound, record.waits_for)
                if any(key_hash in parents.get(scope, ()) for scope, _, key_hash in awaited):
                    yield NamedRecord(bound.name, record.identity.key, record.identity.key_hash)


def _awaited(bound: BoundStream, waits_for: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Scope, str, int]]:
    hashes = key_hashes([each["key"] for each in waits_for])
    for each in waits_for:
        key = each["key"]
        yield Scope(bound.scope.target, each["resource"], each["namespace"]), key, hashes[key]
