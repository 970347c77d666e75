"""The indexes that ``crossdock trace`` searches, besides keys."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Index, Table, Text, and_, literal_column

from crossdock.state.db.schema import dead_letters, intents, waiting_records


def source_is(table: Table, source: str) -> ColumnElement[bool]:
    """Return the condition that the column ``source`` has this value, by the index on its first 200 characters.

    PostgreSQL indexes no text of more than 2,700 bytes. SQLite would not use the index if the whole column were
    compared.
    """
    start, rest = (literal_column(f"substr({table.name}.source, {place})", Text) for place in ("1, 200", "201"))
    return and_(start == source[:200], rest == source[200:])


TRACE_INDEXES = (
    *(
        Index(f"ix_{t.name}_place", literal_column("substr(source, 1, 200)"), t.c.line)
        for t in (intents, dead_letters, waiting_records)
    ),
    Index("ix_intents_target_id", intents.c.target_id),
)
"""Indexes by file and line, and by the id that a record had before it was deleted.

They cost two index entries of about 40 bytes for each operation until retention removes it.
"""
