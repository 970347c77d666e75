"""The profile of a stream's reading: its columns, or the members of its JSON records."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import polars as pl

from crossdock.mapping.lookup_and_join_settings import NO_MAIN_ROW
from crossdock.migration.column_profile import ColumnProfile, pack_source_and_line, profile_columns
from crossdock.values import exact_json
from crossdock.values.json_paths import json_value_as_column_text
from crossdock.values.raw_rows_and_records import (
    ELEMENT,
    JSON,
    LINE,
    RawBatch,
    column_expressions_by_exact_names,
    internal_column_name,
    is_internal_column,
)

MAX_COLUMNS = 500
"""The most profiled columns of a stream; for JSON records, those that come first."""
_PLACE = internal_column_name("place")
_ROWS, _BYTES = 100_000, 32 << 20  # held until they are profiled together, which many small batches need


class SourceProfile:
    """The reading of one stream. Memory is bounded by some rows and `MAX_COLUMNS` columns.

    *columns* are in the order of the source. A list of JSON records is ``NAME[]``: the number of its elements.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.columns: dict[str, ColumnProfile] = {}
        self.has_more = False
        self._held: list[pl.DataFrame] = []
        self._sources: list[str] = []
        self._bytes = 0

    def add_batch(self, batch: RawBatch, joined: Collection[str] = ()) -> None:
        rows = _without_joined_rows_and_columns(batch.load(), joined)
        if LINE not in rows.columns:  # a defect of a connector, which is reported when the rows are used
            return
        columns = (
            _columns_from_json_records(rows[JSON].to_list()) if JSON in rows.columns else rows.select(pl.col(pl.String))
        )
        kept = [name for name in columns.columns if name in self.columns or self._add_column_if_room(name)]
        columns = columns.select(column_expressions_by_exact_names(kept))
        if not self._sources or self._sources[-1] != batch.source:
            self._sources.append(batch.source)
        self.rows += rows.height
        self._bytes += int(columns.estimated_size())
        self._held.append(
            columns.with_columns(rows.select(pack_source_and_line(len(self._sources) - 1, pl.col(LINE)).alias(_PLACE)))
        )
        if sum(frame.height for frame in self._held) >= _ROWS or self._bytes >= _BYTES:
            self.profile_buffered_rows()

    def profile_buffered_rows(self) -> None:
        if not self._held:
            return
        rows = pl.concat(self._held, how="diagonal")
        found = profile_columns(rows.drop(_PLACE), rows[_PLACE], self._sources)
        for name, profile in found.items():
            self.columns[name].merge(profile)
        self._held, self._sources, self._bytes = [], [], 0

    def _add_column_if_room(self, name: str) -> bool:
        if len(self.columns) == MAX_COLUMNS:
            self.has_more = True
            return False
        self.columns[name] = ColumnProfile()
        return True


def _without_joined_rows_and_columns(rows: pl.DataFrame, joined: Collection[str]) -> pl.DataFrame:
    for name in joined:
        if (problem := f"{name}.problem") in rows.columns:
            rows = rows.filter(pl.col(problem).ne_missing(pl.lit(NO_MAIN_ROW)))
    present = [each for each in rows.columns if each != ELEMENT and not is_internal_column(each)]
    own = [each for each in present if each not in joined and each.partition(".")[0] not in joined]
    return rows.select(column_expressions_by_exact_names(own))


def _columns_from_json_records(texts: Sequence[str | None]) -> pl.DataFrame:
    items = [dict(_flatten(exact_json.loads(text or "null"), "")) for text in texts]
    names = dict.fromkeys(name for item in items for name in item)
    cells = {name: [item.get(name) for item in items] for name in names}
    return pl.DataFrame(cells, schema=dict.fromkeys(names, pl.String), height=len(items))


def _flatten(value: Any, path: str) -> Iterator[tuple[str, str | None]]:
    """Yield the scalar members in *value* by dotted path, and the length of lists."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _flatten(member, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        yield f"{path}[]", str(len(value))
    elif path:
        yield path, json_value_as_column_text(value)
