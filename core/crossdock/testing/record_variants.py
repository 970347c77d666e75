"""Variants of a record after changes of the source: unknown, missing or null members, other types, and longer lists.

Longer lists are lists of objects, and the rows of a group.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

from msgspec import Struct

from crossdock.values import exact_json
from crossdock.values.raw_rows_and_records import JSON, Record

Path = tuple[str | int, ...]
_WITH_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_ODD: tuple[tuple[str, Any], ...] = (
    ("null", None),
    ("an empty text", ""),
    ("a text", "\N{SNOWMAN}"),
    ("a number", 7),
    ("an object", {}),
    ("a list", []),
    ("true", True),
)


def drift_variants(record: Record) -> Iterator[tuple[str, Record]]:
    """Yield each variant of *record*, with a description of the change."""
    if JSON in record.row:
        for change, item in drifted_objects(exact_json.loads(record.row[JSON] or "null")):
            yield change, record_with_other_json_object(record, item)
        return
    for number, row in enumerate(record.rows):
        for name in row:
            for what, cell in (("null", None), ("an empty cell", ""), ("another text", "\N{SNOWMAN}")):
                yield f"{what} in column {name!r}", _record_with_cell(record, number, name, cell)


def drifted_objects(item: Any) -> Iterator[tuple[str, Any]]:
    """Do the same as `drift_variants` for the object of a JSON record."""
    if not isinstance(item, dict):
        return
    yield "an unknown member", {**item, "crossdock_unknown_member": {"a": [None]}}
    for path in paths_of_all_values(item):
        place = "/" + "/".join(map(str, path))
        if isinstance(path[-1], str):
            yield f"{place} missing", copy_with_change(item, path, remove=True)
        for what, value in _ODD:
            yield f"{what} as {place}", copy_with_change(item, path, value)


def record_with_other_json_object(record: Record, item: Any) -> Record:
    """Return *record* with another object in its first row."""
    return replace(record, rows=({**record.row, JSON: exact_json.dumps(item).decode()}, *record.rows[1:]))


def replaceable_numbers(record: Record) -> Iterator[tuple[str, Callable[[Decimal | str], Record]]]:
    """Yield the place of each number of *record*, also in texts, with a function that replaces it."""
    if JSON in record.row:
        item = exact_json.loads(record.row[JSON] or "null")
        for path in paths_of_all_values(item) if isinstance(item, dict) else ():
            if is_number_or_numeric_text(value_at_path_or_none(item, path)):
                yield "/" + "/".join(map(str, path)), partial(_record_with_other_number, record, item, path)
        return
    for index, row in enumerate(record.rows):
        for name, cell in row.items():
            if is_number_or_numeric_text(cell):
                yield name, partial(_record_with_number_in_cell, record, index, name)


def _record_with_other_number(record: Record, item: Any, path: Path, number: Decimal | str) -> Record:
    return record_with_other_json_object(
        record, copy_with_change(item, path, number_written_like(value_at_path_or_none(item, path), number))
    )


def number_written_like(cell: Any, number: Decimal | str) -> Decimal | str:
    """Return *number* in the form of *cell*: as a text if it is one, with a comma if it has one."""
    if not isinstance(cell, str):
        return number
    return str(number).replace(".", ",") if _WITH_COMMA.fullmatch(cell) else str(number)


def _record_with_number_in_cell(record: Record, index: int, name: str, number: Decimal | str) -> Record:
    return _record_with_cell(record, index, name, number_written_like(record.rows[index][name], number))


def all_numbers_in(value: Any) -> set[Decimal]:
    if isinstance(value, dict | list):
        return set().union(*map(all_numbers_in, value.values() if isinstance(value, dict) else value))
    return {Decimal(value)} if isinstance(value, int | Decimal) and not isinstance(value, bool) else set()


def is_number_or_numeric_text(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        return False
    if isinstance(value, str) and _WITH_COMMA.fullmatch(value):
        return True
    try:
        return Decimal(value).is_finite()
    except InvalidOperation:
        return False


def paths_of_all_values(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each value in *value*, at any depth."""
    if path:
        yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in members:
        yield from paths_of_all_values(inner, (*path, name))


def value_at_path_or_none(value: Any, path: Path) -> Any:
    """Return the value at *path*; None if there is none."""
    try:
        for name in path:
            value = value[name]
    except (LookupError, TypeError):
        return None
    return value


def copy_with_change(item: Any, path: Path, value: Any = None, *, remove: bool = False) -> Any:
    made = copy.deepcopy(item)
    parent = value_at_path_or_none(made, path[:-1])
    if remove:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return made


def _record_with_cell(record: Record, number: int, name: str, cell: str | Decimal | None) -> Record:
    rows = record.copy().rows
    rows[number][name] = None if cell is None else str(cell)
    return replace(record, rows=rows)


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
        written = number_written_like(value_at_path_or_none(elements[index], self.number), number)
        elements[index] = copy_with_change(elements[index], self.number, written)
        return self._with(elements)

    def _has_distinct_values(self, path: Path) -> bool:
        values = [value_at_path_or_none(each, path) for each in self.elements]
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
        elements = value_at_path_or_none(item, path)
        if isinstance(elements, list) and elements and all(isinstance(each, dict) for each in elements):
            yield f"/{'/'.join(map(str, path))}", elements, partial(_record_with_list, record, item, path)


def _longer_list_per_numeric_member(
    place: str, elements: list[Any], with_elements: Callable[[list[Any]], Record]
) -> Iterator[LongerList]:
    for path in paths_of_all_values(elements[0]):
        if is_number_or_numeric_text(value_at_path_or_none(elements[0], path)) and is_number_or_numeric_text(
            value_at_path_or_none(elements[-1], path)
        ):
            yield LongerList(place, elements, path, with_elements)


def _record_with_list(record: Record, item: Any, path: Path, elements: list[Any]) -> Record:
    return record_with_other_json_object(record, copy_with_change(item, path, elements))


def _record_with_rows(record: Record, rows: list[dict[str, str | None]]) -> Record:
    return replace(record, rows=tuple(rows), lines=tuple(range(1, len(rows) + 1)))


def _distinguishable_copy(element: Any, differing: Sequence[Path], number: int) -> Any:
    made = copy.deepcopy(element)
    for path in differing:
        value = value_at_path_or_none(made, path)
        if isinstance(value, bool):
            continue
        made = copy_with_change(made, path, f"{value}-{number}" if isinstance(value, str) else value + number)
    return made
