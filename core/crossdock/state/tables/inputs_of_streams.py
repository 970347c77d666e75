"""What streams have read: accepted files, snapshots, digests of purged ones, cursors, and inputs that kill processes.

What a process is reading now is marked in a file beside the state, which a killed process leaves to the next one. The
marks are not flushed to the disk, which costs some microseconds each: they must survive the process, not the machine.
"""

from __future__ import annotations

import hashlib
import json
import os
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from msgspec import Struct, structs
from sqlalchemy import ColumnElement, Connection, bindparam, case, delete, func, literal, select, tuple_, update

from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.schema import (
    bindings,
    content_digests,
    cursors,
    full_lists,
    passed_files,
    snapshots,
    suspected_inputs,
    taken_files,
)
from crossdock.state.tables.record_identity_and_scope import (
    Scope,
    Step,
    scope_condition,
    scope_condition_with_parameters,
)
from crossdock.values.safe_local_files import open_or_create_private_file

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PLACE = 4096
"""Bytes of one mark. The first place identifies the process."""


class CrashMark(Struct, frozen=True):
    """What one thread reads: *batches* batches of a file with the hash *content*. *name* is empty without a file."""

    stream: str
    name: str = ""
    content: str = ""
    batches: int = 0


class CrashMarks:
    """The marks of one state. A failed write stops nothing, and marks of another *identity* are ignored."""

    def __init__(self, path: Path, identity: str) -> None:
        self._path, self._owner = path, {"state": identity, "boot": _boot_id()}
        self._file: BinaryIO | None = None

    def marks_of_killed_process(self) -> Sequence[CrashMark]:
        """Return the marks of a killed process; none if the machine has restarted since."""
        try:
            content = self._path.read_bytes()
        except OSError:
            return ()
        owner, *marks = [
            _json_or_none(content[start : start + _PLACE]) for start in range(0, len(content) or 1, _PLACE)
        ]
        found = marks if owner == self._owner else []
        return [CrashMark(**mark) for mark in found if isinstance(mark, dict) and mark.keys() == _MARK_FIELDS]

    def open(self) -> None:
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = open_or_create_private_file(self._path)
            self._file.truncate()
            self._write(0, self._owner)

    def write_mark(self, place: int, mark: CrashMark | None) -> None:
        """Write *mark* at *place*, counted from 1; None if nothing is read."""
        self._write(place, mark and structs.asdict(mark))

    def close_and_remove(self) -> None:
        """Remove the marks: the process ends and was not killed."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._path.unlink(missing_ok=True)

    def _write(self, place: int, content: object) -> None:
        data = json.dumps(content).encode()
        if self._file is not None and len(data) <= _PLACE:
            with suppress(OSError):
                os.pwrite(self._file.fileno(), data.ljust(_PLACE), place * _PLACE)


_MARK_FIELDS = structs.asdict(CrashMark("")).keys()


def _boot_id() -> str:
    """Return an id of the current start of the machine; empty where the system has none."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def _json_or_none(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


_MOST = 6
"""How often in a row processes may be killed at one place of an input that has killed no other process."""


class SuspectedInput(Struct, frozen=True):
    """An input at which *killed* processes were killed, *here* of them in a row after *batches* batches."""

    stream: str
    name: str
    killed: int
    here: int
    batches: int
    at: datetime
    set_aside_at: datetime | None

    @property
    def needs_trial_process(self) -> bool:
        """Whether another process must read it first. Reading a stream without files again may cost many requests."""
        return bool(self.name) or self.killed > 1


_FIELDS = tuple(suspected_inputs.c[name] for name in SuspectedInput.__struct_fields__)


class CrashingInputs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, mark: CrashMark) -> SuspectedInput | None:
        row = self._connection.execute(select(*_FIELDS).where(*_conditions_of_marked_input(mark))).first()
        return None if row is None else SuspectedInput(*row)

    def has_any(self) -> bool:
        return self._connection.execute(select(suspected_inputs.c.stream).limit(1)).first() is not None

    def list_set_aside(self) -> list[SuspectedInput]:
        query = (
            select(*_FIELDS)
            .where(suspected_inputs.c.set_aside_at.is_not(None))
            .order_by(suspected_inputs.c.stream, suspected_inputs.c.name)
        )
        return [SuspectedInput(*row) for row in self._connection.execute(query)]

    def record_kill(self, mark: CrashMark, *, at: datetime) -> None:
        """Record that a process was killed at *mark*, and set it aside if that has happened too often."""
        before = self.get(mark)
        here = before.here + 1 if before and before.batches == mark.batches else 1
        killed = before.killed + 1 if before else 1
        row = {
            "stream": mark.stream,
            "digest": _digest_of_marked_input(mark),
            "name": mark.name,
            "batches": mark.batches,
        }
        counts = {"killed": killed, "here": here, "at": at, "set_aside_at": at if here >= _MOST else None}
        sql_types_and_statements.upsert_rows(self._connection, suspected_inputs, [row | counts])

    def set_aside(self, mark: CrashMark, *, at: datetime) -> int:
        """Set *mark* aside after it killed another process. Return how many processes it has killed."""
        killed = (
            update(suspected_inputs)
            .where(*_conditions_of_marked_input(mark))
            .values(set_aside_at=at, killed=suspected_inputs.c.killed + 1)
        )
        return int(self._connection.execute(killed.returning(suspected_inputs.c.killed)).scalar_one())

    def forget(self, mark: CrashMark) -> None:
        self._connection.execute(delete(suspected_inputs).where(*_conditions_of_marked_input(mark)))

    def readmit_inputs_of_stream(self, stream: str) -> int:
        """Let the inputs of *stream* that are set aside be read once more, and return their number."""
        found = update(suspected_inputs).where(
            suspected_inputs.c.stream == stream, suspected_inputs.c.set_aside_at.is_not(None)
        )
        return self._connection.execute(found.values(killed=1, here=1, set_aside_at=None)).rowcount


def _conditions_of_marked_input(mark: CrashMark) -> tuple[ColumnElement[bool], ...]:
    return suspected_inputs.c.stream == mark.stream, suspected_inputs.c.digest == _digest_of_marked_input(mark)


def _digest_of_marked_input(mark: CrashMark) -> str:
    return hashlib.sha256((mark.content or mark.name).encode()).hexdigest()


class Cursors:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get_if_same_version(self, stream: str, version: str) -> str | None:
        """Return where *stream* continues; None under another version, so that a changed mapping reads all again."""
        query = select(cursors.c.value).where(cursors.c.stream == stream, cursors.c.version == version)
        return self._connection.execute(query).scalar()

    def mapping_version_of_cursor(self, stream: str) -> str | None:
        return self._connection.execute(select(cursors.c.version).where(cursors.c.stream == stream)).scalar()

    def put_or_delete_cursor(self, stream: str, version: str, value: str | None) -> None:
        if value is not None:
            self.put(stream, version, value)
        else:
            self.forget(stream)

    def forget(self, stream: str) -> None:
        self._connection.execute(delete(cursors).where(cursors.c.stream == stream))

    def put(self, stream: str, version: str, value: str) -> None:
        sql_types_and_statements.upsert_rows(
            self._connection, cursors, [{"stream": stream, "version": version, "value": value}]
        )


class FullListTimes:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def last_read_time(self, stream: str) -> datetime | None:
        """Return when the last full list of *stream* was read to its end; None if there was none."""
        return self._connection.execute(select(full_lists.c.read_at).where(full_lists.c.stream == stream)).scalar()

    def put_read_time(self, stream: str, *, at: datetime) -> None:
        sql_types_and_statements.upsert_rows(self._connection, full_lists, [{"stream": stream, "read_at": at}])


PurgedInputKind = Literal["file", "snapshot"]
_BYTES = 16


class PackedDigests(Struct, frozen=True):
    packed: bytes = b""

    def __contains__(self, content: object) -> bool:
        wanted, places = _content_digest(str(content)), range(len(self.packed) // _BYTES)
        place = bisect_left(places, wanted, key=self._digest_at)
        return place < len(places) and self._digest_at(place) == wanted

    def __bool__(self) -> bool:
        return bool(self.packed)

    def with_more(self, contents: Iterable[str]) -> PackedDigests:
        known = (self._digest_at(place) for place in range(len(self.packed) // _BYTES))
        return PackedDigests(b"".join(sorted({*known, *map(_content_digest, contents)})))

    def _digest_at(self, place: int) -> bytes:
        return self.packed[place * _BYTES : (place + 1) * _BYTES]


def load_purged_digests(connection: Connection, kind: PurgedInputKind, stream: str, version: str = "") -> PackedDigests:
    """Return the digests of *stream*. Files are kept per version, snapshots are not."""
    query = select(content_digests.c.packed).where(
        content_digests.c.kind == kind, content_digests.c.stream == stream, content_digests.c.version == version
    )
    return PackedDigests(connection.execute(query).scalar() or b"")


def add_purged_digests(
    connection: Connection, kind: PurgedInputKind, stream: str, version: str, contents: Iterable[str]
) -> None:
    packed = load_purged_digests(connection, kind, stream, version).with_more(contents).packed
    sql_types_and_statements.upsert_rows(
        connection, content_digests, [{"kind": kind, "stream": stream, "version": version, "packed": packed}]
    )


def has_purged_files_of_stream(connection: Connection, stream: str) -> bool:
    query = select(literal(1)).where(content_digests.c.kind == "file", content_digests.c.stream == stream).limit(1)
    return connection.execute(query).first() is not None


def delete_purged_file_digests(connection: Connection, stream: str) -> None:
    connection.execute(
        delete(content_digests).where(content_digests.c.kind == "file", content_digests.c.stream == stream)
    )


def _content_digest(content: str) -> bytes:
    return hashlib.sha256(content.encode()).digest()[:_BYTES]


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
_SEEN = sql_types_and_statements.BulkStatement(
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

    def digests_removed_by_retention(self, stream: str, version: str) -> PackedDigests:
        """Return the files that *stream* finished under *version* and of which retention kept only the digests."""
        if not self._is_last_used_mapping_version(stream, version):
            return PackedDigests()
        return load_purged_digests(self._connection, "file", stream, version)

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
        return self._connection.execute(query).first() is not None or has_purged_files_of_stream(
            self._connection, stream
        )

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
        for part in sql_types_and_statements.chunks_of_in_list(list(content_hashes)):
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
        sql_types_and_statements.upsert_rows(self._connection, passed_files, rows)

    def accept(self, stream: str, version: str, files: list[FileFacts], *, at: datetime) -> None:
        fixed = {"stream": stream, "version": version, "status": "accepted", "accepted_at": at}
        rows = [fixed | {name: getattr(facts, name) for name in _NEW} for facts in files]
        sql_types_and_statements.upsert_rows(self._connection, taken_files, rows)

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
        delete_purged_file_digests(self._connection, stream)

    def _files_by_content_hash(self, *conditions: ColumnElement[bool]) -> dict[str, FileFacts]:
        query = select(*_FACTS).where(*conditions).order_by(taken_files.c.accepted_at, taken_files.c.stamp)
        return {row.content_hash: FileFacts(*row) for row in self._connection.execute(query)}


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
_STEPS = sql_types_and_statements.QueryByKeys(
    select(bindings.c.key_hash, _STEP).where(scope_condition_with_parameters(bindings), _IS_LIVE), bindings.c.key_hash
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
        sql_types_and_statements.upsert_rows(self._connection, snapshots, [key | facts])

    def was_snapshot_read_before(self, stream: str, content: str) -> bool:
        query = select(snapshots.c.stream).where(snapshots.c.stream == stream, snapshots.c.content == content)
        known = self._connection.execute(query).first() is not None
        return known or content in load_purged_digests(self._connection, "snapshot", stream)

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
        query = select(func.count()).where(scope_condition(bindings, scope), _IS_LIVE, bindings.c.step != "remove")
        return int(self._connection.execute(query).scalar_one())

    def keys_removed_at_target(self, scope: Scope) -> Iterator[list[tuple[int, str]]]:
        """Yield key hash and key of the records of *scope* that a removal has archived or deleted, in parts."""
        query = select(bindings.c.key_hash, bindings.c.key)
        query = query.where(scope_condition(bindings, scope), ~_IS_LIVE | (bindings.c.step == "remove"))
        for part in self._connection.execute(query.execution_options(yield_per=_AT_ONCE)).partitions():
            yield [(key_hash, key) for key_hash, key in part]
