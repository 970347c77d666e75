"""Files from a folder on a local disk or a mounted share: a `crossdock.reading.transport.file_store.FileStore`.

Others may replace its files and folders at any time, so each step of a path is opened relative to an open folder,
without following links, and nothing outside of the configured folder is opened.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal, Self

from msgspec import Struct

from crossdock.errors import ConfigError, CrossdockError, RefusedError, RemoteError, UnauthorizedError, UnavailableError
from crossdock.reading.transport.file_store import (
    AFTER_LISTED,
    CHANGED_HINT,
    MAX_NAMES,
    WHILE_READ,
    FileInPlace,
    RemoteFile,
    Sink,
    archive_name_taken_error,
    archive_names,
    link_refused_error,
    matches_pattern,
    reason_if_file_changed_since_listed,
    sorted_matching_files_or_raise_if_unsafe,
    sorted_names_or_raise_if_unsafe,
)

_BLOCK = 1024 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe opens at once and is then refused
_WRITTEN = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_FILE = {errno.ELOOP, errno.ENXIO}  # a link, a socket
_UNREACHABLE = {  # errors of a share whose server does not answer
    errno.EIO, errno.ENODEV, errno.ENOTCONN, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH,
}  # fmt: skip


class FolderStore:
    """The files in *root* and in the folders below it.

    Raises:
        ConfigError: If there is no such folder.
        UnauthorizedError: If it may not be read.
        UnavailableError: If the server of a share does not answer; every method raises it.
    """

    def __init__(self, root: Path) -> None:
        self._root, self._where = os.path.realpath(root), str(root)
        hint = "correct `path`, or mount the share"
        os.close(
            self._open_folder(
                ".", ConfigError("there is no such folder", where=self._where, hint=hint, code="folder_missing")
            )
        )

    def list(self, folder: str, pattern: str) -> list[RemoteFile]:
        found, links = list[RemoteFile](), list[str]()
        with self._matching_entries(folder, pattern) as (inside, entries):
            for entry in entries:
                with suppress(FileNotFoundError):  # it was removed since
                    if file := _remote_file_if_regular(entry.name, folder, entry.stat(follow_symlinks=False)):
                        found.append(file)
                    elif entry.is_symlink():
                        links.append(entry.name)
            files = {file.revision for file in found}
            for name in links:
                if not _is_ignorable_link(files, name, inside):
                    raise link_refused_error(name, pattern, self._where)
        return sorted_matching_files_or_raise_if_unsafe(found, pattern, self._where)

    def folders(self, folder: str, pattern: str) -> Sequence[str]:
        with self._matching_entries(folder, pattern) as (_, entries):
            found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        return sorted_names_or_raise_if_unsafe(found, pattern, self._where)

    @contextmanager
    def _matching_entries(self, folder: str, pattern: str) -> Iterator[tuple[int, Iterator[os.DirEntry[str]]]]:
        """Yield a descriptor of *folder*, and only the matching entries: describing every file of a share is slow."""
        shown, hint = repr(folder or "."), "correct the folder in `files`, or create it"
        missing = ConfigError(f"folder {shown} does not exist", where=self._where, hint=hint, code="folder_missing")

        def matching(entries: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
            for count, entry in enumerate(entries):
                if count == MAX_NAMES:
                    hint = "move finished files to another folder"
                    raise RefusedError(
                        f"folder {shown} has more than {MAX_NAMES} names",
                        where=self._where,
                        hint=hint,
                        code="folder_too_large",
                    )
                if matches_pattern(entry.name, pattern):
                    yield entry

        with (
            _closing_descriptor(self._open_folder(folder or ".", missing)) as inside,
            self._os_errors_as_crossdock_errors(f"listing folder {shown}", missing),
            os.scandir(inside) as entries,
        ):
            yield inside, matching(entries)

    def stat(self, path: str) -> RemoteFile:
        """Describe one regular file by opening it: only then does a network file system ask its server again."""
        with self._opened_file(path) as (_, file):
            return file

    def fetch(self, file: RemoteFile, sink: Sink, progress: Callable[[int], None] | None = None) -> None:
        read = 0
        with self._opened_file(file.path) as (descriptor, now):
            self._raise_if_changed_since_listed(file, now, AFTER_LISTED)
            while read <= file.size and (block := self._read_block(descriptor, file.path)):
                sink.write(block)
                read += len(block)
                if progress:
                    progress(len(block))
            self._raise_if_changed_since_listed(file, self._stat_or_none(file.path), WHILE_READ, read=read)

    def in_place(self, file: RemoteFile) -> FileInPlace:
        return _FileInFolder(self, file)

    def move(self, file: RemoteFile, folder: str) -> str:
        gone = RefusedError(
            f"file {file.path!r} was removed or renamed before it could be moved",
            where=self._where,
            code="file_changed",
        )
        hint = "create it, or correct `archive`"
        missing = ConfigError(f"folder {folder!r} does not exist", where=self._where, hint=hint, code="folder_missing")
        with (
            _closing_descriptor(self._open_folder(file.folder or ".", gone)) as source,
            _closing_descriptor(self._open_folder(folder, missing)) as target,
            self._os_errors_as_crossdock_errors(f"moving {file.path!r}", gone),
        ):
            self._raise_if_changed_while_moved(file, source, file.name)
            name = next((name for name in archive_names(file) if _create_empty_file_unless_taken(name, target)), None)
            if name is None:
                raise archive_name_taken_error(file, folder, self._where)
            try:
                os.rename(file.name, name, src_dir_fd=source, dst_dir_fd=target)
            except OSError:
                os.unlink(name, dir_fd=target)
                raise
            try:
                self._raise_if_changed_while_moved(file, target, name)
            except RefusedError:  # a new file took its place meanwhile
                os.link(name, file.name, src_dir_fd=target, dst_dir_fd=source, follow_symlinks=False)
                os.unlink(name, dir_fd=target)
                raise
            return name

    def described(self, path: str) -> RemoteFile | None:
        os.close(self._open_folder(path.rpartition("/")[0] or ".", self._missing_folder_error(path)))
        return self._stat_or_none(path)

    def write(self, path: str, data: bytes) -> None:
        with self._opened_parent(path, f"writing {path!r}") as (inside, name):
            opened = os.open(name, _WRITTEN, 0o666, dir_fd=inside)
            with open(opened, "wb") as stream:  # noqa: PTH123  it is a descriptor
                stream.write(data)
                stream.flush()
                os.fsync(opened)

    def rename(self, old: str, new: str) -> None:
        doing = f"renaming {old!r} to {new!r}"
        with self._opened_parent(old, doing) as (source, name), self._opened_parent(new, doing) as (target, new_name):
            os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)
            os.fsync(target)

    def remove(self, path: str) -> None:
        with self._opened_parent(path, f"removing {path!r}") as (inside, name):
            os.unlink(name, dir_fd=inside)

    @contextmanager
    def _opened_parent(self, path: str, doing: str) -> Iterator[tuple[int, str]]:
        folder, _, name = path.rpartition("/")
        with (
            _closing_descriptor(self._open_folder(folder or ".", self._missing_folder_error(path))) as inside,
            self._os_errors_as_crossdock_errors(doing),
        ):
            yield inside, name

    def _missing_folder_error(self, path: str) -> ConfigError:
        folder, hint = path.rpartition("/")[0], "create it, or correct the folder of the target"
        return ConfigError(f"folder {folder!r} does not exist", where=self._where, hint=hint, code="folder_missing")

    def _raise_if_changed_while_moved(self, file: RemoteFile, folder: int, name: str) -> None:
        now = _remote_file_if_regular(file.name, file.folder, os.stat(name, dir_fd=folder, follow_symlinks=False))
        if reason := reason_if_file_changed_since_listed(file, now, "while it was taken in"):
            raise RefusedError(f"file {file.path!r} {reason}", where=self._where, code="file_changed")

    @contextmanager
    def reading(self, file: RemoteFile) -> Iterator[BinaryIO]:
        """Open *file* for reading. Entering and leaving raise RefusedError if it has changed."""
        with self._opened_file(file.path) as (descriptor, now):
            self._raise_if_changed_since_listed(file, now, AFTER_LISTED)
            try:
                with (
                    self._os_errors_as_crossdock_errors(f"reading {file.path!r}"),
                    open(descriptor, "rb", closefd=False) as stream,
                ):
                    yield stream
            except Exception:
                self._raise_if_changed_since_listed(
                    file, self._stat_or_none(file.path), WHILE_READ
                )  # a change is the cause
                raise
            self._raise_if_changed_since_listed(file, self._stat_or_none(file.path), WHILE_READ)

    def _stat_or_none(self, path: str) -> RemoteFile | None:
        with suppress(_MissingError):
            return self.stat(path)  # while the file is open, no other file can have its inode
        return None

    def _raise_if_changed_since_listed(
        self, listed: RemoteFile, now: RemoteFile | None, when: str, *, read: int | None = None
    ) -> None:
        if reason := reason_if_file_changed_since_listed(listed, now, when, read=read):
            raise RefusedError(
                f"file {listed.path!r} {reason}", where=self._where, hint=CHANGED_HINT, code="file_changed"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing stays open between calls."""

    @contextmanager
    def _opened_file(self, path: str) -> Iterator[tuple[int, RemoteFile]]:
        folder, slash, name = path.rpartition("/")
        hint = "its sender has removed it; run again"
        missing = _MissingError(f"file {path!r} does not exist", where=self._where, hint=hint)
        with (
            _closing_descriptor(self._open_folder(folder or slash or ".", missing)) as inside,
            self._os_errors_as_crossdock_errors(f"reading {path!r}", missing),
        ):
            try:
                opened = os.open(name, _FILE, dir_fd=inside)
            except OSError as error:
                if error.errno in _NO_FILE:
                    raise self._not_regular_error(path) from error
                raise
        with _closing_descriptor(opened) as descriptor:
            if (file := _remote_file_if_regular(name, folder, os.fstat(descriptor))) is None:
                raise self._not_regular_error(path)
            yield descriptor, file

    def _read_block(self, descriptor: int, path: str) -> bytes:
        with self._os_errors_as_crossdock_errors(f"reading {path!r}"):
            return os.read(descriptor, _BLOCK)

    def _open_folder(self, folder: str, missing: CrossdockError) -> int:
        """Open *folder*; the caller must close the descriptor. *missing* is raised if there is no such folder."""
        parts = self._folder_parts_or_raise_if_outside(folder)
        with self._os_errors_as_crossdock_errors(f"opening folder {folder!r}", missing):
            inside = os.open(self._root, _FOLDER)
            for name in parts:
                with _closing_descriptor(inside) as outer:
                    inside = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=outer)
            return inside

    def _folder_parts_or_raise_if_outside(self, folder: str) -> Sequence[str]:
        if folder.startswith("/") or ".." in folder.split("/"):
            hint = "write the folder in `files` relative to `path`, and below it"
            raise ConfigError(f"folder {folder!r} leads outside it", where=self._where, hint=hint, code="file_unsafe")
        end, root = os.path.realpath(f"{self._root}/{folder}"), f"{self._root.rstrip('/')}/"
        if not f"{end}/".startswith(root):
            hint = "move the files into it, or set `path` to the target of the link"
            raise RefusedError(
                f"folder {folder!r} leads outside it through a link", where=self._where, hint=hint, code="file_unsafe"
            )
        return [name for name in end[len(root) :].split("/") if name]

    def _not_regular_error(self, path: str) -> RefusedError:
        hint = "replace it by its target, or narrow the pattern"
        return RefusedError(f"{path!r} is not a regular file", where=self._where, hint=hint, code="file_unsafe")

    @contextmanager
    def _os_errors_as_crossdock_errors(self, doing: str, missing: CrossdockError | None = None) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if missing and isinstance(error, FileNotFoundError | NotADirectoryError):
                raise missing from error
            if isinstance(error, PermissionError):
                hint = "make it readable for the user that crossdock runs as"
                raise UnauthorizedError(
                    f"permission denied while {doing}", where=self._where, hint=hint, code="permission_denied"
                ) from error
            if error.errno in _UNREACHABLE:
                hint = "check that the share is mounted and its server is up"
                raise UnavailableError(
                    f"{error.strerror} while {doing}", where=self._where, hint=hint, code="connection_failed"
                ) from error
            hint = "Look at the disk or the share that it is on."
            raise RemoteError(
                f"{error.strerror} while {doing}", where=self._where, hint=hint, code="server_failed"
            ) from error


class _FileInFolder(Struct, frozen=True):
    store: FolderStore
    file: RemoteFile

    def open(self, _mode: Literal["rb"], /) -> AbstractContextManager[BinaryIO]:
        return self.store.reading(self.file)


class _MissingError(RemoteError):
    """A file that does not exist, or no longer."""


def _remote_file_if_regular(name: str, folder: str, status: os.stat_result) -> RemoteFile | None:
    """Return None for links, folders and pipes."""
    if not stat.S_ISREG(status.st_mode):
        return None
    seconds, revision = status.st_mtime_ns // 10**9, (status.st_dev, status.st_ino, status.st_mtime_ns)
    return RemoteFile(name, status.st_size, seconds, folder, revision)


def _is_ignorable_link(files: Container[tuple[int, ...]], link: str, folder: int) -> bool:
    try:
        status = os.stat(link, dir_fd=folder)
    except OSError:  # it leads nowhere, in a circle, or to where this user may not look
        return False
    file = _remote_file_if_regular(link, "", status)
    return stat.S_ISDIR(status.st_mode) or (file is not None and file.revision in files)


def _create_empty_file_unless_taken(name: str, folder: int) -> bool:
    """Create an empty file at *name* in *folder*, which a move may replace. Return False if the name is taken."""
    try:
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder))
    except FileExistsError:
        return False
    return True


@contextmanager
def _closing_descriptor(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)
