"""The files that a source offers, which match its pattern and are not being written, and those that its streams have
taken in before, which may be moved to an archive folder.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator

from crossdock.errors import ConfigError, CrossdockError, RefusedError
from crossdock.reading.sources.expected_and_late_files import has_file_arrived_since_due
from crossdock.reading.sources.file_order import FileOrder
from crossdock.reading.sources.manifests_and_done_markers import DoneMarkers, Manifest
from crossdock.reading.sources.run_context import SourceContext
from crossdock.reading.sources.stream_input_report import files_passed_over_text, name_size_and_time_of_known_file
from crossdock.reading.transport.file_store import (
    ArchivingStore,
    FileStore,
    RemoteFile,
    any_case,
    list_below,
    matches_pattern,
    split_pattern,
)
from crossdock.reading.wrappers.wrapper import MAX_BYTES
from crossdock.state import FileDescription, FileFacts, PackedDigests

UNFINISHED_SUFFIXES = (
    ".tmp", ".temp", ".part", ".partial", ".filepart", ".uploading", ".crdownload", ".download", ".opdownload", "~",
)  # fmt: skip
_UNDECLARED_FORM = "its name does not have the form that 'order' declares"
_OTHER_CASE = "its name differs from 'files' in upper and lower case; 'ignore_case: true' reads it"
_DAY_IN_NAME = re.compile(r"(?<!\d)(20\d\d)[-/]?(\d\d)[-/]?(\d\d)(?!\d)")


def check_intake(files: str, *, ready: str | None, manifest: Manifest | None, archive: str | None) -> None:
    """Raise ConfigError for what cannot be used with *files*."""
    folder, pattern = split_pattern(files, folders=True)
    for key, value in {"ready": ready, "manifest": manifest, "archive": archive}.items():
        if value is not None and "/" in pattern:
            hint = f"name one folder, or leave {key} out"
            raise ConfigError(
                f"{key} cannot be used with files in several folders", where=files, hint=hint, code="config_invalid"
            )
    if archive is not None and (archive.rstrip("/") or "/") == folder:
        raise ConfigError("archive must be another folder than that of files", where=files, code="config_invalid")
    if ready is not None and DoneMarkers(ready, folder).can_file_be_own_marker(pattern):
        raise ConfigError("ready must not be the name of the file itself", where=files, code="config_invalid")


class FileListing:
    """The files of one pattern in a store.

    Args:
        settle_s: How long files must keep their size and time before they are read; 0 for a second look at once.
        ready: The name of a file's marker; without its marker, a file does not count.

    Attributes:
        newest: The name of the newest snapshot when files were last offered; `older` has the older ones.
        left_out: Why files that match the pattern do not count, by name, as of the last look.
    """

    def __init__(
        self,
        files: str,
        run: SourceContext,
        stream: str,
        order: FileOrder,
        *,
        settle_s: float,
        ready: str | None = None,
        manifests: str | None = None,
    ) -> None:
        self._folder, pattern = split_pattern(files, folders=True)
        self._pattern, self._pattern_in_any_case = pattern, any_case(pattern)
        self._run, self._connection, self._settle_s = run, stream.partition(".")[0], settle_s
        self._order = order
        self._since: dict[RemoteFile, float] = {}  # of the last look: the time paused when they were first seen so
        self._ahead = set[str](), 0.0  # names of the last look before this source is read, and its time
        self.newest, self.older = "", list[RemoteFile]()
        self.left_out: dict[str, str] = {}
        self._markers = DoneMarkers(ready, self._folder) if ready else None
        self._manifests = split_pattern(manifests) if manifests else None

    def list_offered_files(self, store: FileStore) -> list[RemoteFile]:
        """Return the files that count, by name. Snapshots are refused if nothing shows which is the newest."""
        listed, self.older = self._list_complete_files(store), []
        if not self._order.snapshot or not listed:
            return listed
        order, now = self._order, self._run.clock.now()
        newest = self._newest_snapshot_parts(listed) if order.parts else [order.newest(listed, now)]
        self.newest, self.older = newest[-1].name, sorted(set(listed).difference(newest), key=lambda file: file.name)
        return newest

    def _newest_snapshot_parts(self, listed: Sequence[RemoteFile]) -> list[RemoteFile]:
        days = {file: _date_in_name(file.name, self._order) for file in listed}
        if len(listed) > 1 and (undated := next((file for file in listed if days[file] is None), None)):
            raise RefusedError(
                f"is one of {len(listed)} files, and has no date in its name that shows which belong together",
                where=undated.path,
                hint="use a pattern that matches one file, names such as LINES_2026-03-01_1.csv, or declare "
                'their form, such as order: {name: "LINES_{date:%d%m%Y}_{number}.csv"}',
                code="file_order_unclear",
            )
        latest = max(listed, key=lambda file: file.modified_epoch_s)
        newest = max(filter(None, days.values()), default=None)
        chosen = [file for file in listed if days[file] == newest]
        self._raise_if_part_of_snapshot_is_unread(newest, chosen)
        for file in (latest, *chosen):
            self._order.raise_if_file_is_in_future(file, self._run.clock.now())
        if self._order.declared is None and days[latest] != newest:
            message = f"was changed after all files of {newest}, and is of an earlier date by its name"
            raise RefusedError(
                message, where=latest.path, hint="declare the form of the names with 'order'", code="file_order_unclear"
            )
        return chosen

    def _raise_if_part_of_snapshot_is_unread(self, day: str | None, parts: Sequence[RemoteFile]) -> None:
        """Refuse the *parts* of a day if another file of it is there and not read, whose rows would be missing."""
        names = {file.name.lower() for file in parts}
        for name, reason in self.left_out.items():
            is_rest = name.lower().removesuffix(_unfinished_suffix(name)) in names  # of an upload that was repeated
            if reason != _UNDECLARED_FORM and not is_rest and _date_in_name(name, self._order) == day:
                raise RefusedError(
                    f"may be a part of the same snapshot as {parts[0].name!r}, and is not read: {reason}",
                    where=f"{self._folder.rstrip('/')}/{name}" if self._folder else name,
                    hint="run again when it is complete; move it away if it does not belong to the snapshot",
                    code="file_missing",
                )

    def notes_on_skipped_files(self, older: Sequence[RemoteFile], repeated: Sequence[str] = ()) -> Iterator[str]:
        passed = self.left_out | {file.name: f"older than {self.newest!r}" for file in older}
        passed |= dict.fromkeys(repeated, "its content is that of another file, and nothing shows that it is newer")
        for reason in dict.fromkeys(passed.values()):
            yield files_passed_over_text([name for name, why in passed.items() if why == reason], reason)

    def matches(self, name: str) -> bool:
        return matches_pattern(name, self._pattern_in_any_case if self._order.ignore_case else self._pattern)

    def names_at_last_listing(self) -> set[str]:
        """Return the names of the last look, also of files that do not count."""
        return {*(file.name for file in self._since), *self.left_out}

    def all_data_files(self, store: FileStore) -> list[RemoteFile]:
        found = list_below(store, self._folder, self._pattern_in_any_case)
        return [file for file in found if not self._is_no_data_file(file.name)]

    def list_done_markers(self, store: FileStore) -> dict[str, RemoteFile]:
        return self._markers.list_markers(store) if self._markers else {}

    def marker_name(self, file: RemoteFile) -> str:
        return self._markers.marker_name(file.name) if self._markers else ""

    def list_files_before_pause(self, store: FileStore) -> None:
        files = self._list_complete_files(store)
        self._ahead = {file.name for file in files}, self._run.clock.monotonic()

    def pause_and_raise_if_files_grow(self, store: FileStore, files: Sequence[RemoteFile]) -> None:
        """Refuse *files*, some of `list_offered_files`, that are too large or have not kept size and time for a while.

        Their times are not compared with the local clock, which may differ from that of the server.
        """
        for file in files:
            if file.size > MAX_BYTES:
                message = f"has {file.size:,} bytes, more than the limit of {MAX_BYTES:,}"
                raise RefusedError(
                    message, where=file.path, hint="ask the sender to send it in parts", code="file_too_large"
                )
        if not files:
            return
        changed, looks = self._first_file_changed_since_pause(files), self._run.growth_checks
        left = self._settle_s - looks.paused + max(self._since[file] for file in files)
        if changed is None and (left > 0 or not self._settle_s):
            looks.list_files_of_all_sources_then_pause(
                left, self._run.clock, self._connection, store, self.list_files_before_pause
            )
            again = set(self._list_complete_files(store))
            changed = next((file for file in files if file not in again), None)
        if changed is not None:
            raise RefusedError(
                "is still being written", where=changed.path, hint="run again when it is complete", code="file_growing"
            )

    def _first_file_changed_since_pause(self, files: Sequence[RemoteFile]) -> RemoteFile | None:
        """Return the first of *files* that changed since the last pause began. Another pause would be as short."""
        (names, at), self._ahead = self._ahead, (set[str](), 0.0)
        if self._run.clock.monotonic() - at > 2 * self._settle_s:
            return None
        return next(
            (each for each in files if each.name in names and self._since[each] == self._run.growth_checks.paused), None
        )

    def _list_complete_files(self, store: FileStore) -> list[RemoteFile]:
        files, self.left_out = list[RemoteFile](), {}
        markers = self.list_done_markers(store)
        for file in list_below(store, self._folder, self._pattern_in_any_case):
            if _unfinished_suffix(file.name):
                self.left_out[file.name] = "its name says that it is not complete"
            elif self._is_no_data_file(file.name):
                continue
            elif not (self._order.ignore_case or matches_pattern(file.name, self._pattern)):
                self.left_out[file.name] = _OTHER_CASE
            elif self._markers and self._markers.marker_name(file.name) not in markers:
                self.left_out[file.name] = f"its marker {self._markers.template} is not there"
            elif self._order.fits_no_template(file.name):
                self.left_out[file.name] = _UNDECLARED_FORM
            else:
                files.append(file)
        paused = self._run.growth_checks.paused
        self._since = {file: self._since.get(file, paused) for file in files}
        return files

    def _is_no_data_file(self, name: str) -> bool:
        if _unfinished_suffix(name):
            return True
        if self._markers and self._markers.folder == self._folder and self._markers.is_marker(name):
            return True
        return (
            self._manifests is not None
            and self._manifests[0] == self._folder
            and matches_pattern(name, self._manifests[1])
        )


def facts_of_listed_file(file: RemoteFile, content_hash: str, order: FileOrder) -> FileFacts:
    changed = _utc_from_epoch(file.mtime)
    stamp = _date_in_name(file.name, order) or changed.isoformat()
    return FileFacts(file.name, content_hash, file.size, changed, stamp)


def name_size_and_time_of_listed_file(file: RemoteFile) -> FileDescription:
    return file.name, file.size, _utc_from_epoch(file.mtime)


def _date_in_name(name: str, order: FileOrder) -> str | None:
    if declared := order.sortable_date_text_in_name(name):
        return declared
    for match in _DAY_IN_NAME.finditer(name):
        try:
            return date(*map(int, match.groups())).isoformat()
        except ValueError:
            continue
    return None


def _unfinished_suffix(name: str) -> str:
    return next((suffix for suffix in UNFINISHED_SUFFIXES if name.lower().endswith(suffix)), "")


def _utc_from_epoch(mtime: int) -> datetime:
    return datetime.fromtimestamp(mtime, UTC)


ONE_DAY = timedelta(days=1)
_NOT_YET = datetime.max.replace(tzinfo=UTC)
LEAST_AGE_WHEN_READ = timedelta(seconds=2)  # modification times are whole seconds
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StreamId:
    """A stream that reads a source: its name in the state, and its version."""

    stream: str
    version: str


class KnownFiles:
    """A view of the intake log for the streams of one source.

    Args:
        kept: How long copies of finished files are kept, under any version; the newest snapshot is always kept.
        ordered_by_rows: Streams whose rows say themselves which is the newest, so that files may come in any order.
        takes_late: Whether older files may come later, because all are put in order.
        looked_twice: Whether files are read only after they kept size and time for `LEAST_AGE_WHEN_READ`: later changes
            then show.
    """

    def __init__(
        self,
        run: SourceContext,
        stream_ids: Sequence[StreamId],
        order: FileOrder,
        *,
        kept: timedelta | None = None,
        ordered_by_rows: Collection[StreamId] = (),
        takes_late: bool = False,
        looked_twice: bool = False,
    ) -> None:
        self._run, self._intake, self._stream_ids = run, run.intake, stream_ids
        self._order, self._snapshot = order, order.snapshot and not order.parts  # parts are files of their own here
        self._kept_for = kept
        self._ordered_by_rows, self._takes_late = ordered_by_rows, takes_late
        self._looked_twice = looked_twice
        self._repeated = dict[StreamId, set[FileDescription]]()  # listed, and not read because of their content
        self._unclear = set[FileDescription]()  # the files among them that may be newer than those read since
        self._looked_up: dict[tuple[Callable[..., Any], str, str], Any] = {}  # cached until this source changes it

    def _cached_from_log(self, what: Callable[..., T], stream: str, version: str = "") -> T:
        """Return what the intake log says. The result is cached, because only this run writes to the log."""
        key = what, stream, version
        if key not in self._looked_up:
            self._looked_up[key] = what(stream, version) if version else what(stream)
        found: T = self._looked_up[key]
        return found

    def _files_finished_under_version(self, stream_id: StreamId) -> dict[str, FileFacts]:
        return self._cached_from_log(self._intake.finished_files, stream_id.stream, stream_id.version)

    def _unfinished_files(self, stream_id: StreamId) -> dict[str, FileFacts]:
        return self._cached_from_log(self._intake.unfinished_files, stream_id.stream)

    def _all_accepted_files(self, stream_id: StreamId) -> list[FileFacts]:
        return self._cached_from_log(self._intake.known_files, stream_id.stream)

    def part_count_of_snapshot_before(self, stream_id: StreamId, stamp: str) -> int:
        """Return how many files the latest accepted snapshot has that is older than *stamp*."""
        older = [facts for facts in self._all_accepted_files(stream_id) if facts.stamp < stamp]
        latest = max((facts.stamp for facts in older), default="")
        return len({facts.name for facts in older if facts.stamp == latest})

    def files_to_skip(self, stream_id: StreamId) -> dict[str, FileFacts]:
        """Return the files to skip: all finished files, but only the last snapshot, since an older one may return.

        No snapshot is skipped after one that is not finished, because some of its records may have been delivered.
        """
        done = self._files_finished_under_version(stream_id)
        if not self._snapshot:
            return done
        return {} if self._unfinished_files(stream_id).keys() - done.keys() else dict(list(done.items())[-1:])

    def content_hashes_finished_per_stream(self, files: Sequence[FileFacts]) -> list[AbstractSet[str]]:
        """Return the contents that each stream has finished, without those of *files* that it must read again."""
        return [
            self.files_to_skip(stream_id).keys() - self._contents_stream_has_not_finished(stream_id, files)
            for stream_id in self._stream_ids
        ]

    def _contents_stream_has_not_finished(self, stream_id: StreamId, files: Sequence[FileFacts]) -> set[str]:
        return {facts.content_hash for facts in self.files_stream_has_not_finished(stream_id, files)}

    def unfinished_files(self) -> Iterator[FileFacts]:
        """Yield the files that a run accepted and did not finish. The source may have removed them since."""
        for stream_id in self._stream_ids:
            yield from self._unfinished_files(stream_id).values()

    def accepted_names(self) -> set[str]:
        return {facts.name for stream_id in self._stream_ids for facts in self._all_accepted_files(stream_id)}

    def unread_files_or_raise_if_outdated(self, stream_id: StreamId, files: Sequence[FileFacts]) -> list[FileFacts]:
        """Return the sorted *files* that the stream has not finished. One older than a known file is refused."""
        unread = self.files_stream_has_not_finished(stream_id, files)
        if not unread or self._order.parts or (stream_id in self._ordered_by_rows and not self._snapshot):
            return unread
        returned = {facts.content_hash for facts in unread if self._has_finished(stream_id, facts)}
        now = self._run.clock.now()
        self._order.raise_if_unread_file_is_not_newer(
            unread, self._all_accepted_files(stream_id), now, late=self._takes_late, returned=returned
        )
        return unread

    def names_skipped_by_content(
        self, stream_id: StreamId, files: Sequence[FileFacts], copies: Collection[FileFacts]
    ) -> list[str]:
        """Return the names of files that are skipped because of their content: they may be meant to be newer."""
        if self._snapshot:
            return []
        unread = {facts.content_hash for facts in self.files_stream_has_not_finished(stream_id, files)}
        read = [
            facts
            for facts in files
            if facts.content_hash not in unread and not self._is_same_finished_file(stream_id, facts)
        ]
        self._repeated[stream_id] = {name_size_and_time_of_known_file(facts) for facts in (*read, *copies)}
        named = [facts for facts in read if not self._is_sent_again_unchanged(stream_id, facts)]
        self._unclear.update(map(name_size_and_time_of_known_file, named))
        before = self._passed_over_files(stream_id)
        return [
            facts.name
            for facts in (*named, *sorted(copies, key=name_size_and_time_of_known_file))
            if name_size_and_time_of_known_file(facts) not in before
        ]

    def _is_same_finished_file(self, stream_id: StreamId, facts: FileFacts) -> bool:
        known = self.files_to_skip(stream_id).get(facts.content_hash)
        return known is not None and name_size_and_time_of_known_file(known) == name_size_and_time_of_known_file(facts)

    def _is_sent_again_unchanged(self, stream_id: StreamId, facts: FileFacts) -> bool:
        before = self._last_finished_file(stream_id), self._finished_files_by_name(stream_id).get(facts.name)
        return any(each is not None and each.content_hash == facts.content_hash for each in before)

    def is_older_snapshot_passed_over(self, snapshot: RemoteFile) -> bool:
        facts = facts_of_listed_file(snapshot, "", self._order)
        return self._snapshot and any(
            name_size_and_time_of_listed_file(snapshot) in self._passed_over_files(stream_id)
            and any(
                self._order.is_older(facts, known, self._run.clock.now())
                for known in self._all_accepted_files(stream_id)
            )
            for stream_id in self._stream_ids
        )

    def _passed_over_files(self, stream_id: StreamId) -> set[FileDescription]:
        return self._cached_from_log(self._intake.passed_over_files, stream_id.stream)

    def files_newly_passed_over(self, stream_id: StreamId, older: Sequence[RemoteFile]) -> list[RemoteFile]:
        known = self._passed_over_files(stream_id) | {
            name_size_and_time_of_known_file(facts) for facts in self._all_accepted_files(stream_id)
        }
        return [file for file in older if name_size_and_time_of_listed_file(file) not in known]

    def record_passed_over_files(self, stream_id: StreamId, older: Sequence[RemoteFile]) -> None:
        files = {name_size_and_time_of_listed_file(file) for file in older} | self._repeated.get(stream_id, set())
        if files != self._passed_over_files(stream_id):
            self._intake.record_passed_over_files(stream_id.stream, files)
            self._looked_up.clear()

    def files_stream_has_not_finished(self, stream_id: StreamId, files: Sequence[FileFacts]) -> list[FileFacts]:
        """Return the *files* that *stream_id* has not finished, including stale ones."""
        returned = self._files_with_returned_content(stream_id, files)
        return [facts for facts in files if facts in returned or not self._has_finished(stream_id, facts)]

    def _has_finished(self, stream_id: StreamId, facts: FileFacts) -> bool:
        """Return whether the stream has finished a file with this content; after an undo, this very file."""
        known = self.files_to_skip(stream_id).get(facts.content_hash)
        if known is not None:
            return not known.is_undone or name_size_and_time_of_known_file(known) == name_size_and_time_of_known_file(
                facts
            )
        return not self._snapshot and facts.content_hash in self._hashes_removed_by_retention(stream_id)

    def _files_with_returned_content(self, stream_id: StreamId, files: Sequence[FileFacts]) -> set[FileFacts]:
        """Return the *files* to read again: their content was read before, and other content since then."""
        returned = set[FileFacts]()
        if self._snapshot or not any(self._has_finished(stream_id, facts) for facts in files):
            return returned
        last, by_name, passed = (
            self._last_finished_file(stream_id),
            dict(self._finished_files_by_name(stream_id)),
            self._passed_over_files(stream_id),
        )
        is_time_ignored = self._is_new_time_ignored(files, last)
        for facts in self._order.sorted_oldest_first(files, self._run.clock.now()):
            if self._is_same_finished_file(stream_id, facts):
                continue
            if self._has_finished(stream_id, facts):
                if is_time_ignored and _differs_only_in_modification_time(facts, by_name.get(facts.name)):
                    continue
                is_rewritten = name_size_and_time_of_known_file(
                    facts
                ) not in passed and _has_newer_content_under_same_name(facts, by_name.get(facts.name))
                if not (is_rewritten or self._is_later_than_last_file(stream_id, facts, last)):
                    continue
                returned.add(facts)
            last = by_name[facts.name] = facts
        return returned

    def with_former_times_if_only_redated(self, files: Sequence[FileFacts]) -> list[FileFacts]:
        """Return *files*, with the former time of those of which only the time has changed, where it is ignored."""
        before, names = dict[str, FileFacts](), Counter(facts.name for facts in files)
        for stream_id in self._stream_ids:
            finished = list(self.files_finished_under_any_version(stream_id).values())
            if self._is_new_time_ignored(files, finished[-1] if finished else None):
                before |= {known.name: known for known in finished if names[known.name] == 1}
        return [
            before[facts.name] if _differs_only_in_modification_time(facts, before.get(facts.name)) else facts
            for facts in files
        ]

    def _is_new_time_ignored(self, files: Sequence[FileFacts], last: FileFacts | None) -> bool:
        """Return whether a new time alone says nothing of a file: those of a copy or a restored backup are all new."""
        return not self._order.goes_by_times_alone or any(
            _differs_only_in_modification_time(facts, last) for facts in files
        )

    def _is_later_than_last_file(self, stream_id: StreamId, facts: FileFacts, last: FileFacts | None) -> bool:
        if last is None or last.content_hash == facts.content_hash:
            return False
        return self._order.is_newer_version_or_later_file(
            facts, last, self._files_finished_under_version(stream_id).values(), self._run.clock.now()
        )

    def _finished_files_by_name(self, stream_id: StreamId) -> dict[str, FileFacts]:
        return self._cached_from_log(self._read_finished_files_by_name, stream_id.stream, stream_id.version)

    def _read_finished_files_by_name(self, stream: str, version: str) -> dict[str, FileFacts]:
        return {facts.name: facts for facts in self._files_finished_under_version(StreamId(stream, version)).values()}

    def _last_finished_file(self, stream_id: StreamId) -> FileFacts | None:
        """Return the last file that the stream has finished: the newest of those that were accepted together."""
        return self._cached_from_log(self._read_last_finished_file, stream_id.stream, stream_id.version)

    def _read_last_finished_file(self, stream: str, version: str) -> FileFacts | None:
        done = list(self._files_finished_under_version(StreamId(stream, version)).values())
        together = [facts for facts in done if facts.accepted_at == done[-1].accepted_at]
        return self._order.sorted_oldest_first(together, self._run.clock.now())[-1] if together else None

    def _hashes_removed_by_retention(self, stream_id: StreamId) -> PackedDigests:
        return self._cached_from_log(self._intake.digests_removed_by_retention, stream_id.stream, stream_id.version)

    def kept_copies(self) -> dict[str, FileFacts]:
        """Return the finished files whose copies are kept, by content hash: the last snapshot, or recent files."""
        if self._kept_for is None:
            return {}
        oldest, kept = self._run.clock.now() - self._kept_for, dict[str, FileFacts]()
        for stream_id in self._stream_ids:
            finished = self.files_finished_under_any_version(stream_id)
            newest = max((facts.stamp for facts in finished.values()), default="") if self._order.parts else None
            kept |= (
                dict(list(finished.items())[-1:])
                if self._snapshot
                else {
                    content_hash: facts
                    for content_hash, facts in finished.items()
                    if facts.accepted_at is None or facts.accepted_at >= oldest or facts.stamp == newest
                }
            )
        return kept

    def files_with_spooled_copy(self, has_copy: Callable[[str], bool]) -> list[FileFacts]:
        return [
            facts for facts in (*self.kept_copies().values(), *self.unfinished_files()) if has_copy(facts.content_hash)
        ]

    def files_finished_under_any_version(self, stream_id: StreamId) -> dict[str, FileFacts]:
        """Return the files that the stream has finished under any version, by content hash, oldest first.

        Files are placed where they were first accepted, snapshots and returned content where they were last accepted.
        """
        unfinished = self._unfinished_files(stream_id)
        finished = dict[str, FileFacts]()
        for facts in self._all_accepted_files(stream_id):
            if facts.content_hash in unfinished or facts.is_undone:
                continue
            before = finished.get(facts.content_hash)
            if self._snapshot or (
                before is not None
                and name_size_and_time_of_known_file(before) != name_size_and_time_of_known_file(facts)
            ):
                finished.pop(facts.content_hash, None)
            finished.setdefault(facts.content_hash, facts)
        return finished

    def sorted_by_first_acceptance(self, files: Sequence[FileFacts]) -> list[FileFacts]:
        """Sort *files* in the order of their first acceptance under any version; new and returned files come last."""
        by_content, by_description = dict[str, datetime](), dict[tuple[str, FileDescription], datetime]()
        for facts in chain.from_iterable(self._all_accepted_files(stream_id) for stream_id in self._stream_ids):
            at, exact = facts.accepted_at or _NOT_YET, (facts.content_hash, name_size_and_time_of_known_file(facts))
            by_content[facts.content_hash] = min(by_content.get(facts.content_hash, at), at)
            by_description[exact] = min(by_description.get(exact, at), at)
        new = set[FileFacts]().union(
            *(self.files_stream_has_not_finished(stream_id, files) for stream_id in self._stream_ids)
        )

        def accepted(facts: FileFacts) -> datetime:
            same = _NOT_YET if facts in new else by_content.get(facts.content_hash, _NOT_YET)
            return by_description.get((facts.content_hash, name_size_and_time_of_known_file(facts)), same)

        return sorted(files, key=accepted)

    def hashes_of_unneeded_copies(self, taken: Sequence[FileFacts]) -> list[str]:
        kept = self.kept_copies()
        by_all = set.intersection(*map(set, self.content_hashes_finished_per_stream(taken)))
        finished = [facts.content_hash for facts in taken if facts.content_hash in by_all]
        if self._kept_for is not None:
            finished += [
                each for stream_id in self._stream_ids for each in self.files_finished_under_any_version(stream_id)
            ]
        return [content_hash for content_hash in finished if content_hash not in kept]

    def files_to_fetch(
        self, offered: Sequence[RemoteFile], has_copy: Callable[[str], bool] = lambda _: True
    ) -> list[RemoteFile]:
        """Return the *offered* files that some stream has not finished, or whose kept copy is lost."""
        lost = {each for each in self.kept_copies() if not has_copy(each)}
        known = [
            {
                name_size_and_time_of_known_file(facts)
                for facts in self.files_to_skip(stream_id).values()
                if facts.content_hash not in lost and self._does_description_prove_unchanged(facts)
            }
            for stream_id in self._stream_ids
        ]
        return [file for file in offered if not all(name_size_and_time_of_listed_file(file) in done for done in known)]

    def files_finished_by_all_streams(
        self, listed: Sequence[RemoteFile], fetched: Mapping[RemoteFile, str], taken: Sequence[FileFacts]
    ) -> list[RemoteFile]:
        done = [self._files_finished_under_version(stream_id) for stream_id in self._stream_ids]
        by_all = set.intersection(*map(set, self.content_hashes_finished_per_stream(taken)))
        read = [
            {
                name_size_and_time_of_known_file(facts)
                for facts in files.values()
                if self._does_description_prove_unchanged(facts)
            }
            for files in done
        ]
        now = self._run.clock.now()
        finished = [
            file
            for file in listed
            if all(name_size_and_time_of_listed_file(file) in each for each in read)
            or (
                file in fetched
                and name_size_and_time_of_listed_file(file) not in self._unclear
                and self._was_old_enough_when_read(file.modified_epoch_s, now)
                and fetched[file] in by_all
            )
        ]
        return sorted(finished, key=lambda file: (file.mtime, file.name))

    def accepted_sizes(self, new: Sequence[RemoteFile]) -> Iterator[int]:
        """Yield the sizes of all accepted files. Forgotten files may have the size of any of *new*."""
        for stream_id in self._stream_ids:
            yield from (facts.size for facts in self._all_accepted_files(stream_id))
        if any(map(self._hashes_removed_by_retention, self._stream_ids)):
            yield from (file.size for file in new)

    def mark_still_listed(self, listed: Sequence[RemoteFile]) -> None:
        """Mark known files that are still listed, once a day, so that the state keeps them."""
        there, day_ago = {name_size_and_time_of_listed_file(file) for file in listed}, self._run.clock.now() - ONE_DAY
        for stream_id in self._stream_ids:
            seen = [
                facts.content_hash
                for facts in self.files_to_skip(stream_id).values()
                if (facts.seen_at or facts.accepted_at or day_ago) <= day_ago
                and name_size_and_time_of_known_file(facts) in there
            ]
            if seen:
                self._intake.mark_still_listed(stream_id.stream, stream_id.version, seen)
                self._looked_up.clear()

    def has_new_file(self, files: Sequence[FileFacts]) -> bool:
        """Return whether one of *files* is new to every stream, or has come since the run was due.

        A snapshot that an earlier run has read is not new, even if it is read again because it proved no removals.
        """
        new = [
            self._contents_stream_has_not_finished(stream_id, files)
            - (self._unfinished_files(stream_id).keys() if self._snapshot else set())
            for stream_id in self._stream_ids
        ]
        streams = [stream_id.stream for stream_id in self._stream_ids]
        return bool(set.intersection(*new)) or has_file_arrived_since_due(
            self._run, streams, files, snapshot=self._snapshot
        )

    def accept(self, stream_id: StreamId, files: Sequence[FileFacts]) -> None:
        done = self.files_to_skip(stream_id)  # a listed file that was forgotten is recorded again
        returned = self._files_with_returned_content(stream_id, files)
        replaced = (done.get(facts.content_hash) for facts in returned)
        self._repeated.setdefault(stream_id, set()).update(
            name_size_and_time_of_known_file(facts) for facts in replaced if facts
        )
        snapshot = self._snapshot
        listed = [each for each in files if each in returned or is_new_or_resent_file(each, done, snapshot=snapshot)]
        if listed:
            self._intake.record_accepted_files(stream_id.stream, stream_id.version, listed)
            self._looked_up.clear()

    def mark_accepted_finished(self, stream_id: StreamId) -> None:
        self._intake.mark_accepted_finished(stream_id.stream, stream_id.version)
        self._looked_up.clear()

    def _does_description_prove_unchanged(self, facts: FileFacts) -> bool:
        """Return whether a file that still has this description has not changed since it was read."""
        return facts.accepted_at is not None and self._was_old_enough_when_read(
            facts.modified_epoch_s, facts.accepted_at
        )

    def _was_old_enough_when_read(self, changed: int, read: datetime) -> bool:
        return self._looked_twice or read.timestamp() - changed >= LEAST_AGE_WHEN_READ.total_seconds()


def _has_newer_content_under_same_name(facts: FileFacts, before: FileFacts | None) -> bool:
    return (
        before is not None
        and before.content_hash != facts.content_hash
        and before.modified_epoch_s < facts.modified_epoch_s
    )


def _differs_only_in_modification_time(facts: FileFacts, before: FileFacts | None) -> bool:
    """Return whether the time of change is all that tells *facts* from *before*."""
    return (
        before is not None
        and (facts.name, facts.content_hash) == (before.name, before.content_hash)
        and facts.modified_epoch_s != before.modified_epoch_s
    )


def is_new_or_resent_file(facts: FileFacts, finished: Mapping[str, FileFacts], *, snapshot: bool) -> bool:
    """Return whether a file is new, was exported again as a snapshot, or was sent again after an undo."""
    same = finished.get(facts.content_hash)
    if same is None:
        return True
    is_again = same.is_undone or (snapshot and facts.stamp >= same.stamp)
    return is_again and name_size_and_time_of_known_file(facts) != name_size_and_time_of_known_file(same)


def _checked_folder_text(value: str) -> str:
    folder = value.rstrip("/")
    try:
        split_pattern(f"{folder}/x")
    except CrossdockError as error:
        raise ValueError(error.message) from None
    if not folder:
        raise ValueError("must be a folder, such as done/")
    return folder


ArchiveFolder = Annotated[str, AfterValidator(_checked_folder_text)]
"""A folder, relative to the same place as the files."""


def archive_finished_files(
    store: FileStore,
    folder: str,
    listing: FileListing,
    known: KnownFiles,
    fetched: Mapping[RemoteFile, str],
    taken: Sequence[FileFacts],
) -> None:
    """Move the files that every stream has finished to *folder*, the oldest first. The first failure ends it.

    Each marker is moved first: without its file, it would make a later file of that name look complete.
    """
    finished = known.files_finished_by_all_streams(listing.all_data_files(store), fetched, taken)
    if not finished:
        return
    if not isinstance(store, ArchivingStore):
        raise CrossdockError(
            "this store cannot move files",
            where=folder,
            hint="remove 'archive' from the config",
            code="files_not_movable",
        )
    markers = listing.list_done_markers(store)
    for file in finished:
        if marker := markers.get(listing.marker_name(file)):
            store.move(marker, folder)
        store.move(file, folder)
