"""EDI files, X12 and EDIFACT: several interchanges, groups and sets, of which those of one kind become rows.

A set that is wrong becomes one row without cells, whose column `REFUSED` says why: it becomes a dead letter, and the
other sets are read. An envelope that is wrong refuses the file.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeVar

import polars as pl

from crossdock.reading.formats.edi_layout import (
    SET,
    Condition,
    EdiColumn,
    EdifactFormat,
    EdiFormat,
    EdiLoop,
    X12Format,
    parse_conditions,
)
from crossdock.reading.formats.edi_segments_and_sets import (
    EDIFACT_ENVELOPE,
    X12_ENVELOPE,
    EdiEnvelope,
    EdiSegment,
    EdiSegmentReader,
    EdiSeparators,
    EdiSet,
    EdiSetError,
    EdiSetReader,
)
from crossdock.reading.formats.file_formats import FormatReader, LeniencyCounts
from crossdock.reading.formats.raw_record_bytes import read_raw_edi_records_at_segments
from crossdock.reading.wrappers.stream_compression import open_and_unpack_if_gzip
from crossdock.reading.wrappers.wrapper import Openable
from crossdock.values.raw_rows_and_records import ELEMENT, LINE, REFUSED, record_number_column

_LEVELS = {"HL": (1, 2), "CPS": (1, 2)}
"""Segments that begin levels of a hierarchy, with the elements of their own number and that of the level around."""
_MAX_DEPTH = 50
_MAX_JOINED = 32_000  # characters, which every row of the loop repeats
_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?")
_X12_DATES = {8: "%Y%m%d", 6: "%y%m%d"}
_EDIFACT_DATES = {
    "101": ("%y%m%d", 6), "102": ("%Y%m%d", 8), "201": ("%y%m%d%H%M", 10), "203": ("%Y%m%d%H%M", 12),
    "204": ("%Y%m%d%H%M%S", 14),
}  # fmt: skip
"""Data element 2379, which follows a date in C507."""


class _OpenLoop:
    """One loop that was begun, with its segments by tag, and the loops in it."""

    __slots__ = ("cells", "children", "depth", "level", "loop", "name", "own", "parent", "segments", "start")

    def __init__(
        self, name: str, loop: _DeclaredLoop | None, start: EdiSegment, parent: _OpenLoop | None, level: str
    ) -> None:
        self.name, self.loop, self.start, self.parent, self.level = name, loop, start, parent, level
        self.segments: defaultdict[str, list[EdiSegment]] = defaultdict(list)
        self.segments[start.elements[0]].append(start)
        self.children: defaultdict[str, list[_OpenLoop]] = defaultdict(list)
        self.depth: int = parent.depth + 1 if parent else 0
        self.cells: list[str] | None = None
        self.own: frozenset[int] = frozenset()  # the cells that it, or a loop around it but the set, has given


class _DeclaredLoop:
    def __init__(self, name: str, loop: EdiLoop) -> None:
        self.name, self.starts, self.when = name, loop.starts, parse_conditions(loop.when)
        self.parents = frozenset(loop.parents)
        self.segments = None if loop.segments is None else frozenset(loop.segments)
        self.level = _LEVELS.get(loop.starts)


class _ResolvedColumn:
    def __init__(self, name: str, column: EdiColumn, number: int) -> None:
        self.name, self.column, self.number = name, column, number
        self.tag, self.element, self.component = column.tag, column.element, column.component
        self.last = column.to or self.element
        self.when = parse_conditions(column.when)
        given = column.qualifier
        self.qualifiers = None if given is None else frozenset([given] if isinstance(given, str) else given)
        self.loop = column.loop
        self.is_plain = self.qualifiers is None and self.last == self.element


class EdiRowMaker:
    """Makes rows of the sets of one layout. It keeps nothing between two sets."""

    def __init__(self, layout: EdiFormat, *, is_x12: bool) -> None:
        self._rows, self._is_x12 = layout.rows, is_x12
        names = list(layout.columns)
        keys = [each for each in layout.groups if self._rows != SET and {*each} <= {*names}]
        self.numbered = {record_number_column(key): frozenset(map(names.index, key)) for key in keys}
        self.added = [*self.numbered, *([ELEMENT] if layout.keeps_empty_groups and self._rows != SET else [])]
        self._columns = [_ResolvedColumn(*each, number) for number, each in enumerate(layout.columns.items())]
        self._by_tag: defaultdict[str, list[_ResolvedColumn]] = defaultdict(list)
        self._beside: defaultdict[str, list[_ResolvedColumn]] = defaultdict(list)  # by the loop that is not around rows
        around = _names_of_loops_around_rows(layout)
        for column in self._columns:
            if column.loop is None or column.loop in around:
                self._by_tag[column.tag].append(column)
            else:
                self._beside[column.loop].append(column)
        self._starts: defaultdict[str, list[_DeclaredLoop]] = defaultdict(list)
        for name, loop in layout.loops.items():
            self._starts[loop.starts].append(_DeclaredLoop(name, loop))

    def make_rows_of_set(self, found: EdiSet) -> list[tuple[int, list[str | None]]]:
        """Return the cells of each row, with the number of its first segment. Raises EdiSetError.

        Those of the columns `added` follow: for each of `numbered` the number of the set, if the set itself has all
        cells of the key for all rows.
        """
        if found.error is not None:
            raise found.error
        values, number = _ElementTextReader(found.separators, is_x12=self._is_x12), str(found.header_segment.number)
        frames = self._build_loops_that_make_rows(found, values)
        rows = [(frame.start.number, self._cells_of_loop_and_parents(frame, values)) for frame in frames]
        own = frozenset[int]().union(*(frame.own for frame in frames)) if self.numbered else frozenset()
        added: list[str | None] = [number if own.isdisjoint(key) else "" for key in self.numbered.values()]
        if len(added) < len(self.added):
            added.append("" if frames[0].name == self._rows else None)
        return [(start, [*cells, *added]) for start, cells in rows]

    # ---- loops

    def _build_loops_that_make_rows(self, found: EdiSet, values: _ElementTextReader) -> list[_OpenLoop]:
        root = _OpenLoop(SET, None, found.header_segment, None, "")
        for header in found.around:
            root.segments[header.elements[0]].append(header)
        rows = [root] if self._rows == SET else []
        innermost, starts, wanted = root, self._starts, self._rows
        for segment in found.segments[1:]:
            tag = segment.elements[0]
            if tag in starts and (
                loops := [each for each in starts[tag] if values.meets_conditions(segment, each.when)]
            ):
                innermost = self._open_loop_or_raise(segment, loops, innermost, values)
                if innermost.name == wanted:
                    rows.append(innermost)
                continue
            while innermost.loop is not None and innermost.loop.segments is not None:
                if tag in innermost.loop.segments or innermost.parent is None:
                    break
                innermost = innermost.parent
            innermost.segments[tag].append(segment)
        return rows or [root]

    def _open_loop_or_raise(
        self, segment: EdiSegment, loops: Sequence[_DeclaredLoop], innermost: _OpenLoop, values: _ElementTextReader
    ) -> _OpenLoop:
        level, around = "", ""
        if (elements := loops[0].level) is not None:
            level, around = (
                next(iter(values.texts_of_element_repetitions(segment, element, 1)), "") for element in elements
            )
        frame: _OpenLoop | None = innermost
        while frame is not None:
            is_around = loops[0].level is None or frame.level == around
            loop = next((each for each in loops if frame.name in each.parents), None) if is_around else None
            if loop is not None and frame.depth >= _MAX_DEPTH:
                raise EdiSetError(segment, f"is nested in more than {_MAX_DEPTH} loops")
            if loop is not None:
                opened = _OpenLoop(loop.name, loop, segment, frame, level)
                frame.children[loop.name].append(opened)
                return opened
            frame = frame.parent
        names = " or ".join(sorted({parent for each in loops for parent in each.parents}))
        if around:
            raise EdiSetError(segment, f"names a level around it that is not open, or not {names}")
        raise EdiSetError(segment, f"begins the loop {loops[0].name} outside of {names}")

    # ---- cells

    def _cells_of_loop_and_parents(self, frame: _OpenLoop, values: _ElementTextReader) -> list[str]:
        """Return what *frame* gives to rows: its own texts, and where it has none those of the loops around it."""
        if frame.cells is not None:
            return frame.cells
        cells = (
            [""] * len(self._columns)
            if frame.parent is None
            else list(self._cells_of_loop_and_parents(frame.parent, values))
        )
        given = list[int]()
        for tag, segments in frame.segments.items():
            for column in self._by_tag.get(tag, ()):
                if (column.loop is None or column.loop == frame.name) and (
                    found := self._column_texts_in_segments(column, segments, values)
                ):
                    cells[column.number] = _choose_or_join_values_or_raise(found, column)
                    given.append(column.number)
        for name, children in frame.children.items():
            for column in self._beside.get(name, ()):
                segments = [each for child in children for each in child.segments.get(column.tag, ())]
                if found := self._column_texts_in_segments(column, segments, values):
                    cells[column.number] = _choose_or_join_values_or_raise(found, column)
                    given.append(column.number)
        frame.cells = cells
        if frame.parent is not None and self.numbered:
            frame.own = frame.parent.own.union(given)
        return cells

    def _column_texts_in_segments(
        self, column: _ResolvedColumn, segments: Sequence[EdiSegment], values: _ElementTextReader
    ) -> list[tuple[EdiSegment, str]]:
        when, is_plain, is_text = column.when, column.is_plain, column.column.as_ == "text"
        found = []
        for segment in segments:
            if when and not values.meets_conditions(segment, when):
                continue
            if is_plain:
                texts = values.texts_of_element_repetitions(segment, column.element, column.component)
            else:
                texts = list(self._texts_by_range_or_qualifier(column, segment, values))
            found += [
                (segment, text if is_text else values.convert_to_column_type(text, column.column, segment))
                for text in texts
                if text
            ]
        return found

    def _texts_by_range_or_qualifier(
        self, column: _ResolvedColumn, segment: EdiSegment, values: _ElementTextReader
    ) -> Iterator[str]:
        if column.qualifiers is None:
            for element in range(column.element, min(column.last + 1, len(segment.elements))):
                yield from values.texts_of_element_repetitions(segment, element, column.component)
        elif self._is_x12:
            for element in range(column.element, len(segment.elements) - 1, 2):
                if column.qualifiers.intersection(values.texts_of_element_repetitions(segment, element, None)):
                    yield from values.texts_of_element_repetitions(segment, element + 1, column.component)
        else:
            for element in range(column.element, len(segment.elements)):
                if column.qualifiers.intersection(values.texts_of_element_repetitions(segment, element, 2)):
                    yield from values.texts_of_element_repetitions(segment, element, column.component)


class _ElementTextReader:
    """Texts of elements and components, without separators and the padding of fixed elements."""

    def __init__(self, separators: EdiSeparators, *, is_x12: bool) -> None:
        self._separators, self._is_x12 = separators, is_x12
        self._restored = separators.originals_of_placeholders()

    def texts_of_element_repetitions(self, segment: EdiSegment, element: int, component: int | None) -> Sequence[str]:
        """Return the text of each repetition. EDIFACT: without *component* the first one; X12: the whole element."""
        elements = segment.elements
        if element >= len(elements) or not (text := elements[element]):
            return ()
        number = component if self._is_x12 else component or 1
        repetition, separator = self._separators.repetition, self._separators.component
        is_repeated = repetition and repetition in text and elements[0] != "ISA"  # which holds the separators
        repeated = text.split(repetition) if is_repeated else [text]
        if number is not None:
            repeated = [
                _component_at(each, separator, number) if separator in each or number > 1 else each for each in repeated
            ]
        if not text.isascii():
            repeated = [each.translate(self._restored) for each in repeated]
        return [each.rstrip(" ") for each in repeated]

    def meets_conditions(self, segment: EdiSegment, when: Sequence[Condition]) -> bool:
        for element, part, texts in when:
            if texts.isdisjoint(self.texts_of_element_repetitions(segment, element, part) or ("",)):
                return False
        return True

    def convert_to_column_type(self, text: str, column: EdiColumn, segment: EdiSegment) -> str:
        match column.as_:
            case "number":
                return self._parse_decimal_text_or_raise(text, column, segment)
            case "date":
                return self._parse_iso_date_or_raise(text, column, segment)
            case _:
                return text

    def _parse_decimal_text_or_raise(self, text: str, column: EdiColumn, segment: EdiSegment) -> str:
        """Return a decimal with a point. ISO 9735: the mark of UNA or a comma. X12.6: a point, or none for N0 to N9."""
        plain = text if self._is_x12 else text.replace(self._separators.decimal_mark, ".").replace(",", ".")
        found = _NUMBER.fullmatch(plain.strip(" "))
        if found is None or not (found[2] or found[3]) or (column.decimals is not None and found[3] is not None):
            raise EdiSetError(segment, f"{column.at} is not a number")
        sign, digits, fraction = found[1].replace("+", ""), found[2], found[3] or ""
        if column.decimals:
            digits = digits.zfill(column.decimals + 1)
            digits, fraction = digits[: -column.decimals], digits[-column.decimals :]
        digits = digits.lstrip("0") or "0"
        return f"{sign}{digits}.{fraction}" if fraction else f"{sign}{digits}"

    def _parse_iso_date_or_raise(self, text: str, column: EdiColumn, segment: EdiSegment) -> str:
        form, length = _X12_DATES.get(len(text), ""), len(text)
        if not self._is_x12 and column.component is not None:
            code = next(iter(self.texts_of_element_repetitions(segment, column.element, column.component + 1)), "")
            form, length = _EDIFACT_DATES.get(code, ("", 0))
        try:
            if not form or len(text) != length or not (text.isascii() and text.isdigit()):
                raise ValueError(text)
            found = datetime.strptime(text, form)  # noqa: DTZ007  a local time, as it was sent
        except ValueError:
            raise EdiSetError(segment, f"{column.at} is not a date of a known form: read it as text") from None
        return found.isoformat(timespec="auto") if "%H" in form else found.date().isoformat()


def _choose_or_join_values_or_raise(found: Sequence[tuple[EdiSegment, str]], column: _ResolvedColumn) -> str:
    policy = column.column.several
    if len(found) == 1 or policy == "first":
        return found[0][1]
    different = list(dict.fromkeys(text for _, text in found))
    if policy == "refuse" and len(different) > 1:
        message = f"{column.column.at} of column {column.name!r} has several values here"
        raise EdiSetError(found[1][0], f"{message}: narrow it down with when or loop, or declare several")
    if policy != "join":
        return found[-1][1]
    if sum(map(len, different)) > _MAX_JOINED:
        message = f"the values of column {column.name!r} have more than {_MAX_JOINED:,} characters"
        raise EdiSetError(found[-1][0], message)
    return " ".join(different)


def _component_at(text: str, separator: str, number: int) -> str:
    parts = text.split(separator, number)
    return parts[number - 1] if number <= len(parts) else ""


def _names_of_loops_around_rows(layout: EdiFormat) -> set[str]:
    """Return the loop of the rows and all loops that may be around it."""
    found, more = {SET}, {layout.rows}
    while more:
        found |= more
        more = {parent for name in more if name in layout.loops for parent in layout.loops[name].parents} - found
    return found


_FRAME_CHARACTERS = 32 << 20  # of the text of one frame
_L = TypeVar("_L", X12Format, EdifactFormat)


class _EdiReader(FormatReader[_L]):
    """`_line` of a row is the number of its first segment in the file."""

    _kind: Literal["x12", "edifact"]
    _envelope: EdiEnvelope
    _called: str  # what one set is called

    def rows(
        self, path: Openable, layout: _L, *, name: str, batch_rows: int, leniencies: LeniencyCounts | None
    ) -> Iterator[pl.DataFrame]:
        with open_and_unpack_if_gzip(path, name=name) as stream:
            segments = EdiSegmentReader(stream, name, layout.encoding, kind=self._kind)
            sets = EdiSetReader(segments, self._envelope, layout.set_to_read, test=layout.test)
            rows = EdiRowMaker(layout, is_x12=self._kind == "x12")
            yield from _make_frames_of_sets(sets, rows, layout, f"{self._called} {layout.set_to_read}", batch_rows)
            if leniencies is not None:
                leniencies.add("set", sets.other_kind_count)

    def record_bytes_at_lines(
        self, path: Openable, layout: _L, lines: Sequence[int], *, name: str
    ) -> Mapping[int, bytes]:
        del layout
        return read_raw_edi_records_at_segments(path, lines, name=name)

    def describe_cell_places(self, layout: _L, names: Sequence[str], line: int) -> Mapping[str, str]:
        del line
        return {name: layout.columns[name].at for name in names}


class X12Reader(_EdiReader[X12Format]):
    """Reads X12 interchanges."""

    layout = X12Format
    _kind, _envelope, _called = "x12", X12_ENVELOPE, "set"


class EdifactReader(_EdiReader[EdifactFormat]):
    """Reads EDIFACT interchanges."""

    layout = EdifactFormat
    _kind, _envelope, _called = "edifact", EDIFACT_ENVELOPE, "message"


def _make_frames_of_sets(
    sets: EdiSetReader, rows: EdiRowMaker, layout: EdiFormat, kind: str, batch_rows: int
) -> Iterator[pl.DataFrame]:
    names = [*layout.columns, *rows.added]
    schema = {**dict.fromkeys(names, pl.String), REFUSED: pl.String, LINE: pl.UInt64}
    nothing: list[str | None] = [""] * len(names)
    held: list[tuple[int, list[str | None], str]] = []
    size, is_begun = 0, False

    def frame() -> pl.DataFrame:
        cells = list(zip(*(each for _, each, _ in held), strict=True)) or [()] * len(names)
        columns = dict(zip(names, cells, strict=True))
        added = {REFUSED: [each for _, _, each in held], LINE: [number for number, _, _ in held]}
        return pl.DataFrame({**columns, **added}, schema=schema)

    def of(found: EdiSet) -> Iterator[tuple[int, list[str | None], str]]:
        try:
            yield from ((number, cells, "") for number, cells in rows.make_rows_of_set(found))
        except EdiSetError as error:
            yield found.header_segment.number, nothing, found.refusal_text(kind, sets.control_number_of(found), error)

    for found in sets:
        for row in of(found):
            held.append(row)
            size += sum(len(cell or "") for cell in row[1])
            if len(held) >= batch_rows or size >= _FRAME_CHARACTERS:
                yield frame()
                held, size, is_begun = [], 0, True
    if held or not is_begun:
        yield frame()
