"""SFTP version 3, as much of it as a reader needs, over any byte stream.

A reader of its own because paramiko's stops a whole listing at one name that is not UTF-8, takes an early end for the
end of the file, and holds all that follows a short answer in memory.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

VERSION = 3
CHUNK = 32 * 1024  # every server must answer this much
MAX_MESSAGE = 256 * 1024 + 1024
RECEIVE = 4 * 1024 * 1024

INIT, SERVER_VERSION, OPEN, CLOSE, READ, LSTAT, OPENDIR, READDIR = 1, 2, 3, 4, 5, 7, 11, 12
STATUS, HANDLE, DATA, NAME, ATTRS = 101, 102, 103, 104, 105
OK, END, NO_SUCH_FILE, PERMISSION_DENIED = 0, 1, 2, 3
_OPEN_TO_READ = 1
_SIZE, _OWNER, _PERMISSIONS, _TIMES, _EXTENDED = 1, 2, 4, 8, 0x8000_0000


class StatusError(Exception):
    """The server said no."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text or 'no reason given'} (status {code})")
        self.code = code


class ProtocolError(Exception):
    """The server does not speak SFTP as it should."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """What the server told of a file; None is what it left out."""

    size: int | None
    mode: int | None
    mtime: int | None


class Message:
    """Takes one answer apart, strictly."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def take(self, count: int) -> bytes:
        if count > len(self._body) - self._at:
            raise ProtocolError("an answer ends too early")
        self._at += count
        return self._body[self._at - count : self._at]

    def number(self) -> int:
        return int.from_bytes(self.take(4))

    def text(self) -> bytes:
        return self.take(self.number())

    def attributes(self) -> Attributes:
        flags = self.number()
        size = int.from_bytes(self.take(8)) if flags & _SIZE else None
        if flags & _OWNER:
            self.take(8)
        mode = self.number() if flags & _PERMISSIONS else None
        mtime = int.from_bytes(self.take(8)[4:]) if flags & _TIMES else None
        if flags & _EXTENDED:
            for _ in range(self.number()):
                self.text()
                self.text()
        return Attributes(size, mode, mtime)


class SftpWire:
    """One conversation.

    Args:
        send: Sends all bytes.
        receive: Returns at least one and at most the given number of bytes; none at the end.
        heard: Called at each whole answer: the peer is alive.
    """

    def __init__(
        self, send: Callable[[bytes], object], receive: Callable[[int], bytes], heard: Callable[[], None]
    ) -> None:
        self._send = send
        self._receive = receive
        self._heard = heard
        self._buffer = b""
        self._at = 0
        self._number = 0
        self._unanswered: set[int] = set()

    def hello(self) -> None:
        self._send(struct.pack(">IBI", 5, INIT, VERSION))
        kind, body = self._message()
        if kind != SERVER_VERSION:
            raise ProtocolError(f"message {kind} came instead of a greeting")
        if (version := Message(body).number()) != VERSION:
            raise ProtocolError(f"the server speaks SFTP version {version}, not {VERSION}")

    def lstat(self, path: bytes) -> Attributes:
        return self._ask(LSTAT, _text(path), ATTRS).attributes()

    def open(self, path: bytes) -> bytes:
        return self._ask(OPEN, _text(path) + struct.pack(">II", _OPEN_TO_READ, 0), HANDLE).text()

    def close(self, handle: bytes) -> None:
        """Let go of a handle; the server's answer is not waited for."""
        self._send(self._request(CLOSE, _text(handle))[1])

    def names(self, folder: bytes) -> Iterator[tuple[bytes, Attributes]]:
        """Everything in a folder, in the server's order."""
        handle = self._ask(OPENDIR, _text(folder), HANDLE).text()
        while (answer := self._next_names(handle)) is not None:
            if not (count := answer.number()):
                raise ProtocolError("a listing goes on with nothing")
            for _ in range(count):
                name = answer.text()
                answer.text()  # the line that ls would print
                yield name, answer.attributes()
        self.close(handle)

    def read(self, handle: bytes, size: int, window: int) -> Iterator[bytes]:
        """Yield a file's bytes in order, asking for at most *window* bytes ahead.

        Ends where the server says that the file ends, wherever that is, or one byte after *size*.
        """
        waiting: dict[int, tuple[int, int]] = {}
        ready: dict[int, bytes] = {}
        asked = position = 0
        end = size + 1
        while position < end:
            if asked <= size and asked - position <= window * 3 // 4:  # few large sends instead of many small ones
                requests = []
                while asked <= size and asked - position < window:
                    length = min(CHUNK, size - asked) or 1  # the last one asks for what should not be there
                    requests.append(self._read_request(handle, asked, length, waiting))
                    asked += length
                self._send(b"".join(requests))
            (offset, length), data = self._next_data(waiting)
            if not data:
                end = min(end, offset)
                continue
            if len(data) < length:
                self._send(self._read_request(handle, offset + len(data), length - len(data), waiting))
            ready[offset] = data
            while (block := ready.pop(position, None)) is not None:
                position += len(block)
                yield block

    def _read_request(self, handle: bytes, offset: int, length: int, waiting: dict[int, tuple[int, int]]) -> bytes:
        number, request = self._request(READ, _text(handle) + struct.pack(">QI", offset, length))
        waiting[number] = (offset, length)
        return request

    def _next_data(self, waiting: dict[int, tuple[int, int]]) -> tuple[tuple[int, int], bytes]:
        """The next answer to one of the reads that *waiting* holds; no bytes at the end of the file."""
        while True:
            kind, number, answer = self._answer()
            if number in waiting:
                break
        place = waiting.pop(number)
        if kind == STATUS:
            _expect_end(answer)
            return place, b""
        if kind != DATA or len(data := answer.text()) > place[1]:
            raise ProtocolError(f"message {kind} is no answer to a read")
        return place, data

    def _next_names(self, handle: bytes) -> Message | None:
        try:
            return self._ask(READDIR, _text(handle), NAME)
        except StatusError as status:
            if status.code == END:
                return None
            raise

    def _ask(self, kind: int, body: bytes, expected: int) -> Message:
        number, request = self._request(kind, body)
        self._send(request)
        while True:
            got, answered, answer = self._answer()
            if answered == number:
                break  # others answer what nobody waits for any more
        if got == STATUS:
            raise _status(answer)
        if got != expected:
            raise ProtocolError(f"message {got} came instead of {expected}")
        return answer

    def _request(self, kind: int, body: bytes) -> tuple[int, bytes]:
        self._number = (self._number + 1) % 2**32
        self._unanswered.add(self._number)
        return self._number, struct.pack(">IBI", len(body) + 5, kind, self._number) + body

    def _answer(self) -> tuple[int, int, Message]:
        kind, body = self._message()
        answer = Message(body)
        number = answer.number()
        if number not in self._unanswered:
            raise ProtocolError("an answer came that nobody asked for")
        self._unanswered.remove(number)
        return kind, number, answer

    def _message(self) -> tuple[int, bytes]:
        length = int.from_bytes(self._take(4))
        if not 1 <= length <= MAX_MESSAGE:
            raise ProtocolError(f"an answer claims to be {length} bytes long")
        message = self._take(length)
        self._heard()
        return message[0], message[1:]

    def _take(self, count: int) -> bytes:
        while len(self._buffer) - self._at < count:
            received = self._receive(RECEIVE)
            if not received:
                raise EOFError("the server closed the connection")
            self._buffer = self._buffer[self._at :] + received
            self._at = 0
        self._at += count
        return self._buffer[self._at - count : self._at]


def _text(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def _status(answer: Message) -> StatusError:
    code = answer.number()
    text = answer.text().decode(errors="replace")
    return StatusError(code, "".join(character for character in text if character.isprintable())[:200])


def _expect_end(answer: Message) -> None:
    status = _status(answer)
    if status.code != END:
        raise status
