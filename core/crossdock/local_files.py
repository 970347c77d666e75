"""Files and folders of this machine: opened only if regular, made for their owner only, replaced as a whole."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from crossdock.errors import StateError

_PRIVATE = 0o600
_OTHERS = 0o077
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a pipe without a writer opens at once
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file, or a link to one, to be read. A pipe or a device could block a reader or never end.

    Raises:
        OSError: If it cannot be opened or is not a regular file.
    """
    descriptor = os.open(path, _OPEN)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path, limit: int) -> bytes:
    """The content of a regular file of at most *limit* bytes.

    Raises:
        OSError: See `open_regular`; or if it is larger.
    """
    with open_regular(path) as file:
        return read_bounded(file, limit)


def read_bounded(file: BinaryIO, limit: int) -> bytes:
    """The rest of *file*, which is at most *limit* bytes long.

    Raises:
        OSError: If it cannot be read or is longer.
    """
    content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit:,} bytes")
    return content


def create_private(path: Path) -> BinaryIO:
    """Create a file that only its owner may read and write (mode 0600), whatever the umask is.

    Raises:
        OSError: If that cannot be done; `FileExistsError` if anything is there, even a link that leads nowhere.
    """
    descriptor = os.open(path, _CREATE, _PRIVATE)
    os.fchmod(descriptor, _PRIVATE)  # a umask may have taken the owner's rights
    return os.fdopen(descriptor, "wb")


def open_private(path: Path) -> BinaryIO:
    """Open a file of mode 0600 without changing its content; it is created if it is missing.

    Raises:
        OSError: If that cannot be done, or *path* is a link.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE)
    os.fchmod(descriptor, _PRIVATE)
    return os.fdopen(descriptor, "r+b")


def replace_file(path: Path, content: bytes) -> None:
    """Make *content* the content of the file *path*, with mode 0600, as a whole or not at all.

    Only a regular file is replaced. A link is neither followed nor replaced: it may have been put there by somebody
    else to have another file overwritten, and ``/dev/stdout`` must stay what it is.

    Raises:
        OSError: If that cannot be done.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "it is a link, and links are not followed")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    part = path.with_name(f".crossdock-{token_hex(8)}.part")
    try:
        with create_private(part) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def private_folder(path: Path) -> None:
    """Make *path*, with its parents, if it is not there.

    Raises:
        StateError: If it is there and others can enter it, or it belongs to another user, as does a link in a shared
            folder that another user has put in its place.
        OSError: If it cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if reason := _objection(path):
            hint = f"Name another folder with `spool:`, or make this one private: chmod 700 {path}"
            raise StateError(
                f"the folder {reason}, and copies of records are kept in it", where=str(path), hint=hint
            ) from None


def _objection(path: Path) -> str | None:
    """Why others could reach what is put into the folder *path*; None if they cannot."""
    found, user = path.lstat(), os.geteuid()
    if stat.S_ISLNK(found.st_mode):
        if found.st_uid not in {user, 0}:  # root's links lead where root wants them to
            return f"is a link of user {found.st_uid}"
        found = path.stat()
    if not stat.S_ISDIR(found.st_mode):
        return "is not a folder"
    if found.st_uid != user:
        return f"belongs to user {found.st_uid}"
    if found.st_mode & _OTHERS:
        return f"is open to other users (mode {stat.S_IMODE(found.st_mode):o})"
    return None
