"""Folders and files that hold copies of other people's data: for the user that crossdock runs as, and for no other."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from crossdock.errors import StateError

_OTHERS = 0o077


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
        return "is no folder"
    if found.st_uid != user:
        return f"belongs to user {found.st_uid}"
    if found.st_mode & _OTHERS:
        return f"is open to other users (mode {stat.S_IMODE(found.st_mode):o})"
    return None


def create_private(path: Path) -> BinaryIO:
    """A new file at *path*, to be written, that its owner alone may read.

    Raises:
        FileExistsError: If anything is there, be it a link that leads nowhere.
    """
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
