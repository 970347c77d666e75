"""Lists are read to their end, whatever way an API splits them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.errors import RefusedError, UnavailableError
from crossdock.reading.sources.api_requests_and_answers import Params
from crossdock.reading.sources.retried_requests import ATTEMPTS, LESSENED_AT_MOST
from crossdock.reading.sources.run_context import SourceContext
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.sources import (
    AfterId,
    Api,
    ApiAnswer,
    ApiClient,
    ApiRequest,
    CursorInBody,
    CursorInHeader,
    GraphQLConnection,
    LinkHeader,
    NextUrl,
    Offset,
    PageNumber,
    Paginator,
)
from crossdock.testing.manual_clock import ManualClock
from crossdock.values import exact_json
from crossdock.values.run_progress_and_messages import SilentProgress

Handler = Callable[[httpx.Request], httpx.Response]
BASE = "https://shop.example/api"
QUERY = "query($after: String, $first: Int) { products { nodes { id } } }"


def client(handler: Handler) -> ApiClient:
    run = SourceContext(ManualClock(), SilentProgress(), EmptyIntakeLog(), Path(), Path(), Path())
    return ApiClient(Api(BASE, transport=httpx.MockTransport(handler)), run)


def vendor(number: int, size: int, seen: list[httpx.Request] | None = None) -> Handler:
    """An API with *number* records that understands every paginator, with at most *size* records a page."""

    def handle(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        asked: dict[str, Any] = dict(request.url.params)
        if request.method == "POST":
            variables = exact_json.loads(request.content)["variables"]
            asked = {"cursor": variables.get("after") or 0, "limit": variables.get("first", size)}
        many = min(size, int(asked.get("limit", size)))
        start = int(asked.get("cursor", asked.get("offset", (int(asked.get("page", 1)) - 1) * many)))
        found, end = list(range(start, min(number, start + many))), start + many
        more = end < number
        if request.method == "POST":
            page = {"nodes": found, "pageInfo": {"hasNextPage": more, "endCursor": str(end)}}
            return httpx.Response(200, json={"data": {"products": page}})
        url = f"{BASE}/items?cursor={end}&limit={many}"
        headers = {"link": f'<{url}>; rel="next"', "x-next": str(end)} if more else {}
        body = {"items": found, "total": number, "pages": -(-number // many), "next": end if more else None}
        return httpx.Response(200, headers=headers, json=body | ({"url": url} if more else {}))

    return handle


PAGINATORS: list[Paginator] = [
    LinkHeader(),
    NextUrl("/url"),
    CursorInBody("/next", size=4),
    CursorInHeader("X-Next"),
    PageNumber("/items"),
    PageNumber("/items", pages="/pages", size=4),
    Offset("/items", size=3),
    Offset("/items", total="/total"),
]


@given(number=st.integers(0, 30), size=st.integers(1, 8), paginator=st.sampled_from(PAGINATORS))
def test_every_record_is_read_once(number: int, size: int, paginator: Paginator) -> None:
    """For all lengths of lists and pages."""
    pages = client(vendor(number, size)).pages("/items", paginator=paginator)
    assert [item for page in pages for item in page.items("/items")] == list(range(number))


@given(number=st.integers(0, 30), size=st.integers(1, 8))
def test_a_graphql_connection_is_read_to_its_end(number: int, size: int) -> None:
    """Its cursor is a variable."""
    paginator = GraphQLConnection("/data/products", size=5)
    pages = client(vendor(number, size)).pages("/graphql", graphql=QUERY, paginator=paginator)
    assert [item for page in pages for item in page.items("/data/products/nodes")] == list(range(number))


@pytest.mark.parametrize(
    "paginator",
    [CursorInBody("/next", size=8), Offset("/items", size=8), PageNumber("/items", size=8, size_param="limit")],
)
@pytest.mark.parametrize("failure", ["read", 504])
def test_a_page_that_times_out_is_read_in_halves(paginator: Paginator, failure: str | int) -> None:
    """No record is lost or doubled, and later pages stay small."""
    answers, asked = vendor(40, 8), list[str]()

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.params["limit"])
        if len(asked) > 1 and int(asked[-1]) > 2:
            if failure == "read":
                raise httpx.ReadTimeout("slow")
            return httpx.Response(504)
        return answers(request)

    pages = client(handle).pages("/items", paginator=paginator)
    assert [item for page in pages for item in page.items("/items")] == list(range(40))
    assert asked[:4] == ["8", "8", "4", "2"]
    assert set(asked[4:]) == {"2"}


class NeverSmaller(PageNumber):
    def smaller(self, request: ApiRequest, read: int | None) -> ApiRequest | None:
        return request


def test_a_page_is_not_made_smaller_without_an_end() -> None:
    """An author's paginator may return the same request after each time-out."""
    asked = list[str]()

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(504)

    with pytest.raises(UnavailableError, match="failed 5 times; last error: HTTP 504"):
        list(client(handle).pages("/items", paginator=NeverSmaller("/items")))
    assert len(asked) == ATTEMPTS + LESSENED_AT_MOST


def answering(*bodies: Any, headers: dict[str, str] | None = None) -> Handler:
    """The bodies in turn, the last one for ever."""
    left = list(bodies)
    return lambda _: httpx.Response(200, json=left.pop(0) if len(left) > 1 else left[0], headers=headers)


@pytest.mark.parametrize(
    ("paginator", "handler", "message"),
    [
        (PageNumber("/items"), answering({"items": [1]}), "pagination loop"),
        (Offset("/items"), answering({"items": [1]}), "pagination loop"),
        (CursorInBody("/next"), answering({"next": "a"}), "pagination loop"),
        (NextUrl("/next"), answering({"next": "/api/items?p=2"}), "pagination loop"),
        (CursorInHeader("x"), answering({}, headers={"x": "1"}), "pagination loop"),
        (NextUrl("/next"), answering({"next": "https://evil.example/"}), "on another host"),
        (NextUrl("/next"), answering({"next": "https://shop.example:8443/"}), "on another host"),
        (NextUrl("/next"), answering({"next": "http://shop.example:443/"}), "has the scheme http"),
        (NextUrl("/next"), answering({"next": "http://SHOP.example/"}), "has the scheme http"),
        (PageNumber("/items"), answering({"rows": []}), "has no list at /items"),
        (Offset("/items"), answering(None), "has no list at /items"),
        (CursorInBody("/next"), answering(None), "not a JSON object"),
        (CursorInBody("/next"), answering({"next": {}}), "neither a text nor a whole number at /next"),
        (Offset("/items", total="/total"), answering({"items": [1], "total": 3}, {"items": [], "total": 3}), "1 of 3"),
        (
            Offset("/items", cap=2),
            answering({"items": [1]}, {"items": [2]}),
            "reaches 2 records, where the API cuts it",
        ),
        (PageNumber("/items", cap=2), answering({"items": [1]}, {"items": [2]}), "reaches 2 pages, where the API cuts"),
        (
            PageNumber("/items", pages="/n"),
            answering({"items": [1], "n": 3}, {"items": [], "n": 3}),
            "there are 3 pages",
        ),
        (PageNumber("/items", pages="/n"), answering({"items": [1]}), "no whole number at /n"),
    ],
)
def test_a_list_that_does_not_end_well_is_refused(paginator: Paginator, handler: Handler, message: str) -> None:
    """A loop, a foreign host and a list that is cut are errors, never the end of a list."""
    with pytest.raises(RefusedError, match=message):
        list(client(handler).pages("/items", paginator=paginator))


@pytest.mark.parametrize("origin", ["https://shop.example:443", "https://SHOP.example", "HTTPS://Shop.Example:443"])
def test_a_next_page_is_followed_however_its_host_is_written(origin: str) -> None:
    """Frameworks write their own host with its port or in other letter case: it is the same origin."""
    handler = answering({"items": [1], "next": f"{origin}/api/items?p=2"}, {"items": [2], "next": None})
    pages = list(client(handler).pages("/items", paginator=NextUrl("/next")))
    assert [page.body["items"] for page in pages] == [[1], [2]]
    assert pages[1].address == f"{BASE}/items?p=2"


def test_the_records_of_edges_are_known_by_their_keys() -> None:
    """A page that has only records of earlier pages is refused, also of a connection that has edges alone."""
    place, edges = "/data/x/edges/*/node", [{"cursor": "a", "node": {"id": 1}}]
    pages = [{"data": {"x": {"edges": edges, "pageInfo": {"hasNextPage": True, "endCursor": "b"}}}}] * 2
    changed = {"data": {"x": {"edges": [{"cursor": "c", "node": {"id": 1, "at": 2}}], "pageInfo": pages[0]["data"]}}}
    asked = iter([pages[0], changed])
    paginator = GraphQLConnection("/data/x")
    read = client(lambda _: httpx.Response(200, json=next(asked))).pages(
        "/graphql", graphql=QUERY, paginator=paginator, records=place, key="id"
    )
    with pytest.raises(RefusedError, match="has only records that earlier pages had"):
        for page in read:
            assert page.items(place) == [{"id": 1}]


@pytest.mark.parametrize("info", [None, {"hasNextPage": "yes"}, {"hasNextPage": True, "endCursor": None}])
def test_a_graphql_page_without_page_info_is_refused(info: object) -> None:
    """It is not the last page."""
    handler = answering({"data": {"products": {"nodes": [], "pageInfo": info}}})
    with pytest.raises(RefusedError, match="no pageInfo"):
        list(client(handler).pages("/graphql", graphql=QUERY, paginator=GraphQLConnection("/data/products")))


def test_addresses_show_the_page_and_no_parameter_of_the_author() -> None:
    """Parameters of the author may be secret; those of the paginator tell pages apart."""
    pages = client(vendor(3, 2)).pages("/items", {"key": "canary", "tag": ["a", "b"]}, paginator=Offset("/items"))
    assert [page.address for page in pages] == [f"{BASE}/items?offset={number}" for number in (0, 2, 3)]


def test_an_offset_may_be_the_number_of_a_record() -> None:
    """The first one has the number 1 then."""
    pages = client(vendor(0, 2)).pages("/items", paginator=Offset("/items", start=1))
    assert [page.address for page in pages] == [f"{BASE}/items?offset=1"]

    def answer(request: httpx.Request) -> httpx.Response:
        start = int(request.url.params["offset"])
        return httpx.Response(200, json={"items": [{"id": number} for number in range(start, min(start + 2, 6))]})

    pages = client(answer).pages("/items", paginator=Offset("/items", start=1))
    assert [item["id"] for page in pages for item in page.items("/items")] == [1, 2, 3, 4, 5]


def test_parameters_are_repeated_or_left_out() -> None:
    """A list is a repeated parameter, None none at all."""
    seen: list[httpx.Request] = []
    list(client(vendor(1, 2, seen)).pages("/items", {"tag": ["a", "b"], "n": 2, "none": None}))
    assert seen[0].url.query == b"tag=a&tag=b&n=2"


@pytest.mark.parametrize(
    ("links", "asked"),
    [
        (["?page=2", "?page=3"], ["page=2&depot=7&sort=id&tag=a&tag=b", "page=3&depot=7&sort=id&tag=a&tag=b"]),
        (
            ["?sort=id&page=2", "?sort=id&page=3"],
            ["sort=id&page=2&depot=7&tag=a&tag=b", "sort=id&page=3&depot=7&tag=a&tag=b"],
        ),
        (["?offset=1&limit=1&depot=7"], ["offset=1&limit=1&depot=7&sort=id&tag=a&tag=b"]),
        (["?after=Ym9va21hcms", "?after=x"], ["after=Ym9va21hcms", "after=x"]),
        (["?search=918&page=2"], ["search=918&page=2"]),
        (["/918?page=2"], ["page=2"]),
    ],
)
@pytest.mark.parametrize("paginator", [NextUrl("/next"), LinkHeader()])
def test_a_link_to_a_numbered_page_keeps_the_filters(links: list[str], asked: list[str], paginator: Paginator) -> None:
    """A link with nothing but the number of a page, as Laravel's, lacks parameters; a cursor may have them inside."""
    seen, left = list[httpx.Request](), [*links]

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        following = f"{BASE}/items{left.pop(0)}" if left else None
        header = {"link": f'<{following}>; rel="next"'} if following else {}
        return httpx.Response(200, json={"items": [{"id": len(seen)}], "next": following}, headers=header)

    params: Params = {"depot": 7, "sort": "id", "tag": ["a", "b"]}
    list(client(answer).pages("/items", params, paginator=paginator, records="/items", key="id"))
    assert [str(request.url.query, "ascii") for request in seen] == ["depot=7&sort=id&tag=a&tag=b", *asked]


@pytest.mark.parametrize(
    "paginator",
    [PageNumber("/items", size=2), Offset("/items", "page", start=1, size=2), CursorInBody("/next", "page")],
)
def test_a_parameter_for_pages_is_sent_once(paginator: Paginator) -> None:
    """A request that is copied from the API's documentation has the first page; some servers take the first one."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        first = int(request.url.params.get_list("page")[0])
        items = [{"id": f"{first}-{number}"} for number in range(2)] if first < 3 else []
        return httpx.Response(200, json={"items": items, "next": first + 2 if items else None})

    list(client(answer).pages("/items", {"page": 1, "limit": 2}, paginator=paginator, records="/items"))
    assert len(seen) > 1
    assert all(len(request.url.params.get_list(name)) == 1 for request in seen for name in ("page", "limit"))


@pytest.mark.parametrize("path", ["/items:search", "items:search", "/v1/items:search", "/items"])
def test_a_path_may_have_a_colon(path: str) -> None:
    """Such as the custom methods of Google's APIs (AIP-136); it is below the base URL like any other path."""
    seen: list[httpx.Request] = []
    client(vendor(1, 2, seen)).get(path)
    assert str(seen[0].url) == f"https://shop.example/api/{path.removeprefix('/')}"


@given(number=st.integers(0, 30), size=st.integers(1, 8))
def test_lists_by_id_are_read_to_their_end(number: int, size: int) -> None:
    """The last id of each page is asked from, until a page is empty."""

    def handle(request: httpx.Request) -> httpx.Response:
        first = int(request.url.params.get("since_id", 0)) + 1
        return httpx.Response(200, json=[{"id": each} for each in range(first, min(number, first + size - 1) + 1)])

    pages = client(handle).pages("/items", paginator=AfterId("", "since_id"))
    assert [item["id"] for page in pages for item in page.body] == list(range(1, number + 1))


@pytest.mark.parametrize(
    ("items", "message"),
    [([{"id": 1}], "pagination loop"), ([{"sku": 1}], "no member id"), ([{"id": [1]}], "neither a text nor")],
)
def test_a_list_by_id_without_progress_is_refused(items: list[dict[str, Any]], message: str) -> None:
    """A server that ignores the parameter would be read for ever."""
    api = client(lambda _: httpx.Response(200, json={"items": items}))
    with pytest.raises(RefusedError, match=message):
        list(api.pages("/items", paginator=AfterId("/items", "since_id")))


@pytest.mark.parametrize("at", [[5, 6, 6], ["2026-03-01", "2026-03-02", "2026-03-02"]])
def test_a_list_by_a_member_that_records_share_is_refused(at: list[int | str]) -> None:
    """What follows the last record may begin after others that have its time, so that they would be passed over."""
    api = client(lambda _: httpx.Response(200, json=[{"id": number, "at": each} for number, each in enumerate(at)]))
    with pytest.raises(RefusedError, match="several records with the same at"):
        list(api.pages("/items", paginator=AfterId("", "changed_after", "at")))


def test_parameters_that_a_cursor_replaces() -> None:
    """With `repeat_params=False` the cursor stands alone where the parameters are; a body of another use stays."""
    paginator = CursorInBody("/next", repeat_params=False)
    answer = ApiAnswer(BASE, {"next": "c2"}, 200, {})
    in_query = ApiRequest("POST", "/search", {"state": "open"}, json={"fields": ["id"]})
    following = paginator.following(in_query, answer)
    assert following is not None
    assert (following.params, following.page_params, following.content) == ({}, {"cursor": "c2"}, {"fields": ["id"]})
    in_body = ApiRequest("POST", "/search", json={"state": "open"}, place="body")
    following = paginator.following(in_body, answer)
    assert following is not None
    assert following.content == {"cursor": "c2"}
