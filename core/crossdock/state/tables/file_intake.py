"""The files that each stream has accepted, by content and by version of its layout and mapping."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, literal, select, tuple_, update

from crossdock.state.db import bulk_writes_and_key_queries
from crossdock.state.db.schema import passed_files, taken_files
from crossdock.state.tables.purged_input_digests import Digests, forget_files_of_stream, has_files_of_stream, load

READ_AGAIN = "again"  # the status of a file that is known, and read as if it were new
FileDescription = tuple[str, int, datetime]
"""How a store describes a file: name, size in bytes, modification time."""


class FileFacts(Struct, frozen=True):
    """One version of one file.

    Attributes:
        content_hash: SHA-256 of its bytes as hex; a plan, which stores nothing, may use the name instead.
        stamp: Orders snapshots: the date in the name, or else the modification time, as sortable text.
        seen_at: When its source last listed it, to the day; None if that was only when it was accepted.
        is_undone: Whether an undo has removed its records. The same content in another file is read again.
        is_read_again: Whether it is read again, as if it were new: the state was restored since. Its place in the order
            stays.
    """

    name: str
    content_hash: str
    size: int
    modified_at: datetime
    stamp: str
    accepted_at: datetime | None = None
    seen_at: datetime | None = None
    is_undone: bool = False
    is_read_again: bool = False

    @property
    def modified_epoch_s(self) -> int:
        """The modification time in seconds since 1970."""
        return int(self.modified_at.timestamp())


class TakenFile(NamedTuple):
    """A file that *stream* has accepted under one *version* of its layout and mapping; see `FileFacts`."""

    accepted_at: datetime
    stream: str
    content_hash: str
    version: str
    name: str
    size: int
    modified_at: datetime
    status: str
    seen_at: datetime | None

    @property
    def place_in_search_order(self) -> TakenFilePlace:
        return TakenFilePlace(*self[:4])


class AcceptedFile(NamedTuple):
    stream: str
    name: str
    accepted_at: datetime
    modified_at: datetime


class TakenFilePlace(NamedTuple):
    """The place of a file in the order of `FileIntake.search`."""

    accepted_at: datetime
    stream: str
    content_hash: str
    version: str


class FinishedImport(Struct, frozen=True):
    version: str
    at: datetime


_BY_STATUS = {
    name: (taken_files.c.status == status).label(name)
    for name, status in (("is_undone", "undone"), ("is_read_again", READ_AGAIN))
}
_FACTS = tuple(_BY_STATUS[name] if name in _BY_STATUS else taken_files.c[name] for name in FileFacts.__struct_fields__)
_NEW = tuple(name for name in FileFacts.__struct_fields__ if name not in {"accepted_at", "seen_at", *_BY_STATUS})
_SEEN = bulk_writes_and_key_queries.BulkStatement(
    update(taken_files)
    .where(
        taken_files.c.stream == bindparam("reader"),
        taken_files.c.version == bindparam("under"),
        taken_files.c.content_hash == bindparam("content"),
    )
    .values(seen_at=bindparam("at"))
)


class FileIntake:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def finished_files(self, stream: str, version: str) -> dict[str, FileFacts]:
        """Return the finished files, also undone ones, by content hash, oldest first; none if *version* is not last."""
        if not self._is_last_used_mapping_version(stream, version):
            return {}
        return self._files_by_content_hash(
            taken_files.c.stream == stream,
            taken_files.c.version == version,
            taken_files.c.status.in_(("done", "undone")),
        )

    def unfinished_files(self, stream: str) -> dict[str, FileFacts]:
        return self._files_by_content_hash(taken_files.c.stream == stream, taken_files.c.status == "accepted")

    def digests_removed_by_retention(self, stream: str, version: str) -> Digests:
        """Return the files that *stream* finished under *version* and of which retention kept only the digests."""
        if not self._is_last_used_mapping_version(stream, version):
            return Digests()
        return load(self._connection, "file", stream, version)

    def _is_last_used_mapping_version(self, stream: str, version: str) -> bool:
        query = (
            select(taken_files.c.version)
            .where(taken_files.c.stream == stream)
            .order_by(taken_files.c.accepted_at.desc())
            .limit(1)
        )
        return self._connection.execute(query).scalar() in {None, version}

    def mark_listed_by_source(self, stream: str, version: str, content_hashes: list[str], *, at: datetime) -> None:
        _SEEN.run(self._connection, {"content": content_hashes}, {"reader": stream, "under": version, "at": at})

    def known_files(self, stream: str) -> list[FileFacts]:
        """Return all files that *stream* has accepted under any version and that retention keeps, oldest first."""
        query = (
            select(*_FACTS)
            .where(taken_files.c.stream == stream)
            .order_by(taken_files.c.accepted_at, taken_files.c.stamp)
        )
        return [FileFacts(*row) for row in self._connection.execute(query)]

    def has_files(self, stream: str) -> bool:
        """Return whether *stream* has accepted a file since its files were last forgotten."""
        query = select(literal(1)).where(taken_files.c.stream == stream).limit(1)
        return self._connection.execute(query).first() is not None or has_files_of_stream(self._connection, stream)

    def search(self, text: str, *, before: TakenFilePlace | None, limit: int) -> list[TakenFile]:
        """Return the files of all streams whose name has *text* in it, or whose content hash begins with it.

        The file that was accepted last comes first.
        """
        order = tuple(taken_files.c[name] for name in TakenFilePlace._fields)
        query = select(*(taken_files.c[name] for name in TakenFile._fields))
        if text:
            of_name = taken_files.c.name.icontains(text, autoescape=True)
            query = query.where(of_name | taken_files.c.content_hash.startswith(text.lower(), autoescape=True))
        if before is not None:
            query = query.where(tuple_(*order) < tuple_(literal(before[0], order[0].type), *before[1:]))
        rows = self._connection.execute(query.order_by(*(column.desc() for column in order)).limit(limit))
        return [TakenFile(*row) for row in rows]

    def files_with_content_hashes(self, content_hashes: Collection[str]) -> list[TakenFile]:
        """Return the files of all streams with one of these contents, oldest first."""
        found = list[TakenFile]()
        for part in bulk_writes_and_key_queries.chunks(list(content_hashes)):
            query = select(*(taken_files.c[name] for name in TakenFile._fields)).where(
                taken_files.c.content_hash.in_(part)
            )
            found += [TakenFile(*row) for row in self._connection.execute(query)]
        return sorted(found, key=lambda each: each.place_in_search_order)

    def accepted_between(self, begin: datetime, end: datetime, *, limit: int) -> list[tuple[str, FileFacts]]:
        """Return at most *limit* files that were accepted from *begin* to *end*, each with its stream, oldest first.

        All files are looked at: there is no index by time.
        """
        query = select(taken_files.c.stream, *_FACTS).where(taken_files.c.accepted_at.between(begin, end))
        found = self._connection.execute(
            query.order_by(taken_files.c.accepted_at, taken_files.c.stream, taken_files.c.name).limit(limit)
        )
        return [(stream, FileFacts(*facts)) for stream, *facts in found]

    def last_accepted_between(self, begin: datetime, end: datetime, *, limit: int) -> list[AcceptedFile]:
        """Return the last *limit* files of `accepted_between`, the newest first."""
        query = select(*(taken_files.c[name] for name in AcceptedFile._fields)).where(
            taken_files.c.accepted_at.between(begin, end)
        )
        newest_first = query.order_by(taken_files.c.accepted_at.desc(), taken_files.c.stream, taken_files.c.name)
        return [AcceptedFile(*row) for row in self._connection.execute(newest_first.limit(limit))]

    def largest_size_by_stream(self) -> dict[str, int]:
        query = select(taken_files.c.stream, func.max(taken_files.c.size)).group_by(taken_files.c.stream)
        return {stream: size for stream, size in self._connection.execute(query)}

    def last_finished_import(self, stream: str) -> FinishedImport | None:
        query = select(taken_files.c.version, taken_files.c.accepted_at).where(
            taken_files.c.stream == stream, taken_files.c.status == "done"
        )
        row = self._connection.execute(query.order_by(taken_files.c.accepted_at.desc()).limit(1)).first()
        return None if row is None else FinishedImport(*row)

    def passed_over_snapshots(self, stream: str) -> set[FileDescription]:
        """Return the older snapshots that *stream* has passed over and its source still lists."""
        query = select(passed_files.c.name, passed_files.c.size, passed_files.c.modified_at)
        rows = self._connection.execute(query.where(passed_files.c.stream == stream))
        return {(name, size, modified_at) for name, size, modified_at in rows}

    def replace_passed_over_snapshots(self, stream: str, files: set[FileDescription]) -> None:
        self._connection.execute(delete(passed_files).where(passed_files.c.stream == stream))
        rows = [{"stream": stream, "name": name, "size": size, "modified_at": at} for name, size, at in sorted(files)]
        bulk_writes_and_key_queries.upsert_rows(self._connection, passed_files, rows)

    def accept(self, stream: str, version: str, files: list[FileFacts], *, at: datetime) -> None:
        fixed = {"stream": stream, "version": version, "status": "accepted", "accepted_at": at}
        rows = [fixed | {name: getattr(facts, name) for name in _NEW} for facts in files]
        bulk_writes_and_key_queries.upsert_rows(self._connection, taken_files, rows)

    def finish_accepted_files(self, stream: str, version: str) -> None:
        """Mark the accepted files as finished, and the same contents under earlier versions."""
        same = taken_files.alias()
        contents = select(same.c.content_hash).where(same.c.stream == stream, same.c.version == version)
        accepted = update(taken_files).where(taken_files.c.stream == stream, taken_files.c.status == "accepted")
        self._connection.execute(accepted.where(taken_files.c.content_hash.in_(contents)).values(status="done"))

    def mark_files_of_run_undone(self, stream: str, begun: datetime, ended: datetime | None) -> None:
        """Mark the files that the run from *begun* to *ended* has accepted as undone: see `FileFacts.is_undone`.

        Args:
            ended: None if no other run has begun since.
        """
        of_run = taken_files.c.stream == stream, taken_files.c.accepted_at >= begun
        undone = update(taken_files).where(*of_run, *([taken_files.c.accepted_at <= ended] if ended else []))
        self._connection.execute(undone.values(status="undone"))

    def forget_files_of_stream(self, stream: str) -> None:
        self._connection.execute(delete(taken_files).where(taken_files.c.stream == stream))
        self.replace_passed_over_snapshots(stream, set())
        forget_files_of_stream(self._connection, stream)

    def _files_by_content_hash(self, *conditions: ColumnElement[bool]) -> dict[str, FileFacts]:
        query = select(*_FACTS).where(*conditions).order_by(taken_files.c.accepted_at, taken_files.c.stamp)
        return {row.content_hash: FileFacts(*row) for row in self._connection.execute(query)}
