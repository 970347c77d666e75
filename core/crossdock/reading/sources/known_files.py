"""The files that the streams of a source have taken in before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, TypeVar

from crossdock.reading.sources.file_order import FileOrder
from crossdock.reading.sources.listing_of_complete_files import file_facts, listed_file_description
from crossdock.reading.sources.run_context import SourceContext
from crossdock.reading.sources.stream_input_report import known_file_description
from crossdock.reading.sources.waiting_for_late_files import has_file_arrived_since_due
from crossdock.reading.transport.file_store import RemoteFile
from crossdock.state import FileDescription, FileFacts, PackedDigests

ONE_DAY = timedelta(days=1)
_NOT_YET = datetime.max.replace(tzinfo=UTC)
YOUNG = timedelta(seconds=2)  # modification times are whole seconds
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
        looked_twice: Whether files are read only after they kept size and time for `YOUNG`: later changes then show.
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

    def contents_finished_per_stream(self, files: Sequence[FileFacts]) -> list[AbstractSet[str]]:
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

    def unread_files_refusing_outdated(self, stream_id: StreamId, files: Sequence[FileFacts]) -> list[FileFacts]:
        """Return the sorted *files* that the stream has not finished. One older than a known file is refused."""
        unread = self.files_stream_has_not_finished(stream_id, files)
        if not unread or self._order.parts or (stream_id in self._ordered_by_rows and not self._snapshot):
            return unread
        returned = {facts.content_hash for facts in unread if self._has_finished(stream_id, facts)}
        now = self._run.clock.now()
        self._order.refuse_older(
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
        self._repeated[stream_id] = {known_file_description(facts) for facts in (*read, *copies)}
        named = [facts for facts in read if not self._is_sent_again_unchanged(stream_id, facts)]
        self._unclear.update(map(known_file_description, named))
        before = self._passed_over_files(stream_id)
        return [
            facts.name
            for facts in (*named, *sorted(copies, key=known_file_description))
            if known_file_description(facts) not in before
        ]

    def _is_same_finished_file(self, stream_id: StreamId, facts: FileFacts) -> bool:
        known = self.files_to_skip(stream_id).get(facts.content_hash)
        return known is not None and known_file_description(known) == known_file_description(facts)

    def _is_sent_again_unchanged(self, stream_id: StreamId, facts: FileFacts) -> bool:
        before = self._last_finished_file(stream_id), self._finished_files_by_name(stream_id).get(facts.name)
        return any(each is not None and each.content_hash == facts.content_hash for each in before)

    def is_older_snapshot_passed_over(self, snapshot: RemoteFile) -> bool:
        facts = file_facts(snapshot, "", self._order)
        return self._snapshot and any(
            listed_file_description(snapshot) in self._passed_over_files(stream_id)
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
            known_file_description(facts) for facts in self._all_accepted_files(stream_id)
        }
        return [file for file in older if listed_file_description(file) not in known]

    def record_passed_over_files(self, stream_id: StreamId, older: Sequence[RemoteFile]) -> None:
        files = {listed_file_description(file) for file in older} | self._repeated.get(stream_id, set())
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
            return not known.is_undone or known_file_description(known) == known_file_description(facts)
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
                if is_time_ignored and _is_redated(facts, by_name.get(facts.name)):
                    continue
                is_rewritten = known_file_description(facts) not in passed and _is_rewritten(
                    facts, by_name.get(facts.name)
                )
                if not (is_rewritten or self._follows(stream_id, facts, last)):
                    continue
                returned.add(facts)
            last = by_name[facts.name] = facts
        return returned

    def as_they_were_known(self, files: Sequence[FileFacts]) -> list[FileFacts]:
        """Return *files*, with the former time of those of which only the time has changed, where it is ignored."""
        before, names = dict[str, FileFacts](), Counter(facts.name for facts in files)
        for stream_id in self._stream_ids:
            finished = list(self.files_finished_under_any_version(stream_id).values())
            if self._is_new_time_ignored(files, finished[-1] if finished else None):
                before |= {known.name: known for known in finished if names[known.name] == 1}
        return [before[facts.name] if _is_redated(facts, before.get(facts.name)) else facts for facts in files]

    def _is_new_time_ignored(self, files: Sequence[FileFacts], last: FileFacts | None) -> bool:
        """Return whether a new time alone says nothing of a file: those of a copy or a restored backup are all new."""
        return not self._order.goes_by_times_alone or any(_is_redated(facts, last) for facts in files)

    def _follows(self, stream_id: StreamId, facts: FileFacts, last: FileFacts | None) -> bool:
        if last is None or last.content_hash == facts.content_hash:
            return False
        return self._order.follows(
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
                before is not None and known_file_description(before) != known_file_description(facts)
            ):
                finished.pop(facts.content_hash, None)
            finished.setdefault(facts.content_hash, facts)
        return finished

    def sorted_by_first_acceptance(self, files: Sequence[FileFacts]) -> list[FileFacts]:
        """Sort *files* in the order of their first acceptance under any version; new and returned files come last."""
        by_content, by_description = dict[str, datetime](), dict[tuple[str, FileDescription], datetime]()
        for facts in chain.from_iterable(self._all_accepted_files(stream_id) for stream_id in self._stream_ids):
            at, exact = facts.accepted_at or _NOT_YET, (facts.content_hash, known_file_description(facts))
            by_content[facts.content_hash] = min(by_content.get(facts.content_hash, at), at)
            by_description[exact] = min(by_description.get(exact, at), at)
        new = set[FileFacts]().union(
            *(self.files_stream_has_not_finished(stream_id, files) for stream_id in self._stream_ids)
        )

        def accepted(facts: FileFacts) -> datetime:
            same = _NOT_YET if facts in new else by_content.get(facts.content_hash, _NOT_YET)
            return by_description.get((facts.content_hash, known_file_description(facts)), same)

        return sorted(files, key=accepted)

    def hashes_of_unneeded_copies(self, taken: Sequence[FileFacts]) -> list[str]:
        kept = self.kept_copies()
        by_all = set.intersection(*map(set, self.contents_finished_per_stream(taken)))
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
                known_file_description(facts)
                for facts in self.files_to_skip(stream_id).values()
                if facts.content_hash not in lost and self._does_description_prove_unchanged(facts)
            }
            for stream_id in self._stream_ids
        ]
        return [file for file in offered if not all(listed_file_description(file) in done for done in known)]

    def files_finished_by_all_streams(
        self, listed: Sequence[RemoteFile], fetched: Mapping[RemoteFile, str], taken: Sequence[FileFacts]
    ) -> list[RemoteFile]:
        done = [self._files_finished_under_version(stream_id) for stream_id in self._stream_ids]
        by_all = set.intersection(*map(set, self.contents_finished_per_stream(taken)))
        read = [
            {known_file_description(facts) for facts in files.values() if self._does_description_prove_unchanged(facts)}
            for files in done
        ]
        now = self._run.clock.now()
        finished = [
            file
            for file in listed
            if all(listed_file_description(file) in each for each in read)
            or (
                file in fetched
                and listed_file_description(file) not in self._unclear
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
        there, day_ago = {listed_file_description(file) for file in listed}, self._run.clock.now() - ONE_DAY
        for stream_id in self._stream_ids:
            seen = [
                facts.content_hash
                for facts in self.files_to_skip(stream_id).values()
                if (facts.seen_at or facts.accepted_at or day_ago) <= day_ago and known_file_description(facts) in there
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
        self._repeated.setdefault(stream_id, set()).update(known_file_description(facts) for facts in replaced if facts)
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
        return self._looked_twice or read.timestamp() - changed >= YOUNG.total_seconds()


def _is_rewritten(facts: FileFacts, before: FileFacts | None) -> bool:
    return (
        before is not None
        and before.content_hash != facts.content_hash
        and before.modified_epoch_s < facts.modified_epoch_s
    )


def _is_redated(facts: FileFacts, before: FileFacts | None) -> bool:
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
    return is_again and known_file_description(facts) != known_file_description(same)
