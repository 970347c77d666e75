"""Local files and folders: opened only if regular, created only for their owner, replaced atomically."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from crossdock.errors import StateError

_PRIVATE = 0o600
_OTHERS = 0o077
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a pipe without a writer opens at once
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def open_regular_file(path: Path) -> BinaryIO:
    """Open a regular file, or a link to one. Raises OSError for a pipe or device, which could block or be endless."""
    descriptor = os.open(path, _OPEN)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return os.fdopen(descriptor, "rb")


def read_regular_file_within_limit(path: Path, limit: int) -> bytes:
    """Read a regular file. Raises OSError if it is larger than *limit* bytes."""
    with open_regular_file(path) as file:
        return read_rest_within_limit(file, limit)


def read_rest_within_limit(file: BinaryIO, limit: int) -> bytes:
    """Read the rest of *file*. Raises OSError if it cannot be read or is longer than *limit* bytes."""
    content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit:,} bytes")
    return content


def create_private_file(path: Path) -> BinaryIO:
    """Create a file with mode 0600, whatever the umask. Raises FileExistsError even for a broken link."""
    descriptor = os.open(path, _CREATE, _PRIVATE)
    os.fchmod(descriptor, _PRIVATE)  # a umask may have taken the owner's rights
    return os.fdopen(descriptor, "wb")


def open_or_create_private_file(path: Path) -> BinaryIO:
    """Open a file with mode 0600 and keep its content, or create it. Raises OSError if *path* is a link."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE)
    os.fchmod(descriptor, _PRIVATE)
    return os.fdopen(descriptor, "r+b")


def replace_file_atomically(path: Path, content: bytes) -> None:
    """Replace the content of *path* atomically, with mode 0600. Raises OSError if it is not a regular file.

    A link is neither followed nor replaced: another user may have created it, and ``/dev/stdout`` must stay as it is.
    """
    _refuse_irregular_file(path)
    part = _temporary_path(path)
    try:
        with create_private_file(part) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def raise_if_file_not_replaceable(path: Path) -> None:
    """Raise OSError if `replace_file_atomically` could not write *path* now. Leaves no file."""
    _refuse_irregular_file(path)
    part = _temporary_path(path)
    create_private_file(part).close()
    part.unlink()


def _temporary_path(path: Path) -> Path:
    return path.with_name(f".crossdock-{os.urandom(8).hex()}.part")


def _refuse_irregular_file(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "it is a link, and links are not followed")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


def create_private_folder(
    path: Path, kept: str = "copies of records are kept in it", otherwise: str = "set `spool:` to another folder"
) -> None:
    """Create *path* with its parents if it does not exist. Raises StateError if other users could reach its files.

    The error says what is *kept* there, and what *otherwise* to do.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if reason := _reason_not_private(path):
            hint = f"{otherwise}, or make this folder private: chmod 700 {path}"
            raise StateError(
                f"the folder {reason}, and {kept}", where=str(path), hint=hint, code="folder_unusable"
            ) from None


def _reason_not_private(path: Path) -> str | None:
    """Return why other users could reach files in the folder *path*, or None."""
    found, user = path.lstat(), os.geteuid()
    if stat.S_ISLNK(found.st_mode):
        if found.st_uid not in {user, 0}:  # links of root are trusted
            return f"is a link of user {found.st_uid}"
        found = path.stat()
    if not stat.S_ISDIR(found.st_mode):
        return "is not a folder"
    if found.st_uid != user:
        return f"belongs to user {found.st_uid}"
    if found.st_mode & _OTHERS:
        return f"is open to other users (mode {stat.S_IMODE(found.st_mode):o})"
    return None
