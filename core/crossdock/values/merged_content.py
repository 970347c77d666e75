"""Merging of several YAML files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from crossdock.values.yaml_reader import Content, Place

V = TypeVar("V")


def merged(content: Content, later: Content) -> Content:
    """Merge *later* into *content*: sections are merged, everything else is replaced, lists as a whole.

    The origin of a section that both have is that in *content*.
    """
    data, replaced = dict(content.data), set(_replaced(content.data, later.data, ()))
    _merge(data, later.data)
    places = _kept(content.places, replaced)
    return Content(data, later.places | places, _kept(content.plain, replaced) | later.plain)


def _merge(data: dict[str, Any], later: Mapping[str, Any]) -> None:
    for key, value in later.items():
        if isinstance(value, dict) and isinstance(data.get(key), dict):
            data[key] = dict(data[key])
            _merge(data[key], value)
        else:
            data[key] = value


def _replaced(data: Mapping[str, Any], later: Mapping[str, Any], place: Place) -> Iterator[Place]:
    for key in data.keys() & later.keys():
        if isinstance(data[key], dict) and isinstance(later[key], dict):
            yield from _replaced(data[key], later[key], (*place, key))
        else:
            yield (*place, key)


def _kept(values: Mapping[Place, V], replaced: set[Place]) -> dict[Place, V]:
    return {
        place: value
        for place, value in values.items()
        if not any(place[:size] in replaced for size in range(1, len(place) + 1))
    }
