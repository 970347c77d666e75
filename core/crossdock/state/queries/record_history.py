"""Everything the state knows about one record, found by any of its names."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table, select

from crossdock.state.db.schema import attempts, bindings, dead_letters, intents, waiting_records

_DATA = {"body", "before", "after", "raw", "payload", "mapped"}


class RecordHistory:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def key_hashes(self, name: str, key: str) -> set[int]:
        """The key hashes of all records with the platform id or idempotency key *name*, or the record key *key*."""
        found: set[int] = set()
        for table in (bindings, intents, dead_letters, waiting_records):
            found |= self._hashes(table, table.c.key == key)
        for column in (bindings.c.platform_id, intents.c.platform_id, intents.c.idempotency_key):
            found |= self._hashes(column.table, column == name)
        return found

    def at(self, source: str, line: int) -> tuple[int, set[int]]:
        """The last line up to *line* in *source* where known records begin, and their key hashes; 0 without any."""
        nearest: dict[int, set[int]] = {}
        for table in (intents, dead_letters, waiting_records):
            query = select(table.c.line, table.c.key_hash).where(table.c.source == source, table.c.line <= line)
            for first_line, key_hash in self._connection.execute(query.order_by(table.c.line.desc()).limit(1)):
                nearest.setdefault(first_line, set()).add(key_hash)
        first_line = max(nearest, default=0)
        return first_line, nearest.get(first_line, set())

    def binding(self, key_hash: int) -> list[dict[str, Any]]:
        return self._rows(bindings, bindings.c.key_hash == key_hash)

    def dead_letters(self, key_hash: int) -> list[dict[str, Any]]:
        return self._rows(dead_letters, dead_letters.c.key_hash == key_hash)

    def waits(self, key_hash: int) -> list[dict[str, Any]]:
        return self._rows(waiting_records, waiting_records.c.key_hash == key_hash)

    def operations(self, key_hash: int) -> list[dict[str, Any]]:
        """The record's intents, oldest first, each with its attempts as ``sendings``."""
        found = self._rows(intents, intents.c.key_hash == key_hash)
        for row in found:
            row["sendings"] = self._rows(attempts, attempts.c.intent_id == row["id"])
        return sorted(found, key=lambda row: row["id"])

    def _hashes(self, table: Table, condition: Any) -> set[int]:
        return set(self._connection.execute(select(table.c.key_hash).where(condition)).scalars())

    def _rows(self, table: Table, condition: Any) -> list[dict[str, Any]]:
        columns = [column for column in table.c if column.name not in _DATA]
        return [dict(row) for row in self._connection.execute(select(*columns).where(condition)).mappings()]
