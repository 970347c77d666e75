"""Which files the streams of a source have taken in before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain

from crossdock.errors import RefusedError
from crossdock.sources.input_facts import is_to_remember
from crossdock.sources.late_files import has_come
from crossdock.sources.listed_files import FileDescription, description, stamp
from crossdock.sources.source_context import SourceContext
from crossdock.state import FileFacts
from crossdock.transport.file_store import RemoteFile

ONE_DAY = timedelta(days=1)
YOUNG = timedelta(seconds=2)  # modification times are whole seconds


@dataclass(frozen=True, slots=True)
class StreamId:
    """A stream that reads a source: its name in the state, and its version."""

    stream: str
    version: str


class KnownFiles:
    """The intake log, as the streams of one source see it.

    Args:
        stream_ids: All streams that read the source.
        snapshot: Whether each file lists everything.
        kept: How long copies of finished files are kept, under any version; None if they are not.
        keeps_newest: Keep those with the newest stamp however old they are.
    """

    def __init__(
        self,
        run: SourceContext,
        stream_ids: Sequence[StreamId],
        *,
        snapshot: bool,
        kept: timedelta | None = None,
        keeps_newest: bool = False,
    ) -> None:
        self._run, self._intake = run, run.intake
        self._stream_ids, self._snapshot = stream_ids, snapshot
        self._kept_for, self._keeps_newest = kept, keeps_newest

    def done(self, stream_id: StreamId) -> dict[str, FileFacts]:
        """The files to skip: all that are finished; of snapshots only the last, since an older one may return."""
        done = self._intake.done(stream_id.stream, stream_id.version)
        return dict(list(done.items())[-1:]) if self._snapshot else done

    def done_by(self, content_hash: str) -> list[bool]:
        """For each stream whether it has finished this file."""
        return [content_hash in self.done(stream_id) for stream_id in self._stream_ids]

    def unfinished(self) -> Iterator[FileFacts]:
        """Files accepted by a run that did not finish them; the source may have removed them since."""
        for stream_id in self._stream_ids:
            yield from self._intake.unfinished(stream_id.stream).values()

    def unread(self, stream_id: StreamId, files: Sequence[FileFacts]) -> list[FileFacts]:
        """Those of *files* that *stream_id* has not finished.

        Raises:
            RefusedError: If one is a stale snapshot.
        """
        unread = self.new_to(stream_id, files)
        newest = self._intake.newest_stamp(stream_id.stream) if self._snapshot else None
        for facts in unread:
            if newest is not None and facts.stamp < newest:
                message = f"is of {facts.stamp}, older than the snapshot of {newest} taken in before"
                raise RefusedError(message, where=facts.name, hint="ask the sender for a fresh one")
        return unread

    def new_to(self, stream_id: StreamId, files: Sequence[FileFacts]) -> list[FileFacts]:
        """Those of *files* that *stream_id* has not finished, stale ones included."""
        done = self.done(stream_id)
        unread = [facts for facts in files if facts.content_hash not in done]
        if self._snapshot or not unread:
            return unread
        forgotten = self._intake.forgotten(stream_id.stream, stream_id.version)
        return [facts for facts in unread if facts.content_hash not in forgotten]

    def kept(self) -> dict[str, FileFacts]:
        """Finished files whose copies are kept, by content hash: of snapshots the last, else those of some time."""
        if self._kept_for is None:
            return {}
        oldest, kept = self._run.clock.now() - self._kept_for, dict[str, FileFacts]()
        for stream_id in self._stream_ids:
            finished = self.finished(stream_id)
            newest = max((facts.stamp for facts in finished.values()), default="") if self._keeps_newest else None
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

    def finished(self, stream_id: StreamId) -> dict[str, FileFacts]:
        """The files that the stream has finished under any version, by content hash, oldest first.

        A file counts as of when it was first accepted; a snapshot, which may return, as of the last time.
        """
        unfinished = self._intake.unfinished(stream_id.stream)
        finished = dict[str, FileFacts]()
        for facts in self._intake.known(stream_id.stream):
            if facts.content_hash in unfinished:
                continue
            if self._snapshot:
                finished.pop(facts.content_hash, None)
            finished.setdefault(facts.content_hash, facts)
        return finished

    def accepted_at(self) -> dict[str, datetime]:
        """When the streams have first accepted their files, under any version, by content hash."""
        known = chain.from_iterable(self._intake.known(stream_id.stream) for stream_id in self._stream_ids)
        found = sorted((facts.accepted_at, facts.content_hash) for facts in known if facts.accepted_at is not None)
        return {content_hash: at for at, content_hash in reversed(found)}

    def outdated(self, taken: Sequence[str]) -> list[str]:
        """The content hashes of finished files whose copies are not needed: of *taken*, and of older ones if kept."""
        kept = self.kept()
        finished = [content_hash for content_hash in taken if all(self.done_by(content_hash))]
        if self._kept_for is not None:
            finished += [each for stream_id in self._stream_ids for each in self.finished(stream_id)]
        return [content_hash for content_hash in finished if content_hash not in kept]

    def new(self, offered: Sequence[RemoteFile], has_copy: Callable[[str], bool] = lambda _: True) -> list[RemoteFile]:
        """Those of *offered* that a stream has not finished, as far as their descriptions show it.

        Args:
            has_copy: Whether there is a copy of a content hash; a file whose copy should be kept is new without it.
        """
        lost = {each for each in self.kept() if not has_copy(each)}
        known = [
            {_description(facts) for facts in self.done(stream_id).values() if facts.content_hash not in lost}
            for stream_id in self._stream_ids
        ]
        return [file for file in offered if not all(description(file) in done for done in known)]

    def finished_by_all(self, listed: Sequence[RemoteFile], fetched: Mapping[RemoteFile, str]) -> list[RemoteFile]:
        """Those of *listed* that every stream has finished, and of snapshots also all before them, the oldest first.

        Args:
            fetched: The content hashes of those that this run has fetched.
        """
        new = [file for file in self.new(listed) if not self._is_finished(file, fetched)]
        ordered = sorted(listed, key=stamp)
        done = [number for number, file in enumerate(ordered, 1) if file not in new]
        if self._snapshot:
            return ordered[: done[-1]] if done else []
        return [ordered[number - 1] for number in done]

    def _is_finished(self, file: RemoteFile, fetched: Mapping[RemoteFile, str]) -> bool:
        is_steady = self._run.clock.now() - description(file)[2] >= YOUNG
        return is_steady and file in fetched and all(self.done_by(fetched[file]))

    def sizes(self, new: Sequence[RemoteFile]) -> Iterator[int]:
        """The sizes of all files that any stream has accepted; forgotten ones may have any of *new*."""
        for stream_id in self._stream_ids:
            yield from (facts.size for facts in self._intake.known(stream_id.stream))
        if any(self._intake.forgotten(stream_id.stream, stream_id.version) for stream_id in self._stream_ids):
            yield from (file.size for file in new)

    def mark_seen(self, listed: Sequence[RemoteFile]) -> None:
        """Mark known files that are still listed, once a day, so that the state keeps them."""
        described, day_ago = {description(file) for file in listed}, self._run.clock.now() - ONE_DAY
        for stream_id in self._stream_ids:
            seen = [
                facts.content_hash
                for facts in self.done(stream_id).values()
                if (facts.seen_at or facts.accepted_at or day_ago) <= day_ago
                and (facts.name, facts.size, facts.modified_at) in described
            ]
            if seen:
                self._intake.seen(stream_id.stream, stream_id.version, seen)

    def arrived(self, files: Sequence[FileFacts]) -> bool:
        """Whether one of *files* is new to every stream, or has come since the run was due."""
        new = [{facts.content_hash for facts in self.new_to(stream_id, files)} for stream_id in self._stream_ids]
        streams = [stream_id.stream for stream_id in self._stream_ids]
        return bool(set.intersection(*new)) or has_come(self._run, streams, files, snapshot=self._snapshot)

    def accept(self, stream_id: StreamId, files: Sequence[FileFacts]) -> None:
        """Record that *stream_id* has read *files* as a whole."""
        done = self.done(stream_id)  # a listed file that was forgotten is remembered again
        listed = [facts for facts in files if is_to_remember(facts, done, snapshot=self._snapshot)]
        self._intake.accept(stream_id.stream, stream_id.version, listed)

    def finish(self, stream_id: StreamId) -> None:
        """Record that every record of the files that *stream_id* has accepted is settled or kept."""
        self._intake.finish(stream_id.stream, stream_id.version)


def _description(facts: FileFacts) -> FileDescription | None:
    """How the store described a known file; None if it was so young that it may have changed since unnoticed."""
    if facts.accepted_at is None or facts.accepted_at - facts.modified_at < YOUNG:
        return None
    return facts.name, facts.size, facts.modified_at
