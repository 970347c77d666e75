"""What speaks for and against removing records: past snapshots, what is known of the records, a person's approval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, delete, func, select

from crossdock.state.db import sql_statements
from crossdock.state.db.schema import bindings, pending_removals, snapshots
from crossdock.state.tables import content_digests
from crossdock.state.tables.record_identity import Step
from crossdock.state.tables.scopes import Scope

KEY_BYTES = 16
COMPARED_SNAPSHOTS = 3  # past snapshots that a number of rows is compared with


def packed(key_hashes: Iterable[int]) -> bytes:
    """*key_hashes* as `PendingRemoval.keys`."""
    return b"".join(key.to_bytes(KEY_BYTES, "big") for key in sorted(key_hashes))


@dataclass(frozen=True, slots=True)
class PastSnapshot:
    """A snapshot that was worked through.

    Attributes:
        rows: Data rows in it.
        present: Records that its stream had at the target thereafter; None if nobody counted them.
    """

    rows: int
    present: int | None


@dataclass(frozen=True, slots=True)
class PendingRemoval:
    """Records of a stream whose removal waits for a person's word.

    Attributes:
        what: What would be done, and where.
        keys: Their key hashes, ascending, 16 bytes each: what is approved are these records and no others.
        since: When a run first stopped at exactly these.
        approved_at: None until a person has said so.
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

    def is_same(self, other: PendingRemoval) -> bool:
        """True if both would do the same to the same records."""
        return (self.stream, self.what, self.keys) == (other.stream, other.what, other.keys)


_FIELDS = tuple(pending_removals.c[name] for name in PendingRemoval.__slots__)


class SnapshotHistory:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # ---- past snapshots

    def remember(self, stream: str, content: str, past: PastSnapshot, *, at: datetime) -> None:
        """Say that *stream* has worked through a snapshot; *content* names its content."""
        facts = {"row_count": past.rows, "present": past.present, "finished_at": at}
        row = {"stream": stream, "content": content, **facts}
        sql_statements.upsert(self._connection, snapshots, [row])

    def knows(self, stream: str, content: str) -> bool:
        """True if *stream* has worked through this very content before."""
        query = select(snapshots.c.stream).where(snapshots.c.stream == stream, snapshots.c.content == content)
        known = self._connection.execute(query).first() is not None
        return known or content in content_digests.of(self._connection, "snapshot", stream)

    def latest(self, stream: str, number: int) -> list[PastSnapshot]:
        """The latest *number* snapshots, newest first; fewer where there were not so many."""
        query = select(snapshots.c.row_count, snapshots.c.present).where(snapshots.c.stream == stream)
        latest = query.order_by(snapshots.c.finished_at.desc()).limit(number)
        return [PastSnapshot(rows, present) for rows, present in self._connection.execute(latest)]

    # ---- the records

    def steps(self, scope: Scope, key_hashes: Sequence[int]) -> Iterator[tuple[int, Step]]:
        """Key hash and last accepted step of the live bindings among *key_hashes*."""
        fields = (bindings.c.key_hash, bindings.c.step)
        for part in sql_statements.chunks(key_hashes):
            for row in self._connection.execute(select(*fields).where(*_live(scope), bindings.c.key_hash.in_(part))):
                yield row.key_hash, row.step

    def present(self, scope: Scope) -> int:
        """How many records of *scope* are at the target, and not archived because they were gone."""
        query = select(func.count()).select_from(bindings).where(*_live(scope), bindings.c.step != "remove")
        return int(self._connection.execute(query).scalar_one())

    # ---- a person's word

    def get(self, stream: str) -> PendingRemoval | None:
        """What waits for approval, or is approved and not done yet."""
        row = self._connection.execute(select(*_FIELDS).where(pending_removals.c.stream == stream)).first()
        return None if row is None else PendingRemoval(*row)

    def listed(self) -> list[PendingRemoval]:
        """All of that, by stream."""
        return [
            PendingRemoval(*row)
            for row in self._connection.execute(select(*_FIELDS).order_by(pending_removals.c.stream))
        ]

    def ask(self, removal: PendingRemoval) -> None:
        """Let *removal* wait for approval in the place of any other of its stream; the same waits on."""
        known = self.get(removal.stream)
        if known is None or not known.is_same(removal):
            self._put(removal)

    def approve(self, removal: PendingRemoval, *, at: datetime) -> None:
        self._put(replace(removal, approved_at=at))

    def forget(self, stream: str) -> None:
        """Nothing of *stream* waits for approval any more, and an approval is used up."""
        self._connection.execute(delete(pending_removals).where(pending_removals.c.stream == stream))

    def _put(self, removal: PendingRemoval) -> None:
        sql_statements.upsert(
            self._connection, pending_removals, [{name: getattr(removal, name) for name in PendingRemoval.__slots__}]
        )


def _live(scope: Scope) -> list[ColumnElement[bool]]:
    return [*(bindings.c[name] == getattr(scope, name) for name in Scope.__slots__), bindings.c.deleted_at.is_(None)]
