"""The differences between two payloads of one record, by member and line item."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

PERSONAL = "(personal)"


class MemberDifference(NamedTuple):
    pointer: str
    before: Any
    after: Any


def member_differences(
    before: dict[str, Any], after: dict[str, Any], personal: Collection[str] = ()
) -> list[MemberDifference]:
    """Return the differences in the order of *before*. Values of *personal* members are replaced by `PERSONAL`."""
    return [
        MemberDifference(each.pointer, *map(_masked, each[1:])) if each.pointer.split("/")[1] in personal else each
        for each in _differences("", before, after)
    ]


def _masked(value: Any) -> str | None:
    return None if value is None else PERSONAL


def _differences(pointer: str, before: Any, after: Any) -> Iterator[MemberDifference]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            yield from _differences(f"{pointer}/{name}", before.get(name), after.get(name))
    elif isinstance(before, list) and isinstance(after, list):
        for number in range(max(len(before), len(after))):
            pair = (each[number] if number < len(each) else None for each in (before, after))
            yield from _differences(f"{pointer}/{number}", *pair)
    else:
        yield MemberDifference(pointer, before, after)
