"""Comparison of what a connector makes with what its author states in ``expects``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any


def first_mismatch(wanted: Any, found: Any, place: str = "") -> str:
    """Return the first difference of *found* from what is stated of it, with its place; empty if there is none.

    Members that are not stated may have any value. None states that a member is missing or null. Lists have as many
    elements as stated. A time may be stated as text.
    """
    where = place or "it"
    if isinstance(wanted, float):
        return f"{where} is stated as a float; write Decimal({str(wanted)!r})"
    if isinstance(wanted, Mapping):
        if not isinstance(found, Mapping):
            return f"{where} is {found!r}, and expects states members of it"
        return _first_nonempty_text(_member_mismatch(name, value, found, place) for name, value in wanted.items())
    if isinstance(wanted, Sequence) and not isinstance(wanted, str | bytes):
        count = len(found) if isinstance(found, list | tuple) else None
        if count != len(wanted):
            what = repr(found) if count is None else f"a list of {count}"
            return f"{where} is {what}, and expects states {len(wanted)} elements"
        pairs = enumerate(zip(wanted, found, strict=True))
        return _first_nonempty_text(first_mismatch(one, other, f"{place}/{number}") for number, (one, other) in pairs)
    is_same = _time_as_instant(wanted) == _time_as_instant(found) and isinstance(wanted, bool) == isinstance(
        found, bool
    )
    return "" if is_same else f"{where} is {found!r}, and expects states {wanted!r}"


def _member_mismatch(name: str, wanted: Any, found: Mapping[str, Any], place: str) -> str:
    if found.get(name) is None and wanted is not None:
        there = ", ".join(sorted(each for each, value in found.items() if value is not None))
        return f"{place}/{name} is missing, and expects states {wanted!r}; there are: {there}"
    return first_mismatch(wanted, found.get(name), f"{place}/{name}")


def _first_nonempty_text(texts: Iterable[str]) -> str:
    return next(filter(None, texts), "")


def _time_as_instant(value: Any) -> Any:
    """Return a time with an offset as an instant, also that of a text."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return value
        return moment if moment.tzinfo else value
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    return value


def stated_member_names(statements: Iterable[Any]) -> set[str]:
    """Return the names of all members that *statements* have, at any depth."""
    names = set[str]()
    for value in statements:
        if isinstance(value, Mapping):
            names |= {*map(str, value)} | stated_member_names(value.values())
        elif isinstance(value, list | tuple):
            names |= stated_member_names(value)
    return names
