"""Pages of a JSON API, and the lists of records in them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from crossdock.values.json_paths import with_value_at_path

ListPath = tuple[str | int, ...]
"""The path of a list in the body of a page."""


def outermost_lists(value: Any, path: ListPath = ()) -> Iterator[tuple[ListPath, list[Any]]]:
    """Yield each list in *value* that no other list contains, with its path."""
    if isinstance(value, list):
        yield path, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from outermost_lists(inner, (*path, name))


def value_at_path(value: Any, path: ListPath) -> Any:
    """Return the value at *path*; None if a member of it is missing."""
    for name in path:
        if isinstance(value, list) and isinstance(name, int):
            value = value[name]
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


class RecordList(Struct, frozen=True):
    """Where a page lists records.

    Attributes:
        path: The path of the list.
        inner: The path of the record in each element, such as ``node`` in the edges of a GraphQL connection.
    """

    path: ListPath
    inner: ListPath = ()

    def elements(self, page: Any) -> list[Any]:
        """Return the list itself; an empty one if *page* has none."""
        found = value_at_path(page, self.path)
        return found if isinstance(found, list) else []

    def record_in_element(self, element: Any) -> Any:
        return value_at_path(element, self.inner)

    def records(self, page: Any) -> list[Any]:
        return [self.record_in_element(each) for each in self.elements(page)]

    def element_with_replaced_record(self, element: Any, record: Any) -> Any:
        """Return *element* with another record."""
        return with_value_at_path(element, "".join(f"/{name}" for name in self.inner), record) if self.inner else record


def possible_record_lists(page: Any) -> Iterator[RecordList]:
    """Yield each list of *page*, and again for each member in which all of its elements may have the record."""
    for path, items in outermost_lists(page):
        yield RecordList(path)
        if items and all(isinstance(each, dict) for each in items):
            names = dict.fromkeys(name for each in items for name, inner in each.items() if isinstance(inner, dict))
            yield from (RecordList(path, (name,)) for name in names if "/" not in name and "~" not in name)


def pages_with_reversed_lists(pages: Sequence[Any], places: Iterable[RecordList]) -> list[Any]:
    """Return a copy of *pages* whose lists at *places* are reversed."""
    changed = copy.deepcopy(list(pages))
    for place in places:
        for page in changed:
            place.elements(page).reverse()
    return changed


def pages_without_some_records(
    pages: Sequence[Any], places: Iterable[RecordList], is_kept: Callable[[Any], bool]
) -> list[Any]:
    """Return a copy of *pages* without some records. Later ones move up, so that the last pages have fewer."""
    changed = copy.deepcopy(list(pages))
    for place in places:
        found = [place.elements(page) for page in changed]
        kept = iter([item for items in found for item in items if is_kept(place.record_in_element(item))])
        for items in found:
            items[:] = [item for _, item in zip(list(items), kept, strict=False)]
    return changed
