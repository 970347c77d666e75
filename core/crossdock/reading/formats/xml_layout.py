"""How an XML file is laid out: the path of its records, and the paths of their columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from typing import Annotated, Literal, Self

from msgspec import Struct
from pydantic import AfterValidator, Field, model_validator

from crossdock.reading.formats.file_formats import FileLayout, validate_column_names
from crossdock.reading.formats.text_decoding import validate_encoding_name
from crossdock.values.config_base_types import make_pydantic_error_at_key

_NAME = r"[^\W\d][\w.\-]*"
STEP_PATTERN = rf"(?:{_NAME}:)?{_NAME}"
_ELEMENT = re.compile(rf"{STEP_PATTERN}(?:/{STEP_PATTERN})*")
_COLUMN = re.compile(rf"\.|/?(?:{STEP_PATTERN}/)*@?{STEP_PATTERN}")
_BUILT_IN = {"xml": "http://www.w3.org/XML/1998/namespace"}
MAX_STEPS = 32
NAMESPACE_SEPARATOR = " "
"""Comes between the namespace of a name and its local part; no namespace holds it."""


class XmlPath(Struct, frozen=True):
    """Names of elements from the outermost one, each with its namespace, and the name of an attribute or None."""

    elements: tuple[str, ...]
    attribute: str | None = None

    def begins_with_elements(self, outer: tuple[str, ...]) -> bool:
        return self.elements[: len(outer)] == outer


def validate_xml_path(pattern: re.Pattern[str], form: str, text: str) -> str:
    """Return *text* if it is a path. Raises ValueError."""
    if not pattern.fullmatch(text) or text.count("/") > MAX_STEPS:
        raise ValueError(f"must be {form}, of at most {MAX_STEPS} names")
    return text


def validate_record_path(text: str) -> str:
    """Return *text* if it is a path of elements from the root. Raises ValueError."""
    validate_xml_path(_ELEMENT, "a path of elements from the root, such as /Orders/Order", text.removeprefix("/"))
    if not text.startswith("/"):
        raise ValueError("must be a path from the root, such as /Orders/Order")
    return text


def _validate_rows_path(text: str) -> str:
    return validate_xml_path(_ELEMENT, "a path of elements inside of the record, such as Lines/Line", text)


def _validate_column_path(text: str) -> str:
    return validate_xml_path(_COLUMN, "a path such as No, @id, Address/City, /Orders/Header/Sent, or a dot", text)


def _validate_count_path(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError("must be a path from the root, such as /Orders/Trailer/Count or /Orders/@count")
    return _validate_column_path(text)


class XmlFormat(FileLayout):
    """The layout of an XML file: one document with a list of records. Elements without a declared path are not read."""

    kind: Literal["xml"]
    record: Annotated[str, AfterValidator(validate_record_path)]
    """The path of the records from the root, such as ``/Orders/Order``."""
    columns: Annotated[Mapping[str, Annotated[str, AfterValidator(_validate_column_path)]], Field(min_length=1)]
    """The columns by name, each with the path of an element or attribute: ``No``, ``@no``, ``Address/City``, ``.`` for
    the text of the record, ``/Orders/Header/Sent`` for a value around the records."""
    rows: Annotated[str, AfterValidator(_validate_rows_path)] | None = None
    """The path of elements inside of the record that are a row each, such as ``Lines/Line``. A record without one is
    one row."""
    namespaces: Mapping[str, Annotated[str, Field(min_length=1, pattern=r"^\S+$")]] = {}
    """The namespaces of the prefixes in paths; that of the empty prefix is the one of elements without a prefix."""
    count: Annotated[str, AfterValidator(_validate_count_path)] | None = None
    """The path, from the root, of an element or attribute that states the number of records."""
    trim: bool = True
    """Whether blanks and line ends around values are left out."""
    missing: Literal["empty", "refuse"] = "empty"
    """Whether an element or attribute that a record lacks is an empty cell (``empty``), or refuses the file."""
    encoding: Annotated[str, AfterValidator(validate_encoding_name)] | None = None
    """The character encoding, if it is another one than the file declares."""

    @property
    def states_rows(self) -> bool:
        return self.count is not None

    def absolute_path(self, text: str) -> XmlPath:
        """Return a path from the root; *text* may begin inside of the record."""
        around = () if text.startswith("/") else self.record_path
        *elements, last = text.strip("/").split("/")
        if last == ".":
            return XmlPath(around)
        if last.startswith("@"):
            return XmlPath(
                (*around, *map(self._name_with_namespace, elements)), self._name_with_namespace(last[1:], default=False)
            )
        return XmlPath((*around, *map(self._name_with_namespace, [*elements, last])))

    @property
    def record_path(self) -> tuple[str, ...]:
        return tuple(map(self._name_with_namespace, self.record.strip("/").split("/")))

    @property
    def row_element_names(self) -> tuple[str, ...] | None:
        return None if self.rows is None else self.absolute_path(self.rows).elements

    def _name_with_namespace(self, step: str, *, default: bool = True) -> str:
        prefix, _, local = step.rpartition(":")
        if not prefix and not (default and "" in self.namespaces):
            return local
        return f"{self._all_namespaces[prefix]}{NAMESPACE_SEPARATOR}{local}"

    @property
    def _all_namespaces(self) -> dict[str, str]:
        return {**_BUILT_IN, **self.namespaces}

    @model_validator(mode="after")
    def _raise_if_prefixes_or_names_invalid(self) -> Self:
        for path in (self.record, self.rows or "", self.count or "", *self.columns.values()):
            for prefix in re.findall(rf"({_NAME}):", path):
                if prefix not in self._all_namespaces:
                    raise ValueError(f"namespaces lack the prefix {prefix!r} of {path}")
        validate_column_names(tuple(self.columns))
        return self

    @model_validator(mode="after")
    def _raise_if_paths_conflict(self) -> Self:
        record = self.record_path
        if self.count is not None and self.absolute_path(self.count).begins_with_elements(record):
            raise make_pydantic_error_at_key(("count",), "must be outside of the records")
        paths = {name: self.absolute_path(text) for name, text in self.columns.items()}
        for name, path in paths.items():
            is_around = self.columns[name].startswith("/")
            if is_around and path.begins_with_elements(record):
                raise make_pydantic_error_at_key(
                    ("columns", name), "is inside of the record: begin it there, without a slash"
                )
            if is_around and path.attribute is None and record[: len(path.elements)] == path.elements:
                raise make_pydantic_error_at_key(
                    ("columns", name), "is an element around the records: it has no text of its own"
                )
        counted = {} if self.count is None else {"count": self.absolute_path(self.count)}
        for (one, first), (other, second) in combinations({**paths, **counted}.items(), 2):
            if first == second:
                raise ValueError(f"{one} and {other} have the same path")
        texts = {path.elements: name for name, path in {**paths, **counted}.items() if path.attribute is None}
        for inner in {
            *(path.elements for path in paths.values()),
            *([self.row_element_names] if self.row_element_names else []),
        }:
            for length in range(len(inner)):
                if (outer := texts.get(inner[:length])) is not None:
                    raise ValueError(f"{outer} is the text of an element inside of which are others that are declared")
        return self
