"""An SFTP server in this process that serves a folder, and misbehaves when asked to."""

from __future__ import annotations

import errno
import io
import logging
import os
import secrets
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import paramiko
from paramiko.common import AUTH_FAILED, AUTH_SUCCESSFUL, OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED, OPEN_SUCCEEDED
from paramiko.sftp import SFTP_FAILURE, SFTP_PERMISSION_DENIED

_LOG_NAME = "crossdock.testing.ssh"
logging.getLogger(_LOG_NAME).addHandler(logging.NullHandler())
logging.getLogger(_LOG_NAME).propagate = False  # a client that hangs up is no news


@dataclass
class Faults:
    """What goes wrong on purpose. Paths are relative to the served folder; all may be changed while it runs.

    Attributes:
        refuse_login: No password and no key is good enough.
        stall_login: A login is never answered.
        deny: Files that nobody may read.
        end_early: Bytes after which a file ends, whatever its size says.
        stall_after: Bytes after which reading a file is never answered.
        while_read: Called once with the real path, after the first block of a file was read.
        short_answers: At most this many bytes in one answer, whatever was asked for.
        extra_names: Names listed in each folder besides what is there, as regular files.
    """

    refuse_login: bool = False
    stall_login: bool = False
    deny: set[str] = field(default_factory=set)
    end_early: dict[str, int] = field(default_factory=dict)
    stall_after: dict[str, int] = field(default_factory=dict)
    while_read: dict[str, Callable[[Path], object]] = field(default_factory=dict)
    short_answers: int | None = None
    extra_names: list[bytes] = field(default_factory=list)


class SftpServer:
    """Serves *folder* read only on a free port of the loopback interface, while the context lasts.

    Args:
        folder: What a client finds in its login folder.
        user: The one user; `password` and `client_key` (a private key, OpenSSH or PEM text) both log in.

    Attributes:
        logins: Each login that was tried, as (method, user); empty as long as nobody has tried.
        sessions: The threads that serve logged-in clients.
        stopping: Set when the server closes.
        faults: What goes wrong on purpose.
    """

    host = "127.0.0.1"

    def __init__(self, folder: Path, *, user: str = "export") -> None:
        self.folder = folder.resolve()
        self.user = user
        self.password = secrets.token_urlsafe(12)
        self.faults = Faults()
        self.logins: list[tuple[str, str]] = []
        self.sessions: list[threading.Thread] = []
        self.stopping = threading.Event()
        self._client_key = paramiko.ECDSAKey.generate()
        self._host_key = paramiko.ECDSAKey.generate()
        self._listener = socket.create_server((self.host, 0))
        self._wake, self._woken = socket.socketpair()
        self._transports: list[paramiko.Transport] = []
        self._thread = threading.Thread(target=self._accept, name="crossdock-sftp-server", daemon=True)

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def fingerprint(self) -> str:
        """The host key's, as ``ssh-keygen -lf`` prints it."""
        return self._host_key.fingerprint

    @property
    def client_key(self) -> str:
        text = io.StringIO()
        self._client_key.write_private_key(text)
        return text.getvalue()

    def replace_host_key(self) -> None:
        """From the next connection on be another server."""
        self._host_key = paramiko.ECDSAKey.generate()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Hang up on everybody and wait until every thread has ended."""
        self.stopping.set()
        self._wake.close()
        if self._thread.ident is not None:
            self._thread.join()
        for end in (self._listener, self._woken):
            end.close()
        for transport in self._transports:
            _hang_up(transport)
        for session in self.sessions:
            session.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def is_client_key(self, key: paramiko.PKey) -> bool:
        return key == self._client_key

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self.stopping.is_set():
                for ready, _ in selector.select():
                    if ready.fileobj is self._listener:
                        with suppress(OSError):
                            self._serve(self._listener.accept()[0])

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = paramiko.Transport(client)
        transport.set_log_channel(_LOG_NAME)
        transport.add_server_key(self._host_key)
        transport.set_subsystem_handler("sftp", paramiko.SFTPServer, _Folder)
        self._forget_gone()
        self._transports.append(transport)
        transport.start_server(event=threading.Event(), server=_Doorman(self))

    def _forget_gone(self) -> None:
        gone = [transport for transport in self._transports if not transport.is_alive()]
        for transport in gone:
            self._transports.remove(transport)
            _hang_up(transport)


def _hang_up(transport: paramiko.Transport) -> None:
    transport.close()
    transport.packetizer.complete_handshake()  # ends its timer, which a failed handshake leaves running
    transport.join()


class _Doorman(paramiko.ServerInterface):
    def __init__(self, server: SftpServer) -> None:
        self.server = server

    def get_allowed_auths(self, username: str) -> str:  # noqa: ARG002
        return "password,publickey"

    def check_auth_password(self, username: str, password: str) -> int:
        good = secrets.compare_digest(password.encode(), self.server.password.encode())
        return self._judge("password", username, good)

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return self._judge("publickey", username, self.server.is_client_key(key))

    def check_channel_request(self, kind: str, chanid: int) -> int:  # noqa: ARG002
        return OPEN_SUCCEEDED if kind == "session" else OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def _judge(self, method: str, user: str, good: bool) -> int:
        self.server.logins.append((method, user))
        if self.server.faults.stall_login:
            self.server.stopping.wait()
        refused = self.server.faults.refuse_login or user != self.server.user or not good
        return AUTH_FAILED if refused else AUTH_SUCCESSFUL


class _Folder(paramiko.SFTPServerInterface):
    """The served folder as the root of everything; no link leads out of it, and nothing is ever written."""

    def __init__(self, doorman: _Doorman) -> None:
        super().__init__(doorman)
        self._server = doorman.server

    def session_started(self) -> None:
        self._server.sessions = [old for old in self._server.sessions if old.is_alive()]
        self._server.sessions.append(threading.current_thread())

    def list_folder(self, path: str) -> list[paramiko.SFTPAttributes] | int:
        try:
            files = sorted(self._real(path).iterdir())
            found = [_listed(os.fsencode(file.name), file.lstat()) for file in files]
        except OSError as error:
            return _code(error)
        pretended = os.stat_result((0o100644, *(0,) * 9))
        return found + [_listed(name, pretended) for name in self._server.faults.extra_names]

    def stat(self, path: str) -> paramiko.SFTPAttributes | int:
        try:
            return paramiko.SFTPAttributes.from_stat(self._real(path).stat())
        except OSError as error:
            return _code(error)

    def lstat(self, path: str) -> paramiko.SFTPAttributes | int:
        plain = self._plain(path)
        try:
            return paramiko.SFTPAttributes.from_stat((self._real(str(plain.parent)) / plain.name).lstat())
        except OSError as error:
            return _code(error)

    def open(
        self,
        path: str,
        flags: int,
        attr: paramiko.SFTPAttributes,  # noqa: ARG002
    ) -> paramiko.SFTPHandle | int:
        name = str(self._plain(path)).lstrip("/")
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) or name in self._server.faults.deny:
            return SFTP_PERMISSION_DENIED
        try:
            return _File(self._server, name, self._real(path))
        except OSError as error:
            return _code(error)

    def _plain(self, path: str) -> Path:
        return Path(os.path.normpath("/" + path))

    def _real(self, path: str) -> Path:
        real = (self._server.folder / str(self._plain(path)).lstrip("/")).resolve()
        if not real.is_relative_to(self._server.folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real


class _File(paramiko.SFTPHandle):
    def __init__(self, server: SftpServer, name: str, path: Path) -> None:
        super().__init__()
        self._server = server
        self._name = name
        self._path = path
        self._file = path.open("rb", buffering=0)

    def read(self, offset: int, length: int) -> bytes | int:
        faults = self._server.faults
        if offset >= faults.stall_after.get(self._name, offset + 1):
            self._server.stopping.wait()
        end = faults.end_early.get(self._name, offset + length)
        wanted = min(length, faults.short_answers or length, max(0, end - offset))
        try:
            data = os.pread(self._file.fileno(), wanted, offset)
        except OSError as error:
            return _code(error)
        if change := faults.while_read.pop(self._name, None):
            change(self._path)
        return data

    def stat(self) -> paramiko.SFTPAttributes | int:
        return paramiko.SFTPAttributes.from_stat(os.fstat(self._file.fileno()))

    def close(self) -> None:
        self._file.close()


def _code(error: OSError) -> int:
    return SFTP_FAILURE if error.errno is None else paramiko.SFTPServer.convert_errno(error.errno)


def _listed(name: bytes, found: os.stat_result) -> paramiko.SFTPAttributes:
    attributes = paramiko.SFTPAttributes.from_stat(found)
    attributes.filename = name  # type: ignore[assignment]  # names are bytes on the wire
    return attributes
