"""What cells may name: members of the payload, elements of its lists, and facts of the record and of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from crossdock.errors import RecordError
from crossdock.values.json_paths import MISSING, at_path, member_or_missing, type_description
from crossdock.writing.files.content_interface import FileRecord, WrittenFileFacts

_NUMBER = re.compile(r"(?<=[./])[0-9]+(?=[./]|$)")
OPERATION = "operation"
FILE_NAMES = frozenset({"file_number", "file_name", "file_time"})
RECORD_NAMES = FILE_NAMES | {OPERATION, "external_id", "record_number", "row_number", "row_in_record"}
TOTALS = FILE_NAMES | {"records", "rows", "lines"}
"""The names in header and trailer rows: no record belongs to them."""
OWN_NAMES = RECORD_NAMES | TOTALS


def invalid_value_error(message: str, pointer: str) -> RecordError:
    return RecordError("invalid_draft", message, pointer=pointer)


def pointer_of_path(path: str) -> str:
    return path if path.startswith("/") or not path else "/" + path.replace(".", "/")


class NamedValues(Struct, frozen=True):
    """The values of one row.

    Attributes:
        payloads: The payload of the record; in header and trailer rows, those of all records.
        own: What crossdock knows, by name. These names come before members of the payload, which a JSON pointer such as
            ``/operation`` reaches in any case.
        elements: The elements of lists whose rows are made, by the name that the declaration gives them, each with its
            JSON pointer.
    """

    payloads: Sequence[Mapping[str, Any]]
    own: Mapping[str, Any]
    elements: Mapping[str, tuple[Any, str]] = field(default_factory=dict)

    def value_and_place(self, path: str) -> tuple[Any, str]:
        """Return the value at *path*, or `MISSING`, and its place."""
        if path in self.own:
            return self.own[path], path
        value, place, rest = self._value_place_and_rest_of_path(path)
        return (at_path(value, rest) if rest else value), place + pointer_of_path(rest)

    def has_value(self, path: str) -> bool:
        """Return whether there is a value at *path*, in whichever element of lists it names by number."""
        return any(self.value_and_place(each)[0] is not MISSING for each in (path, _NUMBER.sub("0", path)))

    def _value_place_and_rest_of_path(self, path: str) -> tuple[Any, str, str]:
        name, _, rest = path.partition(".")
        if name in self.elements:
            return *self.elements[name], rest
        return (self.payloads[0] if self.payloads else {}), "", path

    def all_values_at(self, path: str) -> Iterator[tuple[Any, str]]:
        """Yield each value at *path*, which goes on in every element of the lists on its way, with its place."""
        name, _, rest = path.partition(".")
        if name in self.elements:
            value, place = self.elements[name]
            yield from _values_along_path(value, rest.split(".") if rest else [], place)
            return
        for payload in self.payloads:
            yield from _values_along_path(payload, path.split("."), "")

    def scopes_of_elements(self, path: str | None, name: str) -> Iterator[NamedValues]:
        """Yield the scope of each element of the list at *path*, called *name*; without *path*, this one."""
        if path is None:
            yield self
            return
        elements, place = self.value_and_place(path)
        if not isinstance(elements, list):
            raise invalid_value_error(f"{type_description(elements)}, and should be a list", place)
        if not elements:
            raise invalid_value_error("has no elements", place)
        for number, element in enumerate(elements, 1):
            yield self._scope_of_element(name, number, element, f"{place}/{number - 1}")

    def _scope_of_element(self, name: str, number: int, element: Any, place: str) -> NamedValues:
        own = {**self.own, f"{name}_number": number}
        return NamedValues(self.payloads, own, {**self.elements, name: (element, place)})

    def with_row_numbers(self, number: int, in_record: int) -> NamedValues:
        return NamedValues(self.payloads, {**self.own, "row_number": number, "row_in_record": in_record}, self.elements)


def _values_along_path(value: Any, names: Sequence[str], place: str) -> Iterator[tuple[Any, str]]:
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _values_along_path(each, names, f"{place}/{number}")
    elif not names:
        yield value, place
    else:
        inner = member_or_missing(value, names[0]) if isinstance(value, Mapping) else MISSING
        yield from _values_along_path(inner, names[1:] if inner is not MISSING else (), f"{place}/{names[0]}")


def file_facts_by_name(facts: WrittenFileFacts) -> dict[str, Any]:
    return {"file_number": facts.number, "file_name": facts.name, "file_time": facts.at}


def values_of_record(record: FileRecord, number: int, facts: WrittenFileFacts) -> NamedValues:
    own = {
        **file_facts_by_name(facts),
        OPERATION: record.operation,
        "external_id": record.name,
        "record_number": number,
    }
    return NamedValues([record.payload], own)
