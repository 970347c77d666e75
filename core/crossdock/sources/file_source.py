"""Files -> batches of rows, through checks: no file that is incomplete, damaged, stale or known is taken in.

A file is taken in as a whole: it is fetched into the spool and checked to its last line before its rows count (law 4).
Several streams may share one source, which is then read once in a run.
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
from crossdock.sources.expected_files import NO_FILE_EXPECTED, Expectation
from crossdock.sources.input_facts import is_to_remember
from crossdock.sources.late_files import LateError, LateFileWatch, Wait, has_come
from crossdock.sources.source_context import SourceContext, writing
from crossdock.sources.spool import Spool
from crossdock.state import FileFacts
from crossdock.transport.file_store import FileStore, RemoteFile, split_pattern

UNFINISHED_SUFFIXES = (".tmp", ".temp", ".part", ".partial", ".filepart", ".uploading", "~")
SETTLED_AFTER_S = 60  # an older file is not checked twice
ONE_DAY = timedelta(days=1)
YOUNG = timedelta(seconds=2)  # modification times are whole seconds
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
        facts: In a plan, a name may replace its content hash (`crossdock.sources.spool`).
        parts: Arrow files with its rows, in order, once one of several streams has read it.
    """

    facts: FileFacts
    parts: Sequence[Path] = ()
    proof: Proof | None = None
    rows: int = 0


class FileSource:
    """The files of one pattern, of one layout, in one store, for one run.

    Args:
        files: Folder and name pattern, such as ``out/LOT_*.txt``.
        settle_s: How long a young file must keep its size and time before it is read.
        snapshot: Whether each file lists everything: then only the newest counts, and it must have rows.
        stream_ids: All streams that read this source.
        wait: How long to wait for a file that is new to all of them, in a run that waits.
    """

    def __init__(
        self,
        files: str,
        layout: DelimitedFormat,
        open_store: OpenStore,
        run: SourceContext,
        *,
        settle_s: float,
        snapshot: bool,
        stream_ids: Sequence[StreamId],
        wait: Wait | None = None,
    ) -> None:
        self._folder, self._pattern = split_pattern(files)
        self._files_pattern = files
        self._layout, self._open_store, self._run, self._settle_s = layout, open_store, run, settle_s
        self._snapshot, self._stream_ids = snapshot, stream_ids
        self._files: list[TakenFile] | None = None
        self._failure: CrossdockError | None = None
        self._spool = Spool(run)
        self._fetched: set[RemoteFile] = set()
        patience = run.patience
        self._late_file_watch = LateFileWatch(wait, files, run, patience) if wait and patience else None

    def read(self, stream_id: StreamId, expectation: Expectation = NO_FILE_EXPECTED) -> Iterator[RawBatch]:
        """The rows of all files that *stream_id* has not finished, by file name.

        A new file that is missing against *expectation* is an error of the stream that does not end it.

        Raises:
            RefusedError: If one file fails a check; then none is taken in.
            LateError: If the run must wait for a file; it may then read again.
        """
        taken = self._taken(stream_id)
        unread = self._unread(stream_id, taken)
        pair = [file.facts for file in taken], [file.facts for file in unread]
        found = expectation.compare(self._run, stream_id.stream, *pair, self._files_pattern)
        if self._late_file_watch and self._late_file_watch.without:
            self._run.note(stream_id.stream, self._late_file_watch.without)
        try:
            for file, read in zip(unread, found.files, strict=False):
                file.proof, again = file.proof or self._proof(file.facts), self._again(file.facts)
                for rows in file.parts or self._parsed(file):
                    yield RawBatch(file.facts.name, rows, proof=file.proof, again=again)
                read.rows = file.rows
            done = self._done(stream_id)  # a listed file that was forgotten is remembered again
            listed = [file.facts for file in taken if is_to_remember(file.facts, done, snapshot=self._snapshot)]
            self._run.intake.accept(stream_id.stream, stream_id.version, listed)
        finally:
            self._forget_unaccepted()

    def finished(self, stream_id: StreamId) -> None:
        """Every record of *stream_id* is settled or kept: remove the copies that no other stream needs."""
        self._run.intake.finish(stream_id.stream, stream_id.version)
        done = [self._done(other) for other in self._stream_ids]
        for file in self._files or ():
            if all(file.facts.content_hash in files for files in done):
                self._spool.forget(file.facts.content_hash)

    def _done(self, stream_id: StreamId) -> dict[str, FileFacts]:
        """The files to skip: all that are finished; of snapshots only the last, since an older one may return."""
        done = self._run.intake.done(stream_id.stream, stream_id.version)
        return dict(list(done.items())[-1:]) if self._snapshot else done

    def _unread(self, stream_id: StreamId, taken: list[TakenFile]) -> list[TakenFile]:
        """The files that *stream_id* has not finished.

        Raises:
            RefusedError: If one is a stale snapshot.
        """
        unread = self._new_to(stream_id, taken)
        newest = self._run.intake.newest_stamp(stream_id.stream) if self._snapshot else None
        for file in unread:
            if newest is not None and file.facts.stamp < newest:
                message = f"is of {file.facts.stamp}, older than the snapshot of {newest} taken in before"
                raise RefusedError(message, where=file.facts.name, hint="ask the sender for a fresh one")
        return unread

    def _new_to(self, stream_id: StreamId, taken: list[TakenFile]) -> list[TakenFile]:
        done = self._done(stream_id)
        unread = [file for file in taken if file.facts.content_hash not in done]
        if self._snapshot or not unread:
            return unread
        forgotten = self._run.intake.forgotten(stream_id.stream, stream_id.version)
        return [file for file in unread if file.facts.content_hash not in forgotten]

    def _forget_unaccepted(self) -> None:
        """Remove the copies of files that were refused, or that every stream has finished."""
        if not self._spool.lasting:
            return
        accepted = {facts.content_hash for facts in self._unfinished()}
        for content_hash in self._spool.fetched - accepted:
            done = [content_hash in self._done(stream_id) for stream_id in self._stream_ids]
            if not any(done) or all(done):
                self._spool.forget(content_hash)

    def _taken(self, stream_id: StreamId) -> list[TakenFile]:
        """The files of this run; a failure is kept for the other streams, so that a failed log-in is not repeated."""
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
            self._unread(stream_id, taken)  # a stale file does not end the wait
            return taken

        return self._late_file_watch.look(take, self._arrived)

    def _arrived(self, taken: list[TakenFile]) -> bool:
        """Whether a file is new to every stream, or has come since the run was due."""
        new = [{file.facts.content_hash for file in self._new_to(stream_id, taken)} for stream_id in self._stream_ids]
        streams, facts = [stream_id.stream for stream_id in self._stream_ids], [file.facts for file in taken]
        return bool(set.intersection(*new)) or has_come(self._run, streams, facts, snapshot=self._snapshot)

    def _take(self) -> list[TakenFile]:
        with writing(self._run.spool):
            private_folder(self._run.spool)
        with self._open_store() as store:
            new = self._new_files(store)
            if self._late_file_watch and self._late_file_watch.early and self._fetched.issuperset(new):
                new = []  # nothing has arrived since the last attempt
            names = self._spool.take(store, new, lambda: self._known_sizes(new))
            fetched = [_facts(file, name) for file, name in zip(new, names, strict=True)]
            self._fetched.update(new)
        kept = [facts for facts in self._unfinished() if self._spool.has(facts.content_hash)]
        files = list({facts.content_hash: facts for facts in (*kept, *fetched)}.values())
        if self._snapshot:
            files = sorted(files, key=lambda facts: facts.stamp)[-1:]
        return [TakenFile(facts) for facts in sorted(files, key=lambda facts: facts.name)]

    def _known_sizes(self, new: list[RemoteFile]) -> Iterator[int]:
        """The sizes of all files that any stream has finished or accepted; forgotten ones may have any of *new*."""
        done = (facts for stream_id in self._stream_ids for facts in self._done(stream_id).values())
        yield from (facts.size for facts in chain(done, self._unfinished()))
        if any(self._run.intake.forgotten(stream_id.stream, stream_id.version) for stream_id in self._stream_ids):
            yield from (file.size for file in new)

    def _new_files(self, store: FileStore) -> list[RemoteFile]:
        listed = self._listed(store)
        if not listed and not self._late_file_watch:
            self._run.progress.warn(f"no file matches {self._files_pattern}")
        if self._snapshot:
            listed = sorted(listed, key=_stamp)[-1:]
        self._mark_seen(listed)
        known = [{_description(facts) for facts in self._done(stream_id).values()} for stream_id in self._stream_ids]
        new = [file for file in listed if not all(_described(file) in done for done in known)]
        for file in new:
            if file.size > MAX_BYTES:
                message = f"has {file.size:,} bytes, more than the limit of {MAX_BYTES:,}"
                raise RefusedError(message, where=file.path, hint="ask the sender to send it in parts")
        newest = max((file.mtime for file in new), default=0)
        if self._run.clock.now().timestamp() - newest < SETTLED_AFTER_S:
            self._run.clock.sleep(self._settle_s)
            again = {file.name: file for file in self._listed(store)}
            for file in new:
                if again.get(file.name) != file:
                    raise RefusedError("is still being written", where=file.path, hint="run again when it is complete")
        return new

    def _mark_seen(self, listed: list[RemoteFile]) -> None:
        """Mark known files that are still listed, once a day, so that the state keeps them."""
        described, day_ago = {_described(file) for file in listed}, self._run.clock.now() - ONE_DAY
        for stream_id in self._stream_ids:
            seen = [
                facts.content_hash
                for facts in self._done(stream_id).values()
                if (facts.seen_at or facts.accepted_at or day_ago) <= day_ago
                and (facts.name, facts.size, facts.modified_at) in described
            ]
            if seen:
                self._run.intake.seen(stream_id.stream, stream_id.version, seen)

    def _listed(self, store: FileStore) -> list[RemoteFile]:
        found = store.list(self._folder, self._pattern)
        return [file for file in found if not file.name.lower().endswith(UNFINISHED_SUFFIXES)]

    def _unfinished(self) -> Iterator[FileFacts]:
        """Files accepted by a run that did not finish them; the source may have removed them since."""
        for stream_id in self._stream_ids:
            yield from self._run.intake.unfinished(stream_id.stream).values()

    def _parsed(self, file: TakenFile) -> Iterator[pl.DataFrame]:
        """The rows of *file*, kept for the other streams; so is a failure."""
        facts, parts, file.rows = file.facts, list[Path](), 0
        try:
            for frame in read_rows(self._spool.bytes_of(facts.content_hash), self._layout, name=facts.name):
                if len(self._stream_ids) > 1:
                    parts.append(self._run.work / f"{secrets.token_hex(16)}.arrow")  # the folder is shared
                    with writing(parts[-1].parent), create_private(parts[-1]) as part:
                        frame.write_ipc(part)
                file.rows += frame.height
                yield frame
            if self._snapshot and not file.rows:
                raise RefusedError(
                    "is a snapshot without rows",
                    where=facts.name,
                    hint="check the export; a file without rows does not show that records are gone",
                )
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
        has_trailer = self._layout.trailer is not None  # it counts the rows, or the file is refused
        cut = not has_trailer and _is_cut(self._spool.bytes_of(facts.content_hash))
        return Proof(partial(self._spool.content_hash, facts.content_hash), counted=has_trailer, cut=cut)


def _is_cut(path: Openable) -> bool:
    """Whether the last line has no line end, as in a truncated file; gzip has an end mark."""
    with path.open("rb") as file:
        if file.read(2) == b"\x1f\x8b":
            return False
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4))
        return not file.read().rstrip(b"\x00\x1a").endswith(b"\n")  # UTF-16, and the end mark of DOS


def _facts(file: RemoteFile, name: str) -> FileFacts:
    return FileFacts(file.name, name, file.size, _instant(file.mtime), _stamp(file))


def _instant(mtime: int) -> datetime:
    return datetime.fromtimestamp(mtime, UTC)


def _described(file: RemoteFile) -> tuple[str, int, datetime]:
    return file.name, file.size, _instant(file.mtime)


def _description(facts: FileFacts) -> tuple[str, int, datetime] | None:
    """How the store described a known file; None if it was so young that it may have changed since unnoticed."""
    if facts.accepted_at is None or facts.accepted_at - facts.modified_at < YOUNG:
        return None
    return facts.name, facts.size, facts.modified_at


def _stamp(file: RemoteFile) -> str:
    """The order of snapshots: the date in the name if there is one, else the modification time."""
    for match in _DAY_IN_NAME.finditer(file.name):
        try:
            return date(*map(int, match.groups())).isoformat()
        except ValueError:
            continue
    return _instant(file.mtime).isoformat()
