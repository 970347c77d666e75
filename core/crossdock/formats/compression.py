"""Open a file that may be gzip, in a stream, without trusting what it says of itself."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import BinaryIO, Literal, Protocol

from crossdock.errors import RefusedError

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 31  # has zlib read the header and check both sums (RFC 1952)
_BLOCK = 64 << 10

MAX_EXPANSION = 200
"""Exports of text shrink 5 to 30 times, bombs about 1,000 times (deflate can do no more than 1,032)."""
FREE_BYTES = 10_000_000
"""So much may come out at any ratio: a small file of blanks is no attack."""
MAX_BYTES = 20_000_000_000
"""More than a hundred million rows; a nightly export is far smaller, a disk or a night is not."""
MAX_LINES_PER_BYTE = 4
"""Lines that differ take one packed byte and more each; each line costs memory until its file is read."""
FREE_LINES = 500_000
"""So many lines may come out at any ratio."""
MAX_MEMBERS = 500_000
"""bgzip writes one for each 65,280 bytes, which makes 306,000 of `MAX_BYTES`; each costs time, even an empty one."""
MAX_IDLE = 1 << 20
"""Packed bytes in a row of which nothing comes out: headers, empty members, and zeros that fill up a tape's block."""


class Readable(Protocol):
    def read(self, size: int, /) -> bytes:
        """At most *size* bytes; none only at the end."""


class Openable(Protocol):
    """A file that can be read, more than once: a `pathlib.Path`, or one that lies where others write."""

    def open(self, mode: Literal["rb"], /) -> AbstractContextManager[BinaryIO]:
        """Its bytes, from the beginning."""


@contextmanager
def open_stream(path: Openable, *, name: str) -> Iterator[Readable]:
    """The bytes of *path*, unpacked if it begins as gzip does; read in pieces, closed on leaving.

    Several gzip members in a row are one file. A gzip that was cut exactly between two members cannot be told from a
    whole one: only a trailer or a count from elsewhere shows what is missing.

    Args:
        name: What errors call it.

    Raises:
        RefusedError: While reading: truncated or corrupt gzip, bytes after its end, expansion beyond the limits, and
            headers, padding or empty members without end.
    """
    with path.open("rb") as file:
        magic = file.read(len(_GZIP_MAGIC))
        file.seek(0)
        yield _Unpacked(file, name) if magic == _GZIP_MAGIC else file


class _Unpacked:
    """A gzip stream that watches how much comes out of how little, and that something comes out.

    The standard library's reader takes headers and padding byte by byte, however long they are, within one call.
    """

    def __init__(self, packed: BinaryIO, name: str) -> None:
        self._packed, self._name = packed, name
        self._next = b""  # packed bytes that are read and not unpacked yet
        self._member, self._members = zlib.decompressobj(_GZIP), 1
        self._total = self._lines = self._idle = 0

    def read(self, size: int, /) -> bytes:
        """*size* bytes, fewer only at the end."""
        data = bytearray()
        while len(data) < size and (part := self._part(size - len(data))):
            data += part
            self._total += len(part)
            self._lines += part.count(b"\n")
            self._check_growth()
        return bytes(data)

    def _part(self, size: int) -> bytes:
        """At most *size* bytes; none only at the end."""
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
            if at_end:  # zlib gives what it has kept back even without input
                raise RefusedError(
                    "the gzip data ends before its end mark",
                    where=self._name,
                    hint="The file was cut on its way or is still being written: fetch it again.",
                )
            self._pass_over(before - len(self._next))
        return b""

    def _begin_member(self) -> bool:
        """Whether another member follows, after zeros as the case may be."""
        while not (rest := self._next.lstrip(b"\0")):
            self._pass_over(len(self._next))
            self._next = self._packed.read(_BLOCK)
            if not self._next:
                return False
        self._pass_over(len(self._next) - len(rest))
        self._next = rest if len(rest) > 1 else rest + self._packed.read(_BLOCK)
        if not self._next.startswith(_GZIP_MAGIC):
            raise self._corrupt()
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise self._too_much(f"holds more than {MAX_MEMBERS:,} gzip members")
        self._member = zlib.decompressobj(_GZIP)
        return True

    def _pass_over(self, number: int) -> None:
        """Count packed bytes of which nothing came out."""
        self._idle += number
        if self._idle > MAX_IDLE:
            raise self._too_much(f"holds more than {MAX_IDLE:,} bytes of gzip in a row that unpack to nothing")

    def _check_growth(self) -> None:
        packed = self._packed.tell()
        if self._total > MAX_BYTES or (self._total > FREE_BYTES and self._total > MAX_EXPANSION * packed):
            allowed = f"At most {MAX_EXPANSION} to 1 and {MAX_BYTES:,} bytes are taken."
            raise self._too_much(f"{packed:,} bytes of gzip unpack to {self._total:,} bytes and more", allowed)
        if self._lines > FREE_LINES + MAX_LINES_PER_BYTE * packed:
            allowed = f"At most {FREE_LINES:,} and {MAX_LINES_PER_BYTE} for each byte are taken."
            raise self._too_much(f"{packed:,} bytes of gzip unpack to {self._lines:,} lines and more", allowed)

    def _corrupt(self) -> RefusedError:
        hint = "Fetch the file again in binary mode; if it stays so, have the sender write it anew."
        return RefusedError("the gzip data is corrupt, or something else follows it", where=self._name, hint=hint)

    def _too_much(self, message: str, allowed: str = "") -> RefusedError:
        hint = f"{allowed} If the file is genuine, have it sent unpacked or in parts.".lstrip()
        return RefusedError(message, where=self._name, hint=hint)
