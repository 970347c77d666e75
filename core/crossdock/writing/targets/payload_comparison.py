"""Comparison of two payloads: JSON merge patches (RFC 7396), and the differences by member."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any, NamedTuple

PERSONAL = "(personal)"
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)")
_ABSENT = object()


def merge_patch_between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name, _ABSENT)
        if old == value:
            continue
        both = isinstance(value, dict) and isinstance(old, dict)
        changes[name] = merge_patch_between(old, value) if both else value
    return changes


def without_unwanted_members(held: Any, wanted: Any) -> Any:
    """Return *held* without the members that *wanted* lacks, also in lists of the same length."""
    if isinstance(held, dict) and isinstance(wanted, dict):
        return {name: without_unwanted_members(value, wanted[name]) for name, value in held.items() if name in wanted}
    if isinstance(held, list) and isinstance(wanted, list) and len(held) == len(wanted):
        return [without_unwanted_members(*pair) for pair in zip(held, wanted, strict=True)]
    return held


def with_patch_applied(before: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    after = {name: value for name, value in before.items() if changes.get(name, value) is not None}
    for name, value in changes.items():
        if isinstance(value, dict):
            old = before.get(name)
            after[name] = with_patch_applied(old if isinstance(old, dict) else {}, value)
        elif value is not None:
            after[name] = value
    return after


def has_wanted_members(held: Any, wanted: Any) -> bool:
    """Return whether *held* has every member of *wanted* with its value. A target may add members, and write the same
    instant in another form.
    """
    if isinstance(wanted, dict):
        return isinstance(held, dict) and all(
            name in held and has_wanted_members(held[name], wanted[name]) for name in wanted
        )
    if isinstance(wanted, list):
        same_length = isinstance(held, list) and len(held) == len(wanted)
        return same_length and all(has_wanted_members(*pair) for pair in zip(held, wanted, strict=True))
    return bool(held == wanted) or (isinstance(held, str) and _are_same_instant(held, wanted))


def _are_same_instant(one: str, other: Any) -> bool:
    """Return whether two texts are the same instant, such as 09:00:00Z, 09:00:00.000Z and 10:00:00+01:00 of a day."""
    if not (isinstance(other, str) and _INSTANT.fullmatch(one) and _INSTANT.fullmatch(other)):
        return False
    try:
        return datetime.fromisoformat(one) == datetime.fromisoformat(other)
    except ValueError:
        return False


class MemberDifference(NamedTuple):
    pointer: str
    before: Any
    after: Any


def member_differences(
    before: dict[str, Any], after: dict[str, Any], personal: Collection[str] = ()
) -> list[MemberDifference]:
    return [
        MemberDifference(each.pointer, *map(_mask_unless_none, each[1:]))
        if each.pointer.split("/")[1] in personal
        else each
        for each in _member_differences_below("", before, after)
    ]


def _mask_unless_none(value: Any) -> str | None:
    return None if value is None else PERSONAL


def _member_differences_below(pointer: str, before: Any, after: Any) -> Iterator[MemberDifference]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            yield from _member_differences_below(f"{pointer}/{name}", before.get(name), after.get(name))
    elif isinstance(before, list) and isinstance(after, list):
        for number in range(max(len(before), len(after))):
            pair = (each[number] if number < len(each) else None for each in (before, after))
            yield from _member_differences_below(f"{pointer}/{number}", *pair)
    else:
        yield MemberDifference(pointer, before, after)
