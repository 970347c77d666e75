"""Files -> batches of rows, through gates: nothing that is still being written, damaged, stale or known gets in.

A file is taken in as a whole: it is fetched into the spool, checked to its last line, and only then are its rows seen
(law 4). Several streams may share one source, which is then read once in a run.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path

import polars as pl

from crossdock.errors import CrossdockError, RefusedError
from crossdock.formats.compression import MAX_BYTES, Openable
from crossdock.formats.delimited_files import DelimitedFormat, read_lines, read_rows
from crossdock.local_files import create_private, private_folder
from crossdock.records import Again, Proof, RawBatch
from crossdock.sources.late_files import LateError, LateFileWatch, Wait
from crossdock.sources.source_context import SourceContext, writing
from crossdock.sources.spool import Spool
from crossdock.state import FileFacts
from crossdock.transport.file_store import FileStore, RemoteFile, split_pattern

UNFINISHED_SUFFIXES = (".tmp", ".temp", ".part", ".partial", ".filepart", ".uploading", "~")
SETTLED_AFTER_S = 60  # a file whose age exceeds this is not looked at twice
ONE_DAY = timedelta(days=1)
YOUNG = timedelta(seconds=2)  # times of modification are whole seconds
_DAY_IN_NAME = re.compile(r"(?<!\d)(20\d\d)-?(\d\d)-?(\d\d)(?!\d)")

OpenStore = Callable[[], FileStore]


@dataclass(frozen=True, slots=True)
class StreamId:
    """A stream that reads a source: its name in the state, and its version."""

    stream: str
    version: str


@dataclass(slots=True)
class TakenFile:
    """A file of this run.

    Attributes:
        facts: In a plan, a name may stand for its content hash (`crossdock.sources.spool`).
        parts: Arrow files with its rows, in order, where several streams read it and one has done so; else empty.
    """

    facts: FileFacts
    parts: Sequence[Path] = ()
    proof: Proof | None = None


class FileSource:
    """The files of one pattern, of one layout, in one store, for one run.

    Args:
        files: Folder and name pattern, such as ``out/LOT_*.txt``.
        open_store: Connects to the store.
        place: Of this run.
        settle_s: How long a young file must keep its size and time before it is read.
        snapshot: True if each file lists everything: then only the newest counts, and it must not be empty.
        stream_ids: All streams that read this source.
        wait: How long to wait for a file that none of them has worked through, in a run that waits.
    """

    def __init__(
        self,
        files: str,
        layout: DelimitedFormat,
        open_store: OpenStore,
        place: SourceContext,
        *,
        settle_s: float,
        snapshot: bool,
        stream_ids: Sequence[StreamId],
        wait: Wait | None = None,
    ) -> None:
        self._folder, self._pattern = split_pattern(files)
        self._files_pattern = files
        self._layout, self._open_store, self._place, self._settle_s = layout, open_store, place, settle_s
        self._snapshot, self._readers = snapshot, stream_ids
        self._files: list[TakenFile] | None = None
        self._failure: CrossdockError | None = None
        self._spool = Spool(place)
        self._looked_at: set[RemoteFile] = set()
        patience = place.patience
        self._late_file_watch = LateFileWatch(wait, files, place, patience) if wait and patience else None

    def read(self, stream_id: StreamId) -> Iterator[RawBatch]:
        """The rows of all files that *stream_id* has not worked through, by file name.

        Raises:
            RefusedError: If one file fails a gate; then none is taken in.
            LateError: If the run must wait for one; it may read again then.
        """
        all_of_them = self._taken(stream_id)
        taken = self._unread(stream_id, all_of_them)
        if self._late_file_watch and self._late_file_watch.without:
            self._place.note(stream_id.stream, self._late_file_watch.without)
        try:
            for file in taken:
                file.proof, again = file.proof or self._proof(file.facts), self._again(file.facts)
                for rows in file.parts or self._parsed(file):
                    yield RawBatch(file.facts.name, rows, proof=file.proof, again=again)
            done = self._done(stream_id)  # a file that was forgotten, and is listed again, is on record again
            listed = [file.facts for file in all_of_them if file.facts.content_hash not in done]
            self._place.intake.accept(stream_id.stream, stream_id.version, listed)
        finally:
            self._forget_unaccepted()

    def finished(self, stream_id: StreamId) -> None:
        """Every record of *stream_id* is settled or kept: forget the copies that no other reader needs."""
        self._place.intake.finish(stream_id.stream, stream_id.version)
        done = [self._done(other) for other in self._readers]
        for file in self._files or ():
            if all(file.facts.content_hash in files for files in done):
                self._spool.forget(file.facts.content_hash)

    def _done(self, stream_id: StreamId) -> dict[str, FileFacts]:
        """What need not be read again: every file done, but of snapshots only the last, since an older may return."""
        done = self._place.intake.done(stream_id.stream, stream_id.version)
        return dict(list(done.items())[-1:]) if self._snapshot else done

    def _unread(self, stream_id: StreamId, taken: list[TakenFile]) -> list[TakenFile]:
        """What *stream_id* has not worked through, unless it is stale."""
        unread = self._new_to(stream_id, taken)
        if self._snapshot:
            self._refuse_stale(stream_id, unread)
        return unread

    def _new_to(self, stream_id: StreamId, taken: list[TakenFile]) -> list[TakenFile]:
        done = self._done(stream_id)
        unread = [file for file in taken if file.facts.content_hash not in done]
        if self._snapshot or not unread:
            return unread
        forgotten = self._place.intake.forgotten(stream_id.stream, stream_id.version)
        return [file for file in unread if file.facts.content_hash not in forgotten]

    def _forget_unaccepted(self) -> None:
        """Leave no copy of a file that was refused, or that every reader has worked through."""
        if not self._spool.lasting:
            return
        accepted = {facts.content_hash for facts in self._unfinished()}
        for content_hash in self._spool.fetched - accepted:
            done = [content_hash in self._done(stream_id) for stream_id in self._readers]
            if not any(done) or all(done):
                self._spool.forget(content_hash)

    def _taken(self, stream_id: StreamId) -> list[TakenFile]:
        """The files of this run; a failure is remembered too, so that a login is refused once and not per stream."""
        if self._failure is not None:
            raise self._failure
        if self._files is None:
            try:
                self._files = self._awaited(stream_id) if self._late_file_watch else self._take()
            except LateError:
                self._forget_unaccepted()
                raise
            except CrossdockError as failure:
                self._failure = failure
                self._forget_unaccepted()
                raise
        return self._files

    def _awaited(self, stream_id: StreamId) -> list[TakenFile]:
        assert self._late_file_watch is not None

        def take() -> list[TakenFile]:
            taken = self._take()
            self._unread(stream_id, taken)  # a stale file is not what is waited for
            return taken

        return self._late_file_watch.look(take, self._arrived)

    def _arrived(self, taken: list[TakenFile]) -> bool:
        """True if a file is there that no reader has worked through, or one was taken in since the run was due."""
        assert self._place.patience is not None
        new = [{file.facts.content_hash for file in self._new_to(stream_id, taken)} for stream_id in self._readers]
        if set.intersection(*new):
            return True
        known = (facts.accepted_at for stream_id in self._readers for facts in self._done(stream_id).values())
        return any(at is not None and at >= self._place.patience.since for at in known)

    def _take(self) -> list[TakenFile]:
        with writing(self._place.spool):
            private_folder(self._place.spool)
        with self._open_store() as store:
            new = self._new_files(store)
            if self._late_file_watch and self._late_file_watch.early and self._looked_at.issuperset(new):
                new = []  # nothing came since the last look
            names = self._spool.take(store, new, lambda: self._known_sizes(new))
            fetched = [_facts(file, name) for file, name in zip(new, names, strict=True)]
            self._looked_at.update(new)
        kept = [facts for facts in self._unfinished() if self._spool.has(facts.content_hash)]
        files = list({facts.content_hash: facts for facts in (*kept, *fetched)}.values())
        if self._snapshot:
            files = sorted(files, key=lambda facts: facts.stamp)[-1:]
        return [TakenFile(facts) for facts in sorted(files, key=lambda facts: facts.name)]

    def _known_sizes(self, new: list[RemoteFile]) -> Iterator[int]:
        """Of all files that any reader has worked through or accepted; forgotten ones may have those of *new*."""
        done = (facts for stream_id in self._readers for facts in self._done(stream_id).values())
        yield from (facts.size for facts in chain(done, self._unfinished()))
        if any(self._place.intake.forgotten(stream_id.stream, stream_id.version) for stream_id in self._readers):
            yield from (file.size for file in new)

    def _new_files(self, store: FileStore) -> list[RemoteFile]:
        listed = self._listed(store)
        if not listed and not self._late_file_watch:
            self._place.progress.warn(f"no file matches {self._files_pattern}")
        if self._snapshot:
            listed = sorted(listed, key=_stamp)[-1:]
        self._mark_seen(listed)
        known = [{_look(facts) for facts in self._done(stream_id).values()} for stream_id in self._readers]
        new = [f for f in listed if not all((f.name, f.size, _instant(f.mtime)) in looks for looks in known)]
        for file in new:
            if file.size > MAX_BYTES:
                hint = "Have it sent in parts."
                raise RefusedError(
                    f"has {file.size:,} bytes, at most {MAX_BYTES:,} are taken", where=file.path, hint=hint
                )
        newest = max((file.mtime for file in new), default=0)
        if self._place.clock.now().timestamp() - newest < SETTLED_AFTER_S:
            self._place.clock.sleep(self._settle_s)
            again = {file.name: file for file in self._listed(store)}
            for file in new:
                if again.get(file.name) != file:
                    raise RefusedError("is still being written", where=file.path, hint="run again when it is complete")
        return new

    def _mark_seen(self, listed: list[RemoteFile]) -> None:
        """Say once a day of the known files that are still listed that they are, so that they stay on record."""
        looks, day_ago = {(f.name, f.size, _instant(f.mtime)) for f in listed}, self._place.clock.now() - ONE_DAY
        for stream_id in self._readers:
            seen = [
                facts.content_hash
                for facts in self._done(stream_id).values()
                if (facts.seen_at or facts.accepted_at or day_ago) <= day_ago
                and (facts.name, facts.size, facts.modified_at) in looks
            ]
            if seen:
                self._place.intake.seen(stream_id.stream, stream_id.version, seen)

    def _listed(self, store: FileStore) -> list[RemoteFile]:
        found = store.list(self._folder, self._pattern)
        return [file for file in found if not file.name.lower().endswith(UNFINISHED_SUFFIXES)]

    def _unfinished(self) -> Iterator[FileFacts]:
        """Files accepted by a run that did not get to their end; the source may have removed them since."""
        for stream_id in self._readers:
            yield from self._place.intake.unfinished(stream_id.stream).values()

    def _parsed(self, file: TakenFile) -> Iterator[pl.DataFrame]:
        """The rows of *file*, kept for the other readers; a failure is theirs too."""
        facts, parts, is_empty = file.facts, list[Path](), True
        try:
            for frame in read_rows(self._spool.bytes_of(facts.content_hash), self._layout, name=facts.name):
                if len(self._readers) > 1:
                    parts.append(self._place.work / f"{secrets.token_hex(16)}.arrow")  # other sources put theirs there
                    with writing(parts[-1].parent), create_private(parts[-1]) as part:
                        frame.write_ipc(part)
                is_empty = is_empty and frame.is_empty()
                yield frame
            if self._snapshot and is_empty:
                raise RefusedError("is a snapshot without rows", where=facts.name, hint="an empty list is no evidence")
        except CrossdockError as failure:
            self._failure = failure
            raise
        file.parts = parts

    def _again(self, facts: FileFacts) -> Again:
        file, layout = self._spool.bytes_of(facts.content_hash), self._layout

        def again(lines: Sequence[int] | None) -> Iterator[pl.DataFrame]:
            if lines is None:
                return read_rows(file, layout, name=facts.name)
            return read_lines(file, layout, lines, name=facts.name)

        return again

    def _proof(self, facts: FileFacts) -> Proof:
        has_trailer = self._layout.trailer is not None  # which counts the rows, or the file will be refused
        cut = not has_trailer and _is_cut(self._spool.bytes_of(facts.content_hash))
        return Proof(partial(self._spool.content_hash, facts.content_hash), counted=has_trailer, cut=cut)

    def _refuse_stale(self, stream_id: StreamId, taken: list[TakenFile]) -> None:
        newest = self._place.intake.newest_stamp(stream_id.stream)
        for file in taken:
            if newest is not None and file.facts.stamp < newest:
                raise RefusedError(
                    f"is of {file.facts.stamp}, older than the snapshot of {newest} taken in before",
                    where=file.facts.name,
                    hint="ask the sender for a fresh one",
                )


def _is_cut(path: Openable) -> bool:
    """True if the last line has no line end, as where a file was cut; gzip has an end mark of its own."""
    with path.open("rb") as file:
        if file.read(2) == b"\x1f\x8b":
            return False
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4))
        return not file.read().rstrip(b"\x00\x1a").endswith(b"\n")  # the zeros of UTF-16, the end mark of DOS


def _facts(file: RemoteFile, name: str) -> FileFacts:
    return FileFacts(file.name, name, file.size, _instant(file.mtime), _stamp(file))


def _instant(mtime: int) -> datetime:
    return datetime.fromtimestamp(mtime, UTC)


def _look(facts: FileFacts) -> tuple[str, int, datetime] | None:
    """How a known file looks from outside; None if it was taken so young that it could change without looking so."""
    if facts.accepted_at is None or facts.accepted_at - facts.modified_at < YOUNG:
        return None
    return facts.name, facts.size, facts.modified_at


def _stamp(file: RemoteFile) -> str:
    """What orders snapshots: the day in the name if there is one, else the time of modification."""
    for match in _DAY_IN_NAME.finditer(file.name):
        try:
            return date(*map(int, match.groups())).isoformat()
        except ValueError:
            continue
    return _instant(file.mtime).isoformat()
