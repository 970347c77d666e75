"""Records in chunks that fit into memory, however large a record is."""

from __future__ import annotations

from collections.abc import Iterator

from crossdock.delta.scan import KeyedRecord

MAX_BYTES = 8 << 20
"""Of the records of a chunk."""
_CELL_BYTES = 64  # of each cell, beside its text


def in_chunks(reads: Iterator[KeyedRecord], most: int) -> Iterator[list[KeyedRecord]]:
    """*reads* in lists of *most*, and of fewer where records are large."""
    chunk, room = list[KeyedRecord](), MAX_BYTES
    for read in reads:
        chunk.append(read)
        room -= sum(_CELL_BYTES + len(cell or "") for row in read.record.rows for cell in row.values())
        if len(chunk) == most or room <= 0:
            yield chunk
            chunk, room = [], MAX_BYTES
    if chunk:
        yield chunk
