"""EDI files, X12 and EDIFACT: several interchanges, groups and sets, of which those of one kind become rows.

A set that is wrong becomes one row without cells, whose column `REFUSED` says why: it becomes a dead letter, and the
other sets are read. An envelope that is wrong refuses the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeVar

import polars as pl

from crossdock.reading.formats.edi_layout import EdifactFormat, EdiFormat, X12Format
from crossdock.reading.formats.edi_rows import EdiRows
from crossdock.reading.formats.edi_segments import Segments
from crossdock.reading.formats.edi_sets import EDIFACT, X12, EdiSet, EdiSets, Envelope, RefusedSetError
from crossdock.reading.formats.format_reader import FormatReader
from crossdock.reading.formats.leniencies import Leniencies
from crossdock.reading.formats.raw_records import raw_segments
from crossdock.reading.wrappers.packed_streams import open_stream
from crossdock.reading.wrappers.wrapper import Openable
from crossdock.values.records import LINE, REFUSED

_FRAME_CHARACTERS = 32 << 20  # of the text of one frame
_L = TypeVar("_L", X12Format, EdifactFormat)


class _EdiReader(FormatReader[_L]):
    """`_line` of a row is the number of its first segment in the file."""

    _kind: Literal["x12", "edifact"]
    _envelope: Envelope
    _called: str  # what one set is called

    def rows(
        self, path: Openable, layout: _L, *, name: str, batch_rows: int, leniencies: Leniencies | None
    ) -> Iterator[pl.DataFrame]:
        with open_stream(path, name=name) as stream:
            segments = Segments(stream, name, layout.encoding, kind=self._kind)
            sets = EdiSets(segments, self._envelope, layout.set_to_read, test=layout.test)
            rows = EdiRows(layout, is_x12=self._kind == "x12")
            yield from _frames(sets, rows, layout, f"{self._called} {layout.set_to_read}", batch_rows)
            if leniencies is not None:
                leniencies.add("set", sets.others)

    def raw_at(self, path: Openable, layout: _L, lines: Sequence[int], *, name: str) -> Mapping[int, bytes]:
        del layout
        return raw_segments(path, lines, name=name)

    def places(self, layout: _L, names: Sequence[str], line: int) -> Mapping[str, str]:
        del line
        return {name: layout.columns[name].at for name in names}


class X12Reader(_EdiReader[X12Format]):
    """Reads X12 interchanges."""

    layout = X12Format
    _kind, _envelope, _called = "x12", X12, "set"


class EdifactReader(_EdiReader[EdifactFormat]):
    """Reads EDIFACT interchanges."""

    layout = EdifactFormat
    _kind, _envelope, _called = "edifact", EDIFACT, "message"


def _frames(sets: EdiSets, rows: EdiRows, layout: EdiFormat, kind: str, batch_rows: int) -> Iterator[pl.DataFrame]:
    schema = {**dict.fromkeys(layout.columns, pl.String), REFUSED: pl.String, LINE: pl.UInt64}
    nothing = [""] * len(layout.columns)
    held: list[tuple[int, list[str], str]] = []
    size, is_begun = 0, False

    def frame() -> pl.DataFrame:
        cells = list(zip(*(each for _, each, _ in held), strict=True)) or [()] * len(layout.columns)
        columns = dict(zip(layout.columns, cells, strict=True))
        added = {REFUSED: [each for _, _, each in held], LINE: [number for number, _, _ in held]}
        return pl.DataFrame({**columns, **added}, schema=schema)

    def of(found: EdiSet) -> Iterator[tuple[int, list[str], str]]:
        try:
            yield from ((number, cells, "") for number, cells in rows.rows_of_set(found))
        except RefusedSetError as error:
            yield found.start.number, nothing, found.refusal_text(kind, sets.control_number_of(found), error)

    for found in sets:
        for row in of(found):
            held.append(row)
            size += sum(map(len, row[1]))
            if len(held) >= batch_rows or size >= _FRAME_CHARACTERS:
                yield frame()
                held, size, is_begun = [], 0, True
    if held or not is_begun:
        yield frame()
