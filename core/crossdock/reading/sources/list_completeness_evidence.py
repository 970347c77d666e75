"""Evidence that a list was read to its end: what the API says about it, compared with the records received."""

from __future__ import annotations

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from crossdock.errors import RefusedError
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer, ApiRequest, Params, parameter_pairs
from crossdock.reading.sources.compact_id_set import IdSet
from crossdock.values import exact_json, json_paths
from crossdock.values.json_paths import json_value_as_column_text, names_in_path, value_at_path_or_missing

_IGNORED = (
    "an API that does not know a parameter ignores it, and repeats its first page: check the paginator's parameters,"
    " and where a POST has them; an API that lists everything in one answer has a single page"
)
_ENDED = "the list is cut off, or the total counts records that are not listed: check where the paginator finds it"
_MORE = "check where the paginator finds the total: it must be the number of all records, not that of one page"
_CHANGED = "the list changed while it was read ({}), so that records may have been passed over"
_MOVED = (
    "what was read is delivered, nothing counts as gone, and the next run reads the list again; request it sorted by"
    " id or creation, in smaller parts, or with a cursor of the API that names a record. If several records have one"
    " key, change the key; if an offset is the number of a record, from 1 on, declare start: 1;"
    " if the total is that of a page, correct its place"
)
_MOVED_ROWS = (
    "nothing of it is delivered, and the next run reads the list again; request it sorted by id or creation, in smaller"
    " parts, or with a cursor of the API that names a record"
)
_UNSORTED = ": the list is not in the order of what the client asks from, so that records may have been passed over"
_IN_ORDER = (
    "what was read is delivered, nothing counts as gone, and the next run reads the list again; request it sorted by"
    " the id of the pagination, or use another pagination of the API"
)


class IncompleteListError(RefusedError):
    """A list ended, and nothing proves that all of it was read."""

    code = "list_incomplete"


class DoubtfulListError(IncompleteListError):
    """A list was read to its end, but records may be missing: it changed meanwhile, or its answers announce more.

    The records that were read are delivered. Nothing counts as gone, and no cursor moves.
    """


class OpenLists:
    """The lists that streams are reading, of which only the end shows whether records were missed.

    Attributes:
        reader: The stream whose code runs now; empty if none does.
        begun: Streams that have begun a list of an API since this was reset.
        unproved: Streams whose list must be the same in a second reading before a missing record counts as gone.
        doubted: Why lists are no evidence for removals, by the stream that read them.
        incomplete: Why some of these may be cut or old, so that no cursor moves that needs all of their records.
        in_pages: Streams whose list had several pages. A record that left it may have moved others to a page that was
            read already, so that a second reading must lack the missing records, too.
        joined: Streams whose records are made of rows that may be on several pages of a list.
    """

    def __init__(self) -> None:
        self.reader = ""
        self.begun, self.unproved, self.in_pages = set[str](), set[str](), set[str]()
        self.joined = set[str]()
        self.doubted, self.incomplete = dict[str, str](), dict[str, str]()
        self._read = defaultdict[str, list[ListEvidence | None]](list)
        self._latest = 0  # number of lists that were begun while none was open

    @contextmanager
    def attributing_lists_to_stream(self, stream: str) -> Iterator[None]:
        before, self.reader = self.reader, stream
        try:
            yield
        finally:
            self.reader = before

    @contextmanager
    def open_list(self, evidence: ListEvidence | None) -> Iterator[None]:
        reader = self.reader
        self.begun.add(reader)
        self._latest += not self._read[reader]
        self._read[reader].append(evidence)
        try:
            yield
        finally:
            self._read[reader].remove(evidence)
            if evidence is not None and evidence.counted:
                self.unproved.add(reader)
            elif evidence is not None and evidence.records_may_have_shifted:
                self.in_pages.add(reader)

    @property
    def open_list_id(self) -> int | None:
        """The id of the list that the reader has open, which lists read for its records share; None without one."""
        return self._latest if self._read[self.reader] else None

    def forget_stream(self, stream: str) -> None:
        for known in (self.begun, self.unproved, self.in_pages, self.joined):
            known.discard(stream)
        self.doubted.pop(stream, None)
        self.incomplete.pop(stream, None)

    def require_second_reading(self) -> None:
        """Require a second reading of the current list before a missing record counts as gone."""
        self.unproved.add(self.reader)

    @property
    def needs_second_reading(self) -> bool:
        """Whether the reader's list was paged by position, so that changes during the reading can hide records."""
        return self.reader in self.unproved

    def add_doubt(self, text: str, *, is_incomplete: bool = False) -> bool:
        """Mark the current list as no evidence. Return False if that is known already."""
        if is_incomplete:
            self.incomplete.setdefault(self.reader, text)
        return self.doubted.setdefault(self.reader, text) is text

    def __contains__(self, stream: str) -> bool:
        return any(each is not None and (each.counted or each.is_doubted) for each in self._read.get(stream, ()))


_LISTED_AGAIN = 100
"""As many records at least may be listed again, because they were changed meanwhile, before a list is a loop."""
_IDLE_PAGES = 1_000
"""As many pages in a row may have only records that differ from earlier ones by what each page has anew."""
USUAL_CAPS = frozenset({1_000, 2_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000})
"""Numbers of records at which known APIs cut lists silently, even in the total that they state."""
USUAL_PAGE_LIMITS = frozenset({20, 25, 30, 50, 100, 200, 250, 500})
"""Numbers of records that known APIs give at most in a page, however many were asked for."""
USUAL_DEFAULT_SIZES = USUAL_PAGE_LIMITS | {1_000}
"""Numbers of records that known APIs give if none is asked for."""


class ListEvidence:
    """The distinct records of one list, page after page, and what the API says about their number.

    Args:
        key: The dotted paths of a record's key. Without one, whole records are compared, and equal ones may differ.
        by_record: Whether each page begins after a record that the client names, wherever that is in the list.
        shared_key: In place of *key*, the dotted paths of one that several records may have. Pages are then a loop if
            many in a row differ from earlier ones only by members that all records of a page have alike, such as the
            time of the answer.

    Attributes:
        counted: Whether the list is paged by position, so that changes during the reading can hide records.
        pages: How many pages brought a record that none before had.
        empty_pages: How many pages in a row had no records.
        is_doubted: Whether a page reported an error beside its records: nothing from there on moves the cursor.
    """

    def __init__(
        self,
        key: Sequence[str] = (),
        *,
        counted: bool = False,
        by_record: bool = False,
        shared_key: Sequence[str] = (),
    ) -> None:
        self._key, self.counted, self._by_record = tuple(key), counted, by_record
        self._lasting_names = {names_in_path(path)[0] for path in shared_key}
        self._lasting, self._idle_pages = IdSet(), 0
        self.is_doubted, self.empty_pages = False, 0
        self.positions = PagingByPositionDetector()
        self._seen = IdSet()
        self._contents, self._orders, self._order = IdSet(), IdSet(), ""  # for records that may be listed again
        self._alike = 0  # records that may differ despite equal keys, such as two on one page
        self._again = 0  # records that an earlier page had
        self._unchanged, self._last = 0, ""  # of these, and the content of the last record so far
        self._idle = 0  # records since a page had a new one: a list that begins again under other cursors is a loop
        self.read = 0
        self._totals: tuple[int, int] | None = None  # lowest and highest
        self._total: int | None = None
        self.pages = 0

    def add_page(self, records: Sequence[Any], total: int | None = None) -> bool:
        """Add a page. Return False if it has records and all of them were on earlier pages.

        If the API marks the places of pages, a changed record may be listed again. It then has another content, and its
        page has other records than the earlier page.
        """
        names = [self._record_identity(record) for record in records]
        distinct, new = len(set(names)), self._seen.add(names)
        self._idle = 0 if new or not names else self._idle + len(names)
        is_loop = not self._add_page_and_detect_changes(names, records) or self._idle > max(
            len(self._seen), _LISTED_AGAIN
        )
        if (is_loop and names and not new) or self._is_loop_of_known_records(names, records):
            return False
        self._alike += len(names) - distinct
        if self._key or self.counted:
            self._again += distinct - new
        else:
            self._alike += distinct - new
        self.read += len(names)
        if total is not None:
            low, high = self._totals or (total, total)
            self._totals, self._total = (min(low, total), max(high, total)), total
        self.pages += bool(new)
        return True

    def pages_have_same_records(self, records: Sequence[Any], others: Sequence[Any]) -> bool:
        """Return whether two pages have the same records, as far as their keys show it."""
        return [self._record_identity(each) for each in records] == [self._record_identity(each) for each in others]

    def has_new_records(self, records: Sequence[Any]) -> bool:
        """Return whether *records* have one that no page had."""
        names = [self._record_identity(each) for each in records]
        return len(self._seen.known_ids_among(names)) < len(set(names))

    def _is_loop_of_known_records(self, texts: Sequence[str], records: Sequence[Any]) -> bool:
        """Return whether too many pages in a row had no new record, whatever all of a page have alike.

        *texts* are those of *records*, which have no key.
        """
        if not self._lasting_names or not records:
            return False
        objects = [record for record in records if isinstance(record, dict)]
        alike = {
            name
            for name, value in (objects[0].items() if len(objects) == len(records) else ())
            if name not in self._lasting_names
            and not isinstance(value, dict | list)
            and all(name in each and each[name] == value for each in objects)
        }
        if alike or 0 < len(objects) < len(records):
            lasting = [{name: value for name, value in each.items() if name not in alike} for each in objects]
            texts = [exact_json.dumps(each).decode() for each in lasting]
        is_new = self._lasting.add(texts)
        self._idle_pages = 0 if is_new else self._idle_pages + 1
        return self._idle_pages > _IDLE_PAGES

    def _add_page_and_detect_changes(self, names: Sequence[str], records: Sequence[Any]) -> bool:
        """Add the page, and return whether it has a new or changed record, and other records than earlier pages."""
        if self.counted or not self._key:
            return False
        order, before = "\n".join(names), self._order
        self._order, is_other_order = order, bool(self._orders.add([order]))
        contents = [exact_json.dumps(record).decode() for record in records]
        changed = self._contents.add(contents)
        self._unchanged += len(set(contents) - {self._last}) - changed  # some APIs begin a page with the last record
        self._last = contents[-1] if contents else self._last
        return bool(changed) and (is_other_order or (len(names) == 1 and order != before))

    def detect_paging_by_position(self, request: ApiRequest, following: ApiRequest) -> None:
        self.counted = self.counted or self.positions.add_request_and_detect_paging(request, following, self.read)

    @property
    def has_all_stated_records(self) -> bool:
        return self._total is not None and self._agrees_with_total(self._total)

    @property
    def records_may_have_shifted(self) -> bool:
        """Whether the list has several pages, and no total that stayed the same and agrees.

        An opaque cursor may be a position, so that a record that leaves an earlier page hides another one.
        """
        is_same = self._totals is not None and self._totals[0] == self._totals[1]
        return self.pages > 1 and not self._by_record and not (is_same and self.has_all_stated_records)

    @property
    def doubtful_length_text(self) -> str | None:
        """A sentence if the list ended at a number of records at which APIs cut lists; otherwise None."""
        if len(self._seen) not in USUAL_CAPS:
            return None
        return (
            f"the list has exactly {len(self._seen):,} records, a number at which some APIs cut lists: compare it with"
            " what the API itself counts, and read it in smaller parts if it is cut"
        )

    def raise_if_end_is_doubtful(self, page: ApiAnswer) -> None:
        """Raise DoubtfulListError if the list changed while it was read, and IncompleteListError for a wrong total."""
        if self.counted and self._has_changed_while_read:
            low, high = self._totals or (0, 0)
            sign = f"its total was {low:,} and {high:,}" if low < high else f"{self._again:,} were on two pages"
            if not self._key:  # two copies of a row would be joined into one record
                raise IncompleteListError(
                    _CHANGED.format(sign), where=page.address, hint=_MOVED_ROWS, code="list_changed"
                )
            raise list_changed_error(sign, page.address)
        if self._by_record and self._unchanged:
            message = f"{self._unchanged:,} records came again unchanged after later ones{_UNSORTED}"
            raise DoubtfulListError(message, where=page.address, hint=_IN_ORDER, code="list_unsorted")
        if self._totals is None or any(map(self._agrees_with_total, {*self._totals, self._total or 0})):
            return
        low, high = self._totals
        if not self.counted and low < len(self._seen) < high:
            return
        read, kind = len(self._seen), DoubtfulListError if self._key else IncompleteListError
        if read < high:
            raise kind(f"the list ended after {read:,} of {high:,} records", where=page.address, hint=_ENDED)
        raise kind(f"the list has {read:,} records, although the API says {high:,}", where=page.address, hint=_MORE)

    @property
    def _has_changed_while_read(self) -> bool:
        """Whether a record on two pages took the place of another, so that a matching total is a coincidence."""
        return self._again > 0 or (self._totals is not None and self._totals[0] != self._totals[1])

    def _agrees_with_total(self, total: int) -> bool:
        return len(self._seen) <= total <= len(self._seen) + self._alike

    def _record_identity(self, record: Any) -> str:
        parts = [json_value_as_column_text(value_at_path_or_missing(record, path)) for path in self._key]
        if not parts or None in parts:
            return exact_json.dumps(record).decode()
        return "|".join(f"{len(part or '')}:{part}" for part in parts)


def incomplete_joined_rows_error(error: DoubtfulListError) -> IncompleteListError:
    """Return the error for a doubtful list whose rows make records together: some may be missing, or there twice."""
    return IncompleteListError(error.message, where=error.where, hint=_MOVED_ROWS, code=error.code)


def list_changed_error(sign: str, where: str) -> DoubtfulListError:
    return DoubtfulListError(_CHANGED.format(sign), where=where, hint=_MOVED, code="list_changed")


def repeated_page_error(page: ApiAnswer) -> IncompleteListError:
    message = "has only records that earlier pages had: pagination loop"
    return IncompleteListError(message, where=page.address, hint=_IGNORED, code="list_without_end")


_PAGE = re.compile("(current|next)?page(no|nr|num|number|index)?|paged|p|pg")
_COUNTS = frozenset({-1, 0, 1})  # a cursor counts the records before the page, or names the last or next one
_SIZE = re.compile("limit|size|per_?page|count|first|top|take|rows|max", re.IGNORECASE)
_PLACE = re.compile("start|offset|from|skip|index|first_?(result|row|record|item)", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]+")
_NAMED = re.compile(r"""([A-Za-z_]\w*)["']?\s*[:=]\s*["']?([0-9]+)(?![\w.:-])""")  # such as "offset": 10
_LONGEST = 200  # characters of an examined value

_Place = tuple[str, str]  # of a number in a request: the parameter or the part of the path, and its name


@dataclass
class _NumberInRequests:
    """A number in the requests so far. `counts` are its differences to the records read, if they are -1, 0 or 1."""

    last: int
    counts: frozenset[int]
    ascends: bool = True
    requests: int = 1

    def with_number_of_next_request(self, number: int, read: int) -> _NumberInRequests:
        ascends = self.ascends and number == self.last + 1
        return _NumberInRequests(number, self.counts & {read - number}, ascends, self.requests + 1)


class PagingByPositionDetector:
    def __init__(self) -> None:
        self._known: dict[_Place, _NumberInRequests] | None = None

    def add_request_and_detect_paging(self, request: ApiRequest, following: ApiRequest, read: int) -> bool:
        """Return whether the requests so far show a list paged by position. *read* records precede *following*."""
        found = dict(_numbers_changed_in_request(request, following))
        if self._known is None:
            self._known = {place: _NumberInRequests(each, _COUNTS & {read - each}) for place, each in found.items()}
        else:
            known = self._known.items()
            self._known = {
                place: each.with_number_of_next_request(found[place], read) for place, each in known if place in found
            }
        return any(_behaves_like_position(name, each) for (_, name), each in self._known.items())


def _behaves_like_position(name: str, found: _NumberInRequests) -> bool:
    if found.requests > 1:
        return bool(found.counts) or found.ascends
    if found.last in {1, 2} and names_a_page_number(name):
        return True
    return bool(found.counts) and (_PLACE.search(name) is not None or _SIZE.search(name) is None)


def names_a_page_number(name: str) -> bool:
    """Return whether a parameter with this name is the number of a page."""
    return _PAGE.fullmatch(json_paths.member_name_without_separators(name)) is not None


def _names_a_position(name: str) -> bool:
    return names_a_page_number(name) or _PLACE.search(name) is not None


def params_missing_in_next_link(request: ApiRequest, address: str) -> Params:
    """Return the parameters of *request* that are not in *address* of its next page, if that only counts on.

    A link with a cursor may have them inside. The number of a page has none: such a link, as of Laravel, is to the same
    page of a list without its filters.
    """
    link, before = urlsplit(address), urlsplit(request.path)
    pairs, known = parse_qsl(link.query), {*parse_qsl(before.query), *parameter_pairs(request.params)}
    changed = [(name, value) for name, value in pairs if (name, value) not in known]
    counts_on = any(_names_a_position(name) for name, _ in changed) and all(
        _is_number(value) and (_names_a_position(name) or _SIZE.search(name)) for name, value in changed
    )
    if link.path != before.path or not counts_on:
        return {}
    names, values = {name for name, _ in pairs}, {value for _, value in pairs}
    return {
        name: value
        for name, value in request.params.items()
        if name not in names and not values.issuperset(each for _, each in parameter_pairs({name: value}))
    }


def _numbers_changed_in_request(request: ApiRequest, following: ApiRequest) -> Iterator[tuple[_Place, int]]:
    before, after = (urlsplit(each.path).path.split("/") for each in (request, following))
    for number, (old, new) in enumerate(zip_longest(before, after)):
        if new != old and new is not None and _is_number(new):
            yield (f"/{number}", after[number - 1]), int(new)
    known = set(_all_parameters(request))
    for name, value in _all_parameters(following):
        if (name, value) in known:
            continue
        text = text_of_base64_cursor(value)
        if _is_number(value):
            yield (name, name), int(value)
        elif len(numbers := _NUMBER.findall(text)) == 1:
            yield (name, name), int(numbers[0])
        else:  # of several numbers, those that are named as places
            yield from (((name, own), int(number)) for own, number in _NAMED.findall(text) if _names_a_position(own))


def _all_parameters(request: ApiRequest) -> Iterator[tuple[str, str]]:
    yield from parse_qsl(urlsplit(request.path).query)
    yield from parameter_pairs(request.params)
    yield from ((name, str(value)) for name, value in request.page_params.items())


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST


def text_of_base64_cursor(cursor: str) -> str:
    """Return the text that *cursor* has in Base64, such as ``arrayconnection:9``, or an empty text."""
    try:
        text = base64.b64decode(cursor.replace("-", "+").replace("_", "/") + "==", validate=False).decode("ascii")
    except (binascii.Error, ValueError):
        return ""
    return text if text.isprintable() and len(text) <= _LONGEST else ""
