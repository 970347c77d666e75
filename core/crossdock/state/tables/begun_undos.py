"""Undos that have begun and not ended. Their streams are not synced meanwhile."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, delete, insert, select

from crossdock.state.db.schema import begun_undos
from crossdock.state.tables.pending_approvals import KEY_BYTES


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
