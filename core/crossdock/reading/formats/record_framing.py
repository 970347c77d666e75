"""Records as bytes: of one length, with an end, or with descriptor words before them (IBM, DFSMS Using Data Sets)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from crossdock.errors import RefusedError
from crossdock.reading.formats.decoding_into_record_pieces import MAX_RECORD_BYTES
from crossdock.reading.wrappers.wrapper import Readable

_CHUNK_BYTES = 1 << 20
_WORD = 4
_SPANNED = {1, 2, 3}  # the first, the last and other segments
_EXTENDED = 0x80
_CUT = "The file is truncated or still being written: fetch it again in binary mode."
_WORDS = (
    "Were the words left out, or the file translated in transfer? Fetch it in binary mode with its record descriptor"
    " words, or declare another line_end."
)

FramedRecord = tuple[int, bytes]
"""The place of a record in the file, in bytes from 0, and its bytes."""


class ByteStream:
    """Reads exact numbers of bytes, and names places in errors."""

    def __init__(self, stream: Readable, name: str) -> None:
        self._stream, self._name = stream, name
        self._data, self._at, self._before = b"", 0, 0
        self.record_number = 0
        """The number of the last record, from 1."""

    @property
    def offset(self) -> int:
        return self._before + self._at

    def take(self, size: int) -> bytes:
        """Return the next *size* bytes; fewer only at the end of the file."""
        end = self._at + size
        if end > len(self._data):
            self._fill(size)
            end = self._at + size
        found = self._data[self._at : end]
        self._at += len(found)
        return found

    def peek(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            self._fill(size)
        return self._data[self._at : self._at + size]

    def take_until(self, end: bytes) -> tuple[bytes, bool]:
        """Return the bytes before *end*, which is passed over, and whether there was one."""
        searched = 0
        while (found := self._data.find(end, self._at + max(0, searched - len(end)))) < 0:
            size = len(self._data) - self._at
            if size > MAX_RECORD_BYTES:
                self.raise_error(f"a record of more than {MAX_RECORD_BYTES:,} bytes", self.offset, "Check line_end.")
            self._fill(size + 1)
            if len(self._data) - self._at == size:
                return self.take(size), False
            searched = size
        data, self._at = self._data[self._at : found], found + len(end)
        return data, True

    def raise_error(self, message: str, offset: int, hint: str = _CUT) -> NoReturn:
        where = f"{self._name}:{self.record_number}"
        raise RefusedError(
            f"{message}, at byte {offset} of the file (from 0)", where=where, hint=hint, code="file_damaged"
        )

    def _fill(self, size: int) -> None:
        parts = [self._data[self._at :]]
        held = len(parts[0])
        while held < size and (part := self._stream.read(_CHUNK_BYTES)):
            parts.append(part)
            held += len(part)
        self._before += self._at
        self._data, self._at = b"".join(parts), 0


def records_of_fixed_length(stream: ByteStream, length: int, ends: Sequence[bytes]) -> Iterator[FramedRecord]:
    """Yield records of *length* bytes, each followed by one of *ends*, the same in the whole file."""
    end = b""
    while data := stream.take(length):
        stream.record_number += 1
        offset = stream.offset - len(data)
        if len(data) < length:
            stream.raise_error(f"the file ends after {len(data):,} of the {length:,} bytes of a record", offset)
        if ends:
            end = end or next((each for each in ends if stream.peek(len(each)) == each), b"")
            found = stream.take(len(end))
            if (not end or found != end) and (found or stream.peek(1)):
                hint = "The length of the copybook or of the layout is wrong, or line_end is."
                stream.raise_error(f"no line end after the {length:,} bytes of the record", offset + length, hint)
        yield offset, data


def records_before_line_ends(stream: ByteStream, ends: Sequence[bytes]) -> Iterator[FramedRecord]:
    """Yield what is before each end of line: the last of *ends*, or in the whole file the first, which ends with it."""
    plain, has_return = ends[-1], None
    while stream.peek(1):
        offset = stream.offset
        stream.record_number += 1
        data, is_ended = stream.take_until(plain)
        if len(ends) > 1 and is_ended:
            returned = data.endswith(ends[0].removesuffix(plain))
            if has_return not in {None, returned}:
                hint = "Were files of two systems joined? Ask the sender to send them separately."
                stream.raise_error("the line ends in another way than those before it", offset + len(data), hint)
            has_return = returned
            data = data.removesuffix(ends[0].removesuffix(plain)) if returned else data
        yield offset, data


def records_with_descriptor_words(stream: ByteStream) -> Iterator[FramedRecord]:
    """Yield records that follow a record descriptor word each."""
    while word := stream.take(_WORD):
        yield _record_after_descriptor_word(stream, word, None)


def records_in_blocks(stream: ByteStream) -> Iterator[FramedRecord]:
    """Yield the records of blocks, which begin with a block descriptor word each."""
    while word := stream.take(_WORD):
        offset = stream.offset - len(word)
        if len(word) < _WORD:
            stream.raise_error("the file ends in the middle of a block descriptor word", offset)
        is_extended = bool(word[0] & _EXTENDED)
        size = int.from_bytes(word, "big") & 0x7FFFFFFF if is_extended else int.from_bytes(word[:2], "big")
        if size < 2 * _WORD or (not is_extended and word[2:] != b"\0\0"):
            stream.raise_error(f"X'{word.hex().upper()}' is not a block descriptor word", offset, _WORDS)
        end = offset + size
        while stream.offset < end:
            yield _record_after_descriptor_word(stream, stream.take(_WORD), end)


def _record_after_descriptor_word(stream: ByteStream, word: bytes, block_end: int | None) -> FramedRecord:
    stream.record_number += 1
    offset, size = stream.offset, int.from_bytes(word[:2], "big")
    if len(word) < _WORD or size < _WORD or word[2:] != b"\0\0" or (block_end and offset - _WORD + size > block_end):
        _raise_descriptor_word_error(stream, word, offset - len(word), size)
    data = stream.take(size - _WORD)
    if len(data) < size - _WORD:
        states = (
            f"{_descriptor_word_text(word)} states {size - _WORD:,} bytes, beyond the end of the file: {len(data):,} "
            "follow"
        )
        stream.raise_error(states, offset - _WORD)
    return offset, data


def _raise_descriptor_word_error(stream: ByteStream, word: bytes, offset: int, size: int) -> NoReturn:
    if len(word) < _WORD:
        stream.raise_error("the file ends in the middle of a record descriptor word", offset)
    if size > _WORD and word[3] == 0 and word[2] in _SPANNED:
        hint = "Ask for a file without spanned records (RECFM=VB, and not VBS)."
        stream.raise_error(f"{_descriptor_word_text(word)} is that of a segment of a spanned record", offset, hint)
    if size < _WORD or word[2:] != b"\0\0":
        stream.raise_error(f"X'{word.hex().upper()}' is not a record descriptor word", offset, _WORDS)
    stream.raise_error(f"{_descriptor_word_text(word)} states a record beyond the end of its block", offset, _WORDS)


def _descriptor_word_text(word: bytes) -> str:
    return f"the record descriptor word X'{word.hex().upper()}'"


def records_of_computed_size(stream: ByteStream, size_of: Callable[[ByteStream], int]) -> Iterator[FramedRecord]:
    """Yield records whose size depends on what they hold; *size_of* finds it without taking bytes."""
    while stream.peek(1):
        stream.record_number += 1
        offset, size = stream.offset, size_of(stream)
        data = stream.take(size)
        if len(data) < size:
            stream.raise_error(f"the file ends after {len(data):,} of the {size:,} bytes of a record", offset)
        yield offset, data
