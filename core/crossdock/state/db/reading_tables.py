"""The tables of what streams read: full lists, records that are not final, and inputs that may kill the process."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, String, Table, Text

from crossdock.state.db.column_types import Hash, UtcDateTime
from crossdock.state.db.schema import metadata

full_lists = Table(
    "full_lists",
    metadata,
    Column("stream", String(192), primary_key=True),
    Column("read_at", UtcDateTime, nullable=False),
)

followed_records = Table(
    "followed_records",
    metadata,
    Column("stream", String(192), primary_key=True),
    Column("key_hash", Hash, primary_key=True),
    Column("key", Text, nullable=False),
    Column("read_at", UtcDateTime, nullable=False),
    Column("missed", Integer, nullable=False),  # how many times in a row the source did not have it
)

suspected_inputs = Table(
    "suspected_inputs",
    metadata,
    Column("stream", String(192), primary_key=True),
    Column("digest", String(64), primary_key=True),
    Column("name", Text, nullable=False),
    Column("killed", Integer, nullable=False),
    Column("here", Integer, nullable=False),
    Column("batches", BigInteger, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("set_aside_at", UtcDateTime),
)
