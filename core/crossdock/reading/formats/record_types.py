"""Several record types in one file: their declaration, their order, and the counts and control sums in the file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Literal, NoReturn, Self

import polars as pl
from pydantic import Field, model_validator

from crossdock.errors import RefusedError
from crossdock.values.config_base_types import ConfigModel, make_pydantic_error_at_key
from crossdock.values.raw_rows_and_records import (
    ELEMENT,
    LINE,
    column_expression_by_exact_name,
    internal_column_name,
    record_number_column,
)

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
    def _raise_if_settings_conflict(self) -> Self:
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
    if used and all(name in ancestors_of_type(kind, types) for kind in used):
        return name
    return types[name].parent


def ancestors_of_type(name: str, types: Mapping[str, RecordType]) -> list[str]:
    found: list[str] = []
    parent = types[name].parent
    while parent is not None and parent not in found:
        found.append(parent)
        parent = types[parent].parent
    return found


def ancestors_and_self_with_prefixes(name: str, types: Mapping[str, RecordType]) -> list[tuple[str, str]]:
    return [(each, f"{each} " if len(types) > 1 else "") for each in [*reversed(ancestors_of_type(name, types)), name]]


def describe_field_places(name: str, types: Mapping[str, RecordType]) -> Iterator[tuple[str, str]]:
    for each, of in ancestors_and_self_with_prefixes(name, types):
        for number, column in enumerate(types[each].own_columns):
            yield column, f"{of}field {number}"


def columns_of_type_and_ancestors(name: str, types: Mapping[str, RecordType]) -> list[str]:
    return [column for each in [*reversed(ancestors_of_type(name, types)), name] for column in types[each].own_columns]


def has_stated_record_count(types: Mapping[str, RecordType], records: str) -> bool:
    return any(
        kind.once is not None
        and group_type_for_totals(name, types) is None
        and any(records in of for of in kind.counts.values())
        for name, kind in types.items()
    )


def has_trailer_type(types: Mapping[str, RecordType]) -> bool:
    return any(kind.once == "last" and kind.parent is None for kind in types.values())


def raise_if_record_types_invalid(types: Mapping[str, RecordType], records: str | None) -> None:
    """Raise PydanticCustomError for the first type that does not fit, with its place in the format."""
    if records is None or records not in types:
        raise make_pydantic_error_at_key(("records",), f"name the type whose records are read: {', '.join(types)}")
    for name, message, place in _find_record_type_faults(types):
        raise make_pydantic_error_at_key(("record_types", name, *place), message)


def _find_record_type_faults(types: Mapping[str, RecordType]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    codes: dict[str | None, str] = {}
    places: dict[str, str] = {}
    for name, kind in types.items():
        other = codes.setdefault(declared_type_code(name, kind), name)
        if other != name:
            yield name, f"has the same code as {other}", ()
        if kind.parent is not None and (kind.parent not in types or name in ancestors_of_type(name, types)):
            yield name, "must be another type, and no type may be its own ancestor", ("parent",)
            return
        if kind.once is not None and kind.parent is None and places.setdefault(kind.once, name) != name:
            yield name, f"{places[kind.once]} is the {kind.once} record already", ("once",)
        columns = columns_of_type_and_ancestors(name, types)
        if len(set(columns)) < len(columns):
            twice = next(column for column in columns if columns.count(column) > 1)
            yield name, f"it and its parents have two columns {twice!r}", ()
    for name in types:
        yield from _find_count_and_sum_declaration_faults(name, types)


def _find_count_and_sum_declaration_faults(
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
        if scope not in {None, each, *ancestors_of_type(each, types)}
    ]
    if outside:
        yield name, f"records of {outside[0]} do not belong to one {scope}", ()


CONTROL_NUMBER_PATTERN = r"^-?[0-9]{1,26}(?:\.[0-9]{1,9})?$"
"""A number that can be part of a control sum."""
EXACT_DECIMAL = pl.Decimal(38, 9)
_GROUP, _ITEM, _VALUE, _STATED = "_group", "_item", "_value", "_stated"
_FOUND = {_GROUP: pl.UInt64(), _ITEM: pl.Int32(), _VALUE: EXACT_DECIMAL, LINE: pl.UInt64()}
_HINT = "The file is damaged or incomplete: fetch it again; if it is whole, the layout counts what the sender does not."


class ControlTotals:
    def __init__(self, file: str, name: str, types: Mapping[str, RecordType]) -> None:
        self._file, self._name, self._kind = file, name, types[name]
        self._scope = group_type_for_totals(name, types)
        self._ends_group = self._kind.once == "last"
        self._items = list(self._kind.counted_types_by_column)
        self._group = 0 if self._scope else 1  # the number of the last group that has begun
        self._found = pl.DataFrame(schema=_FOUND)  # of groups that have not ended
        self._stated = pl.DataFrame(schema=_FOUND)

    def add_records_and_raise_if_totals_differ(self, frames: Mapping[str, pl.DataFrame]) -> None:
        starts = frames[self._scope][LINE] if self._scope and self._scope in frames else None
        found, stated = list(self._count_and_sum_by_group(frames, starts)), self._read_stated_totals(frames, starts)
        if self._scope:  # every group has totals, even if they are zero
            found += [self._zero_totals_of_new_groups(starts)] if starts is not None else []
        self._found = _sum_by_group([self._found, *found])
        self._stated = pl.concat([self._stated, *stated])
        if starts is not None:
            self._group += len(starts)
            self._raise_if_totals_of_ended_groups_differ(pl.col(_GROUP) < self._group)
            self._found = self._found.filter(pl.col(_GROUP) >= self._group)
            self._stated = self._stated.filter(pl.col(_GROUP) >= self._group)

    def raise_if_totals_differ_at_end(self, line: int) -> None:
        if not self._scope:
            zeros = [(1, item, 0, line) for item in range(len(self._items))]
            self._found = _sum_by_group([self._found, pl.DataFrame(zeros, schema=_FOUND, orient="row")])
        self._raise_if_totals_of_ended_groups_differ(pl.lit(value=True))

    def _group_number_of_each_record(self, frame: pl.DataFrame, starts: pl.Series | None) -> pl.Series:
        if self._scope is None or starts is None:
            return pl.repeat(self._group, frame.height, dtype=pl.UInt64, eager=True)
        return starts.search_sorted(frame[LINE], side="right").cast(pl.UInt64) + self._group

    def _count_and_sum_by_group(
        self, frames: Mapping[str, pl.DataFrame], starts: pl.Series | None
    ) -> Iterator[pl.DataFrame]:
        for item, column in enumerate(self._items):
            summed = self._kind.sums.get(column)
            for name in self._kind.counted_types_by_column[column]:
                if name not in frames:
                    continue
                frame = frames[name]
                value = (
                    pl.lit(1).cast(EXACT_DECIMAL)
                    if summed is None
                    else self._column_as_exact_number(frame, summed.partition(".")[2])
                )
                group, number = (
                    self._group_number_of_each_record(frame, starts).alias(_GROUP),
                    pl.lit(item, pl.Int32).alias(_ITEM),
                )
                yield _sum_by_group([frame.select(group, number, value.alias(_VALUE), LINE)])

    def _read_stated_totals(self, frames: Mapping[str, pl.DataFrame], starts: pl.Series | None) -> list[pl.DataFrame]:
        if self._name not in frames:
            return []
        frame = frames[self._name]
        groups = self._group_number_of_each_record(frame, starts).alias(_GROUP)
        return [
            frame.select(
                groups,
                pl.lit(item, pl.Int32).alias(_ITEM),
                self._column_as_exact_number(frame, column, stated=True).alias(_VALUE),
                LINE,
            )
            for item, column in enumerate(self._items)
        ]

    def _zero_totals_of_new_groups(self, starts: pl.Series) -> pl.DataFrame:
        numbers = pl.int_range(self._group + 1, self._group + 1 + len(starts), dtype=pl.UInt64, eager=True)
        groups = pl.DataFrame({_GROUP: numbers, LINE: starts})
        items = pl.DataFrame({_ITEM: pl.int_range(len(self._items), dtype=pl.Int32, eager=True)})
        zeros = groups.join(items, how="cross").with_columns(pl.lit(0).cast(EXACT_DECIMAL).alias(_VALUE))
        return zeros.select(list(_FOUND))

    def _column_as_exact_number(self, frame: pl.DataFrame, column: str, *, stated: bool = False) -> pl.Expr:
        return convert_column_to_exact_decimals(frame, column, file=self._file, may_be_empty=not stated)

    def _raise_if_totals_of_ended_groups_differ(self, ended: pl.Expr) -> None:
        found = self._found.filter(ended)
        stated = self._stated.filter(ended)
        if (second := stated.filter(pl.struct(_GROUP, _ITEM).is_duplicated())).height:
            line = second.sort(LINE)[LINE][-1]
            self._raise_error(f"a second record of the type {self._name} where one is allowed", line, _HINT)
        both = found.join(stated.rename({_VALUE: _STATED}), on=[_GROUP, _ITEM], how="left", suffix="_of").sort(_GROUP)
        for row in (
            both.filter(pl.col(_STATED).is_null() | (pl.col(_STATED) != pl.col(_VALUE))).head(1).rows(named=True)
        ):
            if row[_STATED] is None:
                message = f"no record of the type {self._name} follows the records that it counts"
                self._raise_error(message, row[LINE], "The file is truncated or damaged: fetch it again.")
            item = self._items[row[_ITEM]]
            what = "sum" if item in self._kind.sums else "number of records"
            stated_as, has = (
                format_decimal_without_trailing_zeros(row[_STATED]),
                format_decimal_without_trailing_zeros(row[_VALUE]),
            )
            self._raise_error(
                f"{self._name}.{item} states the {what} {stated_as}, the file has {has}", row[f"{LINE}_of"], _HINT
            )
        if self._ends_group and (late := both.filter(pl.col(LINE) > pl.col(f"{LINE}_of"))).height:
            self._raise_error(
                f"a record after that of the type {self._name}, which is the last one", late[LINE][0], _HINT
            )

    def _raise_error(self, message: str, line: int, hint: str) -> NoReturn:
        raise RefusedError(message, where=f"{self._file}:{line}", hint=hint, code="control_total_differs")


def find_first_record_line_after(lines: Mapping[str, pl.Series], line: int) -> int | None:
    after = [int(found[0]) for each in lines.values() if len(found := each.filter(each > line))]
    return min(after, default=None)


def _sum_by_group(totals: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(totals).group_by(_GROUP, _ITEM).agg(pl.col(_VALUE).sum(), pl.col(LINE).max()).select(list(_FOUND))


def convert_column_to_exact_decimals(
    frame: pl.DataFrame, column: str, *, file: str, may_be_empty: bool = True
) -> pl.Expr:
    """Return a column of text as exact decimals, empty cells as zero. Other cells that are not numbers are refused."""
    text = column_expression_by_exact_name(column).str.strip_chars(" ")
    odd = frame.filter(~(text.str.contains(CONTROL_NUMBER_PATTERN) | ((text == "") & may_be_empty)))
    if odd.height:
        message = f"column {column!r} is not a number, which a control sum or count needs"
        hint = "Correct counts and sums in the config, or ask the sender."
        raise RefusedError(message, where=f"{file}:{odd[LINE][0]}", hint=hint, code="control_total_differs")
    return pl.when(text == "").then(pl.lit("0")).otherwise(text).cast(EXACT_DECIMAL)


def format_decimal_without_trailing_zeros(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


_NUMBER = internal_column_name("number")


def check_hierarchy_and_select_rows(
    parts: Iterator[Mapping[str, pl.DataFrame]], hierarchy: RecordHierarchy, batch_rows: int
) -> Iterator[pl.DataFrame]:
    for frames in parts:
        for rows in hierarchy.check_and_select_records(frames):
            yield from rows.iter_slices(batch_rows)
    hierarchy.raise_if_last_record_or_totals_wrong()
    yield from hierarchy.last_record_without_rows()
    if not hierarchy.count:
        yield pl.DataFrame(schema={**dict.fromkeys(hierarchy.selected_columns, pl.String()), LINE: pl.UInt64()})


class RecordHierarchy:
    """Checks the records of one file in their order, and selects the wanted ones, with the columns of parents first.

    A record of several rows begins with the parent that has the last columns of its key, one of *groups*. Below another
    parent that the file may repeat, it could be a part of the record only. With *keeps_empty*, such a parent without a
    row is one row, in which the columns of the others are empty.
    """

    def __init__(
        self,
        name: str,
        types: Mapping[str, RecordType],
        chosen: str,
        groups: Collection[tuple[str, ...]] = (),
        *,
        keeps_empty: bool = False,
    ) -> None:
        self._name, self._types, self._chosen = name, types, chosen
        self._order = sorted(types, key=lambda each: len(ancestors_of_type(each, types)))  # parents first
        self._parents = {kind.parent for kind in types.values() if kind.parent is not None}
        self._latest: dict[str, pl.DataFrame] = {}  # the last record of each parent
        self._is_plain = len(types) == 1
        self._totals = [ControlTotals(name, each, types) for each in types if types[each].counted_types_by_column]
        self._first = next((each for each, kind in types.items() if kind.once == "first"), None)
        self._last = next((each for each, kind in types.items() if kind.once == "last" and not kind.parent), None)
        self._begun, self._ended_at, self._end = False, 0, 0
        self.names = columns_of_type_and_ancestors(chosen, types)
        self._numbered = [
            (record_number_column(key), each) for key in groups if (each := self._parent_type_that_begins_key(key))
        ]
        begins = {kind for _, kind in self._numbered} if keeps_empty and len(self._numbered) == len(groups) else set()
        self._record_type = begins.pop() if len(begins) == 1 else None
        self._without_rows: pl.DataFrame | None = None  # the last record so far, as long as it has no row
        self.count = 0

    def check_and_select_records(self, frames: Mapping[str, pl.DataFrame]) -> Iterator[pl.DataFrame]:
        if not self._is_plain:
            self._raise_if_first_or_last_misplaced(frames)
            frames = self._add_parent_columns_to_all_types(frames)
        for totals in self._totals:
            totals.add_records_and_raise_if_totals_differ(frames)
        found = frames.get(self._chosen)
        if found is not None and self._record_type is not None:
            found = found.with_columns(pl.lit("").alias(ELEMENT))
        if found is not None:
            found = found[self.selected_columns]
        if self._record_type is not None:
            found = self._insert_records_without_rows(found, frames.get(self._record_type))
        if found is not None:
            self.count += found.height
            yield found

    def last_record_without_rows(self) -> Iterator[pl.DataFrame]:
        if (last := self._without_rows) is not None:
            self.count += 1
            yield self._parents_as_rows(last)

    @property
    def selected_columns(self) -> list[str]:
        added = [] if self._record_type is None else [ELEMENT]
        return [*self.names, *(column for column, _ in self._numbered), *added, LINE]

    def _parents_as_rows(self, parents: pl.DataFrame) -> pl.DataFrame:
        """Return *parents* as rows that have only their columns."""
        empty = (pl.lit("").alias(name) for name in self.names if name not in parents.columns)
        return parents.with_columns(*empty, pl.lit(None, pl.String).alias(ELEMENT))[self.selected_columns]

    def _insert_records_without_rows(
        self, found: pl.DataFrame | None, parents: pl.DataFrame | None
    ) -> pl.DataFrame | None:
        """Return *found*, the rows of a part, with one for each of the *parents* that has none. A later part may have
        rows of the last one.
        """
        begun = [each for each in (self._without_rows, parents) if each is not None and each.height]
        if not begun:
            return found
        records, lines = pl.concat(begun), pl.Series(LINE, [], pl.UInt64) if found is None else found[LINE]
        has_rows = records[LINE].search_sorted(lines, side="right").cast(pl.Int64) - 1
        lacking = records.with_row_index(_NUMBER).filter(~pl.col(_NUMBER).is_in(has_rows.unique().implode()))
        is_last = lacking[_NUMBER] == records.height - 1
        last, ended = (lacking.filter(each).drop(_NUMBER) for each in (is_last, ~is_last))
        self._without_rows = last if last.height else None
        if not ended.height:
            return found
        return pl.concat([*([] if found is None else [found]), self._parents_as_rows(ended)]).sort(LINE)

    def _parent_type_that_begins_key(self, key: Collection[str]) -> str | None:
        """Return the parent that begins the records of *key*; None if each row may, or a part of a record."""
        types, parents = self._types, ancestors_of_type(self._chosen, self._types)
        if not set(key) <= {column for each in parents for column in types[each].own_columns}:
            return None
        innermost = next(each for each in parents if not set(key).isdisjoint(types[each].own_columns))
        is_whole = all(types[each].once == "first" for each in ancestors_of_type(innermost, types))
        return innermost if is_whole and types[innermost].once is None else None

    def raise_if_last_record_or_totals_wrong(self) -> None:
        if self._last is not None and not self._ended_at:
            hint = "The file is truncated or still being written: fetch it again."
            self._raise_error(f"the last record is not of the type {self._last}", self._end, hint)
        for totals in self._totals:
            totals.raise_if_totals_differ_at_end(self._end)

    def _raise_if_first_or_last_misplaced(self, frames: Mapping[str, pl.DataFrame]) -> None:
        lines = {name: frame[LINE] for name, frame in frames.items() if frame.height}
        if not lines:
            return
        begin, end = min(each[0] for each in lines.values()), max(each[-1] for each in lines.values())
        if self._first is not None:
            firsts = lines.get(self._first)
            if not self._begun and (firsts is None or firsts[0] != begin):
                self._raise_error(f"the first record is not of the type {self._first}", begin, "Fetch the file again.")
            again = () if firsts is None else firsts.to_list()[0 if self._begun else 1 :]
            if again:
                self._raise_error(f"a second record of the type {self._first}", again[0], _JOINED)
        self._begun, self._end = True, end
        if self._ended_at:
            self._raise_error(f"a record after that of the type {self._last}, which is the last one", begin, _JOINED)
        if self._last in lines:
            self._ended_at = lines[self._last][0]
            if (after := find_first_record_line_after(lines, self._ended_at)) is not None:
                self._raise_error(
                    f"a record after that of the type {self._last}, which is the last one", after, _JOINED
                )

    def _add_parent_columns_to_all_types(self, frames: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
        found = dict[str, pl.DataFrame]()
        known = dict[str, pl.DataFrame]()  # the parents in this part and before it
        for name in self._order:
            frame = frames.get(name)
            parent = self._types[name].parent
            if frame is not None and parent is not None:
                frame = self._add_parent_columns(name, frame, parent, known)
            if frame is not None:
                numbers = (pl.col(LINE).cast(pl.String).alias(each) for each, kind in self._numbered if kind == name)
                found[name] = frame = frame.with_columns(numbers)
            if name in self._parents:
                before = [self._latest[name]] if name in self._latest else []
                both = [*before, *([] if frame is None else [frame])]
                if both:
                    known[name] = pl.concat(both)
                    self._latest[name] = known[name].tail(1)
        return found

    def _add_parent_columns(
        self, name: str, frame: pl.DataFrame, parent: str, known: Mapping[str, pl.DataFrame]
    ) -> pl.DataFrame:
        parents = known.get(parent)
        if parents is None:
            self._raise_orphan_error(name, parent, frame[LINE][0])
        places = parents[LINE].search_sorted(frame[LINE], side="right").cast(pl.Int64) - 1
        if (orphans := frame.filter(places < 0)).height:
            self._raise_orphan_error(name, parent, orphans[LINE][0])
        own = parents[places]
        if (above := self._types[parent].parent) is not None:
            current = known[above][LINE]
            stale = current.search_sorted(own[LINE], side="right") != current.search_sorted(frame[LINE], side="right")
            if (orphans := frame.filter(stale)).height:
                self._raise_orphan_error(name, parent, orphans[LINE][0])
        return pl.concat([own.drop(LINE), frame], how="horizontal")

    def _raise_orphan_error(self, name: str, parent: str, line: int) -> NoReturn:
        hint = "Lines were lost or reordered: fetch the file again, or ask the sender."
        self._raise_error(f"a record of the type {name} before any {parent} that it belongs to", line, hint)

    def _raise_error(self, message: str, line: int, hint: str) -> NoReturn:
        raise RefusedError(message, where=f"{self._name}:{line}", hint=hint, code="file_damaged")


_JOINED = "Were files joined? Ask the sender to send them separately."
