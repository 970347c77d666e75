"""Cells of a row: text with members in braces, or one value with its notation, and what they may name.

That is members of the payload, elements of its lists, and facts of the record and of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from msgspec import Struct, field
from pydantic import AfterValidator, Field, GetJsonSchemaHandler, StrictStr, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

from crossdock.errors import RecordError
from crossdock.mapping.convert import MAX_DECIMALS, DecimalMark
from crossdock.values import exact_json
from crossdock.values.config_base_types import NOT_NULL, ConfigModel, differs_from_default, make_pydantic_error_at_key
from crossdock.values.field_types import exact_decimal_sum
from crossdock.values.json_paths import MISSING, member_or_missing, type_description, value_at_path_or_missing
from crossdock.values.time_formats_and_zones import TimeFormat, check_zone_name
from crossdock.writing.files.content_interface import OPERATIONS, FileOperation, FileRecord, WrittenFileFacts
from crossdock.writing.files.number_and_time_texts import (
    UNIX,
    NumberNotation,
    WrittenSign,
    exact_number_or_raise,
    formatted_time_text,
    time_format_or_raise,
)

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
        return (value_at_path_or_missing(value, rest) if rest else value), place + pointer_of_path(rest)

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


_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_OPTIONAL = "?"
_EVERY_OPERATION = frozenset(OPERATIONS)
_SOURCES = ("from", "template", "sum", "count")
_NUMERIC = frozenset({"decimal", "integer"})
MAX_LENGTH = 32_767
MAX_PLACES = 18

Path = Annotated[StrictStr, Field(max_length=500)]
As = Literal["text", "decimal", "integer", "date", "instant", "boolean"]


class NumberDefaults(Struct, frozen=True):
    """What a file has in common for all of its numbers."""

    decimal_mark: DecimalMark = "."
    encoding: str = "utf-8"
    sign: WrittenSign = "leading"
    """Where the sign of a number is that declares none of its own."""


class Cell(ConfigModel):
    """One value: a member, text around members, a sum or a count."""

    from_: Annotated[Path | None, Field(alias="from"), NOT_NULL] = None
    """The member that it shows: its name, a dotted path such as ``ship_to.city`` or ``line.sku``, or a JSON pointer."""
    template: Annotated[StrictStr | None, NOT_NULL] = None
    """Text with members in braces, such as ``SO-{external_id}``. A member must have a value, unless a question mark
    follows it: ``{ship_to.region?}``. A text alone is short for a template."""
    sum: Annotated[Path | None, NOT_NULL] = None
    """The member whose numbers are added up exactly: in every element of the lists on its path, such as
    ``lines.quantity``; in the rows of a record for this record, and in header and trailer rows for all."""
    count: Annotated[Path | None, NOT_NULL] = None
    """The list whose elements are counted, likewise."""
    as_: Annotated[As | None, Field(alias="as"), NOT_NULL] = None
    """What the value is, which is checked: it decides which other keys there are."""
    format: Annotated[str, Field(max_length=100), AfterValidator(time_format_or_raise)] | None = None
    """How a date or instant is written: with ``%Y %m %d %H %M %S`` and others of strftime that are the same in every
    language, or ``cyymmdd``, ``cyyddd`` or ``unix``; by default ISO 8601."""
    timezone: Annotated[str, AfterValidator(check_zone_name)] | None = None
    """The IANA time zone in which an instant is written; by default UTC, and the partner's zone of ``file_time``."""
    decimal_mark: DecimalMark | None = None
    """The decimal mark of a number; by default that of the file, which is a point."""
    places: Annotated[int, Field(ge=0, le=MAX_PLACES)] | None = None
    """How many digits follow the decimal mark; by default as many as the number has. More are never rounded."""
    decimals: Annotated[int, Field(ge=-MAX_DECIMALS, le=MAX_DECIMALS)] | None = None
    """How many of the last digits come after the decimal mark, which is not written: with 2, 12.5 is ``1250``."""
    digits: Annotated[int, Field(ge=1, le=38)] | None = None
    """The fewest digits of a number before the decimal mark, with zeros before them."""
    sign: WrittenSign | None = None
    """Where the sign of a number is: ``leading`` by default; with ``none``, negative numbers are refused."""
    true_text: str = "true"
    """The text of a boolean that is true."""
    false_text: str = "false"
    """The text of one that is false."""
    table: Annotated[Mapping[str, str], Field(min_length=1)] | None = None
    """The text of each text of the member, such as ``{create: N, update: R, delete: F}`` of ``operation``. Another
    one refuses the record, unless ``otherwise`` is set."""
    otherwise: str | None = None
    """The text of one that the table does not list."""
    default: str | None = None
    """What is written of a member without a value; without it, such a record is refused."""
    max_length: Annotated[int, Field(ge=1, le=MAX_LENGTH)] | None = None
    """The most characters; a longer text refuses the record."""
    cut: bool = False
    """Whether a longer text is cut instead."""

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, data: Any) -> Any:
        if isinstance(data, bool | int | Decimal):
            raise PydanticCustomError("string_type", "must be text: quote numbers and words such as yes and no")
        return {"template": data} if isinstance(data, str) else data

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), "type": ["object", "string"]} if cls is Cell else handler(schema)

    @model_validator(mode="after")
    def _raise_if_cell_options_conflict(self) -> Self:
        given = [name for name in _SOURCES if self._value_of_source_key(name) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of {', '.join(_SOURCES)}")
        source, number = given[0], self.is_number
        needs_number = None if number else "needs as: decimal or as: integer"
        timed = None if self.as_ in {"date", "instant"} else "needs as: date or as: instant"
        text = None if source == "from" and self.as_ in {None, "text"} else "looks up the text of from, without as"
        wrong = {
            "format": "needs as: instant" if self.format == UNIX and self.as_ == "date" else timed,
            "timezone": None if self.as_ == "instant" else "needs as: instant",
            "decimal_mark": needs_number or ("cannot be used with decimals" if self.decimals is not None else None),
            "places": needs_number or ("cannot be used with decimals" if self.decimals is not None else None),
            "decimals": needs_number,
            "digits": needs_number,
            "sign": needs_number,
            "table": text,
            "otherwise": None if self.table else "needs a table",
            "default": None if source == "from" else "needs from; in a template, a question mark follows the member",
        }
        for name, problem in wrong.items():
            if problem and getattr(self, name) is not None:
                raise make_pydantic_error_at_key((name,), problem)
        if self.as_ is not None and source not in {"from", "sum"}:
            raise make_pydantic_error_at_key(("as",), "needs from or sum")
        if source == "sum" and self.value_type not in _NUMERIC:
            raise make_pydantic_error_at_key(("as",), "a sum is a decimal or an integer")
        if self.cut and (self.max_characters is None or number):
            raise make_pydantic_error_at_key(("cut",), "needs max_length, and is for texts: a number is never cut")
        return self

    def _value_of_source_key(self, name: str) -> str | None:
        found: str | None = self.from_ if name == "from" else getattr(self, name)
        return found

    @property
    def is_number(self) -> bool:
        return self.value_type in _NUMERIC

    @property
    def value_type(self) -> As:
        if self.count is not None:
            return "integer"
        return self.as_ or ("text" if self.sum is None else "decimal")

    @property
    def max_characters(self) -> int | None:
        """The most characters of the text."""
        return self.max_length

    # ---- what it names

    def shown_member_names(self) -> Iterator[str]:
        """Yield the members that it shows, without those that are added up or counted."""
        if self.template is not None:
            yield from (hole.removesuffix(_OPTIONAL) for hole in _PLACEHOLDER.findall(self.template))
        elif self.from_ is not None:
            yield self.from_

    def names_lacking_in_scope(self, scope: NamedValues, *, required: bool) -> Iterator[str]:
        """Yield what it shows, adds up or counts and *scope* has not; with *required*, only what must have a value."""
        for name in self._required_names() if required else self.shown_member_names():
            if not scope.has_value(name):
                yield name
        summed = self.sum or self.count
        if summed is not None and any(value is MISSING for value, _ in scope.all_values_at(summed)):
            yield summed

    def _required_names(self) -> Iterator[str]:
        if self.template is not None:
            yield from (hole for hole in _PLACEHOLDER.findall(self.template) if not hole.endswith(_OPTIONAL))
        elif self.from_ is not None and self.default is None:
            yield self.from_

    def distinguished_operations(self) -> frozenset[FileOperation]:
        """Return the operations that it tells apart; none if it does not show the operation."""
        if OPERATION not in self.shown_member_names():
            return frozenset()
        if self.table is None or self.otherwise is not None:
            return _EVERY_OPERATION
        return frozenset(each for each in OPERATIONS if each in self.table)

    # ---- its value

    def text(self, scope: NamedValues, notation: NumberDefaults) -> tuple[str, str]:
        """Return the text of the cell, with its place. Raises RecordError at the member that does not fit."""
        written, place = self._uncut_text_and_place(scope, notation)
        if self.max_characters is None or len(written) <= self.max_characters:
            return written, place
        if self.cut:
            return written[: self.max_characters], place
        raise invalid_value_error(
            f"has {len(written):,} characters, and at most {self.max_characters:,} are allowed", place
        )

    def json_value(self, scope: NamedValues, notation: NumberDefaults) -> Any:
        """Return the value for JSON: the member as it is, if the cell declares no other text of it.

        `MISSING` stands for a cell that would be empty.
        """
        if self.is_number:
            number = self.number_and_place(scope)[0] if self._is_plain_number else None
            return self.text(scope, notation)[0] or MISSING if number is None else number
        if (path := self._member_shown_unchanged) is not None:
            found = scope.value_and_place(path)[0]
            if not _is_missing_or_empty(found) and not isinstance(found, str | datetime):
                return found
        return self.text(scope, notation)[0] or MISSING

    @property
    def _is_plain_number(self) -> bool:
        return all(getattr(self, name) is None for name in ("decimal_mark", "places", "decimals", "digits", "sign"))

    @property
    def _member_shown_unchanged(self) -> str | None:
        if self.template is not None:
            hole = _PLACEHOLDER.fullmatch(self.template)
            return None if hole is None else hole[1].removesuffix(_OPTIONAL)
        has_text = (
            self.table is not None
            or differs_from_default(self, "true_text")
            or differs_from_default(self, "false_text")
        )
        return None if has_text or self.as_ in {"date", "instant"} else self.from_

    def number_and_place(self, scope: NamedValues) -> tuple[Decimal | None, str]:
        """Return the exact number that it shows, with its place; None if a default stands for it."""
        if self.sum is not None:
            return self._exact_sum_of_members(scope), self.sum
        if self.count is not None:
            return Decimal(
                sum(self._one_or_raise_if_missing(*each) for each in scope.all_values_at(self.count))
            ), self.count
        value, place = scope.value_and_place(self.from_ or "")
        return (
            None if self._uses_default_or_raise_if_missing(value, place) else self._exact_number_or_raise(value, place)
        ), place

    def _uncut_text_and_place(self, scope: NamedValues, notation: NumberDefaults) -> tuple[str, str]:
        if self.template is not None and "{" not in self.template:
            return self.template, ""
        if self.template is not None:
            places = [
                scope.value_and_place(hole.removesuffix(_OPTIONAL))[1] for hole in _PLACEHOLDER.findall(self.template)
            ]
            mark = notation.decimal_mark
            filled = _PLACEHOLDER.sub(lambda hole: _filled_placeholder_text(hole[1], scope, mark), self.template)
            return filled, ", ".join(places)
        if self.is_number:
            number, place = self.number_and_place(scope)
            return (self.default or "" if number is None else self.number_text(number, place, notation)), place
        value, place = scope.value_and_place(self.from_ or "")
        if self._uses_default_or_raise_if_missing(value, place):
            return self.default or "", place
        return self._value_text(value, place, notation.decimal_mark), place

    def _uses_default_or_raise_if_missing(self, value: Any, place: str) -> bool:
        if not _is_missing_or_empty(value):
            return False
        if self.default is None:
            raise _missing_value_error(place)
        return True

    def _value_text(self, value: Any, place: str, decimal_mark: DecimalMark) -> str:
        match self.value_type:
            case "date":
                return self._time_text(value if isinstance(value, date) else _parsed_day_or_raise(value, place), place)
            case "instant":
                return self._time_text(self._instant_in_zone(value, place), place)
            case "boolean":
                if not isinstance(value, bool):
                    raise invalid_value_error("is not true or false", place)
                return self.true_text if value else self.false_text
        if self.table is None:
            return plain_text_or_raise(value, place, decimal_mark)
        if (found := self.table.get(plain_text_or_raise(value, place), self.otherwise)) is None:
            raise invalid_value_error("is not in the table", place)
        return found

    def _instant_in_zone(self, value: Any, place: str) -> datetime:
        moment = value if isinstance(value, datetime) else _parsed_instant_or_raise(value, place)
        try:
            return moment if self.timezone is None else moment.astimezone(ZoneInfo(self.timezone))
        except OverflowError:
            raise invalid_value_error("is outside the years 1 to 9999", place) from None

    def _time_text(self, at: date, place: str) -> str:
        if self.format is None:
            return _iso_text(at) if self.as_ == "instant" or not isinstance(at, datetime) else at.date().isoformat()
        try:
            return formatted_time_text(at, self.format)
        except ValueError as error:
            raise invalid_value_error(str(error), place) from None

    def number_text(self, number: Decimal, place: str, notation: NumberDefaults, width: int | None = None) -> str:
        written = NumberNotation(
            decimal_mark=self.decimal_mark or notation.decimal_mark,
            places=self.places,
            decimals=self.decimals,
            digits=self.digits or 1,
            sign=self.sign or notation.sign,
            encoding=notation.encoding,
        )
        try:
            return written.text(number, width)
        except ValueError as error:
            raise invalid_value_error(str(error), place) from None

    def _exact_number_or_raise(self, value: Any, place: str) -> Decimal:
        if _is_missing_or_empty(value):
            raise _missing_value_error(place)
        try:
            number = exact_number_or_raise(value)
        except ValueError as error:
            raise invalid_value_error(str(error), place) from None
        if self.value_type == "integer" and number != number.to_integral_value():
            raise invalid_value_error("is not a whole number", place)
        return number

    def _exact_sum_of_members(self, scope: NamedValues) -> Decimal:
        try:
            return exact_decimal_sum(
                [self._exact_number_or_raise(*each) for each in scope.all_values_at(self.sum or "")]
            )
        except ArithmeticError:
            raise invalid_value_error("has a sum of more than 60 digits", self.sum or "") from None

    @staticmethod
    def _one_or_raise_if_missing(value: Any, place: str) -> int:
        if value is MISSING or value is None:
            raise _missing_value_error(place)
        return 1


def _filled_placeholder_text(hole: str, scope: NamedValues, decimal_mark: DecimalMark) -> str:
    value, place = scope.value_and_place(hole.removesuffix(_OPTIONAL))
    if not _is_missing_or_empty(value):
        return plain_text_or_raise(value, place, decimal_mark)
    if hole.endswith(_OPTIONAL):
        return ""
    raise _missing_value_error(place)


def plain_text_or_raise(value: Any, place: str, decimal_mark: DecimalMark = ".") -> str:
    """Return text as it is, numbers exactly and without an exponent, and booleans as JSON has them."""
    match value:
        case str():
            return value
        case datetime():
            return _iso_text(value)
        case bool() | int() | Decimal():
            try:
                return exact_json.dumps(value).decode().replace(".", decimal_mark)
            except ValueError as error:
                raise invalid_value_error(str(error), place) from None
    raise invalid_value_error(
        "is a list or an object, and no text" if isinstance(value, list | Mapping) else "is no text", place
    )


def _iso_text(at: date) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _is_missing_or_empty(value: Any) -> bool:
    return value is MISSING or value is None or value == ""


def _missing_value_error(place: str) -> RecordError:
    return invalid_value_error("has no value", place)


def _parsed_day_or_raise(value: Any, place: str) -> date:
    try:
        return TimeFormat().parse_day(plain_text_or_raise(value, place), place)
    except RecordError as error:
        raise invalid_value_error(error.message, place) from None


def _parsed_instant_or_raise(value: Any, place: str) -> datetime:
    try:
        return TimeFormat().parse_instant(plain_text_or_raise(value, place), place).astimezone(UTC)
    except RecordError as error:
        raise invalid_value_error(error.message, place) from None
