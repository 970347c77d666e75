"""Finds a record by any of its names, and returns its history."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from crossdock.delta.fingerprint import key_hashes
from crossdock.state import FoundRecord, Scope, Transaction
from crossdock.values.record_keys import key_text

_LINE = re.compile("[0-9]{1,18}")  # databases accept no number of 20 digits


class RecordHistory(Struct, frozen=True):
    """Everything the state knows about one record; rows by column name, without the record's data.

    Attributes:
        streams: The streams that read it, or may read it; usually one.
        scope: None for a dead letter or waiting record of a stream that is unknown otherwise.
        operations: Oldest first, each with its attempts as ``sendings``.
    """

    streams: tuple[str, ...]
    scope: Scope | None
    bindings: list[dict[str, Any]]
    operations: list[dict[str, Any]]
    dead_letters: list[dict[str, Any]]
    waits: list[dict[str, Any]]

    @property
    def key(self) -> str:
        rows = (*self.bindings, *self.operations, *self.dead_letters, *self.waits)
        return str(rows[0]["key"])

    @property
    def key_hash(self) -> int:
        rows = (*self.bindings, *self.operations, *self.dead_letters, *self.waits)
        return int(rows[0]["key_hash"])

    @property
    def is_known(self) -> bool:
        return bool(self.bindings or self.operations or self.dead_letters or self.waits)


class RecordSearch:
    """Searches the state of a project, also for records of streams that are not in *scopes*."""

    def __init__(self, tx: Transaction, scopes: Mapping[str, Scope]) -> None:
        self._tx, self._scopes = tx, scopes

    def find(self, name: str) -> tuple[list[RecordHistory], int | None]:
        """Find the records that *name* means, and return their histories, by stream and key.

        *name* is a key as in the source or in text form, an ``externalId``, an id at the target, an idempotency key, or
        ``FILE:LINE``. If no record begins at that line, the nearest record above it is found, and the line where it
        begins is returned.
        """
        found = self._tx.record_history.records_by_id_or_idempotency_key(name) | self._by_key(name)
        if found:
            return self._histories(found), None
        source, _, line = name.rpartition(":")
        if source and _LINE.fullmatch(line):
            for file in (source, source.rpartition("/")[2]):
                first_line, found = self._tx.record_history.nearest_records_up_to_line(file, int(line))
                if found:
                    return self._histories(found), None if first_line == int(line) else first_line
        return [], None

    def find_key_in_stream(self, stream: str, key: str) -> list[RecordHistory]:
        """Return the record of *stream* with this key, as in the source or in text form; empty if there is none."""
        hashes = key_hashes([key, key_text([key])]).values()
        return self._histories({FoundRecord(None, stream, each) for each in hashes})

    def find_key_in_scopes(
        self, key: str, *, target: str = "", resource: str = "", namespace: str = ""
    ) -> list[RecordHistory]:
        """Return the records with this key in the scopes with these names; an empty name stands for any."""
        wanted = {"target": target, "resource": resource, "namespace": namespace}.items()
        known = {*self._scopes.values(), *self._tx.record_history.all_scopes_in_state()}
        scopes = [scope for scope in known if all(not name or scope.columns[part] == name for part, name in wanted)]
        hashes = key_hashes([key, key_text([key])]).values()
        return self._histories({FoundRecord(scope, None, key_hash) for scope in scopes for key_hash in hashes})

    def _by_key(self, name: str) -> set[FoundRecord]:
        tracing = self._tx.record_history
        scopes, streams = (
            {*self._scopes.values(), *tracing.all_scopes_in_state()},
            {*self._scopes, *tracing.all_streams_with_undelivered_records()},
        )
        hashes = key_hashes([name, key_text([name])])
        found = tracing.records_with_keys(scopes, streams, hashes.values())
        namespace, _, key = name.partition(":")
        named = {scope for scope in scopes if scope.namespace == namespace}
        if key and named:
            hashes = key_hashes([key, key_text([key])])
            its_streams = [stream for stream, scope in self._scopes.items() if scope in named]
            found |= tracing.records_with_keys(named, its_streams, hashes.values())
        return found

    def _histories(self, found: set[FoundRecord]) -> list[RecordHistory]:
        records: dict[tuple[Scope | str, int], set[str]] = defaultdict(set)
        for each in found:
            records[self._scope_or_stream_of_record(each), each.key_hash].update([each.stream] if each.stream else [])
        histories = [self._history(*record, streams) for record, streams in records.items()]
        return sorted((each for each in histories if each.is_known), key=lambda each: (each.streams, each.key))

    def _scope_or_stream_of_record(self, found: FoundRecord) -> Scope | str:
        """Return the scope in which a record's key is unique, or its stream if the scope is unknown."""
        if found.scope is not None:
            return found.scope
        assert found.stream is not None
        if configured := self._scopes.get(found.stream):
            return configured
        for scope in self._tx.record_history.all_scopes_in_state():  # the stream is no longer configured
            if any(row["stream"] == found.stream for row in self._tx.record_history.operations(scope, found.key_hash)):
                return scope
        return found.stream

    def _history(self, place: Scope | str, key_hash: int, found_in: set[str]) -> RecordHistory:
        tracing, scope = self._tx.record_history, None if isinstance(place, str) else place
        operations = tracing.operations(scope, key_hash) if scope else []
        configured = {name for name, its_scope in self._scopes.items() if its_scope == scope}
        streams = tuple(sorted(found_in | configured | {row["stream"] for row in operations}))
        return RecordHistory(
            streams,
            scope,
            tracing.bindings(scope, key_hash) if scope else [],
            operations,
            [row for stream in streams for row in tracing.dead_letters(stream, key_hash)],
            [row for stream in streams for row in tracing.waits_of_record(stream, key_hash)],
        )
