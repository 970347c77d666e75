"""Comparison of what a connector makes with what its author states in ``expects``, and what an example cannot show.

What it cannot show are bugs that no test finds, because no record of the example would reveal them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import combinations
from typing import Any

from crossdock.values import exact_json
from crossdock.values.raw_rows_and_records import JSON, Record

_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")


def gaps_of_drafts(drafts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what *drafts*, or payloads, of an example cannot show."""
    values = [*leaf_values_with_member_names(drafts)]
    numbers = [value for _, value in values if isinstance(value, int | Decimal) and not isinstance(value, bool)]
    if numbers and not any(_decimal_place_count(number) >= 2 for number in numbers):
        yield "no number has two decimals, such as 24.95: rounding would not be seen"
    times = [value for _, value in values if isinstance(value, datetime)]
    if times and all(moment.astimezone(UTC).time() == time() for moment in times):
        yield "all times are midnight in UTC: a lost time zone would not be seen"
    lengths = [*_lengths_of_object_lists(drafts)]
    if lengths and max(lengths) < 2:
        yield "no list in a draft has two elements: a list that is cut would not be seen"


def gaps_of_records(records: Sequence[Record]) -> Iterator[str]:
    """Yield what *records* of an example cannot show."""
    if len({record.key for record in records}) < 2:
        yield "there is one record: keys that are all equal, or a lost record, would not be seen"
    rows = [
        exact_json.loads(record.row[JSON] or "null") if JSON in record.row else [*record.rows] for record in records
    ]
    forms = {frozenset(name for name, _ in leaf_values_with_member_names([row])) for row in rows}
    if len(forms) < 2 and not any(value in (None, "", {}) for _, value in leaf_values_with_member_names(rows)):
        yield "no record lacks a member, or has one that is null or empty: what becomes of it would not be seen"
    yield from _gaps_because_times_are_equal(rows)


def _gaps_because_times_are_equal(rows: Sequence[Any]) -> Iterator[str]:
    """Yield the members with times that do not differ from record to record, or from another one."""
    times: dict[str, list[str | None]] = {}
    for number, row in enumerate(rows):
        for path, value in leaf_values_with_member_names(row) if isinstance(row, Mapping) else ():
            if isinstance(value, str) and _TIME.match(value):
                times.setdefault("/" + "/".join(path), [None] * len(rows))[number] = value
    known = {place: values for place, values in times.items() if len(values) - values.count(None) > 1}
    same = [place for place, values in known.items() if len({*values} - {None}) == 1]
    if same:
        yield f"all records have the same {', '.join(same)}: another time in its place, as a cursor, would not be seen"
    for one, other in combinations([place for place in known if place not in same], 2):
        if known[one] == known[other]:
            yield f"{one} and {other} are equal in all records: one in place of the other would not be seen"


def leaf_values_with_member_names(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each value that is neither an object nor a list, with the names of the members on the way to it."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaf_values_with_member_names(inner, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaf_values_with_member_names(inner, path)
    else:
        yield path, value


def unstated_number_and_time_members(drafts: Iterable[Mapping[str, Any]], names: set[str]) -> list[str]:
    """Return the members with numbers or times in *drafts* that are not among the stated *names*."""
    kinds = int, Decimal, datetime
    known = [
        (path, value)
        for path, value in leaf_values_with_member_names([*drafts])
        if path and not isinstance(value, bool)
    ]
    found = {path[-1] for path, value in known if isinstance(value, kinds)}
    return sorted(found - names)


def _lengths_of_object_lists(value: Any) -> Iterator[int]:
    """Yield the lengths of the lists of objects in *value*, apart from *value* itself."""
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ():
        if isinstance(inner, list | tuple) and any(isinstance(each, Mapping) for each in inner):
            yield len(inner)
        yield from _lengths_of_object_lists(inner)


def _decimal_place_count(number: int | Decimal) -> int:
    return -int(Decimal(number).normalize().as_tuple().exponent)


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
