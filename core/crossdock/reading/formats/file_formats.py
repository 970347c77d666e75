"""The layouts of files by their kind, and the reader of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import polars as pl
from pydantic import Discriminator, Tag

from crossdock.reading.formats import delimited_files
from crossdock.reading.formats.compression import Openable
from crossdock.reading.formats.delimited_format import DelimitedFormat
from crossdock.reading.formats.file_ends import is_cut
from crossdock.reading.formats.fixed_width_files import FixedWidthFormat
from crossdock.reading.formats.fixed_width_rows import read_fixed_width
from crossdock.reading.formats.leniencies import Leniencies
from crossdock.reading.formats.polars_parser import LINE
from crossdock.reading.formats.sheet_files import SheetFormat, read_sheet

_DELIMITED = "delimited"


def _kind(value: Any) -> Any:
    return value.get("kind", _DELIMITED) if isinstance(value, Mapping) else getattr(value, "kind", _DELIMITED)


FileFormat = Annotated[
    Annotated[DelimitedFormat, Tag(_DELIMITED)]
    | Annotated[FixedWidthFormat, Tag("fixed_width")]
    | Annotated[SheetFormat, Tag("sheet")],
    Discriminator(_kind),
]
"""The layout of a file; without ``kind``, of a delimited one."""


def read_rows(
    path: Openable,
    layout: FileFormat,
    *,
    name: str,
    batch_rows: int = 100_000,
    leniencies: Leniencies | None = None,
) -> Iterator[pl.DataFrame]:
    """The rows of a file in its order; see the reader of its format.

    Nothing that was read may have an effect before the iterator has ended, as a fault may be found at the end.

    Args:
        leniencies: Counts what is read only because *layout* declares it.

    Raises:
        RefusedError: While iterating, at the first deviation from *layout*.
    """
    if isinstance(layout, DelimitedFormat):
        return delimited_files.read_rows(path, layout, name=name, batch_rows=batch_rows, leniencies=leniencies)
    if isinstance(layout, SheetFormat):
        return read_sheet(path, layout, name=name, batch_rows=batch_rows, leniencies=leniencies)
    return read_fixed_width(path, layout, name=name, batch_rows=batch_rows, leniencies=leniencies)


def read_lines(path: Openable, layout: FileFormat, lines: Sequence[int], *, name: str) -> Iterator[pl.DataFrame]:
    """The rows that begin at *lines* (ascending) of a file that `read_rows` has read to its end."""
    if isinstance(layout, DelimitedFormat) and layout.record_types is None:
        yield from delimited_files.read_lines(path, layout, lines, name=name)
        return
    wanted = pl.Series(lines, dtype=pl.UInt64)
    if not len(wanted):
        return
    for frame in read_rows(path, layout, name=name):
        if (found := frame.filter(pl.col(LINE).is_in(wanted.implode()))).height:
            yield found
        if frame.height and frame[LINE][-1] >= wanted[-1]:
            return


def looks_cut(path: Openable, layout: FileFormat) -> bool:
    """Whether a file may have been cut without a trace in its rows: it marks no end, and its last row lacks its own."""
    if layout.marks_end or isinstance(layout, SheetFormat):
        return False
    return is_cut(path, layout.encoding, layout.row_end)
