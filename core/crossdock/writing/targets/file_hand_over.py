"""The hand-over of one file to a partner, exactly once.

The file is written under a temporary name, described, and only then renamed, in one step. Before the rename, the state
has stored that it follows. So after a lost answer or a kill, what is there shows what has happened: the temporary file,
if it was not renamed; the file, or one in a folder to which the partner moves what it has taken, if it was. If none of
them is there, the partner has taken and deleted the file, unless somebody else has removed the temporary one: the
config says what that means. So it is if the temporary file is gone once it was written: some servers take each file
as soon as it is closed, under any name.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, TypeVar

from crossdock.errors import ConfigError, CrossdockError, RefusedError, RemoteError, UnauthorizedError
from crossdock.reading.transport.file_store import RemoteFile, WritableStore
from crossdock.reading.transport.http_answers_and_errors import AmbiguousError, ExpiredError, NotSentError

IfMissing = Literal["in_doubt", "handed_over", "resend"]
"""What it means that neither a file nor its temporary file is found after a lost answer."""
T = TypeVar("T")
Found = Literal["handed_over", "missing"]


@dataclass(frozen=True, slots=True)
class HandOver:
    """How files are handed over.

    Attributes:
        folder: The folder for files; empty for the store's own.
        temporary: The temporary name, below *folder*, with ``{name}`` or ``{stem}``.
        marker: The name of an empty file that follows, with ``{name}`` or ``{stem}``; None for none.
        taken: Folders where the partner has files that it has taken.
        copies: Whether the server renames by a copy and a removal, so that a temporary file does not show that the
            partner has not taken the copy.
    """

    folder: str
    temporary: str
    marker: str | None = None
    taken: Sequence[str] = ()
    if_missing: IfMissing = "in_doubt"
    copies: bool = False

    def stage(self, store: WritableStore, name: str, data: bytes) -> None:
        """Write the file under its temporary name, unless it is there already. It may be repeated.

        Raises:
            NotSentError: If the store fails for now.
            RefusedError: If another file has the name.
            ConfigError, UnauthorizedError: If the folder does not exist, or the store does not allow it.
        """
        run_or_raise_not_sent(lambda: self._write_under_temporary_name(store, name, data))

    def complete(
        self, store: WritableStore, name: str, data: bytes, *, again: bool, may_leave: Callable[[], bool]
    ) -> Found:
        """Rename the staged file to *name*, then write the marker.

        Args:
            again: Whether an earlier attempt may have renamed it.
            may_leave: Returns False once it is too late to begin.

        Raises:
            AmbiguousError: If it may have been renamed.
            NotSentError, RefusedError, ConfigError, UnauthorizedError: As `stage`. It was not renamed.
        """
        path, temporary = self._path(name), self._path(_name_of_companion_file(self.temporary, name))
        is_there = run_or_raise_not_sent(lambda: self._is_handed_over_or_raise(store, name, data, again=again))
        if not is_there:
            staged = run_or_raise_not_sent(lambda: store.described(temporary))
            if self.if_missing != "resend" and (staged is None or (again and self.copies)):
                return "handed_over" if staged is None and self.if_missing == "handed_over" else "missing"
            if staged is None or staged.size != len(data):
                run_or_raise_not_sent(lambda: self._write_under_temporary_name(store, name, data))
            if not may_leave():
                raise ExpiredError("it was too late to hand the file over", where=path)
            _run_or_raise_ambiguous(lambda: store.rename(temporary, path))
        if self.marker is not None:
            _run_or_raise_ambiguous(lambda: self._write_marker(store, name))
        return "handed_over"

    def _write_under_temporary_name(self, store: WritableStore, name: str, data: bytes) -> None:
        if self._is_handed_over_or_raise(store, name, data, again=False):
            return
        temporary = self._path(_name_of_companion_file(self.temporary, name))
        staged = store.described(temporary)
        if staged is not None and _has_same_bytes(store, staged, data, unread=False):
            return
        store.write(temporary, data)
        staged = store.described(temporary)
        if staged is not None and staged.size != len(data):  # one that is gone may have been taken at once
            message = f"{temporary!r} has {staged.size} bytes after {len(data)} bytes were written"
            hint = "the disk of the partner may be full, or its server changes what is written"
            raise RemoteError(message, hint=hint, code="hand_over_failed")

    def _is_handed_over_or_raise(self, store: WritableStore, name: str, data: bytes, *, again: bool) -> bool:
        """Return whether this file is in its folder, or where the partner has what it has taken.

        Where it cannot be read back, one of its size is this file after an attempt, before which the name was free.
        """
        for path in (self._path(name), *(f"{folder}/{name}" for folder in self.taken)):
            if (file := store.described(path)) is None:
                continue
            if not _has_same_bytes(store, file, data, unread=again):
                hint = (
                    "if the state was restored from a backup, run 'crossdock state restored'; if it is in place of a"
                    " lost one, also set first_number to one after the last file of that; else rename that file"
                )
                raise RefusedError(
                    f"another file has the name {path!r}; nothing was overwritten", hint=hint, code="file_name_taken"
                )
            return True
        return False

    def _write_marker(self, store: WritableStore, name: str) -> None:
        assert self.marker is not None
        marker = self._path(_name_of_companion_file(self.marker, name))
        if store.described(self._path(name)) is not None and store.described(marker) is None:
            temporary = self._path(_name_of_companion_file(self.temporary, PurePosixPath(marker).name))
            store.write(temporary, b"")
            store.rename(temporary, marker)

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder else name


def _name_of_companion_file(form: str, name: str) -> str:
    return form.format(name=name, stem=PurePosixPath(name).stem)


def _has_same_bytes(store: WritableStore, file: RemoteFile, data: bytes, *, unread: bool) -> bool:
    """Return whether *file* has these bytes, and *unread* for one of their size that may not be read."""
    if file.size != len(data):
        return False
    sink = io.BytesIO()
    try:
        store.fetch(file, sink)
    except UnauthorizedError:
        return unread
    except RefusedError:  # it changes meanwhile
        return False
    return sink.getvalue() == data


def run_or_raise_not_sent(step: Callable[[], T]) -> T:
    """Run a step that has no effect for the partner. A failure of the store is one for now."""
    try:
        return step()
    except (RefusedError, ConfigError, UnauthorizedError):
        raise
    except CrossdockError as error:
        raise NotSentError(error.message, where=error.where, hint=error.hint, code=error.code) from error


def _run_or_raise_ambiguous(step: Callable[[], None]) -> None:
    try:
        step()
    except CrossdockError as error:
        raise AmbiguousError(error.message, where=error.where, hint=error.hint, code=error.code) from error
