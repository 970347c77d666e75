"""Variants of a record as a system changes: members that are unknown, missing, null, of another type or very long."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

from crossdock.records import JSON, Record
from crossdock.values import exact_json

_Path = tuple[str | int, ...]
_ODD: tuple[tuple[str, Any], ...] = (
    ("null", None),
    ("an empty text", ""),
    ("a text", "\N{SNOWMAN}"),
    ("a number", 7),
    ("an object", {}),
    ("a list", []),
    ("true", True),
)


def drifted(record: Record) -> Iterator[tuple[str, Record]]:
    """Each variant of *record*, with what is changed."""
    if JSON in record.row:
        for change, item in drifted_objects(exact_json.loads(record.row[JSON] or "null")):
            yield change, with_object(record, item)
        return
    for number, row in enumerate(record.rows):
        for name in row:
            for what, cell in (("null", None), ("an empty cell", ""), ("another text", "\N{SNOWMAN}")):
                yield f"{what} in column {name!r}", _with_cell(record, number, name, cell)


def drifted_objects(item: Any) -> Iterator[tuple[str, Any]]:
    """As `drifted`, for the object of a JSON record."""
    if not isinstance(item, dict):
        return
    yield "an unknown member", {**item, "crossdock_unknown_member": {"a": [None]}}
    for path in _paths(item):
        place = "/" + "/".join(map(str, path))
        if isinstance(path[-1], str):
            yield f"{place} missing", _changed(item, path, remove=True)
        for what, value in _ODD:
            yield f"{what} as {place}", _changed(item, path, value)


def with_object(record: Record, item: Any) -> Record:
    """*record* with another JSON object."""
    return replace(record, rows=({**record.row, JSON: exact_json.dumps(item).decode()},))


def with_numbers(record: Record) -> Iterator[tuple[str, Callable[[Decimal], Record]]]:
    """The place of each number of *record*, and of each text that is one; with a function that puts another there."""
    if JSON in record.row:
        item = exact_json.loads(record.row[JSON] or "null")
        for path in _paths(item) if isinstance(item, dict) else ():
            if _is_number(_at(item, path)):
                yield "/" + "/".join(map(str, path)), partial(_with_number, record, item, path)
        return
    for index, row in enumerate(record.rows):
        for name, cell in row.items():
            if _is_number(cell):
                yield name, partial(_with_cell, record, index, name)


def _with_number(record: Record, item: Any, path: _Path, number: Decimal) -> Record:
    return with_object(record, _changed(item, path, str(number) if isinstance(_at(item, path), str) else number))


def numbers_in(value: Any) -> set[Decimal]:
    """The numbers in the members of a draft."""
    if isinstance(value, dict | list):
        return set().union(*map(numbers_in, value.values() if isinstance(value, dict) else value))
    return {Decimal(value)} if isinstance(value, int | Decimal) and not isinstance(value, bool) else set()


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        return False
    try:
        return Decimal(value).is_finite()
    except InvalidOperation:
        return False


def _paths(value: Any, path: _Path = ()) -> Iterator[_Path]:
    """The path of each member and item inside of *value*."""
    if path:
        yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in members:
        yield from _paths(inner, (*path, name))


def _at(value: Any, path: _Path) -> Any:
    for name in path:
        value = value[name]
    return value


def _changed(item: Any, path: _Path, value: Any = None, *, remove: bool = False) -> Any:
    """A copy of *item* with another value at *path*, or without it."""
    changed = copy.deepcopy(item)
    parent = _at(changed, path[:-1])
    if remove:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return changed


def _with_cell(record: Record, number: int, name: str, cell: str | Decimal | None) -> Record:
    rows = record.copy().rows
    rows[number][name] = None if cell is None else str(cell)
    return replace(record, rows=rows)
