"""Text of files: names of encodings, decoding into pieces of UTF-8 that hold whole records, and lines that are no rows.

UTF-8 is passed on unchecked; `decode_up_to_invalid_byte` checks it.
"""

from __future__ import annotations

import codecs
import encodings
import os
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from encodings.aliases import aliases
from functools import cache
from typing import Literal

from msgspec import Struct, structs

from crossdock.errors import RefusedError
from crossdock.reading.formats.file_formats import BlankLines, LeniencyCounts
from crossdock.reading.formats.file_kind_and_encoding_mismatch import (
    DECLARE_UTF_8_HINT,
    HEAD,
    MisdeclaredUtf8Search,
    raise_if_head_shows_other_kind,
)
from crossdock.reading.wrappers.stream_compression import GZIP
from crossdock.reading.wrappers.wrapper import Openable, Readable

_NO_CHARACTER_ENCODINGS = {
    *("aliases", "base64_codec", "bz2_codec", "hex_codec", "quopri_codec", "rot_13", "uu_codec", "zlib_codec"),
    *("idna", "punycode", "raw_unicode_escape", "unicode_escape", "undefined"),  # notations of text
    *("mbcs", "oem"),  # differ from machine to machine
    "utf_7",  # keeps any number of bytes before it decodes them
}
_SWITCHING = ("hz", "iso2022", "cp930", "cp939", "cp1364")  # the same bytes are other characters after a shift
_EXAMPLES = "utf-8, utf-16, cp1252 (Windows), cp850 (DOS), cp037 (mainframe)"
EXTRA_BYTE_FILLER = "\ufdd0"
"""Replaces each byte of a character after its first one. Unicode has no character with this number."""


def validate_encoding_name(name: str) -> str:
    """Return *name* if Python knows it as a character encoding. Otherwise raise ValueError with the nearest name."""
    try:
        module = encodings.normalize_encoding(codecs.lookup(name).name).lower()
    except (LookupError, ValueError):
        module = ""
    supported = {found.name for found in pkgutil.iter_modules(encodings.__path__)} - _NO_CHARACTER_ENCODINGS
    if module in supported:
        return name
    spellings = {spelling: target for spelling, target in aliases.items() if target in supported}
    spellings |= {target: target for target in supported}
    near = get_close_matches(name.lower().replace("-", "_").replace(" ", "_"), spellings, n=1)
    advice = f"did you mean {spellings[near[0]].replace('_', '-')!r}?" if near else f"examples: {_EXAMPLES}"
    raise ValueError(f"is not a character encoding that Python knows; {advice}")


def is_encoding_without_shift_codes(name: str) -> bool:
    return not codecs.lookup(name).name.replace("_", "").replace("-", "").startswith(_SWITCHING)


@cache
def is_single_byte_encoding(name: str) -> bool:
    """Return whether every byte is a character of its own."""
    return all(
        len(bytes((first, second)).decode(name, "replace")) == 2
        for first in range(256)
        for second in (0x41, 0x81, 0xA9)
    )


class ByteWidthPaddingTable(dict[int, str]):
    """A table for `str.translate` that adds an `EXTRA_BYTE_FILLER` for each byte of a character after its first one."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        name = codecs.lookup(encoding).name.removesuffix("-sig")
        self._encoding = f"{name}-le" if name in {"utf-16", "utf-32"} else name

    def __missing__(self, code: int) -> str:
        character = chr(code)
        try:
            width = len(character.encode(self._encoding))
        except UnicodeEncodeError:
            width = 1
        if character in "\r\n" or code == ord(EXTRA_BYTE_FILLER):
            width = 1
        self[code] = character + EXTRA_BYTE_FILLER * (width - 1)
        return self[code]


MAX_RECORD_BYTES = 16 << 20
"""The limit for one record. A quote that is never closed makes one record of the rest of the file."""

LINES_BYTES = 512 << 10
"""What is split into lines at once: each is an object, which takes many times its length."""

_DOS_END = b"\x1a"
_WINDOW = 64 << 10
_RARE = 32  # bytes for each mark, on average, from which `replace` finds marks faster than `count`
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: ("utf-8", {"utf-8"}),
    codecs.BOM_UTF32_LE: ("utf-32", {"utf-32", "utf-32-le"}),  # before the other mark that begins it
    codecs.BOM_UTF32_BE: ("utf-32", {"utf-32", "utf-32-be"}),
    codecs.BOM_UTF16_LE: ("utf-16", {"utf-16", "utf-16-le"}),
    codecs.BOM_UTF16_BE: ("utf-16", {"utf-16", "utf-16-be"}),
}
_ASK = "Ask the sender for the encoding and declare it; utf-8 is the most common."
_MARKED = {  # codecs that need a mark, and their forms without one
    "utf-16": "utf-16-le (what Windows writes) or utf-16-be",
    "utf-32": "utf-32-le or utf-32-be",
}

TextOrSkippedLineCount = bytes | int
"""Text as UTF-8, or the number of lines that were left out before the next record."""
LineFilter = Callable[[Iterator[bytes]], Iterator[TextOrSkippedLineCount]]
"""Turns decoded text into lines, one or several for each record."""


class DecodingError(Exception):
    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidByte(Struct, frozen=True):
    """A byte that is not UTF-8, and its place, from 1. `after_utf_8`: characters of several bytes precede it."""

    line: int
    column: int
    byte: int
    after_utf_8: bool

    def error(self, name: str) -> RefusedError:
        """Return the error of the file *name*."""
        hint = "Ask the sender for the encoding and declare it, such as cp1252 (Windows); a wrong one changes letters."
        if self.after_utf_8:
            hint = "The text before it is UTF-8: the file is damaged, or joins texts in two encodings. Fetch it again."
        message, where = f"byte 0x{self.byte:02X} is not UTF-8", f"{name}:{self.line}:{self.column}"
        return RefusedError(message, where=where, hint=hint, code="encoding_wrong")


class Piece(Struct, frozen=True):
    """Some whole records as UTF-8. `data` is not empty, and `line` counts from 1; only the last may lack its end."""

    line: int
    data: bytes
    ends: int
    last: bool = False


def decode_into_record_pieces(
    stream: Readable, encoding: str, quote: str | None, *, name: str, chunk: int, prepare: LineFilter = iter
) -> Iterator[Piece]:
    """Split *stream* into pieces of about *chunk* bytes. The first one is the first record alone.

    Records end at line ends outside quotes, which are not checked here. A fault is raised after all records before it.
    """
    held: Piece | None = None
    cut = _cut_into_record_pieces(
        prepare(check_kind_and_transcode_to_utf_8(stream, encoding, name, chunk)),
        quote.encode() if quote else None,
        name,
    )
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
        yield structs.replace(held, last=True)


def split_off_last_record(piece: Piece, quote: str | None) -> tuple[Piece | None, Piece]:
    end = _find_last_record_end(piece.data[:-1], quote.encode() if quote else None)
    if not end:
        return None, piece
    ends = piece.data.count(b"\n", 0, end)
    body = Piece(piece.line, piece.data[:end], ends)
    return body, Piece(piece.line + ends, piece.data[end:], piece.ends - ends, piece.last)


def split_into_smaller_pieces(piece: Piece, quote: str | None, size: int) -> Iterator[Piece]:
    mark, data, line, start = quote.encode() if quote else None, piece.data, piece.line, 0
    while start < len(data):
        length, end = size, 0
        while not end and start + length < len(data):
            end = _find_last_record_end(data[start : start + length], mark)
            length *= 2
        part = data[start : start + end] if end else data[start:]
        yield Piece(line, part, ends := part.count(b"\n"))
        line += ends
        start += len(part)


def decode_up_to_invalid_byte(piece: Piece, quote: str | None) -> tuple[str, InvalidByte | None]:
    """Return the text of *piece*, up to the record with the first byte that is not UTF-8, and that byte."""
    try:
        return piece.data.decode(), None
    except UnicodeDecodeError as error:
        data, at = piece.data, error.start
        begin = data.rfind(b"\n", 0, at) + 1
        line, column = piece.line + data.count(b"\n", 0, at), len(data[begin:at].decode()) + 1
        fault = InvalidByte(line, column, data[at], not data[:at].isascii())
        return data[: _find_last_record_end(data[:at], quote.encode() if quote else None)].decode(), fault


def read_decoded_records_at_lines(
    stream: Readable,
    encoding: str,
    quote: str | None,
    lines: Iterator[int],
    *,
    name: str,
    chunk: int,
    prepare: LineFilter = iter,
) -> Iterator[bytes]:
    """Yield the records that begin at *lines* (ascending) of a stream that was read to its end before."""
    mark, number = quote.encode() if quote else None, next(lines, None)
    begun, quotes = list[bytes](), 0
    for first, found in _split_into_numbered_lines(
        prepare(check_kind_and_transcode_to_utf_8(stream, encoding, name, chunk))
    ):
        if number is None:
            return
        place = 0 if begun else number - first
        while number is not None and place < len(found):
            line = found[place]
            begun.append(line)
            quotes += line.count(mark) if mark else 0
            place += 1
            if quotes % 2 == 0:  # otherwise this line end is inside quotes
                yield b"".join(begun)
                begun, quotes, number = [], 0, next(lines, None)
                place = place if number is None else number - first


def _split_into_numbered_lines(blocks: Iterator[TextOrSkippedLineCount]) -> Iterator[tuple[int, list[bytes]]]:
    rest, number = b"", 1
    for block in blocks:
        if isinstance(block, int):
            number += block
            continue
        for window in split_into_fixed_size_slices(block, LINES_BYTES):
            found = (rest + window).splitlines(keepends=True)
            rest = found.pop() if found and not found[-1].endswith(b"\n") else b""
            yield number, found
            number += len(found)
    yield number, [rest.removesuffix(_DOS_END)]


def _cut_into_record_pieces(
    blocks: Iterator[TextOrSkippedLineCount], quote: bytes | None, name: str
) -> Iterator[Piece]:
    rest, line, find_end = b"", 1, _find_first_record_end
    try:
        for block in blocks:
            if isinstance(block, int):
                line += block
                continue
            left, quotes = block, rest.count(quote) if quote else 0
            if len(rest) > len(block):  # a long record is a piece of its own
                find_end = _find_first_record_end
            while end := find_end(left, quote, quotes):
                data = b"".join((rest, memoryview(left)[:end]))
                piece = Piece(line, data, count_byte(data, b"\n"))
                yield piece
                line += piece.ends
                rest, left, quotes, find_end = b"", left[end:], 0, _find_last_record_end
            rest += left
            if len(rest) > MAX_RECORD_BYTES:
                yield Piece(line, rest, rest.count(b"\n"))
                raise record_too_long_error()
    except DecodingError as error:
        line += rest.count(b"\n")
        raise RefusedError(error.message, where=f"{name}:{line}", hint=error.hint, code="encoding_wrong") from error
    if rest := rest.removesuffix(_DOS_END):
        yield Piece(line, rest, rest.count(b"\n"))


def record_too_long_error() -> DecodingError:
    message = f"a record of more than {MAX_RECORD_BYTES:,} bytes"
    return DecodingError(message, "Check the declared quote and encoding, and that it is a text file.")


def _find_first_record_end(data: bytes, quote: bytes | None, quotes: int = 0) -> int:
    """Return the index after the first line end outside quotes, or 0. *quotes* quotes came before *data*."""
    start = end = 0
    while end := data.find(b"\n", end) + 1:
        quotes += data.count(quote, start, end) if quote else 0
        if quotes % 2 == 0:
            return end
        start = end
    return 0


def _find_last_record_end(data: bytes, quote: bytes | None, quotes: int = 0) -> int:
    size = len(data)
    if quote is None:
        return data.rfind(b"\n") + 1
    quotes += count_byte(data, quote)
    while end := data.rfind(b"\n", 0, size) + 1:
        quotes -= data.count(quote, end, size)
        if quotes % 2 == 0:
            return end
        size = max(0, data.rfind(quote, 0, end))
        quotes -= 1
    return 0


def count_byte(data: bytes, mark: bytes) -> int:
    """Count the byte *mark*. `bytes.replace` skips bytes that `bytes.count` examines one by one."""
    if data.count(mark, 0, _WINDOW) * _RARE > min(_WINDOW, len(data)):
        return data.count(mark)
    return len(data) - sum(len(window.replace(mark, b"")) for window in split_into_fixed_size_slices(data, _WINDOW))


def split_into_fixed_size_slices(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def check_kind_and_transcode_to_utf_8(
    stream: Readable, encoding: str, name: str, chunk: int, *, expected: Literal["XML"] | None = None
) -> Iterator[bytes]:
    """Yield the text of *stream* as UTF-8, without its byte order mark. A `DecodingError` comes after the text."""
    encoding = codecs.lookup(encoding).name.removesuffix("-sig")  # a byte order mark is optional in any case
    head = b""
    while len(head) < HEAD and (more := stream.read(HEAD - len(head))):
        head += more
    mark = _find_byte_order_mark_or_raise(head, encoding, name)
    raise_if_head_shows_other_kind(head, encoding, name=name, expected=expected)
    if encoding == "utf-8":
        yield head[len(mark) :]
        while raw := stream.read(chunk):
            yield raw
        return
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    offset = 0
    if encoding not in _MARKED:  # the codecs of these need the mark, the others would return it as text
        offset, head = len(mark), head[len(mark) :]
    raw, final, search = head, False, MisdeclaredUtf8Search(encoding)
    while not final:
        raw = raw or stream.read(chunk)
        final = not raw
        state = decoder.getstate()
        try:
            text = decoder.decode(raw, final)
        except UnicodeDecodeError as error:
            decoder.setstate(state)
            start = error.start - len(state[0])
            yield from _encode_as_utf_8_blocks(decoder.decode(raw[: max(0, start)]), chunk)
            message, hint = f"byte {offset + start} of the file (from 0) is not {encoding}", _ASK
            if final:  # only then is a character incomplete
                message = f"the file ends in the middle of a character, at byte {offset + start} (from 0)"
                hint = f"It is truncated or still being written: fetch it again. If it is whole, it is not {encoding}."
            raise DecodingError(message, hint) from error
        search.add(raw, text, final=final)
        yield from _encode_as_utf_8_blocks(text, chunk)
        offset += len(raw)
        raw = b""
    if search.is_found:
        raise DecodingError(f"the file is in UTF-8, and {encoding} is declared", DECLARE_UTF_8_HINT)


def _encode_as_utf_8_blocks(text: str, size: int) -> Iterator[bytes]:
    """Encode *text* as UTF-8, *size* bytes at a time: it may be three times as long as in its encoding."""
    data = text.encode()
    for start in range(0, len(data), size):
        yield data[start : start + size]


def _find_byte_order_mark_or_raise(head: bytes, encoding: str, name: str) -> bytes:
    for mark, (declare, allowed) in BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            if encoding not in allowed:
                message = f"the file begins with the byte order mark of {declare}, but {encoding} is declared"
                raise RefusedError(
                    message, where=f"{name}:1", hint=f"Declare encoding: {declare}", code="encoding_wrong"
                )
            return mark
    if encoding in _MARKED and head:
        hint = f"Declare encoding: {_MARKED[encoding]}." if b"\0" in head else _ASK  # half of the bytes of most texts
        raise RefusedError(
            f"the {encoding} byte order mark is missing", where=f"{name}:1", hint=hint, code="encoding_wrong"
        )
    return b""


_LONGEST = 64  # bytes: a row end of 8 characters in any encoding, and an end mark


def is_last_row_end_missing(path: Openable, encoding: str, row_end: str | None) -> bool:
    """Return whether the last row lacks *row_end*: None is LF or CRLF, empty is none. gzip has its own."""
    if row_end == "":
        return False
    ends = [row_end or "\n"]
    if ends[0].endswith("\n"):
        ends.append(f"{ends[0][:-1]}\r\n")
    with path.open("rb") as file:
        if GZIP.magic(file.read(2)):
            return False
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST))
        tail = file.read()
    possible = [
        text.encode(form)
        for form in _encodings_of_either_byte_order(encoding)
        for end in ends
        for text in (end, end + "\x1a")
    ]
    return not tail.endswith(tuple(possible))


def _encodings_of_either_byte_order(encoding: str) -> list[str]:
    name = codecs.lookup(encoding).name.removesuffix("-sig")
    return [f"{name}-le", f"{name}-be"] if name in {"utf-16", "utf-32"} else [name]


def skip_preamble_lines(blocks: Iterator[bytes], lines: int) -> Iterator[TextOrSkippedLineCount]:
    left = lines
    for block in blocks:
        start = 0
        while left and (end := block.find(b"\n", start) + 1):
            left -= 1
            start = end
        if not left:
            yield lines
            yield block[start:]
            break
    yield from blocks


_END_OF_LAST_LINE = b"\r\n\x1a"  # the last byte ends files of DOS


class CommentRecognizer:
    """Recognizes comments by the text with which their lines begin, and counts them.

    Those with as many delimiters as a row are counted on their own, because they may be rows. *fields_of_rows* has the
    numbers of fields that rows have; by default, it is that of the first line that is no comment.
    """

    def __init__(
        self, prefix: str, delimiter: str, leniencies: LeniencyCounts, fields_of_rows: Iterable[int] = ()
    ) -> None:
        self._begin, self._delimiter, self._leniencies = prefix.encode(), delimiter.encode(), leniencies
        self._delimiters_of_rows = {fields - 1 for fields in fields_of_rows}
        self._uncounted = Counter[int]()

    def recognize_and_count_comment(self, line: bytes) -> bool:
        is_comment = line.startswith(self._begin)
        if is_comment:
            self._uncounted[line.count(self._delimiter)] += 1
        elif self._delimiters_of_rows or not line.strip():
            return False
        else:
            self._delimiters_of_rows.add(line.count(self._delimiter))
        if self._delimiters_of_rows:
            self._add_comments_to_leniencies()
        return is_comment

    def _add_comments_to_leniencies(self) -> None:
        for delimiters, count in self._uncounted.items():
            is_like_row = delimiters > 0 and delimiters in self._delimiters_of_rows
            self._leniencies.add("commented_row" if is_like_row else "comment", count)
        self._uncounted.clear()


def skip_comment_lines(
    blocks: Iterator[TextOrSkippedLineCount], comments: CommentRecognizer, quote: str | None
) -> Iterator[TextOrSkippedLineCount]:
    """Leave out the lines that are comments, except inside quotes."""
    return _skip_matching_lines(blocks, comments.recognize_and_count_comment, quote)


def skip_blank_lines(
    blocks: Iterator[TextOrSkippedLineCount],
    which: BlankLines,
    quote: str | None,
    *,
    blanks: str,
    leniencies: LeniencyCounts,
) -> Iterator[TextOrSkippedLineCount]:
    """Leave out lines of *blanks* alone, at the end or everywhere, except inside quotes."""
    empty = blanks.encode() + b"\r"

    def is_blank(line: bytes) -> bool:
        blank = not line.strip(empty)
        leniencies.add("blank", blank)
        return blank

    if which == "skip":
        return _skip_matching_lines(
            blocks, is_blank, quote, at_end=lambda rest: not rest.strip(empty + _END_OF_LAST_LINE)
        )
    return _skip_blank_lines_at_end(blocks, blanks.encode() + _END_OF_LAST_LINE, leniencies)


def _skip_blank_lines_at_end(
    blocks: Iterator[TextOrSkippedLineCount], empty: bytes, leniencies: LeniencyCounts
) -> Iterator[TextOrSkippedLineCount]:
    held = b""
    for block in blocks:
        if isinstance(block, int):
            yield held
            yield block
            held = b""
            continue
        text = held + block
        end = len(text.rstrip(empty))
        yield text[:end]
        held = text[end:]
        if len(held) > MAX_RECORD_BYTES:
            raise record_too_long_error()
    last, feed, rest = held.partition(b"\n")
    yield last + feed
    rest = rest.rstrip(b"\x1a")
    leniencies.add("blank", rest.count(b"\n") + (bool(rest) and not rest.endswith(b"\n")))


def _skip_matching_lines(
    blocks: Iterator[TextOrSkippedLineCount],
    is_left_out: Callable[[bytes], bool],
    quote: str | None,
    at_end: Callable[[bytes], bool] | None = None,
) -> Iterator[TextOrSkippedLineCount]:
    """Leave out some lines; *at_end* judges the rest after the last line end."""
    mark = quote.encode() if quote else None
    rest, quotes = b"", 0
    for block in blocks:
        if isinstance(block, int):
            yield block
            continue
        text = b""
        for window in split_into_fixed_size_slices(block, LINES_BYTES):
            *lines, rest = (rest + window).split(b"\n")
            kept = [text]
            for line in lines:
                if quotes % 2 == 0 and is_left_out(line):
                    yield b"".join(kept)
                    yield 1
                    kept = []
                else:
                    quotes += line.count(mark) if mark else 0
                    kept += (line, b"\n")
            text = b"".join(kept)
        yield text
        if len(rest) > MAX_RECORD_BYTES:
            raise record_too_long_error()
    if quotes % 2 or not (at_end or is_left_out)(rest):
        yield rest
