"""The tables of what streams read besides changes: full lists, and records that are not final."""

from __future__ import annotations

from sqlalchemy import Column, Integer, String, Table, Text

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
    Column("missed", Integer, nullable=False),  # how often in succession the source did not have it
)
