"""Lines of a file that are not rows: a preamble, comments and blank lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from crossdock.reading.formats.decoding_into_record_pieces import (
    LINES_BYTES,
    MAX_RECORD_BYTES,
    Block,
    fixed_size_slices,
    record_too_long_error,
)
from crossdock.reading.formats.leniency_counts import BlankLines, Leniencies


def without_preamble(blocks: Iterator[bytes], lines: int) -> Iterator[Block]:
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


_END = b"\r\n\x1a"  # the last byte ends files of DOS


class Comments:
    """Recognizes comments by the text with which their lines begin, and counts them.

    Those with as many delimiters as a row are counted on their own, because they may be rows. *fields_of_rows* has the
    numbers of fields that rows have; by default, it is that of the first line that is no comment.
    """

    def __init__(self, prefix: str, delimiter: str, leniencies: Leniencies, fields_of_rows: Iterable[int] = ()) -> None:
        self._begin, self._delimiter, self._leniencies = prefix.encode(), delimiter.encode(), leniencies
        self._delimiters_of_rows = {fields - 1 for fields in fields_of_rows}
        self._uncounted = Counter[int]()

    def is_comment(self, line: bytes) -> bool:
        is_comment = line.startswith(self._begin)
        if is_comment:
            self._uncounted[line.count(self._delimiter)] += 1
        elif self._delimiters_of_rows or not line.strip():
            return False
        else:
            self._delimiters_of_rows.add(line.count(self._delimiter))
        if self._delimiters_of_rows:
            self._count_by_delimiters()
        return is_comment

    def _count_by_delimiters(self) -> None:
        for delimiters, count in self._uncounted.items():
            is_like_row = delimiters > 0 and delimiters in self._delimiters_of_rows
            self._leniencies.add("commented_row" if is_like_row else "comment", count)
        self._uncounted.clear()


def without_comments(blocks: Iterator[Block], comments: Comments, quote: str | None) -> Iterator[Block]:
    """Leave out the lines that are comments, except inside quotes."""
    return _without_matching_lines(blocks, comments.is_comment, quote)


def without_blank_lines(
    blocks: Iterator[Block], which: BlankLines, quote: str | None, *, blanks: str, leniencies: Leniencies
) -> Iterator[Block]:
    """Leave out lines of *blanks* alone, at the end or everywhere, except inside quotes."""
    empty = blanks.encode() + b"\r"

    def is_blank(line: bytes) -> bool:
        blank = not line.strip(empty)
        leniencies.add("blank", blank)
        return blank

    if which == "skip":
        return _without_matching_lines(blocks, is_blank, quote, at_end=lambda rest: not rest.strip(empty + _END))
    return _without_blank_lines_at_end(blocks, blanks.encode() + _END, leniencies)


def _without_blank_lines_at_end(blocks: Iterator[Block], empty: bytes, leniencies: Leniencies) -> Iterator[Block]:
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


def _without_matching_lines(
    blocks: Iterator[Block],
    is_left_out: Callable[[bytes], bool],
    quote: str | None,
    at_end: Callable[[bytes], bool] | None = None,
) -> Iterator[Block]:
    """Leave out some lines; *at_end* judges the rest after the last line end."""
    mark = quote.encode() if quote else None
    rest, quotes = b"", 0
    for block in blocks:
        if isinstance(block, int):
            yield block
            continue
        text = b""
        for window in fixed_size_slices(block, LINES_BYTES):
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
