"""A client for reading an HTTP API: paced by its rate limit, retried, page by page."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from msgspec import Struct

from crossdock.errors import (
    ConnectorError,
    RefusedError,
    RemoteError,
    StoppedError,
    UnauthorizedError,
    UnavailableError,
)
from crossdock.pacing.answer_headers import cache_age_s, header_showing_cache_hit, server_clock_lag_s
from crossdock.reading.sources import errors_in_api_answers, path_filling_and_answered_records
from crossdock.reading.sources.api_declaration import Api
from crossdock.reading.sources.api_request_sender import ApiRequestSender
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer, ApiRequest, Params, parameter_pairs
from crossdock.reading.sources.api_token_buckets import RequestAllowanceOfRun
from crossdock.reading.sources.list_completeness_evidence import (
    USUAL_DEFAULT_SIZES,
    USUAL_PAGE_LIMITS,
    DoubtfulListError,
    IncompleteListError,
    ListEvidence,
    list_changed_error,
    params_missing_in_next_link,
    repeated_page_error,
)
from crossdock.reading.sources.pagination import AT_FIRST, LinkHeader, Offset, PageNumber, Paginator
from crossdock.reading.sources.retried_requests import RequestRefusedError, RetryingRequestSender, Smaller
from crossdock.reading.sources.run_context import SourceContext
from crossdock.reading.sources.signs_of_unread_records import SignsOfUnreadRecords
from crossdock.values.author_code_errors import type_name_of_wrong_value
from crossdock.values.clock import InterruptibleClock
from crossdock.values.json_paths import (
    MISSING,
    copy_with_value_at_path,
    list_at_pointer_with_asterisk,
    value_at_pointer_or_missing,
)
from crossdock.values.web_address_checks import address_within_origin, other_origin_text_and_hint

MAX_PAGES = 100_000
MAX_EMPTY_PAGES = 1_000  # in a row; filters of some APIs leave out all records of a page
_MORE = (
    "check how the API splits the list into pages, and declare it; what was read is delivered, and nothing counts as"
    " gone. If what is named here means something else, add it to 'ignore' of the pagination"
)
_LAST_IS_GONE = "the last record of it is not listed any more, and an API may find none after such a record"
_NO_CONTENT = 204
_NO_LIST = {  # RFC 9110, 15.3.3, and RFC 4918, 11.1
    202: "is not ready: the API has only accepted the request",
    207: "has several answers, of which some may be errors",
}
_SIZE_PARAMS = "limit", "per_page", "page_size", "pageSize", "size", "$top", "$limit", "limit_page_length"
_PART_WITH_ID = re.compile(r"[^/]*[0-9][^/]*")
MAX_ADDRESS = 8_000  # characters; RFC 9110 section 4.1 recommends to support at least this many


class ApiClient(AbstractContextManager["ApiClient"]):
    """Reads the API of one connection. For one thread.

    Requests must only read: one that fails is sent again, up to five times in all. A request that the rate limit
    refuses is sent again until it is answered, for up to half an hour.

    Args:
        run: Where the run is executed; ``ctx.run``.
        connection: Its name; `SourceContext.limits` has the rate limit as the last run left it, and
            `SourceContext.buckets` what runs that read the API at the same time share.

    Attributes:
        allowance: What the rate limit permits, and how much of it was used.
    """

    def __init__(self, api: Api, run: SourceContext, connection: str = "api") -> None:
        self._api, self._run, self._base_url = api, run, api.base_url.rstrip("/")
        self._connection = connection
        self._http = ApiRequestSender(api, run.clock, run.transport, run.recorded)
        self._leave = ExitStack()
        bucket = run.buckets.acquire_bucket(connection, run.clock, api.rate, run.limits.get(connection))
        self._leave.callback(run.buckets.release_bucket, bucket)
        clock = InterruptibleClock(run.clock, run.interrupt)
        self.allowance = RequestAllowanceOfRun(clock, bucket, run.progress.waiting, live=run.live)
        self._answers: dict[int, int] = {}  # number of answers by address
        self._size_params: dict[str, Sequence[str]] = {}  # that may be heeded, by path without ids
        self._pages_given: dict[int, int] = {}  # hashes of pages with records, and of the requests for them
        rng = random.Random()  # noqa: S311  jitter needs no secrecy
        self._retried = RetryingRequestSender(
            clock, self.allowance, api.throttling, self._http.redacted, rng, api.status_of_failure
        )

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        json: Any = None,
        form: Mapping[str, str] | None = None,
        graphql: str | None = None,
        variables: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiAnswer:
        """Send one request.

        Args:
            path: Below the base URL.
            params: A list is a repeated parameter, None is left out. Values are never shown.
            json: The body as a JSON value.
            form: The body as the fields of a form.
            graphql: A query, sent as JSON with *variables*.

        Raises:
            UnauthorizedError: If the credentials are refused.
            UnavailableError: If the request failed five times, or was throttled for half an hour.
            RemoteError: If the API refused it for another reason; a `GraphQLError` if a GraphQL query has errors.
            RefusedError: If the answer is not JSON.
        """
        request = ApiRequest(method, path, params or {}, {}, json, form, graphql, variables or {}, headers or {})
        return self._send_and_raise_on_errors(request, lambda _: None, frozenset())[1]

    def get(self, path: str, params: Params | None = None) -> ApiAnswer:
        """`request` with GET."""
        return self.request("GET", path, params=params)

    def post(self, path: str, *, json: Any = None, form: Mapping[str, str] | None = None) -> ApiAnswer:
        """`request` with POST, for a search or a login; the request may be sent more than once."""
        return self.request("POST", path, json=json, form=form)

    def pages(  # noqa: PLR0913  public keyword arguments
        self,
        path: str,
        params: Params | None = None,
        *,
        paginator: Paginator | None = None,
        json: Any = None,
        graphql: str | None = None,
        variables: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        records: str | None = None,
        key: str | Sequence[str] = (),
        shared_key: str | Sequence[str] = (),
        ignore: Collection[str] = (),
    ) -> Iterator[ApiAnswer]:
        """The pages of a list. An empty page does not end it, unless *paginator* counts pages or records.

        A page that has only records of earlier pages is refused: an API that does not know a parameter ignores it. At
        the end, what the answers say beside the list is compared with what was read: a number of records or pages, or a
        next page.

        Args:
            paginator: Of `crossdock.sources`; by default `LinkHeader`.
            records: A JSON pointer to the list of records, as of `ApiAnswer.items`. By default it is where *paginator*
                says, or the only list of objects in a page.
            key: The dotted paths of a record's key, by which records are known again. By default all of a record is
                compared, which finds no repeated page if a member has another value in each answer.
            shared_key: Without *key*: the dotted paths of one that several records may have. A list whose pages differ
                only by such members, apart from this key, is then refused after a thousand pages.
            ignore: JSON pointers to members, and names of headers, that look like such a number or next page and are
                not.
            json: A JSON body, posted with each request.
            graphql: A query, posted with *variables*.
            headers: Sent with each request, such as ``If-Modified-Since``.

        Raises:
            ConnectorError: If the request is a POST, and *paginator* does not say where its parameters are.
            DoubtfulListError: After the last page, if the list has changed while it was read, or if the answers
                state more records, so that some may be missing.
            RefusedError: If the next page's address is invalid, on another host or a loop; if the API states another
                number of records than it gave; or as *paginator*.
            CrossdockError: As `request`.
        """
        given: object = paginator
        if given is not None and not isinstance(given, Paginator):
            raise TypeError(
                f"paginator is {type_name_of_wrong_value(given)} instead of one such as PageNumber('/items', 'page')"
            )
        paginator, method = paginator or LinkHeader(), "GET" if json is None and graphql is None else "POST"
        if method == "POST" and paginator.has_params and paginator.place is None:
            message = f"{type(paginator).__name__} does not say where a POST has its parameters"
            hint = "give it place='body', place='variables' or place='query'"
            raise ConnectorError(message, where=path, hint=hint, code="connector_rows_wrong")
        sent_as: Any = {"json": json, "graphql": graphql, "variables": variables or {}, "headers": headers or {}}
        made = ApiRequest(method, path, params or {}, **sent_as)
        paths, shared = ((each,) if isinstance(each, str) else each for each in (key, shared_key))
        collected = ListEvidence(
            paths, counted=paginator.counted, by_record=paginator.by_record, shared_key=() if paths else shared
        )
        evidence = None if paginator.repeats else collected
        sent = frozenset(parameter_pairs(params or {}))
        signs = SignsOfUnreadRecords(paginator, records and records.partition("/*")[0], ignore, made.numbers)
        with self._run.open_lists.open_list(evidence):
            yield from self._read_pages_to_end(
                _ListReading(paginator.first(made), paginator, evidence, signs, records, sent)
            )

    def expand(
        self,
        items: Iterable[Any],
        path: str,
        *,
        into: str | None = None,
        record: str = "",
        records: str | None = None,
        params: Params | None = None,
        paginator: Paginator | None = None,
        ignore: Collection[str] = (),
    ) -> list[Any]:
        """Return *items* with what a request for each of them answers: the whole record, a list below it, or another
        record that it names.

        Args:
            items: Records of a list. One that is no object, or lacks what *path* names, is returned as it is, without
                a request, so that its mapping says what it lacks.
            path: With members of the item in braces, as dotted paths: ``/orders/{id}/lines``.
            into: The member that gets the answer, null without a request. By default the answer is the item.
            record: A JSON pointer to the one record in the answer; ``""`` if it is the answer.
            records: A JSON pointer to a list in place of one record. All of its pages are read; those of several pages
                until two readings agree, unless *paginator* reads by record.
            params: The same for each request.
            paginator: How a list is split, as for `pages`.
            ignore: As for `pages`; members beside a record or list that look like an error and are none, too.

        Raises:
            RefusedError: If an answer has no record or no list there, an error or a part in its place, or another list
                each time that it is read.
            StoppedError: If the run is interrupted.
            CrossdockError: As `request` and `pages`.
        """
        found = list[Any]()
        for item in items:
            if self._run.interrupt.is_set():
                raise StoppedError("stopped between two records", hint="run again to continue")
            address = (
                path_filling_and_answered_records.fill_path_from_item(path, item) if isinstance(item, dict) else None
            )
            part = (
                None
                if address is None
                else self._request_record_or_list(address, record, records, params, paginator, ignore)
            )
            if into is not None and isinstance(item, dict):
                found.append({**item, into: part})
            else:
                found.append(item if address is None else part)
        return found

    def _request_record_or_list(
        self,
        path: str,
        record: str,
        records: str | None,
        params: Params | None,
        paginator: Paginator | None,
        ignore: Collection[str],
    ) -> Any:
        if records is None:
            return path_filling_and_answered_records.record_at_pointer_or_raise(self.get(path, params), record, ignore)
        read = partial(self.pages, path, params, paginator=paginator, records=records, ignore=ignore)
        return path_filling_and_answered_records.read_whole_list(
            read, records, path, by_record=paginator is not None and paginator.by_record
        )

    def _read_pages_to_end(self, read: _ListReading) -> Iterator[ApiAnswer]:
        request, paginator, evidence = read.first, read.paginator, read.evidence
        seen = {hash(request.position)}  # hashes, since the addresses could take a gigabyte
        page: ApiAnswer | None = None
        is_end_stated = is_stopped = False
        for _ in range(MAX_PAGES):
            taken = self._read_page_unless_ended(request, read, page, is_end_stated=is_end_stated)
            if taken is None:
                is_stopped = True
                break
            request, page, found = taken
            self._record_doubt_if_repeated_or_cached(request, page, is_empty=not found)
            yield page
            if is_stopped := paginator.stop.when is not None and paginator.stop.when(page):
                break
            following = self._following_request(request, page, paginator)
            if following is None or (
                found == [] and (following.position == request.position or read.signs.is_last_page_stated)
            ):
                break  # some APIs always give a cursor, and with an empty page that of the request or another one
            if found:
                read.is_last_needed = paginator.needs_record(found[-1], following)
            if evidence is not None:
                evidence.detect_paging_by_position(
                    *(replace(each, path=self._request_address(each)) for each in (request, following))
                )
            is_end_stated = _is_end_stated(request, page, paginator, evidence)
            _raise_if_position_was_requested_before(following, seen, paginator, page)
            request = following
        else:
            raise RefusedError(
                f"more than {MAX_PAGES} pages", where=None if page is None else page.address, code="list_without_end"
            )
        if evidence is not None and page is not None:
            self._raise_or_warn_if_end_is_doubtful(read, evidence, page, is_stopped=is_stopped)
        if page is not None and paginator.stop.when is not None and not is_stopped:
            raise _doubtful_list_error("no page says that it is the last one, as stop.when declares", page)

    def _read_page_unless_ended(
        self, request: ApiRequest, read: _ListReading, before: ApiAnswer | None, *, is_end_stated: bool
    ) -> tuple[ApiRequest, ApiAnswer, list[Any] | None] | None:
        """Return the page, its request and its records; None if the API answers that there is none after *before*."""
        paginator, evidence, is_over = read.paginator, read.evidence, is_end_stated or read.signs.is_last_page_stated
        try:
            smaller = partial(paginator.smaller, read=None if evidence is None else evidence.read)
            request, page = self._request_list_page(request, smaller, read.sent)
            if page.status in request.ends:
                is_said = page.status == _NO_CONTENT or (page.status in AT_FIRST and before is None)
                if not (is_said or is_over):
                    self._raise_unless_status_ends_list(request, page, before, read)
                _raise_if_next_page_is_announced(before, read)
                return None
            page = _add_missing_empty_list(page, read)
            found = None if evidence is None else _records_of_page_or_none(page, paginator, read.records)
        except RequestRefusedError:
            if not is_over:
                raise
            _raise_if_next_page_is_announced(before, read)
            return None  # some APIs refuse the page after the last one
        if (is_end_stated and not found) or (is_over and found is None and evidence is not None):
            read.signs.add_page(page, 0)
            if read.signs.sign_of_error is not None:  # the stated end may be wrong, and nothing else shows it
                raise _doubtful_list_error(read.signs.sign_of_error, page)
            return None
        if evidence is not None and found is not None and not _add_page_to_evidence(evidence, found, paginator, page):
            _raise_unless_repeated_page_is_last(page, read, evidence, is_over=is_over)
            return None  # others give the last one again
        read.signs.add_page(page, None if found is None else len(found))
        if read.signs.sign_of_error is not None:
            if not found or evidence is None:
                raise _doubtful_list_error(read.signs.sign_of_error, page)
            evidence.is_doubted = True
        read.record_page_size(request, found or ())
        return request, page, found

    def _raise_unless_status_ends_list(
        self, request: ApiRequest, page: ApiAnswer, before: ApiAnswer | None, read: _ListReading
    ) -> None:
        """Check that a status that ends a list is no error and no limit of the API.

        Nothing excludes a limit but the declared one; an error would not come again between answers.
        """
        if before is None:
            message = f"responded with HTTP {page.status} in place of the first page"
            raise RemoteError(message, where=page.address, code="list_unavailable")
        if page.status in AT_FIRST:
            raise _doubtful_list_error(
                f"HTTP {page.status} says that a page is unchanged, and not that it is the last one", page
            )
        if read.declared_api_cap is not None and read.evidence is not None and read.latest is not None:
            _, again = self._request_list_page(read.latest, lambda _: None, read.sent)
            _, after = self._request_list_page(request, lambda _: None, read.sent)
            found = [
                _records_of_page_or_none(each, read.paginator, read.records)
                for each in (before, again)
                if each.status == 200
            ]
            is_same = len(found) == 2 and read.evidence.pages_have_same_records(found[0] or (), found[1] or ())
            if is_same and after.status == page.status:
                return
        sign = f"HTTP {page.status} may be an error or a limit of the API"
        raise _doubtful_list_error(
            f"{sign}; declare its total or number of pages, or cap if the API states neither", page
        )

    def _request_list_page(
        self, request: ApiRequest, smaller: Smaller, sent: frozenset[tuple[str, str]]
    ) -> tuple[ApiRequest, ApiAnswer]:
        request, answer = self._send_and_raise_on_errors(request, smaller, sent)
        if answer.status in _NO_LIST:
            raise RefusedError(
                f"{_NO_LIST[answer.status]} (HTTP {answer.status})", where=answer.address, code="list_unavailable"
            )
        return request, answer

    def _record_doubt_if_repeated_or_cached(self, request: ApiRequest, page: ApiAnswer, *, is_empty: bool) -> None:
        """Note what lets a page belong to another moment or request, as answers from caches do."""
        lists, asked = self._run.open_lists, hash(repr((request.path, request.query, request.content)))
        if not is_empty and self._pages_given.setdefault(self._http.digest, asked) != asked:
            lists.require_second_reading()
        if age := cache_age_s(page.headers):
            self.doubt(page, f"the list comes from a cache, and is {age:,} s old", is_incomplete=True)
        elif hit := header_showing_cache_hit(page.headers):
            self.doubt(page, f"the list comes from a cache ({hit}), and may be old", is_incomplete=True)

    def doubt(self, page: ApiAnswer, text: str, *, is_incomplete: bool = False) -> None:
        """Mark the list of *page* as no evidence for removals, and warn of the first reason.

        Args:
            is_incomplete: Whether the list may lack records, so that no cursor moves that needs all of them.
        """
        if self._run.open_lists.add_doubt(text, is_incomplete=is_incomplete):
            self._warn_of_doubtful_list(page, text)

    def _raise_or_warn_if_end_is_doubtful(
        self, read: _ListReading, evidence: ListEvidence, page: ApiAnswer, *, is_stopped: bool
    ) -> None:
        evidence.raise_if_end_is_doubtful(page)
        if (
            read.may_end_too_early
            and not evidence.counted
            and not evidence.has_all_stated_records
            and not self._is_last_record_listed(read)
        ):
            raise list_changed_error(_LAST_IS_GONE, page.address)
        is_last = is_stopped and read.paginator.stop.when is not None
        sign = (
            read.signs.sign_of_more_records(is_stopped=is_last, is_by_position=evidence.counted)
            or self._why_only_page_may_be_cut(read)
            or self._why_server_may_cut_pages(read, evidence)
            or self._why_pages_may_follow_an_empty_one(read, evidence)
        )
        if sign is not None:
            raise _doubtful_list_error(sign, page)
        doubt, paginator = evidence.doubtful_length_text, read.paginator
        if doubt is None or read.declared_api_cap is not None:
            return
        text = f"{doubt}; if it is whole, declare a larger cap" if isinstance(paginator, PageNumber | Offset) else doubt
        self._run.open_lists.add_doubt(text, is_incomplete=True)
        self._warn_of_doubtful_list(page, text)

    def _is_last_record_listed(self, read: _ListReading) -> bool:
        """Return whether the last record that was read is still there: servers find nothing after one that is not."""
        if read.filled is None or read.evidence is None:
            return True
        request, last = read.filled
        try:
            _, again = self._request_list_page(request, lambda _: None, read.sent)
            listed = _records_of_page_or_none(again, read.paginator, read.records) or ()
        except (RefusedError, RemoteError) as error:
            if isinstance(error, UnauthorizedError | UnavailableError):
                raise
            return False  # the record before this page is gone, too
        return any(read.evidence.pages_have_same_records([each], [last]) for each in listed)

    def _why_only_page_may_be_cut(self, read: _ListReading) -> str | None:
        """Return why an only page, which is as long as was asked for, may not be the whole list, or None.

        Proxies drop the header of a next page: asked for smaller pages, the API must announce one; asked for more than
        one record, it has no other. Of an answer that is declared to be the whole list, it must ignore the size.
        """
        if read.signs.size is None:
            return self._why_default_size_may_cut_list(read)
        if not read.signs.may_be_cut:
            return None
        param, size = read.signs.size
        header, other = read.paginator.next_header, size - 1 or 2
        try:
            request, answer = self._request_list_page(read.first.with_param(param, other), lambda _: None, read.sent)
            found = len(_records_of_page_or_none(answer, read.paginator, read.records) or ())
            is_announced = read.paginator.following(request, answer) is not None
        except (RefusedError, RemoteError) as error:
            if isinstance(error, UnauthorizedError | UnavailableError):
                raise
            found, is_announced = 0, False
        if header is None:
            sign = f"its only page has the {size:,} records that {param} asks for, so that there may be more"
            return None if found == size else sign
        if found == min(other, size) and is_announced == (other < size):
            return None
        return f"its only page is full, and has no header {header} which would tell of a next page"

    def _why_default_size_may_cut_list(self, read: _ListReading) -> str | None:
        """Return why an only page, of which no size was asked for, may not be the whole list, or None.

        Many servers then give as many records as in a page, and say nothing of others. If one follows a usual parameter
        for the size, asked for one more record it must have no other.
        """
        number, evidence = read.first_length, read.evidence
        is_usual = number in USUAL_DEFAULT_SIZES and not read.paginator.ends_empty and read.first.method == "GET"
        if evidence is None or evidence.pages != 1 or not is_usual:
            return None
        if evidence.has_all_stated_records or read.signs.is_last_page_stated or read.signs.has_all_stated_records:
            return None
        kind = _PART_WITH_ID.sub("*", read.first.path)  # lists of single records are alike
        params, self._size_params[kind] = self._size_params.get(kind, _SIZE_PARAMS), ()
        try:
            for param in params:
                if len(self._records_of_size(read, param, number - 1)) == number - 1:
                    self._size_params[kind] = (param,)
                    is_whole = not evidence.has_new_records(self._records_of_size(read, param, number + 1))
                    more = f"and has others if {param} asks for more: send it in params, or declare the pagination"
                    return None if is_whole else f"its only page has {number:,} records, {more}"
        except UnavailableError:  # of a parameter that no one has declared
            return None
        return None

    def _records_of_size(self, read: _ListReading, param: str, size: int) -> Sequence[Any]:
        """Return the records of the first page if it has at most *size*, or none if that is refused."""
        try:
            _, answer = self._request_list_page(read.first.with_param(param, size), lambda _: None, read.sent)
            return _records_of_page_or_none(answer, read.paginator, read.records) or ()
        except UnavailableError:
            raise
        except (RefusedError, RemoteError):
            return ()

    def _why_server_may_cut_pages(self, read: _ListReading, evidence: ListEvidence) -> str | None:
        """Return why the server may give smaller pages than were asked for, and not tell of the others, or None.

        In smaller pages, the list must be the same, unless the server ignores the parameter for their size.
        """
        number, size, paginator = read.first_length, read.signs.size, read.paginator
        is_smaller = read.asked is not None and number < read.asked and number in USUAL_PAGE_LIMITS
        if size is None or not is_smaller:
            return None
        if evidence.pages == 1:
            given, following = self._probe_first_two_smaller_pages(read, size[0], number - 1)
            is_whole = len(given) == number or (len(given) == number - 1 and len(following) == 1)
        elif isinstance(paginator, PageNumber):
            _, following = self._probe_first_two_smaller_pages(read, size[0], number)
            is_whole = evidence.pages_have_same_records(following[:1], read.second)
        else:
            return None
        sign = f"the server gives {number:,} of the {read.asked:,} records that {size[0]} asks for"
        return None if is_whole else f"{sign}, and in smaller pages the list is another one: ask for fewer"

    def _why_pages_may_follow_an_empty_one(self, read: _ListReading, evidence: ListEvidence) -> str | None:
        """Return why the empty page that ended the list may not be the last one, or None.

        Some servers leave records out of their pages, such as those that the user must not see, at last all of a page.
        The last page with records is then as long as others, or earlier ones are shorter.
        """
        paginator, request = read.paginator, read.latest
        if not isinstance(paginator, PageNumber | Offset) or request is None or not read.may_have_left_out_a_page:
            return None
        if evidence.has_all_stated_records or read.signs.is_last_page_stated or read.are_pages_stated:
            return None
        at, step = int(request.page_params[paginator.param]), read.asked or read.first_length
        following = at + (1 if isinstance(paginator, PageNumber) else step)
        try:
            _, after = self._request_list_page(
                request.with_page(**{paginator.param: following}), lambda _: None, read.sent
            )
            found = _records_of_page_or_none(after, paginator, read.records) or ()
        except (RefusedError, RemoteError) as error:
            if isinstance(error, UnauthorizedError | UnavailableError):
                raise
            return None
        return f"{paginator.param}={following} has records again" if evidence.has_new_records(found) else None

    def _probe_first_two_smaller_pages(
        self, read: _ListReading, param: str, size: int
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the records of the first two pages of a list whose pages have at most *size*; none if it fails."""
        found = list[Sequence[Any]]()
        request: ApiRequest | None = read.first.with_param(param, size)
        try:
            while request is not None and len(found) < 2:
                request, answer = self._request_list_page(request, lambda _: None, read.sent)
                found.append(_records_of_page_or_none(answer, read.paginator, read.records) or ())
                read.signs.add_page(answer, len(found[-1]))
                if read.signs.sign_of_error is not None:
                    return (), ()
                request = self._following_request(request, answer, read.paginator)
        except (RefusedError, RemoteError) as error:
            if isinstance(error, UnauthorizedError | UnavailableError):
                raise
        first, second, *_ = *found, (), ()
        return first, second

    def _warn_of_doubtful_list(self, page: ApiAnswer, text: str) -> None:
        reader = self._run.open_lists.reader or self._connection
        self._run.warn(reader, f"{page.address}: {text}", code="list_doubtful")

    def _following_request(self, request: ApiRequest, page: ApiAnswer, paginator: Paginator) -> ApiRequest | None:
        """Return the request for the page after *page*, which must be on the same host."""
        following = paginator.following(request, page)
        if following is not None and following.path != request.path:
            before = replace(request, path=self._request_address(request))
            address = self._address_or_raise_if_other_host(
                _absolute_next_page_address(page, before.path, following.path), page.address
            )
            following = replace(following.following(address), params=params_missing_in_next_link(before, address))
        return following

    def download(self, url: str, path: Path) -> int:
        """Stream a file, such as a bulk export, to *path*, and return the number of its bytes.

        Credentials are sent to the API's own host only. Other hosts are read only if `Api.download_hosts` lists them.

        Raises:
            RefusedError: If *url* is on another host, or the file is larger than `Api.max_file_bytes`.
            CrossdockError: As `request`.
        """
        address = urljoin(f"{self._base_url}/", url)
        shown = self._http.redacted(urlsplit(address)._replace(query="").geturl())
        own = address_within_origin(address, self._base_url)
        if own is None and not any(
            address_within_origin(address, f"https://{host}") for host in self._api.download_hosts
        ):
            hint = "name it in download_hosts of the Api; it must be https"
            text, hint = other_origin_text_and_hint(address, self._base_url, hint)
            raise RefusedError(f"the file {text}", where=shown, hint=hint, code="next_address_refused")
        _, answer = self._retried.send_until_answered(
            ApiRequest("GET", address),
            shown,
            lambda _: self._http.download(own or address, path, authorized=own is not None),
        )
        if answer.status != 200:
            raise RefusedError(f"has no file (HTTP {answer.status})", where=shown, code="api_file_missing")
        return path.stat().st_size

    def _request_address(self, request: ApiRequest) -> str:
        path = request.path.lstrip("/")
        return urljoin(f"{self._base_url}/", path if "://" in path else f"./{path}")  # orders:search has no scheme

    def _send_and_raise_on_errors(
        self, request: ApiRequest, smaller: Smaller, sent: frozenset[tuple[str, str]]
    ) -> tuple[ApiRequest, ApiAnswer]:
        """Return the answer and the request that it answers, which is smaller than *request* after a time-out."""
        address = self._request_address(request)
        shown = self._http.redacted(_shown_address(address, request, sent))
        address = self._address_or_raise_if_other_host(address, shown)
        request, answer = self._retried.send_until_answered(
            request, shown, lambda wanted: self._http.send(address, wanted), smaller
        )
        self._record_clock_lag(answer)
        errors_in_api_answers.raise_if_graphql_errors(request, answer, shown, self._http.redacted)
        errors_in_api_answers.raise_if_json_rpc_error(request, answer, shown, self._http.redacted)
        return request, replace(
            answer,
            address=self._address_with_answer_number(self._http.redacted(_shown_address(address, request, sent))),
        )

    def _record_clock_lag(self, answer: ApiAnswer) -> None:
        """Note by how much the API's clock is behind this machine's, from its freshest answer."""
        found, clocks = server_clock_lag_s(answer.headers, self._run.clock.now().timestamp()), self._run.clocks_behind_s
        if found is not None:
            clocks[self._connection] = min(found, clocks.get(self._connection, found))

    def _address_with_answer_number(self, shown: str) -> str:
        """Add a number to *shown* from its second answer on, because bodies and masked values do not show in an
        address.
        """
        number = self._answers[hash(shown)] = self._answers.get(hash(shown), 0) + 1
        return shown if number == 1 else f"{shown} ({number})"

    def _address_or_raise_if_other_host(self, address: str, where: str) -> str:
        """Return *address* as `address_within_origin` does. Raises RefusedError if it is on another host."""
        own = address_within_origin(address, self._base_url)
        if own is None:
            text, hint = other_origin_text_and_hint(
                address, self._base_url, "The credentials would be sent to another host."
            )
            raise RefusedError(f"the address {text}", where=where, hint=hint, code="next_address_refused")
        return own

    def close(self) -> None:
        self._leave.close()
        self._http.close()

    def __exit__(self, *_: object) -> None:
        self.close()


class _ListReading(Struct):
    """A list that is read.

    Attributes:
        first: The request for its first page.
        records: A JSON pointer to the list of records; None if it is not known.
        sent: The author's parameters, which are never shown.
        latest: The request for the latest page.
        asked: How many records the first page should have; None if that is not known.
        first_length: How many it has.
        second: The first record of the second page.
        filled: The request for the latest page with records, and its last record.
        filled_length: How many records that page has.
        is_uneven: Whether pages before it are of different lengths.
        is_last_needed: Whether the API may find what follows the last record only as long as it has this record.
    """

    first: ApiRequest
    paginator: Paginator
    evidence: ListEvidence | None
    signs: SignsOfUnreadRecords
    records: str | None
    sent: frozenset[tuple[str, str]]
    latest: ApiRequest | None = None
    asked: int | None = None
    first_length: int = 0
    second: Sequence[Any] = ()
    filled: tuple[ApiRequest, Any] | None = None
    filled_length: int = 0
    is_uneven: bool = False
    is_last_needed: bool = False

    def record_page_size(self, request: ApiRequest, found: Sequence[Any]) -> None:
        """Note what shows later whether a page was cut by the server."""
        if self.latest is None:
            name, size = self.signs.size or ("", None)
            asked = request.page_params.get(name, size)
            self.asked, self.first_length = asked if isinstance(asked, int) else None, len(found)
        elif not self.second:
            self.second = found[:1]
        if found:
            self.is_uneven = self.is_uneven or self.filled_length not in {0, self.first_length}
            self.filled, self.filled_length = (request, found[-1]), len(found)
        self.latest = request

    @property
    def _ended_with_empty_page(self) -> bool:
        return self.filled is not None and self.latest is not self.filled[0]

    @property
    def _length_of_full_page(self) -> int | None:
        """The length that shows that the page before the empty one is a full one; None if it is not known."""
        is_only_page = self.filled is not None and self.filled[0] is self.first
        return self.asked if is_only_page else self.first_length

    @property
    def may_have_left_out_a_page(self) -> bool:
        """Whether the list ended with a page without records, after pages that do not show that it is the last one."""
        full = self._length_of_full_page
        is_full = full is not None and self.filled_length >= full
        return self._ended_with_empty_page and (self.is_uneven or is_full)

    @property
    def are_pages_stated(self) -> bool:
        return isinstance(self.paginator, PageNumber) and self.paginator.pages is not None

    @property
    def may_end_too_early(self) -> bool:
        """Whether the list ended with no record after one that the client named, and the page before may be full."""
        may_be_full = self.filled_length >= (self._length_of_full_page or 0)
        return self._ended_with_empty_page and self.is_last_needed and may_be_full

    @property
    def declared_api_cap(self) -> int | None:
        return self.paginator.cap if isinstance(self.paginator, PageNumber | Offset) else None


def _records_of_page_or_none(answer: ApiAnswer, paginator: Paginator, records: str | None) -> list[Any] | None:
    """Return the records of a page, or None if their place is not known or has no list; the reader of the page then
    fails.

    Raises:
        ConnectorError: If *paginator* compares a total, and the place is not known.
        RefusedError: If the page has no list where *paginator* needs it.
    """
    is_stated = records is not None
    found = (
        list_at_pointer_with_asterisk(answer.body, records or "")
        if is_stated
        else paginator.listed(answer) or _only_list_of_objects(answer.body)
    )
    if isinstance(found, list):
        return found
    if records is None and paginator.total is not None:
        message = "the place of the records is not known, so that they cannot be compared with the total"
        raise ConnectorError(
            message,
            where=answer.address,
            hint="give ctx.api.pages the records, a JSON pointer",
            code="connector_rows_wrong",
        )
    return None


def _add_missing_empty_list(page: ApiAnswer, read: _ListReading) -> ApiAnswer:
    """Add an empty list to *page* if it states a total of 0 and has none, as HAL documents without records."""
    place, total = read.records and read.records.partition("/*")[0], read.paginator.total
    is_missing = place and isinstance(page.body, dict) and value_at_pointer_or_missing(page.body, place) is MISSING
    if not place or not is_missing or total is None or page.at(total) != 0:
        return page
    return replace(page, body=copy_with_value_at_path(page.body, place, []))


def _raise_unless_repeated_page_is_last(
    page: ApiAnswer, read: _ListReading, evidence: ListEvidence, *, is_over: bool
) -> None:
    """Check that a page without new records is the last one once more, and no sign of an ignored parameter."""
    repeats, has_more_pages = read.paginator.stop.repeated, evidence.pages > 1
    is_last_again = repeats and has_more_pages  # the total then shows what was passed over
    if not is_last_again and not (is_over and (has_more_pages or repeats or read.signs.is_last_page_stated)):
        raise repeated_page_error(page)
    if read.signs.sign_of_next_page is not None:
        raise _doubtful_list_error(read.signs.sign_of_next_page, page)


def _raise_if_next_page_is_announced(last: ApiAnswer | None, read: _ListReading) -> None:
    """Check that the last page, after which the API lists nothing, does not tell of another one."""
    is_counted = read.evidence is not None and read.evidence.has_all_stated_records
    if last is not None and not is_counted and read.signs.sign_of_next_page is not None:
        raise _doubtful_list_error(read.signs.sign_of_next_page, last)


def _add_page_to_evidence(evidence: ListEvidence, found: list[Any], paginator: Paginator, answer: ApiAnswer) -> bool:
    """Add *found* to *evidence*, and return whether that has new records or none at all."""
    evidence.empty_pages = 0 if found else evidence.empty_pages + 1
    if evidence.empty_pages > MAX_EMPTY_PAGES:
        message = f"is one of more than {MAX_EMPTY_PAGES:,} pages in a row without records: pagination loop"
        raise IncompleteListError(
            message, where=answer.address, hint="declare in stop how the API ends its lists", code="list_without_end"
        )
    total = paginator.stated_total(answer) if found or not evidence.pages else None
    return evidence.add_page(found, total)


def _doubtful_list_error(sign: str, page: ApiAnswer) -> DoubtfulListError:
    return DoubtfulListError(
        f"the list ended here, although {sign}", where=page.address, hint=_MORE, code="list_incomplete"
    )


def _raise_if_position_was_requested_before(
    following: ApiRequest, seen: set[int], paginator: Paginator, page: ApiAnswer
) -> None:
    """Add the position of the page after *page* to *seen*, and refuse it if it is there already."""
    place = hash(following.position)
    if place in seen and not paginator.repeats:
        raise repeated_page_error(page)
    seen.add(place)


def _is_end_stated(request: ApiRequest, page: ApiAnswer, paginator: Paginator, evidence: ListEvidence | None) -> bool:
    """Return whether the API says that *page* is the last of the pages that the client counts."""
    has_all = evidence is not None and paginator.counted and evidence.has_all_stated_records
    return has_all or paginator.is_stated_last(request, page)


def _only_list_of_objects(body: Any) -> list[Any] | None:
    found, inner = list[list[Any]](), [body]
    while inner:
        value = inner.pop()
        if isinstance(value, dict):
            inner += value.values()
        elif isinstance(value, list) and all(isinstance(each, dict) for each in value):
            found.append(value)
    return found[0] if len(found) == 1 else None


def _shown_address(address: str, request: ApiRequest, sent: frozenset[tuple[str, str]]) -> str:
    """Return *address* with the paginator's parameters; parameters in *sent* are masked."""
    parts = urlsplit(address)
    members = parse_qsl(parts.query, keep_blank_values=True)
    if not sent.isdisjoint(members):
        masked = [(name, "***" if (name, value) in sent else value) for name, value in members]
        address = parts._replace(query=urlencode(masked, safe="*")).geturl()
    shown = urlencode(request.shown_params)
    return f"{address}{'&' if parts.query else '?'}{shown}" if shown else address


def _absolute_next_page_address(page: ApiAnswer, address: str, following: str) -> str:
    if len(following) > MAX_ADDRESS:
        reason = f"the address of the next page has more than {MAX_ADDRESS:,} characters"
        raise RefusedError(reason, where=page.address, code="next_address_refused")
    try:
        return urljoin(address, following)
    except ValueError:  # its text would quote the address
        raise RefusedError(
            "the link to the next page is not a URL", where=page.address, code="next_address_refused"
        ) from None
