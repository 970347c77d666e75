"""The interface of all file stores, and their common checks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import BinaryIO, Literal, Protocol, Self, runtime_checkable

from msgspec import Struct, structs

from crossdock.errors import ConfigError, RefusedError

MAX_NAMES = 200_000  # in one folder: a listing may be endless
MAX_FOLDERS = 10_000  # in one folder: each is listed
AFTER_LISTED, WHILE_READ = "after it was listed", "while it was read"
CHANGED_HINT = "nothing of it was taken in; run again when the sender has finished writing it"
_MAX_NAME = 255  # characters, the limit of common file systems
_UNPRINTABLE = {"Cc", "Cs", "Zl", "Zp"}  # control characters, bytes that are not UTF-8, line separators


class RemoteFile(Struct, frozen=True):
    """A regular file as its store described it at one moment.

    Attributes:
        name: One safe path component; of files below several folders (`list_below`), its path from `folder` on.
        mtime: Last change in whole seconds since 1970, by the store's clock.
        folder: Where it was found; empty for the store's own folder.
        revision: Other values that change with its bytes or its replacement; empty if the store has none.
    """

    name: str
    size: int
    mtime: int
    folder: str = ""
    revision: tuple[int, ...] = ()

    @property
    def modified_epoch_s(self) -> int:
        return self.mtime

    @property
    def path(self) -> str:
        return f"{self.folder.rstrip('/')}/{self.name}" if self.folder else self.name


class Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...


class FileStore(Protocol):
    """A server or folder that holds files."""

    def list(self, folder: str, pattern: str) -> list[RemoteFile]:
        """Return the regular files in *folder* whose name matches *pattern*, by name; no dot files.

        Links to folders, and to files that are listed themselves, are left out.

        Raises:
            ConfigError: If there is no such folder.
            RefusedError: If a matching name is unsafe, or another link: leaving it out would lose its records silently.
        """

    def folders(self, folder: str, pattern: str) -> Sequence[str]:
        """Return the names of the folders in *folder* that match *pattern*, in order; no dot folders, and no links.

        Raises:
            ConfigError: If there is no such folder.
            RefusedError: If a matching name is unsafe.
        """

    def fetch(self, file: RemoteFile, sink: Sink, progress: Callable[[int], None] | None = None) -> None:
        """Copy *file*, which was listed, to *sink*; *progress* is called with the length of each block.

        Raises:
            RefusedError: If the file is no longer as listed, before or after it was read, or ended early: it is written
                again, perhaps not to its end. *sink* may then contain a part of it.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class FileInPlace(Protocol):
    def open(self, mode: Literal["rb"], /) -> AbstractContextManager[BinaryIO]:
        """Open the file from its beginning. Entering and leaving raise RefusedError if it is no longer as described."""


@runtime_checkable
class LocalStore(FileStore, Protocol):
    """A store whose files can be read in place, repeatedly."""

    def in_place(self, file: RemoteFile) -> FileInPlace:
        """Return the file, as long as it is as described. It can be read after the store is closed."""


@runtime_checkable
class ArchivingStore(FileStore, Protocol):
    def move(self, file: RemoteFile, folder: str) -> str:
        """Move *file* to *folder*, under the first of `archive_names` that is free there, and return that name.

        Raises:
            ConfigError: If there is no such folder.
            RefusedError: If the file is no longer as described, or no name is free; nothing is ever overwritten.
            UnauthorizedError: If the store does not allow it.
        """


@runtime_checkable
class WritableStore(FileStore, Protocol):
    """A store to which files can be handed over."""

    def described(self, path: str) -> RemoteFile | None:
        """Return the regular file at *path*, or None if there is none.

        Raises:
            ConfigError: If its folder does not exist.
            RefusedError: If something else is there.
        """

    def write(self, path: str, data: bytes) -> None:
        """Create a file or replace its content, flushed to the disk where the store can.

        Raises:
            ConfigError: If its folder does not exist.
            UnauthorizedError: If the store does not allow it.
            RemoteError: If it fails, for example because the disk is full. A part may then be there.
        """

    def rename(self, old: str, new: str) -> None:
        """Rename a file in one step where the store can. *new* must be free, which the caller has checked.

        Raises:
            RemoteError: If it fails. It may have been renamed.
        """

    def remove(self, path: str) -> None: ...


def archive_names(file: RemoteFile) -> tuple[str, str]:
    """Return the name of *file*, and the one for an archive where that is taken, with its modification time in UTC."""
    path = PurePosixPath(file.name)
    return file.name, f"{path.stem}.{datetime.fromtimestamp(file.mtime, UTC):%Y%m%dT%H%M%SZ}{path.suffix}"


def archive_name_taken_error(file: RemoteFile, folder: str, where: str) -> RefusedError:
    message = f"cannot be moved to {folder!r}: files with its names are there already"
    return RefusedError(f"file {file.path!r} {message}", where=where, hint="move or remove them", code="file_changed")


def split_pattern(files: str, *, folders: bool = False) -> tuple[str, str]:
    """Split ``out/INV_*.txt`` into folder and name pattern; the folder may be empty.

    Args:
        folders: Whether folders may have wildcards: ``out/20*/*/INV.txt`` is split into ``out`` and ``20*/*/INV.txt``.

    Raises:
        ConfigError: If the folder has wildcards, or the name is missing or could match nothing.
    """
    folder, slash, pattern = files.rpartition("/")
    if not pattern or any(unicodedata.category(character) in _UNPRINTABLE for character in files):
        raise ConfigError(
            f"{files!r} names no files",
            hint='write a folder and a name pattern: "out/INV_*.txt"',
            code="config_invalid",
        )
    if not any(wildcard in folder for wildcard in "*?["):
        return folder or slash, pattern
    if not folders:
        raise ConfigError(
            f"{files!r} has wildcards in its folder",
            hint="only the file name may have wildcards",
            code="config_invalid",
        )
    parts = files.split("/")
    first = next(number for number, part in enumerate(parts) if any(wildcard in part for wildcard in "*?["))
    if not all(parts[first:]):
        raise ConfigError(
            f"{files!r} has a folder without a name", hint="remove one of two slashes", code="config_invalid"
        )
    return "/".join(parts[:first]) or ("/" if first else ""), "/".join(parts[first:])


def any_case(pattern: str) -> str:
    """Return a pattern of names that matches upper and lower case alike."""

    def cases(found: re.Match[str]) -> str:
        part = found[0]
        if part.startswith("["):
            return f"{part[:-1]}{part[1:-1].lstrip('!]').swapcase()}]"
        swapped = part.swapcase()
        return f"[{part}{swapped}]" if swapped != part and len(swapped) == 1 else part

    return re.sub(r"\[!?\]?[^]]*\]|.", cases, pattern)


def list_below(store: FileStore, folder: str, pattern: str) -> list[RemoteFile]:
    """List as `FileStore.list`. A pattern with slashes matches folders and their files; too many are refused."""
    first, slash, rest = pattern.partition("/")
    if not slash:
        return store.list(folder, pattern)
    if len(names := store.folders(folder, first)) > MAX_FOLDERS:
        hint = "narrow the pattern, such as out/2026/*/INV.txt, or move old folders away"
        raise RefusedError(
            f"{folder!r} has more than {MAX_FOLDERS:,} folders that match",
            where=folder,
            hint=hint,
            code="folder_too_large",
        )
    found = list[RemoteFile]()
    for name in names:
        inside = f"{folder.rstrip('/')}/{name}" if folder else name
        with suppress(ConfigError):  # it was removed since
            files = list_below(store, inside, rest)
            found += [structs.replace(file, name=f"{name}/{file.name}", folder=folder) for file in files]
    return found


def is_safe_name(name: str) -> bool:
    if len(name) > _MAX_NAME or name in {"", ".", ".."} or "/" in name or "\\" in name:
        return False
    return not any(unicodedata.category(character) in _UNPRINTABLE for character in name)


def matches_pattern(name: str, pattern: str) -> bool:
    """Return whether *name* matches *pattern*. Dot files never do."""
    return not name.startswith(".") and fnmatchcase(name, pattern)


def sorted_matching_files_or_raise_if_unsafe(files: Iterable[RemoteFile], pattern: str, where: str) -> list[RemoteFile]:
    """Return the files that match, by name. An unsafe name is refused: to leave it out would lose its records."""
    chosen = {file.name: file for file in files if matches_pattern(file.name, pattern)}
    return [chosen[name] for name in sorted_names_or_raise_if_unsafe(chosen, pattern, where)]


def sorted_names_or_raise_if_unsafe(names: Iterable[str], pattern: str, where: str) -> list[str]:
    for name in names:
        if not is_safe_name(name):
            reason = f"a file that matches {pattern!r} has the unsafe name {name[:_MAX_NAME]!a}"
            hint = "rename it (UTF-8, short, no slashes or control characters) or narrow the pattern"
            raise RefusedError(reason, where=where, hint=hint, code="file_unsafe")
    return sorted(names)


def link_refused_error(name: str, pattern: str, where: str) -> RefusedError:
    reason = f"{name[:_MAX_NAME]!a}, which matches {pattern!r}, is a link, and links to files are not followed"
    return RefusedError(reason, where=where, hint="replace it by its target, or narrow the pattern", code="file_unsafe")


def reason_if_file_changed_since_listed(
    listed: RemoteFile, now: RemoteFile | None, when: str, *, read: int | None = None
) -> str | None:
    """Return why a file is no longer as *listed*, or why *read* bytes are not all of it; None if all is well."""
    if now is None:
        return f"was removed or renamed {when}"
    if now.size != listed.size:
        verb = "grew" if now.size > listed.size else "shrank"
        return f"{verb} from {listed.size} to {now.size} bytes {when}"
    if (now.mtime, now.revision) != (listed.mtime, listed.revision):
        return f"was written or replaced {when}"
    if read is not None and read > listed.size:
        return f"grew past its {listed.size} bytes {when}"
    if read is not None and read < listed.size:
        return f"ended after {read} of {listed.size} bytes"
    return None
