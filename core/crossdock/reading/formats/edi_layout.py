"""The layout of EDI files, X12 and EDIFACT: loops of segments, and columns by segment, element and qualifiers.

A layout is declarative: a partner's variant is a config, and no code. Ready layouts are the files in ``edi_layouts``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from crossdock.reading.formats.file_formats import FileLayout, validate_column_names
from crossdock.reading.formats.text_decoding import validate_encoding_name
from crossdock.values import yaml_reader
from crossdock.values.config_base_types import ConfigModel, make_pydantic_error_at_key

SET = "set"
"""The name of the outermost loop: the transaction set or message, with the headers around it."""
_TAG = "[A-Z][A-Z0-9]{1,2}"
_NUMBER = "[1-9][0-9]?"
SEGMENT_TAG = re.compile(_TAG)
_PATH = re.compile(rf"({_TAG})\.({_NUMBER})(?:\.({_NUMBER}))?")
_PLACE = re.compile(rf"({_NUMBER})(?:\.({_NUMBER}))?")
_FOLDER = files("crossdock.reading.formats").joinpath("edi_layouts")

Tag = Annotated[str, Field(pattern=f"^{_TAG}$")]
Texts = str | Annotated[list[str], Field(min_length=1)]
Place = Annotated[str, Field(pattern=rf"^{_PLACE.pattern}$")]
Condition = tuple[int, int | None, frozenset[str]]
"""An element, one of its components, and the texts of which it has one."""


def parse_conditions(when: Mapping[str, Texts]) -> tuple[Condition, ...]:
    found = []
    for place, texts in when.items():
        element, component = parse_element_and_component(place)
        found.append((element, component, frozenset([texts] if isinstance(texts, str) else texts)))
    return tuple(found)


def parse_element_and_component(place: str) -> tuple[int, int | None]:
    element, _, component = place.partition(".")
    return int(element), int(component) if component else None


class EdiLoop(ConfigModel):
    """Segments that belong together and may be repeated, such as those of a line."""

    starts: Tag
    """The segment that begins it."""
    when: Mapping[Place, Texts] = {}
    """Elements of that segment and their texts, such as ``{1: ST}``; a list means any of them. Other segments begin no
    loop of this name."""
    in_: Annotated[Texts, Field(alias="in")] = SET
    """The loop around it, or several of which it may be in any; by default the set."""
    segments: list[Tag] | None = None
    """The segments that belong to it, besides its first; any other one ends it. By default all that follow do."""

    @property
    def parents(self) -> tuple[str, ...]:
        return (self.in_,) if isinstance(self.in_, str) else tuple(self.in_)


class EdiColumn(ConfigModel):
    """One column: an element of a segment, in the loop of the row or the nearest one around it."""

    at: Annotated[str, Field(pattern=rf"^{_PATH.pattern}$")]
    """The segment, its element and, if it has several, the component, from 1, such as ``N1.4`` or ``LIN.3.1``. Without
    component: the first one in EDIFACT, the whole element in X12."""
    when: Mapping[Place, Texts] = {}
    """Elements of that segment and their texts, such as ``{1: ST}``; other segments are not read. An empty text stands
    for an element that is not there."""
    qualifier: Texts | None = None
    """The qualifier of the value, or a list of them, where elements from ``at`` on are pairs of a qualifier and a value
    (X12), or values whose second component is the qualifier (EDIFACT)."""
    to: Annotated[int, Field(ge=2, le=99)] | None = None
    """The last element with such a value, where a segment may have several of them."""
    loop: str | None = None
    """The only loop in which it is looked for; by default that of the row and those around it."""
    several: Literal["refuse", "first", "last", "join"] = "refuse"
    """What is read of several different values: nothing, one of them, or all with a space between them."""
    as_: Annotated[Literal["text", "number", "date"], Field(alias="as")] = "text"
    """``number``: checked, with a point as the decimal mark. ``date``: checked, as ``2026-11-01``."""
    decimals: Annotated[int, Field(ge=0, le=18)] | None = None
    """How many of the last digits of a number come after a point that is not written (types N0 to N9 of X12)."""

    @model_validator(mode="after")
    def _raise_if_settings_conflict(self) -> Self:
        if self.to is not None and (self.to <= self.element or self.qualifier is not None):
            raise make_pydantic_error_at_key(("to",), "is an element after that of at, and stands without qualifier")
        if self.decimals is not None and self.as_ != "number":
            raise make_pydantic_error_at_key(("decimals",), "is for numbers: declare as: number")
        return self

    @property
    def tag(self) -> str:
        return self.at.partition(".")[0]

    @property
    def element(self) -> int:
        return parse_element_and_component(self.at.partition(".")[2])[0]

    @property
    def component(self) -> int | None:
        return parse_element_and_component(self.at.partition(".")[2])[1]


def _expand_column_shorthand(value: Any) -> Any:
    return {"at": value} if isinstance(value, str) else value


Column = Annotated[EdiColumn, BeforeValidator(_expand_column_shorthand, json_schema_input_type=str | EdiColumn)]


class EdiFormat(FileLayout):
    """What the layouts of X12 and EDIFACT have in common."""

    layout: str | None = None
    """A ready layout, such as ``x12/945``; loops and columns beside it are added, or replace those of the same name."""
    loops: Mapping[str, EdiLoop] = {}
    """The loops of the set by name."""
    rows: str = SET
    """The loop that makes rows, one each time; a set without it makes one row. By default the set."""
    columns: Mapping[str, Column] = {}
    """The columns by name: a path such as ``W06.2``, or a section. Segments around the set are read, too: ``ISA.6``."""
    test: bool = False
    """Whether interchanges that say that they are tests are read, too; by default they are refused."""

    @model_validator(mode="before")
    @classmethod
    def _merge_ready_layout(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or not isinstance(name := data.get("layout"), str):
            return data
        ready = get_ready_layout_or_raise(read_ready_layouts(), name, cls.model_fields["kind"].annotation)
        merged = {
            key: {**ready.get(key, {}), **given}
            for key in ("loops", "columns")
            if isinstance(given := data.get(key, {}), Mapping)
        }
        return {**ready, **data, **merged}

    @model_validator(mode="after")
    def _raise_if_loops_or_columns_invalid(self) -> Self:
        if not self.columns or not self.set_to_read:
            raise ValueError("needs a ready layout, or what is read (set or message) and its columns")
        try:
            validate_column_names(list(self.columns))
        except ValueError as error:
            raise make_pydantic_error_at_key(("columns",), str(error)) from None
        if SET in self.loops:
            raise make_pydantic_error_at_key(("loops", SET), f"{SET} is the name of the whole set")
        known = [SET, *self.loops]
        named = [(("loops", name, "in"), each) for name, loop in self.loops.items() for each in loop.parents]
        named += [(("columns", name, "loop"), each.loop) for name, each in self.columns.items() if each.loop]
        for place, loop_name in [(("rows",), self.rows), *named]:
            if loop_name not in known:
                raise make_pydantic_error_at_key(place, f"names no loop: there are {', '.join(known)}")
        return self

    @property
    def set_to_read(self) -> str:
        """The set or message that is read."""
        raise NotImplementedError

    @property
    def states_rows(self) -> bool:
        """The envelope states the numbers of groups, sets and segments."""
        return True


class X12Format(EdiFormat):
    """A file of X12 interchanges."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["set"]}, {"required": ["layout"]}]})

    kind: Literal["x12"]
    set_: Annotated[str, Field(alias="set", pattern="^[0-9]{3}$")] = ""
    """The transaction set that is read, such as ``"945"``; those of other kinds are counted and not read."""
    encoding: Annotated[str, AfterValidator(validate_encoding_name)] = "utf-8"
    """The character encoding by one of Python's names."""

    @property
    def set_to_read(self) -> str:
        return self.set_


class EdifactFormat(EdiFormat):
    """A file of EDIFACT interchanges."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["message"]}, {"required": ["layout"]}]})

    kind: Literal["edifact"]
    message: Annotated[str, Field(pattern="^[A-Z]{6}$")] = ""
    """The message that is read, such as ``DESADV``; those of other kinds are counted and not read."""
    encoding: Annotated[str, AfterValidator(validate_encoding_name)] | None = None
    """The character encoding by one of Python's names; by default the one that UNB names, such as UNOC for Latin-1."""

    @property
    def set_to_read(self) -> str:
        return self.message


@cache
def read_ready_layouts() -> Mapping[str, Mapping[str, Any]]:
    """Return the ready layouts by name: ``x12/945`` is the file ``x12_945.yaml``."""
    return read_layouts_in_folder(_FOLDER)


def read_layouts_in_folder(folder: Traversable) -> Mapping[str, Mapping[str, Any]]:
    """Return what the YAML files in *folder* declare, by kind and name."""
    found = {}
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        name = file.name.removesuffix(".yaml")
        if name != file.name:
            data = yaml_reader.parse_yaml_mapping(file.read_text("utf-8"), file.name, None).data
            found[f"{data['kind']}/{name.partition('_')[2]}"] = data
    return found


def get_ready_layout_or_raise(ready: Mapping[str, Mapping[str, Any]], name: str, kind: Any) -> Mapping[str, Any]:
    """Return the one called *name*, of a section whose ``kind`` has the type *kind*. Raises PydanticCustomError."""
    known = sorted(each for each in ready if each.partition("/")[0] in get_args(kind))
    if name not in known:
        raise make_pydantic_error_at_key(("layout",), f"is not a ready layout: there are {', '.join(known)}")
    return ready[name]
