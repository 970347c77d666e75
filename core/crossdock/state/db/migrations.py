"""How a state of an earlier version becomes one of today's. A step is never edited once it is released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import uuid4

from sqlalchemy import Column, Connection, Table, insert, select, text, update

from crossdock.state.db import schema

Migration = Callable[[Connection], None]
IDENTITY = "id"  # the name of the fact that tells a state from any other one
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def migrate(connection: Connection, steps: Sequence[Migration]) -> None:
    """Bring the tables from their version to the last step's, in the caller's transaction."""
    meta = schema.meta
    version = int(connection.execute(select(meta.c.value).where(meta.c.name == "version")).scalar_one())
    for step in steps[version - 1 :]:
        step(connection)
        version += 1
    connection.execute(update(meta).where(meta.c.name == "version").values(value=str(version)))


def seed(connection: Connection) -> None:
    """The rows that new tables need."""
    _seed_lease(connection)
    _seed_identity(connection)


def _seed_lease(connection: Connection) -> None:
    lease = {"name": "run", "fence": 0, "owner": "nobody", "locked": False, "until": LONG_AGO}
    connection.execute(insert(schema.leases), [lease])


def _seed_identity(connection: Connection) -> None:
    connection.execute(insert(schema.meta), [{"name": IDENTITY, "value": uuid4().hex}])


def _to_2(connection: Connection) -> None:
    """Leases with fences, each attempt, conditional updates, and dead letters that a person has dropped."""
    schema.leases.create(connection)
    schema.attempts.create(connection)
    _add(connection, schema.intents, schema.intents.c.if_match)
    _add(connection, schema.refused, schema.refused.c.position)
    _add(connection, schema.refused, schema.refused.c.status)
    _seed_lease(connection)


def _to_3(connection: Connection) -> None:
    """Buckets with what is known of the limit. How far one was spent is forgotten: it is full again in seconds."""
    connection.execute(text("DROP TABLE buckets"))
    schema.buckets.create(connection)


def _to_4(connection: Connection) -> None:
    """Stamps that tell whether a key index is current (without one it is made anew), and the nights of jobs."""
    for table in (schema.key_stamps, schema.nights):
        table.create(connection)
    instant = "TIMESTAMP WITH TIME ZONE" if connection.dialect.name == "postgresql" else "TEXT"
    facts = f"since {instant} NOT NULL, paused BOOLEAN NOT NULL"
    connection.execute(text(f"CREATE TABLE jobs (name VARCHAR(64) NOT NULL, {facts}, PRIMARY KEY (name))"))


def _to_5(connection: Connection) -> None:
    """Past snapshots and approvals: what it takes to remove records. Written out, so that it stays as it is."""
    instant, octets = (
        ("TIMESTAMP WITH TIME ZONE", "BYTEA") if connection.dialect.name == "postgresql" else ("TEXT", "BLOB")
    )
    past = f"row_count BIGINT NOT NULL, present BIGINT, finished_at {instant} NOT NULL"
    asked = f"what TEXT NOT NULL, keys {octets} NOT NULL, since {instant} NOT NULL, approved_at {instant}"
    key = "stream VARCHAR(192) NOT NULL, content VARCHAR(64) NOT NULL"
    connection.execute(text(f"CREATE TABLE snapshots ({key}, {past}, PRIMARY KEY (stream, content))"))
    connection.execute(text(f"CREATE TABLE removals (stream VARCHAR(192) NOT NULL, {asked}, PRIMARY KEY (stream))"))


def _to_6(connection: Connection) -> None:
    """The course of a run."""
    connection.execute(text("ALTER TABLE runs ADD COLUMN course TEXT"))


def _to_7(connection: Connection) -> None:
    """An identity, buckets that say as of when they are, and what retention leaves of files, snapshots and runs.

    How far a bucket was spent is forgotten, as in version 3.
    """
    _seed_identity(connection)
    connection.execute(text("DROP TABLE buckets"))
    schema.buckets.create(connection)
    instant, octets = (
        ("TIMESTAMP WITH TIME ZONE", "BYTEA") if connection.dialect.name == "postgresql" else ("TEXT", "BLOB")
    )
    key = "kind VARCHAR(16) NOT NULL, stream VARCHAR(192) NOT NULL, version VARCHAR(64) NOT NULL"
    for statement in (
        f"ALTER TABLE intake ADD COLUMN seen_at {instant}",
        f"ALTER TABLE jobs ADD COLUMN done_until {instant}",
        f"CREATE TABLE digests ({key}, packed {octets} NOT NULL, PRIMARY KEY (kind, stream, version))",
        "CREATE INDEX ix_bindings_run ON bindings (run_id)",
        "CREATE INDEX ix_intents_run ON intents (run_id)",
    ):
        connection.execute(text(statement))


def _add(connection: Connection, table: Table, column: Column[object]) -> None:
    kind = column.type.compile(connection.dialect)
    default = f" NOT NULL DEFAULT '{column.server_default.arg}'" if column.server_default is not None else ""  # type: ignore[attr-defined]  # the default is a plain text
    connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {column.name} {kind}{default}"))


# step n takes a state from version n to n+1
MIGRATIONS: tuple[Migration, ...] = (_to_2, _to_3, _to_4, _to_5, _to_6, _to_7)
