"""Reads XML files as a stream, with limits. Document types, and with them entities, are refused.

Facts: https://www.w3.org/TR/xml/ and https://www.w3.org/TR/xml-names/ for documents,
https://libexpat.github.io/doc/xml-security/ and https://docs.python.org/3/library/xml.html#xml-security for the parser.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import NoReturn
from xml.parsers import expat

import polars as pl

from crossdock.errors import RefusedError
from crossdock.reading.formats.file_formats import FormatReader, LeniencyCounts
from crossdock.reading.formats.file_kind_and_encoding_mismatch import (
    DECLARE_UTF_8_HINT,
    HEAD,
    MisdeclaredUtf8Search,
    raise_if_head_shows_other_kind,
)
from crossdock.reading.formats.text_decoding import MAX_RECORD_BYTES, DecodingError, check_kind_and_transcode_to_utf_8
from crossdock.reading.formats.xml_layout import NAMESPACE_SEPARATOR, XmlFormat, XmlPath
from crossdock.reading.wrappers.stream_compression import open_and_unpack_if_gzip
from crossdock.reading.wrappers.wrapper import Openable, Readable
from crossdock.values.raw_rows_and_records import ELEMENT, LINE, MAX_EXPLODED, record_number_column

MAX_DEPTH = 64
"""Levels of elements."""
MAX_ATTRIBUTES = 256
"""Attributes of one element."""
MAX_TEXT = 1 << 20
"""Characters of one value."""
MAX_TAG_BYTES = 1 << 20
"""Bytes of one tag or comment: the parser holds it until it ends."""
MAX_NAMES = 10_000
"""Different names of elements, attributes, prefixes and namespaces: the parser keeps each."""
MAX_ROWS = 100_000
"""Rows of one record: they are held until it ends."""

_CHUNK_BYTES = 64 << 10
_FRAME_BYTES = 32 << 20
_BLANK = " \t\r\n"
_DECLARED_ENCODING = re.compile(
    rb"""(?:\xef\xbb\xbf)?<\?xml\s[^>]*?\bencoding\s*=\s*["']([A-Za-z][\w.\-]*)["']""", re.ASCII
)
_CODES = expat.errors.codes
_CUT = {
    _CODES[each]
    for each in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
}
_CUT_HINT = "The file is truncated or is still being written: fetch it again."
_WRONG = "Ask the sender for an XML file that is well-formed, or fetch the file again."
_COUNT_HINT = "The file is damaged or incomplete: fetch it again, or ask the sender what the number counts."
_DECLARE = "Declare encoding with the one that the file is in, such as utf-8 or cp1252, or ask the sender."
_HINTS = {
    _CODES[expat.errors.XML_ERROR_INVALID_TOKEN]: (
        "It may be an & or < that is not written as &amp; or &lt;, a control character, or text in another encoding"
        " than the file declares; then declare encoding."
    ),
    _CODES[expat.errors.XML_ERROR_UNKNOWN_ENCODING]: _DECLARE,
    _CODES[expat.errors.XML_ERROR_INCORRECT_ENCODING]: _DECLARE,
    _CODES[expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]: (
        "The file joins several documents or was overwritten in part: fetch it again, or ask the sender for one each."
    ),
}


class _ElementRole(Enum):
    AROUND = "an element that holds records"
    RECORD = "a record"
    ROW = "a row of a record"
    BESIDE = "an element outside of the records"


class _DeclaredElement:
    """A declared element. `slot` is the cell that shows that it was found; of a text, it holds it."""

    __slots__ = ("around", "attributes", "children", "is_text", "local_names", "name", "outer", "role", "slot")

    def __init__(self, name: str = "", around: _DeclaredElement | None = None) -> None:
        self.name, self.around = name, self if around is None else around
        self.children: dict[str, _DeclaredElement] = {}
        self.local_names: dict[str, str] = {}
        self.attributes: list[tuple[str, int]] = []
        self.slot, self.is_text = -1, False
        self.role: _ElementRole | None = None
        self.outer = 0  # of an element that is outside of the records: how many of those around them are around it

    def get_or_create_child(self, name: str) -> _DeclaredElement:
        if name not in self.children:
            self.children[name] = _DeclaredElement(name, self)
            self.local_names[_local_name(name)] = name
        return self.children[name]


class _RowPlan:
    """The declared elements as a tree, and the cells of a row: those around records, of records, of rows."""

    def __init__(self, layout: XmlFormat) -> None:
        self.top, self.names = _DeclaredElement(), tuple(layout.columns)
        self._record, self._row = layout.record_path, layout.row_element_names
        self._cells = 0
        for length in range(1, len(self._record) + 1):
            self._get_or_create_node(self._record[:length]).role = _ElementRole.AROUND
        self._get_or_create_node(self._record).role = _ElementRole.RECORD
        paths = {name: layout.absolute_path(text) for name, text in layout.columns.items()}
        places = dict[str, int]()
        self.count = None if layout.count is None else self._add_path_and_get_slot(layout.absolute_path(layout.count))
        self.resets: dict[int, list[int]] = {}  # of each element around records: the cells that begin anew with it
        for name, path in paths.items():
            if not path.begins_with_elements(self._record):
                places[name] = self._add_path_and_get_slot(path)
        self.around = self._cells
        for name, path in paths.items():
            if path.begins_with_elements(self._record) and not self._is_inside_row(path):
                places[name] = self._add_path_and_get_slot(path)
        self.inner = self._cells
        if self._row is not None:
            self._get_or_create_node(self._row).role = _ElementRole.ROW
        for name, path in paths.items():
            if self._is_inside_row(path):
                places[name] = self._add_path_and_get_slot(path)
        self.cells = self._cells
        self.places = tuple(places[name] for name in self.names)
        self.numbered = [record_number_column(key) for key in layout.groups if self._is_key_of_record(key, places)]
        self.marks_elements = layout.keeps_empty_groups and self._row is not None
        self._collect_cells_to_reset()

    def _is_key_of_record(self, key: Sequence[str], places: Mapping[str, int]) -> bool:
        """Return whether *key* is of the records: no row has a part of it, and not all of it is around them."""
        slots = [places.get(name, self.inner) for name in key]
        return self._row is not None and self.around <= max(slots) < self.inner

    def _is_inside_row(self, path: XmlPath) -> bool:
        return self._row is not None and path.begins_with_elements(self._row)

    def _get_or_create_node(self, elements: Sequence[str]) -> _DeclaredElement:
        node = self.top
        for name in elements:
            node = node.get_or_create_child(name)
        return node

    def _allocate_cell_slot(self) -> int:
        self._cells += 1
        return self._cells - 1

    def _add_path_and_get_slot(self, path: XmlPath) -> int:
        shared = 0
        while shared < min(len(self._record) - 1, len(path.elements)) and path.elements[shared] == self._record[shared]:
            shared += 1
        for length in range(1, len(path.elements) + 1):
            elements = path.elements[:length]
            node = self._get_or_create_node(elements)
            if node.role is None and elements != self._record[:length]:
                node.role = None if path.begins_with_elements(self._record) else _ElementRole.BESIDE
                node.outer = shared
            may_repeat = node.role in {
                _ElementRole.AROUND,
                _ElementRole.RECORD,
                _ElementRole.ROW,
            } or self._is_around_row(elements)
            if node.slot < 0 and not may_repeat:
                node.slot = self._allocate_cell_slot()
        node = self._get_or_create_node(path.elements)
        if path.attribute is not None:
            node.attributes.append((path.attribute, self._allocate_cell_slot()))
            return node.attributes[-1][1]
        node.is_text = True
        if node.slot < 0:  # the text of a record or row itself
            node.slot = self._allocate_cell_slot()
        return node.slot

    def _is_around_row(self, elements: Sequence[str]) -> bool:
        return self._row is not None and tuple(elements) == self._row[: len(elements)]

    def _collect_cells_to_reset(self) -> None:
        node = self.top
        for depth, name in enumerate(self._record[:-1], 1):
            node = node.children[name]
            node.outer = depth
            cells = [slot for _, slot in node.attributes]
            for child in node.children.values():
                if child.role is _ElementRole.BESIDE:
                    cells += _cell_slots_in_subtree(child)
            self.resets[depth] = [cell for cell in cells if cell != self.count]


def _cell_slots_in_subtree(node: _DeclaredElement) -> list[int]:
    own = [node.slot, *(slot for _, slot in node.attributes)]
    return [slot for slot in own if slot >= 0] + [
        slot for each in node.children.values() for slot in _cell_slots_in_subtree(each)
    ]


def _local_name(name: str) -> str:
    return name.rpartition(NAMESPACE_SEPARATOR)[2]


def _name_and_namespace_text(name: str) -> str:
    space, _, local = name.rpartition(NAMESPACE_SEPARATOR)
    return f"{local} of the namespace {space}" if space else f"{local} without a namespace"


def _ignore_event(*_: object) -> None:
    pass


class _XmlRowCollector:
    """Takes the events of a parser, and collects the cells of rows."""

    def __init__(self, plan: _RowPlan, layout: XmlFormat, file: str) -> None:
        self._plan, self._file = plan, file
        self._refuses_missing = layout.missing == "refuse"
        self.parser = expat.ParserCreate(
            "utf-8" if layout.encoding else None,
            namespace_separator=NAMESPACE_SEPARATOR,
            intern=(names := dict[str, str]()),
        )
        self._names, self._fed = names, 0
        self.parser.buffer_text, self.parser.buffer_size = True, _CHUNK_BYTES
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._start_element, self._end_element
        self.parser.CharacterDataHandler = self._add_text
        self.parser.StartDoctypeDeclHandler = self._raise_doctype_error
        self.parser.StartNamespaceDeclHandler = _ignore_event  # so that prefixes and namespaces are among the names
        self._node, self._depth = plan.top, 0
        self._ignored = 0  # elements that are not declared, one inside of the other
        self._around: list[str | None] = [None] * plan.cells  # cells outside of records, which each record begins with
        self._cells = self._around
        self._pieces, self._length = list[str](), 0  # of a text whose first piece is in its cell, and its length
        self._lines = list[list[str | None]]()  # of the record
        self._no_line = self._around[plan.inner :]
        self._begun = 0  # bytes that were fed when the record began; 0 outside of records
        self._before: dict[int, int] = {}  # records before the element around them, by its depth
        self._in_other_namespace = dict[int, str]()  # cells, and where an element of their name was
        self._record, self._name_of_record = layout.record, _local_name(layout.record_path[-1]).lower()
        self._elsewhere = ""  # where an element like a record was before the first one
        self._alike_names: dict[str, bool] = {}
        self.elsewhere = 0  # elements like a record that are none
        self.records, self.repeated = 0, 0
        self.rows = list[list[str | None]]()
        self.numbers = list[str]()  # of the records of `rows`, if they are asked for
        self.elements = list[str | None]()  # null for those of `rows` that stand for a record without rows

    def feed_bytes(self, data: bytes, *, is_last: bool) -> None:
        try:
            self.parser.Parse(data, is_last)
        except expat.ExpatError as error:
            self._raise_malformed_error(error)
        except (LookupError, ValueError) as error:
            if self._names:  # after the declaration, it is not an encoding
                raise
            what = "the file declares an encoding that is not known, or that has characters of several bytes"
            hint = "Declare encoding, such as shift_jis, to read it in any case; or ask the sender for UTF-8."
            raise RefusedError(what, where=f"{self._file}:1", hint=hint, code="encoding_wrong") from error
        self._fed += len(data)
        self._raise_if_too_large()

    def _raise_if_too_large(self) -> None:
        index = self.parser.CurrentByteIndex
        if self._begun and self._fed - self._begun > MAX_RECORD_BYTES:
            self._raise_error(
                f"a record of more than {MAX_RECORD_BYTES:,} bytes", "Check that record names one record."
            )
        if 0 <= index < self._fed - MAX_TAG_BYTES:
            self._raise_error(f"a tag or comment of more than {MAX_TAG_BYTES:,} bytes", _WRONG)
        if len(self._names) > MAX_NAMES:
            self._raise_error(f"more than {MAX_NAMES:,} different names", _WRONG)

    def _start_element(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._ignored:
            self._ignored += 1
            if self._depth > MAX_DEPTH:
                self._raise_error(f"elements in more than {MAX_DEPTH} levels", _WRONG)
            self._count_record_like_element_elsewhere(name)
            return
        node = self._node.children.get(name)
        if node is None:
            self._raise_if_undeclared_element_conflicts(name)
            self._count_record_like_element_elsewhere(name)
            self._ignored = 1
            return
        self._node = node
        if node.role is not None:
            self._begin_element_by_role(node)
        cells = self._cells
        if (slot := node.slot) >= 0:
            if cells[slot] is not None:
                self._raise_repeated_error(f"the element {_local_name(name)}")
            cells[slot] = ""
        if attributes:
            self._store_declared_attributes(node, attributes)

    def _store_declared_attributes(self, node: _DeclaredElement, attributes: dict[str, str]) -> None:
        if len(attributes) > MAX_ATTRIBUTES:
            self._raise_error(f"an element with more than {MAX_ATTRIBUTES:,} attributes", _WRONG)
        for attribute, slot in node.attributes:
            if (value := attributes.get(attribute)) is not None:
                if self._cells[slot] is not None:
                    self._raise_repeated_error(f"the attribute {_local_name(attribute)}")
                self._cells[slot] = value

    def _add_text(self, text: str) -> None:
        node = self._node
        if node.is_text:
            if first := self._cells[node.slot]:
                self._length = len(text) + (self._length or len(first))
                if self._length > MAX_TEXT:
                    self._raise_error(f"a text of more than {MAX_TEXT:,} characters", "Leave the column out.")
                self._pieces.append(text)
            else:
                self._cells[node.slot] = text

    def _end_element(self, _: str) -> None:
        self._depth -= 1
        if self._ignored:
            self._ignored -= 1
            return
        node = self._node
        if self._pieces:
            self._join_text_pieces(node)
        if node.role is not None:
            self._end_element_by_role(node.role)
        self._node = node.around

    def _join_text_pieces(self, node: _DeclaredElement) -> None:
        self._cells[node.slot] = "".join([self._cells[node.slot] or "", *self._pieces])
        self._pieces, self._length = [], 0

    def _begin_element_by_role(self, node: _DeclaredElement) -> None:
        if node.role is _ElementRole.RECORD:
            self._cells = self._around.copy()
            self._begun = self._fed + 1
        elif node.role is _ElementRole.AROUND:
            self._before[node.outer] = self.records
            for slot in self._plan.resets[node.outer]:
                self._around[slot] = None
        elif node.role is _ElementRole.BESIDE:
            is_late = self.records > self._before.get(node.outer, 0)
            slots = [
                slot for slot in (node.slot if node.is_text else -1, *(s for _, s in node.attributes)) if slot >= 0
            ]
            if is_late and any(slot != self._plan.count for slot in slots):
                self._raise_error(
                    f"the element {_local_name(node.name)} follows records that need its value",
                    "A value around records can be their column only if it precedes them: leave the column out.",
                )

    def _end_element_by_role(self, role: _ElementRole) -> None:
        if role is _ElementRole.ROW:
            inner = self._plan.inner
            self._raise_if_cell_missing(inner, self._plan.cells)
            self._lines.append(self._cells[inner:])
            self._cells[inner:] = self._no_line
            if len(self._lines) > MAX_ROWS:
                self._raise_error(f"a record of more than {MAX_ROWS:,} rows", "Check that record and rows are right.")
        elif role is _ElementRole.RECORD:
            self._raise_if_cell_missing(0, self._plan.inner)
            if self._lines:
                self.elements += [""] * len(self._lines)
                self._add_rows_with_record_cells()
            else:
                self.elements.append(None)
                self.rows.append(self._cells)
                self.repeated += self._size_of_repeated_cells_or_raise(self._plan.around)
            self.records += 1
            if self._plan.numbered:
                self.numbers += [str(self.records)] * (len(self.rows) - len(self.numbers))
            self._cells, self._begun = self._around, 0

    def _add_rows_with_record_cells(self) -> None:
        around = self._cells[: self._plan.inner]
        self.repeated += self._size_of_repeated_cells_or_raise(self._plan.inner) * len(self._lines)
        self.rows += [around + line for line in self._lines]
        self._lines = []

    def _size_of_repeated_cells_or_raise(self, cells: int) -> int:
        if not cells:
            return 0
        size = sum(len(cell) for cell in self._cells[:cells] if cell)
        if self.repeated + size * max(1, len(self._lines)) > MAX_EXPLODED:
            message = f"the columns around rows exceed {MAX_EXPLODED >> 20:,} MiB, as they are repeated in each"
            self._raise_error(message, "Leave long values around the rows out of the columns.")
        return size

    def _raise_if_cell_missing(self, first_slot: int, end_slot: int) -> None:
        if self._refuses_missing and None in self._cells[first_slot:end_slot]:
            for name, slot in zip(self._plan.names, self._plan.places, strict=True):
                if first_slot <= slot < end_slot and self._cells[slot] is None:
                    self._raise_error(f"column {name} is missing", "Ask the sender, or declare missing: empty.")

    def _raise_if_undeclared_element_conflicts(self, name: str) -> None:
        node, local = self._node, _local_name(name)
        if node.is_text:
            hint = f"Declare paths inside of {_local_name(node.name)}, or leave its text out."
            self._raise_error(
                f"the element {local} inside of {_local_name(node.name)}, of which the text is read", hint
            )
        declared = node.local_names.get(local)
        if self._depth == 1 and declared is None:
            (root,) = node.children
            self._raise_error(
                f"the root element is {_name_and_namespace_text(name)}, and not {_name_and_namespace_text(root)}",
                "Correct record.",
            )
        if declared is not None:
            child = node.children[declared]
            if child.role is not None or self._has_row_below(child):
                found, wanted = _name_and_namespace_text(name), _name_and_namespace_text(declared)
                self._raise_error(f"an element is {found}, and {wanted} is declared", "Correct namespaces.")
            place = f"{self._file}:{self.parser.CurrentLineNumber}:{self.parser.CurrentColumnNumber + 1}"
            for slot in _cell_slots_in_subtree(child):
                self._in_other_namespace.setdefault(slot, place)

    def _count_record_like_element_elsewhere(self, name: str) -> None:
        if self._begun:  # inside of a record, it is a part of it
            return
        if (is_alike := self._alike_names.get(name)) is None:
            is_alike = self._alike_names[name] = _local_name(name).lower() == self._name_of_record
        if not is_alike:
            return
        self.elsewhere += 1
        if not self.records and not self._elsewhere:
            self._elsewhere = f"{self._file}:{self.parser.CurrentLineNumber}:{self.parser.CurrentColumnNumber + 1}"

    def _has_row_below(self, node: _DeclaredElement) -> bool:
        return node.role is _ElementRole.ROW or any(map(self._has_row_below, node.children.values()))

    def raise_if_record_count_or_namespaces_wrong(self, found: set[int]) -> None:
        """Check the stated count, and columns of which nothing was *found*: they may be in another namespace.

        A file without a record is refused if one like it is elsewhere: otherwise it would be read as an empty one.
        """
        if self._elsewhere and not self.records:
            message = f"no record is at {self._record}, where it is declared, and an element like it is here"
            hint = "Correct record, or ask the sender whether the layout has changed."
            raise RefusedError(message, where=self._elsewhere, hint=hint, code="file_damaged")
        if self._plan.count is not None:
            stated = self._around[self._plan.count]
            if stated is None:
                self._raise_error("the number of records that the layout declares is missing", _COUNT_HINT)
            if not (text := stated.strip(_BLANK)).isdecimal() or len(text) > len(str(1 << 64)):
                self._raise_error("the stated number of records is not a number", _COUNT_HINT)
            if int(text) != self.records:
                self._raise_error(f"the file states {int(text):,} records and has {self.records:,}", _COUNT_HINT)
        for name, slot in zip(self._plan.names, self._plan.places, strict=True):
            if slot not in found and (where := self._in_other_namespace.get(slot)):
                message = f"column {name} is in no record, and elements of its name are in another namespace"
                raise RefusedError(
                    message, where=where, hint="Correct namespaces, or leave the column out.", code="column_missing"
                )

    def _raise_doctype_error(self, *_: object) -> NoReturn:
        hint = "A document type may define entities and name other files: ask the sender for a file without it."
        self._raise_error("a document type (DOCTYPE) is not read", hint)

    def _raise_repeated_error(self, what: str) -> NoReturn:
        hint = "Declare rows with the path of what is repeated, to read each as a row; or leave the column out."
        self._raise_error(f"{what} is repeated, and a cell has one value", hint)

    def _raise_malformed_error(self, error: expat.ExpatError) -> NoReturn:
        is_cut = error.code in _CUT
        message = f"is not XML: {expat.ErrorString(error.code)}"
        if is_cut:
            message = f"the file ends before its last element does ({expat.ErrorString(error.code)})"
        hint = _CUT_HINT if is_cut else _HINTS.get(error.code, _WRONG)
        where = f"{self._file}:{error.lineno}:{error.offset + 1}"
        raise RefusedError(message, where=where, hint=hint, code="file_damaged") from None

    def _raise_error(self, message: str, hint: str) -> NoReturn:
        where = f"{self._file}:{self.parser.CurrentLineNumber}:{self.parser.CurrentColumnNumber + 1}"
        raise RefusedError(message, where=where, hint=hint, code="file_damaged")


class XmlReader(FormatReader[XmlFormat]):
    """Reads XML. `LINE` is the number of a row: several may be on one line of the file."""

    layout = XmlFormat

    def rows(
        self, path: Openable, layout: XmlFormat, *, name: str, batch_rows: int, leniencies: LeniencyCounts | None
    ) -> Iterator[pl.DataFrame]:
        plan, found, first, fed = _RowPlan(layout), set[int](), 1, 0
        made = _XmlRowCollector(plan, layout, name)
        with open_and_unpack_if_gzip(path, name=name) as stream:
            for block in _read_blocks_transcoded_if_configured(stream, layout, name, made.parser):
                made.feed_bytes(block, is_last=not block)
                fed += len(block)
                size = fed + made.repeated
                if len(made.rows) < batch_rows and size < _FRAME_BYTES:
                    continue
                at_once = max(1, min(batch_rows, len(made.rows) * _FRAME_BYTES // max(1, size)))
                for start in range(0, len(made.rows), at_once):
                    numbers, elements = (each[start : start + at_once] for each in (made.numbers, made.elements))
                    rows = made.rows[start : start + at_once]
                    yield _make_frame(rows, numbers, elements, plan, first + start, found, trim=layout.trim)
                first += len(made.rows)
                made.rows, made.numbers, made.elements, made.repeated, fed = [], [], [], 0, 0
        last = _make_frame(made.rows, made.numbers, made.elements, plan, first, found, trim=layout.trim)
        made.raise_if_record_count_or_namespaces_wrong(found)
        if leniencies is not None and made.records:
            leniencies.add("absent", len(set(plan.places) - found))
            leniencies.add("elsewhere", made.elsewhere)
        if last.height or first == 1 or made.elsewhere:  # with the last rows, it is known what was not read
            yield last

    def describe_cell_places(self, layout: XmlFormat, names: Sequence[str], line: int) -> Mapping[str, str]:
        del line
        return {name: layout.columns[name] for name in names}


def _read_blocks_transcoded_if_configured(
    stream: Readable, layout: XmlFormat, name: str, parser: expat.XMLParserType
) -> Iterator[bytes]:
    """Yield the bytes of a file, or with a declared encoding its text in UTF-8, and an empty block at the end."""
    if layout.encoding:
        is_begun = False
        try:
            for block in check_kind_and_transcode_to_utf_8(stream, layout.encoding, name, _CHUNK_BYTES, expected="XML"):
                if block:
                    yield block
                    is_begun = True
        except DecodingError as error:
            raise RefusedError(
                error.message, where=f"{name}:{parser.CurrentLineNumber}", hint=error.hint, code="encoding_wrong"
            ) from None
    else:
        block = stream.read(_CHUNK_BYTES)
        is_begun = bool(block)
        raise_if_head_shows_other_kind(block[:HEAD], "utf-8", name=name, expected="XML")
        yield from _blocks_refusing_undeclared_utf_8(block, stream, name)
    if not is_begun:
        raise RefusedError(
            "the file is empty", where=name, hint="Fetch it again, or ask the sender.", code="file_empty"
        )
    yield b""


def _blocks_refusing_undeclared_utf_8(block: bytes, stream: Readable, name: str) -> Iterator[bytes]:
    """Yield *block* and what follows it; UTF-8 of a file that declares another encoding is refused at its end."""
    found = _DECLARED_ENCODING.match(block)
    if found is None:
        while block:
            yield block
            block = stream.read(_CHUNK_BYTES)
        return
    yield block  # after this, the parser has accepted the encoding
    encoding = found[1].decode()
    search, decoder = MisdeclaredUtf8Search(encoding), codecs.getincrementaldecoder(encoding)("replace")
    while block:
        search.add(block, decoder.decode(block), final=False)
        if block := stream.read(_CHUNK_BYTES):
            yield block
    search.add(b"", decoder.decode(b"", final=True), final=True)
    if search.is_found:
        message = f"the file is in UTF-8, and declares {encoding}"
        raise RefusedError(message, where=f"{name}:1", hint=DECLARE_UTF_8_HINT, code="encoding_wrong")


def _make_frame(
    rows: list[list[str | None]],
    numbers: Sequence[str | None],
    elements: Sequence[str | None],
    plan: _RowPlan,
    first: int,
    found: set[int],
    *,
    trim: bool,
) -> pl.DataFrame:
    cells = list(zip(*rows, strict=True)) or [()] * plan.cells
    made = dict[str, pl.Series]()
    for name, slot in zip(plan.names, plan.places, strict=True):
        series = pl.Series(cells[slot], dtype=pl.String)
        if series.null_count() < len(series):
            found.add(slot)
        made[name] = (series.str.strip_chars(_BLANK) if trim else series).fill_null("")
    lines = pl.int_range(first, first + len(rows), dtype=pl.UInt64, eager=True)
    added = dict.fromkeys(plan.numbered, pl.Series(numbers, dtype=pl.String))
    added |= {ELEMENT: pl.Series(elements, dtype=pl.String)} if plan.marks_elements else {}
    return pl.DataFrame({**made, **added, LINE: lines})
