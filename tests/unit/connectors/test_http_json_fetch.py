"""Streams of ``http_json`` that fetch single records, as their config says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.partners import fetched_rows
from tests.partners.fetched_rows import Rows
from tests.unit.connectors.test_http_json import ITEMS, Api
from tests.unit.connectors.test_http_json import TestContract as Contract

from crossdock.errors import RefusedError, RemoteError, UnauthorizedError
from crossdock.reading.sources import path_filling_and_answered_records
from crossdock_connectors.http_json import CONNECTOR

ONE = {"fetch": {"path": "/items/{id}"}}
DELETED = {"deleted": {"field": "state", "equals": "gone"}}
MARKED = {"mode": "incremental", **DELETED}
FOLLOWED: dict[str, Any] = {
    "mode": "incremental",
    "cursor": {"column": "id", "as": "integer"},
    "params": {"since": "{since}"},
    "open_until": {"field": "state", "in": ["paid"]},
}
"""A stream whose API says of a record that it was deleted."""


def answered(request: httpx.Request) -> Any:
    """The list of all items, or one of them."""
    name = request.url.path.removeprefix("/api/items")
    if not name:
        return {"items": ITEMS}
    found = [item for item in ITEMS if f"/{item['id']}" == name]
    return found[0] if found else httpx.Response(404)


def fetched(api: Api, keys: Sequence[str | tuple[str, ...]], **stream: Any) -> Rows:
    return fetched_rows.fetched(CONNECTOR, api.context(ONE | stream), "items", keys)


class TestFetchingContract(Contract):
    """The contract holds for a stream that fetches."""

    settings = {
        **Contract.settings,
        "streams": {"items": {**Contract.settings["streams"]["items"], **ONE}},
    }

    def transport(self, pages: Sequence[Any]) -> httpx.MockTransport:
        of_list = super().transport(pages)

        def answer(request: httpx.Request) -> httpx.Response:
            for item in (item for page in pages for item in page["items"]):
                if isinstance(item, dict) and request.url.path == f"/api/items/{item.get('id')}":
                    return httpx.Response(200, text=json.dumps(item))
            return of_list.handler(request)  # type: ignore[return-value]  # it is not asynchronous

        return httpx.MockTransport(answer)

    @pytest.mark.nightly
    def test_keys_and_drafts_are_the_same_in_every_process(self) -> None:
        """As of the streams of `TestContract`."""
        super().test_keys_and_drafts_are_the_same_in_every_process()

    @pytest.mark.nightly
    def test_faults_of_the_network_lose_nothing_silently(self) -> None:
        """As of the streams of `TestContract`."""
        super().test_faults_of_the_network_lose_nothing_silently()

    @pytest.mark.nightly
    def test_a_sync_continues_after_any_batch(self) -> None:
        """As of the streams of `TestContract`."""
        super().test_a_sync_continues_after_any_batch()


def test_a_record_is_fetched_as_it_is_pulled() -> None:
    """One request for each key, and the same rows."""
    api = Api(answered)
    expected = fetched_rows.pulled(CONNECTOR, api.context(), "items")
    assert fetched(api, ["1", "5"]).by_key == {key: expected.by_key[key] for key in (("1",), ("5",))}
    assert [request.url.path for request in api.seen[1:]] == ["/api/items/1", "/api/items/5"]


def test_a_record_with_a_long_nested_connection_is_fetched_as_it_is_pulled() -> None:
    """The list gives two of its elements, the single record three, and both get the rest."""
    numbers = [str(number) for number in range(7)]

    def connection(start: int, size: int) -> Any:
        shown = numbers[start : start + size]
        info = {"hasNextPage": start + size < len(numbers), "endCursor": shown[-1]}
        return {"parcels": {"edges": [{"node": {"number": each}} for each in shown], "pageInfo": info}}

    def answer(request: httpx.Request) -> Any:
        sent = json.loads(request.content)
        if sent["query"] == "rest $id $after":
            return {"order": connection(int(sent["variables"].get("after", -1)) + 1, 2)}
        item = {"id": "A", **connection(0, 2 if sent["query"] == "list" else 3)}
        return {"items": [item]} if sent["query"] == "list" else {"order": item}

    query = "rest $id $after"
    rest = {"path": "/g", "graphql": query, "variables": {"id": "{id}"}, "connection": "order.parcels"}
    fetch = {"path": "/g", "graphql": "one $id", "variables": {"id": "{id}"}, "record": "order"}
    stream = {"path": "/g", "graphql": "list", "rest": {"parcels": rest}, "fetch": fetch}
    ctx = Api(answer).context(stream)
    pulled = fetched_rows.pulled(CONNECTOR, ctx, "items")
    assert fetched_rows.fetched(CONNECTOR, ctx, "items", ["A"]).by_key == pulled.by_key
    (row,) = pulled.by_key["A",]
    assert [each["node"]["number"] for each in json.loads(row)["parcels"]["edges"]] == numbers


def test_a_stream_without_the_section_does_not_fetch() -> None:
    """Webhooks for it would find nothing."""
    api = Api(answered)
    for change, fetches in (({}, False), (ONE, True)):
        (stream,) = CONNECTOR.streams(api.context(change).settings)
        assert stream.fetches is fetches


@pytest.mark.parametrize("place", ["item", "/item"])
def test_the_record_may_be_anywhere_in_an_answer(place: str) -> None:
    """As the config says."""
    api = Api(lambda _: {"item": ITEMS[0], "meta": {}})
    assert fetched(api, ["1"], fetch={"path": "/items/{id}", "record": place}).by_key.keys() == {("1",)}


@pytest.mark.parametrize(
    ("body", "hint"),
    [({"item": None}, "/item is null"), ({"meta": {}}, "the answer has meta"), (7, "the answer is no object")],
)
def test_an_answer_without_the_record_is_refused(body: Any, hint: str) -> None:
    """It does not say that the record was deleted."""
    with pytest.raises(RefusedError, match="has no record at /item") as refused:
        fetched(Api(lambda _: body), ["1"], **MARKED, fetch={"path": "/items/{id}", "record": "item"})
    assert refused.value.hint == hint
    assert "connections.http_json.streams.items.fetch.record" in refused.value.message


@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.parametrize(
    ("stream", "is_named"),
    [
        pytest.param({}, False, id="a snapshot shows it"),
        pytest.param(
            {"mode": "incremental", "existing": {"path": "/ids", "records": ""}, "on_gone": "archive"},
            False,
            id="a list shows it",
        ),
        pytest.param(MARKED, True, id="the API tells which are deleted"),
    ],
)
def test_a_record_that_is_not_there(status: int, stream: dict[str, Any], is_named: bool) -> None:
    """It is named as deleted where the stream can say so; the others are fetched."""

    def answer(request: httpx.Request) -> Any:
        is_found = request.url.path.endswith(("/items", "/1"))
        return answered(request) if is_found else httpx.Response(status)

    api = Api(answer)
    found = fetched(api, ["9", "1"], **stream)
    assert found.by_key.keys() == {("1",)}
    assert found.deleted == ({("9",)} if is_named else set())


@pytest.mark.parametrize(
    ("found", "stream", "is_deleted"),
    [
        ([1, 2], {}, True),
        ([2], {}, True),
        ([], {}, False),
        ([], {"deleted": {"field": "sku", "starts_with": "00"}}, True),
    ],
    ids=str,
)
def test_a_record_counts_as_deleted_if_another_one_is_found(
    *, found: list[int], stream: dict[str, Any], is_deleted: bool
) -> None:
    """A gateway or a wrong path does not find records that the list has, unless they are marked as deleted."""

    def answer(request: httpx.Request) -> Any:
        name = request.url.path.removeprefix("/api/items")
        is_found = not name or name in {f"/{number}" for number in found}
        return answered(request) if is_found else httpx.Response(404, text="default backend - 404")

    if is_deleted:
        assert fetched(Api(answer), ["9"], **MARKED | stream).deleted == {("9",)}
    else:
        with pytest.raises(RefusedError, match="HTTP 404: default backend - 404, and so it is for records that the"):
            fetched(Api(answer), ["9"], **MARKED | stream)


@pytest.mark.parametrize("repairs", [{}, {"columns": {"id": {"strip_prefix": "C-"}}}], ids=str)
@pytest.mark.parametrize("is_up", [True, False])
def test_a_record_that_is_followed_is_not_missed_while_a_gateway_finds_none(
    repairs: dict[str, Any], *, is_up: bool
) -> None:
    """Otherwise each run that reads in vain would count, and after three it is not asked for any more."""

    def answer(request: httpx.Request) -> Any:
        is_found = request.url.path == "/api/items" or is_up
        return answered(request) if is_found else httpx.Response(404, text="default backend - 404")

    followed = FOLLOWED | repairs
    if is_up:
        found = fetched(Api(answer), ["9"], **followed)
        assert (found.by_key, found.deleted) == ({}, set())
    else:
        with pytest.raises(RefusedError, match="and so it is for records that the list has"):
            fetched(Api(answer), ["9"], **followed)


@pytest.mark.parametrize(("shown", "is_permitted"), [({"1"}, True), (set(), False)], ids=str)
@pytest.mark.parametrize("keys", [["9"], ["9", "1"]])
def test_a_record_that_is_followed_and_forbidden_is_not_shown_if_others_are(
    keys: list[str], shown: set[str], *, is_permitted: bool
) -> None:
    """Some APIs, such as Directus, answer 403 for a record that does not exist; it does not count as deleted."""
    listed = list[int]()

    def answer(request: httpx.Request) -> Any:
        name = request.url.path.removeprefix("/api/items").removeprefix("/")
        listed.append(not name)
        return answered(request) if not name or name in shown else httpx.Response(403)

    if is_permitted:
        found = fetched(Api(answer), [*keys, "8"], **FOLLOWED, **DELETED)
        assert found.by_key.keys() == {(each,) for each in keys if each in shown}
        assert found.deleted == set()
        assert sum(listed) == 1, "the others are asked for once"
    else:
        with pytest.raises(UnauthorizedError, match="HTTP 403"):
            fetched(Api(answer), keys, **FOLLOWED, **DELETED)
    with pytest.raises(UnauthorizedError, match="HTTP 403"):
        fetched(Api(answer), keys, **MARKED)  # a person or a webhook has named it


def test_a_window_without_records_says_nothing_about_others() -> None:
    """The first windows may be long before any record: those of the latest ones must be found."""

    def answer(request: httpx.Request) -> Any:
        if request.url.path != "/api/items":
            return httpx.Response(404, text="default backend - 404")
        return {"items": [] if request.url.params["from"].startswith("2025-12-01") else ITEMS}

    stream = {
        "windows": {"size": "7d"},
        "first": "2025-12-01T00:00:00Z",
        "params": {"from": "{start}", "to": "{end}"},
    }
    with pytest.raises(RefusedError, match="and so it is for records that the list has"):
        fetched(Api(answer), ["9"], **MARKED | stream)


def test_a_list_without_content_says_nothing_about_others() -> None:
    """A list that is answered 204 has no record that could be compared: the one that is not found was deleted."""

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(204 if request.url.path == "/api/items" else 404)

    pages = {"kind": "page_number", "param": "page", "stop": {"statuses": [204]}}
    assert fetched(Api(answer), ["9"], **MARKED, pagination=pages).deleted == {("9",)}


@pytest.mark.parametrize(
    ("listed", "key", "stream", "is_deleted"),
    [
        (["C-7", "C-8"], "9", {"columns": {"id": {"strip_prefix": "C-"}}}, False),
        (["7 ", "8"], "9", {}, False),
        (["7", "8"], "1/9", {}, False),
        (["7", "8", "1/8"], "1/9", {}, True),
        (["7", "8", "a+b"], "1/9", {}, False),
        (["7", "8", "a+1/8"], "1/9", {}, True),
    ],
    ids=str,
)
def test_a_key_that_the_api_may_not_take_is_not_that_of_a_deleted_record(
    listed: list[str], key: str, stream: dict[str, Any], is_deleted: bool
) -> None:
    """A repaired or trimmed key is another text than that of the API, and a server may not take an encoded slash."""

    def answer(request: httpx.Request) -> Any:
        name = request.url.path.removeprefix("/api/items").removeprefix("/")
        items = [{"id": each, "sku": each} for each in listed]
        found = [item for item in items if name in {"", item["id"]}]
        return ({"items": found} if not name else found[0]) if found else httpx.Response(404)

    found = fetched(Api(answer), ["8", key], **MARKED | stream)
    assert found.deleted == ({(key,)} if is_deleted else set())


@pytest.mark.parametrize("numbers", [[], ["id"]])
def test_a_search_that_finds_no_listed_record_deletes_none(numbers: list[str]) -> None:
    """Such as one for a text where the API has a number."""

    def answer(request: httpx.Request) -> Any:
        if request.method == "GET":
            return {"items": ITEMS}
        return {"items": [item for item in ITEMS if item["id"] == json.loads(request.content)["id"]]}

    search = {"fetch": SEARCH["fetch"] | {"numbers": numbers}}
    if numbers:
        assert fetched(Api(answer), ["9"], **MARKED, **search).deleted == {("9",)}
    else:
        with pytest.raises(RefusedError, match="has no record at /items, and so it is for records that the list has"):
            fetched(Api(answer), ["9"], **MARKED, **search)


def test_a_failing_api_deletes_nothing() -> None:
    """Only 404 and 410 mean that a record is not there."""
    with pytest.raises(RemoteError, match="HTTP 400"):
        fetched(Api(lambda _: httpx.Response(400)), ["1"], **MARKED)


def test_a_key_of_several_columns() -> None:
    """Each is a dotted path; records that are elements of one answer need one request."""
    answer = {"shop": {"no": 7}, "variants": [{"sku": "A"}, {"sku": "B"}]}
    api = Api(lambda _: answer)
    stream = {"key": ["shop.no", "variants.sku"], "explode": "variants", "fetch": {"path": "/shops/{shop.no}/stock"}}
    found = fetched(api, [("7", "A"), ("7", "B")], **stream, map={"sku": "variants.sku", "name": "variants.sku"})
    assert found.by_key.keys() == {("7", "A"), ("7", "B")}
    assert [request.url.path for request in api.seen] == ["/api/shops/7/stock"]


def test_an_answer_may_be_a_list() -> None:
    """The rows of one record, where rows are grouped."""
    api = Api(lambda _: [{"id": 1, "line": 1}, {"id": 1, "line": 2}])
    assert len(fetched(api, ["1"], group_by=["id"]).by_key["1",]) == 2


@pytest.mark.parametrize(
    ("beside", "headers"),
    [
        ({"has_more": True}, {}),
        ({"total": 3}, {}),
        ({"errors": ["line 3 cannot be read"]}, {}),
        ({}, {"link": '</items/1?page=2>; rel="next"'}),
    ],
    ids=str,
)
def test_a_list_that_is_a_part_of_the_record_is_refused(beside: dict[str, Any], headers: dict[str, str]) -> None:
    """The record would lose its other rows."""
    part = {"rows": [{"id": 1, "line": 1}, {"id": 1, "line": 2}], **beside}
    form = {"group_by": ["id"], "fetch": {"path": "/items/{id}", "record": "rows"}}
    with pytest.raises(RefusedError, match="has no complete record at /rows"):
        fetched(Api(lambda _: httpx.Response(200, json=part, headers=headers)), ["1"], **form)
    named = {"pagination": {"kind": "single_page", "ignore": [*beside, *headers]}}
    found = fetched(Api(lambda _: httpx.Response(200, json=part, headers=headers)), ["1"], **form, **named)
    assert len(found.by_key["1",]) == 2


@pytest.mark.parametrize(
    ("listed", "stream", "is_refused"),
    [
        ([1, 2], {"group_by": ["id"]}, True),
        ([2], {}, True),
        ([2, 1], {}, False),
        ([" 1 "], {"group_by": ["id"]}, False),
        ([7], {"columns": {"id": {"table": {"7": "1"}}}}, False),
    ],
    ids=str,
)
def test_an_answer_with_other_records_is_refused(listed: list[Any], stream: dict[str, Any], is_refused: bool) -> None:
    """An API that ignores a parameter lists all, of which the page may have a part of the rows of one record."""
    form = {"fetch": {"path": "/items", "params": {"number": "{id}"}, "record": "items"}, **stream}
    api = Api(lambda _: {"items": [{"id": number} for number in listed]})
    if is_refused:
        with pytest.raises(RefusedError, match="has other records than the one that was asked for, by id"):
            fetched(api, ["1"], **form)
    else:
        assert len(fetched(api, ["1"], **form).by_key) == len(listed)


LINES = [{"order": 5, "id": number} for number in range(130)]
ROWS_OF_ORDER: dict[str, Any] = {
    "path": "/lines",
    "records": "",
    "mode": "snapshot",
    "key": ["order"],
    "group_by": ["order"],
    "fetch": {"path": "/orders/{order}/lines"},
    "map": {"sku": "order", "name": "order"},
}


@pytest.mark.parametrize(
    ("paging", "rows"), [("heeded", 130), ("ignored", 50), (400, 50)], ids=["heeded", "ignored", "refused"]
)
def test_the_rows_of_a_record_are_not_only_those_of_a_first_page(paging: str | int, rows: int) -> None:
    """An API may give 50 of them without a word that there are more; one without pages has given all."""

    def answer(request: httpx.Request) -> Any:
        if paging == 400 and "page" in request.url.params:
            return httpx.Response(400)
        first = int(request.url.params.get("page", "1")) if paging == "heeded" else 1
        return LINES[50 * first - 50 : 50 * first]

    pagination = {"kind": "page_number", "size": 50, "size_param": "limit"}
    ctx = Api(answer).context(ROWS_OF_ORDER, pagination=pagination)
    assert len(fetched_rows.fetched(CONNECTOR, ctx, "items", ["5"]).by_key["5",]) == rows


@given(st.text(min_size=1).filter(lambda text: text not in {".", ".."} and text.isprintable()))
def test_a_key_stays_in_its_place(key: str) -> None:
    """It is percent-encoded, so it cannot become another path or a query."""
    path = path_filling_and_answered_records.fill_path("/items/{id}/full", {"id": key})
    assert path is not None
    assert path.count("/") == 3
    assert not set(path) & set("?# ")
    assert httpx.URL("https://shop.example").join(path).path == f"/items/{key}/full"


@pytest.mark.parametrize("key", ["", ".", ".."])
def test_a_key_that_would_be_another_path_is_not_requested(key: str) -> None:
    """An empty one would be the list, and a dot segment what is above it."""
    api = Api(lambda _: ITEMS[0])
    assert fetched(api, [key], **MARKED) == Rows()
    assert api.seen == []


SEARCH = {"fetch": {"path": "/search", "body": {"id": "{id}"}, "record": "items"}}


@pytest.mark.parametrize(
    "answer",
    [
        {"items": [], "success": False},
        {"items": [], "error": "backend down"},
        {"items": [], "timed_out": True},
        {"items": None, "status": "error"},
        {"items": None, "message": "Too many requests"},
    ],
    ids=str,
)
def test_a_search_that_failed_does_not_say_that_a_record_was_deleted(answer: dict[str, Any]) -> None:
    """Its answer has no record either. What is no error is named in ``ignore``."""

    def api(found: Any) -> Api:
        return Api(lambda request: found if request.method == "POST" else {"items": []})

    with pytest.raises(RefusedError, match="has no complete record at /items: /[a-z_]+ reports an error"):
        fetched(api(answer), ["1"], **MARKED, **SEARCH)
    ignoring = {"pagination": {"kind": "single_page", "ignore": [*answer]}}
    assert fetched(api(answer), ["1"], **MARKED, **SEARCH, **ignoring).deleted == {("1",)}
    everyday = api({"items": [], "success": True, "message": "no records", "total": 0})
    assert fetched(everyday, ["1"], **MARKED, **SEARCH).deleted == {("1",)}


@pytest.mark.parametrize("status", [202, 207])
@pytest.mark.parametrize("found", [[], [{"id": 1}]])
def test_a_record_that_the_api_has_not_given_yet_is_not_deleted(status: int, found: list[Any]) -> None:
    """It has only accepted the request, or has several answers to it."""
    unfinished = httpx.Response(status, json={"items": found})
    with pytest.raises(RefusedError, match=f"has no complete record at /items: HTTP {status}"):
        fetched(Api(lambda _: unfinished), ["1"], **MARKED, **SEARCH)


def test_what_only_a_search_without_a_record_says_may_be_an_error() -> None:
    """As beside an empty page of a list."""

    def answer(request: httpx.Request) -> Any:
        return {"items": [{"id": 1}]} if json.loads(request.content)["id"] == "1" else {"items": [], "fatal": "x"}

    with pytest.raises(RefusedError, match="/fatal is beside no records"):
        fetched(Api(answer), ["1", "2"], **MARKED, **SEARCH)


@pytest.mark.parametrize(
    "answer",
    [
        {"item": [], "success": False},
        {"item": {}, "error": "throttled"},
        {"item": {"id": None}, "error": "throttled"},
        {"item": [], "code": 429},
    ],
    ids=str,
)
def test_a_fetch_that_failed_does_not_say_that_there_is_no_record(answer: dict[str, Any]) -> None:
    """A record that is not there for three runs is fetched no more."""
    get = {"fetch": {"path": "/items/{id}", "record": "item"}}
    with pytest.raises(RefusedError, match="has no complete record at /item: /[a-z]+ reports an error"):
        fetched(Api(lambda _: answer), ["1"], **MARKED, **get)
    assert fetched(Api(lambda _: {"item": [], "success": True}), ["1"], **MARKED, **get) == Rows()
