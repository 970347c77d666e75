"""Records in chunks of bounded size in memory."""

from __future__ import annotations

from collections.abc import Iterator

from crossdock.delta.records_of_rows import KeyedRecord

MAX_BYTES = 8 << 20  # of the records of a chunk
_CELL_BYTES = 64  # for each cell, in addition to its text; commas count as cells: a JSON text has that many values


def in_chunks(reads: Iterator[KeyedRecord], most: int) -> Iterator[list[KeyedRecord]]:
    """Yield *reads* in lists of *most* records, or fewer if records are large."""
    chunk, free_bytes = list[KeyedRecord](), MAX_BYTES
    for read in reads:
        chunk.append(read)
        cells = [cell or "" for row in read.record.rows for cell in row.values()]
        free_bytes -= sum(_CELL_BYTES * (1 + cell.count(",")) + len(cell) for cell in cells)
        if len(chunk) == most or free_bytes <= 0:
            yield chunk
            chunk, free_bytes = [], MAX_BYTES
    if chunk:
        yield chunk
