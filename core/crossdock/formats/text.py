"""Bytes in any encoding to UTF-8 pieces that begin and end where records do, in bounded memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from crossdock.errors import RefusedError
from crossdock.formats.compression import Readable

MAX_RECORD_BYTES = 16 << 20
"""No honest record is longer; a quote that is never closed makes one of the rest of the file."""

_DOS_END = b"\x1a"
_MARKS = {
    codecs.BOM_UTF8: ("utf-8", {"utf-8"}),
    codecs.BOM_UTF16_LE: ("utf-16", {"utf-16", "utf-16-le"}),
    codecs.BOM_UTF16_BE: ("utf-16", {"utf-16", "utf-16-be"}),
}


class _FaultError(Exception):
    """Something that ends the reading behind what was read so far."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Piece:
    """Some whole records as UTF-8.

    Attributes:
        line: The number of its first line in the file.
        data: Never empty; only the last one may lack the line end.
        ends: How many line ends it holds.
        last: Whether the file ends with it.
    """

    line: int
    data: bytes
    ends: int
    last: bool = False


def pieces(stream: Readable, encoding: str, quote: str | None, *, name: str, chunk: int) -> Iterator[Piece]:
    """Cut *stream* into pieces of about *chunk* bytes; the first one is the first record alone.

    Records are told by line ends outside of quotes; whether the quotes are right is for others to judge.

    Raises:
        RefusedError: For bytes that are not in *encoding* and for endless records, after all records before them.
    """
    held: Piece | None = None
    cut = _cut(_decoded(stream, codecs.lookup(encoding).name, name, chunk), quote.encode() if quote else None, name)
    try:
        for piece in cut:
            if held:
                yield held
            held = piece
    except RefusedError:
        if held:
            yield held
        raise
    if held:
        yield replace(held, last=True)


def split_last_record(piece: Piece, quote: str | None) -> tuple[Piece | None, Piece]:
    """What is before the last record of *piece*, and that record."""
    end = _last_end(piece.data, quote.encode() if quote else None, len(piece.data) - 1)
    if not end:
        return None, piece
    ends = piece.data.count(b"\n", 0, end)
    body = Piece(piece.line, piece.data[:end], ends)
    return body, Piece(piece.line + ends, piece.data[end:], piece.ends - ends, piece.last)


def records_at(piece: Piece, quote: str | None, lines: Sequence[int]) -> Iterator[bytes]:
    """The records of *piece* that begin at *lines*, each with its line end."""
    found = piece.data.splitlines(keepends=True) if lines else []
    mark = quote.encode() if quote else None
    for line in lines:
        place = line - piece.line
        record = found[place]
        while mark and record.count(mark) % 2:  # its line end is inside of quotes
            place += 1
            record += found[place]
        yield record


def _cut(blocks: Iterator[bytes], quote: bytes | None, name: str) -> Iterator[Piece]:
    rest, line, find_end = b"", 1, _first_end
    try:
        for block in blocks:
            rest += block
            while end := find_end(rest, quote, len(rest)):
                piece = Piece(line, rest[:end], rest.count(b"\n", 0, end))
                yield piece
                line += piece.ends
                rest = rest[end:]
                find_end = _last_end
            if len(rest) > MAX_RECORD_BYTES:
                yield Piece(line, rest, rest.count(b"\n"))
                message = f"a record of more than {MAX_RECORD_BYTES:,} bytes ends here or never"
                raise _FaultError(message, "Are quote and encoding the declared ones, and is it text?")
    except _FaultError as error:
        line += rest.count(b"\n")
        raise RefusedError(error.message, where=f"{name}:{line}", hint=error.hint) from error
    if rest := rest.removesuffix(_DOS_END):
        yield Piece(line, rest, rest.count(b"\n"))


def _first_end(data: bytes, quote: bytes | None, size: int) -> int:
    """Behind the first line end that is outside of quotes; 0 if there is none."""
    quotes = start = end = 0
    while end := data.find(b"\n", end, size) + 1:
        quotes += data.count(quote, start, end) if quote else 0
        if quotes % 2 == 0:
            return end
        start = end
    return 0


def _last_end(data: bytes, quote: bytes | None, size: int) -> int:
    """Behind the last line end before *size* that is outside of quotes; 0 if there is none."""
    if quote is None:
        return data.rfind(b"\n", 0, size) + 1
    quotes = data.count(quote, 0, size)
    while end := data.rfind(b"\n", 0, size) + 1:
        quotes -= data.count(quote, end, size)
        if quotes % 2 == 0:
            return end
        size = data.rfind(quote, 0, end)
        quotes -= 1
    return 0


def _decoded(stream: Readable, encoding: str, name: str, chunk: int) -> Iterator[bytes]:
    head = stream.read(4)
    mark = _check_mark(head, encoding, name)
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    offset = 0
    if encoding != "utf-16":  # that codec wants to see the mark, the others would take it for text
        offset, head = len(mark), head[len(mark) :]
    raw, final = head, False
    while not final:
        raw = raw or stream.read(chunk)
        final = not raw
        state = decoder.getstate()
        try:
            text = decoder.decode(raw, final)
        except UnicodeDecodeError as error:
            decoder.setstate(state)
            start = error.start - len(state[0])
            yield decoder.decode(raw[: max(0, start)]).encode()
            message = f"byte {offset + start} of the file (from 0) is not {encoding}"
            raise _FaultError(message, _other_encoding(encoding)) from error
        if encoding == "utf-8":  # the bytes are good as they are, but for a character that is not complete
            yield (state[0] + raw).removesuffix(decoder.getstate()[0])
        else:
            yield text.encode()
        offset += len(raw)
        raw = b""


def _check_mark(head: bytes, encoding: str, name: str) -> bytes:
    """The byte order mark at the start of a file, if there is one and the encoding agrees."""
    for mark, (declare, allowed) in _MARKS.items():
        if head.startswith(mark):
            if encoding not in allowed:
                raise RefusedError(
                    f"the file begins with the byte order mark of {declare}, but {encoding} is declared",
                    where=f"{name}:1",
                    hint=f"Declare encoding: {declare}",
                )
            return mark
    if encoding == "utf-16" and head:
        hint = "Declare encoding: utf-16-le (what Windows writes) or utf-16-be."
        raise RefusedError("the byte order mark of utf-16 is missing", where=f"{name}:1", hint=hint)
    return b""


def _other_encoding(encoding: str) -> str:
    if encoding == "utf-8":
        return "Files from Windows are often in another one: declare encoding: cp1252"
    return "Ask the sender for the encoding and declare it; utf-8 is the most common."
