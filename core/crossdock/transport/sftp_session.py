"""Listing and reading files in an SFTP conversation that is already logged in."""

from __future__ import annotations

import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO, Self

from crossdock.errors import ConfigError, CrossdockError, RefusedError, RemoteError, UnauthorizedError
from crossdock.transport.files import RemoteFile, changed, join, refuse_changed, select
from crossdock.transport.sftp_wire import NO_SUCH_FILE, PERMISSION_DENIED, Attributes, SftpWire, StatusError

MAX_NAMES = 200_000  # in one folder; a listing without end is no listing


@dataclass(frozen=True, slots=True)
class Link:
    """What a session needs of the connection below it.

    Attributes:
        waiting: Bounds a wait on the server and translates its failures; told what is being done.
        where: The server, for messages.
        window_bytes: How much is asked for ahead.
    """

    wire: SftpWire
    waiting: Callable[[str], AbstractContextManager[None]]
    close: Callable[[], None]
    where: str
    window_bytes: int


class SftpSession:
    """One logged-in conversation; a `crossdock.transport.files.FileStore`. One thread at a time."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._wire = link.wire
        self._where = link.where

    def list(self, folder: str, pattern: str) -> list[RemoteFile]:
        found: list[RemoteFile] = []
        with self._asking(f"listing folder {folder!r}", missing=_no_folder(folder)):
            for count, (name, attributes) in enumerate(self._wire.names(_encoded(folder or "."))):
                if count == MAX_NAMES:
                    raise RefusedError(f"folder {folder!r} has more than {MAX_NAMES} names", where=self._where)
                if _is_regular(attributes):
                    found.append(self._described(name.decode(errors="surrogateescape"), folder, attributes))
        return select(found, pattern, self._where)

    def stat(self, path: str) -> RemoteFile:
        with self._asking(f"asking about {path!r}", missing=_no_file(path)):
            attributes = self._wire.lstat(_encoded(path))
        if not _is_regular(attributes):
            raise RefusedError(f"{path!r} is no regular file", where=self._where)
        folder, slash, name = path.rpartition("/")
        return self._described(name, folder or slash, attributes)

    def fetch(self, path: str, sink: BinaryIO, progress: Callable[[int], None] | None = None) -> int:
        before = self.stat(path)
        read = 0
        with closing(self._blocks(before)) as blocks:
            for block in blocks:
                sink.write(block)
                read += len(block)
                if progress:
                    progress(len(block))
        try:
            after = self.stat(path)
        except _MissingError as error:
            raise changed(path, "was removed or renamed while it was read", self._where) from error
        refuse_changed(before, read, after, self._where)
        return read

    def close(self) -> None:
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _blocks(self, file: RemoteFile) -> Generator[bytes, None, None]:
        """The file's bytes; the server's time runs only while it is waited for, not while a block is written."""
        doing, missing = f"reading {file.path!r}", _no_file(file.path)
        with self._asking(doing, missing):
            handle = self._wire.open(_encoded(file.path))
        blocks = self._wire.read(handle, file.size, self._link.window_bytes)
        try:
            while True:
                with self._asking(doing, missing):
                    block = next(blocks, None)
                if block is None:
                    return
                yield block
        finally:
            with suppress(CrossdockError), self._asking(doing, missing):
                self._wire.close(handle)

    def _described(self, name: str, folder: str, attributes: Attributes) -> RemoteFile:
        if attributes.size is None or attributes.mtime is None:
            raise RemoteError(
                f"the server tells no size or no time of {join(folder, name)!r}",
                where=self._where,
                hint="Without them a half file cannot be told from a whole one.",
            )
        return RemoteFile(name, attributes.size, attributes.mtime, folder)

    @contextmanager
    def _asking(self, doing: str, missing: CrossdockError) -> Iterator[None]:
        """Turn a refusal into an error of ours; *missing* is the one for what does not exist."""
        try:
            with self._link.waiting(doing):
                yield
        except StatusError as status:
            if status.code == NO_SUCH_FILE:
                missing.where = self._where
                raise missing from status
            if status.code == PERMISSION_DENIED:
                raise UnauthorizedError(f"permission denied while {doing}", where=self._where) from status
            raise RemoteError(f"the server failed while {doing}: {status}", where=self._where) from status


class _MissingError(RemoteError):
    """A file that is not there (any more)."""


def _no_folder(folder: str) -> CrossdockError:
    name = f"remote folder {folder!r}" if folder else "the login folder"
    return ConfigError(f"{name} does not exist", hint="Correct the folder in `files`, or have it made.")


def _no_file(path: str) -> CrossdockError:
    return _MissingError(f"remote file {path!r} does not exist")


def _is_regular(attributes: Attributes) -> bool:
    """Servers that tell no file type (some on other systems than Unix) list plain files."""
    kind = stat.S_IFMT(attributes.mode or 0)
    return kind in {0, stat.S_IFREG}


def _encoded(path: str) -> bytes:
    if "\0" in path:
        raise RefusedError(f"{path!r} is no path")
    return path.encode(errors="surrogateescape")
