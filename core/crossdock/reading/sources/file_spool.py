"""The spool with the bytes of a run's files. A plan reads files in place."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from crossdock.errors import RefusedError
from crossdock.reading.sources.run_context import SourceContext, os_errors_as_state_errors
from crossdock.reading.transport.file_store import (
    CHANGED_HINT,
    WHILE_READ,
    FileStore,
    LocalStore,
    RemoteFile,
    Sink,
    reason_if_file_changed_since_listed,
)
from crossdock.reading.wrappers.wrapper import Openable
from crossdock.values.author_code_errors import convert_author_errors
from crossdock.values.safe_local_files import create_private_file

_NOT_HASHED = "not-hashed-"  # begins a name that is not a hash
_BEYOND = 16 << 20  # bytes after which a file that has grown is read no further; stores say more about smaller ones


class Spool:
    """The files of one source in one run.

    The name of a file is its content hash (SHA-256, hex), or a unique random name while the hash is not needed. With
    *reads_names*, the name that it has in its store is a part of the content.
    """

    def __init__(self, run: SourceContext, *, reads_names: bool = False) -> None:
        self._run, self._reads_names = run, reads_names
        self.fetched: set[str] = set()
        self._in_place: dict[str, Openable] = {}  # by name: files that a plan reads in place
        self._names_in_store: dict[str, str] = {}  # of these, by name

    @property
    def is_lasting(self) -> bool:
        """Whether a later run may need the files. The folder of a plan is removed at its end."""
        return self._run.spool == self._run.kept

    def fetch_or_use_in_place(
        self, store: FileStore, files: Sequence[RemoteFile], known: Callable[[], Iterable[int]]
    ) -> list[str]:
        """Fetch *files*, or find them in place, and return their names.

        A file whose size none of the *known* has is new, and need not be hashed, which would read it twice.
        """
        if self.is_lasting or not isinstance(store, LocalStore):
            return [self._fetch_to_spool(store, file) for file in files]
        sizes = Counter([*set(known()), *(file.size for file in files)])
        return [self._register_file_in_place(store, file, hashed=sizes[file.size] > 1) for file in files]

    def _register_file_in_place(self, store: LocalStore, file: RemoteFile, *, hashed: bool) -> str:
        name = self._fetch_and_hash(store, file) if hashed else f"{_NOT_HASHED}{secrets.token_hex(16)}"
        self._in_place[name], self._names_in_store[name] = store.in_place(file), file.name
        return name

    def _fetch_to_spool(self, store: FileStore, file: RemoteFile) -> str:
        partial = self._run.work / f"{secrets.token_hex(16)}.part"
        try:
            with os_errors_as_state_errors(self._run.spool), create_private_file(partial) as sink:
                name = self._fetch_and_hash(store, file, sink)
                sink.flush()
                if self.is_lasting:  # it must survive a power cut
                    os.fsync(sink.fileno())
            partial.replace(self._run.spool / name)
        except BaseException:
            partial.unlink(missing_ok=True)  # a source that waits for a growing file fetches it repeatedly
            raise
        self.fetched.add(name)
        return name

    def _fetch_and_hash(self, store: FileStore, file: RemoteFile, *sinks: Sink) -> str:
        self._run.progress.begin(f"fetching {file.name}", file.size, "bytes")
        hashing = self._new_hashing_sink(file.name, *sinks)
        fetch_file_or_raise_if_size_differs(store, file, hashing, self._run.spool, self._run.progress.advance)
        return hashing.sum.hexdigest()

    def _new_hashing_sink(self, name_in_store: str, *sinks: Sink) -> _HashingSink:
        hashing = _HashingSink(sinks)
        if self._reads_names:
            hashing.sum.update(f"{name_in_store}\0".encode())
        return hashing

    def openable_file(self, name: str) -> Openable:
        return self._in_place.get(name) or self._path_of_copy(name)

    def content_hash(self, name: str) -> str:
        if not name.startswith(_NOT_HASHED):
            return name
        hashing = self._new_hashing_sink(self._names_in_store[name])
        with self._in_place[name].open("rb") as file:
            shutil.copyfileobj(file, hashing)
        return hashing.sum.hexdigest()

    def has_copy(self, name: str) -> bool:
        return self._path_of_copy(name).is_file()

    def _path_of_copy(self, name: str) -> Path:
        fetched = self._run.spool / name
        return fetched if self.is_lasting or fetched.is_file() else self._run.kept / name

    def remove_copy(self, name: str) -> None:
        (self._run.spool / name).unlink(missing_ok=True)


def fetch_file_or_raise_if_size_differs(
    store: FileStore, file: RemoteFile, sink: Sink, folder: Path, progress: Callable[[int], None] | None = None
) -> None:
    """Fetch *file* to *sink*, which writes to *folder*. A file of another size than was listed is refused."""
    written = _SizeLimitingSink(sink, folder, at_most=file.size + _BEYOND)
    with convert_author_errors("fetch", file.path, code=store):
        store.fetch(file, written, progress)
    if reason := reason_if_file_changed_since_listed(file, file, WHILE_READ, read=written.size):
        raise RefusedError(f"file {file.path!r} {reason}", hint=CHANGED_HINT, code="file_changed")


class _SizeLimitingSink:
    """Passes on what a store writes, and counts it: the store of an author may never end."""

    def __init__(self, sink: Sink, folder: Path, *, at_most: int) -> None:
        self._sink, self._folder, self._at_most, self.size = sink, folder, at_most, 0

    def write(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self._at_most:
            raise RefusedError("the file is longer than it was listed", hint=CHANGED_HINT, code="file_changed")
        with os_errors_as_state_errors(self._folder):
            self._sink.write(data)


class _HashingSink:
    def __init__(self, sinks: tuple[Sink, ...]) -> None:
        self._sinks, self.sum = sinks, hashlib.sha256()

    def write(self, data: bytes) -> None:
        self.sum.update(data)
        for sink in self._sinks:
            sink.write(data)
