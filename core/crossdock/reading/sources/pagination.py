"""Paginators: objects that know the request for the next page of a list, also of one that changes while it is read by
position; and the ``Link`` header (RFC 8288, B.2).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

from crossdock.errors import RefusedError
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer, ApiRequest, PagePlace
from crossdock.reading.sources.compact_id_set import IdSet
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError, text_of_base64_cursor
from crossdock.values.json_paths import MISSING, value_at_path_or_missing, value_at_pointer_or_missing

_parts = re.compile(r"[\w-]+").findall
"""What a cursor may be composed of, such as the id in ``{"id": 17}``."""

AT_FIRST = frozenset({204, 304})
"""Statuses by which an API says that there is nothing at all."""
END_STATUSES = AT_FIRST | {400, 404, 410, 416, 422}


@dataclass(frozen=True, kw_only=True)
class Stop:
    """What ends a list besides what its paginator knows.

    Args:
        when: Returns whether a page says that it is the last one. No other is then requested; a list that ends without
            such a page is in doubt.
        statuses: Of `END_STATUSES`, with which the API answers after the last page; 204 and 304 also in place of the
            first one. A status of 400 or more may be an error or a limit: it proves nothing, whatever the length of the
            page before it, unless the API states a total, a number of pages, or that no page follows. With the ``cap``
            of a paginator it must come again, after the last page has come again.
        repeated: Whether the API gives the last page once more in place of one after it; this needs a total or a number
            of pages.
    """

    when: Callable[[ApiAnswer], bool] | None = None
    statuses: frozenset[int] = frozenset()
    repeated: bool = False


class Paginator:
    """Knows the requests of the pages of one list; without pages, as here, there is one.

    Attributes:
        place: Where a request has the parameters; None for the query of a GET. A POST needs it.
        counted: Whether the client cuts the pages off by a position that it counts itself.
        by_record: Whether each page begins after a record that the client names: no change then hides other records.
        repeats: Whether pages may be requested again; the paginator finds loops, and the end, itself.
        ends_empty: Whether the list ends with a page without records.
        size: The number of records in a full page; None if the client does not choose it.
        total: Where the API states the number of all records; None if that is not declared.
        stop: What else ends the list.
    """

    place: PagePlace | None = None
    size: int | None = None
    total: str | None = None
    stop: Stop = Stop()
    counted: ClassVar[bool] = False
    by_record: ClassVar[bool] = False
    repeats: ClassVar[bool] = False
    ends_empty: ClassVar[bool] = False

    @property
    def has_params(self) -> bool:
        return False

    @property
    def next_header(self) -> str | None:
        """The header of an answer, in lower case, that announces a next page; None if the body announces it."""
        return None

    def first(self, request: ApiRequest) -> ApiRequest:
        return request

    def following(self, request: ApiRequest, answer: ApiAnswer) -> ApiRequest | None:  # noqa: ARG002  for subclasses
        """Return the request for the page after *answer*, or None after the last page.

        Raises:
            RefusedError: If *answer* is not a page of the list, or the list is cut.
        """
        if type(self) is Paginator and _next_link_in_header(answer) is not None:
            raise RefusedError(
                "has a link to a next page",
                where=answer.address,
                hint="read it with link_header",
                code="list_incomplete",
            )
        return None

    def listed(self, answer: ApiAnswer) -> list[Any] | None:  # noqa: ARG002  for subclasses
        """Return the records of a page, or None if the paginator does not know their place."""
        return None

    def stated_total(self, answer: ApiAnswer) -> int | None:  # noqa: ARG002  for subclasses
        """Return the number of all records that *answer* states, or None."""
        return None

    def is_stated_last(self, request: ApiRequest, answer: ApiAnswer) -> bool:  # noqa: ARG002  for subclasses
        """Return whether *answer* states that it is the last of the counted pages."""
        return False

    def needs_record(self, record: Any, following: ApiRequest) -> bool:
        """Return whether the API may find the page after *record*, the last one of a page, only as long as it has it.

        So may one whose link or cursor, in the request *following* that page, has a member of this record, as it is or
        in Base64.
        """
        values = {value for _, value in parse_qsl(urlsplit(following.path).query)}
        values |= {str(value) for value in following.page_params.values()}
        named = {
            part for value in values for text in (value, text_of_base64_cursor(value)) for part in (text, *_parts(text))
        }
        return not self.counted and not named.isdisjoint(_texts_and_numbers_in(record))

    def smaller(self, request: ApiRequest, read: int | None) -> ApiRequest | None:  # noqa: ARG002  for subclasses
        """Return *request* with half the records after a time-out, or None. *read* counts records of earlier pages."""
        return None


class LinkHeader(Paginator):
    """The ``Link`` header with ``rel="next"`` (RFC 8288)."""

    @property
    def next_header(self) -> str:
        return "link"

    def following(self, request: ApiRequest, answer: ApiAnswer) -> ApiRequest | None:
        target = _next_link_in_header(answer)
        return None if target is None else request.following(target)


@dataclass(frozen=True)
class NextUrl(Paginator):
    """The address of the next page in the body, at a JSON pointer such as ``/links/next``; the last page has none.

    Args:
        rel: For a list of links at *path*, such as ``[{"rel": "next", "href": "/items?page=2"}]``: the relation of the
            one that is followed.
    """

    path: str
    rel: str | None = None

    def following(self, request: ApiRequest, answer: ApiAnswer) -> ApiRequest | None:
        _raise_unless_answer_is_object(answer)
        target = _text_or_number_at_pointer(
            answer, self.path if self.rel is None else f"{self.path}/{self._link_index(answer)}/href"
        )
        return request.following(target) if target else None

    def _link_index(self, answer: ApiAnswer) -> int:
        """Return the number of the link with *rel*, or of none."""
        links = answer.items(self.path)
        found = (number for number, link in enumerate(links) if isinstance(link, dict) and link.get("rel") == self.rel)
        return next(found, len(links))


@dataclass(frozen=True, kw_only=True)
class SizedPages(Paginator):
    """Pages of which the client may choose the size.

    Args:
        size: Records per page, halved after a time-out; None to leave it to the server.
        total: A JSON pointer to the number of all records, where the API states it: it is compared with the number of
            distinct records that were read.
        place: Where the parameters are: ``query``, ``body`` or ``variables`` of a GraphQL query. Outside of the query
            their names are dotted paths or JSON pointers, such as ``paging.limit``. None for the query of a GET.
        stop: What ends the list besides, such as ``Stop(when=lambda page: page.at("/has_more") is False)``.
    """

    size: int | None = None
    size_param: str = "limit"
    total: str | None = None
    place: PagePlace | None = None
    stop: Stop = Stop()

    @property
    def has_params(self) -> bool:
        return True

    def first(self, request: ApiRequest) -> ApiRequest:
        request = replace(request, place=self.place or "query", ends=self.stop.statuses)
        return request if self.size is None else request.with_page(**{self.size_param: self.size})

    def stated_total(self, answer: ApiAnswer) -> int | None:
        return _whole_number_at_pointer(answer, self.total)

    def smaller(self, request: ApiRequest, read: int | None) -> ApiRequest | None:  # noqa: ARG002  places go on
        size = request.page_params.get(self.size_param)
        return request.with_page(**{self.size_param: size // 2}) if isinstance(size, int) and size > 1 else None


@dataclass(frozen=True)
class CursorInBody(SizedPages):
    """A cursor in the body, sent back as a parameter.

    Args:
        path: A JSON pointer such as ``/meta/next_cursor``; null, empty or absent on the last page. It is also the last
            one if this is 0 or -1 after other cursors, or in a member that is named after what is next.
        repeat_params: False if a request with a cursor must not repeat the other parameters.
    """

    path: str
    param: str = "cursor"
    repeat_params: bool = True

    def following(self, request: ApiRequest, answer: ApiAnswer) -> ApiRequest | None:
        _raise_unless_answer_is_object(answer)
        cursor = _text_or_number_at_pointer(answer, self.path)
        if cursor is None or _says_no_next_page(
            cursor, self.path.rpartition("/")[2], is_later=self.param in request.page_params
        ):
            return None
        kept = request if self.repeat_params else _request_without_params(request)
        return kept.with_page(**{self.param: cursor})


@dataclass(frozen=True)
class AfterId(SizedPages):
    """Records in the order of their ids: the last id of a page is a parameter of the next; an empty page is the last.

    Args:
        records: A JSON pointer to the list of records; ``""`` if the body is the list.
        param: The parameter, such as ``since_id`` or ``starting_after``.
        id: The member of a record with its id.
        sorted: Whether numbers must ascend or descend, so that none is passed over. False if the parameter names the
            place of a record in a list of another order.
    """

    records: str
    param: str
    id: str = "id"
    sorted: bool = True
    by_record = ends_empty = True

    def listed(self, answer: ApiAnswer) -> list[Any]:
        return answer.items(self.records)

    def following(self, request: ApiRequest, answer: ApiAnswer) -> ApiRequest | None:
        found = answer.items(self.records)
        if not found:
            return None
        last = _text_or_number_at_pointer(answer, f"{self.records}/{len(found) - 1}/{self.id}")
        if last is None:
            raise RefusedError(
                f"the last record of the page has no member {self.id}", where=answer.address, code="answer_misplaced"
            )
        ids = [
            each
            for record in found
            if isinstance(each := value_at_pointer_or_missing(record, f"/{self.id}"), str | int)
        ]
        if self.sorted and len({*ids}) < len(ids):
            message = f"has several records with the same {self.id}, so that asking for what follows the last one"
            raise RefusedError(
                f"{message} may pass over others of this {self.id}",
                where=answer.address,
                hint="name a member that each record has alone, or read the list with another pagination of the API",
                code="list_unsorted",
            )
        numbers = [number for each in found if (number := _whole_number_in_member(each, self.id)) is not None]
        if self.sorted and numbers not in (sorted(numbers), sorted(numbers, reverse=True)):
            message = f"is not sorted by {self.id}, so that asking for what follows the last one would pass over others"
            hint = "request it in this order; where the parameter names a place in a list of any order: sorted: false"
            raise RefusedError(message, where=answer.address, hint=hint, code="list_unsorted")
        return request.with_page(**{self.param: last})

    def needs_record(self, record: Any, following: ApiRequest) -> bool:  # noqa: ARG002  it names each last record
        return not self.sorted or _whole_number_in_member(record, self.id) is None  # sorted numbers are compared


@dataclass(frozen=True)
class CursorInHeader(SizedPages):
    """A cursor in a header of the answer, sent back as a parameter.

    Args:
        header: Its name; absent or empty on the last page, or 0 or -1 as with `CursorInBody`.
    """

    header: str
    param: str = "cursor"

    @property
    def next_header(self) -> str:
        return self.header.lower()

    def following(self, request: ApiRequest, answer: ApiAnswer) -> ApiRequest | None:
        cursor = answer.headers.get(self.next_header)
        if not cursor or _says_no_next_page(cursor, self.header, is_later=self.param in request.page_params):
            return None
        return request.with_page(**{self.param: cursor})


@dataclass(frozen=True)
class PageNumber(SizedPages):
    """Pages with numbers; the first page without records is the last one.

    Args:
        records: A JSON pointer to the list of records; ``""`` if the body is the list.
        start: The number of the first page.
        pages: A JSON pointer to the number of pages, where the API states it: the page after the last one may be
            refused then, or be the last one again.
        cap: The number of pages after which the API lists no more; a list that reaches it is refused.
    """

    records: str
    param: str = "page"
    start: int = 1
    pages: str | None = None
    cap: int | None = None
    counted = ends_empty = True

    def first(self, request: ApiRequest) -> ApiRequest:
        return super().first(request).with_page(**{self.param: self.start})

    def following(self, request: ApiRequest, answer: ApiAnswer) -> ApiRequest | None:
        number = int(request.page_params[self.param])
        read = number - self.start + 1
        if not answer.items(self.records):
            pages = _whole_number_at_pointer(answer, self.pages)
            if pages is not None and read <= pages:
                raise RefusedError(
                    f"has no records, although there are {pages} pages", where=answer.address, code="list_incomplete"
                )
            return None
        if self.cap is not None and read >= self.cap:
            raise _list_cap_reached_error(f"{self.cap:,} pages", answer)
        return request.with_page(**{self.param: number + 1})

    def listed(self, answer: ApiAnswer) -> list[Any]:
        return answer.items(self.records)

    def is_stated_last(self, request: ApiRequest, answer: ApiAnswer) -> bool:
        pages = _whole_number_at_pointer(answer, self.pages)
        return pages is not None and int(request.page_params[self.param]) - self.start + 1 >= pages

    def smaller(self, request: ApiRequest, read: int | None) -> ApiRequest | None:
        size, pages = request.page_params.get(self.size_param), int(request.page_params[self.param]) - self.start
        if not isinstance(size, int) or size % 2 or read != pages * size:
            return None  # the smaller pages must begin where the larger ones do, which may have been cut by the API
        return request.with_page(**{self.size_param: size // 2, self.param: self.start + 2 * pages})


@dataclass(frozen=True)
class Offset(SizedPages):
    """The number of records to skip; the first page without records is the last one.

    Args:
        records: A JSON pointer to the list of records; ``""`` if the body is the list.
        param: The parameter for the number.
        start: What it is for the first record; 1 where it is the number of a record (SCIM, RFC 7644, 3.4.2.4).
        cap: The number of records after which the API lists no more; a list that reaches it is refused.
    """

    records: str
    param: str = "offset"
    start: int = field(default=0, kw_only=True)
    cap: int | None = None
    counted = ends_empty = True

    def first(self, request: ApiRequest) -> ApiRequest:
        return super().first(request).with_page(**{self.param: self.start})

    def following(self, request: ApiRequest, answer: ApiAnswer) -> ApiRequest | None:
        found = len(answer.items(self.records))
        following = int(request.page_params[self.param]) + found
        if not found:
            return None
        if self.cap is not None and following - self.start >= self.cap:
            raise _list_cap_reached_error(f"{self.cap:,} records", answer)
        return request.with_page(**{self.param: following})

    def listed(self, answer: ApiAnswer) -> list[Any]:
        return answer.items(self.records)


@dataclass(frozen=True)
class GraphQLConnection(SizedPages):
    """A GraphQL connection with ``pageInfo { hasNextPage endCursor }`` (Relay's specification).

    Args:
        path: A JSON pointer to the connection, such as ``/data/products``.
        cursor: The variable for the cursor; a dotted path if it is inside of one.
        size_param: The variable for *size*.
    """

    path: str
    cursor: str = "after"
    size_param: str = field(default="first", kw_only=True)
    place: PagePlace | None = field(default="variables", kw_only=True)

    def following(self, request: ApiRequest, answer: ApiAnswer) -> ApiRequest | None:
        following, cursor = (answer.at(f"{self.path}/pageInfo/{name}") for name in ("hasNextPage", "endCursor"))
        if not isinstance(following, bool) or (following and not isinstance(cursor, str)):
            message = f"has no pageInfo with hasNextPage and endCursor at {self.path}"
            raise RefusedError(message, where=answer.address, code="answer_misplaced")
        return request.with_page(**{self.cursor: cursor}) if following else None

    def listed(self, answer: ApiAnswer) -> list[Any] | None:
        found = (answer.at(f"{self.path}/{name}") for name in ("nodes", "edges"))
        return next((each for each in found if isinstance(each, list)), None)


def _texts_and_numbers_in(value: Any) -> Iterator[str]:
    if type(value) in {str, int}:
        yield str(value)
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts_and_numbers_in(inner)


def _next_link_in_header(answer: ApiAnswer) -> str | None:
    try:
        return link_target(answer.headers.get("link", ""))
    except ValueError as error:
        raise RefusedError(str(error), where=answer.address, code="next_address_refused") from None


def _request_without_params(request: ApiRequest) -> ApiRequest:
    return replace(request, params={}, json={} if request.place == "body" else request.json)


def _raise_unless_answer_is_object(answer: ApiAnswer) -> None:
    if not isinstance(answer.body, dict):
        raise RefusedError("is not a JSON object with a next page", where=answer.address, code="answer_misplaced")


def _text_or_number_at_pointer(answer: ApiAnswer, pointer: str) -> str | None:
    """Return the text or whole number at *pointer*; None if it is null, false, empty or absent. Others are refused."""
    value = answer.at(pointer)
    if value is None or value is False or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RefusedError(
            f"has neither a text nor a whole number at {pointer}", where=answer.address, code="answer_misplaced"
        )
    return str(value)


def _says_no_next_page(cursor: str, name: str, *, is_later: bool) -> bool:
    """Return whether a cursor says that no page follows. In a first answer, 0 may be the place of this page."""
    return cursor in {"0", "-1"} and (is_later or "next" in name.lower())


def _whole_number_in_member(record: Any, name: str) -> int | None:
    value = record.get(name) if isinstance(record, dict) else None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _whole_number_at_pointer(answer: ApiAnswer, pointer: str | None) -> int | None:
    if pointer is None:
        return None
    if (value := _whole_number_in_member({pointer: answer.at(pointer)}, pointer)) is None:
        raise RefusedError(f"has no whole number at {pointer}", where=answer.address, code="answer_misplaced")
    return value


def _list_cap_reached_error(limit: str, answer: ApiAnswer) -> RefusedError:
    message = f"the list reaches {limit}, where the API cuts it"
    return RefusedError(
        message, where=answer.address, hint="read it in parts, such as windows of time", code="list_incomplete"
    )


# The quantifiers are possessive, so the time is linear in the length.
_target = re.compile(r"[\s,]*+<([^>]*+)>").match
_parameter = re.compile(
    r"""
    \s*+ ; \s*+ (?P<name>[^\s=;,]*+) \s*+
    (?: = \s*+ (?: "(?P<quoted>(?:[^"\\]|\\.)*+)"?+ | (?P<plain>[^;,]*+) ) \s*+ )?+
    """,
    re.VERBOSE | re.DOTALL,
).match
_end = re.compile(r"[\s,]*+").fullmatch
_escaped = re.compile(r"\\(.?)", re.DOTALL)


def link_target(field: str, relation: str = "next") -> str | None:
    """Return the target of the first link with *relation*, in lower case. Raises ValueError for a malformed *field*."""
    at = 0
    while found := _target(field, at):
        relations, at = _relations_of_link(field, found.end())
        if relation in relations.lower().split():
            return found[1]
    if not _end(field, at):
        raise ValueError("the Link header field is malformed")
    return None


def _relations_of_link(field: str, at: int) -> tuple[str, int]:
    relation = None
    while found := _parameter(field, at):
        at = found.end()
        if relation is None and found["name"].lower() == "rel":
            relation = (
                _escaped.sub(r"\1", found["quoted"]) if found["quoted"] is not None else _unquoted(found["plain"] or "")
            )
    return relation or "", at


def _unquoted(text: str) -> str:
    """Remove the single quotes that some servers write in place of double ones."""
    return text.strip().removeprefix("'").removesuffix("'")


_RESTARTS = 5
_HIDDEN = (
    "what was read is delivered, nothing counts as gone, and the next run reads the list again; the others are counted"
    " and on no page: look for damaged records, or see whether a proxy or plugin changes the pages"
)

_TIME = re.compile(r"\d{4}-\d\d-\d\d")
_Place = tuple[tuple[Any, ...], str]  # the change and the id of a record


@dataclass(slots=True)
class _Progress:
    """The progress in one list, up to the last page that was joined to the one before.

    The next page must contain one of `joints`; otherwise the reading restarts `step` records further back.
    """

    offset: int = 0
    places: Sequence[_Place] = ()
    joints: frozenset[_Place] = frozenset()
    step: int = 0
    restarts: int = 0
    seen: IdSet = field(default_factory=IdSet)
    without_place: int = 0


@dataclass(frozen=True, kw_only=True)
class OverlappingPages(SizedPages):
    """Pages by position of a list that is sorted by change, oldest first, or by id.

    A record that changes moves to the end of such a list, and one that is deleted leaves it: those behind it move
    towards the front. So each page begins before the end of the last one, and has to contain a record of it that did
    not change meanwhile. If it does not, the list is read again from further before, at last from its beginning. At the
    end there must be as many different records as the API says; otherwise the list is in doubt. Records are read more
    than once, and the last reading counts.

    Records with the same change may be in any order on each page, as long as a page has other records as well.

    Args:
        records: A JSON pointer to the list of records; ``""`` if the body is the list.
        id: The path of a record's id.
        change: The path of what the list is sorted by, a text or a number; several if it may be either of them.
        total: The header with the number of all records.
        overlap: How many records before the end of a page the next one begins; at most half a page, unless more have
            the same change.
        param: The parameter for the number of records to skip.
    """

    records: str = ""
    id: str = "id"
    change: str | tuple[str, ...]
    total: str
    overlap: int = 10
    param: str = "offset"
    repeats: ClassVar[bool] = True
    _progress: list[_Progress] = field(default_factory=lambda: [_Progress()], init=False, repr=False, compare=False)

    def first(self, request: ApiRequest) -> ApiRequest:
        self._progress[0] = _Progress()
        return super().first(request).with_page(**{self.param: 0})

    def following(self, request: ApiRequest, answer: ApiAnswer) -> ApiRequest | None:
        """Return the request for the next page, or for an earlier one after a page that is not joined to the last."""
        offset, total = int(request.page_params[self.param]), self._stated_count(answer)
        before = self._progress[0]
        number, places = (
            len(answer.items(self.records)),
            self._places_refusing_unsorted_page(answer, is_first=not before.places),
        )
        has_new = before.seen.add([id_ for _, id_ in places]) > 0
        before.without_place += number - len(places)
        if offset and before.joints.isdisjoint(places):
            return request.with_page(**{self.param: self._earlier_offset_after_missed_overlap(offset, answer)})
        end, size = offset + number, request.page_params.get(self.size_param)
        is_asked_to_end = isinstance(size, int) and offset + size >= total
        if end >= total or (is_asked_to_end and (number < 2 or not has_new)):
            self._raise_if_fewer_records_than_total(before, total, answer)
            return None
        if offset > before.offset and places == before.places:
            message = f"is the page before it once more, although {self.param} is another"
            raise RefusedError(
                message,
                where=answer.address,
                hint="an API that does not know a parameter ignores it",
                code="list_without_end",
            )
        if number < 2:
            message = f"has {number} of {total - offset:,} records: pages of fewer than two cannot overlap"
            raise RefusedError(message, where=answer.address, code="list_incomplete")
        joints, back = _places_shared_with_next_page(places, min(self.overlap, number // 2))
        self._progress[0] = replace(before, offset=offset, places=places, joints=joints, step=back)
        return request.with_page(**{self.param: end - back})

    def smaller(self, request: ApiRequest, read: int | None) -> ApiRequest | None:
        lesser = super().smaller(request, read)
        return lesser if lesser is not None and int(lesser.page_params[self.size_param]) > 1 else None

    def _earlier_offset_after_missed_overlap(self, offset: int, answer: ApiAnswer) -> int:
        progress = self._progress[0]
        progress.step *= 2
        if progress.step < offset:
            return offset - progress.step
        progress.restarts += 1
        if progress.restarts > _RESTARTS:
            message = f"changes so fast that it was begun again {_RESTARTS} times"
            raise RefusedError(
                message, where=answer.address, hint="read it again when it changes less", code="list_changed"
            )
        return 0

    @staticmethod
    def _raise_if_fewer_records_than_total(progress: _Progress, total: int, answer: ApiAnswer) -> None:
        if (read := len(progress.seen) + progress.without_place) < total:
            message = f"the list ended after {read:,} of {total:,} records"
            raise DoubtfulListError(message, where=answer.address, hint=_HIDDEN, code="list_incomplete")

    def _places_refusing_unsorted_page(self, answer: ApiAnswer, *, is_first: bool) -> list[_Place]:
        """Return the places of the records that have one. A page that is not sorted is refused.

        A record may lack its change, as far as the list is known to have changes: a page without any id and change is
        refused.
        """
        paths = (self.change,) if isinstance(self.change, str) else self.change
        found = answer.items(self.records)
        values = [
            (tuple(value_at_path_or_missing(record, path) for path in paths), value_at_path_or_missing(record, self.id))
            for record in found
        ]
        unknown = (None,) if is_first else (None, MISSING)
        places = [
            (tuple(None if each in unknown else each for each in change), str(id_))
            for change, id_ in values
            if isinstance(id_, str | int) and all(isinstance(each, str | int) or each in unknown for each in change)
        ]
        if found and not places:
            raise RefusedError(
                f"no record has {self.id} and {' and '.join(paths)}", where=answer.address, code="answer_misplaced"
            )
        if not any(
            _is_sorted(_values_of_commonest_kind([change[index] for change, _ in places]))
            for index in range(len(paths))
        ):
            hint = "an API that does not know a parameter ignores it"
            message = f"is not sorted by {' or '.join(paths)}, lowest first"
            raise RefusedError(message, where=answer.address, hint=hint, code="list_unsorted")
        return places

    def _stated_count(self, answer: ApiAnswer) -> int:
        text = answer.headers.get(self.total.lower(), "")
        if not (text.isascii() and text.isdigit()):
            hint = "a proxy or cache may have removed it"
            message = f"has no header {self.total} with the number of records"
            raise RefusedError(message, where=answer.address, hint=hint, code="answer_misplaced")
        return int(text)


def _places_shared_with_next_page(places: Sequence[_Place], overlap: int) -> tuple[frozenset[_Place], int]:
    """Return the places of which the next page must contain one, and how far before the end of the page they begin.

    Records with the last change count only if there are hardly any others: more may precede them on the next page.
    """
    last = sum(place[0] == places[-1][0] for place in places)
    if last + 1 < len(places):
        return frozenset(places[:-last]), max(overlap, last + 1)
    return frozenset(places), overlap


def _values_of_commonest_kind(changes: Sequence[Any]) -> list[Any]:
    """Return the values of the most frequent kind: numbers, times or other texts. One wrong value ends no list."""
    kinds = Counter(_value_kind(change) for change in changes if change is not None)
    return [change for change in changes if change is not None and _value_kind(change) == kinds.most_common(1)[0][0]]


def _value_kind(change: str | int) -> str:
    return "number" if isinstance(change, int) else "time" if _TIME.match(change) else "text"


def _is_sorted(changes: Sequence[Any]) -> bool:
    return changes == sorted(changes)
