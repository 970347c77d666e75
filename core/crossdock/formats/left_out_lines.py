"""Lines of a file that are no rows: a preamble of some lines, and comments."""

from __future__ import annotations

from collections.abc import Iterator

from crossdock.formats.text_decoding import MAX_RECORD_BYTES, Block, too_long


def without_preamble(blocks: Iterator[bytes], lines: int) -> Iterator[Block]:
    """*blocks* without their first *lines* lines, whatever those hold."""
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


def without_comments(blocks: Iterator[Block], prefix: str, quote: str | None) -> Iterator[Block]:
    """*blocks* without the lines that begin with *prefix*; inside of quotes, no line is a comment.

    Raises:
        DecodingError: For an endless line.
    """
    begin, mark = prefix.encode(), quote.encode() if quote else None
    rest, quotes = b"", 0
    for block in blocks:
        if isinstance(block, int):
            yield block
            continue
        *lines, rest = (rest + block).split(b"\n")
        kept = list[bytes]()
        for line in lines:
            if quotes % 2 == 0 and line.startswith(begin):
                yield b"".join(kept)
                yield 1
                kept = []
            else:
                quotes += line.count(mark) if mark else 0
                kept += (line, b"\n")
        yield b"".join(kept)
        if len(rest) > MAX_RECORD_BYTES:
            raise too_long()
    if quotes % 2 or not rest.startswith(begin):
        yield rest
