"""The tables of the state. Times are in UTC, hashes are unsigned 128 bits, payloads are exact JSON."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    and_,
    literal_column,
)

from crossdock.state.db.sql_types_and_statements import (
    ExactJson,
    Hash,
    UtcDateTime,
    record_data_and_place_columns,
    scope_columns,
    stream_and_key_columns,
)

VERSION = 26

metadata = MetaData()
_Serial = BigInteger().with_variant(Integer, "sqlite")  # SQLite generates ids for INTEGER only

meta = Table(
    "crossdock_meta",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", _Serial, primary_key=True),
    Column("job", String(128)),
    Column("business_date", String(10), nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    Column("duration_ms", BigInteger),
    Column("status", String(16), nullable=False),
    Column("requests", BigInteger, nullable=False, default=0),
    Column("throttled", BigInteger, nullable=False, default=0),
    Column("tally", ExactJson),
    Column("timings", ExactJson),
    Column("command", Text),
    Column("config", String(64)),  # of `configs`
    Column("fence", BigInteger),  # of the lease under which it was started last
    Index("ix_runs_business_date", "business_date", "job", "status"),
)

configs = Table(
    "configs",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("content", ExactJson, nullable=False),
)

run_messages = Table(
    "run_messages",
    metadata,
    Column("run_id", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("level", String(8), nullable=False),
    Column("stream", String(192), nullable=False),
    Column("message", Text, nullable=False),
    Column("code", String(32)),
    Column("place", Text),
    Column("advice", Text),
    Column("category", String(16)),
)

bindings = Table(
    "bindings",
    metadata,
    *scope_columns(),
    Column("key_hash", Hash, primary_key=True),
    Column("key", Text, nullable=False),
    Column("target_id", String(128), nullable=False, index=True),
    Column("record_fp", Hash),
    Column("step", String(8), nullable=False),
    Column("position", Text),
    Column("payload", ExactJson, nullable=False),
    Column("etag", Text),
    Column("changed_at", Text),
    Column("counter", BigInteger, nullable=False),
    Column("run_id", ForeignKey("runs.id"), nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("deleted_at", UtcDateTime),
    Column("unverified", Boolean),  # must be compared with the target before it is used
    Index("ix_bindings_run", "run_id"),
)
unverified_bindings = Index(
    "ix_bindings_unverified",
    *(bindings.c[name] for name in ("target", "resource", "namespace", "key_hash")),
    sqlite_where=bindings.c.unverified.is_(
        True
    ),  # `database_creation_and_opening` adds the same for PostgreSQL, whose dialect this imports
)

unverified = Table(
    "unverified",
    metadata,
    Column("kind", String(8), primary_key=True),  # resource: records of a target; stream: records that were read
    Column("name", String(192), primary_key=True),
)

unknown_references = Table(
    "unknown_references",
    metadata,
    Column("target", String(64), primary_key=True),
    Column("resource", String(32), primary_key=True),  # of the record that is referred to
    Column("target_id", String(128), primary_key=True),
    Column("by_resource", String(32), primary_key=True),
    Column("by_id", String(128), primary_key=True),
)

untrimmed_keys = Table(  # keys with white space around them, from before keys were trimmed
    "untrimmed_keys",
    metadata,
    *scope_columns(),
    Column("key_hash", Hash, primary_key=True),
    Column("key", Text, nullable=False),
)

intents = Table(
    "intents",
    metadata,
    Column("id", _Serial, primary_key=True),
    Column("run_id", ForeignKey("runs.id"), nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("stream", String(192), nullable=False),
    Column("target", String(64), nullable=False),
    Column("resource", String(32), nullable=False),
    Column("namespace", String(128), nullable=False),
    Column("key_hash", Hash, nullable=False),
    *record_data_and_place_columns(),
    Column("operation", String(16), nullable=False),
    Column("counter", BigInteger, nullable=False),
    Column("idempotency_key", String(64), nullable=False, unique=True),
    Column("method", String(8), nullable=False),
    Column("path", Text, nullable=False),
    Column("body", LargeBinary),
    Column("before", ExactJson),
    Column("after", ExactJson),
    Column("step", String(8), nullable=False),
    Column("if_match", Text),
    Column("status", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("first_sent_at", UtcDateTime),
    Column("settled_at", UtcDateTime),
    Column("http_status", Integer),
    Column("target_id", String(128)),
    Column("untouched", Boolean),  # delivered without a write: the target already held it
    Column("only_unchanged", String(8)),  # what no one else may have changed in the record
    Column("resolved_at", UtcDateTime),  # by a person or a list, after it was in doubt
    Column("batch_id", BigInteger),  # of `batches`
    Column("place", Integer),  # in its batch, from 0
    Index("ix_intents_key", "target", "resource", "namespace", "key_hash"),
    Index("ix_intents_status", "status"),
    Index("ix_intents_run", "run_id"),
    Index("ix_intents_batch", "batch_id"),
)

batches = Table(  # whose bytes are made once, such as files
    "batches",
    metadata,
    Column("id", _Serial, primary_key=True),
    Column("run_id", ForeignKey("runs.id"), nullable=False),
    Column("target", String(64), nullable=False),
    Column("resource", String(32), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("key", String(64), nullable=False, unique=True),  # of the transaction that made it, which may be repeated
    Column("name", Text, nullable=False),
    Column("destination", Text, nullable=False),
    Column("body", LargeBinary),
    Column("sha256", String(64), nullable=False),
    Column("records", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("handed_over_at", UtcDateTime),
    Column("due_at", UtcDateTime),  # for its acknowledgement
    Column("receipt", Text, nullable=False, server_default=""),  # what its target has answered so far
    Index("ix_batches_target_name", "target", "name"),
    Index("ix_batches_target_number", "target", "number"),
)

sequences = Table(
    "sequences",
    metadata,
    Column("target", String(64), primary_key=True),
    Column("last", BigInteger, nullable=False),
)

attempts = Table(
    "attempts",
    metadata,
    Column("intent_id", ForeignKey("intents.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("ended_at", UtcDateTime, nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("http_status", Integer),
    Column("message", Text, nullable=False),
)

dead_letters = Table(
    "dead_letters",
    metadata,
    *stream_and_key_columns(),
    *record_data_and_place_columns(),
    Column("step", String(8), nullable=False),
    Column("stage", String(16), nullable=False),
    Column("code", String(32), nullable=False),
    Column("pointer", Text),
    Column("message", Text, nullable=False),
    Column("mapped", ExactJson),
    Column("status", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("first_run_id", ForeignKey("runs.id"), nullable=False),
    Column("run_id", ForeignKey("runs.id"), nullable=False),
    Column("refused_at", UtcDateTime, nullable=False),
)
listed_dead_letters = Index(  # pages of a list, and groups by reason, without the records' data
    "ix_dead_letters_listed",
    *(
        dead_letters.c[name]
        for name in ("status", "stream", "code", "refused_at", "key_hash", "first_run_id", "run_id")
    ),
)

waiting_records = Table(
    "waiting_records",
    metadata,
    *stream_and_key_columns(),
    *record_data_and_place_columns(),
    Column("waits_for", ExactJson, nullable=False),
    Column("run_id", ForeignKey("runs.id"), nullable=False),
    Column("since", UtcDateTime, nullable=False),
    Column("idle_under", String(64)),  # the mapping under which only its references can release it
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("connection", String(64), primary_key=True),
    Column("delivery", String(512), primary_key=True),  # the same for each copy of the webhook
    Column("received_at", UtcDateTime, nullable=False),
    Column("topic", Text, nullable=False),
    Column("problem", Text),  # why the connector cannot read it
    Index("ix_webhooks_received_at", "received_at"),
)

hints = Table(
    "hints",
    metadata,
    *stream_and_key_columns(),
    Column("key", Text, nullable=False),
    Column("number", BigInteger, nullable=False),  # grows with each hint for the record
    Column("first_at", UtcDateTime, nullable=False),
    Column("last_at", UtcDateTime, nullable=False),
    Column("due_at", UtcDateTime, nullable=False),
    Column("attempts", Integer, nullable=False),  # that failed since the last hint
    Column("error", Text),
    Index("ix_hints_stream_due_at", "stream", "due_at"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("since", UtcDateTime, nullable=False),  # when a schedule first named it; nothing was due before
    Column("paused", Boolean, nullable=False),
    Column("done_until", UtcDateTime),  # due times up to here that have no row in `scheduled_runs` are finished
)

scheduled_runs = Table(
    "scheduled_runs",
    metadata,
    Column("job", String(64), primary_key=True),
    Column("due", UtcDateTime, primary_key=True),
    Column("business_date", String(10), primary_key=True),  # several dates may become due when a blackout ends
    Column("status", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("run_id", ForeignKey("runs.id")),
    Column("started_at", UtcDateTime),
    Column("finished_at", UtcDateTime),
    Column("note", Text),
    Column("fence", BigInteger),  # of the lease under which it was started last
)

migrations = Table(
    "migrations",
    metadata,
    Column("id", _Serial, primary_key=True),
    Column("name", String(64), nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("started_by", String(128), nullable=False),
    Column("paused_at", UtcDateTime),
    Column("paused_by", String(128)),
    Column("rehearsal", ExactJson),
    Column("freeze", ExactJson),
    Column("reconciliation", ExactJson),
    Column("signed_off_at", UtcDateTime),
    Column("signed_off_by", String(128)),
    Column("report_sha256", String(64)),
)

migration_runs = Table(
    "migration_runs",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True),
    Column("migration_id", ForeignKey("migrations.id"), nullable=False),
    Column("wave", String(64)),  # none for a repair or an undo
    Column("kind", String(16), nullable=False),
)

wave_approvals = Table(
    "wave_approvals",
    metadata,
    Column("migration_id", ForeignKey("migrations.id"), primary_key=True),
    Column("wave", String(64), primary_key=True),
    Column("approved_at", UtcDateTime, nullable=False),
    Column("approved_by", String(128), nullable=False),
    Column("open", ExactJson, nullable=False),  # what was open then
)

begun_undos = Table(
    "begun_undos",
    metadata,
    Column("stream", String(192), primary_key=True),
    Column("run_id", ForeignKey("runs.id"), nullable=False),
    Column("begun_at", UtcDateTime, nullable=False),
    Column("plan", ExactJson, nullable=False),
    Column("keys", LargeBinary, nullable=False),
)

key_stamps = Table(
    "key_stamps",
    metadata,
    *scope_columns(),
    Column("stamp", BigInteger, nullable=False),  # changes whenever a binding of the scope does
)

cursors = Table(
    "cursors",
    metadata,
    Column("stream", String(192), primary_key=True),
    Column("version", String(64), nullable=False),
    Column("value", Text, nullable=False),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("stream", String(192), primary_key=True),
    Column("content", String(64), primary_key=True),
    Column("row_count", BigInteger, nullable=False),
    Column("present", BigInteger),
    Column("finished_at", UtcDateTime, nullable=False),
)

pending_removals = Table(
    "pending_removals",
    metadata,
    Column("stream", String(192), primary_key=True),
    Column("what", Text, nullable=False),
    Column("keys", LargeBinary, nullable=False),
    Column("since", UtcDateTime, nullable=False),
    Column("approved_at", UtcDateTime),
)

leases = Table(
    "leases",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("fence", BigInteger, nullable=False),
    Column("owner", String(128), nullable=False),
    Column("locked", Boolean, nullable=False),
    Column("until", UtcDateTime, nullable=False),
)

buckets = Table(
    "buckets",
    metadata,
    Column("name", String(512), primary_key=True),
    Column("rate_per_s", Double, nullable=False),
    Column("burst", BigInteger, nullable=False),
    Column("as_of", Double, nullable=False),  # the latest time seen on the database's clock, as all times here
    Column("spent_until", Double, nullable=False),
    Column("frozen_until", Double, nullable=False),
    Column("spent", BigInteger, nullable=False),
    Column("refused", BigInteger, nullable=False),
    Column("granted", BigInteger, nullable=False),  # by the latest statement, which returns it
    Column("known", Text, nullable=False),
)


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

audit_log = Table(
    "audit_log",
    metadata,
    Column("id", _Serial, primary_key=True),
    Column(
        "token", String(32), nullable=False, unique=True
    ),  # of the change, which has one row however often it is tried
    Column("at", UtcDateTime, nullable=False),
    Column("person", String(128), nullable=False),
    Column("address", String(128), nullable=False),
    Column("action", String(64), nullable=False),
    Column("subject", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("before", ExactJson),
    Column("after", ExactJson),
    Column("outcome", String(8), nullable=False),
    Column("error", Text, nullable=False),
    Index("ix_audit_log_at", "at", "id"),
    Index("ix_audit_log_person", "person", "at", "id"),
    Index("ix_audit_log_action", "action", "at", "id"),
    Index("ix_audit_log_subject", "subject", "at", "id"),
)


def source_equals_condition(table: Table, source: str) -> ColumnElement[bool]:
    """Compare ``source`` by the index on its beginning: PostgreSQL indexes no text of more than 2,700 bytes."""
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
