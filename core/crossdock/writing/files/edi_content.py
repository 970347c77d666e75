"""What X12 and EDIFACT have in common: segments of elements and components, and ready declarations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Discriminator, Field, GetJsonSchemaHandler, Tag, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from crossdock.errors import RecordError
from crossdock.reading.formats.edi_layout import SEGMENT_TAG, get_ready_layout_or_raise, read_layouts_in_folder
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.writing.files.cell_declarations import Cell, NamedValues, NumberDefaults, invalid_value_error
from crossdock.writing.files.content_interface import FileRecord, WrittenFileFacts
from crossdock.writing.files.row_declarations import RowPart, RowsContent

MAX_ELEMENTS = 99
Separator = Annotated[str, Field(pattern=r"^[^A-Za-z0-9 \x00]$")]
"""A character that separates elements, components or segments, or releases one of these."""
_FOLDER = files("crossdock.writing.files").joinpath("ready_contents")


def _tag_as_cell_or_components(value: Any) -> str:
    return "components" if isinstance(value, list | tuple) else "cell"


_Components = Annotated[tuple[Cell, ...], Field(min_length=1, max_length=MAX_ELEMENTS)]
Element = Annotated[
    Annotated[Cell, Tag("cell")] | Annotated[_Components, Tag("components")],
    Discriminator(_tag_as_cell_or_components),
]


class EdiRow(RowPart):
    """A segment, or a group of them. A list alone is short for a segment."""

    OWN = ("segment",)

    segment: Annotated[tuple[Element, ...], Field(min_length=1, max_length=MAX_ELEMENTS)] | None = None
    """The tag and the elements, such as ``[N1, ST, "{ship_to.name}"]``. A list in its place is an element of several
    components. Empty ones at the end are left out, and so is a segment that has no other."""

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, data: Any) -> Any:
        return {"segment": data} if isinstance(data, list | tuple) else data

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), "type": ["object", "array"], "minItems": 1, "maxItems": MAX_ELEMENTS}

    @model_validator(mode="after")
    def _raise_if_segment_has_no_tag(self) -> Self:
        if self.segment is not None and self.tag is None:
            raise make_pydantic_error_at_key(
                ("segment",), "begins with a tag of two or three capital letters and digits"
            )
        return self

    @property
    def tag(self) -> str | None:
        first = self.segment[0] if self.segment else None
        text = first.template if isinstance(first, Cell) else None
        return text if text is not None and SEGMENT_TAG.fullmatch(text) else None

    def cells_and_parts(self) -> Iterator[Cell]:
        for element in self.segment or ():
            yield from (element,) if isinstance(element, Cell) else element


def _allow_layout_instead_of_rows_in_schema(schema: dict[str, Any]) -> None:
    """Change the JSON Schema of a content: a ready declaration has what is otherwise required."""
    given = [key for key in schema["required"] if key in {"rows", "set", "message"}]
    schema["required"] = [key for key in schema["required"] if key not in given]
    schema["anyOf"] = [{"required": given}, {"required": ["layout"]}]


class EdiContent(RowsContent[EdiRow]):
    """An interchange with one set or message for each record."""

    model_config = ConfigDict(json_schema_extra=_allow_layout_instead_of_rows_in_schema)

    layout: str | None = None
    """A ready declaration, such as ``x12/940``; keys beside it take the place of its own."""

    @model_validator(mode="before")
    @classmethod
    def _with_ready_layout(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or not isinstance(name := data.get("layout"), str):
            return data
        return {**get_ready_layout_or_raise(ready_layouts_by_name(), name, cls.model_fields["kind"].annotation), **data}

    @property
    def is_from_ready_layout(self) -> bool:
        return self.layout is not None

    def segments(
        self, records: Sequence[FileRecord], facts: WrittenFileFacts, notation: NumberDefaults
    ) -> Iterator[list[list[list[str]]]]:
        """Yield the segments of each record: elements of one or more components, escaped and without empty ends."""
        for rows in self.expanded_rows_by_record(records, facts):
            made = [self._elements_of_segment(row, scope, notation) for row, scope in rows]
            found = [each for each in made if len(each) > 1]
            if not found:
                raise invalid_value_error("no segment is written of this record", "")
            yield found

    def _elements_of_segment(self, row: EdiRow, scope: NamedValues, notation: NumberDefaults) -> list[list[str]]:
        elements = []
        for element in row.segment or ():
            cells = (element,) if isinstance(element, Cell) else element
            elements.append(without_empty_end([self.escaped(*cell.text(scope, notation)) for cell in cells], ""))
        return without_empty_end(elements, [])

    def raise_if_envelope_texts_unfit(self, *keys: str) -> None:
        """Raise PydanticCustomError at the first of *keys* whose text the interchange cannot have."""
        for key in keys:
            try:
                self.escaped(getattr(self, key) or "", key)
            except RecordError as error:
                raise make_pydantic_error_at_key((key,), error.message) from None

    @abstractmethod
    def escaped(self, text: str, place: str) -> str:
        """Return *text* as a segment has it. Raises RecordError at *place* if it cannot have it."""


def without_empty_end(parts: list[Any], empty: Any) -> list[Any]:
    while parts and parts[-1] == empty:
        parts.pop()
    return parts


@cache
def ready_layouts_by_name() -> Mapping[str, Mapping[str, Any]]:
    """Return the ready declarations by name: ``x12/940`` is the file ``x12_940.yaml``."""
    return read_layouts_in_folder(_FOLDER)
