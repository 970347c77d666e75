"""The formats of files: each is one module and one entry here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Union

import polars as pl
from pydantic import Discriminator, Tag

from crossdock.reading.formats.columnar_files import ArrowReader, ParquetReader
from crossdock.reading.formats.delimited_files import DelimitedReader
from crossdock.reading.formats.edi_files import EdifactReader, X12Reader
from crossdock.reading.formats.fixed_width_rows import FixedWidthReader
from crossdock.reading.formats.format_reader import FileLayout, FormatReader
from crossdock.reading.formats.json_documents import JsonReader
from crossdock.reading.formats.json_lines import JsonLinesReader
from crossdock.reading.formats.leniencies import Leniencies
from crossdock.reading.formats.sheet_files import SheetReader
from crossdock.reading.formats.whole_files import WholeFileReader
from crossdock.reading.formats.xml_files import XmlReader
from crossdock.reading.wrappers.wrapper import Openable

DEFAULT = "delimited"
FORMATS: Mapping[str, FormatReader[Any]] = {
    "delimited": DelimitedReader(),
    "fixed_width": FixedWidthReader(),
    "sheet": SheetReader(),
    "json_lines": JsonLinesReader(),
    "json": JsonReader(),
    "xml": XmlReader(),
    "x12": X12Reader(),
    "edifact": EdifactReader(),
    "whole_file": WholeFileReader(),
    "parquet": ParquetReader(),
    "arrow": ArrowReader(),
}


def _kind(value: Any) -> Any:
    return value.get("kind", DEFAULT) if isinstance(value, Mapping) else getattr(value, "kind", DEFAULT)


if TYPE_CHECKING:
    FileFormat = FileLayout
else:
    FileFormat = Annotated[
        Union[tuple(Annotated[reader.layout, Tag(kind)] for kind, reader in FORMATS.items())],  # noqa: UP007  it is made
        Discriminator(_kind),
    ]
"""The layout of a file; without ``kind``, of a delimited one."""


def reader_of(layout: FileFormat) -> FormatReader[Any]:
    return FORMATS[_kind(layout)]


def read_rows(
    path: Openable,
    layout: FileFormat,
    *,
    name: str,
    batch_rows: int = 100_000,
    leniencies: Leniencies | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file, as `FormatReader.rows` describes."""
    return reader_of(layout).rows(path, layout, name=name, batch_rows=batch_rows, leniencies=leniencies)


def read_lines(path: Openable, layout: FileFormat, lines: Sequence[int], *, name: str) -> Iterator[pl.DataFrame]:
    return reader_of(layout).rows_at(path, layout, lines, name=name)


def looks_cut(path: Openable, layout: FileFormat) -> bool:
    return reader_of(layout).looks_cut(path, layout)
