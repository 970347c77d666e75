"""An SFTP server in this process that serves a folder, with fault injection."""

from __future__ import annotations

import io
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

import paramiko
from paramiko.common import AUTH_FAILED, AUTH_SUCCESSFUL, OPEN_SUCCEEDED
from paramiko.sftp import SFTP_FAILURE, SFTP_OK, SFTP_PERMISSION_DENIED

_LOG_NAME = "crossdock.testing.ssh"
logging.getLogger(_LOG_NAME).addHandler(logging.NullHandler())
logging.getLogger(_LOG_NAME).propagate = False  # a client that disconnects is not an error

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Faults:
    """Injected faults, which may be changed at any time. Paths are relative to the served folder."""

    stall_login: bool = False  # a login is never answered
    deny: set[str] = field(default_factory=set)  # files that cannot be read
    read_only: bool = False  # no file can be moved
    end_early: dict[str, int] = field(default_factory=dict)  # bytes after which a file ends, whatever its size
    stall_after: dict[str, int] = field(default_factory=dict)  # bytes after which a read is never answered
    while_read: dict[str, Callable[[Path], object]] = field(default_factory=dict)  # called once, after the first read
    on_read: Callable[[], object] | None = None  # called at each read
    short_answers: int | None = None  # maximum number of bytes in one answer
    extra_names: list[bytes] = field(default_factory=list)  # listed in each folder as additional regular files


class SftpServer:
    """Serves *folder* on a free port of the loopback interface while the context is open; files can be renamed.

    The only user logs in with `password` or `client_key`, the text of a private key.
    """

    host = "127.0.0.1"
    user = "export"

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.password = secrets.token_urlsafe(12)
        self.faults = Faults()
        self.logins: list[tuple[str, str]] = []  # method and user of each attempt
        self.sessions: list[threading.Thread] = []  # of logged-in clients
        self.stopping = threading.Event()
        self.key = paramiko.ECDSAKey.generate()
        self.replace_host_key()
        self._listener = socket.create_server((self.host, 0))
        self.port: int = self._listener.getsockname()[1]
        self._transports: list[paramiko.Transport] = []
        self._thread = threading.Thread(target=self._accept, name="crossdock-sftp-server", daemon=True)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the host key, as ``ssh-keygen -lf`` prints it."""
        return self._host_key.fingerprint

    @property
    def client_key(self) -> str:
        text = io.StringIO()
        self.key.write_private_key(text)
        return text.getvalue()

    def replace_host_key(self) -> None:
        """Identify as another server from the next connection."""
        self._host_key = paramiko.ECDSAKey.generate()

    def close(self) -> None:
        self.stopping.set()
        with suppress(OSError):
            socket.create_connection((self.host, self.port)).close()  # wakes the thread that waits for clients
        self._thread.join()
        self._listener.close()
        for transport in self._transports:
            transport.close()
            transport.packetizer.complete_handshake()  # ends its timer, which a failed handshake leaves running
            transport.join()
        for session in self.sessions:
            session.join()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while not self.stopping.is_set():
            with suppress(OSError):  # a client may have disconnected already
                self._serve(self._listener.accept()[0])

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = paramiko.Transport(client)
        transport.set_log_channel(_LOG_NAME)
        transport.add_server_key(self._host_key)
        transport.set_subsystem_handler("sftp", paramiko.SFTPServer, _Folder)
        self._transports.append(transport)
        transport.start_server(event=threading.Event(), server=_SshServer(self))


class _SshServer(paramiko.ServerInterface):
    def __init__(self, server: SftpServer) -> None:
        self.server = server

    def get_allowed_auths(self, username: str) -> str:  # noqa: ARG002
        return "password,publickey"

    def check_auth_password(self, username: str, password: str) -> int:
        return self._check_login("password", username, password == self.server.password)

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return self._check_login("publickey", username, key == self.server.key)

    def check_channel_request(self, kind: str, chanid: int) -> int:  # noqa: ARG002
        return OPEN_SUCCEEDED

    def _check_login(self, method: str, user: str, correct: bool) -> int:
        self.server.logins.append((method, user))
        if self.server.faults.stall_login:
            self.server.stopping.wait()
        return AUTH_SUCCESSFUL if correct and user == self.server.user else AUTH_FAILED


def _with_sftp_codes(function: Callable[P, T]) -> Callable[P, T | int]:
    """Return SFTP's error code if *function* raises `OSError`."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T | int:
        try:
            return function(*args, **kwargs)
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)

    return wrapped


class _Folder(paramiko.SFTPServerInterface):
    """The served folder as the root. Links out of it and writes are refused; files can be renamed."""

    def __init__(self, ssh_server: _SshServer) -> None:
        super().__init__(ssh_server)
        self._server = ssh_server.server

    def session_started(self) -> None:
        self._server.sessions.append(threading.current_thread())

    @_with_sftp_codes
    def list_folder(self, path: str) -> list[paramiko.SFTPAttributes]:
        found = [(os.fsencode(file.name), file.lstat()) for file in sorted(self._resolved_path(path).iterdir())]
        regular_file = os.stat_result((0o100644, *(0,) * 9))
        found += [(name, regular_file) for name in self._server.faults.extra_names]
        listed = [paramiko.SFTPAttributes.from_stat(facts) for _, facts in found]
        for attributes, (name, _) in zip(listed, found, strict=True):
            attributes.filename = name  # type: ignore[assignment]  # names are bytes on the wire
        return listed

    @_with_sftp_codes
    def stat(self, path: str) -> paramiko.SFTPAttributes:
        return paramiko.SFTPAttributes.from_stat(self._resolved_path(path).stat())

    @_with_sftp_codes
    def lstat(self, path: str) -> paramiko.SFTPAttributes:
        folder, name = os.path.split(os.path.normpath("/" + path))
        return paramiko.SFTPAttributes.from_stat((self._resolved_path(folder) / name).lstat())

    @_with_sftp_codes
    def readlink(self, path: str) -> str:
        folder, name = os.path.split(os.path.normpath("/" + path))
        return str((self._resolved_path(folder) / name).readlink())

    @_with_sftp_codes
    def open(self, path: str, flags: int, attr: object) -> paramiko.SFTPHandle | int:  # noqa: ARG002
        name = os.path.normpath(path).lstrip("/")
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) or name in self._server.faults.deny:
            return SFTP_PERMISSION_DENIED
        return _File(self._server, name, self._resolved_path(path))

    @_with_sftp_codes
    def rename(self, oldpath: str, newpath: str) -> int:
        """Rename, but never overwrite, as version 3 of the protocol demands."""
        old, new = self._resolved_path(oldpath), self._resolved_path(newpath)
        if self._server.faults.read_only:
            return SFTP_PERMISSION_DENIED
        if new.exists():
            return SFTP_FAILURE
        old.rename(new)
        return SFTP_OK

    def _resolved_path(self, path: str) -> Path:
        real = (self._server.folder / os.path.normpath("/" + path).lstrip("/")).resolve()
        if not real.is_relative_to(self._server.folder):
            raise PermissionError(13, "outside the served folder")
        return real


class _File(paramiko.SFTPHandle):
    def __init__(self, server: SftpServer, name: str, path: Path) -> None:
        super().__init__()
        self._server = server
        self._name, self._path = name, path
        self._file = path.open("rb", buffering=0)

    @_with_sftp_codes
    def read(self, offset: int, length: int) -> bytes:
        faults = self._server.faults
        if faults.on_read:
            faults.on_read()
        if offset >= faults.stall_after.get(self._name, offset + 1):
            self._server.stopping.wait()
        end = faults.end_early.get(self._name, offset + length)
        wanted = min(length, faults.short_answers or length, max(0, end - offset))
        data = os.pread(self._file.fileno(), wanted, offset)
        if change := faults.while_read.pop(self._name, None):
            change(self._path)
        return data

    def close(self) -> None:
        self._file.close()
