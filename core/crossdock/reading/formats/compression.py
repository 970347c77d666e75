"""Files that may be gzip, read as a stream with limits on the unpacked size."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import BinaryIO, Literal, Protocol

from crossdock.errors import RefusedError

GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 31  # zlib reads the header and verifies both checksums (RFC 1952)
_BLOCK = 64 << 10

MAX_EXPANSION = 200
"""Text exports shrink 5 to 30 times, bombs about 1,000 times (the limit of deflate is 1,032)."""
FREE_BYTES = 10_000_000
"""Bytes that may come out at any ratio: a small file of blanks is harmless."""
MAX_BYTES = 20_000_000_000
"""The limit for one unpacked file: more than a hundred million rows."""
MAX_LINES_PER_BYTE = 4
"""Lines that differ take at least one packed byte each. Each line costs memory until its file is read."""
FREE_LINES = 500_000
"""Lines that may come out at any ratio."""
MAX_MEMBERS = 500_000
"""Each costs time, even an empty one. bgzip writes one for each 65,280 bytes: 306,000 for `MAX_BYTES`."""
MAX_IDLE = 1 << 20
"""Consecutive packed bytes without output: headers, empty members, and the zeros that pad a tape's block."""


class Readable(Protocol):
    def read(self, size: int, /) -> bytes:
        """Return at most *size* bytes, and no bytes only at the end."""


class Openable(Protocol):
    """A file that can be read more than once, such as a `pathlib.Path`."""

    def open(self, mode: Literal["rb"], /) -> AbstractContextManager[BinaryIO]: ...


@contextmanager
def open_stream(path: Openable, *, name: str) -> Iterator[Readable]:
    """Open *path*, and unpack it if it begins with the magic number of gzip. Consecutive gzip members are one file.

    A file that was cut exactly between two members looks whole.
    """
    with path.open("rb") as file:
        magic = file.read(len(GZIP_MAGIC))
        file.seek(0)
        yield _Unpacked(file, name) if magic == GZIP_MAGIC else file


class _Unpacked:
    """Limits a gzip stream. The reader of the standard library reads endless headers and padding in one call."""

    def __init__(self, packed: BinaryIO, name: str) -> None:
        self._packed, self._name = packed, name
        self._next = b""  # packed bytes that were read and not unpacked yet
        self._member, self._members = zlib.decompressobj(_GZIP), 1
        self._total = self._lines = self._idle = 0

    def read(self, size: int, /) -> bytes:
        data = bytearray()
        while len(data) < size and (part := self._part(size - len(data))):
            data += part
            self._total += len(part)
            self._lines += part.count(b"\n")
            self._check_growth()
        return bytes(data)

    def _part(self, size: int) -> bytes:
        while not self._member.eof or self._begin_member():
            self._next = self._next or self._packed.read(_BLOCK)
            at_end, before = not self._next, len(self._next)
            try:
                data = self._member.decompress(self._next, size)
            except zlib.error as error:
                raise self._corrupt() from error
            self._next = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if data:
                self._idle = 0
                return data
            if at_end:  # only now: zlib may return buffered output without input
                hint = "The file was truncated or is still being written: fetch it again."
                raise RefusedError("the gzip data ends before its end marker", where=self._name, hint=hint)
            self._pass_over(before - len(self._next))
        return b""

    def _begin_member(self) -> bool:
        while not (rest := self._next.lstrip(b"\0")):
            self._pass_over(len(self._next))
            self._next = self._packed.read(_BLOCK)
            if not self._next:
                return False
        self._pass_over(len(self._next) - len(rest))
        self._next = rest if len(rest) > 1 else rest + self._packed.read(_BLOCK)
        if not self._next.startswith(GZIP_MAGIC):
            raise self._corrupt()
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise self._too_much(f"holds more than {MAX_MEMBERS:,} gzip members")
        self._member = zlib.decompressobj(_GZIP)
        return True

    def _pass_over(self, number: int) -> None:
        self._idle += number
        if self._idle > MAX_IDLE:
            raise self._too_much(f"holds more than {MAX_IDLE:,} consecutive bytes of gzip that unpack to nothing")

    def _check_growth(self) -> None:
        packed = self._packed.tell()
        if self._total > MAX_BYTES or (self._total > FREE_BYTES and self._total > MAX_EXPANSION * packed):
            allowed = f"The limit is {MAX_EXPANSION} to 1 and {MAX_BYTES:,} bytes."
            raise self._too_much(f"{packed:,} bytes of gzip unpack to {self._total:,} bytes and more", allowed)
        if self._lines > FREE_LINES + MAX_LINES_PER_BYTE * packed:
            allowed = f"The limit is {FREE_LINES:,} lines and {MAX_LINES_PER_BYTE} for each byte."
            raise self._too_much(f"{packed:,} bytes of gzip unpack to {self._lines:,} lines and more", allowed)

    def _corrupt(self) -> RefusedError:
        hint = "Fetch the file again in binary mode; if the error remains, ask the sender to write it again."
        return RefusedError("the gzip data is corrupt or followed by other data", where=self._name, hint=hint)

    def _too_much(self, message: str, allowed: str = "") -> RefusedError:
        hint = f"{allowed} If the file is genuine, ask the sender for it uncompressed or in parts.".lstrip()
        return RefusedError(message, where=self._name, hint=hint)
