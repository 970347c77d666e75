"""SSH connections to servers with a pinned host key, and the part of SFTP version 3 that reading, writing and moving
files needs. Every wait has a deadline.

The algorithms of SSH are safe ones, and old ones that a config permits for one server. paramiko has waits without a
time limit, so a watchdog closes the connection under a wait that takes too long. What paramiko raises is translated
here. Its SFTP reader is not used: it stops a listing at a name that is not UTF-8, takes an early end for the end of
the file, and keeps everything after a short answer in memory.
"""

from __future__ import annotations

import io
import logging
import re
import socket
import struct
import threading
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha1
from typing import Any, Literal, get_args

import paramiko
from cryptography.hazmat.primitives.hashes import SHA1
from msgspec import Struct
from paramiko.kex_group14 import KexGroup14SHA256

from crossdock.errors import ConfigError, CrossdockError, UnauthorizedError, UnavailableError
from crossdock.reading.transport.failure_sentences import network_failure_reason
from crossdock.values.clock import Clock

VERSION = 3
CHUNK = 32 * 1024  # every server must answer this much
MAX_MESSAGE = 256 * 1024 + 1024
FREE_ANSWERS, LEAST_ANSWER = 10_000, 512  # answers of any size; beyond them, the average must have this many bytes
RECEIVE = 4 * 1024 * 1024

INIT, SERVER_VERSION, OPEN, CLOSE, READ, WRITE, LSTAT, OPENDIR, READDIR = 1, 2, 3, 4, 5, 6, 7, 11, 12
REMOVE, STAT, RENAME, READLINK, EXTENDED = 13, 17, 18, 19, 200
FSYNC, POSIX_RENAME = b"fsync@openssh.com", b"posix-rename@openssh.com"  # PROTOCOL of OpenSSH, section 4
STATUS, HANDLE, DATA, NAME, ATTRS = 101, 102, 103, 104, 105
OK, END, NO_SUCH_FILE, PERMISSION_DENIED = 0, 1, 2, 3
_REASONS = {  # draft-ietf-secsh-filexfer-02, section 7
    1: "end of file",
    2: "no such file",
    3: "permission denied",
    4: "failure",
    5: "bad message",
    6: "no connection",
    7: "connection lost",
    8: "operation unsupported",
}
_OPEN_TO_READ = struct.pack(">II", 1, 0)
_OPEN_TO_WRITE = struct.pack(">II", 2 | 8 | 16, 0)  # write, create, truncate; without attributes
_WRITES_AHEAD = 32
_SIZE, _OWNER, _PERMISSIONS, _TIMES, _EXTENDED = 1, 2, 4, 8, 0x8000_0000


class SftpProtocolError(Exception):
    """The server violates the SFTP protocol."""


class SftpStatusError(Exception):
    """The server refused a request. Its text is left out: it may repeat anything."""

    def __init__(self, answer: SftpMessage) -> None:
        self.code = answer.read_number()
        super().__init__(f"{_REASONS.get(self.code, 'unknown reason')} (status {self.code})")


class SftpFileAttributes(Struct, frozen=True):
    """The attributes that the server gives for a file; None where it gives none."""

    size: int | None
    mode: int | None
    mtime: int | None


class SftpMessage:
    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._body)

    def read_bytes(self, count: int) -> bytes:
        if count > len(self._body) - self._at:
            raise SftpProtocolError("a response ends too early")
        self._at += count
        return self._body[self._at - count : self._at]

    def read_number(self) -> int:
        return int.from_bytes(self.read_bytes(4))

    def read_string(self) -> bytes:
        return self.read_bytes(self.read_number())

    def read_attributes(self) -> SftpFileAttributes:
        flags = self.read_number()
        size = int.from_bytes(self.read_bytes(8)) if flags & _SIZE else None
        self.read_bytes(8 if flags & _OWNER else 0)
        mode = self.read_number() if flags & _PERMISSIONS else None
        mtime = int.from_bytes(self.read_bytes(8)[4:]) if flags & _TIMES else None
        for _ in range(2 * self.read_number() if flags & _EXTENDED else 0):
            self.read_string()
        return SftpFileAttributes(size, mode, mtime)


class SftpWire:
    """One session. *heard* is called at each whole answer, which shows that the server is alive."""

    def __init__(
        self, send: Callable[[bytes], object], receive: Callable[[int], bytes], heard: Callable[[], object]
    ) -> None:
        self._send, self._receive, self._heard = send, receive, heard
        self._buffer, self._at = b"", 0
        self._number = 0
        self._unanswered: set[int] = set()
        self._extensions: set[bytes] = set()

    def negotiate_version(self) -> None:
        self._send(struct.pack(">IBI", 5, INIT, VERSION))
        kind, answer = self._receive_message()
        if kind != SERVER_VERSION:
            raise SftpProtocolError(f"received message {kind} instead of the version")
        if (version := answer.read_number()) != VERSION:
            raise SftpProtocolError(f"the server speaks SFTP version {version}, not {VERSION}")
        while not answer.is_at_end:
            self._extensions.add(answer.read_string())
            answer.read_string()  # its version

    def lstat(self, path: bytes) -> SftpFileAttributes:
        return self._send_and_receive(LSTAT, _packed_string(path), ATTRS).read_attributes()

    def stat(self, path: bytes) -> SftpFileAttributes:
        return self._send_and_receive(STAT, _packed_string(path), ATTRS).read_attributes()

    def readlink(self, path: bytes) -> bytes:
        answer = self._send_and_receive(READLINK, _packed_string(path), NAME)
        if answer.read_number() != 1:
            raise SftpProtocolError("the server gives a link no or several targets")
        return answer.read_string()

    def open(self, path: bytes) -> bytes:
        return self._send_and_receive(OPEN, _packed_string(path) + _OPEN_TO_READ, HANDLE).read_string()

    def close_handle(self, handle: bytes) -> None:
        """Close a handle without waiting for the answer."""
        self._send(self._encode_request(CLOSE, _packed_string(handle)))

    def rename(self, old: bytes, new: bytes) -> None:
        """Rename a file. Servers that follow the draft (6.5) refuse to overwrite another one."""
        self._send_and_check_status(RENAME, _packed_string(old) + _packed_string(new))

    def rename_atomically(self, old: bytes, new: bytes) -> None:
        """Rename a file in one step where the server can, which may overwrite another one.

        OpenSSH makes two steps of `rename`, a link and the removal of the old name.
        """
        if POSIX_RENAME in self._extensions:
            self._send_and_check_status(
                EXTENDED, _packed_string(POSIX_RENAME) + _packed_string(old) + _packed_string(new)
            )
        else:
            self.rename(old, new)

    def remove(self, path: bytes) -> None:
        self._send_and_check_status(REMOVE, _packed_string(path))

    def write_whole_file(self, path: bytes, data: bytes) -> None:
        """Create a file, or replace its content, and have the server flush it to its disk where it can."""
        handle = self._send_and_receive(OPEN, _packed_string(path) + _OPEN_TO_WRITE, HANDLE).read_string()
        unanswered = set[int]()
        for start in range(0, len(data), CHUNK):
            block = data[start : start + CHUNK]
            self._send(
                self._encode_request(WRITE, _packed_string(handle) + struct.pack(">Q", start) + _packed_string(block))
            )
            unanswered.add(self._number)
            if len(unanswered) == _WRITES_AHEAD:
                self._receive_write_status(unanswered)
        while unanswered:
            self._receive_write_status(unanswered)
        if FSYNC in self._extensions:
            self._send_and_check_status(EXTENDED, _packed_string(FSYNC) + _packed_string(handle))
        self._send_and_check_status(CLOSE, _packed_string(handle))

    def _receive_write_status(self, unanswered: set[int]) -> None:
        number, answer = self._receive_answer(unanswered, STATUS)
        unanswered.discard(number)
        _raise_unless_status_is_ok(answer)

    def _send_and_check_status(self, kind: int, body: bytes) -> None:
        _raise_unless_status_is_ok(self._send_and_receive(kind, body, STATUS))

    def list_folder(self, folder: bytes) -> Iterator[tuple[bytes, SftpFileAttributes]]:
        handle = self._send_and_receive(OPENDIR, _packed_string(folder), HANDLE).read_string()
        while True:
            self._send(self._encode_request(READDIR, _packed_string(handle)))
            _, answer = self._receive_answer({self._number}, NAME)
            if answer is None:
                return self.close_handle(handle)
            if not (count := answer.read_number()):
                raise SftpProtocolError("part of a listing is empty")
            for _ in range(count):
                name = answer.read_string()
                answer.read_string()  # the line that ls would print
                yield name, answer.read_attributes()

    def read_whole_file(self, handle: bytes, size: int, window: int) -> Iterator[bytes]:
        """Yield a file's bytes in order, requesting at most *window* bytes ahead.

        It ends where the server says that the file ends, or one byte after *size*. For ordinary files a server must
        send as much as was requested (draft-ietf-secsh-filexfer-02, 6.4). Shorter answers are accepted unless they are
        tiny: each costs time, and memory until the bytes before it have arrived.
        """
        waiting: dict[int, tuple[int, int]] = {}  # offset and length, by the number of the request
        ready: dict[int, bytes] = {}
        asked = position = answers = received = 0
        end = size + 1

        def request(offset: int, length: int) -> bytes:
            message = self._encode_request(READ, _packed_string(handle) + struct.pack(">QI", offset, length))
            waiting[self._number] = offset, length
            return message

        while position < end:
            if asked <= size and asked - position <= window * 3 // 4:  # few large sends instead of many small ones
                requests = []
                while asked <= size and asked - position < window:
                    length = min(CHUNK, size - asked) or 1  # the last request reads beyond the end
                    requests.append(request(asked, length))
                    asked += length
                self._send(b"".join(requests))
            number, answer = self._receive_answer(waiting, DATA)
            offset, length = waiting.pop(number)
            data = answer.read_string() if answer else b""
            answers, received = answers + 1, received + len(data)
            if answers > FREE_ANSWERS + received // LEAST_ANSWER:
                raise SftpProtocolError(f"{answers:,} responses contained only {received:,} bytes")
            if not data:
                end = min(end, offset)
            elif len(data) > length:
                raise SftpProtocolError("a response is longer than requested")
            elif len(data) < length:
                self._send(request(offset + len(data), length - len(data)))
            ready[offset] = data
            while block := ready.pop(position, b""):
                position += len(block)
                yield block

    def _send_and_receive(self, kind: int, body: bytes, expected: int) -> SftpMessage:
        self._send(self._encode_request(kind, body))
        _, answer = self._receive_answer({self._number}, expected)
        if answer is None:
            raise SftpProtocolError("unexpected end of file")
        return answer

    def _encode_request(self, kind: int, body: bytes) -> bytes:
        self._number = (self._number + 1) % 2**32
        self._unanswered.add(self._number)
        return struct.pack(">IBI", len(body) + 5, kind, self._number) + body

    def _receive_answer(self, wanted: Container[int], expected: int) -> tuple[int, SftpMessage | None]:
        """Return the next answer to one of *wanted*; None at the end. Answers to abandoned requests are dropped."""
        while True:
            kind, answer = self._receive_message()
            number = answer.read_number()
            if number not in self._unanswered:
                raise SftpProtocolError("a response arrived that matches no request")
            self._unanswered.remove(number)
            if number in wanted:
                break
        if kind == expected:
            return number, answer
        if kind != STATUS:
            raise SftpProtocolError(f"received message {kind} instead of {expected}")
        if (status := SftpStatusError(answer)).code != END:
            raise status
        return number, None

    def _receive_message(self) -> tuple[int, SftpMessage]:
        length = int.from_bytes(self._receive_bytes(4))
        if not 1 <= length <= MAX_MESSAGE:
            raise SftpProtocolError(f"a response claims to be {length} bytes long")
        message = self._receive_bytes(length)
        self._heard()
        return message[0], SftpMessage(message[1:])

    def _receive_bytes(self, count: int) -> bytes:
        while len(self._buffer) - self._at < count:
            received = self._receive(RECEIVE)
            if not received:
                raise EOFError("the server closed the connection")
            self._buffer = self._buffer[self._at :] + received
            self._at = 0
        self._at += count
        return self._buffer[self._at - count : self._at]


def _raise_unless_status_is_ok(answer: SftpMessage | None) -> None:
    if answer is None:
        raise SftpProtocolError("unexpected end of file")
    if (status := SftpStatusError(answer)).code != OK:
        raise status


def _packed_string(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


OldAlgorithm = Literal[
    "diffie-hellman-group14-sha1", "ssh-rsa", "aes128-cbc", "aes192-cbc", "aes256-cbc", "3des-cbc", "hmac-sha1",
    "hmac-sha1-96", "hmac-md5", "hmac-md5-96",
]  # fmt: skip
"""An unsafe algorithm of SSH that a server may be permitted to use."""
OLD_ALGORITHMS: Sequence[OldAlgorithm] = get_args(OldAlgorithm)

_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes192-ctr", "aes256-ctr")
_OFFERS = {  # the words for each kind of paramiko's errors
    "kex algorithm": "kex_algo_list",
    "host key": "server_key_algo_list",
    "ciphers": "server_encrypt_algo_list",
    "macs": "server_mac_algo_list",
}
_NAME = re.compile(r"[A-Za-z0-9@._+-]{1,64}")
_SHOWN = 20
_TOO_OLD = "the server is too old to be used safely: ask its operator to update it, or fetch its files by other means"


class _KexGroup14Sha1(KexGroup14SHA256):
    name = "diffie-hellman-group14-sha1"
    hash_algo = sha1


class _Sha1RsaKey(paramiko.RSAKey):
    HASHES = {"ssh-rsa": SHA1}  # type: ignore[misc]  # noqa: RUF012  as in paramiko


class SafeTransport(paramiko.Transport):
    """A transport that uses only safe algorithms, and *permitted* old ones if the server offers nothing better."""

    _kex_info = {**paramiko.Transport._kex_info, _KexGroup14Sha1.name: _KexGroup14Sha1}  # type: ignore[attr-defined]  # noqa: RUF012, SLF001
    _key_info = {**paramiko.Transport._key_info, "ssh-rsa": _Sha1RsaKey}  # type: ignore[attr-defined]  # noqa: RUF012, SLF001

    def __init__(
        self, sock: Any, refused_keys: Sequence[str], permitted: Sequence[OldAlgorithm], *, max_packet: int
    ) -> None:
        macs = [name for name in OLD_ALGORITHMS if name.startswith("hmac-") and name not in permitted]
        refused = {"keys": refused_keys, "macs": macs}
        super().__init__(sock, disabled_algorithms=refused, default_max_packet_size=max_packet)
        options = self.get_security_options()
        options.ciphers = (*_CIPHERS, *(name for name in permitted if name.endswith("-cbc")))
        options.kex = (*options.kex, *(name for name in permitted if name.startswith("diffie-")))
        options.key_types = (*options.key_types, *(name for name in permitted if name == "ssh-rsa"))
        self._offered: dict[str, Any] = {}

    def _really_parse_kex_init(self, m: Any, ignore_first_byte: bool = False) -> Any:
        parsed: dict[str, Any] = super()._really_parse_kex_init(m, ignore_first_byte)  # type: ignore[misc]
        if not ignore_first_byte:  # else it is logged, not the server's
            self._offered = {kind: list(parsed[member]) for kind, member in _OFFERS.items()}
        return parsed

    def old_algorithms_in_use(self) -> list[str]:
        agreed = next([name] for name in self.preferred_kex if name in self._offered["kex algorithm"])
        own: Any = self  # the types of paramiko are incomplete
        agreed.append(own.host_key_type)
        for cipher, mac in ((own.local_cipher, own.local_mac), (own.remote_cipher, own.remote_mac)):
            agreed += [cipher] if cipher.endswith("gcm@openssh.com") else [cipher, mac]
        return [name for name in OLD_ALGORITHMS if name in agreed]

    def describe_no_shared_algorithm(self, text: str) -> tuple[str, str] | None:
        """Return what the server offers instead, and what to do; None if paramiko's *text* names no kind."""
        own = {
            "kex algorithm": self.preferred_kex,
            "host key": self.preferred_keys,
            "ciphers": self.preferred_ciphers,
            "macs": self.preferred_macs,
        }
        kind = next((kind for kind in own if kind in text), None)
        if kind is None:
            return None
        offered = [name for name in self._offered.get(kind, ()) if _NAME.fullmatch(name)][:_SHOWN]
        offers = f"the server offers {', '.join(offered) or 'nothing'}, and none of {', '.join(own[kind])}"
        hint = _TOO_OLD
        if old := next((name for name in OLD_ALGORITHMS if name in offered), None):
            hint = f"{hint}; or permit it for this server, with less safety: old_algorithms: [{old}]"
        return f"no acceptable {kind}: {offers}", hint


_MAX_PACKET = 64 * 1024  # holds an answer of 32 KiB in one piece
_TICK_S = 0.25
_NEVER = float("inf")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?")
_QUOTED = re.compile(r' "[^"]*.*"| \(.* instead of 2\.0\)', re.DOTALL)  # a server's banner in paramiko's errors
_VERIFY = (
    "ask its operator for the output of `ssh-keygen -lf` for the server's public host key, and set `host_key` to it"
)
_KEY_FORMS = "it must be an Ed25519, ECDSA or RSA key in OpenSSH or PEM form; `ssh-keygen -p -f KEY` converts others"

_OTHER_SSH = "the server does not speak SSH 2.0"
_SSH_REASONS = {
    "Error reading SSH protocol banner": "no SSH banner was received",
    "Indecipherable protocol version": "what answers is not an SSH server",
    "Invalid SSH banner": "what answers is not an SSH server",
    "Negotiation failed": "no agreement on keys was reached",
    "Mismatched MAC": "a damaged packet was received",
    "Invalid packet": "a damaged packet was received",
    "Unable to open channel": "no channel was opened",
    "ChannelException": "no channel was opened",
    "Channel closed": "the channel was closed",
    "SSH session not active": "the session has ended",
    "No existing session": "the session has ended",
    "Server connection dropped": "the server closed the connection",
}

_LOG_NAME = "crossdock.reading.transport.ssh_connection_and_sftp_protocol"
logging.getLogger(_LOG_NAME).disabled = True  # errors are raised; paramiko would print them as well


@dataclass(frozen=True, slots=True, kw_only=True)
class SftpLogin:
    """Where to log in, as whom, and the host key that the server must have.

    Attributes:
        private_key: The key itself (OpenSSH or PEM text), not its path; *passphrase* decrypts it.
        host_key: Accepted fingerprints as ``ssh-keygen -lf`` prints them (``SHA256:...``).
        timeout_s: How long the server may be silent before it counts as unavailable.
        connect_timeout_s: The same for connecting and for the key exchange.
        min_bytes_per_s: The lowest average rate of a file transfer beyond the first `timeout_s`.
        window_bytes: How much is requested ahead; links with a long round trip need more.
        old_algorithms: Unsafe algorithms that this server may use if it has nothing better.
    """

    host: str
    user: str
    port: int = 22
    password: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    passphrase: str | None = field(default=None, repr=False)
    host_key: str | tuple[str, ...] | None = None
    timeout_s: float = 30.0
    connect_timeout_s: float = 15.0
    min_bytes_per_s: float = 32 * 1024
    window_bytes: int = 8 * 1024 * 1024
    old_algorithms: tuple[OldAlgorithm, ...] = ()

    @property
    def where(self) -> str:
        return f"{self.user}@{self.host}" + (f":{self.port}" if self.port != 22 else "")


@dataclass(slots=True)
class TimeBudget:
    """Time that a server may take in total for an exchange of many answers, besides the limit for each answer."""

    seconds: float
    hint: str
    left: float = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.seconds


class SshConnection:
    """A connection to a server. `expired` says which time limit the server exceeded; empty if none."""

    def __init__(self, login: SftpLogin, refused_keys: Sequence[str], clock: Clock) -> None:
        self.login, self._clock = login, clock
        self.expired = ""
        self._sock = _connected_socket(login, clock)
        self._sock.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
        )  # otherwise each request waits for the previous acknowledgement
        self.transport = SafeTransport(self._sock, refused_keys, login.old_algorithms, max_packet=_MAX_PACKET)
        self.transport.set_log_channel(_LOG_NAME)
        later = 2 * (login.connect_timeout_s + login.timeout_s)  # the watchdog is earlier
        self.transport.banner_timeout = self.transport.handshake_timeout = later
        self.transport.auth_timeout = self.transport.channel_timeout = later
        self._patience = self._deadline = self._end = _NEVER
        self._budget: TimeBudget | None = None
        self._closed = threading.Event()
        self._watchdog = threading.Thread(target=self._watch_deadline, name="crossdock-watchdog", daemon=True)
        self._watchdog.start()

    @contextmanager
    def limiting_wait(
        self, doing: str, seconds: float | None = None, budget: TimeBudget | None = None
    ) -> Iterator[None]:
        """Limit the time of a wait, from here and again from each `record_progress`, and translate what is raised.

        *seconds* is `timeout_s` by default. *budget* is the time allowed in total for all waits with it.
        """
        began = self._clock.monotonic()
        self._patience, self._budget = seconds or self.login.timeout_s, budget
        self._end = began + budget.left if budget else _NEVER
        try:
            self.record_progress()
            yield
        except CrossdockError:
            raise
        except paramiko.ssh_exception.IncompatiblePeer as error:
            raise self._no_shared_algorithm_error(error) from error
        except Exception as error:  # paramiko re-raises errors of its thread, of any class
            broken = f"the connection broke while {doing}: {_failure_reason(error)}"
            reason = f"{self.expired} while {doing}" if self.expired else broken
            hint = budget.hint if budget and self._is_total_time_over else None
            raise UnavailableError(reason, where=self.login.where, hint=hint, code="connection_failed") from error
        finally:
            self._deadline = _NEVER
            if budget:
                budget.left -= self._clock.monotonic() - began

    def record_progress(self) -> None:
        """Record that the server has made progress. Raises TimeoutError if it took too long in total."""
        now = self._clock.monotonic()
        if now > self._end:
            self._close_because_time_ran_out()
            raise TimeoutError
        self._deadline = min(now + self._patience, self._end)

    def close(self) -> None:
        self._closed.set()
        self._watchdog.join()
        self._close_socket()
        self.transport.packetizer.complete_handshake()  # ends its timer, which a failed handshake leaves running
        self._sock.close()
        if self.transport.ident is not None:
            self.transport.join()

    def _watch_deadline(self) -> None:
        while not self._closed.wait(_TICK_S):
            if self._clock.monotonic() > self._deadline:
                self._close_because_time_ran_out()
                return

    @property
    def _is_total_time_over(self) -> bool:
        return self._clock.monotonic() > self._end

    def _close_because_time_ran_out(self) -> None:
        late = self._budget if self._is_total_time_over else None
        self.expired = f"not done in {late.seconds:,.0f} s" if late else f"no answer for {self._patience:g} s"
        self._close_socket()

    def _close_socket(self) -> None:
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self.transport.close()

    def _no_shared_algorithm_error(self, error: Exception) -> ConfigError:
        reason, hint = self.transport.describe_no_shared_algorithm(str(error)) or (
            _OTHER_SSH,
            "fetch its files by other means",
        )
        return ConfigError(reason, where=self.login.where, hint=hint, code="config_invalid")


def _failure_reason(error: Exception) -> str:
    """Return a fixed sentence, since the texts of paramiko quote what the server sent."""
    if isinstance(error, SftpProtocolError):
        return str(error)
    if isinstance(error, EOFError):
        return "the server closed the connection"
    if isinstance(error, OSError):
        return network_failure_reason(error)
    if isinstance(error, paramiko.AuthenticationException):
        return "the server refused the log-in"
    text = str(error)
    reasons = (reason for beginning, reason in _SSH_REASONS.items() if text.startswith(beginning))
    return next(reasons, "the server violates the SSH protocol")


def _connected_socket(login: SftpLogin, clock: Clock) -> socket.socket:
    """Connect to the first address of the host that answers, trying all within `connect_timeout_s`."""
    deadline, failure = clock.monotonic() + login.connect_timeout_s, OSError("timed out")
    try:
        found = socket.getaddrinfo(login.host, login.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _unreachable_error(login, error) from error
    for *_, address in found:
        if (left := deadline - clock.monotonic()) <= 0:
            break
        try:
            return socket.create_connection((str(address[0]), login.port), timeout=left)
        except OSError as error:
            failure = error
    raise _unreachable_error(login, failure) from failure


def _unreachable_error(login: SftpLogin, error: OSError | UnicodeError) -> UnavailableError:
    reason = network_failure_reason(error) if isinstance(error, OSError) else "the host name is invalid"
    return UnavailableError(f"cannot connect: {reason}", where=login.where, code="connection_failed")


def parse_private_key(login: SftpLogin) -> paramiko.PKey | None:
    if login.private_key is None:
        if login.password is None:
            raise ConfigError("neither password nor private_key is set", where=login.where, code="config_invalid")
        return None
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key(io.StringIO(login.private_key), login.passphrase)
        except paramiko.PasswordRequiredException:
            raise ConfigError(
                "private_key is encrypted", where=login.where, hint="set its passphrase", code="private_key_unusable"
            ) from None
        except Exception:  # noqa: BLE001, S112  of any class; its text may quote the key
            continue
    unreadable = "private_key cannot be read" + (" with this passphrase" if login.passphrase else "")
    raise ConfigError(unreadable, where=login.where, hint=_KEY_FORMS, code="private_key_unusable")


def connect_to_pinned_host(login: SftpLogin, clock: Clock) -> SshConnection:
    """Connect to a server that has the pinned host key, even if it offers another kind of key first."""
    pinned = _pinned_fingerprints(login)
    shown: dict[str, str] = {}
    refused: list[str] = []
    while True:
        connection = SshConnection(login, refused, clock)
        try:
            with connection.limiting_wait("exchanging keys", login.connect_timeout_s):
                connection.transport.start_client()
                key = connection.transport.get_remote_server_key()
        except BaseException as error:
            connection.close()
            if shown and isinstance(error, CrossdockError):
                break  # the server has no other key
            raise
        if key.fingerprint in pinned:
            return connection
        connection.close()
        shown[key.fingerprint] = f"{key.fingerprint} ({key.algorithm_name})"
        refused.append(str(connection.transport.host_key_type))
    keys = ", ".join(shown.values())
    if not pinned:
        raise ConfigError(
            f"no host key is configured; {login.host} presents {keys}",
            where=login.where,
            hint=_VERIFY,
            code="host_key_missing",
        )
    reason = f"host key mismatch: {login.host} shows {keys}, expected {' or '.join(pinned)}"
    hint = f"nothing was sent; the connection may be intercepted, or the server has a new key: {_VERIFY}"
    raise UnauthorizedError(reason, where=login.where, hint=hint, code="host_key_mismatch")


def _pinned_fingerprints(login: SftpLogin) -> list[str]:
    given = [login.host_key] if isinstance(login.host_key, str) else login.host_key or ()
    for fingerprint in given:
        if not _FINGERPRINT.fullmatch(fingerprint):
            raise ConfigError(
                f"host_key {fingerprint!r} is not a SHA256 fingerprint",
                where=login.where,
                hint=_VERIFY,
                code="host_key_missing",
            )
    return [fingerprint.rstrip("=") for fingerprint in given]


def log_in_by_key_then_password(connection: SshConnection, key: paramiko.PKey | None) -> None:
    """Try the key, then the password. Some servers require both."""
    login, transport = connection.login, connection.transport
    methods = {}
    if key is not None:
        methods["private key"] = partial(transport.auth_publickey, login.user, key)
    if login.password is not None:
        methods["password"] = partial(transport.auth_password, login.user, login.password)
    for number, (method, attempt) in enumerate(methods.items()):
        try:
            with connection.limiting_wait(f"logging in by {method}"):
                attempt()
        except UnavailableError as error:
            refused = isinstance(error.__cause__, paramiko.AuthenticationException) and not connection.expired
            if not refused or not (transport.is_active() or number):  # some servers disconnect after the first refusal
                raise
        if transport.is_authenticated():
            return
    reason = f"login refused: {login.host} does not accept the {' or the '.join(methods)} of {login.user!r}"
    hint = "check `user` and the password, and that the server knows the public key"
    raise UnauthorizedError(reason, where=login.where, hint=hint, code="login_refused")
