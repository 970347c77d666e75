"""Files from a local folder, with the same care as from a server."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO, Self

from crossdock.errors import ConfigError, RefusedError, RemoteError, UnauthorizedError
from crossdock.transport.files import RemoteFile, changed, refuse_changed, select

_BLOCK = 1024 * 1024
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe in place of the file must not hang us


class FolderStore:
    """A folder of this machine; a `crossdock.transport.files.FileStore`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def list(self, folder: str, pattern: str) -> list[RemoteFile]:
        place = self._root / folder
        files: list[RemoteFile] = []
        with self._translated(folder):
            try:
                entries = os.scandir(place)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise ConfigError(
                    f"folder {str(place)!r} does not exist", hint="Correct the folder in `files`, or make it."
                ) from error
            with entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        with suppress(FileNotFoundError):  # gone since the folder was opened
                            files.append(_described(entry.name, folder, entry.stat(follow_symlinks=False)))
        return select(files, pattern, str(self._root))

    def stat(self, path: str) -> RemoteFile:
        with self._translated(path):
            return self._regular(path, os.lstat(self._root / path))

    def fetch(self, path: str, sink: BinaryIO, progress: Callable[[int], None] | None = None) -> int:
        self.stat(path)  # refuses links, pipes and devices before they are opened
        with self._translated(path):
            descriptor = os.open(self._root / path, _OPEN)
        with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123  paths know no descriptors
            opened = os.fstat(descriptor)
            before = self._regular(path, opened)
            read = 0
            while block := self._block(file, path):
                sink.write(block)
                read += len(block)
                if progress:
                    progress(len(block))
        self._check_unchanged(before, opened, read)
        return read

    def close(self) -> None:
        """There is nothing to give back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _block(self, file: FileIO, path: str) -> bytes:
        with self._translated(path):
            return file.read(_BLOCK)

    def _check_unchanged(self, before: RemoteFile, opened: os.stat_result, read: int) -> None:
        where = str(self._root)
        try:
            now = os.lstat(self._root / before.path)
        except FileNotFoundError as error:
            raise changed(before.path, "was removed or renamed while it was read", where) from error
        refuse_changed(before, read, _described(before.name, before.folder, now), where)
        if (now.st_dev, now.st_ino, now.st_mtime_ns) != (opened.st_dev, opened.st_ino, opened.st_mtime_ns):
            raise changed(before.path, "was written or replaced while it was read", where)

    def _regular(self, path: str, found: os.stat_result) -> RemoteFile:
        if not stat.S_ISREG(found.st_mode):
            raise RefusedError(f"{path!r} is no regular file", where=str(self._root))
        folder, slash, name = path.rpartition("/")
        return _described(name, folder or slash, found)

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise RemoteError(f"file {path!r} does not exist", where=str(self._root)) from error
        except PermissionError as error:
            raise UnauthorizedError(f"permission denied for {path!r}", where=str(self._root)) from error
        except OSError as error:
            raise RemoteError(f"cannot read {path!r}: {error.strerror}", where=str(self._root)) from error


def _described(name: str, folder: str, found: os.stat_result) -> RemoteFile:
    return RemoteFile(name, found.st_size, int(found.st_mtime), folder)
