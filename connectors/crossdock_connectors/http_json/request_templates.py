"""Parts of a request with ``{since}``, ``{start}`` and ``{end}`` in their texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from crossdock.json_values import MISSING

NAMES = frozenset({"since", "start", "end"})
_PLACE = re.compile(r"\{(since|start|end)\}")


def names_in(value: Any) -> Iterator[str]:
    """What the texts inside of *value* name."""
    match value:
        case str():
            yield from _PLACE.findall(value)
        case Mapping():
            for inner in value.values():
                yield from names_in(inner)
        case list() | tuple():
            for inner in value:
                yield from names_in(inner)


def filled(value: Any, values: Mapping[str, str | None]) -> Any:
    """*value* with *values* in its texts; members and elements that need a missing one are left out."""
    found = _filled(value, values)
    return None if found is MISSING else found


def _filled(value: Any, values: Mapping[str, str | None]) -> Any:
    match value:
        case str():
            if any(values.get(name) is None for name in names_in(value)):
                return MISSING
            return _PLACE.sub(lambda place: values[place[1]] or "", value)
        case Mapping():
            members = {name: _filled(inner, values) for name, inner in value.items()}
            return {name: inner for name, inner in members.items() if inner is not MISSING}
        case list() | tuple():
            return [inner for inner in (_filled(each, values) for each in value) if inner is not MISSING]
        case _:
            return value
