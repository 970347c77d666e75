"""Declared row ends: conversion to text with one line for each row, and restoration of the cells.

Line breaks inside of a row become marks, which are control characters that no cell may hold.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from crossdock.reading.formats.text_decoding import DecodingError

_FREE = "".join(map(chr, range(0x0E, 0x1A)))  # the parser with polars uses others


class RowEnds:
    """The row ends of one file.

    A row end with LF that is not CRLF may also be CRLF in the file, but then in all rows. `marks` are the characters
    that replace LF and CR inside a row.
    """

    def __init__(self, end: str, delimiter: str) -> None:
        free = [mark for mark in _FREE if mark not in end and mark not in delimiter]
        self.marks = "".join(free[:2])
        self._reserved = free[:3]
        either = end.endswith("\n") and not end.endswith("\r\n")
        self._ends = [end, f"{end[:-1]}\r\n"] if either else [end]  # the ends that the file may have

    def lines(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Replace each row end by LF, and all other LF and CR by marks.

        Raises:
            DecodingError: After all text before it, if the text holds a mark, if CRLF and LF end different rows, or if
                it ends within a row end.
        """
        lf, cr, row = [mark.encode() for mark in self._reserved]
        declared = [end.encode() for end in self._ends]
        ends, held = declared, b""
        for block in blocks:
            data = held + block
            if len(ends) > 1 and (first := _first(data, ends)):
                ends, self._ends = [first], [first.decode()]
            text, fault = self._until_fault(data, [end for end in declared if end not in ends])
            text = text.replace(ends[0], row) if len(ends) == 1 else text
            kept = 0 if fault else _begun(text[text.rfind(row) + 1 :], declared)
            held = text[len(text) - kept :]
            yield text[: len(text) - kept].replace(b"\n", lf).replace(b"\r", cr).replace(row, b"\n")
            if fault:
                raise fault
        if held:
            raise DecodingError("the file ends within a row end", "The file is truncated: fetch it again.")

    def restored(self, text: str) -> str:
        for mark, original in self._originals.items():
            text = text.replace(mark, original)
        return text

    def restored_frame(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(pl.col(pl.String).str.replace_many(self._originals))

    @property
    def _originals(self) -> dict[str, str]:
        lf, cr = list(self.marks)
        return {"\n": self._ends[0], lf: "\n", cr: "\r"}  # in quotes, a row end is text

    def _until_fault(self, data: bytes, others: list[bytes]) -> tuple[bytes, DecodingError | None]:
        places = {data.find(fault): fault for fault in [*others, *(mark.encode() for mark in self._reserved)]}
        places.pop(-1, None)
        if not places:
            return data, None
        at = min(places)
        if places[at] in others:
            hint = "Were files of two systems joined? Ask the sender to send them separately."
            return data[:at], DecodingError("row ends with LF and with CRLF in one file", hint)
        hint = "Check that it is a text file in the declared encoding."
        return data[:at], DecodingError(f"control character U+{ord(places[at]):04X}", hint)


def _first(data: bytes, ends: list[bytes]) -> bytes | None:
    places = {data.find(end): end for end in ends}
    places.pop(-1, None)
    return places[min(places)] if places else None


def _begun(tail: bytes, ends: list[bytes]) -> int:
    """Return how many of the last bytes of *tail* may begin a row end."""
    longest = max(map(len, ends)) - 1
    sizes = range(min(longest, len(tail)), 0, -1)
    return next((size for size in sizes if any(end.startswith(tail[-size:]) for end in ends)), 0)
