"""The order of records of several types: parents before children, first and last records, counts and sums."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NoReturn

import polars as pl

from crossdock.errors import RefusedError
from crossdock.reading.formats.control_totals import ControlTotals, first_record_line_after
from crossdock.reading.formats.record_type_declarations import RecordType, ancestors, columns_with_ancestors
from crossdock.values.raw_rows_and_records import LINE, record_number_column


def check_and_select_rows(
    parts: Iterator[Mapping[str, pl.DataFrame]], hierarchy: RecordHierarchy, batch_rows: int
) -> Iterator[pl.DataFrame]:
    for frames in parts:
        for rows in hierarchy.check_and_select_records(frames):
            yield from rows.iter_slices(batch_rows)
    hierarchy.check_last_record_and_totals()
    if not hierarchy.count:
        yield pl.DataFrame(schema={**dict.fromkeys(hierarchy.names, pl.String()), LINE: pl.UInt64()})


class RecordHierarchy:
    """Checks the records of one file in their order, and selects the wanted ones, with the columns of parents first.

    A record of several rows begins with the parent that has the last columns of its key, one of *groups*. Below another
    parent that the file may repeat, it could be a part of the record only.
    """

    def __init__(
        self, name: str, types: Mapping[str, RecordType], chosen: str, groups: Collection[tuple[str, ...]] = ()
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
        self.count = 0

    def check_and_select_records(self, frames: Mapping[str, pl.DataFrame]) -> Iterator[pl.DataFrame]:
        if not self._is_plain:
            self._check_first_and_last(frames)
            frames = self._with_parents(frames)
        for totals in self._totals:
            totals.add_records_and_compare_totals(frames)
        if (found := frames.get(self._chosen)) is not None:
            self.count += found.height
            yield found[[*self.names, *(column for column, _ in self._numbered), LINE]]

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
            self._refuse(f"the last record is not of the type {self._last}", self._end, hint)
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
                self._refuse(f"the first record is not of the type {self._first}", begin, "Fetch the file again.")
            again = () if firsts is None else firsts.to_list()[0 if self._begun else 1 :]
            if again:
                self._refuse(f"a second record of the type {self._first}", again[0], _JOINED)
        self._begun, self._end = True, end
        if self._ended_at:
            self._refuse(f"a record after that of the type {self._last}, which is the last one", begin, _JOINED)
        if self._last in lines:
            self._ended_at = lines[self._last][0]
            if (after := first_record_line_after(lines, self._ended_at)) is not None:
                self._refuse(f"a record after that of the type {self._last}, which is the last one", after, _JOINED)

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
            self._refuse_orphan(name, parent, frame[LINE][0])
        places = parents[LINE].search_sorted(frame[LINE], side="right").cast(pl.Int64) - 1
        if (orphans := frame.filter(places < 0)).height:
            self._refuse_orphan(name, parent, orphans[LINE][0])
        own = parents[places]
        if (above := self._types[parent].parent) is not None:
            current = known[above][LINE]
            stale = current.search_sorted(own[LINE], side="right") != current.search_sorted(frame[LINE], side="right")
            if (orphans := frame.filter(stale)).height:
                self._refuse_orphan(name, parent, orphans[LINE][0])
        return pl.concat([own.drop(LINE), frame], how="horizontal")

    def _refuse_orphan(self, name: str, parent: str, line: int) -> NoReturn:
        hint = "Lines were lost or reordered: fetch the file again, or ask the sender."
        self._refuse(f"a record of the type {name} before any {parent} that it belongs to", line, hint)

    def _refuse(self, message: str, line: int, hint: str) -> NoReturn:
        raise RefusedError(message, where=f"{self._name}:{line}", hint=hint, code="file_damaged")


_JOINED = "Were files joined? Ask the sender to send them separately."
