"""Counts and control sums that a file states about its records, compared with the records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import NoReturn

import polars as pl

from crossdock.errors import RefusedError
from crossdock.reading.formats.record_type_declarations import RecordType, group_type_for_totals
from crossdock.values.raw_rows_and_records import LINE, column_expression_by_exact_name

NUMBER = r"^-?[0-9]{1,26}(?:\.[0-9]{1,9})?$"
"""A number that can be part of a control sum."""
EXACT = pl.Decimal(38, 9)
_GROUP, _ITEM, _VALUE, _STATED = "_group", "_item", "_value", "_stated"
_FOUND = {_GROUP: pl.UInt64(), _ITEM: pl.Int32(), _VALUE: EXACT, LINE: pl.UInt64()}
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

    def add_records_and_compare_totals(self, frames: Mapping[str, pl.DataFrame]) -> None:
        starts = frames[self._scope][LINE] if self._scope and self._scope in frames else None
        found, stated = list(self._count_and_sum(frames, starts)), self._stated_totals(frames, starts)
        if self._scope:  # every group has totals, even if they are zero
            found += [self._zero_totals(starts)] if starts is not None else []
        self._found = _sum_by_group([self._found, *found])
        self._stated = pl.concat([self._stated, *stated])
        if starts is not None:
            self._group += len(starts)
            self._compare_ended_groups(pl.col(_GROUP) < self._group)
            self._found = self._found.filter(pl.col(_GROUP) >= self._group)
            self._stated = self._stated.filter(pl.col(_GROUP) >= self._group)

    def compare_totals_at_end(self, line: int) -> None:
        if not self._scope:
            zeros = [(1, item, 0, line) for item in range(len(self._items))]
            self._found = _sum_by_group([self._found, pl.DataFrame(zeros, schema=_FOUND, orient="row")])
        self._compare_ended_groups(pl.lit(value=True))

    def _group_number_of_each_record(self, frame: pl.DataFrame, starts: pl.Series | None) -> pl.Series:
        if self._scope is None or starts is None:
            return pl.repeat(self._group, frame.height, dtype=pl.UInt64, eager=True)
        return starts.search_sorted(frame[LINE], side="right").cast(pl.UInt64) + self._group

    def _count_and_sum(self, frames: Mapping[str, pl.DataFrame], starts: pl.Series | None) -> Iterator[pl.DataFrame]:
        for item, column in enumerate(self._items):
            summed = self._kind.sums.get(column)
            for name in self._kind.counted_types_by_column[column]:
                if name not in frames:
                    continue
                frame = frames[name]
                value = pl.lit(1).cast(EXACT) if summed is None else self._exact_number(frame, summed.partition(".")[2])
                group, number = (
                    self._group_number_of_each_record(frame, starts).alias(_GROUP),
                    pl.lit(item, pl.Int32).alias(_ITEM),
                )
                yield _sum_by_group([frame.select(group, number, value.alias(_VALUE), LINE)])

    def _stated_totals(self, frames: Mapping[str, pl.DataFrame], starts: pl.Series | None) -> list[pl.DataFrame]:
        if self._name not in frames:
            return []
        frame = frames[self._name]
        groups = self._group_number_of_each_record(frame, starts).alias(_GROUP)
        return [
            frame.select(
                groups,
                pl.lit(item, pl.Int32).alias(_ITEM),
                self._exact_number(frame, column, stated=True).alias(_VALUE),
                LINE,
            )
            for item, column in enumerate(self._items)
        ]

    def _zero_totals(self, starts: pl.Series) -> pl.DataFrame:
        numbers = pl.int_range(self._group + 1, self._group + 1 + len(starts), dtype=pl.UInt64, eager=True)
        groups = pl.DataFrame({_GROUP: numbers, LINE: starts})
        items = pl.DataFrame({_ITEM: pl.int_range(len(self._items), dtype=pl.Int32, eager=True)})
        zeros = groups.join(items, how="cross").with_columns(pl.lit(0).cast(EXACT).alias(_VALUE))
        return zeros.select(list(_FOUND))

    def _exact_number(self, frame: pl.DataFrame, column: str, *, stated: bool = False) -> pl.Expr:
        return column_as_exact_decimals(frame, column, file=self._file, may_be_empty=not stated)

    def _compare_ended_groups(self, ended: pl.Expr) -> None:
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
            stated_as, has = plain_decimal_text(row[_STATED]), plain_decimal_text(row[_VALUE])
            self._raise_error(
                f"{self._name}.{item} states the {what} {stated_as}, the file has {has}", row[f"{LINE}_of"], _HINT
            )
        if self._ends_group and (late := both.filter(pl.col(LINE) > pl.col(f"{LINE}_of"))).height:
            self._raise_error(
                f"a record after that of the type {self._name}, which is the last one", late[LINE][0], _HINT
            )

    def _raise_error(self, message: str, line: int, hint: str) -> NoReturn:
        raise RefusedError(message, where=f"{self._file}:{line}", hint=hint, code="control_total_differs")


def first_record_line_after(lines: Mapping[str, pl.Series], line: int) -> int | None:
    after = [int(found[0]) for each in lines.values() if len(found := each.filter(each > line))]
    return min(after, default=None)


def _sum_by_group(totals: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(totals).group_by(_GROUP, _ITEM).agg(pl.col(_VALUE).sum(), pl.col(LINE).max()).select(list(_FOUND))


def column_as_exact_decimals(frame: pl.DataFrame, column: str, *, file: str, may_be_empty: bool = True) -> pl.Expr:
    """Return a column of text as exact decimals, empty cells as zero. Other cells that are not numbers are refused."""
    text = column_expression_by_exact_name(column).str.strip_chars(" ")
    odd = frame.filter(~(text.str.contains(NUMBER) | ((text == "") & may_be_empty)))
    if odd.height:
        message = f"column {column!r} is not a number, which a control sum or count needs"
        hint = "Correct counts and sums in the config, or ask the sender."
        raise RefusedError(message, where=f"{file}:{odd[LINE][0]}", hint=hint, code="control_total_differs")
    return pl.when(text == "").then(pl.lit("0")).otherwise(text).cast(EXACT)


def plain_decimal_text(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
