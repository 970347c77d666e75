"""Mappings in a config file. Each form is one model, which is compiled once to a function of a row."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property, partial
from typing import Annotated, Any, Self, TypeVar

from msgspec import Struct
from pydantic import BeforeValidator, Discriminator, Field, StrictBool, Tag, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from crossdock.errors import RecordError
from crossdock.mapping import convert, lookup_and_join_settings
from crossdock.mapping.convert import Row
from crossdock.mapping.from_column import (
    FromColumn,
    JsonCells,
    Number,
    Scalar,
    Value,
    cell_text_refusing_containers,
    common_parent_path,
    element_indexes_by_list_path,
    has_content,
)
from crossdock.mapping.stream_declaration import Filter
from crossdock.printable import BLANKS
from crossdock.resources import Reference, ResourceModel, ResourceName
from crossdock.values import exact_json
from crossdock.values.config_base_types import NOT_NULL, ConfigModel, Name, make_pydantic_error_at_key
from crossdock.values.json_paths import (
    LIST_CUT_MESSAGE,
    MISSING,
    is_list_at_path_cut,
    json_value_as_column_text,
    parse_exact_number,
    value_at_path_or_missing,
    value_at_path_refusing_wrong_containers,
)
from crossdock.values.raw_rows_and_records import ELEMENT, JSON, Record

MAX_ELEMENTS = 50_000
"""The most rows of a record, or elements of its list, that become objects; each takes up to 2 KB of memory."""
_OF_EACH = ".*."
"""In the path of a list: the rest begins at each element of the list before it."""
_HOLE = re.compile(r"\{([^{}]+)\}")
_CONSTANTS = (bool, int, Decimal)
_NO_FORM = "must be a column or a form such as {const: EUR}; quote numbers and words such as yes and no"
_NONE_OF_THEM = "has none of {forms}; the members of an object are written below object"
T = TypeVar("T")
_NEAR = 3 / 4
"""How near a key must be to the name of a form: ``form`` is to ``from``, and ``contact`` is not to ``const``."""


def _check_constant_type(value: Any) -> Any:
    if not isinstance(value, str | bool | int | Decimal):
        raise PydanticCustomError("string_type", "must be text")
    return value


class Const(ConfigModel):
    """A fixed value: text, a boolean, an integer or a decimal number."""

    const: Annotated[Scalar, BeforeValidator(_check_constant_type)]
    """The value. It must fit the member."""

    def compile(self) -> Value:
        return lambda _row: self.const

    def columns(self) -> Iterator[str]:
        yield from ()


class Template(ConfigModel):
    """Text with columns in braces: ``Customer {CUSTNO}``. A column must not be empty."""

    template: str
    """Text with columns in braces, none of which may be empty."""

    def compile(self) -> Value:
        def value(row: Row) -> str:
            return _HOLE.sub(lambda hole: convert.text(row, hole[1]), self.template)

        return value

    def columns(self) -> Iterator[str]:
        yield from _HOLE.findall(self.template)


class RefTo(ConfigModel):
    """A reference to another record by its key columns. If all are empty, the member is left out.

    If only some are empty, the record is rejected: no record has such a key.
    """

    ref: ResourceName
    """The resource of the other record."""
    key: str | tuple[str, ...]
    """The column with the key of the other record, or the columns. If all cells are empty, the member is left out; if
    some are, the record is rejected."""
    namespace: Name | None = None
    """The namespace of that key; default: the stream's for its own resource, otherwise the connection's."""

    def compile(self) -> Value:
        names = tuple(self.columns())

        def value(row: Row) -> Reference | None:
            if not any((cell_text_refusing_containers(row, name) or "").strip(BLANKS) for name in names):
                return None
            parts = tuple([convert.text(row, name) for name in names])
            return Reference(self.ref, parts[0] if len(parts) == 1 else parts, self.namespace)

        return value

    def columns(self) -> Iterator[str]:
        yield from (self.key,) if isinstance(self.key, str) else self.key


def _form_tag(value: Any) -> str | None:
    if isinstance(value, str):
        return "column"
    if isinstance(value, Mapping):
        return next((form for form in _FORMS.values() if form in value), _nearest_form(value))
    others = None if isinstance(value, list) else "column"  # a value without quotes: the message says which needs them
    return next((form for kind, form in _FORMS.items() if isinstance(value, kind)), others)


def _nearest_form(value: Mapping[Any, Any]) -> str | None:
    """Return the form that half of the keys may be meant for, or None: they may be members of an object."""

    def fits(kind: type[ConfigModel]) -> int:
        known = {field.alias or name for name, field in kind.model_fields.items()}
        return sum(key in known or bool(get_close_matches(str(key), [_FORMS[kind]], cutoff=_NEAR)) for key in value)

    best = max(_FORMS, key=fits)
    return _FORMS[best] if 2 * fits(best) >= len(value) > 0 else None


def _check_one_form(value: Any) -> Any:
    """Refuse a section with two forms or none, which no form could explain."""
    if not isinstance(value, Mapping):
        return value
    given = [form for form in _FORMS.values() if form in value]
    if len(given) > 1:
        raise make_pydantic_error_at_key((given[1],), f"cannot be used with {given[0]}: a member has one form")
    if not given and _nearest_form(value) is None:
        raise PydanticCustomError("unknown_form", _NONE_OF_THEM, {"forms": ", ".join(_FORMS.values())})
    return value


def _branch_tag(value: Any) -> str | None:
    return "constant" if isinstance(value, _CONSTANTS) else _form_tag(value)


_Single = (
    Annotated[str, Tag("column")]
    | Annotated[FromColumn, Tag("from")]
    | Annotated[Const, Tag("const")]
    | Annotated[Template, Tag("template")]
    | Annotated[RefTo, Tag("ref")]
)
_ONE_FORM = BeforeValidator(_check_one_form)
Simple = Annotated[
    _Single | Annotated["Nested", Tag("object")] | Annotated["When", Tag("when")],
    Discriminator(_form_tag, custom_error_type="unknown_form", custom_error_message=_NO_FORM),
    _ONE_FORM,
]
Branch = Annotated[
    _Single
    | Annotated["Nested", Tag("object")]
    | Annotated["When", Tag("when")]
    | Annotated[StrictBool | Number, Tag("constant")],
    Discriminator(_branch_tag, custom_error_type="unknown_form", custom_error_message=_NO_FORM),
    _ONE_FORM,
]


class Nested(ConfigModel):
    """An object of members, such as an address; left out where all members are."""

    object: Mapping[str, Simple]
    """The members of the object. It is left out if all of them are left out."""

    def compile(self) -> Value:
        members, place = _compile_members(self.object), common_parent_path(self.columns())

        def value(row: Row) -> dict[str, Any] | None:
            made = members(row)
            if not made and isinstance(row, JsonCells):
                row.count_left_out_object(place)
            return made or None

        return value

    def columns(self) -> Iterator[str]:
        yield from _columns_of(self.object)


class When(ConfigModel):
    """One of two forms, by a condition on the row. Without ``otherwise``, the member may be left out."""

    when: Filter
    """The condition on the row."""
    then: Branch
    """The form if the row meets the condition; true, false or a number is a constant, and a text is a column."""
    otherwise: Branch | None = None
    """The form if it does not. Default: the member is left out."""

    def compile(self) -> Value:
        condition = self.when.predicate()
        then, otherwise = _compile_form(self.then), _compile_form(self.otherwise)
        place = common_parent_path(self.columns()) if self._is_optional_object else None

        def value(row: Row) -> Any:
            if condition(row):
                return then(row)
            if isinstance(row, JsonCells):
                row.count_left_out_object(place)
            return otherwise(row)

        return value

    @property
    def _is_optional_object(self) -> bool:
        """Whether it is an object of several columns, such as an address, for records in which one is not empty."""
        if not isinstance(self.then, Nested) or self.otherwise is not None or self.when.empty is not False:
            return False
        return len(set(self.then.columns())) > 1

    def columns(self) -> Iterator[str]:
        yield from self.when.columns()
        yield from _columns_of({"then": self.then, "otherwise": self.otherwise})


Further = Annotated[
    Annotated[Nested, Tag("object")] | Annotated[When, Tag("when")] | Annotated["Each", Tag("each")],
    Discriminator(
        _form_tag,
        custom_error_type="unknown_form",
        custom_error_message="must be {object: ...}, {when: ...} or {of: ..., each: ...}",
    ),
    _ONE_FORM,
]
_AMOUNT = ("quantity", "unitPrice")
"""Members whose product is the amount of an object."""


class Total(ConfigModel):
    """A sum that the record states of the objects of ``each``: of quantity times unitPrice, also of those of ``also``.

    A record with another sum is a dead letter.
    """

    equals: Annotated[
        Annotated[str, Tag("column")] | Annotated[FromColumn, Tag("from")],
        Discriminator(lambda value: "column" if isinstance(value, str) else "from"),
    ]
    """The column with the sum, or how it is read: ``{from: COLUMN, as: decimal, minor_units: CURRENCY}``."""
    where: Filter | None = None
    """The records that are compared; by default all."""
    rounding: Annotated[Mapping[str, Simple] | None, NOT_NULL] = None
    """The members of a further object for a small difference, which has a quantity of 1; by default, any difference is
    refused. It is counted."""
    per_unit: Annotated[Number, Field(gt=0)] = Decimal("0.005")
    """With ``rounding``: the largest difference for each unit of quantity, since prices of units are rounded."""

    @property
    def column_with_stated_total(self) -> str:
        return self._stated_total_as_column_form.from_

    @cached_property
    def _stated_total_as_column_form(self) -> FromColumn:
        given = self.equals
        return FromColumn.model_validate({"from": given, "as": "decimal"}) if isinstance(given, str) else given

    def columns(self) -> Iterator[str]:
        yield from self._stated_total_as_column_form.columns()
        yield from self.where.columns() if self.where is not None else ()
        yield from _columns_of(self.rounding or {})

    def compile_comparison(self, member: str) -> Callable[[Sequence[Any], Record, Row], list[Any]]:
        """Return a function that compares objects with the total, and returns the one for the difference, if any.

        *member* is the one that has the objects.
        """
        total = self._stated_total_as_column_form.compile()
        wanted = _accept_any_row if self.where is None else self.where.predicate()
        rounding = None if self.rounding is None else _compile_members(self.rounding)

        def compare(objects: Sequence[Any], record: Record, row: Row) -> list[Any]:
            if not wanted(row):
                return []
            amounts = [[each.get(name) for name in _AMOUNT] for each in objects if each is not None]
            lacking = [name for at, name in enumerate(_AMOUNT) if any(each[at] is None for each in amounts)]
            if (given := total(row)) is None:
                raise RecordError(
                    "bad_value", f"is empty, and should be the total of {member}", pointer=self.column_with_stated_total
                )
            exact = [
                [parse_exact_number(each, self.column_with_stated_total, 0) for each in amount]
                for amount in amounts
                if None not in amount
            ]
            found = sum((units * price for units, price in exact), Decimal())
            stated = parse_exact_number(given, self.column_with_stated_total, 0)
            difference = stated - found
            if not difference:
                return []
            most = self.per_unit * sum(abs(units) for units, _ in exact)
            if rounding is None or lacking or abs(difference) > most:
                sums = exact_json.decimal_text(stated), exact_json.decimal_text(found)
                message = f"is {sums[0]}, but {' times '.join(_AMOUNT)} of {member} add up to {sums[1]}"
                message += f"; some have no {' or '.join(lacking)}" if lacking else ""
                raise RecordError("bad_value", message, pointer=self.column_with_stated_total)
            record.count("rounding in a line of its own")
            return [{**rounding(row), "quantity": Decimal(1), "unitPrice": difference}]

        return compare


_TotalForm = Discriminator(lambda value: "column" if isinstance(value, str) else "section")


class Each(ConfigModel):
    """One object for each row of a grouped record or of a join, or each element of a list, in their order.

    The row of an order without lines in XML, EDI or a file with headers has none. In others, such as those of a LEFT
    JOIN, the only row has none if all columns of ``each`` are empty, unless all have a default or ``where`` is given.
    So it is with the only element of a list if it is null, or all in it is, and it would have constants alone.
    """

    each: Mapping[str, Simple]
    """The members of one object, which is made for each row of a grouped record or of a join, or for each element of a
    JSON list."""
    of: Annotated[str, Field(min_length=1)] | None = None
    """A join of the stream, or the dotted path of a list in JSON, of lists in the elements of another one with an
    asterisk: ``shipments.*.parcels``. Default: the rows of the record itself."""
    where: Filter | None = None
    """The rows or elements that are meant; by default all."""
    also: Annotated[tuple[Further, ...] | None, NOT_NULL] = None
    """Further objects after these, each of members of the record itself, such as an order's charge for shipping, or of
    another list of it, such as its surcharges. One is left out if its condition is not met or if all of its members are
    left out."""
    total: Annotated[Annotated[str, Tag("column")] | Annotated[Total, Tag("section")], _TotalForm] | None = None
    """The column that states the sum of quantity times unitPrice of all objects, such as an invoice's total; a record
    with another sum is a dead letter."""
    single: Annotated[bool | None, NOT_NULL] = None
    """Whether the member is the one object itself, such as the address that is the default, and no list of objects.
    Without one it is left out, and a record with several is refused."""

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        for number_of, further in enumerate(self.also or ()):
            if isinstance(further, Each) and (further.of is None or further.also or further.total or further.single):
                raise make_pydantic_error_at_key(
                    ("also", number_of), "needs of, and has no also, total or single of its own"
                )
        if self.total is not None and not set(_AMOUNT) <= set(self.each):
            raise make_pydantic_error_at_key(
                ("total",), f"needs {' and '.join(_AMOUNT)} in each, of which it is the sum"
            )
        return self

    def columns(self) -> Iterator[str]:
        yield from _columns_of(self.each)
        yield from self.where.columns() if self.where is not None else ()

    def columns_outside_elements(self) -> Iterator[str]:
        """Yield the columns of the record itself, which are the same in all its rows."""
        for further in self.also or ():
            yield from () if isinstance(further, Each) else further.columns()
        yield from self._declared_total.columns() if self._declared_total is not None else ()

    @cached_property
    def _declared_total(self) -> Total | None:
        return Total(equals=self.total) if isinstance(self.total, str) else self.total

    def columns_by_list(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the joins or lists whose rows or elements become objects, with the columns of each."""
        if self.of is not None:
            yield self.of, tuple(self.columns())
        for further in self.also or ():
            yield from further.columns_by_list() if isinstance(further, Each) else ()

    def compile_each(self, member: str) -> _CompiledEach:
        wanted = _accept_any_row if self.where is None else self.where.predicate()
        also = [
            each.compile_each(member) if isinstance(each, Each) else _compile_form(each) for each in self.also or ()
        ]
        total = None if self._declared_total is None else self._declared_total.compile_comparison(member)
        given = self._columns_with_content if self.where is None else ()
        return _CompiledEach(
            member, self.of, wanted, _compile_members(self.each), also, total, bool(self.single), given
        )

    @property
    def _columns_with_content(self) -> Sequence[str]:
        """The columns of which a row of an object has at least one; none if a default says what all empty ones mean."""
        cells = {name: form for name, form in self.each.items() if isinstance(form, FromColumn)}
        others = [*_columns_of({name: form for name, form in self.each.items() if name not in cells})]
        if not others and all(form.default is not None for form in cells.values()):
            return ()
        return [*(form.from_ for form in cells.values()), *others]


def _accept_any_row(_: Row) -> bool:
    return True


Form = Annotated[
    _Single | Annotated[Nested, Tag("object")] | Annotated[When, Tag("when")] | Annotated[Each, Tag("each")],
    Discriminator(_form_tag, custom_error_type="unknown_form", custom_error_message=_NO_FORM),
    _ONE_FORM,
]
_FORMS: dict[type[ConfigModel], str] = {
    FromColumn: "from", Const: "const", Template: "template", RefTo: "ref", Nested: "object", Each: "each",
    When: "when",
}  # fmt: skip


def _compile_form(form: Any) -> Value:
    if form is None or isinstance(form, _CONSTANTS):
        return lambda _row: form
    value: Value = (FromColumn(from_=form) if isinstance(form, str) else form).compile()
    return value


def _compile_members(forms: Mapping[str, Any]) -> Callable[[Row], dict[str, Any]]:
    compiled = [(name, _compile_form(form)) for name, form in forms.items()]

    def build(row: Row) -> dict[str, Any]:
        return {name: member for name, value in compiled if (member := value(row)) is not None}

    return build


def _columns_of(forms: Mapping[str, Any]) -> Iterator[str]:
    for form in forms.values():
        if isinstance(form, str):
            yield form
        elif isinstance(form, Each):
            yield from form.columns() if form.of is None else ()
            yield from form.columns_outside_elements()
        elif form is not None and not isinstance(form, _CONSTANTS):
            yield from form.columns()


class _CompiledEach(Struct, frozen=True):
    member: str
    of: str | None
    wanted: Callable[[Row], bool]
    build: Callable[[Row], dict[str, Any]]
    also: Sequence[Value | _CompiledEach]
    total: Callable[[Sequence[Any], Record, Row], list[Any]] | None
    single: bool
    given: Sequence[str]

    def rows_with_objects(self, rows: Sequence[Row], places: Sequence[int], record: Record) -> Sequence[int]:
        """Return those of *places* whose row has an object: that of an order without lines has none."""
        found = [at for at in places if self._has_object(rows[at], is_only=len(rows) == 1)]
        if len(found) < len(places):
            record.count(f"row without anything that map reads for {self.member}")
        return found

    def _has_object(self, row: Row, *, is_only: bool) -> bool:
        if row.get(ELEMENT, "") is None:
            return False
        if not (is_only and self.given):
            return True  # among others, an empty row is a line whose cells are lost
        return any((row.get(name) or "").strip(BLANKS) for name in self.given)

    def objects_under_member_name(self, objects: list[Any]) -> dict[str, Any]:
        """Return the member that has *objects*, or nothing."""
        if not self.single:
            return {self.member: objects}
        if len(objects) > 1:
            raise RecordError("bad_value", f"is single, and {len(objects)} are meant: see where", pointer=self.of)
        return {self.member: objects[0]} if objects and objects[0] else {}


def _elements_at(document: Any, path: str, outside: str = "") -> list[tuple[str, Any]] | None:
    """Return the elements of the list at *path*, or of all lists after an asterisk, with their places; None without a
    list. The place of *document* is *outside*.
    """
    outer, _, inner = path.partition(_OF_EACH)
    try:
        found, place = value_at_path_refusing_wrong_containers(document, outer), outside + outer
    except RecordError as error:
        raise RecordError(error.code, error.message, pointer=outside + outer) from None
    if found is None or found is MISSING:
        return None
    if not isinstance(found, list):
        raise RecordError("bad_value", "is not a list", pointer=place)
    if is_list_at_path_cut(document, outer):
        raise RecordError("bad_value", LIST_CUT_MESSAGE, pointer=place)
    elements = [(f"{place}.{index}", each) for index, each in enumerate(found)]
    if not inner:
        return elements
    return [one for outer_place, each in elements for one in _elements_at(each, inner, f"{outer_place}.") or ()]


def list_elements_at_path(document: Any, path: str) -> list[Any]:
    """Return the elements that ``of: path`` takes; none where something else than a list is."""
    try:
        return [element for _, element in _elements_at(document, path) or ()]
    except RecordError:
        return []


def _json_pointer(place: str) -> str:
    """Return a dotted path or, up to the number, a JSON pointer as a JSON pointer."""
    outside, _, index = place.rpartition(".")
    return f"{outside if outside.startswith('/') else '/' + outside.replace('.', '/')}/{index}"


def _check_max_element_count(elements: int, place: str | None) -> None:
    if elements > MAX_ELEMENTS:
        message = f"has {elements:,} elements, and at most {MAX_ELEMENTS:,} of one record become objects"
        raise RecordError("bad_value", message, pointer=place)


def _columns_by_list(forms: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    columns: dict[str, list[str]] = {}
    for form in forms.values():
        for of, names in form.columns_by_list() if isinstance(form, Each) else ():
            columns.setdefault(of, []).extend(names)
    return {join: tuple(dict.fromkeys(names)) for join, names in columns.items()}


def _objects_from_join(record: Record, join: str, form: _CompiledEach) -> list[dict[str, Any]]:
    members: list[dict[str, Any]] = []
    rows = record.joined(join)
    _check_max_element_count(len(rows), join)
    for place, row in enumerate(rows):
        try:
            members += [form.build(row)] if form.wanted(row) else []
        except RecordError as error:
            message = f"{error.message} ({lookup_and_join_settings.joined_row_place(record, join, place)})"
            raise RecordError(error.code, message, pointer=f"{join}.{error.pointer}") from None
    return members


class RecordMap:
    """A compiled ``map:`` section. `columns_by_member` also has the list or join whose elements a member has.

    *others* are the first names of columns that are no paths in JSON, such as those of look-ups.
    """

    def __init__(self, forms: Mapping[str, Any], others: Collection[str] = ()) -> None:
        single = {name: form for name, form in forms.items() if not isinstance(form, Each)}
        each = [form for form in forms.values() if isinstance(form, Each)]
        self._single, self._others = _compile_members(single), others
        self._agreeing = (
            *_columns_of(single),
            *(column for form in each for column in form.columns_outside_elements()),
        )
        self._each = [form.compile_each(name) for name, form in forms.items() if isinstance(form, Each)]
        self.columns = tuple(dict.fromkeys(_columns_of(forms)))
        self.columns_by_member = {
            name: (*_columns_of({name: form}), *_columns_by_list({name: form})) for name, form in forms.items()
        }
        self.joined_columns = _columns_by_list(forms)
        self._lists_of_elements = {of: element_indexes_by_list_path(names) for of, names in self.joined_columns.items()}
        self._lists = element_indexes_by_list_path(
            {*self.columns, *(of.partition(_OF_EACH)[0] for of in self.joined_columns)}
        )

    def __call__(self, record: Record) -> dict[str, Any]:
        """Return the members of a draft. Raises RecordError also if rows of the record disagree outside ``each``."""
        rows = [JsonCells(row, record.count, others=self._others) if JSON in row else row for row in record.rows]
        members = self._build_with_error_line(record, rows, 0, self._single)
        for column in self._agreeing if len(record.rows) > 1 else ():
            _check_rows_agree(record, column, [row[column] for row in record.rows])
        for form in self._each:
            objects = self._build_objects(record, rows, form)
            if objects is None:
                if form.total is not None:
                    self._build_with_error_line(record, rows, 0, partial(form.total, [], record))
                continue
            for further in form.also:
                objects += self._objects_of_also(record, rows, further)
            if form.total is not None:
                objects += self._build_with_error_line(record, rows, 0, partial(form.total, objects, record))
            members |= form.objects_under_member_name(objects)
        if self._lists and isinstance(rows[0], JsonCells):
            rows[0].count_unread_elements(self._lists)
        return members

    def _build_objects(self, record: Record, rows: Sequence[Row], form: _CompiledEach) -> list[Any] | None:
        """Return what *form* makes of rows or elements; None without a list."""
        if form.of is None:
            _check_max_element_count(len(rows), form.member)
            wanted = [
                place for place in range(len(rows)) if self._build_with_error_line(record, rows, place, form.wanted)
            ]
            found = form.rows_with_objects(rows, wanted, record)
            return [self._build_with_error_line(record, rows, place, form.build) for place in found]
        if isinstance(rows[0], JsonCells):
            documents = [row.document for row in rows if isinstance(row, JsonCells)]
            if len(documents) > 1:
                _check_rows_agree(record, form.of, [_elements_at(each, form.of) for each in documents])
            return self._objects_from_list(record, documents[0], form.of, form)
        return _objects_from_join(record, form.of, form)

    def _objects_from_list(self, record: Record, document: Any, path: str, form: _CompiledEach) -> list[Any] | None:
        """Return the members made from each element of the list at *path* in *document*; None without a list."""
        found = _elements_at(document, path)
        if found is None:
            return None
        _check_max_element_count(len(found), path)
        members, columns = list[Any](), self.joined_columns[path]
        for place, element in found:
            cells = {column: json_value_as_column_text(value_at_path_or_missing(element, column)) for column in columns}
            cells |= {ELEMENT: _json_pointer(place)} if ELEMENT in cells else {}
            row = JsonCells(cells, record.count, element)
            try:
                made = [form.build(row)] if form.wanted(row) else []
                row.count_unread_elements(self._lists_of_elements[path])
            except RecordError as error:
                raise RecordError(error.code, error.message, pointer=f"{place}.{error.pointer}") from None
            is_empty = len(found) == 1 and form.given and not has_content(element)
            if made != [{}] and is_empty:  # it would have constants alone
                record.count(f"empty element of {path} left out")
            else:
                members += made
        return members

    def _objects_of_also(self, record: Record, rows: Sequence[Row], form: Value | _CompiledEach) -> list[Any]:
        if isinstance(form, _CompiledEach):
            return self._build_objects(record, rows, form) or []
        made = self._build_with_error_line(record, rows, 0, form)
        return [] if made is None else [made]

    @staticmethod
    def _build_with_error_line(record: Record, rows: Sequence[Row], place: int, build: Callable[[Row], T]) -> T:
        try:
            return build(rows[place])
        except RecordError as error:
            raise error.at(record.lines[place]) from None


def _check_rows_agree(record: Record, pointer: str, values: Sequence[Any]) -> None:
    """Raise RecordError if the *values* of the rows differ, of which the record would have that of its first row."""
    for value, line in zip(values, record.lines, strict=True):
        if value != values[0]:
            raise RecordError("rows_disagree", "differs between the rows of one record", pointer=pointer).at(line)


class MemberOverrides:
    """Adds members to a draft, or replaces them, by *forms* of a stream's class or of a config.

    Attributes:
        digest: A hash that changes with the forms.
    """

    def __init__(self, forms: Mapping[str, Any]) -> None:
        self.forms, self._map = forms, RecordMap(forms)
        self.columns = self._map.columns
        stated = {
            name: form.model_dump(mode="python", by_alias=True, exclude_none=True)
            if isinstance(form, ConfigModel)
            else form
            for name, form in forms.items()
        }
        self.digest = hashlib.sha256(exact_json.dumps(stated)).hexdigest()

    def applied_to(self, made: ResourceModel | Mapping[str, Any], record: Record) -> dict[str, Any]:
        """Replace these members in *made*. One without a value is left out."""
        given = (
            {name: getattr(made, name) for name in made.model_fields_set} if isinstance(made, ResourceModel) else made
        )
        others = {name: value for name, value in given.items() if to_camel(str(name)) not in self.forms}
        return others | self._map(record)
