"""Removals and updates of a stream that wait for approval, and undos that have begun and not ended.

The streams of an undo are not synced meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, structs
from sqlalchemy import Connection, delete, insert, select

from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.schema import begun_undos, pending_removals

KEY_BYTES = 16


def packed_key_hashes(key_hashes: Iterable[int]) -> bytes:
    return b"".join(key.to_bytes(KEY_BYTES, "big") for key in sorted(key_hashes))


class PendingApproval(Struct, frozen=True):
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
    def record_count(self) -> int:
        return len(self.keys) // KEY_BYTES

    @property
    def key_hashes(self) -> list[int]:
        starts = range(0, len(self.keys), KEY_BYTES)
        return [int.from_bytes(self.keys[start : start + KEY_BYTES], "big") for start in starts]

    def covers_same_changes(self, other: PendingApproval) -> bool:
        return (self.stream, self.what, self.keys) == (other.stream, other.what, other.keys)


_FIELDS = tuple(pending_removals.c[name] for name in PendingApproval.__struct_fields__)


class PendingApprovals:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, stream: str) -> PendingApproval | None:
        """Return the approval that is pending, or given and not used yet."""
        row = self._connection.execute(select(*_FIELDS).where(pending_removals.c.stream == stream)).first()
        return None if row is None else PendingApproval(*row)

    def listed(self) -> list[PendingApproval]:
        query = select(*_FIELDS).order_by(pending_removals.c.stream)
        return [PendingApproval(*row) for row in self._connection.execute(query)]

    def request_approval(self, pending: PendingApproval) -> None:
        """Store *pending* for approval, replacing a different one of its stream."""
        known = self.get(pending.stream)
        if known is None or not known.covers_same_changes(pending):
            self._put(pending)

    def approve(self, pending: PendingApproval, *, at: datetime) -> None:
        self._put(structs.replace(pending, approved_at=at))

    def remove_records(self, stream: str, key_hashes: Iterable[int]) -> None:
        """Remove these records from what waits for approval or is approved."""
        known = self.get(stream)
        left = {*known.key_hashes}.difference(key_hashes) if known else set()
        if known and left and len(left) < known.record_count:
            self._put(structs.replace(known, keys=packed_key_hashes(left)))
        elif not left:
            self.forget(stream)

    def forget(self, stream: str) -> None:
        self._connection.execute(delete(pending_removals).where(pending_removals.c.stream == stream))

    def _put(self, pending: PendingApproval) -> None:
        row = {name: getattr(pending, name) for name in PendingApproval.__struct_fields__}
        sql_types_and_statements.upsert_rows(self._connection, pending_removals, [row])


class BegunUndo(Struct, frozen=True):
    """The part of an undo that concerns one stream. *keys* are ascending key hashes of 16 bytes each."""

    stream: str
    run_id: int
    begun_at: datetime
    plan: dict[str, Any]
    keys: bytes

    def covers_record(self, key_hash: int) -> bool:
        number = len(self.keys) // KEY_BYTES
        place = bisect_left(range(number), key_hash, key=self._key_hash_at)
        return place < number and self._key_hash_at(place) == key_hash

    def _key_hash_at(self, place: int) -> int:
        return int.from_bytes(self.keys[place * KEY_BYTES : (place + 1) * KEY_BYTES], "big")


class BegunUndos:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def begin(self, streams: Sequence[BegunUndo]) -> None:
        rows = [{name: getattr(each, name) for name in BegunUndo.__struct_fields__} for each in streams]
        if rows:
            self._connection.execute(insert(begun_undos), rows)

    def listed(self) -> list[BegunUndo]:
        """Return the streams that are being undone, by name. All of them belong to one undo."""
        query = select(*(begun_undos.c[name] for name in BegunUndo.__struct_fields__)).order_by(begun_undos.c.stream)
        return [BegunUndo(*row) for row in self._connection.execute(query)]

    def begun_at_by_stream(self) -> dict[str, datetime]:
        query = select(begun_undos.c.stream, begun_undos.c.begun_at).order_by(begun_undos.c.stream)
        return {stream: begun_at for stream, begun_at in self._connection.execute(query)}

    def end(self) -> None:
        self._connection.execute(delete(begun_undos))
