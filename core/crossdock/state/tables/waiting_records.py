"""Waiting records: records whose references have not been delivered yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from crossdock.state.db import sql_statements
from crossdock.state.db.schema import waiting_records as table
from crossdock.state.tables.record_rows import DeadLetterFilter, RowsByKey, of_stream


@dataclass(frozen=True, slots=True)
class WaitingRecord:
    """A record that refers to others which are not delivered yet.

    Attributes:
        waits_for: ``[{resource, namespace, key}, ...]``.
    """

    stream: str
    key_hash: int
    key: str
    record_fp: int
    position: str | None
    waits_for: list[dict[str, str]]
    raw: dict[str, Any]
    source: str
    line: int


_ROWS = RowsByKey(table)
_SINCE = sql_statements.ByKey(select(table.c.key_hash, table.c.since).where(of_stream(table)), table.c.key_hash)


class WaitingRecords:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, records: Sequence[WaitingRecord], *, run_id: int, at: datetime) -> None:
        """Write waiting records; one that waited already keeps its *since*."""
        for stream in {record.stream for record in records}:
            group = [record for record in records if record.stream == stream]
            found = _SINCE.rows(self._connection, {"stream": stream}, [record.key_hash for record in group])
            since = {key_hash: started for key_hash, started in found}
            rows = [
                {name: getattr(record, name) for name in WaitingRecord.__slots__}
                | {"run_id": run_id, "since": since.get(record.key_hash, at)}
                for record in group
            ]
            sql_statements.upsert(self._connection, table, rows)

    def of(self, stream: str) -> list[WaitingRecord]:
        """Everything that waits in *stream*, longest first."""
        return self.chosen(DeadLetterFilter(stream))

    def fingerprint(self, stream: str, key_hash: int) -> int | None:
        """What a record reads that waits; None if it does not."""
        query = select(table.c.record_fp).where(table.c.stream == stream, table.c.key_hash == key_hash)
        return self._connection.execute(query).scalar()

    def chosen(self, choice: DeadLetterFilter) -> list[WaitingRecord]:
        """The waiting records of *choice*, longest first."""
        fields = [table.c[name] for name in WaitingRecord.__slots__]
        query = select(*fields).where(*choice.conditions(table)).order_by(table.c.since, table.c.key)
        return [WaitingRecord(*row) for row in self._connection.execute(query)]

    def clear(self, stream: str, key_hashes: Sequence[int]) -> None:
        """Forget records that wait no longer."""
        _ROWS.delete(self._connection, stream, key_hashes)

    def listed(self, *, limit: int) -> list[dict[str, Any]]:
        """Waiting records, longest first, at most *limit*."""
        query = select(table).order_by(table.c.since, table.c.stream, table.c.key).limit(limit)
        return [dict(row) for row in self._connection.execute(query).mappings()]
