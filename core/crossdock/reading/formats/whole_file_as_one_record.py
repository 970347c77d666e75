"""Files that are one record each, of which the name counts: ``ORD_17.csv.ack`` says that ``ORD_17.csv`` was taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

import polars as pl

from crossdock.reading.formats.file_formats import FileLayout, FormatReader, LeniencyCounts
from crossdock.reading.wrappers.wrapper import Openable
from crossdock.values.raw_rows_and_records import LINE

SHOWN_BYTES = 4_096


class WholeFileFormat(FileLayout):
    """A file that is one row, with the columns ``name``, ``stem`` (the name without its last ending) and ``text`` (the
    first 4,096 bytes, as UTF-8, without white space around them). It may be empty. Its name is hashed too.
    """

    kind: Literal["whole_file"]

    @property
    def reads_names(self) -> bool:
        return True


class WholeFileReader(FormatReader[WholeFileFormat]):
    """Reads the name of a file, and how it begins."""

    layout = WholeFileFormat

    def rows(
        self, path: Openable, layout: WholeFileFormat, *, name: str, batch_rows: int, leniencies: LeniencyCounts | None
    ) -> Iterator[pl.DataFrame]:
        del layout, batch_rows, leniencies
        with path.open("rb") as stream:
            text = stream.read(SHOWN_BYTES).decode("utf-8", "replace").strip()
        file = PurePosixPath(name)
        row = {"name": [file.name], "stem": [file.stem], "text": [text], LINE: [1]}
        yield pl.DataFrame(row, schema_overrides={LINE: pl.UInt64})

    def describe_cell_places(self, layout: WholeFileFormat, names: Sequence[str], line: int) -> Mapping[str, str]:
        del layout, line
        return dict.fromkeys(names, "the file")
