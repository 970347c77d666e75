"""Pages of a JSON API, and the lists of records in them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

ListPath = tuple[str | int, ...]
"""The path of a list in the body of a page."""


def lists(value: Any, path: ListPath = ()) -> Iterator[tuple[ListPath, list[Any]]]:
    """Yield each list in *value* that no other list contains, with its path."""
    if isinstance(value, list):
        yield path, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from lists(inner, (*path, name))


def value_at_path(value: Any, path: ListPath) -> Any:
    """Return the value at *path*; None if a member of it is missing."""
    for name in path:
        if isinstance(value, list) and isinstance(name, int):
            value = value[name]
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def in_reverse(pages: Sequence[Any], places: Iterable[ListPath]) -> list[Any]:
    """Return a copy of *pages* whose lists at *places* are reversed."""
    changed = copy.deepcopy(list(pages))
    for place in places:
        for page in changed:
            if isinstance(items := value_at_path(page, place), list):
                items.reverse()
    return changed


def without_records(pages: Sequence[Any], places: Iterable[ListPath], is_kept: Callable[[Any], bool]) -> list[Any]:
    """Return a copy of *pages* without some records. Later ones move up, so that the last pages have fewer."""
    changed = copy.deepcopy(list(pages))
    for place in places:
        found = [items for page in changed if isinstance(items := value_at_path(page, place), list)]
        kept = iter([item for items in found for item in items if is_kept(item)])
        for items in found:
            items[:] = [item for _, item in zip(list(items), kept, strict=False)]
    return changed
