"""The state as it will be after some operations are delivered. A plan decides by it and writes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection

from crossdock.state.tables.dead_letters_and_waiting_records import DeadLetterFacts, DeadLetters, Wait, WaitingRecords
from crossdock.state.tables.inputs_of_streams import SnapshotHistory
from crossdock.state.tables.record_bindings import Binding, Bindings, KeyIndexChange, KeyIndexStamps
from crossdock.state.tables.record_identity_and_scope import Scope, Step


class ExpectedDelivery(Struct, frozen=True):
    """An operation that is delivered before the streams that are planned next.

    *binding* is None if it deletes the record. *is_whole* is False for the first of two steps.
    """

    stream: str
    scope: Scope
    key_hash: int
    binding: Binding | None
    is_whole: bool = True


class ExpectedDeliveries:
    """Expected deliveries; the last one of each record counts. They are held in memory, so they must be few."""

    def __init__(self) -> None:
        self._bindings: dict[Scope, dict[int, Binding | None]] = defaultdict(dict)
        self._finished: dict[str, set[int]] = defaultdict(set)
        self._refused: dict[str, list[DeadLetterFacts]] = defaultdict(list)

    def add(self, delivery: ExpectedDelivery) -> None:
        self._bindings[delivery.scope][delivery.key_hash] = delivery.binding
        if delivery.is_whole:
            self._finished[delivery.stream].add(delivery.key_hash)

    def add_refusal(self, stream: str, refused: DeadLetterFacts) -> None:
        """Expect that an operation is refused before the streams that are planned next."""
        self._refused[stream].append(refused)

    def refusals(self, stream: str) -> list[DeadLetterFacts]:
        return self._refused.get(stream, [])

    def expected_bindings_by_key_hash(self, scope: Scope) -> Mapping[int, Binding | None]:
        """Return the bindings of *scope* that differ from the stored ones, by key hash; None for a deleted record."""
        return self._bindings.get(scope, {})

    def expected_records_of_resource(
        self, target: str, resource: str
    ) -> Iterator[tuple[Scope, int, str, dict[str, Any]]]:
        """Yield scope, key hash, key and payload of the records of *resource* that differ from the stored ones."""
        for scope, expected in self._bindings.items():
            if (scope.target, scope.resource) == (target, resource):
                yield from ((scope, each.key_hash, each.key, each.payload) for each in expected.values() if each)

    def key_hashes_no_longer_open(self, stream: str) -> set[int]:
        """Return the key hashes of the records of *stream* that are no longer rejected or waiting."""
        return self._finished.get(stream, set())

    def key_index_changes(self, scope: Scope) -> list[KeyIndexChange]:
        return [
            KeyIndexChange(key_hash, binding.fingerprint, binding.position)
            if binding
            else KeyIndexChange(key_hash, None, None, is_live=False)
            for key_hash, binding in self.expected_bindings_by_key_hash(scope).items()
        ]


class ExpectedBindings(Bindings):
    def __init__(self, connection: Connection, stamps: KeyIndexStamps, expected: ExpectedDeliveries) -> None:
        super().__init__(connection, stamps)
        self._expected = expected

    def get(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, Binding]:
        unchanged, expected = self._split_by_expected_change(scope, key_hashes)
        return super().get(scope, unchanged) | expected

    def target_id_by_key_hash(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, str]:
        unchanged, expected = self._split_by_expected_change(scope, key_hashes)
        return super().target_id_by_key_hash(scope, unchanged) | {
            key_hash: each.target_id for key_hash, each in expected.items()
        }

    def contributions_to_recreated_records(self, scope: Scope) -> list[Binding]:
        expected = self._expected.expected_bindings_by_key_hash(scope)
        stored = [each for each in super().contributions_to_recreated_records(scope) if each.key_hash not in expected]
        return [*stored, *(each for each in expected.values() if each is not None and each.fingerprint is None)]

    def records_referring_to(
        self, target: str, resource: str, ids: Sequence[str]
    ) -> Iterator[tuple[Scope, int, str, dict[str, Any]]]:
        for found in super().records_referring_to(target, resource, ids):
            if found[1] not in self._expected.expected_bindings_by_key_hash(found[0]):
                yield found
        yield from self._expected.expected_records_of_resource(target, resource)

    def _split_by_expected_change(
        self, scope: Scope, key_hashes: Sequence[int]
    ) -> tuple[list[int], dict[int, Binding]]:
        """Split *key_hashes* into those whose stored binding is current, and the expected bindings of the others."""
        differing = self._expected.expected_bindings_by_key_hash(scope)
        found = {key_hash: differing[key_hash] for key_hash in key_hashes if key_hash in differing}
        unchanged = [key_hash for key_hash in key_hashes if key_hash not in found]
        return unchanged, {key_hash: binding for key_hash, binding in found.items() if binding}


class ExpectedDeadLetters(DeadLetters):
    def __init__(self, connection: Connection, expected: ExpectedDeliveries) -> None:
        super().__init__(connection)
        self._expected = expected

    def facts_of_all_letters_of_stream(self, stream: str) -> list[DeadLetterFacts]:
        finished, refused = self._expected.key_hashes_no_longer_open(stream), self._expected.refusals(stream)
        return [
            *(each for each in super().facts_of_all_letters_of_stream(stream) if each.key_hash not in finished),
            *refused,
        ]


class ExpectedWaitingRecords(WaitingRecords):
    def __init__(self, connection: Connection, expected: ExpectedDeliveries) -> None:
        super().__init__(connection)
        self._expected = expected

    def waits_of_stream(self, stream: str, key_hashes: Sequence[int] | None = None) -> list[Wait]:
        finished = self._expected.key_hashes_no_longer_open(stream) if key_hashes is None else set()
        return [each for each in super().waits_of_stream(stream, key_hashes) if each.identity.key_hash not in finished]


class ExpectedSnapshotHistory(SnapshotHistory):
    def __init__(self, connection: Connection, expected: ExpectedDeliveries) -> None:
        super().__init__(connection)
        self._expected = expected

    def accepted_steps_of_live_bindings(self, scope: Scope, key_hashes: Sequence[int]) -> Iterator[tuple[int, Step]]:
        differing = self._expected.expected_bindings_by_key_hash(scope)
        yield from super().accepted_steps_of_live_bindings(
            scope, [key_hash for key_hash in key_hashes if key_hash not in differing]
        )
        for key_hash in key_hashes:
            if binding := differing.get(key_hash):
                yield key_hash, binding.step
