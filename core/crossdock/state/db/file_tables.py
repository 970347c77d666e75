"""The tables of files that were read: taken in, passed over or seen before."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, LargeBinary, String, Table, Text

from crossdock.state.db.column_types import UtcDateTime
from crossdock.state.db.schema import metadata

taken_files = Table(
    "taken_files",
    metadata,
    Column("stream", String(192), primary_key=True),
    Column("content_hash", String(64), primary_key=True),
    Column("version", String(64), primary_key=True),
    Column("name", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("modified_at", UtcDateTime, nullable=False),
    Column("stamp", String(32), nullable=False),
    Column("status", String(16), nullable=False),
    Column("accepted_at", UtcDateTime, nullable=False),
    Column("seen_at", UtcDateTime),
)

passed_files = Table(
    "passed_files",
    metadata,
    Column("stream", String(192), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("modified_at", UtcDateTime, nullable=False),
)

content_digests = Table(
    "content_digests",
    metadata,
    Column("kind", String(16), primary_key=True),
    Column("stream", String(192), primary_key=True),
    Column("version", String(64), primary_key=True),
    Column("packed", LargeBinary, nullable=False),
)
