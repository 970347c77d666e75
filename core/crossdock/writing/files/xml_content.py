"""XML: one document with an element for each record."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self
from xml.parsers.expat import ExpatError, ParserCreate

from msgspec import Struct, field
from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from crossdock.reading.formats import xml_layout
from crossdock.reading.formats.text_decoding import validate_encoding_name
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.writing.files.cell_declarations import Cell, NamedValues, NumberDefaults, invalid_value_error
from crossdock.writing.files.content_interface import FileRecord, WrittenFileFacts
from crossdock.writing.files.row_declarations import (
    RowPart,
    RowsContent,
    raise_if_cells_show_record_values,
    tag_as_part_or_cell,
    values_of_all_records,
)
from crossdock.writing.files.text_encoder import TextEncoder

OWN_TEXT = "."
_PATH = re.compile(rf"\.|(?:{xml_layout.STEP_PATTERN}/)*@?{xml_layout.STEP_PATTERN}")
_PREFIX = re.compile(r"([^/@:]+):")
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_IN_TEXT = str.maketrans(_ESCAPES)
_IN_ATTRIBUTE = str.maketrans({**_ESCAPES, '"': "&quot;", "\n": "&#10;", "\t": "&#9;"})
_REGISTERED_NAMES = {
    "ascii": "US-ASCII",
    "big5hkscs": "Big5-HKSCS",
    "euc_jp": "EUC-JP",
    "euc_kr": "EUC-KR",
    "hz": "HZ-GB-2312",
    "iso2022_jp": "ISO-2022-JP",
    "iso2022_jp_2": "ISO-2022-JP-2",
    "iso2022_kr": "ISO-2022-KR",
    "kz1048": "KZ-1048",
    "mac-roman": "macintosh",
    **{f"utf-{bits}-{order}": f"UTF-{bits}{order.upper()}" for bits in (16, 32) for order in ("le", "be")},
}
"""Names of IANA's registry of character sets by those of Python, where they differ and Python knows both."""
_REGISTERED_FORMS = ((re.compile(r"cp(125\d)"), r"windows-\1"), (re.compile(r"iso8859-(\d+)"), r"ISO-8859-\1"))


def _column_path_or_raise(text: str) -> str:
    return xml_layout.validate_xml_path(_PATH, "a path such as No, @id, Address/City, or a dot", text)


XmlPath = Annotated[str, AfterValidator(_column_path_or_raise)]


XmlValue = Annotated[
    Annotated[Cell, Tag("cell")] | Annotated["XmlRow", Tag("part")],
    Discriminator(tag_as_part_or_cell),
]


class _Element(Struct):
    name: str
    text: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[_Element] = field(default_factory=list)
    named: dict[str, _Element] = field(default_factory=dict)

    def get_or_add_at_path(self, steps: Sequence[str]) -> _Element:
        """Return the element at the path of *steps*, which is made where there is none."""
        element = self
        for step in steps:
            if step not in element.named:
                element.named[step] = element.append_child(step)
            element = element.named[step]
        return element

    def append_child(self, name: str) -> _Element:
        self.children.append(_Element(name))
        return self.children[-1]

    def set_text_at_path(self, path: str, text: str) -> None:
        *steps, last = path.split("/")
        if last == OWN_TEXT:
            self.text = text
        elif last.startswith("@"):
            self.get_or_add_at_path(steps).attributes[last[1:]] = text
        else:
            self.get_or_add_at_path([*steps, last]).text = text

    def to_text(self, breaks: int) -> str:
        """Return the element, with line breaks between its children in the *breaks* outermost levels."""
        attributes = "".join(f' {name}="{text.translate(_IN_ATTRIBUTE)}"' for name, text in self.attributes.items())
        end = "\n" if breaks > 0 else ""
        inner = "".join(f"{end}{child.to_text(breaks - 1)}" for child in self.children)
        return f"<{self.name}{attributes}>{self.text.translate(_IN_TEXT)}{inner}{end if inner else ''}</{self.name}>"


class XmlRow(RowPart):
    """The columns of an element, or several such elements. With ``each``, there is one for each element of the list."""

    OWN = ("columns",)

    columns: Annotated[Mapping[XmlPath, XmlValue], Field(min_length=1)] | None = None
    """The values by the path of their element or attribute inside of this one, in the order of the file. One whose text
    is empty is left out. A section in place of a value makes elements: ``Lines/Line: {each: lines, columns: ...}``."""

    def cells_and_parts(self) -> Iterator[Cell | RowPart]:
        yield from (self.columns or {}).values()

    @model_validator(mode="after")
    def _raise_if_paths_conflict(self) -> Self:
        for path, value in (self.columns or {}).items():
            is_element = "@" not in path
            if isinstance(value, XmlRow) and (not is_element or path == OWN_TEXT):
                raise make_pydantic_error_at_key(("columns", path), "has rows, so it is an element")
            if OWN_TEXT in (self.columns or {}) and is_element and path != OWN_TEXT:
                raise make_pydantic_error_at_key(
                    ("columns", path), "is an element beside the text of the element around it"
                )
        return self

    def paths(self) -> Iterator[str]:
        for path, value in (self.columns or {}).items():
            yield path
            if isinstance(value, XmlRow):
                yield from value.paths()
        for row in self.inner_rows:
            yield from row.paths()

    def fill_element(self, element: _Element, scope: NamedValues, notation: NumberDefaults) -> None:
        for path, value in (self.columns or {}).items():
            if isinstance(value, XmlRow):
                *steps, name = path.split("/")
                for row, each in value.expanded_rows(scope):
                    row.fill_element(element.get_or_add_at_path(steps).append_child(name), each, notation)
            else:
                _set_text_of_cell(element, path, value, scope, notation)


def _raise_if_not_xml_names(path: str) -> None:
    for name in re.findall(r"[^/@:.][^/@:]*", path):
        try:
            ParserCreate().Parse(f"<{name}/>", True)
        except ExpatError:
            raise ValueError(f"{name} is not a name in XML") from None


def _set_text_of_cell(element: _Element, path: str, cell: Cell, scope: NamedValues, notation: NumberDefaults) -> None:
    text, place = cell.text(scope, notation)
    if (found := _NO_XML.search(text)) is not None:
        raise invalid_value_error(f"has the character U+{ord(found[0]):04X}, which no XML may have", place)
    if text:
        element.set_text_at_path(path, text)


class XmlContent(RowsContent[XmlRow]):
    """A file with one XML document."""

    kind: Literal["xml"]
    record: Annotated[str, AfterValidator(xml_layout.validate_record_path)]
    """The path of the records from the root, such as ``/Orders/Order``."""
    header: Mapping[XmlPath, Cell] = {}
    """Values before the records by their paths inside of the root, such as ``@version`` or ``Header/Sent``."""
    trailer: Mapping[XmlPath, Cell] = {}
    """Values after the records, likewise."""
    namespaces: Mapping[str, Annotated[str, Field(min_length=1, pattern=r"^\S+$")]] = {}
    """The namespaces of the prefixes in paths; that of the empty prefix is the one of elements without a prefix."""
    encoding: Annotated[str, AfterValidator(validate_encoding_name)] = "utf-8"
    """The character encoding by one of Python's names; characters that it lacks are written as references."""
    declaration: bool = True
    """Whether the file begins with an XML declaration, which names the encoding by its registered name."""
    decimal_mark: Literal[".", ","] = "."
    """The decimal mark of numbers that declare none of their own."""

    @model_validator(mode="after")
    def _raise_if_options_conflict(self) -> Self:
        for key, cells in (("header", self.header), ("trailer", self.trailer)):
            raise_if_cells_show_record_values(key, iter(cells.values()))
        rows = [*self.rows, *(self.update or ()), *(self.delete or ())]
        paths = [self.record, *self.header, *self.trailer, *(path for row in rows for path in row.paths())]
        for path in paths:
            for prefix in _PREFIX.findall(path):
                if prefix not in {*self.namespaces, "xml"}:
                    raise ValueError(f"namespaces lack the prefix {prefix!r} of {path}")
            _raise_if_not_xml_names(path)
            if self._encoder.first_lacking_character(path):
                raise make_pydantic_error_at_key(("encoding",), f"has not all characters of {path}")
        if len(self._record_path) == 1:
            raise make_pydantic_error_at_key(("record",), "has at least two names: an XML document has one root")
        return self

    def cells_outside_records(self) -> Iterator[Cell]:
        yield from (*self.header.values(), *self.trailer.values())

    @property
    def _record_path(self) -> Sequence[str]:
        return self.record.strip("/").split("/")

    def encode_file(self, records: Sequence[FileRecord], facts: WrittenFileFacts) -> bytes:
        root, *around, name = self._record_path
        document, notation = _Element(root), NumberDefaults(self.decimal_mark)
        for prefix, namespace in self.namespaces.items():
            document.attributes[f"xmlns:{prefix}" if prefix else "xmlns"] = namespace
        rows = [found for each in self.expanded_rows_by_record(records, facts) for found in each]
        scope = values_of_all_records(records, facts, rows=len(rows), lines=len(rows))
        for path, cell in self.header.items():
            _set_text_of_cell(document, path, cell, scope, notation)
        for row, each in rows:
            row.fill_element(document.get_or_add_at_path(around).append_child(name), each, notation)
        for path, cell in self.trailer.items():
            _set_text_of_cell(document, path, cell, scope, notation)
        text = f"{self._declaration}{document.to_text(len(around) + 1)}\n"
        return self._encoder.encode_with_references(text)

    @property
    def _encoder(self) -> TextEncoder:
        return TextEncoder(self.encoding)

    @property
    def _declaration(self) -> str:
        if not self.declaration:
            return ""
        name = codecs.lookup(self.encoding).name.removesuffix("-sig")
        name = _REGISTERED_NAMES.get(name, name)
        for form, registered in _REGISTERED_FORMS:
            name = form.sub(registered, name)
        return f'<?xml version="1.0" encoding="{name.upper() if name.startswith("utf") else name}"?>\n'
