"""Text as frames with a row for each line, for records that are lines or have a fixed length."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import NoReturn

import polars as pl

from crossdock.errors import RefusedError
from crossdock.reading.formats.compression import Readable
from crossdock.reading.formats.fixed_columns import TEXT
from crossdock.reading.formats.fixed_width_files import FixedWidthFormat
from crossdock.reading.formats.left_out_lines import without_blank_lines, without_preamble
from crossdock.reading.formats.leniencies import Leniencies
from crossdock.reading.formats.polars_parser import LINE
from crossdock.reading.formats.text_decoding import Block, DecodingError, Piece, Prepare, as_text, pieces
from crossdock.reading.formats.text_encodings import FILLER, Widths

_NEL = "\x85".encode()
_CONTROLS = bytes([*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F])
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff]|\r(?!\n)")
_RECORDS = 1 << 15  # records that are Python objects at the same time
_LINE_BREAK = re.compile(b"[\r\n]")
_MAY_BE_ODD = re.compile(b"\xc2[\x80-\x9f]|\xef\xbb\xbf")
_BINARY = "Check that it is a text file in the declared encoding, without packed or binary numbers."
_TWO_SYSTEMS = "Were files of two systems joined? Ask the sender to send them separately."


def record_pieces(
    stream: Readable, layout: FixedWidthFormat, *, name: str, chunk: int, leniencies: Leniencies | None = None
) -> Iterator[Piece]:
    """Yield the records of *stream* as lines of UTF-8, many at a time, as `pieces` does.

    Where positions count bytes, `FILLER` follows each character of several bytes.
    """
    prepare = _preparation(layout, Leniencies() if leniencies is None else leniencies)
    return pieces(stream, layout.encoding, None, name=name, chunk=chunk, prepare=prepare)


class RecordLines:
    def __init__(self, name: str, *, crlf: bool) -> None:
        self._name, self._crlf = name, crlf

    def frame(self, piece: Piece) -> tuple[pl.DataFrame, RefusedError | None]:
        """Return the lines of *piece* without their ends as `TEXT` and `LINE`.

        The frame stops before the first line that is not text; the error then says why.

        Raises:
            RefusedError: For a control character, or a line end that differs from those before.
        """
        text, fault = as_text(piece, None)
        self._check_characters(piece, text)
        if self._crlf and text:
            self._check_line_ends(piece, text)
            text = text.replace("\r\n", "\n")
        elif "\r" in text:
            self._refuse_line_end(piece, text.count("\n", 0, text.index("\r")), "CRLF", "LF")
        lines = pl.Series(TEXT, [text.removesuffix("\n")], pl.String).str.split("\n").explode()
        frame = lines.head(len(lines) if text else 0).to_frame()
        numbers = pl.int_range(piece.line, piece.line + frame.height, dtype=pl.UInt64, eager=True)
        error = fault and self._error(
            f"byte {fault.byte:02X} is not utf-8",
            fault.line,
            fault.column,
            hint=fault.hint,
        )
        return frame.with_columns(numbers.alias(LINE)), error or None

    def refuse(self, message: str, line: int, column: int | None = None, *, hint: str) -> NoReturn:
        raise self._error(message, line, column, hint=hint)

    def _error(self, message: str, line: int, column: int | None = None, *, hint: str) -> RefusedError:
        where = f"{self._name}:{line}" if column is None else f"{self._name}:{line}:{column}"
        return RefusedError(message, where=where, hint=hint)

    def _check_characters(self, piece: Piece, text: str) -> None:
        data = piece.data
        is_plain = len(data.translate(None, _CONTROLS)) == len(data) and b"\r" not in data
        if is_plain and not ((b"\xc2" in data or b"\xef" in data) and _MAY_BE_ODD.search(data)):
            return
        if odd := _ODD.search(text):
            found, hint = f"control character U+{ord(odd.group()):04X}", _BINARY
            if odd.group() == "\r":
                found, hint = "a CR without LF", "Ask the sender to end lines with LF or CRLF."
            elif odd.group() == "\ufeff":
                found, hint = "a byte order mark inside the file", _TWO_SYSTEMS
            begin = text.rfind("\n", 0, odd.start()) + 1
            self.refuse(found, piece.line + text.count("\n", 0, begin), odd.start() - begin + 1, hint=hint)

    def _check_line_ends(self, piece: Piece, text: str) -> None:
        if text.count("\r\n") == text.count("\n"):
            return
        ends = [line.endswith("\r") for line in text.split("\n")]
        self._refuse_line_end(piece, ends.index(False), "LF", "CRLF")

    def _refuse_line_end(self, piece: Piece, line: int, found: str, before: str) -> NoReturn:
        self.refuse(
            f"the line ends with {found}, the lines before it with {before}", piece.line + line, hint=_TWO_SYSTEMS
        )


def _preparation(layout: FixedWidthFormat, leniencies: Leniencies) -> Prepare:
    def prepare(blocks: Iterator[bytes]) -> Iterator[Block]:
        lines = _widened(blocks, layout.encoding) if layout.count == "bytes" else blocks
        if layout.line_end == "nel":
            lines = _nel_as_lf(lines)
        elif layout.line_end == "none" and layout.length:
            lines = _cut(lines, layout.length)
        found: Iterator[Block] = without_preamble(lines, layout.skip_lines) if layout.skip_lines else lines
        if layout.blank_lines is None or layout.blank_lines == "refuse":
            return found
        return without_blank_lines(found, layout.blank_lines, None, blanks=" ", leniencies=leniencies)

    return prepare


def _widened(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Fill up characters so that their positions are those of bytes. Bytes that are not text are passed on."""
    decoder, widths = codecs.getincrementaldecoder("utf-8")("surrogateescape"), Widths(encoding)
    for block in blocks:
        text = decoder.decode(block)
        if FILLER in text:
            raise DecodingError("U+FDD0, which is no character", _BINARY)
        yield text.translate(widths).encode(errors="surrogateescape")
    yield decoder.decode(b"", final=True).encode(errors="surrogateescape")


def _nel_as_lf(blocks: Iterator[bytes]) -> Iterator[bytes]:
    held = b""
    for block in blocks:
        data = held + block
        held = _NEL[:1] if data.endswith(_NEL[:1]) else b""
        data = data[: len(data) - len(held)]
        fault = _LINE_BREAK.search(data)
        yield data[: fault.start() if fault else None].replace(_NEL, b"\n")
        if fault:
            raise _line_break()
    yield held


def _cut(blocks: Iterator[bytes], length: int) -> Iterator[bytes]:
    """Cut records of *length* characters into lines. Bytes that are not text are passed on."""
    decoder, held = codecs.getincrementaldecoder("utf-8")("surrogateescape"), ""
    for block in blocks:
        text = held + decoder.decode(block)
        fault = _LINE_BREAK.search(block)
        end = re.search("[\r\n]|$", text).start() if fault else len(text)  # type: ignore[union-attr]  # it matches
        end -= end % length
        for first in range(0, end, length * _RECORDS):
            starts = range(first, min(first + length * _RECORDS, end), length)
            lines = "".join([f"{text[start : start + length]}\n" for start in starts])
            yield lines.encode(errors="surrogateescape")
        if fault:
            raise _line_break()
        held = text[end:]
    yield (held + decoder.decode(b"", final=True)).encode(errors="surrogateescape")


def _line_break() -> DecodingError:
    return DecodingError(
        "a line break inside a record", "If records end with line breaks, declare line_end: line_feed."
    )
