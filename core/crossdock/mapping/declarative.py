"""Mappings written in a config file: each form is one model, compiled once to a function of a row.

They use the same functions as mapping code (`crossdock.mapping.convert`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Strict,
    StrictBool,
    StrictInt,
    StrictStr,
    Tag,
)
from pydantic_core import PydanticCustomError

from crossdock.config_file import NOT_NULL, ConfigModel, Name
from crossdock.errors import RecordError
from crossdock.mapping import convert, joined_records
from crossdock.mapping.convert import Row
from crossdock.records import Record, key_text
from crossdock.resources import Reference, ResourceName
from crossdock.scheduling.time_zones import zone_name

Value = Callable[[Row], Any]  # None leaves the member out

_HOLE = re.compile(r"\{([^{}]+)\}")


def _date_format(layout: str) -> str:
    if "%" not in layout:
        raise ValueError("is not a date format such as %Y-%m-%d")
    try:
        datetime.strptime(datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC).strftime(layout), layout)  # noqa: DTZ007  a trial
    except (ValueError, TypeError, LookupError, re.error):  # strptime compiles it to a regular expression
        raise ValueError(
            f"{layout!r} is not a valid date format for reading; use each directive, such as %Y, only once"
        ) from None
    return layout


def _one_or_several(value: Any) -> str:
    return "several" if isinstance(value, list | tuple) else "one"


Texts = Annotated[
    Annotated[str, Tag("one")] | Annotated[tuple[str, ...], Tag("several")], Discriminator(_one_or_several)
]


class FromColumn(ConfigModel):
    """A column, as text or converted. An empty cell leaves the member out."""

    from_: Annotated[str, Field(alias="from")]
    as_: Annotated[Literal["text", "decimal", "integer", "date", "instant", "boolean"], Field(alias="as")] = "text"
    format: Annotated[str, Field(max_length=100), AfterValidator(_date_format)] | None = None
    """The format of a date or instant, as for strptime."""
    timezone: Annotated[str, AfterValidator(zone_name)] | None = None
    """IANA time zone of an instant without offset."""
    decimal_mark: Literal[".", ","] = "."
    true_text: str = "true"
    false_text: str = "false"
    empty: Annotated[Texts | None, NOT_NULL] = None
    """Texts that count as empty too, such as 00000000."""

    def compile(self) -> Value:
        column, read = self.from_, self._reader()
        empty = frozenset([self.empty] if isinstance(self.empty, str) else self.empty or ())

        def value(row: Row) -> Any:
            cell = row[column]
            if not cell or cell in empty:
                return None
            return read(row) if read else cell

        return value

    def _reader(self) -> Value | None:
        column = self.from_
        match self.as_:
            case "text":
                return None
            case "decimal":
                return lambda row: convert.decimal(row, column, decimal_mark=self.decimal_mark)
            case "integer":
                return lambda row: convert.integer(row, column)
            case "date":
                return lambda row: convert.day(row, column, layout=self.format or "%Y-%m-%d")
            case "instant":
                layout = self.format or "%Y-%m-%dT%H:%M:%S%z"
                return lambda row: convert.instant(row, column, layout=layout, timezone=self.timezone)
            case "boolean":
                return lambda row: convert.boolean(row, column, true=self.true_text, false=self.false_text)

    def columns(self) -> Iterator[str]:
        yield self.from_


def _constant(value: Any) -> Any:
    if not isinstance(value, str | bool | int | Decimal):
        raise PydanticCustomError("string_type", "must be text")
    return value


class Const(ConfigModel):
    """A fixed value: text, a boolean, an integer or a decimal number."""

    const: Annotated[StrictStr | StrictBool | StrictInt | Annotated[Decimal, Strict()], BeforeValidator(_constant)]

    def compile(self) -> Value:
        return lambda _row: self.const

    def columns(self) -> Iterator[str]:
        yield from ()


class Template(ConfigModel):
    """Text with columns in braces: ``Customer {CUSTNO}``. A column must not be empty."""

    template: str

    def compile(self) -> Value:
        def value(row: Row) -> str:
            return _HOLE.sub(lambda hole: convert.text(row, hole[1]), self.template)

        return value

    def columns(self) -> Iterator[str]:
        yield from _HOLE.findall(self.template)


class RefTo(ConfigModel):
    """A reference to another record by its key columns. If all are empty, the member is left out."""

    ref: ResourceName
    key: str | tuple[str, ...]
    namespace: Name | None = None
    """The namespace of that key; default: the stream's for its own resource, otherwise the connection's."""

    def compile(self) -> Value:
        names = tuple(self.columns())

        def value(row: Row) -> Reference | None:
            parts = [row[name] or "" for name in names]
            return Reference(self.ref, key_text(parts), self.namespace) if any(parts) else None

        return value

    def columns(self) -> Iterator[str]:
        yield from (self.key,) if isinstance(self.key, str) else self.key


def _form(value: Any) -> str | None:
    if isinstance(value, str):
        return "column"
    if isinstance(value, Mapping):
        forms = ("from", "const", "template", "ref", "each", "object")
        near = (match for key in value for match in get_close_matches(str(key), forms, n=1))
        return next((form for form in forms if form in value), next(near, "from"))
    return next((form for kind, form in _FORMS.items() if isinstance(value, kind)), None)


_Single = (
    Annotated[str, Tag("column")]
    | Annotated[FromColumn, Tag("from")]
    | Annotated[Const, Tag("const")]
    | Annotated[Template, Tag("template")]
    | Annotated[RefTo, Tag("ref")]
)
Simple = Annotated[_Single | Annotated["Nested", Tag("object")], Discriminator(_form)]


class Nested(ConfigModel):
    """An object of members, such as an address; left out where all members are."""

    object: Mapping[str, Simple]

    def compile(self) -> Value:
        members = _members(self.object)
        return lambda row: members(row) or None

    def columns(self) -> Iterator[str]:
        yield from _columns(self.object)


class Each(ConfigModel):
    """One object for each row of a grouped record or of a join, in the order of the rows."""

    each: Mapping[str, Simple]
    of: Name | None = None
    """A join of the stream; default: the rows of the record itself."""


Form = Annotated[_Single | Annotated[Nested, Tag("object")] | Annotated[Each, Tag("each")], Discriminator(_form)]
_FORMS: dict[type[ConfigModel], str] = {
    FromColumn: "from", Const: "const", Template: "template", RefTo: "ref", Nested: "object", Each: "each",
}  # fmt: skip


def _compile(form: Any) -> Value:
    value: Value = (FromColumn(from_=form) if isinstance(form, str) else form).compile()
    return value


def _members(forms: Mapping[str, Any]) -> Callable[[Row], dict[str, Any]]:
    compiled = [(name, _compile(form)) for name, form in forms.items()]

    def build(row: Row) -> dict[str, Any]:
        return {name: member for name, value in compiled if (member := value(row)) is not None}

    return build


def _columns(forms: Mapping[str, Any]) -> Iterator[str]:
    for form in forms.values():
        if isinstance(form, str):
            yield form
        elif isinstance(form, Each):
            yield from _columns(form.each) if form.of is None else ()
        else:
            yield from form.columns()


def _joined_columns(forms: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The columns of each join that are used."""
    columns: dict[str, list[str]] = {}
    for form in forms.values():
        if isinstance(form, Each) and form.of is not None:
            columns.setdefault(form.of, []).extend(_columns(form.each))
    return {join: tuple(dict.fromkeys(names)) for join, names in columns.items()}


def _of_join(record: Record, join: str, build: Callable[[Row], dict[str, Any]]) -> list[dict[str, Any]]:
    members = []
    for number, row in enumerate(record.joined(join)):
        try:
            members.append(build(row))
        except RecordError as error:
            message = f"{error.message} ({joined_records.place(record, join, number)})"
            raise RecordError(error.code, message, pointer=f"{join}.{error.pointer}") from None
    return members


class RecordMap:
    """A compiled ``map:`` section.

    Args:
        forms: How each member is made, by its name on the wire.
    """

    def __init__(self, forms: Mapping[str, Any]) -> None:
        single = {name: form for name, form in forms.items() if not isinstance(form, Each)}
        self._single, self._agreeing = _members(single), tuple(_columns(single))
        self._each = [(name, form.of, _members(form.each)) for name, form in forms.items() if isinstance(form, Each)]
        self.columns = tuple(dict.fromkeys(_columns(forms)))
        self.joined_columns = _joined_columns(forms)

    def __call__(self, record: Record) -> dict[str, Any]:
        """The members of a draft.

        Raises:
            RecordError: If a cell does not convert, or rows of the record disagree outside ``each``.
        """
        members = self._located(record, 0, self._single)
        for column in self._agreeing if len(record.rows) > 1 else ():
            first = record.row[column]
            for number, row in enumerate(record.rows):
                if row[column] != first:
                    error = RecordError("rows_disagree", "differs between the rows of one record", pointer=column)
                    raise error.at(record.lines[number])
        for name, join, build in self._each:
            if join is None:
                members[name] = [self._located(record, number, build) for number in range(len(record.rows))]
            else:
                members[name] = _of_join(record, join, build)
        return members

    @staticmethod
    def _located(record: Record, number: int, build: Callable[[Row], dict[str, Any]]) -> dict[str, Any]:
        try:
            return build(record.rows[number])
        except RecordError as error:
            raise error.at(record.lines[number]) from None
