"""Which files a source offers: those that match its pattern and are not being written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime

from crossdock.errors import RefusedError
from crossdock.formats.compression import MAX_BYTES
from crossdock.sources.markers import Markers
from crossdock.sources.source_context import SourceContext
from crossdock.state import FileFacts
from crossdock.transport.file_store import FileStore, RemoteFile, matches, split_pattern

UNFINISHED_SUFFIXES = (".tmp", ".temp", ".part", ".partial", ".filepart", ".uploading", "~")
SETTLED_AFTER_S = 60  # an older file is not checked twice
_DAY_IN_NAME = re.compile(r"(?<!\d)(20\d\d)-?(\d\d)-?(\d\d)(?!\d)")

FileDescription = tuple[str, int, datetime]
"""How a store describes a file: name, size in bytes, modification time."""


class FileListing:
    """The files of one pattern in a store.

    Args:
        settle_s: How long a young file must keep its size and time before it is read.
        snapshot: Whether only the newest file counts.
        parts: Whether all files with the date of the newest count.
        ready: The name of a file's marker; without its marker, a file does not count.
        manifests: Folder and name pattern of manifests, which are no data.

    Attributes:
        unmarked: How many files had no marker when they were last listed.
    """

    def __init__(
        self,
        files: str,
        run: SourceContext,
        *,
        settle_s: float,
        snapshot: bool,
        parts: bool = False,
        ready: str | None = None,
        manifests: str | None = None,
    ) -> None:
        self._folder, self._pattern = split_pattern(files)
        self._run, self._settle_s, self._snapshot, self._parts = run, settle_s, snapshot, parts
        self.unmarked = 0
        self._markers = Markers(ready, self._folder) if ready else None
        self._manifests = split_pattern(manifests) if manifests else None

    def offered(self, store: FileStore) -> list[RemoteFile]:
        """The files that count, by name.

        Raises:
            RefusedError: If several files may be parts of a snapshot, and the name of one has no date.
        """
        listed = self._listed(store)
        if not self._snapshot or not self._parts:
            return sorted(listed, key=stamp)[-1:] if self._snapshot else listed
        if len(listed) > 1 and (undated := next((file for file in listed if _day(file) is None), None)):
            raise RefusedError(
                f"is one of {len(listed)} files, and has no date in its name that shows which belong together",
                where=undated.path,
                hint="use a pattern that matches one file, or names such as LINES_2026-03-01_1.csv",
            )
        newest = max(map(stamp, listed), default="")
        return [file for file in listed if stamp(file) == newest]

    def all_files(self, store: FileStore) -> list[RemoteFile]:
        """All files that are data, with or without a marker, by name."""
        found = store.list(self._folder, self._pattern)
        return [file for file in found if not self._is_other(file.name)]

    def markers(self, store: FileStore) -> dict[str, RemoteFile]:
        """The markers that are there, by name."""
        return self._markers.listed(store) if self._markers else {}

    def marker_name(self, file: RemoteFile) -> str:
        """The name of the marker of *file*; empty if files need none."""
        return self._markers.name(file.name) if self._markers else ""

    def check_complete(self, store: FileStore, files: Sequence[RemoteFile]) -> None:
        """Check that *files* are not too large, and that nothing writes to them.

        Raises:
            RefusedError: If one fails.
        """
        for file in files:
            if file.size > MAX_BYTES:
                message = f"has {file.size:,} bytes, more than the limit of {MAX_BYTES:,}"
                raise RefusedError(message, where=file.path, hint="ask the sender to send it in parts")
        newest = max((file.mtime for file in files), default=0)
        if self._run.clock.now().timestamp() - newest < SETTLED_AFTER_S:
            self._run.clock.sleep(self._settle_s)
            again = {file.name: file for file in self._listed(store)}
            for file in files:
                if again.get(file.name) != file:
                    raise RefusedError("is still being written", where=file.path, hint="run again when it is complete")

    def _listed(self, store: FileStore) -> list[RemoteFile]:
        files = self.all_files(store)
        if self._markers is None:
            return files
        markers = self.markers(store)
        marked = [file for file in files if self._markers.name(file.name) in markers]
        self.unmarked = len(files) - len(marked)
        return marked

    def _is_other(self, name: str) -> bool:
        """Whether a file is not data, although it matches the pattern."""
        if name.lower().endswith(UNFINISHED_SUFFIXES):
            return True
        if self._markers and self._markers.folder == self._folder and self._markers.is_marker(name):
            return True
        return self._manifests is not None and self._manifests[0] == self._folder and matches(name, self._manifests[1])


def facts_of(file: RemoteFile, content_hash: str) -> FileFacts:
    """What the state keeps of *file*; in a plan, a name may replace its content hash (`crossdock.sources.spool`)."""
    return FileFacts(file.name, content_hash, file.size, _instant(file.mtime), stamp(file))


def description(file: RemoteFile) -> FileDescription:
    return file.name, file.size, _instant(file.mtime)


def stamp(file: RemoteFile) -> str:
    """The order of snapshots: the date in the name if there is one, else the modification time."""
    return _day(file) or _instant(file.mtime).isoformat()


def _day(file: RemoteFile) -> str | None:
    for match in _DAY_IN_NAME.finditer(file.name):
        try:
            return date(*map(int, match.groups())).isoformat()
        except ValueError:
            continue
    return None


def _instant(mtime: int) -> datetime:
    return datetime.fromtimestamp(mtime, UTC)
