"""What answers say beside a list ends it in doubt if it shows that records were not read, declared or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.unit.sources.test_pagination import client

from crossdock.errors import UnavailableError
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError
from crossdock.reading.sources.signs_of_unread_records import sign_of_error_beside_empty_list
from crossdock.sources import AfterId, CursorInBody, CursorInHeader, LinkHeader, NextUrl, Offset, PageNumber, Paginator

ITEMS = [{"id": number} for number in (1, 2, 3)]
Page = dict[str, Any] | tuple[dict[str, Any], dict[str, str]]


def read(
    paginator: Paginator,
    *pages: Page,
    records: str = "/items",
    ignore: Sequence[str] = (),
    params: Mapping[str, str] | None = None,
) -> str | None:
    """Why the list of these pages is in doubt; all of its records are given nevertheless."""
    left, given = list(pages), list[Any]()

    def handle(_: httpx.Request) -> httpx.Response:
        body, headers = found if isinstance(found := left.pop(0), tuple) else (found, {})
        return httpx.Response(200, json=body, headers=headers)

    try:
        api = client(handle)
        for page in api.pages("/items", params, paginator=paginator, records=records, key="id", ignore=ignore):
            given += page.items(records)
    except DoubtfulListError as error:
        assert len(given) >= len(ITEMS)
        return str(error)
    return None


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ({"items": ITEMS, "total": 4}, "/total is 4, and 3 were read"),
        ({"items": ITEMS, "count": "25"}, "/count is 25"),
        ({"items": ITEMS, "meta": {"pagination": {"total_count": 25}}}, "/meta/pagination/total_count is 25"),
        ({"items": ITEMS, "hits": {"total": {"value": 10_000}}}, "/hits/total is 10,000"),
        ({"items": ITEMS, "@odata.count": 7}, "/@odata.count is 7"),
        ({"items": ITEMS, "page": {"totalElements": 98, "number": 1}}, "/page/totalElements is 98"),
        (({"items": ITEMS}, {"X-Total-Count": "106"}), "x-total-count is 106"),
        (({"items": ITEMS}, {"Content-Range": "items 0-2/106"}), "content-range is 106"),
        ({"items": ITEMS, "pages": 3}, "/pages is 3"),
        ({"items": ITEMS, "meta": {"last_page": 3}}, "/meta/last_page is 3"),
        (({"items": ITEMS}, {"X-WP-TotalPages": "2"}), "x-wp-totalpages is 2"),
        ({"items": ITEMS, "has_more": True}, "/has_more tells of a next page"),
        ({"items": ITEMS, "pageInfo": {"hasNextPage": True}}, "/pageInfo/hasNextPage tells"),
        ({"items": ITEMS, "next": "10"}, "/next tells of a next page"),
        ({"items": ITEMS, "nextPageToken": "abc"}, "/nextPageToken tells"),
        ({"items": ITEMS, "@odata.nextLink": "https://shop.example/api?$skip=3"}, "/@odata.nextLink tells"),
        ({"items": ITEMS, "_links": {"next": {"href": "/api/items?page=2"}}}, "/_links/next tells"),
        ({"items": ITEMS, "links": [{"rel": "self"}, {"rel": "next", "href": "/api?p=2"}]}, "/links tells"),
        (({"items": ITEMS}, {"X-Next-Page": "2"}), "x-next-page tells of a next page"),
        ({"items": ITEMS, "errors": [{"message": "shard 3 is away"}]}, "/errors reports an error"),
        ({"items": ITEMS, "error": "forbidden"}, "/error reports an error"),
        ({"items": ITEMS, "success": False}, "/success reports an error"),
        ({"items": ITEMS, "meta": {"status": "failed"}}, "/meta/status reports an error"),
        ({"items": ITEMS, "timed_out": True}, "/timed_out reports an error or a part of the list"),
        ({"items": ITEMS, "_shards": {"total": 5, "failed": 1}}, "/_shards reports an error"),
        ({"items": ITEMS, "incomplete_results": True}, "/incomplete_results reports an error"),
        ({"items": ITEMS, "status": "partial"}, "/status reports an error"),
        ({"items": ITEMS, "hits": {"total": {"value": 3, "relation": "gte"}}}, "/hits/total is 4"),
        ({"items": ITEMS, "info": {"more_records": True}}, "/info/more_records tells"),
        ({"items": ITEMS, "isLastPage": False}, "/isLastPage tells"),
        ({"items": ITEMS, "last": False}, "/last tells"),
        ({"items": ITEMS, "done": False}, "/done tells"),
        ({"items": ITEMS, "lastPage": False}, "/lastPage tells"),
        ({"items": ITEMS, "end_of_stream": False}, "/end_of_stream tells"),
        ({"items": ITEMS, "offset": "itrX/recY"}, "/offset tells"),
        ({"items": ITEMS, "LastEvaluatedKey": {"id": {"S": "3"}}}, "/LastEvaluatedKey tells"),
        ({"items": ITEMS, "IsTruncated": True}, "/IsTruncated tells"),
        (({"items": ITEMS}, {"X-Pagination": '{"TotalCount": 99, "HasNext": false}'}), "x-pagination/TotalCount is 99"),
        (({"items": ITEMS}, {"X-Has-More": "true"}), "x-has-more tells"),
        ({"items": ITEMS, "paging": {"next": {"after": "3"}}}, "/paging/next tells"),  # HubSpot
        ({"items": ITEMS, "additional_data": {"next_cursor": "k"}}, "/additional_data/next_cursor tells"),  # Pipedrive
        (
            {"items": ITEMS, "additional_data": {"pagination": {"more_items_in_collection": True}}},
            "/additional_data/pagination/more_items_in_collection tells",
        ),
        ({"items": ITEMS, "page_context": {"has_more_page": True}}, "/page_context/has_more_page tells"),  # Zoho
        (
            {"items": ITEMS, "metaData": {"morePagesAvailable": True}},
            "/metaData/morePagesAvailable tells",
        ),  # Brightpearl
        ({"items": ITEMS, "metaData": {"resultsAvailable": 500}}, "/metaData/resultsAvailable is 500"),
        ({"items": ITEMS, "@attributes": {"count": "523", "offset": "0"}}, "/@attributes/count is 523"),  # Lightspeed
        ({"items": ITEMS, "@attributes": {"next": "https://shop.example/api?after=k"}}, "/@attributes/next tells"),
        ({"items": ITEMS, "pages": {"next": {"page": 2, "starting_after": "k"}}}, "/pages/next tells"),  # Intercom
        ({"items": ITEMS, "pages": {"page": 1, "total_pages": 9}}, "/pages/total_pages is 9"),
        ({"items": ITEMS, "cursor": "CAASI"}, "/cursor tells"),  # Square
        ({"items": ITEMS, "pagingMetadata": {"hasNext": True}}, "/pagingMetadata/hasNext tells"),  # Wix
        ({"items": ITEMS, "length": 523}, "/length is 523"),  # Odoo
        (({"items": ITEMS}, {"X-Total-Pages-Count": "9"}), "x-total-pages-count is 9"),  # Veeqo
        ({"items": ITEMS, "exceededTransferLimit": True}, "/exceededTransferLimit tells"),  # ArcGIS
        ({"items": ITEMS, "max_results_reached": True}, "/max_results_reached tells"),
        ({"items": ITEMS, "metadata": {"remainingItemCount": 5}}, "/metadata/remainingItemCount tells"),  # Kubernetes
        ({"items": ITEMS, "metadata": {"continue": "abc"}}, "/metadata/continue tells"),
        ({"items": ITEMS, "continue": {"cmcontinue": "page|41", "continue": "-||"}}, "/continue tells"),  # MediaWiki
        ({"items": ITEMS, "has_more_data": True}, "/has_more_data tells"),
        ({"items": ITEMS, "has_more": 1}, "/has_more tells"),
        ({"items": ITEMS, "has_more": "yes"}, "/has_more tells"),
        ({"items": ITEMS, "hasNextPage": "Y"}, "/hasNextPage tells"),
        ({"items": ITEMS, "isLast": 0}, "/isLast tells"),
        ({"items": ITEMS, "isLastPage": "N"}, "/isLastPage tells"),
        ({"items": ITEMS, "result_truncated": True}, "/result_truncated tells"),
        ({"items": ITEMS, "partialData": True}, "/partialData reports an error or a part of the list"),
        ({"items": ITEMS, "TotalItemCount": 9}, "/TotalItemCount is 9"),
        ({"items": ITEMS, "number_of_results": 9}, "/number_of_results is 9"),
        ({"items": ITEMS, "iTotalRecords": 9}, "/iTotalRecords is 9"),
        ({"items": ITEMS, "result_info": {"total_count": 9}}, "/result_info/total_count is 9"),  # Cloudflare
        ({"items": ITEMS, "QueryResponse": {"totalCount": 9}}, "/QueryResponse/totalCount is 9"),
        ({"items": ITEMS, "@iot.nextLink": "https://shop.example/api?$skip=3"}, "/@iot.nextLink tells"),
        ({"items": ITEMS, "nextStartIndex": 4}, "/nextStartIndex tells"),
        ({"items": ITEMS, "links": {"next": [{"href": "/api/items?page=2"}]}}, "/links/next tells"),
        ({"items": ITEMS, "link": [{"relation": "next", "url": "/api/items?page=2"}]}, "/link tells"),  # FHIR
        ({"items": ITEMS, "links": [{"rel": ["Next"], "href": "/api/items?page=2"}]}, "/links tells"),
        ({"items": ITEMS, "_shards": {"total": 5, "successful": 3, "failed": 0}}, "/_shards reports"),
        (({"items": ITEMS}, {"X-Pagination-Total": "9"}), "x-pagination-total is 9"),
        (({"items": ITEMS}, {"X-Paging-TotalRecordCount": "9"}), "x-paging-totalrecordcount is 9"),
        (({"items": ITEMS}, {"X-Total-Items": "9"}), "x-total-items is 9"),
        ({"items": ITEMS, "total": "1,002"}, "/total is 1,002"),
        (({"items": ITEMS}, {"Continuation-Token": "abc"}), "continuation-token tells"),
        (({"items": ITEMS}, {"X-Has-Next-Page": "true"}), "x-has-next-page tells"),
        (({"items": ITEMS}, {"X-Next-Page-Token": "abc"}), "x-next-page-token tells"),
        (({"items": ITEMS}, {"X-Content-Range": "items 0-2/9"}), "x-content-range is 9"),
        (({"items": ITEMS}, {"Link": '</api/items?page=2>; rel="last"'}), "link is 2"),
    ],
)
def test_a_list_of_which_the_answer_tells_more_is_in_doubt(page: Page, says: str) -> None:
    """In members and headers by their usual names, in the answer and in what describes its pages."""
    for paginator in (LinkHeader(), NextUrl("/elsewhere"), CursorInBody("/elsewhere")):
        assert says in (read(paginator, page) or "")
    place = says.split(" ", maxsplit=1)[0]
    assert read(LinkHeader(), page, ignore=[place]) is None


@pytest.mark.parametrize(
    "page",
    [
        {"items": ITEMS, "total": 3, "pages": 1, "has_more": False, "next": None, "errors": [], "success": True},
        {"items": ITEMS, "count": 2, "next": "", "links": {"next": None, "self": "/api"}, "error": None},
        {"items": ITEMS, "next": {"href": None}, "nextOffset": 0, "more": "false", "errors": {}, "status": "ok"},
        {"items": [{**each, "total": 99, "next": "x", "has_more": True} for each in ITEMS]},
        {"items": ITEMS, "offset": 0, "last": True, "done": True, "timed_out": False, "_shards": {"failed": 0}},
        {"items": ITEMS, "hits": {"total": {"value": 2, "relation": "gte"}}, "links": {"last": "/api/items?page=9"}},
        ({"items": ITEMS}, {"X-Has-More": "false", "X-Pagination": "no JSON", "X-Next": ""}),
        {"items": ITEMS, "customer": {"total": 99, "next": "order"}, "total": "12.50", "size": 100, "limit": 250},
        {"items": ITEMS, "paging": {"next": {"after": None}, "cursors": {"before": "a"}}, "pages": {"next": None}},
        {"items": ITEMS, "additional_data": {"pagination": {"start": 0, "more_items_in_collection": False}}},
        {"items": ITEMS, "@attributes": {"count": "3", "next": "", "previous": ""}, "next_cursor": "0", "then": -1},
        {"items": ITEMS, "cursor": "k", "has_more": False},  # to continue on another day
        {"items": ITEMS, "cursor": "k", "total": 3},
        {"items": ITEMS, "cursor": ""},
        {"items": ITEMS, "draw": 1, "start": 0, "length": 100},  # the size of a page
        {"items": ITEMS, "success": True, "status": "error-free", "code": 500, "error": False, "fault": ["of a part"]},
        ({"items": ITEMS}, {"X-Total-Count": "3", "Link": '</api?page=1>; rel="prev"', "Content-Range": "items 0-2/*"}),
        {"items": ITEMS, "size": 200, "available": 200, "found": 200, "total_available": 530, "hits": 200},
        {"items": ITEMS, "remaining": 17, "remaining_count": 17, "rate_limit_reached": True, "capped": False},
        {"items": ITEMS, "nextSyncToken": "x", "next_since": "2026-01-01", "scroll_id": "x", "end_cursor": "x"},
        {"items": ITEMS, "query": {"count": 250}, "summary": {"total": 99}, "header": {"total": 120}},
        {"items": ITEMS, "last": 0, "has_more": "no", "more": "0", "itemsRemaining": 0, "continue": "", "isLast": 1},
        {"items": ITEMS, "_shards": {"total": 5, "successful": 5, "skipped": 2, "failed": 0}},
        ({"items": ITEMS}, {"X-RateLimit-Remaining": "17", "X-Cache-Hits": "9", "X-Page": "1", "X-Offset": "25"}),
        ({"items": ITEMS}, {"Link": '</api?page=1>; rel="last", </api?per_page=100>; rel="first"', "X-Next-Page": ""}),
        ({"items": ITEMS}, {"X-Content-Type-Options": "nosniff", "X-Request-Count": "40", "X-Total-Time": "120"}),
    ],
)
def test_what_agrees_or_is_about_something_else_is_no_doubt(page: Page) -> None:
    """Numbers that fit, empty members, those of records and of other objects, and amounts."""
    assert read(LinkHeader(), page) is None


@pytest.mark.parametrize(
    "warnings", [["backend unavailable"], [{"message": "shard 3 timed out"}], "Throttled"], ids=str
)
def test_a_warning_of_an_outage_beside_no_records_is_an_error(warnings: Any) -> None:
    """Also on the first page; other warnings are none."""
    for name in ("warnings", "warning"):
        assert f"/{name} reports an error" in (
            sign_of_error_beside_empty_list(ApiAnswer("", {"items": [], name: warnings}), "/items") or ""
        )
        everyday = {"items": [], name: ["this version ends in 2030", "unknown field"]}
        assert sign_of_error_beside_empty_list(ApiAnswer("", everyday), "/items") is None


@pytest.mark.parametrize(
    "beside",
    [
        {"status": "OVER_QUERY_LIMIT"},
        {"error_message": "You have exceeded your quota"},
        {"error": True},
        {"success": 0},
        {"success": "false"},
        {"code": 429},
        {"code": "45"},
        {"ret": -1},
        {"errcode": 45009, "errmsg": "reach max api daily quota limit"},
        {"status": 500},
        {"statusCode": 503},
        {"errorMessages": ["The operation timed out"]},
        {"error_code": "RATE_LIMIT"},
        {"fault": {"faultstring": "Rate limit quota violation"}},
        {"exception": "java.lang.OutOfMemoryError"},
        {"result": "error"},
        {"hasError": True},
        {"maintenance": True},
        {"responseStatus": {"errorCode": "Throttled"}},
        {"status": {"error_code": 1008}},
        {"err": "lost"},
        {"result": "KO"},
        {"status": "NOK"},
        {"msg": "the session has expired"},
        {"ResponseMetadata": {"HTTPStatusCode": 503}},
    ],
    ids=str,
)
def test_an_error_beside_an_empty_list_is_not_its_end(beside: dict[str, Any]) -> None:
    """However it is named; pages with records may have the same, and then it is none."""
    place = f"/{next(iter(beside))}"
    assert f"although {place}" in (read(PageNumber("/items"), {"items": ITEMS}, {"items": [], **beside}) or "")
    assert read(PageNumber("/items"), {"items": ITEMS}, {"items": [], **beside}, ignore=[place, *BELOW]) is None
    if True not in beside.values() and "success" not in beside:
        assert read(PageNumber("/items"), {"items": ITEMS, **beside}, {"items": [], **beside}) is None


BELOW = ["/errmsg", "/responseStatus/errorCode", "/status/error_code", "/ResponseMetadata/HTTPStatusCode"]


@pytest.mark.parametrize(
    "beside",
    [
        {"status": "ok", "code": 0, "message": "no records", "error": None, "errors": []},
        {"status": "ZERO_RESULTS", "code": 200, "errcode": 0, "errmsg": "fine", "error": False},
        {"success": 1, "hasError": False, "error_code": "0", "errorMessage": "", "exceptions": []},
        {"success": "true", "code": 1, "errorDescription": "none of them", "maintenance": False, "status": 0},
        {"code": 404, "status": "unlimited", "type": "default", "result": "transferred", "fault": None},
        {"code": "00000", "ret": "SUCCESS", "status": {"code": 200, "error_code": 0, "error_message": None}},
        {
            "err": None,
            "result": "OK",
            "msg": "no sessions that have not expired",
            "ResponseMetadata": {"HTTPStatusCode": 200},
        },
        {"status": True, "responseStatus": {"errors": [], "errorCode": ""}, "error": {"code": 0, "message": ""}},
    ],
)
def test_an_everyday_answer_beside_an_empty_list_is_its_end(beside: dict[str, Any]) -> None:
    """Words and numbers for success, and those for no records."""
    assert read(PageNumber("/items"), {"items": ITEMS}, {"items": [], **beside}) is None
    assert read(PageNumber("/items"), {"items": ITEMS, **beside}, {"items": [], **beside}) is None


ENVELOPES = [
    json.loads(line)
    for line in Path(__file__).with_name("envelopes_of_last_pages.jsonl").read_text("utf-8").splitlines()
]
"""What known APIs, and their kinds, have beside the records of a page, and beside none on the page after the last."""


@pytest.mark.parametrize(
    "beside",
    [
        {"failed": True},
        {"odata.error": {"code": "Busy"}},
        {"ErrorResponse": {"Error": {"Code": "Throttled"}}},
        {"partialResults": True},
        {"success": None},
        {"Success": "N"},
        {"status": "pending"},
        {"state": "RUNNING"},
        {"resultCode": "E001"},
        {"isValid": False},
        {"message": "Too many requests"},
        {"detail": "Request was throttled. Expected available in 5 seconds."},
        {"messages": [{"type": "error", "text": "x"}]},
        {"warnings": ["some shards did not answer"]},
        {"failures": [{"shard": 0}]},
        {"notice": "Under maintenance"},
        {"fatal": "x"},
        {"head": {"rc": "500"}},
        {"retry_after": 30},
        {"skipped": 3},
        {"missing": ["3"]},
        {"cache": "stale"},
        {"meta": {"unknown_shards": ["3"]}},
    ],
    ids=str,
)
def test_what_only_a_page_without_records_says_is_not_the_end(beside: dict[str, Any]) -> None:
    """Whatever it is called, it may be an error; what pages with records said as well is none."""
    place = f"/{next(iter(beside))}"
    ended = read(PageNumber("/items"), {"items": ITEMS}, {"items": [], **beside})
    assert f"although {place}" in (ended or "")
    named = [place, f"{place}/unknown_shards", f"{place}/Error"]
    assert read(PageNumber("/items"), {"items": ITEMS}, {"items": [], **beside}, ignore=named) is None
    if "partialResults" not in beside and "odata.error" not in beside:
        assert read(PageNumber("/items"), {"items": ITEMS, **beside}, {"items": [], **beside}) is None


@pytest.mark.parametrize(
    ("usual", "beside"),
    [
        ({"warnings": []}, {"warnings": ["shard 3 did not answer"]}),
        ({"degraded": False}, {"degraded": True}),
        ({"notice": None}, {"notice": "Under maintenance"}),
        ({"status": "complete"}, {"status": "pending"}),
        ({"success": True}, {"success": None}),
        ({"message": "OK"}, {"message": "Internal server error"}),
    ],
    ids=str,
)
def test_what_pages_with_records_left_empty_is_not_the_end(usual: dict[str, Any], beside: dict[str, Any]) -> None:
    """A member that says something only where there are no records may say why."""
    assert read(PageNumber("/items"), {"items": ITEMS, **usual}, {"items": [], **beside}) is not None


@pytest.mark.parametrize("envelope", ENVELOPES, ids=lambda envelope: envelope["api"])
def test_an_envelope_of_a_known_api_ends_its_list(envelope: dict[str, Any]) -> None:
    """The last page, without records, has facts about pages, links, times and requests that others do not have."""
    for paginator in (PageNumber("/items"), Offset("/items"), AfterId("/items", "since_id")):
        full, last = {"items": ITEMS, **envelope["full"]}, {"items": [], **envelope["last"]}
        assert read(paginator, full, last) is None


@pytest.mark.parametrize("paginator", [PageNumber("/items"), Offset("/items"), AfterId("/items", "since_id")])
def test_a_page_without_records_ends_a_list_unless_it_tells_of_more(paginator: Paginator) -> None:
    """Where the paginator asks until there are no more records, a next page of an earlier one was requested."""
    first = {"items": ITEMS, "next": "/api/items?page=2", "has_more": True, "pages": 1, "total": 3}
    assert read(paginator, first, {"items": [], "next": None, "has_more": False, "pages": 1, "total": 3}) is None
    for more, says in (({"has_more": True}, "/has_more"), ({"next": "/api/items?page=3"}, "/next")):
        assert f"{says} tells of a next page" in (read(paginator, first, {"items": [], **more}) or "")
    for name, number in (("pages", 9), ("total", 98)):
        assert f"/{name} is {number}" in (read(paginator, first | {name: number}, {"items": [], name: number}) or "")


@pytest.mark.parametrize(
    "page",
    [
        {"first": False},
        {"links": {"prev": "/api/items?page=0"}},
        {"previous": "https://shop.example/api/items?page=0"},
        {"hasPreviousPage": True},
    ],
)
def test_a_page_before_the_first_one_is_a_doubt(page: dict[str, Any]) -> None:
    """The API counts from 0, and the client from 1; a cursor may have begun anywhere."""
    for paginator in (PageNumber("/items"), Offset("/items")):
        assert "of the first page tells of a page before it" in (
            read(paginator, {"items": ITEMS, **page}, {"items": []}) or ""
        )
        assert read(paginator, {"items": ITEMS, "first": True, "previous": None}, {"items": [], **page}) is None
    assert read(CursorInBody("/then"), {"items": ITEMS, **page}) is None


def test_a_cursor_that_an_empty_page_repeats_is_the_end() -> None:
    """Some APIs always give a cursor, to continue from another day."""
    pages = [{"items": ITEMS, "after": "a", "end_of_stream": False}, {"items": [], "after": "a", "end_of_stream": True}]
    assert read(CursorInBody("/after"), *pages) is None


def test_a_list_that_grows_while_it_is_read_is_no_doubt() -> None:
    """The lowest number counts: records that were created behind the first pages are read in the next run."""
    pages = [{"items": ITEMS[:2], "total": 3, "then": "a"}, {"items": ITEMS[2:], "total": 5}]
    assert read(CursorInBody("/then"), *pages) is None
    assert "/total is 4" in (read(CursorInBody("/then"), {**pages[0], "total": 4}, pages[1]) or "")


@pytest.mark.parametrize(
    ("link", "is_doubted"), [("/api/items?page={}", True), ("/api/items?start={}", True), ("/api/items?k={}x", False)]
)
def test_a_total_that_lessens_while_a_list_is_read_by_links(link: str, *, is_doubted: bool) -> None:
    """Links may name positions, too."""
    first = [{"id": each} for each in range(len(ITEMS))]
    pages = [{"items": first, "total": 9, "then": link.format(2 if "page" in link else len(first))}]
    sign = read(NextUrl("/then"), *pages, {"items": [{"id": 8}], "total": 8})
    assert ("/total was 9 and then 8" in (sign or "")) == is_doubted


@pytest.mark.parametrize("paginator", [PageNumber("/items"), Offset("/items")])
@pytest.mark.parametrize(
    ("totals", "is_doubted"),
    [
        ((9, 8, 8), True),  # one was deleted after the first page, so that another is on none
        ((9, 9, 9, 8), True),  # and here before the last page, which has no records therefore
        ((8, 8, 9), False),
        ((3, 3, 2), False),  # the number of records of each page
        ((8, 5, 2), False),  # those from this page on
    ],
)
def test_a_total_that_lessens_while_a_list_is_read_by_position(
    paginator: Paginator, totals: tuple[int, ...], *, is_doubted: bool
) -> None:
    """It shows that a record left the list, which moves others to a page that was read, also if it is not declared."""
    ids = [range(3), range(3, 6), range(6, 8)]
    pages = [
        {"items": [{"id": each} for each in page], "total": total} for page, total in zip(ids, totals, strict=False)
    ]
    sign = read(paginator, *pages, {"items": [], "total": dict(enumerate(totals)).get(3, 0)})
    assert (sign is not None and "/total was 9 and then 8" in sign) == is_doubted
    assert is_doubted or sign is None


def test_a_declared_total_is_the_only_one() -> None:
    """Another number may count something else, such as all records without the filter."""
    page = {"items": ITEMS, "filtered": 3, "total": 98}
    assert read(CursorInBody("/then", total="/filtered"), page) is None


@pytest.mark.parametrize(("status", "says"), [(202, "is not ready"), (207, "has several answers")])
def test_an_answer_that_is_no_list_yet_is_refused(status: int, says: str) -> None:
    """Its body may be an empty list."""
    api = client(lambda _: httpx.Response(status, json={"items": []}))
    with pytest.raises(Exception, match=says):
        list(api.pages("/items", records="/items"))


FIRST, NEXT = {"Link": '</api/items>; rel="first"'}, {"Link": '</api/items?page=2>; rel="next"'}


def read_in_pages(
    paginator: Paginator, params: Mapping[str, str], listed: int, drops: Callable[[int], bool]
) -> str | None:
    """Why a list of this many items in pages of the size in *params*, or of 3, is in doubt.

    The header of a next page is dropped if *drops* is true for the size of the page.
    """

    def handle(request: httpx.Request) -> httpx.Response:
        sizes = [value for name, value in request.url.params.items() if name in {"per_page", "limit"}]
        size, start = int(sizes[0]), int(request.url.params.get("x", 0))
        items = [{"id": number} for number in range(listed)][start : start + size]
        end = start + len(items)
        headers = {"X-Cursor": str(end), "Link": f'</api/items?{request.url.params.set("x", end)}>; rel="next"'}
        return httpx.Response(200, json={"items": items}, headers={} if end >= listed or drops(size) else headers)

    try:
        list(client(handle).pages("/items", params, paginator=paginator, records="/items", key="id"))
    except DoubtfulListError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("paginator", "params"),
    [(LinkHeader(), {"per_page": "3"}), (LinkHeader(), {"limit": "1"}), (CursorInHeader("x-cursor", "x", size=3), {})],
)
def test_a_full_page_without_the_header_of_pages_is_confirmed(paginator: Paginator, params: dict[str, str]) -> None:
    """A proxy that drops the header would end the list there: smaller pages show whether it does."""
    size = int(next(iter(params.values()), 3))
    said = f"is full, and has no header {paginator.next_header}"
    assert said in (read_in_pages(paginator, params, size + 1, lambda _: True) or "")
    assert said in (read_in_pages(paginator, params, size, lambda _: True) or "") or size == 1
    assert read_in_pages(paginator, params, size, lambda _: False) is None
    assert read_in_pages(paginator, params, size - 1, lambda _: True) is None


@pytest.mark.parametrize("status", [400, 500])
def test_a_refused_confirmation_leaves_the_list_in_doubt(status: int) -> None:
    """An API may refuse a page of that size; one that is down ends the run as unavailable."""
    answers = [httpx.Response(200, json={"items": ITEMS}), *[httpx.Response(status, json={}) for _ in range(5)]]
    api = client(lambda _: answers.pop(0))
    with pytest.raises(DoubtfulListError if status == 400 else UnavailableError):
        list(api.pages("/items", {"limit": "3"}, records="/items", key="id"))


@pytest.mark.parametrize(
    ("pages", "params"),
    [
        ([{"items": ITEMS}], {"per_page": "4"}),
        ([{"items": ITEMS}], {"per_page": "2"}),
        ([{"items": ITEMS}], {"country": "3"}),
        ([({"items": ITEMS}, FIRST)], {"limit": "3"}),
        ([({"items": ITEMS}, {"X-Total": "3"})], {"limit": "3"}),
        ([({"items": ITEMS}, NEXT), {"items": [{"id": number} for number in (4, 5, 6)]}], {"limit": "3"}),
    ],
)
def test_another_last_page_needs_no_header(pages: list[Page], params: dict[str, str]) -> None:
    """It is not full or not the first, its header has no next page, or the API states that there are no more."""
    assert read(LinkHeader(), *pages, params=params) is None


def read_single(
    params: Mapping[str, Any], listed: int, most: int | None, *, in_body: bool, ignore: Sequence[str]
) -> bool:
    """Whether a list of so many items, of which the API gives at most *most* and as `limit` says, is accepted."""

    def handle(request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content or "{}") if in_body else dict(request.url.params)
        sizes = [number for number in (int(asked.get("limit", listed)), most, listed) if number is not None]
        return httpx.Response(200, json={"items": [{"id": number} for number in range(min(sizes))]})

    sent: Any = {"json": params} if in_body else {"params": params}
    try:
        list(client(handle).pages("/items", **sent, paginator=Paginator(), records="/items", key="id", ignore=ignore))
    except DoubtfulListError as error:
        return "its only page has the 3 records that limit asks for" not in str(error)
    return True


@pytest.mark.parametrize("in_body", [False, True])
def test_a_single_page_as_long_as_was_asked_for_may_be_cut(*, in_body: bool) -> None:
    """The API may have more, whether its maximum is that number or not: the config says how many it wants."""
    for most in (None, 3):
        assert not read_single({"limit": 3}, 5, most, in_body=in_body, ignore=[])
    assert not read_single({"limit": 3}, 3, None, in_body=in_body, ignore=[])
    assert read_single({"limit": 3}, 5, None, in_body=in_body, ignore=["limit"])
    assert read_single({"limit": 4}, 3, None, in_body=in_body, ignore=[])
    assert read_single({"limit": 1}, 3, None, in_body=in_body, ignore=[])  # the latest one is wanted
    assert read_single({"id": 3}, 3, None, in_body=in_body, ignore=[])


def test_a_size_that_the_api_ignores_cuts_no_list() -> None:
    """Asked for fewer, it gives as many: its list has that length by chance. So it has if the API says so."""
    assert read(Paginator(), {"items": ITEMS}, {"items": ITEMS}, params={"limit": "3"}) is None
    assert read(Paginator(), {"items": ITEMS, "total": 3}, params={"limit": "3"}) is None


def test_a_long_name_of_a_member_costs_little() -> None:
    """The time to know its kind grows with its length, and not with the square of that."""
    assert (
        read(LinkHeader(), {"items": ITEMS, **{f"{number}{'data' * 25_000}": number for number in range(20)}}) is None
    )
