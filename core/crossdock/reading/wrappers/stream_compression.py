"""Streams that are packed with gzip, bzip2, xz or zstd, unpacked with limits on what comes out.

Files may be gzip without being declared so. What else files are wrapped in is declared.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Protocol

from msgspec import Struct
from pydantic import Field

from crossdock.errors import ConfigError, RefusedError
from crossdock.reading.wrappers.wrapper import (
    BLOCK,
    NamedFile,
    Openable,
    Readable,
    UnpackingMeter,
    WorkFolder,
    WrapperSettings,
    read_blocks,
)

_GZIP = 31  # zlib reads the header and verifies both checksums (RFC 1952)
_MAX_MEMORY = 128 << 20
"""What xz may ask for: its highest preset takes 65 MiB."""
_MAX_WINDOW_LOG = 27
"""The window that zstd may ask for is 128 MiB, which is what its program accepts."""
MAX_MEMBERS = 500_000
"""Each costs time, even an empty one. bgzip writes one for each 65,280 bytes: 306,000 for `MAX_BYTES`."""
MAX_IDLE = 1 << 20
"""Consecutive packed bytes without output: headers, empty members, the zeros that pad a tape's block, or the largest
block of bzip2."""


class Decoder(Protocol):
    """Unpacks one member, as the decompressors of `bz2`, `lzma` and `compression.zstd` do."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class ZlibDecoder:
    """Unpacks one member of gzip, or what *wbits* says."""

    def __init__(self, wbits: int = _GZIP) -> None:
        self._inner, self._next = zlib.decompressobj(wbits), b""

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._next

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        found = self._inner.decompress(self._next + data, max_length)
        self._next = self._inner.unconsumed_tail
        return found


class CompressionFormat(Struct, frozen=True):
    """One way to pack a stream. *padded* members may be followed by zeros."""

    name: str
    magic: Callable[[bytes], bool]
    decoder: Callable[[], Decoder]
    errors: Callable[[], tuple[type[Exception], ...]]
    padded: bool = False
    memory_error: str = "\0"  # in the text of an error of its decoder


def _import_zstd_or_raise() -> Any:
    """Return the module `compression.zstd` of Python 3.14, or its backport."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            if find_spec(name) is not None:
                return import_module(name)
        except ModuleNotFoundError:  # its package is missing
            continue
    raise ConfigError("zstd needs backports.zstd", hint="pip install 'crossdock[zstd]'", code="library_missing")


def _zstd_decoder() -> Decoder:
    zstd = _import_zstd_or_raise()
    decoder: Decoder = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _MAX_WINDOW_LOG})
    return decoder


def _is_zstd(head: bytes) -> bool:
    """Also of a frame to be skipped (RFC 8878, 3.1.2)."""
    return head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5)


GZIP = CompressionFormat(
    "gzip", lambda head: head.startswith(b"\x1f\x8b"), ZlibDecoder, lambda: (zlib.error,), padded=True
)
BZ2 = CompressionFormat(
    "bzip2", lambda head: head.startswith(b"BZh"), bz2.BZ2Decompressor, lambda: (OSError, ValueError)
)
XZ = CompressionFormat(
    "xz",
    lambda head: head.startswith(b"\xfd7zXZ\0"),
    lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _MAX_MEMORY),
    lambda: (lzma.LZMAError,),
    padded=True,
    memory_error="Memory usage limit",
)
ZSTD = CompressionFormat(
    "zstd", _is_zstd, _zstd_decoder, lambda: (_import_zstd_or_raise().ZstdError,), memory_error="too much memory"
)


class UnpackedStream:
    """The content of all members of a stream. Decoders of the standard library would read endless padding in one call.

    A file that was cut exactly between two members looks whole.
    """

    def __init__(
        self,
        packed: Readable,
        packing: CompressionFormat,
        meter: UnpackingMeter,
        *,
        name: str,
        max_members: int = MAX_MEMBERS,
    ) -> None:
        self._packed, self._packing, self._meter, self._name = packed, packing, meter, name
        self._next, self._read = b"", 0  # packed bytes that were read and not unpacked yet, and how many were read
        self._member, self._members, self._max_members = packing.decoder(), 1, max_members
        self._idle = 0

    def read(self, size: int, /) -> bytes:
        data = bytearray()
        while len(data) < size and (part := self._unpack_next_content(size - len(data))):
            data += part
            self._meter.count_and_raise_if_over_limits(part, self._read)
        return bytes(data)

    def _unpack_next_content(self, size: int) -> bytes:
        while not self._member.eof or self._begin_next_member():
            chunk = self._take_packed() if self._member.needs_input else b""
            at_end = not chunk and self._member.needs_input
            data = self._decompress_or_raise(chunk, size)
            self._next = self._member.unused_data if self._member.eof else b""
            if data:
                self._idle = 0
                return data
            if at_end and not self._member.eof:  # only now: zlib may return buffered output without input
                hint = "The file was truncated or is still being written: fetch it again."
                message = f"the {self._packing.name} data ends before its end marker"
                raise RefusedError(message, where=self._name, hint=hint, code="file_cut")
            self._count_idle_bytes_or_raise(len(chunk) - len(self._next))
        return b""

    def _take_packed(self) -> bytes:
        taken, self._next = self._next or self._read_packed(), b""
        return taken

    def _read_packed(self) -> bytes:
        block = self._packed.read(BLOCK)
        self._read += len(block)
        return block

    def _decompress_or_raise(self, chunk: bytes, size: int) -> bytes:
        try:
            return self._member.decompress(chunk, size)
        except self._packing.errors() as error:
            if self._packing.memory_error in str(error):
                hint = "Ask the sender to pack it with a smaller dictionary or window."
                message = f"unpacking the {self._packing.name} data takes too much memory"
                raise RefusedError(message, where=self._name, hint=hint, code="file_too_large") from error
            raise self._corrupt_error() from error

    def _begin_next_member(self) -> bool:
        while not (rest := self._next.lstrip(b"\0") if self._packing.padded else self._next):
            self._count_idle_bytes_or_raise(len(self._next))
            self._next = self._read_packed()
            if not self._next:
                return False
        self._count_idle_bytes_or_raise(len(self._next) - len(rest))
        self._next = rest if len(rest) > 5 else rest + self._read_packed()
        if not self._packing.magic(self._next):
            raise self._corrupt_error()
        self._members += 1
        if self._members > self._max_members:
            raise self._meter.limit_error(f"holds more than {self._max_members:,} {self._packing.name} members")
        self._member = self._packing.decoder()
        return True

    def _count_idle_bytes_or_raise(self, number: int) -> None:
        self._idle += number
        self._meter.raise_if_over_time()
        if self._idle > MAX_IDLE:
            what = f"consecutive bytes of {self._packing.name} that unpack to nothing"
            raise self._meter.limit_error(f"holds more than {MAX_IDLE:,} {what}")

    def _corrupt_error(self) -> RefusedError:
        hint = "Fetch the file again in binary mode; if the error remains, ask the sender to write it again."
        message = f"the {self._packing.name} data is corrupt or followed by other data"
        return RefusedError(message, where=self._name, hint=hint, code="file_damaged")


class StreamSettings(WrapperSettings):
    """A packed stream: one file, in one or several members, which follow each other."""

    max_members: Annotated[int, Field(ge=1, le=10_000_000)] = MAX_MEMBERS
    """The most members, which may be empty."""


class GzipSettings(StreamSettings):
    """gzip."""

    kind: Literal["gzip"]


class Bz2Settings(StreamSettings):
    """bzip2."""

    kind: Literal["bz2"]


class XzSettings(StreamSettings):
    """xz."""

    kind: Literal["xz"]


class ZstdSettings(StreamSettings):
    """zstd; needs ``pip install 'crossdock[zstd]'`` before Python 3.14."""

    kind: Literal["zstd"]


class Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class StreamWrapper(Struct, frozen=True):
    settings: type[StreamSettings]
    packing: CompressionFormat
    file_name_ending: str
    compressor: Callable[[], Compressor]

    @property
    def wrapping_description(self) -> str:
        return f"packed with {self.packing.name}"

    def recognizes_head(self, head: bytes) -> bool:
        return self.packing.magic(head)

    def unwrap(self, part: NamedFile, settings: StreamSettings, work_folder: WorkFolder) -> Iterator[NamedFile]:
        meter = work_folder.make_unpacking_meter(settings, part, f"bytes of {self.packing.name}")
        with part.content.open("rb") as packed:
            stream = UnpackedStream(packed, self.packing, meter, name=part.name, max_members=settings.max_members)
            path = work_folder.write_file(read_blocks(stream))
        yield replace(part, content=path)

    def wrap(self, part: NamedFile, settings: StreamSettings, work_folder: WorkFolder) -> Path:
        del settings
        with part.content.open("rb") as file:
            return work_folder.write_file(self._compressed_blocks(file))

    def _compressed_blocks(self, file: BinaryIO) -> Iterator[bytes]:
        compressor = self.compressor()
        for block in read_blocks(file):
            yield compressor.compress(block)
        yield compressor.flush()


def _zstd_compressor() -> Compressor:
    zstd = _import_zstd_or_raise()
    compressor: Compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.checksum_flag: 1})
    return compressor


STREAM_WRAPPERS = {
    "gzip": StreamWrapper(GzipSettings, GZIP, ".gz", lambda: zlib.compressobj(wbits=_GZIP)),
    "bz2": StreamWrapper(Bz2Settings, BZ2, ".bz2", bz2.BZ2Compressor),
    "xz": StreamWrapper(XzSettings, XZ, ".xz", lzma.LZMACompressor),
    "zstd": StreamWrapper(ZstdSettings, ZSTD, ".zst", _zstd_compressor),
}


_LIMITS = GzipSettings(kind="gzip")


@contextmanager
def open_and_unpack_if_gzip(path: Openable, *, name: str, limits: GzipSettings = _LIMITS) -> Iterator[Readable]:
    """Open *path*, and unpack it if it begins with the magic number of gzip. Consecutive gzip members are one file.

    A file that was cut exactly between two members looks whole. The time is not limited, as it is also the reader's.
    """
    with path.open("rb") as file:
        is_gzip = GZIP.magic(file.read(2))
        file.seek(0)
        if not is_gzip:
            yield file
            return
        meter = UnpackingMeter(limits, name=name, what="bytes of gzip")
        yield UnpackedStream(file, GZIP, meter, name=name, max_members=limits.max_members)
