"""Parquet and Arrow files, as rows of text or as JSON objects. They are read in a process of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Annotated, Any, BinaryIO, Literal, TypeVar

import polars as pl
from pydantic import AfterValidator, Field

from crossdock.errors import RefusedError
from crossdock.reading.formats.file_formats import FileLayout, FormatReader, LeniencyCounts, validate_column_names
from crossdock.reading.formats.file_kind_and_encoding_mismatch import HEAD, raise_not_parquet_or_arrow_error
from crossdock.reading.formats.limited_process import (
    ProcessLimits,
    ReaderTask,
    cell_errors_as_file_refusals,
    run_reader_process,
)
from crossdock.reading.formats.parquet_and_arrow_reader_process import DAMAGED, TOO_MUCH
from crossdock.reading.wrappers.wrapper import Openable
from crossdock.values.raw_rows_and_records import JSON, LINE

_BASE_BYTES = 2 << 30
"""The memory that reading takes at most, besides the file, which is mapped; polars itself takes a gigabyte of it."""
_BASE_S, _BYTES_PER_S = 60, 1 << 17
"""The processor time that a file may take."""
_TASK = ReaderTask("parquet_and_arrow_reader_process", "the reader of Parquet and Arrow files", DAMAGED, TOO_MUCH)
_UNFINISHED = "It was cut, or is still being written: fetch it again."

Columns = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(validate_column_names)]


class ColumnarFormat(FileLayout):
    """What the layouts of Parquet and Arrow files have in common."""

    columns: Columns | None = None
    """The columns that are read; by default all."""
    floats: tuple[str, ...] = ()
    """Columns of floating-point numbers that are read, each as its shortest text; others are refused, as they cannot
    hold amounts exactly. With `objects`, paths such as ``lines.weight``."""
    objects: bool = False
    """Whether each row is a JSON object, whose members are named by dotted paths; needed for lists and objects."""

    @property
    def has_paths(self) -> bool:
        return self.objects


class ParquetFormat(ColumnarFormat):
    """A Parquet file."""

    kind: Literal["parquet"]

    @property
    def states_rows(self) -> bool:
        """Its footer, which is written last, states the number of rows."""
        return True


class ArrowFormat(ColumnarFormat):
    """A file in the format of Arrow IPC, also called Feather (version 2)."""

    kind: Literal["arrow"]


L = TypeVar("L", bound=ColumnarFormat)


class _ColumnarReader(FormatReader[L]):
    """`LINE` is the number of a row. A cut file is found, because the footer is at the end."""

    kind: Literal["parquet", "arrow"]
    what: str
    begin: bytes

    def rows(
        self, path: Openable, layout: L, *, name: str, batch_rows: int, leniencies: LeniencyCounts | None
    ) -> Iterator[pl.DataFrame]:
        del leniencies
        with self._opened_and_checked(path, name) as file:
            yield from _read_frames_from_process(file, self._make_reader_process_request(layout, batch_rows), name)

    def read_types_faults_and_row_count(
        self, path: Openable, *, name: str
    ) -> tuple[Mapping[str, str], Mapping[str, Sequence[str]], int]:
        """Return the types of columns, those that cannot be read as they are with what is wrong, and the stated rows.

        What is wrong is a column or member, a message, and a hint. Raises RefusedError.
        """
        with self._opened_and_checked(path, name) as file:
            request = self._make_reader_process_request(self.layout.model_validate({"kind": self.kind}), 1) | {
                "describe": True
            }
            with run_reader_process(_TASK, file, request, _process_limits(file)) as found:
                answer = next(iter(found))
                return answer["columns"], answer["faults"], answer["rows"]

    def _make_reader_process_request(self, layout: L, batch_rows: int) -> dict[str, Any]:
        own = {"columns": layout.columns, "floats": layout.floats, "objects": layout.objects, "kind": self.kind}
        return {**own, "batch_rows": batch_rows, "line": LINE, "json": JSON, "describe": False}

    @contextmanager
    def _opened_and_checked(self, path: Openable, name: str) -> Iterator[BinaryIO]:
        with path.open("rb") as file:
            self._raise_if_magic_number_wrong(file, name)
            with cell_errors_as_file_refusals(name):
                yield file

    def _raise_if_magic_number_wrong(self, file: BinaryIO, name: str) -> None:
        head = file.read(HEAD)
        if not head:
            raise RefusedError(
                "the file is empty", where=name, hint="Fetch it again, or ask the sender.", code="file_empty"
            )
        if not head.startswith(self.begin):
            raise_not_parquet_or_arrow_error(head, name=name, expected=self.what)
        file.seek(max(len(self.begin), file.seek(0, 2) - len(self.begin)))
        if self.kind == "arrow" and file.read() != self.begin:
            raise RefusedError("the file has no footer", where=name, hint=_UNFINISHED, code="file_cut")

    def describe_cell_places(self, layout: L, names: Sequence[str], line: int) -> Mapping[str, str]:
        del layout
        return dict.fromkeys(names, f"row {line}")


class ParquetReader(_ColumnarReader[ParquetFormat]):
    """Reads Parquet files."""

    layout = ParquetFormat
    kind, what, begin = "parquet", "a Parquet file", b"PAR1"


class ArrowReader(_ColumnarReader[ArrowFormat]):
    """Reads Arrow files."""

    layout = ArrowFormat
    kind, what, begin = "arrow", "an Arrow file", b"ARROW1"


def _read_frames_from_process(file: BinaryIO, request: Mapping[str, Any], name: str) -> Iterator[pl.DataFrame]:
    with run_reader_process(_TASK, file, request, _process_limits(file)) as found:
        answers = iter(found)
        names = next(answers)["columns"]
        try:
            validate_column_names(names)
        except ValueError as error:
            hint = "Ask the sender to name each column once; or choose others with columns."
            raise RefusedError(str(error), where=name, hint=hint, code="file_damaged") from error
        is_begun = False
        for answer in answers:
            is_begun = True
            yield pl.read_ipc_stream(BytesIO(found.read_bytes_after_answer(answer["frame"])))
        if not is_begun:
            columns = [JSON] if request["objects"] else names
            yield pl.DataFrame(schema={**dict.fromkeys(columns, pl.String()), LINE: pl.UInt64()})


def _process_limits(file: BinaryIO) -> ProcessLimits:
    size = file.seek(0, 2)
    return ProcessLimits(_BASE_BYTES + size, _BASE_S + size // _BYTES_PER_S)
