"""The part of SFTP version 3 that reading, writing and moving files needs, over any byte stream.

paramiko's reader stops a listing at a name that is not UTF-8, takes an early end for the end of the file, and keeps
everything after a short answer in memory.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Iterator

from msgspec import Struct

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


class ProtocolError(Exception):
    """The server violates the SFTP protocol."""


class StatusError(Exception):
    """The server refused a request. Its text is left out: it may repeat anything."""

    def __init__(self, answer: Message) -> None:
        self.code = answer.read_number()
        super().__init__(f"{_REASONS.get(self.code, 'unknown reason')} (status {self.code})")


class Attributes(Struct, frozen=True):
    """The attributes that the server gives for a file; None where it gives none."""

    size: int | None
    mode: int | None
    mtime: int | None


class Message:
    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._body)

    def read_bytes(self, count: int) -> bytes:
        if count > len(self._body) - self._at:
            raise ProtocolError("a response ends too early")
        self._at += count
        return self._body[self._at - count : self._at]

    def read_number(self) -> int:
        return int.from_bytes(self.read_bytes(4))

    def read_string(self) -> bytes:
        return self.read_bytes(self.read_number())

    def read_attributes(self) -> Attributes:
        flags = self.read_number()
        size = int.from_bytes(self.read_bytes(8)) if flags & _SIZE else None
        self.read_bytes(8 if flags & _OWNER else 0)
        mode = self.read_number() if flags & _PERMISSIONS else None
        mtime = int.from_bytes(self.read_bytes(8)[4:]) if flags & _TIMES else None
        for _ in range(2 * self.read_number() if flags & _EXTENDED else 0):
            self.read_string()
        return Attributes(size, mode, mtime)


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
            raise ProtocolError(f"received message {kind} instead of the version")
        if (version := answer.read_number()) != VERSION:
            raise ProtocolError(f"the server speaks SFTP version {version}, not {VERSION}")
        while not answer.is_at_end:
            self._extensions.add(answer.read_string())
            answer.read_string()  # its version

    def lstat(self, path: bytes) -> Attributes:
        return self._send_and_receive(LSTAT, _packed_string(path), ATTRS).read_attributes()

    def stat(self, path: bytes) -> Attributes:
        return self._send_and_receive(STAT, _packed_string(path), ATTRS).read_attributes()

    def readlink(self, path: bytes) -> bytes:
        answer = self._send_and_receive(READLINK, _packed_string(path), NAME)
        if answer.read_number() != 1:
            raise ProtocolError("the server gives a link no or several targets")
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
        _check_status_ok(answer)

    def _send_and_check_status(self, kind: int, body: bytes) -> None:
        _check_status_ok(self._send_and_receive(kind, body, STATUS))

    def list_folder(self, folder: bytes) -> Iterator[tuple[bytes, Attributes]]:
        handle = self._send_and_receive(OPENDIR, _packed_string(folder), HANDLE).read_string()
        while True:
            self._send(self._encode_request(READDIR, _packed_string(handle)))
            _, answer = self._receive_answer({self._number}, NAME)
            if answer is None:
                return self.close_handle(handle)
            if not (count := answer.read_number()):
                raise ProtocolError("part of a listing is empty")
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
                raise ProtocolError(f"{answers:,} responses contained only {received:,} bytes")
            if not data:
                end = min(end, offset)
            elif len(data) > length:
                raise ProtocolError("a response is longer than requested")
            elif len(data) < length:
                self._send(request(offset + len(data), length - len(data)))
            ready[offset] = data
            while block := ready.pop(position, b""):
                position += len(block)
                yield block

    def _send_and_receive(self, kind: int, body: bytes, expected: int) -> Message:
        self._send(self._encode_request(kind, body))
        _, answer = self._receive_answer({self._number}, expected)
        if answer is None:
            raise ProtocolError("unexpected end of file")
        return answer

    def _encode_request(self, kind: int, body: bytes) -> bytes:
        self._number = (self._number + 1) % 2**32
        self._unanswered.add(self._number)
        return struct.pack(">IBI", len(body) + 5, kind, self._number) + body

    def _receive_answer(self, wanted: Container[int], expected: int) -> tuple[int, Message | None]:
        """Return the next answer to one of *wanted*; None at the end. Answers to abandoned requests are dropped."""
        while True:
            kind, answer = self._receive_message()
            number = answer.read_number()
            if number not in self._unanswered:
                raise ProtocolError("a response arrived that matches no request")
            self._unanswered.remove(number)
            if number in wanted:
                break
        if kind == expected:
            return number, answer
        if kind != STATUS:
            raise ProtocolError(f"received message {kind} instead of {expected}")
        if (status := StatusError(answer)).code != END:
            raise status
        return number, None

    def _receive_message(self) -> tuple[int, Message]:
        length = int.from_bytes(self._receive_bytes(4))
        if not 1 <= length <= MAX_MESSAGE:
            raise ProtocolError(f"a response claims to be {length} bytes long")
        message = self._receive_bytes(length)
        self._heard()
        return message[0], Message(message[1:])

    def _receive_bytes(self, count: int) -> bytes:
        while len(self._buffer) - self._at < count:
            received = self._receive(RECEIVE)
            if not received:
                raise EOFError("the server closed the connection")
            self._buffer = self._buffer[self._at :] + received
            self._at = 0
        self._at += count
        return self._buffer[self._at - count : self._at]


def _check_status_ok(answer: Message | None) -> None:
    if answer is None:
        raise ProtocolError("unexpected end of file")
    if (status := StatusError(answer)).code != OK:
        raise status


def _packed_string(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value
