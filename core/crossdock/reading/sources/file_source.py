"""The source that turns files into batches of rows. It takes in no file that is incomplete, damaged, stale or known.

A file is taken in as a whole: it is fetched into the spool and checked to its last line before its rows count. Several
streams may share one source, which is then read once in a run. Without a run, the newest file can be examined for cells
that an earlier program seems to have damaged.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from functools import partial
from io import BytesIO
from pathlib import Path

import polars as pl
from msgspec import Struct, field

from crossdock.errors import CrossdockError, RefusedError
from crossdock.reading.formats.file_formats import (
    FileFormat,
    LeniencyCounts,
    may_be_truncated,
    read_rows,
    read_rows_at_lines,
)
from crossdock.reading.formats.record_types import (
    convert_column_to_exact_decimals,
    format_decimal_without_trailing_zeros,
)
from crossdock.reading.formats.suspicious_cells import find_suspicious_cells_by_column, lost_leading_zero_warnings
from crossdock.reading.sources.expected_and_late_files import (
    NO_FILE_EXPECTED,
    Expectation,
    LateFileError,
    LateFileWatch,
    Wait,
)
from crossdock.reading.sources.file_order import FileOrder, Order
from crossdock.reading.sources.file_spool import Spool
from crossdock.reading.sources.listed_and_known_files import (
    LEAST_AGE_WHEN_READ,
    FileListing,
    KnownFiles,
    StreamId,
    archive_finished_files,
    check_intake,
    facts_of_listed_file,
)
from crossdock.reading.sources.manifests_and_done_markers import Manifest, ManifestEntry, read_manifest_entries
from crossdock.reading.sources.run_context import Look, SourceContext, os_errors_as_state_errors
from crossdock.reading.sources.stream_input_report import (
    FileInInputReport,
    comma_separated_first_names,
    files_passed_over_text,
)
from crossdock.reading.transport.file_store import FileStore, RemoteFile
from crossdock.reading.wrappers.stream_compression import open_and_unpack_if_gzip
from crossdock.reading.wrappers.wrapper import InMemoryFile, NamedFile, UnreadArchiveMembers, WrapperSettings
from crossdock.state import FileFacts
from crossdock.values.field_types import EXACT_DECIMAL_CONTEXT
from crossdock.values.raw_rows_and_records import LINE, Again, Empty, Proof, RawBatch, read_arrow_file
from crossdock.values.safe_local_files import create_private_file, create_private_folder
from crossdock.values.texts_of_numbers_and_times import count_with_noun

MOST_BYTES = 16 << 20
"""The largest file that is examined."""
_MOST_ROWS = 100_000


def warnings_about_newest(store: FileStore, files: Collection[RemoteFile], layout: FileFormat) -> Iterator[str]:
    """Yield what looks damaged in the first rows of the newest file; nothing if it is too large or is refused."""
    newest = max(files, key=lambda file: (file.mtime, file.name), default=None)
    if newest is None or newest.size > MOST_BYTES:
        return
    try:
        content = BytesIO()
        store.fetch(newest, content)
        with closing(read_rows(InMemoryFile(content.getvalue()), layout, name=newest.name)) as frames:  # type: ignore[type-var]  # a generator
            found = list[pl.DataFrame]()
            for frame in frames:
                found.append(frame)
                if sum(each.height for each in found) >= _MOST_ROWS:
                    break
            rows = pl.concat(found)
    except CrossdockError:
        return  # the run reports why
    present = [name for name in rows.columns if name != LINE]
    for warning in (
        *map(str, find_suspicious_cells_by_column(rows, present)),
        *lost_leading_zero_warnings(rows, present),
    ):
        yield f"{newest.name}: {warning}"


__all__ = ["FileSource", "StreamId"]

OpenStore = Callable[[], FileStore]


class TakenFile(Struct):
    """A file of this run. `parts` are Arrow files with its rows, in order, if several streams read it.

    Each is with the name of what its rows come from: the file, or ARCHIVE/MEMBER.
    """

    facts: FileFacts
    parts: Sequence[tuple[str, Path]] = ()
    proof: Proof | None = None
    rows: int | None = None
    leniencies: LeniencyCounts = field(default_factory=LeniencyCounts)


class FileSource:
    """The files of one pattern, of one layout, in one store, for one run.

    Args:
        files: Folder and name pattern, such as ``out/LOT_*.txt``.
        settle_s: How long files must keep their size and time before they are read.
        snapshot: Whether each file lists everything. Only the newest then counts, and it must have rows.
        stream_ids: All streams that read this source.
        kept: How long copies of finished files are kept, for joined sources. The newest snapshot is always kept.
        parts: Whether the newest snapshot may consist of several files with the same date in their names.
        wait: How long to wait for a file that is new to all streams, in a run that waits.
        ready: The name of a file's done marker, such as ``{name}.done``; files without one are not there yet.
        archive_to: The folder to which files are moved once all of their records are settled or kept.
        order: Determines which file is newer; None to use names and times.
        ordered_by_rows: The streams whose rows contain their own order.
        takes_late: Whether older files may come later, because `sorted_oldest_first` is used.
        empty: How a snapshot without rows, or a file without a byte, is treated.
        ignore_case: Whether files match in upper and lower case alike.
        wrapped: What each file is wrapped in, the outermost first. Without it, it may be gzip.
        groups: The keys of the streams whose records are made of several rows.
        keeps_empty_groups: Whether such a record without a row is one row: no stream reads single rows.

    Raises:
        ConfigError: If *ready*, *manifest* or *archive_to* cannot be used with *files*, such as with several folders.
    """

    def __init__(  # noqa: PLR0913  public keyword arguments
        self,
        files: str,
        layout: FileFormat,
        open_store: OpenStore,
        run: SourceContext,
        *,
        settle_s: float,
        snapshot: bool,
        stream_ids: Sequence[StreamId],
        kept: timedelta | None = None,
        parts: bool = False,
        wait: Wait | None = None,
        ready: str | None = None,
        manifest: Manifest | None = None,
        archive_to: str | None = None,
        order: Order | None = None,
        ordered_by_rows: Collection[StreamId] = (),
        takes_late: bool = False,
        empty: Empty = "refuse",
        ignore_case: bool = False,
        wrapped: Sequence[WrapperSettings] = (),
        groups: Collection[tuple[str, ...]] = (),
        keeps_empty_groups: bool = False,
    ) -> None:
        check_intake(files, ready=ready, manifest=manifest, archive=archive_to)
        self._files_pattern, self._empty = files, empty
        self._layout, self._open_store, self._run = (
            layout.with_groups(groups, keeps_empty=keeps_empty_groups),
            open_store,
            run,
        )
        self._wrapped, self._unwrapped = wrapped, dict[str, Sequence[NamedFile]]()  # by content hash
        self._passed_over = dict[str, UnreadArchiveMembers]()  # by content hash
        self._stream_ids = stream_ids
        self._manifest, self._archive_to = manifest, archive_to
        self._entries: dict[str, ManifestEntry] = {}  # by content hash
        manifests = manifest.files if manifest else None
        self._order = FileOrder(order, snapshot=snapshot, parts=parts, ignore_case=ignore_case)
        self._listing = FileListing(
            files, run, stream_ids[0].stream, self._order, settle_s=settle_s, ready=ready, manifests=manifests
        )
        self._known = KnownFiles(
            run,
            stream_ids,
            self._order,
            kept=kept,
            ordered_by_rows=ordered_by_rows,
            takes_late=takes_late,
            looked_twice=settle_s >= LEAST_AGE_WHEN_READ.total_seconds(),
        )
        self._files: list[TakenFile] | None = None
        self._read: dict[StreamId, list[FileInInputReport]] = {}
        self._failure: CrossdockError | None = None
        self._spool = Spool(run, reads_names=layout.reads_names)
        self._fetched: dict[RemoteFile, str] = {}  # names in the spool
        self._copies = set[FileFacts]()  # files with the content of a newer one
        patience = run.patience
        self._late_file_watch = LateFileWatch(wait, files, run, patience) if wait and patience else None
        run.at_end.callback(self.forget_unaccepted)  # only of a refused file, because other streams may still read it

    @property
    def looks(self) -> Sequence[Look]:
        return [self._listing.list_files_before_pause] if self._files is None and self._failure is None else []

    def read(self, stream_id: StreamId, expectation: Expectation = NO_FILE_EXPECTED) -> Iterator[RawBatch]:
        """Yield the rows of all files that *stream_id* has not finished: those of earlier runs, then by file name.

        A new file that is missing against *expectation* is an error of the stream that does not end it.

        Raises:
            RefusedError: If one file fails a check; then none is taken in.
            LateFileError: If the run must wait for a file; it may then read again.
        """
        _, unread = self.current(stream_id, expectation)
        for file in unread:
            agains = dict[str, Again]()
            for name, rows in file.parts or self._parse_file(file):
                if name not in agains:
                    agains[name] = self._row_rereader(file.facts, name)
                yield RawBatch(name, rows, proof=self.proof(file), again=agains[name])
        self._run.intakes.add(stream_id.stream, partial(self.accept, stream_id))

    def current(
        self, stream_id: StreamId, expectation: Expectation = NO_FILE_EXPECTED
    ) -> tuple[list[TakenFile], list[TakenFile]]:
        """Return the files of this run and the kept files, and those of them that *stream_id* has not finished.

        Both lists are in the order of acceptance. The files of this run come last, by name. See `read` for the errors.
        """
        taken = self._fetch_files_once_per_run(stream_id)
        facts = [file.facts for file in taken]
        unread = self._known.unread_files_or_raise_if_outdated(stream_id, facts)
        found = expectation.compare(self._run, stream_id.stream, facts, unread, self._files_pattern)
        finished = self.finished_before(stream_id) if unread else ()
        found.is_read_again = any(each.content_hash in finished for each in unread)
        self._read[stream_id] = found.files
        if self._late_file_watch and self._late_file_watch.note_on_run_without_file:
            self._run.note(stream_id.stream, self._late_file_watch.note_on_run_without_file)
        older = self._known.files_newly_passed_over(stream_id, self._listing.older)
        for note in self._listing.notes_on_skipped_files(
            older, self._known.names_skipped_by_content(stream_id, facts, self._copies)
        ):
            self._run.note(stream_id.stream.partition(":")[0], note)  # older snapshots once
        wanted = {each.content_hash for each in unread}
        return taken, [file for file in taken if file.facts.content_hash in wanted]

    def in_order(self, files: Sequence[TakenFile]) -> list[TakenFile]:
        by_facts = dict(
            zip(self._known.with_former_times_if_only_redated([file.facts for file in files]), files, strict=True)
        )
        return [by_facts[facts] for facts in self._order.sorted_oldest_first([*by_facts], self._run.clock.now())]

    def finished_before(self, stream_id: StreamId) -> Collection[str]:
        """Return the content hashes of the files that earlier runs have finished under any version."""
        return self._known.files_finished_under_any_version(stream_id).keys()

    def rows(self, file: TakenFile) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yield the rows of *file*, each frame with the name of what it comes from: the file, or ARCHIVE/MEMBER."""
        return ((name, read_arrow_file(part)) for name, part in file.parts) if file.parts else self._parse_file(file)

    def proof(self, file: TakenFile) -> Proof:
        """Return the proof as far as the file was read: elements that may be records are known with its last rows."""
        file.proof = file.proof or self._make_proof(file.facts)
        if file.proof.counted or not (elsewhere := file.leniencies.elsewhere):
            return file.proof
        unread = [file.proof.unread, f"{elsewhere} in {file.facts.name}"]
        return dataclasses.replace(file.proof, unread=", ".join(filter(None, unread)))

    def accept(self, stream_id: StreamId) -> None:
        rows = {file.facts.name: file.rows for file in self._files or ()}
        for read in self._read[stream_id]:
            read.rows = rows.get(read.name)
        self._known.accept(stream_id, self._taken_file_facts)
        self._known.record_passed_over_files(stream_id, self._listing.older)

    def finished(self, stream_id: StreamId) -> None:
        """Remove the copies that are no longer needed, because every record of *stream_id* is settled or kept."""
        self._known.mark_accepted_finished(stream_id)
        for content_hash in self._known.hashes_of_unneeded_copies(self._taken_file_facts):
            self._spool.remove_copy(content_hash)
        if self._archive_to is not None and self._files is not None:
            self._archive_finished_files_or_note_failure(stream_id, self._archive_to)

    def _archive_finished_files_or_note_failure(self, stream_id: StreamId, folder: str) -> None:
        """Move finished files. A failure is only noted, because their records are settled or kept."""
        try:
            with self._open_store() as store:
                archive_finished_files(store, folder, self._listing, self._known, self._fetched, self._taken_file_facts)
        except CrossdockError as failure:
            advice = f" ({failure.hint})" if failure.hint else ""
            self._run.note(stream_id.stream, f"files were not moved to {folder!r}: {failure.message}{advice}")

    @property
    def _taken_file_facts(self) -> list[FileFacts]:
        return [file.facts for file in self._files or ()]

    def forget_unaccepted(self) -> None:
        if not (self._spool.is_lasting and self._spool.fetched):
            return
        accepted = {facts.content_hash for facts in self._known.unfinished_files()}
        finished = self._known.content_hashes_finished_per_stream(self._taken_file_facts)
        for content_hash in self._spool.fetched - accepted - self._known.kept_copies().keys():
            done = [content_hash in each for each in finished]
            if not any(done) or all(done):
                self._spool.remove_copy(content_hash)

    def _fetch_files_once_per_run(self, stream_id: StreamId) -> list[TakenFile]:
        """Return the files of this run. A failure is kept for the other streams, so that no log-in is repeated."""
        if self._failure is not None:
            raise self._failure
        if self._files is None:
            try:
                files = self._fetch_files_or_raise_late(stream_id) if self._late_file_watch else self._fetch_new_files()
                self._files = [TakenFile(facts) for facts in files]
            except LateFileError:
                self.forget_unaccepted()  # each attempt fetches a growing file once more
                raise
            except CrossdockError as failure:
                self._failure = failure
                raise
        return self._files

    def _fetch_files_or_raise_late(self, stream_id: StreamId) -> list[FileFacts]:
        assert self._late_file_watch is not None

        def take() -> list[FileFacts]:
            files = self._fetch_new_files()
            self._known.unread_files_or_raise_if_outdated(stream_id, files)  # a stale file does not end the wait
            return files

        return self._late_file_watch.take_files_or_raise_late_error(take, self._known.has_new_file)

    def _fetch_new_files(self) -> list[FileFacts]:
        with os_errors_as_state_errors(self._run.spool):
            create_private_folder(self._run.spool)
        with self._open_store() as store:
            new = self._select_files_to_fetch(store)
            if (
                self._late_file_watch
                and self._late_file_watch.attempt_began_before_deadline
                and set(self._fetched).issuperset(new)
            ):
                new = []  # nothing has arrived since the last attempt
            entries = self._read_manifest_entries(store, new)
            names = self._spool.fetch_or_use_in_place(store, new, lambda: self._known.accepted_sizes(new))
            fetched = [facts_of_listed_file(file, name, self._order) for file, name in zip(new, names, strict=True)]
            self._fetched.update(zip(new, names, strict=True))
            for facts in fetched if self._manifest else ():
                entry = self._entries[facts.content_hash] = entries[facts.name]
                entry.raise_if_checksum_differs(facts.name, self._spool.openable_file(facts.content_hash))
        stored = self._known.files_with_spooled_copy(self._spool.has_copy)
        ordered = self._order.sorted_without_older_duplicates([*stored, *fetched], self._run.clock.now())
        self._copies = set(fetched).difference(ordered)
        if self._order.parts:
            newest = max((facts.stamp for facts in ordered), default="")
            ordered = list({facts.name: facts for facts in ordered if facts.stamp == newest}.values())
            if fetched and ordered:
                self._warn_of_fewer_parts_than_before(ordered)
        elif self._order.snapshot:
            if fetched and ordered[-1] not in fetched:
                self._order.raise_if_known_file_is_in_future(fetched[-1], ordered[-1], self._run.clock.now())
            return ordered[-1:]
        return self._known.sorted_by_first_acceptance(ordered)

    def _read_manifest_entries(self, store: FileStore, new: Sequence[RemoteFile]) -> dict[str, ManifestEntry]:
        """Return what manifests state about *new* files, and warn of others that they name and that never came."""
        if self._manifest is None:
            return {}
        there = self._listing.names_at_last_listing() | self._known.accepted_names()
        entries, missing = read_manifest_entries(
            self._manifest, store, self._run, new, lambda name: self._listing.matches(name) and name not in there
        )
        if missing:
            name, where = next(iter(missing.items()))
            found, verb = count_with_noun(len(missing), "file"), "is" if len(missing) == 1 else "are"
            text = f"{found} that a manifest names {verb} not there, such as {name} in {where}"
            hint = "their records are missing; they are read when they come: ask the sender for them"
            for stream_id in self._stream_ids:
                self._add_missing_file_warning(stream_id, f"{text}: {hint}")
        return entries

    def _warn_of_fewer_parts_than_before(self, parts: Sequence[FileFacts]) -> None:
        """Warn of a snapshot that may be read before all of its files have arrived."""
        for stream_id in self._stream_ids:
            before = self._known.part_count_of_snapshot_before(stream_id, parts[-1].stamp)
            if len(parts) < before:
                found = count_with_noun(len(parts), "file")
                text = f"the snapshot of {parts[-1].name} has {found}, and the one before had {before:,}"
                hint = "if a part is missing, records lose its rows until it arrives: run after the last upload"
                self._add_missing_file_warning(stream_id, f"{text}: {hint}")

    def _add_missing_file_warning(self, stream_id: StreamId, text: str) -> None:
        self._run.warn(stream_id.stream.partition(":")[0], text, code="file_missing")

    def _select_files_to_fetch(self, store: FileStore) -> list[RemoteFile]:
        offered = self._listing.list_offered_files(store)
        if not offered and not self._listing.left_out and not self._late_file_watch:
            self._add_note_to_all_streams(f"no file matches {self._files_pattern}")
        self._known.mark_still_listed(offered)
        self._listing.older.extend(
            passed := [file for file in offered if self._known.is_older_snapshot_passed_over(file)]
        )
        new = [file for file in self._known.files_to_fetch(offered, self._spool.has_copy) if file not in passed]
        self._listing.pause_and_raise_if_files_grow(store, new)
        return new

    def _add_note_to_all_streams(self, text: str) -> None:
        for stream in dict.fromkeys(each.stream for each in self._stream_ids):
            self._run.note(stream, text)

    def _unwrapped_contents(self, facts: FileFacts) -> Sequence[NamedFile]:
        """Return the file as it was delivered, or what is in it, which is unwrapped once in a run."""
        delivered = self._spool.openable_file(facts.content_hash)
        if not self._wrapped:
            return [NamedFile(facts.name, delivered)]
        if facts.content_hash not in self._unwrapped:
            from crossdock.reading.wrappers.wrapping_and_unwrapping import unwrap_file  # noqa: PLC0415  most files are not wrapped

            folder, clock, passed = self._run.work, self._run.clock.monotonic, UnreadArchiveMembers()
            with os_errors_as_state_errors(folder):
                found = unwrap_file(
                    delivered, self._wrapped, name=facts.name, folder=folder, clock=clock, passed_over=passed
                )
            times = {part.name: part.member_time for part in found}
            key = self._order.member_sort_key(times, facts, self._run.clock.now())
            self._unwrapped[facts.content_hash] = sorted(found, key=lambda part: key(part.name))
            self._passed_over[facts.content_hash] = passed
            if passed.names:
                self._add_note_to_all_streams(files_passed_over_text(passed.names, "its name does not match 'members'"))
        return self._unwrapped[facts.content_hash]

    def _read_frames(self, facts: FileFacts, leniencies: LeniencyCounts) -> Iterator[tuple[str, pl.DataFrame]]:
        for part in self._unwrapped_contents(facts):
            for frame in read_rows(part.content, self._layout, name=part.name, leniencies=leniencies):
                yield part.name, frame

    def _parse_file(self, file: TakenFile) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yield the rows of *file*. Rows and failures are kept for the other streams."""
        facts, parts, rows = file.facts, list[tuple[str, Path]](), 0
        leniencies = file.leniencies = LeniencyCounts()
        entry = self._entries.get(facts.content_hash)
        sums = ColumnSumsStatedByManifest(facts.name, entry.where, entry.sums) if entry else None
        try:
            self._run.reading.mark_file_being_read(facts.name, facts.content_hash)
            is_no_change = self._empty == "no_change" and self._has_no_byte(facts)
            for name, frame in () if is_no_change else self._read_frames(facts, leniencies):
                if len(self._stream_ids) > 1:
                    path = self._run.work / f"{secrets.token_hex(16)}.arrow"  # the folder is shared
                    parts.append((name, path))
                    with os_errors_as_state_errors(path.parent), create_private_file(path) as part:
                        frame.write_ipc(part)
                rows += frame.height
                if sums:
                    sums.add_rows(frame)
                yield name, frame
            if entry and sums:
                entry.raise_if_fact_differs(facts.name, "rows", rows)
                sums.check()
            if self._order.snapshot and not rows and self._empty != "all_gone":
                hint = "check the export; a file without rows does not show that records are gone"
                raise RefusedError("is a snapshot without rows", where=facts.name, hint=hint, code="snapshot_empty")
        except CrossdockError as failure:
            self._failure = failure
            raise
        file.parts, file.rows = parts, rows
        if leniencies or is_no_change:
            self._add_note_to_all_streams(f"{facts.name}: {leniencies or 'has no byte, which means no change'}")

    def _has_no_byte(self, facts: FileFacts) -> bool:
        """Return whether a file is empty, also where programs have packed nothing: gzip makes 20 bytes of it."""
        return not facts.size or not any(map(_has_any_byte, self._unwrapped_contents(facts)))

    def _row_rereader(self, facts: FileFacts, name: str) -> Again:
        layout = self._layout
        file = next(part.content for part in self._unwrapped_contents(facts) if part.name == name)

        def again(lines: Sequence[int] | None) -> Iterator[pl.DataFrame]:
            if lines is None:
                return read_rows(file, layout, name=name)
            return read_rows_at_lines(file, layout, lines, name=name)

        return again

    def _make_proof(self, facts: FileFacts) -> Proof:
        layout = self._layout
        entry = self._entries.get(facts.content_hash)
        # a stated number of rows is right, or the file is refused
        counted = layout.states_rows or (entry is not None and entry.states_row_count)
        marks_end = counted or self._wrapped  # each wrapper does
        cut = not marks_end and may_be_truncated(self._spool.openable_file(facts.content_hash), layout)
        content = partial(self._spool.content_hash, facts.content_hash)
        export = f"{facts.name} {facts.modified_epoch_s}"
        return Proof(content, counted=counted, cut=cut, export=export, unread=self._unread_members_text(facts))

    def _unread_members_text(self, facts: FileFacts) -> str:
        if not self._wrapped or not self._order.snapshot:
            return ""
        if facts.content_hash not in self._unwrapped:  # a join asks for the proof before it reads
            self._run.reading.mark_file_being_read(facts.name, facts.content_hash)
            self._unwrapped_contents(facts)
        return comma_separated_first_names(self._passed_over[facts.content_hash].lookalikes)


def _has_any_byte(part: NamedFile) -> bool:
    with open_and_unpack_if_gzip(part.content, name=part.name) as stream:
        return bool(stream.read(1))


class ColumnSumsStatedByManifest:
    def __init__(self, file: str, where: str, sums: Mapping[str, str]) -> None:
        self._file, self._where = file, where
        self._stated = {column: Decimal(text) for column, text in sums.items()}
        self._found = dict.fromkeys(sums, Decimal(0))

    def add_rows(self, rows: pl.DataFrame) -> None:
        for column in self._found:
            if column not in rows.columns:
                hint = "correct manifest.sums in the config; it names columns of the file"
                raise RefusedError(f"missing column {column!r}", where=self._file, hint=hint, code="column_missing")
            total = rows.select(convert_column_to_exact_decimals(rows, column, file=self._file).sum()).item()
            self._found[column] = EXACT_DECIMAL_CONTEXT.add(self._found[column], total or 0)

    def check(self) -> None:
        for column, stated in self._stated.items():
            if self._found[column] != stated:
                found = format_decimal_without_trailing_zeros(self._found[column])
                message = f"the sum of column {column!r} is {found}, but {self._where} states"
                hint = "the file or the manifest is not whole, or they are of different days: fetch them again"
                raise RefusedError(
                    f"{message} {format_decimal_without_trailing_zeros(stated)}",
                    where=self._file,
                    hint=hint,
                    code="control_total_differs",
                )
