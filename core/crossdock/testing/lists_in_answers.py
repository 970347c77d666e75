"""Lists in answers of a JSON API: where pages have records, and lists that are made to go on.

Lists in answers to requests of their own, such as the lines of one order, may have only the first elements.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import httpx
from msgspec import Struct

from crossdock.reading.sources.paginated_api_client import ApiClient
from crossdock.testing.httpx_test_transports import RequestRecorder
from crossdock.values import exact_json, json_paths
from crossdock.values.json_paths import copy_with_value_at_path

ListPath = tuple[str | int, ...]
"""The path of a list in the body of a page."""


def outermost_lists(value: Any, path: ListPath = ()) -> Iterator[tuple[ListPath, list[Any]]]:
    """Yield each list in *value* that no other list contains, with its path."""
    if isinstance(value, list):
        yield path, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from outermost_lists(inner, (*path, name))


def value_at_path(value: Any, path: ListPath) -> Any:
    """Return the value at *path*; None if a member of it is missing."""
    for name in path:
        if isinstance(value, list) and isinstance(name, int):
            value = value[name]
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


class RecordList(Struct, frozen=True):
    """Where a page lists records.

    Attributes:
        path: The path of the list.
        inner: The path of the record in each element, such as ``node`` in the edges of a GraphQL connection.
    """

    path: ListPath
    inner: ListPath = ()

    def elements(self, page: Any) -> list[Any]:
        """Return the list itself; an empty one if *page* has none."""
        found = value_at_path(page, self.path)
        return found if isinstance(found, list) else []

    def record_in_element(self, element: Any) -> Any:
        return value_at_path(element, self.inner)

    def records(self, page: Any) -> list[Any]:
        return [self.record_in_element(each) for each in self.elements(page)]

    def element_with_replaced_record(self, element: Any, record: Any) -> Any:
        """Return *element* with another record."""
        return (
            copy_with_value_at_path(element, "".join(f"/{name}" for name in self.inner), record)
            if self.inner
            else record
        )


def possible_record_lists(page: Any) -> Iterator[RecordList]:
    """Yield each list of *page*, and again for each member in which all of its elements may have the record."""
    for path, items in outermost_lists(page):
        yield RecordList(path)
        if items and all(isinstance(each, dict) for each in items):
            names = dict.fromkeys(name for each in items for name, inner in each.items() if isinstance(inner, dict))
            yield from (RecordList(path, (name,)) for name in names if "/" not in name and "~" not in name)


def pages_with_reversed_lists(pages: Sequence[Any], places: Iterable[RecordList]) -> list[Any]:
    """Return a copy of *pages* whose lists at *places* are reversed."""
    changed = copy.deepcopy(list(pages))
    for place in places:
        for page in changed:
            place.elements(page).reverse()
    return changed


def pages_without_some_records(
    pages: Sequence[Any], places: Iterable[RecordList], is_kept: Callable[[Any], bool]
) -> list[Any]:
    """Return a copy of *pages* without some records. Later ones move up, so that the last pages have fewer."""
    changed = copy.deepcopy(list(pages))
    for place in places:
        found = [place.elements(page) for page in changed]
        kept = iter([item for items in found for item in items if is_kept(place.record_in_element(item))])
        for items in found:
            items[:] = [item for _, item in zip(list(items), kept, strict=False)]
    return changed


_FULL = 250  # elements of a page, if the request does not say how many
_MOST_FULL = 1_000
_SIZE = re.compile(r"(per_?page|page_?size|limit|size|count|first|top|take|max_?results)", re.IGNORECASE)
_BY_IDS = re.compile(r"(id|key|sku|number|code)s", re.IGNORECASE)
_BESIDE = frozenset(
    {"code", "error", "errors", "message", "object", "ok", "status", "success", "type", "url", "version"}
)
_DEEPEST = 3
_NUMBERED = re.compile(r"[^/]*\d[^/]*")


def path_of_only_object_list(body: Any, depth: int = _DEEPEST) -> ListPath | None:
    """Return the path of the only list of objects in a body that describes nothing but this list.

    A record that has lists, such as an order with its lines, describes more.
    """
    if isinstance(body, list):
        return () if body and all(isinstance(each, dict) for each in body) else None
    if not isinstance(body, dict) or not depth:
        return None
    found = [
        (name, path) for name, inner in body.items() if (path := path_of_only_object_list(inner, depth - 1)) is not None
    ]
    if len(found) != 1:
        return None
    (name, path), others = found[0], {other for other in body if other != found[0][0]}
    return (name, *path) if all(_may_stand_beside_list(other, body[other]) for other in others) else None


def _may_stand_beside_list(name: str, value: Any) -> bool:
    plain = json_paths.member_name_without_separators(name)
    is_number = _SIZE.fullmatch(plain) is not None or plain in {"page", "offset", "start"}
    is_known = json_paths.pagination_member_kind(name) is not None or json_paths.is_envelope_name(name)
    return is_known or is_number or plain in _BESIDE or value in (None, [], {})


class UnpagedLists:
    """The paths whose one answer is a list that was not read by `ApiClient.pages`.

    Args:
        recorded: The requests of a run, with their answers.
        paged: The paths that were read by `ApiClient.pages`.
        records: What the stream lists. Answers that have one of it are pages of the stream.
        whole: Patterns of paths whose answers are never split.
    """

    def __init__(
        self, recorded: RequestRecorder, paged: Collection[str], records: Sequence[Any], whole: Collection[str]
    ) -> None:
        self._recorded, self._paged, self._records, self._whole = recorded, paged, records, whole

    def __iter__(self) -> Iterator[tuple[str, ListPath]]:
        """Yield one path of each form, and where its answer has the list."""
        paths = [urlsplit(url).path for _, url, _ in self._recorded.requests]
        forms = set[str]()
        for path, (_, url, _), answer in zip(paths, self._recorded.requests, self._recorded.answers, strict=True):
            form, place = _NUMBERED.sub("*", path), path_of_only_object_list(_json_or_none(answer))
            if place is None or form in forms or paths.count(path) > 1 or self._is_paged_or_known_complete(path, url):
                continue
            if any(item in self._records for item in value_at_path(_json_or_none(answer), place)):
                continue
            forms.add(form)
            yield path, place

    def _is_paged_or_known_complete(self, path: str, url: str) -> bool:
        is_paged = any(path.endswith(each) for each in self._paged)
        is_by_ids = any(_BY_IDS.search(name) for name in httpx.URL(url).params)
        return is_paged or is_by_ids or any(fnmatchcase(path, pattern) for pattern in self._whole)


@contextmanager
def collect_paths_read_in_pages() -> Iterator[set[str]]:
    """Yield the paths that are read by `ApiClient.pages` within the block."""
    noted, pages = set[str](), ApiClient.pages

    def noting(self: ApiClient, path: str, *arguments: Any, **named: Any) -> Any:
        noted.add("/" + urlsplit(path).path.lstrip("/"))
        return pages(self, path, *arguments, **named)

    with mock.patch.object(ApiClient, "pages", noting):
        yield noted


class TransportWithContinuedList(httpx.BaseTransport):
    """Passes requests on, and says in the first answer to *path* in all customary ways that its list goes on.

    Attributes:
        is_continued: Whether more was asked for.
    """

    def __init__(self, network: httpx.BaseTransport, path: str, place: ListPath) -> None:
        self._network, self._path, self._place = network, path, place
        self._number, self.is_continued = 0, False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._network.handle_request(request)
        if request.url.path != self._path:
            return response
        self._number += 1
        self.is_continued = self._number > 1
        if self.is_continued:
            return response
        following = str(request.url.copy_set_param("page", "2"))
        body = exact_json.loads(response.read())
        items = value_at_path(body, self._place)
        items += [copy.deepcopy(items[-1]) for _ in range(_full_page_size(request.url) - len(items))]
        told = _with_continuation_signs(body, following, self._place)
        headers = {"link": f'<{following}>; rel="next"', "content-type": "application/json"}
        return httpx.Response(response.status_code, headers=headers, content=exact_json.dumps(told))


def _full_page_size(url: httpx.URL) -> int:
    sizes = [int(value) for name, value in url.params.items() if _SIZE.fullmatch(name) and value.isdigit()]
    return min(max(sizes, default=_FULL), _MOST_FULL)


def _with_continuation_signs(value: Any, following: str, place: ListPath) -> Any:
    """Return a body whose members around the list say that it goes on."""
    if not isinstance(value, Mapping) or not place:
        return value
    return {name: _member_with_continuation_sign(name, inner, following, place) for name, inner in value.items()}


def _member_with_continuation_sign(name: str, value: Any, following: str, place: ListPath) -> Any:
    if name == place[0]:
        return _with_continuation_signs(value, following, place[1:])
    match json_paths.pagination_member_kind(name):
        case "more":
            return True
        case "last":
            return False
        case "next":
            return value + 1 if isinstance(value, int) and not isinstance(value, bool) else following
        case "total" | "pages" if isinstance(value, int):
            return value + _MOST_FULL
    return _with_continuation_signs(value, following, (*place, "")) if json_paths.is_envelope_name(name) else value


def _json_or_none(body: bytes) -> Any:
    try:
        return exact_json.loads(body)
    except ValueError:
        return None
