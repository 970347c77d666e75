"""Open a file that may be gzip, in a stream, without trusting what it says of itself."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import BinaryIO, Literal, Protocol

from crossdock.errors import RefusedError

_GZIP_MAGIC = b"\x1f\x8b"

MAX_EXPANSION = 200
"""Exports of text shrink 5 to 30 times, bombs about 1,000 times (deflate can do no more than 1,032)."""
FREE_BYTES = 10_000_000
"""So much may come out at any ratio: a small file of blanks is no attack."""
MAX_BYTES = 20_000_000_000
"""More than a hundred million rows; a nightly export is far smaller, a disk or a night is not."""


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
        RefusedError: While reading: truncated or corrupt gzip, bytes after its end, expansion beyond the limits.
    """
    with path.open("rb") as file:
        magic = file.read(len(_GZIP_MAGIC))
        file.seek(0)
        if magic == _GZIP_MAGIC:
            with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
                yield _Unpacked(unpacked, file, name)
        else:
            yield file


class _Unpacked:
    """A gzip stream that watches how much comes out of how little."""

    def __init__(self, unpacked: gzip.GzipFile, packed: BinaryIO, name: str) -> None:
        self._unpacked = unpacked
        self._packed = packed
        self._name = name
        self._total = 0

    def read(self, size: int, /) -> bytes:
        try:
            data = self._unpacked.read(size)
        except EOFError as error:
            raise RefusedError(
                "the gzip data ends before its end mark",
                where=self._name,
                hint="The file was cut on its way or is still being written: fetch it again.",
            ) from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise RefusedError(
                "the gzip data is corrupt, or something else follows it",
                where=self._name,
                hint="Fetch the file again in binary mode; if it stays so, have the sender write it anew.",
            ) from error
        self._total += len(data)
        self._check_size()
        return data

    def _check_size(self) -> None:
        packed = self._packed.tell()
        if self._total > MAX_BYTES or (self._total > FREE_BYTES and self._total > MAX_EXPANSION * packed):
            raise RefusedError(
                f"{packed:,} bytes of gzip unpack to {self._total:,} bytes and more",
                where=self._name,
                hint=f"At most {MAX_EXPANSION} to 1 and {MAX_BYTES:,} bytes are taken. "
                "If the file is genuine, have it sent unpacked or in parts.",
            )
