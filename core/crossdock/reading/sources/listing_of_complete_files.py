"""The files that a source offers: those that match its pattern and are not being written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime

from crossdock.errors import ConfigError, RefusedError
from crossdock.reading.sources.file_order import FileOrder
from crossdock.reading.sources.manifests_and_done_markers import Manifest, Markers
from crossdock.reading.sources.run_context import SourceContext
from crossdock.reading.sources.stream_input_report import passed_over_text
from crossdock.reading.transport.file_store import (
    FileStore,
    RemoteFile,
    any_case,
    list_below,
    matches_pattern,
    split_pattern,
)
from crossdock.reading.wrappers.wrapper import MAX_BYTES
from crossdock.state import FileDescription, FileFacts

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
    if ready is not None and Markers(ready, folder).can_file_be_own_marker(pattern):
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
        self._markers = Markers(ready, self._folder) if ready else None
        self._manifests = split_pattern(manifests) if manifests else None

    def offered_files(self, store: FileStore) -> list[RemoteFile]:
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
        self._refuse_unread_part(newest, chosen)
        for file in (latest, *chosen):
            self._order.refuse_future(file, self._run.clock.now())
        if self._order.declared is None and days[latest] != newest:
            message = f"was changed after all files of {newest}, and is of an earlier date by its name"
            raise RefusedError(
                message, where=latest.path, hint="declare the form of the names with 'order'", code="file_order_unclear"
            )
        return chosen

    def _refuse_unread_part(self, day: str | None, parts: Sequence[RemoteFile]) -> None:
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
            yield passed_over_text([name for name, why in passed.items() if why == reason], reason)

    def matches(self, name: str) -> bool:
        return matches_pattern(name, self._pattern_in_any_case if self._order.ignore_case else self._pattern)

    def names_there(self) -> set[str]:
        """Return the names of the last look, also of files that do not count."""
        return {*(file.name for file in self._since), *self.left_out}

    def all_data_files(self, store: FileStore) -> list[RemoteFile]:
        found = list_below(store, self._folder, self._pattern_in_any_case)
        return [file for file in found if not self._is_no_data_file(file.name)]

    def markers(self, store: FileStore) -> dict[str, RemoteFile]:
        return self._markers.list_markers(store) if self._markers else {}

    def marker_name(self, file: RemoteFile) -> str:
        return self._markers.marker_name(file.name) if self._markers else ""

    def remember_files_before_pause(self, store: FileStore) -> None:
        files = self._list_complete_files(store)
        self._ahead = {file.name for file in files}, self._run.clock.monotonic()

    def wait_and_refuse_growing_files(self, store: FileStore, files: Sequence[RemoteFile]) -> None:
        """Refuse *files*, some of `offered_files`, that are too large or have not kept size and time for a while.

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
            looks.let_others_look_and_pause(
                left, self._run.clock, self._connection, store, self.remember_files_before_pause
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
        markers = self.markers(store)
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


def file_facts(file: RemoteFile, content_hash: str, order: FileOrder) -> FileFacts:
    changed = _utc_from_epoch(file.mtime)
    stamp = _date_in_name(file.name, order) or changed.isoformat()
    return FileFacts(file.name, content_hash, file.size, changed, stamp)


def listed_file_description(file: RemoteFile) -> FileDescription:
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
