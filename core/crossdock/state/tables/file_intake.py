"""Which files a stream has taken in, by content, under which version of its layout and mapping."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, bindparam, func, select, update

from crossdock.state.db import sql_statements
from crossdock.state.db.schema import taken_files as table
from crossdock.state.tables import content_digests
from crossdock.state.tables.content_digests import Digests


@dataclass(frozen=True, slots=True)
class FileFacts:
    """One version of one file.

    Attributes:
        content_hash: SHA-256 of its bytes as they came, hex; in a plan, which keeps nothing, perhaps a name instead.
        stamp: What orders snapshots: the date in the name, or else the time of modification; text that sorts.
        rows: Data rows in it.
        seen_at: When its source was last found to list it, to the day; None if only when it was accepted.
    """

    name: str
    content_hash: str
    size: int
    modified_at: datetime
    stamp: str
    rows: int
    accepted_at: datetime | None = None
    seen_at: datetime | None = None


_FACTS = tuple(table.c[name] for name in FileFacts.__slots__)
_NEW = tuple(name for name in FileFacts.__slots__ if name not in {"accepted_at", "seen_at"})
_SEEN = sql_statements.Bulk(
    update(table)
    .where(
        table.c.stream == bindparam("reader"),
        table.c.version == bindparam("under"),
        table.c.content_hash == bindparam("content"),
    )
    .values(seen_at=bindparam("at"))
)


class Intake:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def done(self, stream: str, version: str) -> dict[str, FileFacts]:
        """Files that *stream* has worked through under *version*, by content hash, oldest first."""
        return self._listed(table.c.stream == stream, table.c.version == version, table.c.status == "done")

    def unfinished(self, stream: str) -> dict[str, FileFacts]:
        """Files that were accepted under any version and not worked through, by content hash."""
        return self._listed(table.c.stream == stream, table.c.status == "accepted")

    def forgotten(self, stream: str, version: str) -> Digests:
        """Files that *stream* worked through under *version* so long ago that nothing else is known of them."""
        return content_digests.of(self._connection, "file", stream, version)

    def seen(self, stream: str, version: str, content_hashes: list[str], *, at: datetime) -> None:
        """Its source still lists files that *stream* has worked through under *version*."""
        _SEEN.run(self._connection, {"content": content_hashes}, {"reader": stream, "under": version, "at": at})

    def newest_stamp(self, stream: str) -> str | None:
        """The highest stamp of all files that *stream* ever accepted."""
        return self._connection.execute(select(func.max(table.c.stamp)).where(table.c.stream == stream)).scalar()

    def accept(self, stream: str, version: str, files: list[FileFacts], *, run_id: int, at: datetime) -> None:
        fixed = {"stream": stream, "version": version, "status": "accepted", "accepted_at": at, "run_id": run_id}
        rows = [fixed | {name: getattr(facts, name) for name in _NEW} for facts in files]
        sql_statements.upsert(self._connection, table, rows)

    def finish(self, stream: str, version: str) -> None:
        """Every record of the files accepted so far is settled, or kept in the state."""
        self._connection.execute(
            update(table)
            .where(table.c.stream == stream, table.c.version == version, table.c.status == "accepted")
            .values(status="done")
        )
        # what was accepted under an earlier version has been worked through under this one
        done = select(table.c.content_hash).where(
            table.c.stream == stream, table.c.version == version, table.c.status == "done"
        )
        self._connection.execute(
            update(table)
            .where(table.c.stream == stream, table.c.status == "accepted", table.c.content_hash.in_(done))
            .values(status="done")
        )

    def _listed(self, *conditions: ColumnElement[bool]) -> dict[str, FileFacts]:
        query = select(*_FACTS).where(*conditions).order_by(table.c.accepted_at, table.c.stamp)
        return {row.content_hash: FileFacts(*row) for row in self._connection.execute(query)}
