"""Files from an SFTP server: a `crossdock.reading.transport.file_store.FileStore`."""

from __future__ import annotations

import stat
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Self

from crossdock.errors import ConfigError, CrossdockError, RefusedError, RemoteError, UnauthorizedError
from crossdock.reading.transport.file_store import (
    AFTER_LISTED,
    CHANGED_HINT,
    MAX_NAMES,
    WHILE_READ,
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
from crossdock.reading.transport.ssh_connection_and_sftp_protocol import (
    NO_SUCH_FILE,
    PERMISSION_DENIED,
    SftpFileAttributes,
    SftpLogin,
    SftpStatusError,
    SftpWire,
    SshConnection,
    TimeBudget,
    connect_to_pinned_host,
    log_in_by_key_then_password,
    parse_private_key,
)
from crossdock.values.clock import Clock, SystemClock

__all__ = ["SftpLogin", "SftpSession", "connect"]

_KEEPALIVE_S = 15
_LISTING = 10  # multiple of `timeout_s` that the listing of a folder may take


def connect(login: SftpLogin, *, clock: Clock | None = None) -> SftpSession:
    """Connect, check the host key, and only then log in.

    Raises:
        ConfigError: If no host key or no readable credentials are configured, or no algorithm is shared.
        UnauthorizedError: If the host key differs, or the login is refused.
        UnavailableError: If the server cannot be reached or does not answer in time.
    """
    key = parse_private_key(login)
    connection = connect_to_pinned_host(login, clock or SystemClock())
    try:
        log_in_by_key_then_password(connection, key)
        return SftpSession(connection)
    except BaseException:
        connection.close()
        raise


class SftpSession:
    """A session with a server, used by one thread at a time."""

    def __init__(self, connection: SshConnection) -> None:
        self._connection = connection
        self._where = connection.login.where
        with connection.limiting_wait("opening SFTP"):
            connection.transport.set_keepalive(_KEEPALIVE_S)
            channel = connection.transport.open_session(window_size=connection.login.window_bytes)
            channel.invoke_subsystem("sftp")
            self._wire = SftpWire(channel.sendall, channel.recv, connection.record_progress)
            self._wire.negotiate_version()

    @property
    def warnings(self) -> Sequence[str]:
        if old := self._connection.transport.old_algorithms_in_use():
            names = ", ".join(old)
            return [f"the connection to {self._where} is less safe: it uses {names}. Ask its operator to update it"]
        return []

    def list(self, folder: str, pattern: str) -> list[RemoteFile]:
        found, links = list[RemoteFile](), list[RemoteFile]()
        with self._limiting_wait_for_listing(folder):
            for name, attributes in self._matching_entries(folder, pattern):
                if stat.S_ISLNK(attributes.mode or 0):
                    links.append(RemoteFile(name, 0, 0, folder))
                elif file := self._remote_file_if_regular(name, folder, attributes):
                    found.append(file)
            listed = {(file.name, file.size, file.mtime) for file in found}
            for link in links:
                if not self._is_ignorable_link(listed, link):
                    raise link_refused_error(link.name, pattern, self._where)
        return sorted_matching_files_or_raise_if_unsafe(found, pattern, self._where)

    def folders(self, folder: str, pattern: str) -> Sequence[str]:
        with self._limiting_wait_for_listing(folder):
            entries = list(self._matching_entries(folder, pattern))
        return sorted_names_or_raise_if_unsafe(
            [name for name, each in entries if stat.S_ISDIR(each.mode or 0)], pattern, self._where
        )

    def _limiting_wait_for_listing(self, folder: str) -> AbstractContextManager[None]:
        hint = "correct the folder in `files`, or create it"
        missing = ConfigError(
            f"remote folder {folder!r} does not exist", where=self._where, hint=hint, code="folder_missing"
        )
        advice = "move old files to another folder, or raise `timeout_s`"
        budget = TimeBudget(_LISTING * self._connection.login.timeout_s, advice)
        return self._limiting_wait_and_translating_errors(f"listing folder {folder!r}", missing, budget)

    def _is_ignorable_link(self, listed: Container[tuple[str, int | None, int | None]], link: RemoteFile) -> bool:
        path = link.path.encode(errors="surrogateescape")
        try:
            target, attributes = self._wire.readlink(path), self._wire.stat(path)
        except SftpStatusError:  # it leads nowhere or in a circle, or the server cannot resolve it
            return False
        name = target.rpartition(b"/")[2].decode(errors="surrogateescape")
        return stat.S_ISDIR(attributes.mode or 0) or (name, attributes.size, attributes.mtime) in listed

    def _matching_entries(self, folder: str, pattern: str) -> Iterator[tuple[str, SftpFileAttributes]]:
        for count, (raw, attributes) in enumerate(self._wire.list_folder(_path_bytes(folder or "."))):
            if count == MAX_NAMES:
                raise RefusedError(
                    f"folder {folder!r} has more than {MAX_NAMES} names", where=self._where, code="folder_too_large"
                )
            if matches_pattern(name := raw.decode(errors="surrogateescape"), pattern):
                yield name, attributes

    def stat(self, path: str) -> RemoteFile:
        """Describe one regular file; a link is refused."""
        missing = _MissingError(f"remote file {path!r} does not exist", where=self._where)
        with self._limiting_wait_and_translating_errors(f"describing {path!r}", missing):
            attributes = self._wire.lstat(_path_bytes(path))
        folder, slash, name = path.rpartition("/")
        if file := self._remote_file_if_regular(name, folder or slash, attributes):
            return file
        raise RefusedError(f"{path!r} is not a regular file", where=self._where, code="file_unsafe")

    def fetch(self, file: RemoteFile, sink: Sink, progress: Callable[[int], None] | None = None) -> None:
        self._raise_if_changed_since_listed(file, self.stat(file.path), AFTER_LISTED)
        doing, read, after = f"reading {file.path!r}", 0, None
        login = self._connection.login
        hint = "if the connection is slow, lower `min_bytes_per_s`"
        budget = TimeBudget(login.timeout_s + file.size / login.min_bytes_per_s, hint)
        with self._limiting_wait_and_translating_errors(doing):
            handle = self._wire.open(_path_bytes(file.path))
        blocks = self._wire.read_whole_file(handle, file.size, login.window_bytes)
        try:
            while True:
                with self._limiting_wait_and_translating_errors(
                    doing, budget=budget
                ):  # writing a block does not count as the server's time
                    block = next(blocks, b"")
                if not block:
                    break
                sink.write(block)
                read += len(block)
                if progress:
                    progress(len(block))
        finally:
            with suppress(CrossdockError), self._limiting_wait_and_translating_errors(doing):
                self._wire.close_handle(handle)
        with suppress(_MissingError):
            after = self.stat(file.path)
        self._raise_if_changed_since_listed(file, after, WHILE_READ, read=read)

    def move(self, file: RemoteFile, folder: str) -> str:
        self._raise_if_changed_while_moved(file, self.stat(file.path))
        hint = "create it, or correct `archive`"
        missing = ConfigError(
            f"remote folder {folder!r} does not exist", where=self._where, hint=hint, code="folder_missing"
        )
        with self._limiting_wait_and_translating_errors(f"describing folder {folder!r}", missing):
            self._wire.lstat(_path_bytes(folder))
        name = next((name for name in archive_names(file) if self._is_free_path(f"{folder}/{name}")), None)
        if name is None:
            raise archive_name_taken_error(file, folder, self._where)
        moved = f"{folder}/{name}"
        self._rename_without_overwriting(file.path, moved)
        try:
            self._raise_if_changed_while_moved(file, self.stat(moved))
        except RefusedError:  # a new file took its place meanwhile
            self._rename_without_overwriting(moved, file.path)
            raise
        return name

    def described(self, path: str) -> RemoteFile | None:
        folder = path.rpartition("/")[0]
        try:
            return self.stat(path)
        except _MissingError:
            with self._limiting_wait_and_translating_errors(
                f"describing folder {folder!r}", self._missing_folder_error(folder)
            ):
                self._wire.lstat(_path_bytes(folder or "."))
            return None

    def write(self, path: str, data: bytes) -> None:
        login = self._connection.login
        budget = TimeBudget(login.timeout_s + len(data) / login.min_bytes_per_s, "lower `min_bytes_per_s`")
        with self._limiting_wait_and_translating_errors(
            f"writing {path!r}", self._missing_folder_error(path.rpartition("/")[0]), budget
        ):
            self._wire.write_whole_file(_path_bytes(path), data)

    def rename(self, old: str, new: str) -> None:
        with self._limiting_wait_and_translating_errors(f"renaming {old!r} to {new!r}"):
            self._wire.rename_atomically(_path_bytes(old), _path_bytes(new))

    def remove(self, path: str) -> None:
        with self._limiting_wait_and_translating_errors(f"removing {path!r}"):
            self._wire.remove(_path_bytes(path))

    def _missing_folder_error(self, folder: str) -> ConfigError:
        hint = "create it, or correct the folder of the target"
        return ConfigError(
            f"remote folder {folder!r} does not exist", where=self._where, hint=hint, code="folder_missing"
        )

    def _is_free_path(self, path: str) -> bool:
        try:
            with self._limiting_wait_and_translating_errors(
                f"describing {path!r}", _MissingError("", where=self._where)
            ):
                self._wire.lstat(_path_bytes(path))
        except _MissingError:
            return True
        return False

    def _rename_without_overwriting(self, old: str, new: str) -> None:
        with self._limiting_wait_and_translating_errors(f"moving {old!r}"):
            self._wire.rename(_path_bytes(old), _path_bytes(new))  # unlike posix-rename, it overwrites nothing

    def _raise_if_changed_since_listed(
        self, listed: RemoteFile, now: RemoteFile | None, when: str, *, read: int | None = None
    ) -> None:
        if reason := reason_if_file_changed_since_listed(listed, now, when, read=read):
            raise RefusedError(
                f"file {listed.path!r} {reason}", where=self._where, hint=CHANGED_HINT, code="file_changed"
            )

    def _raise_if_changed_while_moved(self, file: RemoteFile, now: RemoteFile) -> None:
        if reason := reason_if_file_changed_since_listed(file, now, "while it was taken in"):
            raise RefusedError(f"file {file.path!r} {reason}", where=self._where, code="file_changed")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _remote_file_if_regular(self, name: str, folder: str, attributes: SftpFileAttributes) -> RemoteFile | None:
        """Return None for links and folders. A file of unknown type (some servers send none) counts as regular."""
        if stat.S_IFMT(attributes.mode or 0) not in {0, stat.S_IFREG}:
            return None
        if attributes.size is None or attributes.mtime is None:
            hint = "without them a partial file looks like a whole one"
            raise RemoteError(
                f"the server does not send a size or a time for {name!r}",
                where=self._where,
                hint=hint,
                code="server_failed",
            )
        return RemoteFile(name, attributes.size, attributes.mtime, folder)

    @contextmanager
    def _limiting_wait_and_translating_errors(
        self, doing: str, missing: CrossdockError | None = None, budget: TimeBudget | None = None
    ) -> Iterator[None]:
        """Limit a wait for the server, and translate its refusals. *missing* is raised if nothing is there."""
        with self._connection.limiting_wait(doing, budget=budget):
            try:
                yield
            except SftpStatusError as status:
                if missing and status.code == NO_SUCH_FILE:
                    raise missing from status
                if status.code == PERMISSION_DENIED:
                    raise UnauthorizedError(
                        f"permission denied while {doing}", where=self._where, code="permission_denied"
                    ) from status
                raise RemoteError(
                    f"the server failed while {doing}: {status}", where=self._where, code="server_failed"
                ) from status


class _MissingError(RemoteError):
    """A file that does not exist, or no longer."""


def _path_bytes(path: str) -> bytes:
    return path.encode(errors="surrogateescape")
