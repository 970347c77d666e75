"""The bytes of a run's files: fetched into the spool, kept there by an earlier run, or, in a plan, where they lie."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Container
from pathlib import Path

from crossdock.formats.compression import Openable
from crossdock.sources.workplace import Workplace, writing
from crossdock.transport.files import FileStore, LocalStore, RemoteFile, Sink

_UNSUMMED = "unsummed-"  # begins a name that is no hash
_BLOCK_BYTES = 1 << 20


class Copies:
    """Of the files of one source, in one run.

    Each has a name: its content hash (SHA-256, hex), or one that stands for it as long as nobody asks, and that no
    other file of the run has.

    Attributes:
        fetched: The names of those that this run has put into the spool.
    """

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self.fetched: set[str] = set()
        self._in_place: dict[str, Openable] = {}  # by name: what a plan reads where it lies

    @property
    def lasting(self) -> bool:
        """Whether a later run may need them; a plan accepts nothing, and its folder is removed at its end."""
        return self._place.spool == self._place.kept

    def take(self, store: FileStore, file: RemoteFile, sizes: Container[int]) -> str:
        """Fetch *file*, or find it where it lies; its name.

        Args:
            sizes: In bytes, of all other files that may have the same content. One of another size has new content, and
                where nothing else needs its hash, summing it up would be to read it twice.
        """
        if self.lasting or not isinstance(store, LocalStore):
            return self._fetch(store, file)
        name = self._summed(store, file) if file.size in sizes else f"{_UNSUMMED}{secrets.token_hex(16)}"
        self._in_place[name] = store.in_place(file)
        return name

    def _fetch(self, store: FileStore, file: RemoteFile) -> str:
        partial = self._place.work / "fetched"
        with writing(self._place.spool), partial.open("wb") as sink:
            name = self._summed(store, file, sink)
            sink.flush()
            if self.lasting:  # so it must outlast a power cut
                os.fsync(sink.fileno())
        partial.replace(self._place.spool / name)
        self.fetched.add(name)
        return name

    def _summed(self, store: FileStore, file: RemoteFile, *sinks: Sink) -> str:
        """Copy *file* to *sinks*; its content hash."""
        self._place.progress.begin(f"fetching {file.name}", file.size)
        hashing = _Hashing(sinks)
        store.fetch(file.path, hashing, self._place.progress.advance)
        return hashing.sum.hexdigest()

    def bytes_of(self, name: str) -> Openable:
        return self._in_place.get(name) or self._kept(name)

    def content_hash(self, name: str) -> str:
        """The content hash of what has this *name*, which may have to be read for it."""
        if not name.startswith(_UNSUMMED):
            return name
        summed = hashlib.sha256()
        with self._in_place[name].open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                summed.update(block)
        return summed.hexdigest()

    def are_here(self, name: str) -> bool:
        """Whether this run or an earlier one has put them into its spool."""
        return self._kept(name).is_file()

    def _kept(self, name: str) -> Path:
        fetched = self._place.spool / name
        return fetched if fetched.is_file() else self._place.kept / name

    def forget(self, name: str) -> None:
        (self._place.spool / name).unlink(missing_ok=True)


class _Hashing:
    """Sums up what is written, and writes it to *sinks*."""

    def __init__(self, sinks: tuple[Sink, ...]) -> None:
        self._sinks, self.sum = sinks, hashlib.sha256()

    def write(self, data: bytes) -> None:
        self.sum.update(data)
        for sink in self._sinks:
            sink.write(data)
