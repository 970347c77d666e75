"""Checks of column names, from a header or declared."""

from __future__ import annotations

from collections.abc import Sequence

from crossdock.reading.formats.strict_parser import MAX_COLUMNS
from crossdock.values.raw_rows_and_records import RESERVED, is_reserved_column, letters_of_column_name

HEADER_HINT = "If files have a header now, declare header: true, and names as the header has them, or none."
_TELLING = 2  # this many matching names show a header; with more names, the last one may differ


def names_that_identify_header(names: Sequence[str]) -> Sequence[str]:
    return names[:-1] if len(names) > _TELLING else names


def is_header_again(cells: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a row is the header, or has all its names in another order, as that of a file that was joined."""
    begin = names_that_identify_header(names)
    return list(cells[: len(begin)]) == list(begin) or sorted(cells) == sorted(names)


def is_header_in_other_notation(cells: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether the first row of a file without a header is one: the names but for case, blanks and marks."""
    letters = [*map(letters_of_column_name, names)]
    return all(letters) and [*map(letters_of_column_name, cells)] == letters


def check_column_names(names: Sequence[str]) -> Sequence[str]:
    """Raise ValueError if names of a header are empty, repeated or reserved. It quotes no name, which may be data."""
    if len(names) > MAX_COLUMNS:
        raise ValueError(f"{len(names)} columns, more than the limit of {MAX_COLUMNS}")
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if not name.strip():
            raise ValueError(f"column {number} has no name")
        if is_reserved_column(name):
            raise ValueError(f"the name of column {number} is reserved, as {', '.join(RESERVED)} are")
        if name in seen:
            raise ValueError(f"columns {seen[name]} and {number} have the same name")
        seen[name] = number
    return names
