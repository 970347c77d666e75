"""Several record types in one file: their declaration, and the rules between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from crossdock.values.config_base_types import ConfigModel, finding_about_key

Code = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[^\r\n]*$")]


class RecordType(ConfigModel):
    """One type of record in a file; formats add its columns."""

    code: Code | None = None
    """The text by which records of this type are told; by default the name of the type."""
    otherwise: bool = False
    """Whether every record that has the code of no type is of this one."""
    parent: str | None = None
    """The type whose columns are repeated onto these records: those of the last one before each."""
    once: Literal["first", "last"] | None = None
    """Whether the file has exactly one such record, its ``first`` or its ``last``; with ``parent``, the ``last`` of
    each parent's records."""
    counts: Mapping[str, Annotated[tuple[str, ...], Field(min_length=1)]] = {}
    """Columns that state a number of records, each with the types that it counts: ``{LINES: [line]}``. In fixed-width
    files they need ``decimals``."""
    sums: Mapping[str, str] = {}
    """Columns that state a control sum, each with what it is the sum of, as ``TYPE.COLUMN``: ``{TOTAL: line.AMOUNT}``.
    In fixed-width files they need ``decimals``."""

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if self.otherwise and self.code is not None:
            raise ValueError("give either code or otherwise")
        if self.once == "first" and self.parent is not None:
            raise ValueError("once: first cannot be used with parent; the parent comes first")
        if (self.counts or self.sums) and self.otherwise:
            raise ValueError("a type that states counts or sums needs a code")
        return self

    @property
    def own_columns(self) -> Sequence[str]:
        raise NotImplementedError

    @property
    def counted_types_by_column(self) -> Mapping[str, tuple[str, ...]]:
        return {**self.counts, **{column: (of.partition(".")[0],) for column, of in self.sums.items()}}


def declared_type_code(name: str, kind: RecordType) -> str | None:
    return None if kind.otherwise else kind.code or name


def group_type_for_totals(name: str, types: Mapping[str, RecordType]) -> str | None:
    """Return the type that begins the groups to which counts and sums of *name* refer; None for the whole file."""
    used = [kind for kinds in types[name].counted_types_by_column.values() for kind in kinds]
    if used and all(name in ancestors(kind, types) for kind in used):
        return name
    return types[name].parent


def ancestors(name: str, types: Mapping[str, RecordType]) -> list[str]:
    found: list[str] = []
    parent = types[name].parent
    while parent is not None and parent not in found:
        found.append(parent)
        parent = types[parent].parent
    return found


def ancestors_and_self_with_prefixes(name: str, types: Mapping[str, RecordType]) -> list[tuple[str, str]]:
    return [(each, f"{each} " if len(types) > 1 else "") for each in [*reversed(ancestors(name, types)), name]]


def field_places(name: str, types: Mapping[str, RecordType]) -> Iterator[tuple[str, str]]:
    for each, of in ancestors_and_self_with_prefixes(name, types):
        for number, column in enumerate(types[each].own_columns):
            yield column, f"{of}field {number}"


def columns_with_ancestors(name: str, types: Mapping[str, RecordType]) -> list[str]:
    return [column for each in [*reversed(ancestors(name, types)), name] for column in types[each].own_columns]


def states_record_count(types: Mapping[str, RecordType], records: str) -> bool:
    return any(
        kind.once is not None
        and group_type_for_totals(name, types) is None
        and any(records in of for of in kind.counts.values())
        for name, kind in types.items()
    )


def has_trailer(types: Mapping[str, RecordType]) -> bool:
    return any(kind.once == "last" and kind.parent is None for kind in types.values())


def check_record_types(types: Mapping[str, RecordType], records: str | None) -> None:
    """Raise PydanticCustomError for the first type that does not fit, with its place in the format."""
    if records is None or records not in types:
        raise finding_about_key(("records",), f"name the type whose records are read: {', '.join(types)}")
    for name, message, place in _type_faults(types):
        raise finding_about_key(("record_types", name, *place), message)


def _type_faults(types: Mapping[str, RecordType]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    codes: dict[str | None, str] = {}
    places: dict[str, str] = {}
    for name, kind in types.items():
        other = codes.setdefault(declared_type_code(name, kind), name)
        if other != name:
            yield name, f"has the same code as {other}", ()
        if kind.parent is not None and (kind.parent not in types or name in ancestors(name, types)):
            yield name, "must be another type, and no type may be its own ancestor", ("parent",)
            return
        if kind.once is not None and kind.parent is None and places.setdefault(kind.once, name) != name:
            yield name, f"{places[kind.once]} is the {kind.once} record already", ("once",)
        columns = columns_with_ancestors(name, types)
        if len(set(columns)) < len(columns):
            twice = next(column for column in columns if columns.count(column) > 1)
            yield name, f"it and its parents have two columns {twice!r}", ()
    for name in types:
        yield from _count_and_sum_declaration_faults(name, types)


def _count_and_sum_declaration_faults(
    name: str, types: Mapping[str, RecordType]
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    kind = types[name]
    for key, stated in (("counts", kind.counts), ("sums", kind.sums)):
        for column in stated:
            if column not in kind.own_columns:
                yield name, "is not a column of this type", (key, column)
            if unknown := [each for each in kind.counted_types_by_column[column] if each not in types]:
                yield name, f"there is no type {unknown[0]!r}", (key, column)
                return
    for column, of in kind.sums.items():
        summed, _, what = of.partition(".")
        if what not in types[summed].own_columns:
            yield name, "must be TYPE.COLUMN, a column of that type", ("sums", column)
    scope = group_type_for_totals(name, types)
    if kind.counted_types_by_column and scope is None and kind.once is None:
        yield name, "a record that states counts or sums of the file is its first or its last: declare once", ()
    outside = [
        each
        for each in (each for used in kind.counted_types_by_column.values() for each in used)
        if scope not in {None, each, *ancestors(each, types)}
    ]
    if outside:
        yield name, f"records of {outside[0]} do not belong to one {scope}", ()
