"""JSON: one object in each line, or one document with a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from crossdock.printable import printable_json
from crossdock.reading.formats.json_files import split_member_path, validate_member_path
from crossdock.values import exact_json
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.values.json_paths import MISSING
from crossdock.writing.files.cell_declarations import Cell, NamedValues, NumberDefaults, invalid_value_error
from crossdock.writing.files.content_interface import FileRecord, WrittenFileFacts
from crossdock.writing.files.row_declarations import (
    RowPart,
    RowsContent,
    raise_if_cells_show_record_values,
    tag_as_part_or_cell,
    values_of_all_records,
)

JsonPath = Annotated[str, AfterValidator(validate_member_path)]
_NOTATION = NumberDefaults()


JsonValue = Annotated[
    Annotated[Cell, Tag("cell")] | Annotated["JsonRow", Tag("part")],
    Discriminator(tag_as_part_or_cell),
]


class JsonRow(RowPart):
    """An object or another value of JSON. With ``each``, inside of an object, it is a list."""

    OWN = ("object", "value")

    object: Annotated[Mapping[str, JsonValue], Field(min_length=1)] | None = None
    """The members by name. One is left out if its text is empty, as a ``default`` or a question mark makes it."""
    value: JsonValue | None = None
    """In place of an object: one value, such as ``{from: ""}``, which is the whole payload."""

    def cells_and_parts(self) -> Iterator[Cell | RowPart]:
        yield from (self.object or {}).values() if self.value is None else (self.value,)

    def json_value(self, scope: NamedValues) -> Any:
        """Return the value of one row."""
        if self.value is not None:
            return _value_of_cell_or_part(self.value, scope)
        members = {name: _value_of_cell_or_part(value, scope) for name, value in (self.object or {}).items()}
        return {name: value for name, value in members.items() if value is not MISSING}

    def value_as_member(self, scope: NamedValues) -> Any:
        """Return the value of this part of an object, or `MISSING`."""
        made = [row.json_value(each) for row, each in self.expanded_rows(scope)]
        if self.each is None and not self.inner_rows:
            return made[0] if made else MISSING
        return [each for each in made if each is not MISSING]


def _value_of_cell_or_part(value: Cell | JsonRow, scope: NamedValues) -> Any:
    return value.value_as_member(scope) if isinstance(value, JsonRow) else value.json_value(scope, _NOTATION)


def exact_json_text_or_raise(value: Any) -> str:
    """Return JSON in its one exact form: members sorted by name, numbers without an exponent.

    Invisible characters are escapes: programs that take U+2028 or U+0085 for the end of a line read the same lines.
    """
    try:
        return printable_json(exact_json.dumps(value).decode())
    except (ValueError, TypeError) as error:
        raise invalid_value_error(f"cannot be written as JSON: {error}", "") from None


class JsonLinesContent(RowsContent[JsonRow]):
    """A file in UTF-8 with one JSON object in each line, which ends with LF."""

    kind: Literal["json_lines"]

    def encode_file(self, records: Sequence[FileRecord], facts: WrittenFileFacts) -> bytes:
        rows = [found for each in self.expanded_rows_by_record(records, facts) for found in each]
        return "".join(
            f"{exact_json_text_or_raise(_object_or_raise(row.json_value(scope)))}\n" for row, scope in rows
        ).encode()


def _object_or_raise(made: Any) -> Any:
    if not isinstance(made, Mapping):
        raise invalid_value_error("is no object", "")
    return made


class JsonContent(RowsContent[JsonRow]):
    """A file in UTF-8 with one JSON document, which has a list of records."""

    kind: Literal["json"]
    records: JsonPath = ""
    """The dotted path, or JSON pointer, of the list of records; by default the document is the list."""
    header: Mapping[JsonPath, Cell] = {}
    """Members outside of the records by their paths, such as ``meta.count: "{records}"``."""

    def cells_outside_records(self) -> Iterator[Cell]:
        return iter(self.header.values())

    @model_validator(mode="after")
    def _raise_if_options_conflict(self) -> Self:
        raise_if_cells_show_record_values("header", iter(self.header.values()))
        paths = [split_member_path(path) for path in (self.records, *self.header)]
        for number, path in enumerate(paths):
            for other in paths[number + 1 :]:
                shorter = min(len(path), len(other))
                if path[:shorter] == other[:shorter]:
                    raise make_pydantic_error_at_key(
                        ("header",), "has two members at one place, or one inside of the records"
                    )
        return self

    def encode_file(self, records: Sequence[FileRecord], facts: WrittenFileFacts) -> bytes:
        rows = [found for each in self.expanded_rows_by_record(records, facts) for found in each]
        scope = values_of_all_records(records, facts, rows=len(rows), lines=len(rows))
        document: Any = [row.json_value(each) for row, each in rows]
        if self.records:
            document = _with_member_at_path({}, split_member_path(self.records), document)
        for path, cell in self.header.items():
            if (value := cell.json_value(scope, _NOTATION)) is not MISSING:
                document = _with_member_at_path(document, split_member_path(path), value)
        return f"{exact_json_text_or_raise(document)}\n".encode()


def _with_member_at_path(document: dict[str, Any], names: Sequence[str], value: Any) -> dict[str, Any]:
    first, *rest = names
    return {**document, first: _with_member_at_path(document.get(first, {}), rest, value) if rest else value}
