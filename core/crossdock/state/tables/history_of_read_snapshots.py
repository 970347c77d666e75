"""Past snapshots, and the live bindings that a new one is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection, case, delete, func, literal, select

from crossdock.state.db import bulk_writes_and_key_queries
from crossdock.state.db.schema import bindings, snapshots
from crossdock.state.tables.purged_input_digests import load
from crossdock.state.tables.record_identity_and_scope import Scope, Step, in_scope, in_scope_of_parameters

_AT_ONCE = 10_000  # rows
COMPARED_SNAPSHOTS = 3  # past snapshots whose number of rows a new one is compared with


class PastSnapshot(Struct, frozen=True):
    """A finished snapshot. *present* counts the records of its stream at the target afterwards, if known."""

    rows: int
    present: int | None


_IS_LIVE = bindings.c.deleted_at.is_(None)
_IS_DELIVERED_IMPORT = (bindings.c.step == "import") & bindings.c.record_fp.is_not(None)  # by the exporting state
_STEP = case(
    (bindings.c.unverified.is_(True), literal("import")),
    (_IS_DELIVERED_IMPORT, literal("whole")),
    else_=bindings.c.step,
).label("step")
_STEPS = bulk_writes_and_key_queries.QueryByKeys(
    select(bindings.c.key_hash, _STEP).where(in_scope_of_parameters(bindings), _IS_LIVE), bindings.c.key_hash
)


class SnapshotHistory:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def record_snapshot(
        self, stream: str, content: str, counts: PastSnapshot, *, at: datetime, instead_of: str | None = None
    ) -> None:
        """Record that *stream* has read the snapshot with this *content* digest, replacing *instead_of*."""
        self._connection.execute(
            delete(snapshots).where(snapshots.c.stream == stream, snapshots.c.content == instead_of)
        )
        key = {"stream": stream, "content": content}
        facts = {"row_count": counts.rows, "present": counts.present, "finished_at": at}
        bulk_writes_and_key_queries.upsert_rows(self._connection, snapshots, [key | facts])

    def was_read_before(self, stream: str, content: str) -> bool:
        query = select(snapshots.c.stream).where(snapshots.c.stream == stream, snapshots.c.content == content)
        known = self._connection.execute(query).first() is not None
        return known or content in load(self._connection, "snapshot", stream)

    def latest_snapshots(self, stream: str, number: int, *, without: str | None = None) -> list[PastSnapshot]:
        query = select(snapshots.c.row_count, snapshots.c.present).where(snapshots.c.stream == stream)
        query = query.where(snapshots.c.content != (without or ""))
        latest = query.order_by(snapshots.c.finished_at.desc()).limit(number)
        return [PastSnapshot(rows, present) for rows, present in self._connection.execute(latest)]

    def last_snapshot_time(self, stream: str) -> datetime | None:
        query = select(func.max(snapshots.c.finished_at)).where(snapshots.c.stream == stream)
        found: datetime | None = self._connection.execute(query).scalar_one()
        return found

    def accepted_steps_of_live_bindings(self, scope: Scope, key_hashes: Sequence[int]) -> Iterator[tuple[int, Step]]:
        """Yield key hash and last accepted step of the live bindings among *key_hashes*; ``import`` if unverified."""
        yield from _STEPS.rows(self._connection, scope.columns, key_hashes)

    def count_records_present_at_target(self, scope: Scope) -> int:
        """Count the records of *scope* at the target that no removal has archived."""
        query = select(func.count()).where(in_scope(bindings, scope), _IS_LIVE, bindings.c.step != "remove")
        return int(self._connection.execute(query).scalar_one())

    def keys_removed_at_target(self, scope: Scope) -> Iterator[list[tuple[int, str]]]:
        """Yield key hash and key of the records of *scope* that a removal has archived or deleted, in parts."""
        query = select(bindings.c.key_hash, bindings.c.key)
        query = query.where(in_scope(bindings, scope), ~_IS_LIVE | (bindings.c.step == "remove"))
        for part in self._connection.execute(query.execution_options(yield_per=_AT_ONCE)).partitions():
            yield [(key_hash, key) for key_hash, key in part]
