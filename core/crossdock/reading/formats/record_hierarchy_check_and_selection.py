"""The order of records of several types: parents before children, first and last records, counts and sums."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NoReturn

import polars as pl

from crossdock.errors import RefusedError
from crossdock.reading.formats.control_totals import ControlTotals, first_record_line_after
from crossdock.reading.formats.record_type_declarations import RecordType, ancestors, columns_with_ancestors
from crossdock.values.raw_rows_and_records import ELEMENT, LINE, internal_column_name, record_number_column

_NUMBER = internal_column_name("number")


def check_and_select_rows(
    parts: Iterator[Mapping[str, pl.DataFrame]], hierarchy: RecordHierarchy, batch_rows: int
) -> Iterator[pl.DataFrame]:
    for frames in parts:
        for rows in hierarchy.check_and_select_records(frames):
            yield from rows.iter_slices(batch_rows)
    hierarchy.check_last_record_and_totals()
    yield from hierarchy.last_record_without_rows()
    if not hierarchy.count:
        yield pl.DataFrame(schema={**dict.fromkeys(hierarchy.selected, pl.String()), LINE: pl.UInt64()})


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
        self._order = sorted(types, key=lambda each: len(ancestors(each, types)))  # parents first
        self._parents = {kind.parent for kind in types.values() if kind.parent is not None}
        self._latest: dict[str, pl.DataFrame] = {}  # the last record of each parent
        self._is_plain = len(types) == 1
        self._totals = [ControlTotals(name, each, types) for each in types if types[each].counted_types_by_column]
        self._first = next((each for each, kind in types.items() if kind.once == "first"), None)
        self._last = next((each for each, kind in types.items() if kind.once == "last" and not kind.parent), None)
        self._begun, self._ended_at, self._end = False, 0, 0
        self.names = columns_with_ancestors(chosen, types)
        self._numbered = [(record_number_column(key), each) for key in groups if (each := self._type_of_key(key))]
        begins = {kind for _, kind in self._numbered} if keeps_empty and len(self._numbered) == len(groups) else set()
        self._record_type = begins.pop() if len(begins) == 1 else None
        self._without_rows: pl.DataFrame | None = None  # the last record so far, as long as it has no row
        self.count = 0

    def check_and_select_records(self, frames: Mapping[str, pl.DataFrame]) -> Iterator[pl.DataFrame]:
        if not self._is_plain:
            self._check_first_and_last(frames)
            frames = self._with_parents(frames)
        for totals in self._totals:
            totals.add_records_and_compare_totals(frames)
        found = frames.get(self._chosen)
        if found is not None and self._record_type is not None:
            found = found.with_columns(pl.lit("").alias(ELEMENT))
        if found is not None:
            found = found[self.selected]
        if self._record_type is not None:
            found = self._with_records_without_rows(found, frames.get(self._record_type))
        if found is not None:
            self.count += found.height
            yield found

    def last_record_without_rows(self) -> Iterator[pl.DataFrame]:
        if (last := self._without_rows) is not None:
            self.count += 1
            yield self._as_rows(last)

    @property
    def selected(self) -> list[str]:
        added = [] if self._record_type is None else [ELEMENT]
        return [*self.names, *(column for column, _ in self._numbered), *added, LINE]

    def _as_rows(self, parents: pl.DataFrame) -> pl.DataFrame:
        """Return *parents* as rows that have only their columns."""
        empty = (pl.lit("").alias(name) for name in self.names if name not in parents.columns)
        return parents.with_columns(*empty, pl.lit(None, pl.String).alias(ELEMENT))[self.selected]

    def _with_records_without_rows(
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
        return pl.concat([*([] if found is None else [found]), self._as_rows(ended)]).sort(LINE)

    def _type_of_key(self, key: Collection[str]) -> str | None:
        """Return the parent that begins the records of *key*; None if each row may, or a part of a record."""
        types, parents = self._types, ancestors(self._chosen, self._types)
        if not set(key) <= {column for each in parents for column in types[each].own_columns}:
            return None
        innermost = next(each for each in parents if not set(key).isdisjoint(types[each].own_columns))
        is_whole = all(types[each].once == "first" for each in ancestors(innermost, types))
        return innermost if is_whole and types[innermost].once is None else None

    def check_last_record_and_totals(self) -> None:
        if self._last is not None and not self._ended_at:
            hint = "The file is truncated or still being written: fetch it again."
            self._raise_error(f"the last record is not of the type {self._last}", self._end, hint)
        for totals in self._totals:
            totals.compare_totals_at_end(self._end)

    def _check_first_and_last(self, frames: Mapping[str, pl.DataFrame]) -> None:
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
            if (after := first_record_line_after(lines, self._ended_at)) is not None:
                self._raise_error(
                    f"a record after that of the type {self._last}, which is the last one", after, _JOINED
                )

    def _with_parents(self, frames: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
        found = dict[str, pl.DataFrame]()
        known = dict[str, pl.DataFrame]()  # the parents in this part and before it
        for name in self._order:
            frame = frames.get(name)
            parent = self._types[name].parent
            if frame is not None and parent is not None:
                frame = self._with_parent_columns(name, frame, parent, known)
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

    def _with_parent_columns(
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
