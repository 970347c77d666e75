"""Signs in the answers of a list that records were not read: a number, a next page, or an error.

Many APIs give such signs, even undeclared ones. A wrong pagination ends a list after its first page.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from crossdock.reading.sources.api_request import ApiAnswer
from crossdock.reading.sources.link_header import link_target
from crossdock.reading.sources.pagination import Paginator, SizedPages
from crossdock.values import exact_json, list_members
from crossdock.values.list_members import Kind

_ERROR = re.compile("errors?")
_SUCCESS = re.compile("success|succeeded|ok")
_PARTIAL = re.compile("(is)?partial|timedout|incompleteresults?|isincomplete|terminatedearly")
_SIZE = re.compile(
    "(page|max|items|results|records|batch)?(limit|size|length|count|first|top|max|rows|take|results|items|records)"
    "|pagelen|(items|results|records|rows)?perpage"
)
_FAILED = frozenset({"error", "fail", "failed", "failure", "partial"})
_HEADERS: Mapping[str, Kind] = {
    "total": "total",
    "total-count": "total",
    "x-total": "total",
    "x-total-count": "total",
    "x-total-results": "total",
    "x-wp-total": "total",
    "x-pagination-total-count": "total",
    "pagination-count": "total",
    "pagination-total": "total",
    "x-pages": "pages",
    "x-total-pages": "pages",
    "x-wp-totalpages": "pages",
    "x-pagination-page-count": "pages",
    "x-next": "next",
    "x-next-page": "next",
    "x-next-cursor": "next",
    "x-ms-continuationtoken": "next",
    "x-has-more": "more",
}
_JSON_HEADER = "x-pagination"
_FIRST = frozenset({"first", "isfirst", "firstpage", "isfirstpage"})
_DEEPEST, _MEMBERS = 4, 500  # depth of nested objects, members that are examined


class SignsOfMore:
    """Collects the signs in the answers of one list, page by page.

    Args:
        paginator: How the list is split into pages.
        records: A JSON pointer to the list of records, whose members are not examined; None if it is not known.
        ignored: JSON pointers and names of headers that have another meaning.
        params: The author's parameters of the first request, one of which may be the size of a page.

    Attributes:
        size: The parameter that asks for a number of records in a page, and that number; None if none is known.
    """

    def __init__(
        self,
        paginator: Paginator,
        records: str | None,
        ignored: Collection[str] = (),
        params: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._records, self._ignored = records, {*ignored, *(name.lower() for name in ignored)}
        self._ends_empty, self._counts = paginator.ends_empty, paginator.counted
        self._compares_total = paginator.total is not None
        self._header = paginator.next_header
        declared = {paginator.size_param: paginator.size} if isinstance(paginator, SizedPages) else {}
        self.size = _page_size([*declared.items(), *params])
        self._is_cut = False  # the only page so far is full, and has no such header
        self._numbers: dict[str, tuple[str, int]] | None = None  # name, lowest and highest number, if each page has it
        self._read: int | None = 0
        self._pages = 0
        self._is_empty = False  # the latest page
        self._next: str | None = None
        self._previous: str | None = None  # of the first page
        self._error: str | None = None  # of any page

    def take(self, answer: ApiAnswer, records: int | None) -> None:
        """Add a page with this number of *records*; None if that is not known."""
        self._read = None if records is None or self._read is None else self._read + records
        self._pages, self._is_empty = self._pages + 1, records == 0
        numbers, self._next = dict[str, tuple[str, int]](), None
        self._is_cut = self._may_be_cut(answer, records or 0)
        for place, kind, value in self._found(answer):
            if place in self._ignored:
                continue
            if kind == "error":
                self._error = self._error or place
            elif kind == "next":
                self._next = self._next or (place if value else None)
            elif kind == "previous":
                self._previous = self._previous or (place if value and self._pages == 1 else None)
            elif (number := list_members.whole(value)) is not None:
                numbers[place] = kind, number
        before = numbers if self._numbers is None else self._numbers
        self._numbers = {place: min(each, numbers[place]) for place, each in before.items() if place in numbers}

    def _may_be_cut(self, answer: ApiAnswer, records: int) -> bool:
        """Return whether a full first page lacks the header of a next one, which a proxy may have dropped.

        The last one of several pages is not a sign: some servers send no such header with it.
        """
        is_full = self._pages == 1 and self.size is not None and self.size[1] == records > 0
        return is_full and self._header not in {None, *answer.headers, *self._ignored}

    def text(self) -> str | None:
        """Return what shows after the last page that there are more records than were read, or None."""
        if self._error is not None:
            return f"{self._error} reports an error or a part of the list"
        if self._counts and self._previous is not None:
            return f"{self._previous} of the first page tells of a page before it"
        for place, (kind, number) in (self._numbers or {}).items():
            if kind == "total" and self._read is not None and not self._compares_total and number > self._read:
                return f"{place} is {number:,}, and {self._read:,} were read"
            if kind == "pages" and number > self._pages:
                return f"{place} is {number:,}"
        is_told = self._next is not None and (self._is_empty or not self._ends_empty)
        return f"{self._next} tells of a next page" if is_told else None

    @property
    def lacks_header(self) -> str | None:
        """The header whose absence is the only sign that a full page is the last one; None if there is another sign."""
        has_all = any(kind == "total" and number == self._read for kind, number in (self._numbers or {}).values())
        return self._header if self._is_cut and not has_all else None

    def _found(self, answer: ApiAnswer) -> Iterator[tuple[str, str, Any]]:
        for name, value in answer.headers.items():
            if name == _JSON_HEADER:
                yield from islice(self._members(_json(value), name, 1), _MEMBERS)
            elif kind := _HEADERS.get(name):
                yield name, *_meant(kind, value)
        _, of, total = answer.headers.get("content-range", "").partition("/")
        if of:
            yield "content-range", "total", total
        for relation in ("next", "prev"):
            if _has_link(answer.headers.get("link", ""), relation):
                yield "link", "next" if relation == "next" else "previous", True
        yield from islice(self._members(answer.body, "", 0), _MEMBERS)

    def _members(self, value: Any, place: str, depth: int) -> Iterator[tuple[str, str, Any]]:
        """Yield the members of the objects around the list, and of those beside it that describe it."""
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
    kind, plain = list_members.kind_of(name), list_members.plain(name)
    if kind == "next":
        return "next", list_members.tells_of_next(name, value)
    if kind is not None:
        return _meant(kind, value)
    if plain in _FIRST and value is False:
        return "previous", True
    if plain == "links" and isinstance(value, list):
        return "next", any(map(_is_next_link, value))
    return ("error", None) if _reports_error(plain, value) else None


def _meant(kind: Kind, value: Any) -> tuple[str, Any]:
    if kind == "pages" and isinstance(value, bool):
        return "next", not value  # it says whether this is the last page
    if kind in {"total", "pages"}:
        return kind, value
    return "previous" if kind == "previous" else "next", list_members.follows(kind, value)


def _page_size(params: Iterable[tuple[str, str | int | None]]) -> tuple[str, int] | None:
    for name, value in params:
        if _SIZE.fullmatch(list_members.plain(name)) and (number := list_members.whole(value)):
            return name, number
    return None


def _json(text: str) -> Any:
    try:
        return exact_json.loads(text)
    except ValueError:
        return None


def _reports_error(name: str, value: Any) -> bool:
    if _ERROR.fullmatch(name):
        return isinstance(value, str | list | dict) and bool(value)
    if _SUCCESS.fullmatch(name):
        return value is False
    if _PARTIAL.fullmatch(name):
        return value is True
    if name == "shards" and isinstance(value, Mapping):  # of Elasticsearch
        return bool(list_members.whole(value.get("failed")))
    return name == "status" and isinstance(value, str) and value.lower() in _FAILED


def _is_next_link(link: Any) -> bool:
    return isinstance(link, Mapping) and link.get("rel") == "next" and bool(link.get("href", True))


def _has_link(field: str, relation: str) -> bool:
    try:
        return link_target(field, relation) is not None
    except ValueError:  # the paginator that reads it reports the error
        return False
