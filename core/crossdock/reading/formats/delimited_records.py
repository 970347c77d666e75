"""Records of a delimited file with several record types, split by type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, NoReturn

import polars as pl

from crossdock.reading.formats.leniencies import FittingCells
from crossdock.reading.formats.polars_parser import LINE, PolarsParser, RecordFormat
from crossdock.reading.formats.record_types import code_of
from crossdock.reading.formats.row_ends import RowEnds
from crossdock.reading.formats.strict_parser import StrictParser
from crossdock.reading.formats.text_decoding import Piece, as_text, parts

if TYPE_CHECKING:
    from crossdock.reading.formats.delimited_format import DelimitedFormat, DelimitedRecordType

_MOST_BYTES = 1 << 20  # of a part: its cells may be Python objects


class DelimitedRecords:
    """Splits records by type. It keeps nothing between two pieces, so that it is safe for several threads."""

    def __init__(
        self, layout: DelimitedFormat, name: str, fitting: FittingCells, *, crlf: bool, row_ends: RowEnds | None
    ) -> None:
        marks = row_ends.marks if row_ends else ""
        self._layout, self._row_ends, self._fitting = layout, row_ends, fitting
        self._types: Mapping[str, DelimitedRecordType] = layout.record_types or {}
        self._crlf, self._field = crlf, layout.type_field
        self._strict = StrictParser(name, layout.delimiter, layout.quote, marks)
        self._parsers = {
            each: PolarsParser(RecordFormat(kind.names, layout.delimiter, layout.quote, crlf, None, marks))
            for each, kind in self._types.items()
        }
        codes = {each: code_of(each, kind) for each, kind in self._types.items()}
        self._codes = {code: each for each, code in codes.items() if code is not None}
        self._otherwise = next((each for each, code in codes.items() if code is None), None)

    def slim(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        return chain.from_iterable(parts(piece, self._layout.quote, _MOST_BYTES) for piece in pieces)

    def frames(self, piece: Piece) -> Mapping[str, pl.DataFrame]:
        """Return the records of *piece* by type, each with its columns and `LINE`. Types without records are missing.

        Raises:
            RefusedError: At the first deviation.
        """
        found = self._at_once(piece) or self._one_by_one(piece)
        if self._row_ends is None:
            return found
        return {name: self._row_ends.restored_frame(frame) for name, frame in found.items()}

    def _at_once(self, piece: Piece) -> dict[str, pl.DataFrame] | None:
        """Parse *piece* in columns, or return None if a record may be wrong or spans several lines."""
        quote = self._layout.quote
        if (quote and quote.encode() in piece.data) or not piece.data.endswith(b"\n"):
            return None
        text, fault = as_text(piece, None)
        if fault:
            return None
        lines = pl.DataFrame({"text": text.removesuffix("\n").split("\n")}, schema={"text": pl.String})
        code = pl.col("text").str.strip_chars_end("\r").str.split(self._layout.delimiter)
        lines = lines.with_columns(
            code.list.get(self._field, null_on_oob=True)
            .replace_strict(
                list(self._codes), list(self._codes.values()), default=self._otherwise, return_dtype=pl.String
            )
            .alias("type"),
            pl.int_range(piece.line, piece.line + lines.height, dtype=pl.UInt64).alias(LINE),
        )
        if lines["type"].null_count():
            return None
        found = dict[str, pl.DataFrame]()
        for (name,), part in lines.partition_by("type", as_dict=True, maintain_order=True).items():
            data = "".join(f"{line}\n" for line in part["text"]).encode()
            frame = self._parsers[str(name)].frame(Piece(1, data, part.height))
            if frame is None:
                return None
            found[str(name)] = frame.with_columns(part[LINE])
        return found

    def _one_by_one(self, piece: Piece) -> dict[str, pl.DataFrame]:
        text, fault = as_text(piece, self._layout.quote)
        rows: dict[str, list[tuple[str | int, ...]]] = {}
        for line, cells in self._strict.records(text, piece.line, crlf=self._crlf):
            name = self._type_of(cells, line)
            names = self._types[name].names
            fitted = self._fitting.of(cells, len(names))
            if len(fitted) != len(names):
                hint = "The line is truncated, a delimiter inside a field lacks quotes, or the names are not right."
                self._refuse(f"{len(cells)} fields instead of {len(names)} in a record of {name}", line, hint)
            rows.setdefault(name, []).append((*fitted, line))
        if fault:
            self._strict.refuse(f"byte {fault.byte:02X} is not utf-8", fault.line, fault.column, hint=fault.hint)
        return {
            name: pl.DataFrame(
                found, schema={**dict.fromkeys(self._types[name].names, pl.String()), LINE: pl.UInt64()}, orient="row"
            )
            for name, found in rows.items()
        }

    def _type_of(self, cells: list[str], line: int) -> str:
        name = self._codes.get(cells[self._field]) if self._field < len(cells) else None
        name = name or self._otherwise
        if name is None:
            hint = "Declare its type in record_types, or ask the sender what it is."
            self._refuse(f"a record of no declared type in field {self._field}", line, hint)
        return name

    def _refuse(self, message: str, line: int, hint: str) -> NoReturn:
        self._strict.refuse(message, line, hint=hint)
