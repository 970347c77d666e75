"""Signs in the answers of a list that records were not read: a number, a next page, or an error."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from crossdock.reading.sources.api_requests_and_answers import ApiAnswer
from crossdock.reading.sources.list_completeness_evidence import names_a_page_number
from crossdock.reading.sources.pagination import Paginator, SizedPages, link_target
from crossdock.values import exact_json, json_paths
from crossdock.values.json_paths import RECORDS

_ERROR = re.compile("(odata)?errors?")
_SUCCESS = re.compile("(is)?success(ful)?|succeeded|ok")
_PARTIAL = re.compile(
    "(is|has)?partial(data|list|page|response|results?|success)?"
    "|timedout|incompleteresults?|isincomplete|terminatedearly"
)
_REFUSAL = re.compile(f"(has|is)?errors?|{_SUCCESS.pattern}")
_SIZE = re.compile(
    "(page|max|items|results|records|batch)?(limit|size|length|count|first|top|max|rows|take|results|items|records)"
    "|pagelen|(items|results|records|rows)?perpage"
)
_SHARDS = "failed", "total", "successful"
_FAILED = frozenset({"error", "fail", "failed", "failure", "partial"})
# The following count beside an empty list only, and if no page with records had the same.
_FAULT = re.compile(
    "(has|is)?(errors?|err|fail(ed|ures?)?)|(error|fault)response|faults?|exceptions?"
    "|(err|error|fault|exception)(s|no|number|codes?|types?|name|key|status|reason|list|count)"
    "|(is|in|under)?maintenance(mode)?|throttled|(is)?ratelimited|(rate|call|quota)?limit(exceeded|reached)|quotaexceeded"
)
_TEXT_OF_FAULT = re.compile(
    "(err|error|fault|exception|failure)s?(msgs?|messages?|texts?|descriptions?|details?|info|string)"
)
_CODE = re.compile("(http|api|response|result|return|status)?code|ret|rc|http(response)?status(code)?")
_STATUS = re.compile("(response|result|return|request|api)?status|result|outcome|state|stat|ack|type")
_REPORT = re.compile("(response|request|result|api)(status|header|metadata)|status")  # objects with such members
_FAILURE = re.compile(
    r"(?<!\bno_)(?<!\b0_)(?<!without_)error|fail|(?<!de)fault|exceed|exception|rate_?limit|over_?(query_?|rate_?)?limit"
    "|throttl|too_?many|timed?_?out|quota|(request|access|permission)_?denied|unavailable|maintenance|forbidden"
    "|unauthori[sz]ed|busy|invalid(?!_page)|overload|^(ko|nok|not_ok)$|(token|session|key|licen[cs]e|login)_(is_|has_)?expired"
)
_BESIDE_FAULT = re.compile(  # what else an answer has that only reports an error, such as a problem (RFC 9457)
    "title|instance|path|(time)?stamp|(request|trace|correlation|log|debug)id|retry(after)?|jsonrpc|version"
    "|(documentation|more|help)?(info|url|uri|link|links|docs?)"
)
_SEPARATORS = re.compile(r"[\W_]+")
_FINE = re.compile(
    "0*|ok|okay|(is)?success(ful|fully)?|succeeded|none|null|nil|false|no|noerrors?|na|normal|2[0-9][0-9]"
)
_FALSE = frozenset({"0", "false", "no", "n", "none"})
_MESSAGE = re.compile("(status|response|result)?(messages?|msgs?)|details?|reason")
_REPORTED = _ERROR, _SUCCESS, _PARTIAL, _FAULT, _TEXT_OF_FAULT, _CODE, _STATUS, _REPORT, _MESSAGE, _BESIDE_FAULT
_WARNING = re.compile("warn(ing)?s?(msgs?|messages?|texts?)?")
_OUTAGE = re.compile("unavailable|timed?_?out|throttl|too_?many_?requests|overload|limit_?(was_?)?exceeded")
_WHOLE = re.compile("(is)?(valid|completed?|finished|ready)")  # false is a doubt only after records
_UNFINISHED = re.compile("pending|processing|running|queued|waiting|loading|inprogress|starting|notready|degraded")
# Beside an empty list, any other member is a doubt if no page with records said anything there, but for these.
_NONE_LEFT = re.compile(  # texts by which APIs say that there are no records, or no such page
    r"\b(no|zero|0|not any|without)\b.{0,40}"
    r"\b(record|result|item|row|entr|data|more|order|product|customer|content|match|page)"
    r"|\bnot? ?(exist|found)|nothing|\bempty\b|out of (range|bounds)|\bend of\b|invalid page"
    "|(no_?(data|content|results?|records?)|zero_?results?|notfound)"
)
_OF_PAGE = re.compile(  # pages, links, times, names of requests, and what else describes a list
    ".*(page|offset|index|position|number|limit|size|total|count|links?|url|uri|href|cursor|token|marker|filters?)"
    "|.*(time(stamp)?|date|edat|before|after|since|until|duration|elapsed|took|latency|seconds|millis)(ms|s|utc)?"
    "|.*(cost|quota|remaining|capacity)|first|prev|previous|next|self|from|to|start|end|skip|top|rows|ms"
    "|(is|at|the|has|from)*(empty|first|last|end|eof|final|finished|completed?|done|exhausted|cached)"
    "(of)?(page|list|data|results|reached)?"
    "|(request|trace|correlation|session|scroll|pit|query|search|job|operation|server|node|host)?(id|uuid|guid)|etag"
    "|includ(ed|es)|facets?|aggregations?|suggest(ions?)?|param(eter)?s|quer(y|ies)|sort|search(criteria)?"
    "|object|kind|(api)?version|copyright|schema|columns|fields|debug|extensions|(odata)?(context|metadata)"
)
_OF_FAULT = re.compile(
    "err|fail|fault|warn|retry|partial|incomplete|missing|reject|skipped|omitted|dropped|lost|timed?out|unavailable"
    "|degraded|throttl|stale"
)
_MOST_KNOWN = 10_000  # places of such members; with more, they are data
_HEADER = re.compile(r"(x-)?((ms|wp|paging|pagination|pager|list)-)*")  # before the name that a member would have
_JSON_HEADERS = frozenset({"x-pagination", "pagination", "x-paging", "paging"})
_CONTENT_RANGES = "content-range", "x-content-range"
_LEFT = re.compile(  # what is left of a list, or a limit that it has reached; other values say nothing
    f"remaining({RECORDS}|pages?)(count)?|({RECORDS}|pages?)(remaining|left)(count)?|capped"
    f"|((max|size|transfer|{RECORDS})*limit|max({RECORDS})?)(was|is|has|been)*(exceeded|reached)"
    f"|exceeded(max|size|transfer|{RECORDS})*limit"
)
_FIRST = frozenset({"first", "isfirst", "firstpage", "isfirstpage"})
_NO_WORD = re.compile(r".*(offset|links|last_?evaluated_?key)", re.IGNORECASE)
"""Members that do not state that there is no next page: a request's offset, and links of other kinds."""
_NEW = "is beside no records, and no page with records had it: it may report an error"
_NO_RECORD = {  # RFC 9110, 15.3.3, and RFC 4918, 11.1
    202: "HTTP 202 says that the API has only accepted the request",
    207: "HTTP 207 has several answers, of which some may be errors",
}
_NOT_FOUND = 404  # no records, in the answers of some APIs
_DEEPEST, _MEMBERS = 4, 500  # depth of nested objects, members that are examined


class SignsOfUnreadRecords:
    """Collects the signs in the answers of one list, page by page.

    Args:
        records: A JSON pointer to the list of records, whose members are not examined; None if it is not known.
        ignored: JSON pointers and names of headers that have another meaning.

    Attributes:
        size: The parameter for the number of records in a page, and that number; None if none is known.
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
        self._header, self._is_single = paginator.next_header, type(paginator) is Paginator
        self.size = _page_size_name_and_number(params)
        if isinstance(paginator, SizedPages) and paginator.size is not None:
            self.size = paginator.size_param, paginator.size
        self._is_cut = False  # the only page so far is full, and nothing says whether another one follows
        self._numbers: dict[str, tuple[str, int]] | None = None  # kind and lowest number, if each page has it
        self._totals, self._latest = dict[str, int](), 0  # of the latest page with records, and how many that has
        self._lessened: str | None = None
        self._read: int | None = 0
        self._pages = 0
        self._is_empty = False  # the latest page
        self._next: str | None = None
        self._previous: str | None = None  # of the first page
        self._error: tuple[str, str] | None = None  # of the first page that has one: its place, and what is there
        self._usual = set[int]()  # hashes of what pages with records had at places of errors
        self._known_places: dict[int, bool] = {}  # hashes of other places on such pages, and if they said anything
        self._said_last, self._is_trusted = False, True  # what the latest page says, and whether that was true before
        self._cursor: str | None = None  # of the only page, if nothing beside it says that it is the last one

    def add_page(self, answer: ApiAnswer, records: int | None) -> None:
        """Add a page. *records* is None if their number is not known."""
        self._read = None if records is None or self._read is None else self._read + records
        self._pages, self._is_empty = self._pages + 1, records == 0
        numbers, self._next, is_last, is_word = dict[str, tuple[str, int]](), None, False, False
        self._cursor = None
        self._is_cut = self._is_full_without_next_header(answer, records or 0)
        for place, kind, value in self._signs_in_answer(answer):
            if place in self._ignored:
                continue
            if kind == "error" or (kind == "verdict" and self._is_failure_report(place, value, records)):
                self._error = self._error or (place, "reports an error or a part of the list")
            elif kind == "other" and self._is_new_beside_empty_list(place, value, records):
                self._error = self._error or (place, _NEW)
            elif kind == "cursor":
                self._cursor = place if self._pages == 1 and records else None
            elif kind == "next":
                self._next, is_last = self._next or (place if value else None), is_last or not value
                is_word = is_word or (not value and _NO_WORD.fullmatch(place) is None)
            elif kind == "previous":
                self._previous = self._previous or (place if value and self._pages == 1 else None)
            elif (number := json_paths.whole_number_or_none(value)) is not None:
                numbers[place] = kind, number
        self._is_trusted = self._is_trusted and not (self._said_last and bool(records))
        self._said_last = is_word and self._next is None
        self._cursor = None if is_last else self._cursor
        if records is not None:
            self._record_decreased_total(
                {place: each for place, (kind, each) in numbers.items() if kind == "total"}, records
            )
        before = numbers if self._numbers is None else self._numbers
        self._numbers = {place: min(each, numbers[place]) for place, each in before.items() if place in numbers}

    def _record_decreased_total(self, totals: Mapping[str, int], records: int) -> None:
        """Note a total that is less than on the page before: records that follow one that left the list move forward.

        The number of records of each page, or of those from it on, is none. Beside no records, 0 may be either.
        """
        for place, number in totals.items():
            before = self._totals.get(place, number) if number else 0
            if number < before and (before, number) != (self._latest, records) and before - number != self._latest:
                self._lessened = self._lessened or f"{place} was {before:,} and then {number:,}"
        self._totals, self._latest = dict(totals), records

    def _is_failure_report(self, place: str, verdict: tuple[str, Any], records: int | None) -> bool:
        (name, value), seen = verdict, hash((place, repr(verdict)))
        if records:
            self._usual.add(seen)
            return False
        has_records, is_usual = bool(self._read), seen in self._usual
        return records == 0 and not is_usual and _may_report_error(name, value, has_records=has_records)

    def _is_new_beside_empty_list(self, place: str, member: tuple[str, Any], records: int | None) -> bool:
        """Return whether a member beside an empty list, by no known name, says what no page with records said."""
        (name, value), at = member, hash(place)
        if self._known_places.get(at):
            return False
        is_text, is_empty = isinstance(value, str | list | dict), says_there_is_no_error(value)
        if records and len(self._known_places) < _MOST_KNOWN:
            self._known_places[at] = not is_empty or (is_text and bool(value))
        if records != 0 or not self._read or len(self._known_places) == _MOST_KNOWN or is_empty:
            return False
        if _OF_FAULT.search(name):
            return True
        is_usual = at in self._known_places and not is_text  # a number or word of truth that may differ
        return not (is_usual or _OF_PAGE.fullmatch(name) or _says_no_records(value))

    def _is_full_without_next_header(self, answer: ApiAnswer, records: int) -> bool:
        """Return whether a full first page lacks the header of a next one, or is the only page that there can be.

        Of several pages, the last may lack it. Who asks for one record wants no other.
        """
        if self._pages > 1 or self.size is None or self.size[1] != records or self.size[0] in self._ignored:
            return False
        return records > 1 if self._is_single else self._header not in {None, *answer.headers, *self._ignored}

    @property
    def place_of_error(self) -> str | None:
        """The JSON pointer of the member for `sign_of_error`, after the name of a header that has it; or None."""
        return None if self._error is None else self._error[0]

    @property
    def sign_of_error(self) -> str | None:
        """What shows that a page is not what was asked for, or None."""
        return None if self._error is None else " ".join(self._error)

    def sign_of_more_records(self, *, is_stopped: bool = False, is_by_position: bool = False) -> str | None:
        """Return what shows after the last page that there are more records than were read, or None.

        Args:
            is_by_position: Whether the pages are cut off by position, so that one record that leaves hides another.
            is_stopped: Whether the latest page is the last one as `Stop` declares, whatever cursor it has.
        """
        if self.sign_of_error is not None:
            return self.sign_of_error
        if self._counts and self._previous is not None:
            return f"{self._previous} of the first page tells of a page before it"
        if is_by_position and self._lessened is not None and not self._compares_total:
            return f"{self._lessened}, so that records may have moved to a page that was read"
        for place, (kind, number) in (self._numbers or {}).items():
            if kind == "total" and self._read is not None and not self._compares_total and number > self._read:
                return f"{place} is {number:,}, and {self._read:,} were read"
            if kind == "pages" and number > self._pages:
                return f"{place} is {number:,}"
        return self.sign_of_next_page if not is_stopped and (self._is_empty or not self._ends_empty) else None

    @property
    def sign_of_next_page(self) -> str | None:
        """What in the latest page tells of a next one, or None."""
        following = self._next or (None if self.has_all_stated_records else self._cursor)
        return None if following is None else f"{following} tells of a next page"

    @property
    def is_last_page_stated(self) -> bool:
        """Whether the latest page states that none follows, and no page did so wrongly."""
        return self._said_last and self._is_trusted

    @property
    def may_be_cut(self) -> bool:
        """Whether the only page is as long as was asked for, and no sign says whether there are more records."""
        return self._is_cut and not self.has_all_stated_records

    @property
    def has_all_stated_records(self) -> bool:
        return any(kind == "total" and number == self._read for kind, number in (self._numbers or {}).values())

    def _signs_in_answer(self, answer: ApiAnswer) -> Iterator[tuple[str, str, Any]]:
        for name, value in answer.headers.items():
            if name in _JSON_HEADERS and isinstance(described := _json_or_none(value), dict):
                yield from islice(self._signs_in_members(described, name, 1), _MEMBERS)
            elif (found := _page_sign_kind_and_value(_HEADER.sub("", name, count=1), value)) is not None:
                yield name, *found
        for name in _CONTENT_RANGES:
            _, of, total = answer.headers.get(name, "").partition("/")
            if of:
                yield name, "total", total
        links = answer.headers.get("link", "")
        if _link_target_or_none(links, "next") is not None:
            yield "link", "next", True
        elif (number := _page_number_in_address(_link_target_or_none(links, "last"))) is not None:
            yield "link", "pages", number
        if _link_target_or_none(links, "prev") is not None:
            yield "link", "previous", True
        yield from islice(self._signs_in_members(answer.body, "", 0), _MEMBERS)

    def _signs_in_members(self, value: Any, place: str, depth: int) -> Iterator[tuple[str, str, Any]]:
        if not isinstance(value, dict) or depth >= _DEEPEST:
            return
        for name, member in value.items():
            path = f"{place}/{name.replace('~', '~0').replace('/', '~1')}"
            if path == self._records:
                continue
            if (
                found := _sign_kind_and_value(name, member)
                or self._sign_kind_and_value_among_others(value, place, name)
            ) is not None:
                yield path, *found
            plain = json_paths.member_name_without_separators(name)
            is_described = _REPORT.fullmatch(plain) is not None or json_paths.is_envelope_name(name)
            if is_described or (self._records or "").startswith(f"{path}/"):
                yield from self._signs_in_members(member, path, depth + 1)
            elif not place.endswith("links") and (
                found is None or (found[0] == "verdict" and _MESSAGE.fullmatch(plain))
            ):
                yield path, "other", (plain, member)

    def _sign_kind_and_value_among_others(
        self, around: Mapping[str, Any], place: str, name: str
    ) -> tuple[str, Any] | None:
        plain, value = json_paths.member_name_without_separators(name), around[name]
        is_beside = (self._records or "/").rpartition("/")[0] == place
        if (
            plain == "cursor"
            and is_beside
            and isinstance(value, str)
            and json_paths.member_states_that_more_follow("next", value)
        ):
            return "cursor", None
        if plain == "length" and is_beside and len(around) == 2:  # of Odoo; others give the size of a page so
            return "total", value
        if _TEXT_OF_FAULT.fullmatch(plain) or _MESSAGE.fullmatch(plain):
            is_well = any(map(_says_success, map(json_paths.member_name_without_separators, around), around.values()))
            return ("none", None) if is_well else _verdict_sign(name, value)
        if _WARNING.fullmatch(plain) and _OUTAGE.search(_SEPARATORS.sub("_", str(value).lower())):
            return _verdict_sign(name, value)
        is_verdict = _matches_any(plain, _FAULT, _SUCCESS, _CODE, _STATUS, _WHOLE)
        return _verdict_sign(name, value) if is_verdict else None


def sign_of_error_beside_empty_list(
    answer: ApiAnswer, records: str, ignored: Collection[str] = (), other: ApiAnswer | None = None
) -> str | None:
    """Return what shows that *answer* without a record failed, or None. *other* is one with a record."""
    return collect_signs_beside_empty_list(answer, records, ignored, other).sign_of_error


def sign_of_incomplete_record(
    answer: ApiAnswer, place: str, ignored: Collection[str] = (), other: ApiAnswer | None = None
) -> str | None:
    """Return what shows that *answer* has an error in place of the one record at *place*, or a part of it, or None.

    A list there has the rows of one record. Without a place the answer is the record, which may have an error of its
    own: it is none if it has nothing else, and the record in *other* has other members.
    """
    if answer.status in _NO_RECORD:
        return _NO_RECORD[answer.status]
    found = answer.at(place)
    if not found or (isinstance(found, dict) and all(value is None for value in found.values())):
        return sign_of_error_beside_empty_list(answer, place, ignored, other)
    if isinstance(found, list):
        signs = collect_signs_beside_empty_list(answer, place, ignored, uncounted_records=len(found))
        return signs.sign_of_more_records()
    if place:
        return collect_signs_beside_empty_list(answer, place, ignored, uncounted_records=1).sign_of_error
    if not isinstance(found, dict) or (
        other is not None and isinstance(other.body, dict) and {*found} == {*other.body}
    ):
        return None
    told = [
        json_paths.member_name_without_separators(name)
        for name, value in found.items()
        if value not in (None, "", [], {})
    ]
    is_report = all(_matches_any(name, *_REPORTED) for name in told)
    is_word = len(told) == 1 and (_MESSAGE.fullmatch(told[0]) or _STATUS.fullmatch(told[0]))
    return sign_of_error_beside_empty_list(answer, place, ignored) if is_report and not is_word else None


def _verdict_sign(name: str, value: Any) -> tuple[str, tuple[str, Any]]:
    return "verdict", (json_paths.member_name_without_separators(name), value)


def _sign_kind_and_value(name: str, value: Any) -> tuple[str, Any] | None:
    plain = json_paths.member_name_without_separators(name)
    if (found := _page_sign_kind_and_value(name, value)) is not None:
        return found
    if plain in _FIRST and value is False:
        return "previous", True
    if plain in json_paths.LINKS and isinstance(value, list):
        return "next", any(map(json_paths.is_next_link, value))
    return ("error", None) if _reports_error(plain, value) else None


def _page_sign_kind_and_value(name: str, value: Any) -> tuple[str, Any] | None:
    """Return what a member or header says about pages and numbers of records, or None."""
    kind = json_paths.pagination_member_kind(name)
    if kind == "pages" and isinstance(value, bool):
        return "next", not value  # it says whether this is the last page
    if kind in {"total", "pages"}:
        return kind, value
    if kind == "previous":
        return "previous", json_paths.member_states_that_more_follow(kind, value)
    if kind is not None:
        return "next", json_paths.member_states_next_page(name, value)
    is_left = _LEFT.fullmatch(
        json_paths.member_name_without_separators(name)
    ) and json_paths.member_states_that_more_follow("more", value)
    return ("next", True) if is_left else None


def collect_signs_beside_empty_list(
    answer: ApiAnswer,
    records: str | None,
    ignored: Collection[str] = (),
    other: ApiAnswer | None = None,
    *,
    uncounted_records: int = 0,
) -> SignsOfUnreadRecords:
    """Return the signs of an answer that has nothing at the JSON pointer *records*, and that no page follows.

    Args:
        other: An answer to the same request for another record, which has one.
        uncounted_records: How many records it has there that do not count.
    """
    signs = SignsOfUnreadRecords(Paginator(), records, ignored)
    if other is not None:
        signs.add_page(other, 1)
    signs.add_page(answer, uncounted_records)
    return signs


def member_reporting_failure(record: Any) -> str | None:
    """Return the member of a record in an answer that says that the request failed, or None.

    Only its errors and its success count: a status or a code may be the record's own.
    """
    for name, value in record.items() if isinstance(record, Mapping) else ():
        plain = json_paths.member_name_without_separators(name)
        if _REFUSAL.fullmatch(plain) and _may_report_error(plain, value, has_records=False):
            return str(name)
    return None


def _page_size_name_and_number(params: Iterable[tuple[str, str | int | None]]) -> tuple[str, int] | None:
    for name, value in params:
        if _SIZE.fullmatch(json_paths.member_name_without_separators(name)) and (
            number := json_paths.whole_number_or_none(value)
        ):
            return name, number
    return None


def _json_or_none(text: str) -> Any:
    try:
        return exact_json.loads(text)
    except ValueError:
        return None


def _reports_error(name: str, value: Any) -> bool:
    if _ERROR.fullmatch(name):
        return isinstance(value, str | list | dict) and not says_there_is_no_error(value)
    if _SUCCESS.fullmatch(name):
        return value is False
    if _PARTIAL.fullmatch(name):
        return value is True
    if name == "shards" and isinstance(value, Mapping):  # of Elasticsearch
        failed, total, successful = map(json_paths.whole_number_or_none, map(value.get, _SHARDS))
        return bool(failed) or (total is not None and successful is not None and successful < total)
    return name == "status" and isinstance(value, str) and value.lower() in _FAILED


def _may_report_error(name: str, value: Any, *, has_records: bool) -> bool:
    """Return whether a member beside an empty list looks like an error. After records, any unusual code does."""
    if _matches_any(name, _FAULT, _TEXT_OF_FAULT, _WARNING):
        return not says_there_is_no_error(value)
    if _SUCCESS.fullmatch(name):
        return str(value).lower() in _FALSE or _is_failure_word_or_negative(value)
    if isinstance(value, bool | dict | list) or value is None:
        return has_records and value is False and _WHOLE.fullmatch(name) is not None
    number = json_paths.whole_number_or_none(value)
    if number is None or number < 0:
        is_code = (
            has_records
            and _CODE.fullmatch(name) is not None
            and not (says_there_is_no_error(value) or _says_no_records(value))
        )
        is_unfinished = (
            has_records and _UNFINISHED.fullmatch(json_paths.member_name_without_separators(str(value))) is not None
        )
        return is_code or is_unfinished or _is_failure_word_or_negative(value)
    is_unusual = has_records and number != 1 and not says_there_is_no_error(value) and _CODE.fullmatch(name) is not None
    return number != _NOT_FOUND and (400 <= number < 600 or is_unusual)


def _says_success(name: str, value: Any) -> bool:
    if _SUCCESS.fullmatch(name):
        return value is True or str(value).lower() in {"1", "true"}
    if value == "" or not isinstance(value, str | int) or not says_there_is_no_error(value):
        return False
    is_code = _FAULT.fullmatch(name) or (_CODE.fullmatch(name) and not isinstance(value, bool))
    return bool(is_code) or (_STATUS.fullmatch(name) is not None and str(value).lower() not in _FALSE)


def says_there_is_no_error(value: Any) -> bool:
    """Return whether *value* at the place of an error says that there is none."""
    if isinstance(value, list):
        return all(
            says_there_is_no_error(each) and not (isinstance(each, dict) and _has_zero_that_is_no_code(each))
            for each in value
        )
    if isinstance(value, dict):
        return all(map(says_there_is_no_error, value.values()))
    return (
        value is None
        or value is False
        or _FINE.fullmatch(json_paths.member_name_without_separators(str(value))) is not None
    )


def _has_zero_that_is_no_code(item: Mapping[str, Any]) -> bool:
    """Return whether a member that is no code has a number, such as the one of a shard that failed."""
    plain = ((json_paths.member_name_without_separators(name), value) for name, value in item.items())
    codes = _CODE, _FAULT, _STATUS
    return any(json_paths.whole_number_or_none(value) == 0 and not _matches_any(name, *codes) for name, value in plain)


def _matches_any(name: str, *forms: re.Pattern[str]) -> bool:
    return any(form.fullmatch(name) for form in forms)


def _is_failure_word_or_negative(value: Any) -> bool:
    if isinstance(value, str):
        return _FAILURE.search(_SEPARATORS.sub("_", value.lower())) is not None
    return isinstance(value, int) and value < 0


def _says_no_records(value: Any) -> bool:
    return isinstance(value, str | list) and _NONE_LEFT.search(str(value).lower()) is not None


def _link_target_or_none(field: str, relation: str) -> str | None:
    try:
        return link_target(field, relation)
    except ValueError:  # the paginator that reads it reports the error
        return None


def _page_number_in_address(address: str | None) -> int | None:
    """Return the number of the page at *address*; None if it names none."""
    params = parse_qsl(urlsplit(address or "").query)
    return next(
        (json_paths.whole_number_or_none(value) for name, value in params if names_a_page_number(name)),
        None,
    )
