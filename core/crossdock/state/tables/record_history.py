"""The story of a record, whichever of its names one has at hand."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table, select

from crossdock.state.db.schema import attempts, bindings, dead_letters, intents, waiting_records

_DATA = {"body", "before", "after", "raw", "payload", "mapped"}


class RecordHistory:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def key_hashes(self, name: str, key: str) -> set[int]:
        """The key hashes of the records that *name* may mean.

        Args:
            name: A platform id or an idempotency key.
            key: A record key in text form.
        """
        found: set[int] = set()
        for table in (bindings, intents, dead_letters, waiting_records):
            found |= self._hashes(table, table.c.key == key)
        found |= self._hashes(bindings, bindings.c.platform_id == name)
        for column in (intents.c.platform_id, intents.c.idempotency_key):
            found |= self._hashes(intents, column == name)
        return found

    def at(self, source: str, line: int) -> tuple[int, set[int]]:
        """Where in a file, at *line* or above, records begin that are known, and their key hashes; 0 without any."""
        nearest: dict[int, set[int]] = {}
        for table in (intents, dead_letters, waiting_records):
            query = (
                select(table.c.key_hash, table.c.line)
                .where(table.c.source == source, table.c.line <= line)
                .order_by(table.c.line.desc())
                .limit(1)
            )
            for key_hash, began in self._connection.execute(query):
                nearest.setdefault(began, set()).add(key_hash)
        began = max(nearest, default=0)
        return began, nearest.get(began, set())

    def binding(self, key_hash: int) -> list[dict[str, Any]]:
        return self._rows(bindings, bindings.c.key_hash == key_hash)

    def dead_letters(self, key_hash: int) -> list[dict[str, Any]]:
        return self._rows(dead_letters, dead_letters.c.key_hash == key_hash)

    def waits(self, key_hash: int) -> list[dict[str, Any]]:
        return self._rows(waiting_records, waiting_records.c.key_hash == key_hash)

    def operations(self, key_hash: int) -> list[dict[str, Any]]:
        """Oldest first, each with its noted ``sendings``."""
        found = self._rows(intents, intents.c.key_hash == key_hash)
        for row in found:
            row["sendings"] = self._rows(attempts, attempts.c.intent_id == row["id"])
        return sorted(found, key=lambda row: row["id"])

    def _hashes(self, table: Table, condition: Any) -> set[int]:
        return set(self._connection.execute(select(table.c.key_hash).where(condition)).scalars())

    def _rows(self, table: Table, condition: Any) -> list[dict[str, Any]]:
        columns = [column for column in table.c if column.name not in _DATA]
        return [dict(row) for row in self._connection.execute(select(*columns).where(condition)).mappings()]
