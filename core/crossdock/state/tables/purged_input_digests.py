"""Digests of removed files and snapshots, 16 bytes each, which recognize a repeated one (law 4)."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from sqlalchemy import Connection, delete, literal, select

from crossdock.state.db import bulk_writes_and_key_queries
from crossdock.state.db.schema import content_digests

Kind = Literal["file", "snapshot"]
_BYTES = 16


class Digests(Struct, frozen=True):
    packed: bytes = b""

    def __contains__(self, content: object) -> bool:
        wanted, places = _digest(str(content)), range(len(self.packed) // _BYTES)
        place = bisect_left(places, wanted, key=self._digest_at)
        return place < len(places) and self._digest_at(place) == wanted

    def __bool__(self) -> bool:
        return bool(self.packed)

    def with_more(self, contents: Iterable[str]) -> Digests:
        known = (self._digest_at(place) for place in range(len(self.packed) // _BYTES))
        return Digests(b"".join(sorted({*known, *map(_digest, contents)})))

    def _digest_at(self, place: int) -> bytes:
        return self.packed[place * _BYTES : (place + 1) * _BYTES]


def load(connection: Connection, kind: Kind, stream: str, version: str = "") -> Digests:
    """Return the digests of *stream*. Files are kept per version, snapshots are not."""
    query = select(content_digests.c.packed).where(
        content_digests.c.kind == kind, content_digests.c.stream == stream, content_digests.c.version == version
    )
    return Digests(connection.execute(query).scalar() or b"")


def add(connection: Connection, kind: Kind, stream: str, version: str, contents: Iterable[str]) -> None:
    packed = load(connection, kind, stream, version).with_more(contents).packed
    bulk_writes_and_key_queries.upsert_rows(
        connection, content_digests, [{"kind": kind, "stream": stream, "version": version, "packed": packed}]
    )


def has_files_of_stream(connection: Connection, stream: str) -> bool:
    query = select(literal(1)).where(content_digests.c.kind == "file", content_digests.c.stream == stream).limit(1)
    return connection.execute(query).first() is not None


def forget_files_of_stream(connection: Connection, stream: str) -> None:
    connection.execute(
        delete(content_digests).where(content_digests.c.kind == "file", content_digests.c.stream == stream)
    )


def _digest(content: str) -> bytes:
    return hashlib.sha256(content.encode()).digest()[:_BYTES]
