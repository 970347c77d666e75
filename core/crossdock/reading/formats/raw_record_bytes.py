"""The bytes of records as they are in a file, for people who compare them with what is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from crossdock.reading.wrappers.stream_compression import open_and_unpack_if_gzip
from crossdock.reading.wrappers.wrapper import Openable, Readable

MOST_BYTES = 4_000
"""Of one record; what follows is left out."""
_CHUNK_BYTES = 1 << 20
_X12_HEADER = 106
_LATEST = 1 << 62


def read_raw_records_at_lines(
    path: Openable, lines: Sequence[int], encoding: str, quote: str | None, *, name: str
) -> Mapping[int, bytes]:
    """Return the bytes of the records that begin at *lines* (ascending), with their line ends.

    A record goes on while a *quote* is open. Without lines in *encoding* that end with LF, returns nothing.
    """
    if "\n".encode(encoding) != b"\n" or not lines:
        return {}
    mark = quote.encode() if quote else None
    wanted, found, current = set(lines), dict[int, bytes](), 0
    with open_and_unpack_if_gzip(path, name=name) as stream:
        for number, line in enumerate(_split_stream_at_end_mark(stream, b"\n"), 1):
            if number in wanted:
                current = number
                found[current] = line
            elif current and mark and found[current].count(mark) % 2 and len(found[current]) < MOST_BYTES:
                found[current] += line
            elif number > lines[-1]:
                break
            else:
                current = 0
    return {number: data[:MOST_BYTES] for number, data in found.items()}


def read_raw_edi_records_at_segments(path: Openable, numbers: Sequence[int], *, name: str) -> Mapping[int, bytes]:
    """Return the segments of an EDI file from each of *numbers* (ascending) to the next, or to the end of the set."""
    found = dict.fromkeys(numbers, b"")
    if not numbers:
        return found
    with open_and_unpack_if_gzip(path, name=name) as stream:
        end, release = _detect_segment_terminator_and_release(head := stream.read(_CHUNK_BYTES).lstrip())
        ends = [*(following for _, following in pairwise(numbers)), _LATEST]
        spans = iter(zip(numbers, ends, strict=True))
        start, stop = next(spans)
        for number, segment in enumerate(_split_stream_at_end_mark(_PrefixedStream(head, stream), end, release), 1):
            if number >= stop:
                start, stop = next(spans)
            if start <= number and len(found[start]) < MOST_BYTES:
                found[start] += segment
                if stop == _LATEST and segment.lstrip().startswith((b"SE", b"UNT")):
                    break
    return {number: data[:MOST_BYTES] for number, data in found.items()}


def _detect_segment_terminator_and_release(head: bytes) -> tuple[bytes, bytes]:
    """Return what ends segments, and the release character, if there is one."""
    if head.startswith(b"ISA"):
        return head[_X12_HEADER - 1 : _X12_HEADER] or b"~", b""
    return (head[8:9], head[6:7].strip()) if head.startswith(b"UNA") else (b"'", b"?")


class _PrefixedStream:
    """What was read of a stream, and the rest."""

    def __init__(self, head: bytes, stream: Readable) -> None:
        self._head, self._stream = head, stream

    def read(self, size: int, /) -> bytes:
        head, self._head = self._head, b""
        return head or self._stream.read(size)


def _split_stream_at_end_mark(stream: Readable, end: bytes, release: bytes = b"") -> Iterator[bytes]:
    rest = b""
    while block := stream.read(_CHUNK_BYTES):
        *whole, rest = (rest + block).split(end)
        held = b""
        for part in whole:
            held += part + end
            if not release or (len(part) - len(part.rstrip(release))) % 2 == 0:
                yield held
                held = b""
        rest = held + rest
    if rest:
        yield rest
