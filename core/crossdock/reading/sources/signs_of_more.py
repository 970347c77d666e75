"""What answers say beside a list that shows records which were not read: a number, a next page, or an error.

APIs say so in many ways, also where nobody has declared it; a wrong pagination ends a list after its first page.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from crossdock.reading.sources.api_request import ApiAnswer
from crossdock.reading.sources.link_header import next_target
from crossdock.values import list_members

_ERROR = re.compile("errors?")
_SUCCESS = re.compile("success|succeeded|ok")
_FAILED = frozenset({"error", "fail", "failed", "failure"})
_HEADERS = {
    **dict.fromkeys(("x-total-count", "x-total", "x-wp-total", "x-pagination-total-count", "total-count"), "total"),
    **dict.fromkeys(("x-total-pages", "x-wp-totalpages", "x-pagination-page-count"), "pages"),
    "x-next-page": "next",
}
_DEEPEST, _MEMBERS = 4, 500  # objects inside of each other, members that are looked at


class SignsOfMore:
    """The answers of one list, page after page.

    Args:
        records: A JSON pointer to the list of records, whose members are none of these; None if it is not known.
        ignored: JSON pointers and names of headers of what says something else.
        ends_empty: Whether a page without records ends the list, so that it does not matter what else that page has.
        compares_total: Whether a declared total is compared, so that no other one counts.
    """

    def __init__(
        self, records: str | None, ignored: Collection[str] = (), *, ends_empty: bool, compares_total: bool
    ) -> None:
        self._records, self._ignored = records, {*ignored, *(name.lower() for name in ignored)}
        self._ends_empty, self._compares_total = ends_empty, compares_total
        self._numbers: dict[str, tuple[str, int]] | None = None  # of what, and the lowest, where each page has it
        self._read: int | None = 0
        self._pages = 0
        self._next: str | None = None
        self._error: str | None = None  # of any page

    def take(self, answer: ApiAnswer, records: int | None) -> None:
        """Add a page with so many *records*; None if that is not known."""
        self._read = None if records is None or self._read is None else self._read + records
        self._pages += 1
        numbers, self._next = dict[str, tuple[str, int]](), None
        for place, kind, value in self._found(answer):
            if place in self._ignored:
                continue
            if kind == "error":
                self._error = self._error or place
            elif kind == "next":
                self._next = self._next or (place if value else None)
            elif (number := list_members.whole(value)) is not None:
                numbers[place] = kind, number
        before = numbers if self._numbers is None else self._numbers
        self._numbers = {place: min(each, numbers[place]) for place, each in before.items() if place in numbers}

    def text(self) -> str | None:
        """What shows that there are more records than were read, after the last page; None if nothing does."""
        if self._error is not None:
            return f"{self._error} reports an error"
        for place, (kind, number) in (self._numbers or {}).items():
            if kind == "total" and self._read is not None and not self._compares_total and number > self._read:
                return f"{place} is {number:,}, and {self._read:,} were read"
            if kind == "pages" and not self._ends_empty and number > self._pages:
                return f"{place} is {number:,}"
        return None if self._ends_empty or self._next is None else f"{self._next} tells of a next page"

    def _found(self, answer: ApiAnswer) -> Iterator[tuple[str, str, Any]]:
        for name, value in answer.headers.items():
            if kind := _HEADERS.get(name):
                yield name, kind, value
        _, of, total = answer.headers.get("content-range", "").partition("/")
        if of:
            yield "content-range", "total", total
        if _has_link(answer.headers.get("link", "")):
            yield "link", "next", True
        yield from islice(self._members(answer.body, "", 0), _MEMBERS)

    def _members(self, value: Any, place: str, depth: int) -> Iterator[tuple[str, str, Any]]:
        """The members of the objects around the list, and of those beside it that describe it."""
        if not isinstance(value, dict) or depth >= _DEEPEST:
            return
        for name, member in value.items():
            path = f"{place}/{name.replace('~', '~0').replace('/', '~1')}"
            if path == self._records:
                continue
            if (found := _said(name, member)) is not None:
                yield path, *found
            if list_members.is_envelope(name) or (self._records or "").startswith(f"{path}/"):
                yield from self._members(member, path, depth + 1)


def _said(name: str, value: Any) -> tuple[str, Any] | None:
    """What a member with this *name* is about, and what it says of that."""
    kind = list_members.kind_of(name)
    if kind in {"total", "pages"}:
        return kind, value
    if kind is not None:
        return "next", list_members.follows(kind, value)
    if list_members.plain(name) == "links" and isinstance(value, list):
        return "next", any(map(_is_next_link, value))
    return ("error", None) if _reports_error(list_members.plain(name), value) else None


def _reports_error(name: str, value: Any) -> bool:
    if _ERROR.fullmatch(name):
        return isinstance(value, str | list | dict) and bool(value)
    if _SUCCESS.fullmatch(name):
        return value is False
    return name == "status" and isinstance(value, str) and value.lower() in _FAILED


def _is_next_link(link: Any) -> bool:
    return isinstance(link, Mapping) and link.get("rel") == "next" and bool(link.get("href", True))


def _has_link(field: str) -> bool:
    try:
        return next_target(field) is not None
    except ValueError:  # the paginator that reads it says so
        return False
