"""The formats of files: each is one module and one entry here. A format is imported when a config declares it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Union

import polars as pl
from pydantic import Discriminator, GetPydanticSchema, Tag, TypeAdapter, ValidationInfo
from pydantic_core import core_schema

from crossdock.reading.formats.format_reader import FileLayout, FormatReader
from crossdock.reading.formats.leniency_counts import Leniencies
from crossdock.reading.wrappers.wrapper import Openable

DEFAULT = "delimited"
FORMATS: Mapping[str, tuple[str, str]] = {  # kind -> module and reader
    "delimited": ("delimited_files", "DelimitedReader"),
    "fixed_width": ("fixed_width_rows", "FixedWidthReader"),
    "sheet": ("sheet_files", "SheetReader"),
    "json_lines": ("json_lines", "JsonLinesReader"),
    "json": ("json_documents", "JsonReader"),
    "xml": ("xml_files", "XmlReader"),
    "x12": ("edi_files", "X12Reader"),
    "edifact": ("edi_files", "EdifactReader"),
    "whole_file": ("whole_file_as_one_record", "WholeFileReader"),
    "parquet": ("parquet_and_arrow_files", "ParquetReader"),
    "arrow": ("parquet_and_arrow_files", "ArrowReader"),
}


@cache
def _reader(kind: str) -> FormatReader[Any]:
    module, name = FORMATS[kind]
    reader: FormatReader[Any] = getattr(import_module(f"crossdock.reading.formats.{module}"), name)()
    return reader


def _kind_of_layout(value: Any) -> Any:
    return value.get("kind", DEFAULT) if isinstance(value, Mapping) else getattr(value, "kind", DEFAULT)


def _validate_layout(kind: str, value: Any, info: ValidationInfo) -> FileLayout:
    layout: FileLayout = _reader(kind).layout.model_validate(value, context=info.context)
    return layout


def _pydantic_core_schema(_source: Any, _handler: Any) -> core_schema.CoreSchema:
    choices: dict[Any, Mapping[str, Any]] = {
        kind: core_schema.with_info_plain_validator_function(partial(_validate_layout, kind)) for kind in FORMATS
    }
    return core_schema.tagged_union_schema(choices, _kind_of_layout)


def _json_schema(_schema: Any, handler: Any) -> Any:
    layouts = tuple(Annotated[_reader(kind).layout, Tag(kind)] for kind in FORMATS)
    every: Any = Annotated[Union[layouts], Discriminator(_kind_of_layout)]  # noqa: UP007  it is made
    return handler(TypeAdapter(every).core_schema)


if TYPE_CHECKING:
    FileFormat = FileLayout
    """The layout of a file; without ``kind``, of a delimited one."""
else:
    FileFormat = Annotated[FileLayout, GetPydanticSchema(_pydantic_core_schema, _json_schema)]


def reader_of(layout: FileFormat) -> FormatReader[Any]:
    return _reader(_kind_of_layout(layout))


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


def read_rows_at_lines(
    path: Openable, layout: FileFormat, lines: Sequence[int], *, name: str
) -> Iterator[pl.DataFrame]:
    return reader_of(layout).rows_at_lines(path, layout, lines, name=name)


def looks_cut(path: Openable, layout: FileFormat) -> bool:
    return reader_of(layout).looks_cut(path, layout)
