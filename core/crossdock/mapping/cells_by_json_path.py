"""The cells of a row that was read as JSON, and what the paths of a map do not reach in its object."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from crossdock.values import exact_json
from crossdock.values.json_paths import (
    MISSING,
    at_path,
    at_path_or_error,
    is_empty_value,
    is_index,
    names_in_path,
    path_of_names,
)
from crossdock.values.records import JSON


class JsonCells(dict[str, str | None]):
    """Cells by their paths. One that is empty because no object or list is where its path says raises RecordError.

    Args:
        cells: The columns of the row.
        count: `Record.count` of its record.
        document: Its object; by default that of the column ``_json``.
        others: First names of columns that are no paths, such as those of look-ups.
    """

    def __init__(
        self,
        cells: Mapping[str, str | None],
        count: Callable[[str], None],
        document: Any = MISSING,
        others: Collection[str] = (),
    ) -> None:
        super().__init__(cells)
        self._count, self._others = count, others
        if document is not MISSING:
            self.document = document

    @cached_property
    def document(self) -> Any:
        return exact_json.loads(self.get(JSON) or "null")

    def __getitem__(self, column: str) -> str | None:
        cell = super().__getitem__(column)
        if cell is None and column.partition(".")[0] not in self._others:
            at_path_or_error(self.document, column)
        return cell

    def count_left_out_object(self, around: str | None) -> None:
        """Count an object that is left out although *around*, which all its members are in, has some content."""
        if around is not None and _has_content(at_path(self.document, around)):
            self._count(f"object of {around} left out, which has no member that map reads")

    def count_unread_elements(self, lists: Mapping[str, Collection[int]]) -> None:
        """Count the lists that have more elements than those that a map reads by their numbers."""
        for path, numbers in lists.items():
            found = at_path(self.document, path)
            if isinstance(found, list) and any(
                number not in numbers and _has_content(each) for number, each in enumerate(found)
            ):
                self._count(f"elements of {path} left out, which map does not read")


def common_parent_path(columns: Iterable[str]) -> str | None:
    """Return the path of the object that all *columns* are in, such as ``ship`` of ``ship.city``; None if it is the
    record itself.
    """
    parents = [names_in_path(column)[:-1] for column in columns]
    shared = list[str]()
    for names in zip(*parents, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return path_of_names(shared) if shared else None


def lists_read_by_number(columns: Collection[str]) -> dict[str, set[int]]:
    """Return the paths of lists with the numbers of the elements that *columns* read, unless one is the whole list."""
    found: dict[str, set[int]] = {}
    for path, number in _elements_read_by_number(columns):
        found.setdefault(path, set()).add(number)
    whole = {path_of_names(names_in_path(column)) for column in columns}
    return {path: numbers for path, numbers in found.items() if path not in whole}


def _elements_read_by_number(columns: Iterable[str]) -> Iterator[tuple[str, int]]:
    for column in columns:
        names = names_in_path(column)
        for place, name in enumerate(names):
            if place and is_index(name):
                yield path_of_names(names[:place]), int(name)


def _has_content(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return not is_empty_value(value) if inner is None else any(_has_content(each) for each in inner)
