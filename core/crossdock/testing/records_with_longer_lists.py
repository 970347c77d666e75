"""Variants of a record whose lists have more elements: lists of objects, and the rows of a group."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from msgspec import Struct

from crossdock.testing.record_variants_after_schema_drift import (
    Path,
    copy_with_change,
    is_number_or_numeric_text,
    number_written_like,
    paths_of_all_values,
    record_with_other_json_object,
    value_at,
)
from crossdock.values import exact_json
from crossdock.values.raw_rows_and_records import JSON, Record


class LongerList(Struct, frozen=True):
    """A list of a record, and a number in its elements.

    Attributes:
        place: Where the record has the list.
        elements: Its elements.
        number: Where each element has the number.
    """

    place: str
    elements: Sequence[Any]
    number: Path
    _with: Callable[[list[Any]], Record]

    @property
    def original_element_count(self) -> int:
        return len(self.elements)

    def record_with_more_elements(self, number: Decimal, more: int, index: int) -> Record:
        """Return the record with *more* elements, of which the one at *index* has *number*.

        Elements are told apart by what tells apart those of the example.
        """
        differing = [path for path in paths_of_all_values(self.elements[-1]) if self._has_distinct_values(path)]
        elements = [
            *self.elements,
            *(_distinguishable_copy(self.elements[-1], differing, each) for each in range(1, more + 1)),
        ]
        written = number_written_like(value_at(elements[index], self.number), number)
        elements[index] = copy_with_change(elements[index], self.number, written)
        return self._with(elements)

    def _has_distinct_values(self, path: Path) -> bool:
        values = [value_at(each, path) for each in self.elements]
        return isinstance(values[-1], str | int | Decimal) and len({*map(repr, values)}) == len(values) > 1


def longer_lists(record: Record) -> Iterator[LongerList]:
    """Yield each list of *record* once for each number that its first element has."""
    if JSON not in record.row:
        if len(record.rows) > 1:
            yield from _longer_list_per_numeric_member("the record", [*record.rows], partial(_record_with_rows, record))
        return
    for place, elements, with_elements in lists_of_objects(record):
        yield from _longer_list_per_numeric_member(place, elements, with_elements)


def lists_of_objects(record: Record) -> Iterator[tuple[str, list[Any], Callable[[list[Any]], Record]]]:
    """Yield the place of each list of a JSON record, its elements, and a function that replaces them."""
    item = exact_json.loads(record.row.get(JSON) or "null")
    for path in paths_of_all_values(item):
        elements = value_at(item, path)
        if isinstance(elements, list) and elements and all(isinstance(each, dict) for each in elements):
            yield f"/{'/'.join(map(str, path))}", elements, partial(_record_with_list, record, item, path)


def _longer_list_per_numeric_member(
    place: str, elements: list[Any], with_elements: Callable[[list[Any]], Record]
) -> Iterator[LongerList]:
    for path in paths_of_all_values(elements[0]):
        if is_number_or_numeric_text(value_at(elements[0], path)) and is_number_or_numeric_text(
            value_at(elements[-1], path)
        ):
            yield LongerList(place, elements, path, with_elements)


def _record_with_list(record: Record, item: Any, path: Path, elements: list[Any]) -> Record:
    return record_with_other_json_object(record, copy_with_change(item, path, elements))


def _record_with_rows(record: Record, rows: list[dict[str, str | None]]) -> Record:
    return replace(record, rows=tuple(rows), lines=tuple(range(1, len(rows) + 1)))


def _distinguishable_copy(element: Any, differing: Sequence[Path], number: int) -> Any:
    made = copy.deepcopy(element)
    for path in differing:
        value = value_at(made, path)
        if isinstance(value, bool):
            continue
        made = copy_with_change(made, path, f"{value}-{number}" if isinstance(value, str) else value + number)
    return made
