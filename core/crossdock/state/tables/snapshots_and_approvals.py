"""The facts that decide removals: past snapshots, bindings, and pending or given approvals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, case, delete, func, literal, select

from crossdock.state.db import sql_statements
from crossdock.state.db.schema import bindings, pending_removals, snapshots
from crossdock.state.tables import removed_input_digests
from crossdock.state.tables.record_identity import Scope, Step, within, within_given

KEY_BYTES = 16
COMPARED_SNAPSHOTS = 3  # past snapshots whose number of rows a new one is compared with


def packed(key_hashes: Iterable[int]) -> bytes:
    return b"".join(key.to_bytes(KEY_BYTES, "big") for key in sorted(key_hashes))


@dataclass(frozen=True, slots=True)
class PastSnapshot:
    """A finished snapshot. *present* counts the records of its stream at the target afterwards, if known."""

    rows: int
    present: int | None


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """Removals or updates of a stream that exceed a limit and wait for approval.

    Attributes:
        keys: What an approval covers, ascending, 16 bytes each: the key hash of each record to remove, or a digest of
            the key hash and new content of each record to update.
        since: When a run first stopped at exactly these.
    """

    stream: str
    what: str
    keys: bytes
    since: datetime
    approved_at: datetime | None = None

    @property
    def number(self) -> int:
        return len(self.keys) // KEY_BYTES

    @property
    def key_hashes(self) -> list[int]:
        starts = range(0, len(self.keys), KEY_BYTES)
        return [int.from_bytes(self.keys[start : start + KEY_BYTES], "big") for start in starts]

    def is_same(self, other: PendingApproval) -> bool:
        return (self.stream, self.what, self.keys) == (other.stream, other.what, other.keys)


_IS_LIVE = bindings.c.deleted_at.is_(None)
_STEP = case((bindings.c.unverified.is_(True), literal("import")), else_=bindings.c.step).label("step")
_STEPS = sql_statements.ByKey(
    select(bindings.c.key_hash, _STEP).where(within_given(bindings), _IS_LIVE), bindings.c.key_hash
)
_FIELDS = tuple(pending_removals.c[name] for name in PendingApproval.__slots__)


class SnapshotHistory:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def remember(
        self, stream: str, content: str, past: PastSnapshot, *, at: datetime, instead_of: str | None = None
    ) -> None:
        """Record that *stream* has read the snapshot with this *content* digest, replacing *instead_of*."""
        self._connection.execute(
            delete(snapshots).where(snapshots.c.stream == stream, snapshots.c.content == instead_of)
        )
        key = {"stream": stream, "content": content}
        facts = {"row_count": past.rows, "present": past.present, "finished_at": at}
        sql_statements.upsert(self._connection, snapshots, [key | facts])

    def knows(self, stream: str, content: str) -> bool:
        query = select(snapshots.c.stream).where(snapshots.c.stream == stream, snapshots.c.content == content)
        known = self._connection.execute(query).first() is not None
        return known or content in removed_input_digests.of(self._connection, "snapshot", stream)

    def latest(self, stream: str, number: int, *, without: str | None = None) -> list[PastSnapshot]:
        query = select(snapshots.c.row_count, snapshots.c.present).where(snapshots.c.stream == stream)
        query = query.where(snapshots.c.content != (without or ""))
        latest = query.order_by(snapshots.c.finished_at.desc()).limit(number)
        return [PastSnapshot(rows, present) for rows, present in self._connection.execute(latest)]

    def last_at(self, stream: str) -> datetime | None:
        query = select(func.max(snapshots.c.finished_at)).where(snapshots.c.stream == stream)
        found: datetime | None = self._connection.execute(query).scalar_one()
        return found

    def steps(self, scope: Scope, key_hashes: Sequence[int]) -> Iterator[tuple[int, Step]]:
        """Yield key hash and last accepted step of the live bindings among *key_hashes*; ``import`` if unverified."""
        yield from _STEPS.rows(self._connection, scope.columns, key_hashes)

    def present(self, scope: Scope) -> int:
        """Count the records of *scope* at the target that no removal has archived."""
        query = select(func.count()).where(within(bindings, scope), _IS_LIVE, bindings.c.step != "remove")
        return int(self._connection.execute(query).scalar_one())

    def get(self, stream: str) -> PendingApproval | None:
        """Return the approval that is pending, or given and not used yet."""
        row = self._connection.execute(select(*_FIELDS).where(pending_removals.c.stream == stream)).first()
        return None if row is None else PendingApproval(*row)

    def listed(self) -> list[PendingApproval]:
        query = select(*_FIELDS).order_by(pending_removals.c.stream)
        return [PendingApproval(*row) for row in self._connection.execute(query)]

    def ask(self, pending: PendingApproval) -> None:
        """Store *pending* for approval, replacing a different one of its stream."""
        known = self.get(pending.stream)
        if known is None or not known.is_same(pending):
            self._put(pending)

    def approve(self, pending: PendingApproval, *, at: datetime) -> None:
        self._put(replace(pending, approved_at=at))

    def settle(self, stream: str, key_hashes: Iterable[int]) -> None:
        """Remove these records from what waits for approval or is approved."""
        known = self.get(stream)
        left = {*known.key_hashes}.difference(key_hashes) if known else set()
        if known and left and len(left) < known.number:
            self._put(replace(known, keys=packed(left)))
        elif not left:
            self.forget(stream)

    def forget(self, stream: str) -> None:
        self._connection.execute(delete(pending_removals).where(pending_removals.c.stream == stream))

    def _put(self, pending: PendingApproval) -> None:
        row = {name: getattr(pending, name) for name in PendingApproval.__slots__}
        sql_statements.upsert(self._connection, pending_removals, [row])
