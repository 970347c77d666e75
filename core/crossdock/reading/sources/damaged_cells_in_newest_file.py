"""Warnings about the newest file of a pattern: cells that an earlier program seems to have damaged."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from io import BytesIO

import polars as pl

from crossdock.errors import CrossdockError
from crossdock.reading.formats.file_formats import FileFormat, read_rows
from crossdock.reading.formats.suspicious_cells import find_suspicious_cells_by_column, lost_leading_zero_warnings
from crossdock.reading.transport.file_store import FileStore, RemoteFile
from crossdock.reading.wrappers.wrapper import InMemoryFile
from crossdock.values.raw_rows_and_records import LINE

MOST_BYTES = 16 << 20
"""The largest file that is examined."""
_MOST_ROWS = 100_000


def warnings_about_newest(store: FileStore, files: Collection[RemoteFile], layout: FileFormat) -> Iterator[str]:
    """Yield what looks damaged in the first rows of the newest file; nothing if it is too large or is refused."""
    newest = max(files, key=lambda file: (file.mtime, file.name), default=None)
    if newest is None or newest.size > MOST_BYTES:
        return
    try:
        content = BytesIO()
        store.fetch(newest, content)
        with closing(read_rows(InMemoryFile(content.getvalue()), layout, name=newest.name)) as frames:  # type: ignore[type-var]  # a generator
            found = list[pl.DataFrame]()
            for frame in frames:
                found.append(frame)
                if sum(each.height for each in found) >= _MOST_ROWS:
                    break
            rows = pl.concat(found)
    except CrossdockError:
        return  # the run reports why
    present = [name for name in rows.columns if name != LINE]
    for warning in (
        *map(str, find_suspicious_cells_by_column(rows, present)),
        *lost_leading_zero_warnings(rows, present),
    ):
        yield f"{newest.name}: {warning}"
