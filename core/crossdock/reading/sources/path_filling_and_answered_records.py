"""Requests for one record: their path with members of the record, and the record or the list in their answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from crossdock.errors import RefusedError
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer
from crossdock.reading.sources.signs_of_unread_records import sign_of_incomplete_record
from crossdock.values.json_paths import json_value_as_column_text, value_at_path_or_missing

IN_BRACES = re.compile(r"\{([^{}]+)\}")
_NO_SEGMENTS = frozenset({"", ".", ".."})  # RFC 3986, 5.2.4
_READINGS = 3
_IGNORE_HINT = "if this is not an error, list the member under ignore in the pagination"


def columns_in_braces(text: str) -> list[str]:
    return IN_BRACES.findall(text)


def fill_path(path: str, values: Mapping[str, str]) -> str | None:
    """Replace the columns in *path*, percent-encoded; None if one is empty or a dot segment."""
    if any(values[column] in _NO_SEGMENTS for column in columns_in_braces(path)):
        return None
    return IN_BRACES.sub(lambda place: quote(values[place[1]], safe=""), path)


def fill_path_from_item(path: str, item: Any) -> str | None:
    """Fill *path* with members of *item*; None also if one of them is neither a text nor a number."""
    return fill_path(path, {name: _member_text(item, name) for name in columns_in_braces(path)})


def _member_text(item: Any, name: str) -> str:
    value = value_at_path_or_missing(item, name)
    return json_value_as_column_text(value) or "" if type(value) in {str, int, Decimal} else ""


def record_at_pointer_or_raise(
    answer: ApiAnswer, place: str, ignored: Collection[str] = (), other: ApiAnswer | None = None
) -> dict[str, Any]:
    """Return the record at *place*. Arguments are as those of `sign_of_incomplete_record`.

    Raises RefusedError if there is no object, or an error or a part of the record.
    """
    shown = place or "the top"
    if sign := sign_of_incomplete_record(answer, place, ignored, other):
        message = f"has no complete record at {shown}: {sign}"
        raise RefusedError(message, where=answer.address, hint=_IGNORE_HINT, code="answer_misplaced")
    found = answer.at(place)
    if not isinstance(found, dict):
        raise RefusedError(f"has no record at {shown}", where=answer.address, code="answer_misplaced")
    return found


def read_whole_list(read: Callable[[], Iterable[ApiAnswer]], place: str, where: str, *, by_record: bool) -> list[Any]:
    """Return the elements of a list of which *read* reads all pages.

    One of several pages is read until two readings agree, since an element that changes meanwhile may be on two pages
    or on none. With *by_record* (see `Paginator`), that cannot be.

    Raises RefusedError if a page has no list at *place*, or the list is another one each time.
    """
    pages = _elements_of_nonempty_pages(read, place)
    if len(pages) > 1 and not by_record:
        pages = _read_list_until_readings_agree(read, place, where, pages)
    return [element for page in pages for element in page]


def _read_list_until_readings_agree(
    read: Callable[[], Iterable[ApiAnswer]], place: str, where: str, pages: list[list[Any]]
) -> list[list[Any]]:
    for _ in range(_READINGS):
        before, pages = pages, _elements_of_nonempty_pages(read, place)
        if pages == before:
            return pages
    raise RefusedError("has other elements each time that it is read", where=where, code="list_changed")


def _elements_of_nonempty_pages(read: Callable[[], Iterable[ApiAnswer]], place: str) -> list[list[Any]]:
    pages = (page.items(place) for page in read())
    return [elements for elements in pages if elements]
