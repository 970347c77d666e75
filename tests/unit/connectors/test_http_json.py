"""The kind ``http_json``: what it requests, how it pages, where it continues, and what it says of a wrong config."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock import RawBatch
from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.connector import Context
from crossdock.errors import RefusedError
from crossdock.mapping.row_order_and_cursors import Checkpoint
from crossdock.runs.batches_read_from_connector import pull_checked_batches
from crossdock.runs.stream_trial import Trial
from crossdock.sources import ApiAnswer
from crossdock.testing import ManualClock, context, read
from crossdock.testing.connector_context_and_reading import bind_checked_stream
from crossdock.testing.http_contract import HttpStreamContract
from crossdock.values.json_paths import MISSING, value_at_pointer_or_missing
from crossdock_connectors.http_json import CONNECTOR, request_templates
from crossdock_connectors.http_json.graphql_lists_in_records import sizes_of_uncounted_lists
from crossdock_connectors.http_json.pagination_settings import json_pointer_of_dotted_path
from crossdock_connectors.http_json.settings import HttpJsonSettings

TOKEN = "token-of-the-shop"
ITEMS: list[dict[str, Any]] = [
    {"id": number, "sku": f"00{number}", "title": f"Item {number}", "price": "19.90"} for number in range(1, 6)
]
ITEM_MAP = {"sku": "sku", "name": "title", "unitPrice": {"from": "price", "as": "decimal"}}
STREAM: dict[str, Any] = {"path": "/items", "records": "items", "mode": "snapshot", "key": ["id"]}
STREAM |= {"resource": "product", "map": ITEM_MAP}
Handler = Callable[[httpx.Request], httpx.Response]


def settings(stream: Mapping[str, Any] | None = None, **connection: Any) -> dict[str, Any]:
    made = {"base_url": "https://shop.example/api", "pagination": {"kind": "single_page"}, **connection}
    return made | {"streams": {"items": STREAM | dict(stream or {})}}


class Api:
    """Answers with what *answer* returns: a document, or a response.

    Attributes:
        seen: The requests.
    """

    def __init__(self, answer: Callable[[httpx.Request], Any]) -> None:
        self._answer, self.seen = answer, list[httpx.Request]()

    def context(self, stream: Mapping[str, Any] | None = None, **connection: Any) -> Context[HttpJsonSettings]:
        return context(CONNECTOR, settings(stream, **connection), transport=httpx.MockTransport(self._respond))

    def read(self, stream: Mapping[str, Any] | None = None, since: str | None = None, **connection: Any) -> Trial:
        return read(CONNECTOR, self.context(stream, **connection), "items", since=since)

    def queries(self) -> list[dict[str, str]]:
        return [dict(parse_qsl(request.url.query.decode())) for request in self.seen]

    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.seen]

    def _respond(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        found = self._answer(request)
        return found if isinstance(found, httpx.Response) else httpx.Response(200, json=found)


def skus(trial: Trial) -> list[Any]:
    assert trial.error is None, trial.error
    return [tried.members and tried.members["sku"] for tried in trial.records]


ALL = ["001", "002", "003", "004", "005"]


# ---- pages


def by_page(request: httpx.Request) -> Any:
    number = int(request.url.params["page"])
    return {"items": ITEMS[2 * number - 2 : 2 * number], "pages": 3}


def by_offset(request: httpx.Request) -> Any:
    start = int(request.url.params["skip"])
    return {"items": ITEMS[start : start + 2], "total": 5}


def by_cursor(request: httpx.Request) -> Any:
    start = int(request.url.params.get("after", "0"))
    return {"items": ITEMS[start : start + 2], "meta": {"next": str(start + 2) if start < 4 else None}}


def by_id(request: httpx.Request) -> Any:
    after = int(request.url.params.get("since_id", "0"))
    return {"items": [item for item in ITEMS if item["id"] > after][:2]}


def by_header(request: httpx.Request) -> Any:
    start = int(request.url.params.get("cursor", "0"))
    headers = {"x-next": str(start + 2)} if start < 4 else {}
    return httpx.Response(200, json={"items": ITEMS[start : start + 2]}, headers=headers)


def by_url(request: httpx.Request) -> Any:
    start = int(request.url.params.get("from", "0"))
    following = f"/api/items?from={start + 2}" if start < 4 else None
    return {"items": ITEMS[start : start + 2], "links": {"next": following}}


def by_link(request: httpx.Request) -> Any:
    start = int(request.url.params.get("from", "0"))
    headers = {"link": f'</api/items?from={start + 2}>; rel="next"'} if start < 4 else {}
    return httpx.Response(200, json={"items": ITEMS[start : start + 2]}, headers=headers)


PAGED: Sequence[tuple[dict[str, Any], Callable[[httpx.Request], Any]]] = [
    ({"kind": "single_page"}, lambda _: {"items": ITEMS}),
    ({"kind": "page_number", "pages": "pages"}, by_page),
    ({"kind": "page_number", "size": 2, "size_param": "per_page"}, by_page),
    ({"kind": "offset", "param": "skip", "total": "/total"}, by_offset),
    ({"kind": "cursor_in_body", "path": "meta.next", "param": "after"}, by_cursor),
    ({"kind": "after_id", "param": "since_id", "size": 2}, by_id),
    ({"kind": "cursor_in_header", "header": "X-Next"}, by_header),
    ({"kind": "next_url", "path": "links.next"}, by_url),
    ({"kind": "link_header"}, by_link),
]


@pytest.mark.parametrize("place", ["connection", "stream"])
@pytest.mark.parametrize(("pagination", "answer"), PAGED, ids=range(len(PAGED)))
def test_every_page_is_read(pagination: dict[str, Any], answer: Handler, place: str) -> None:
    """Each kind of pagination reads all records once, whether the connection or the stream names it."""
    api = Api(answer)
    trial = api.read({}, pagination=pagination) if place == "connection" else api.read({"pagination": pagination})
    assert skus(trial) == ALL


@pytest.mark.parametrize(("body", "is_read"), [({"count": 0}, True), ({"count": 1}, False), ({"counts": 0}, False)])
def test_a_list_that_is_empty_by_its_total_may_be_missing(body: Any, is_read: bool) -> None:
    """As in HAL documents; without a total of 0, an answer without its list is refused."""
    paging = {"kind": "page_number", "total": "count"}
    trial = Api(lambda _: body).read({"mode": "incremental", "pagination": paging, "records": "_embedded.items"})
    assert (trial.error is None) is is_read
    assert trial.records == []


def test_the_next_page_may_be_one_of_several_links() -> None:
    """By its relation; without it, the page is the last one, and an answer without links is refused."""

    def answer(request: httpx.Request) -> Any:
        start = int(request.url.params.get("offset", "0"))
        links = [{"rel": "self", "href": "/items"}, {"rel": "next", "href": f"/items?offset={start + 2}"}]
        return {"items": ITEMS[start : start + 2], "links": links[: 2 if start + 2 < len(ITEMS) else 1]}

    paging = {"kind": "next_url", "path": "links", "rel": "next"}
    assert skus(Api(answer).read({"pagination": paging})) == ALL
    assert "no list at /links" in str(Api(lambda _: {"items": ITEMS}).read({"pagination": paging}).error)


@pytest.mark.parametrize("records", ["data.products.nodes", "data.products.edges.*.node"])
def test_a_graphql_connection_is_read(records: str) -> None:
    """The query is posted with its variables, and the cursor as one of them; each page has a place of its own. A
    connection may have edges alone.
    """

    def answer(request: httpx.Request) -> Any:
        start = int(json.loads(request.content)["variables"].get("after", "0"))
        info, items = {"hasNextPage": start < 4, "endCursor": str(start + 2)}, ITEMS[start : start + 2]
        listed = {"nodes": items} if "nodes" in records else {"edges": [{"node": each} for each in items]}
        return {"data": {"products": {**listed, "pageInfo": info}}}

    api = Api(answer)
    stream = {
        "path": "graphql.json",
        "graphql": "query($first: Int, $after: String, $q: String) { products { nodes { id } } }",
        "variables": {"q": "updated_at:>='{since}'"},
        "mode": "incremental",
        "cursor": {"column": "id"},
        "records": records,
        "pagination": {"kind": "graphql_connection", "path": "data.products", "size": 2},
    }
    trial = api.read(stream, since="3")
    assert skus(trial) == ALL
    assert len({tried.record.source for tried in trial.records}) == 3
    assert [body["variables"].get("after") for body in api.bodies()] == [None, "2", "4"]
    assert {body["variables"]["q"] for body in api.bodies()} == {"updated_at:>='3'"}
    assert str(api.seen[0].url) == "https://shop.example/api/graphql.json"


def test_a_search_is_posted() -> None:
    """A body is sent with POST and with its texts filled in; what needs a missing cursor is left out."""
    api = Api(lambda _: {"items": ITEMS})
    stream = {"mode": "incremental", "cursor": {"column": "id"}, "body": {"filter": {"from": "{since}", "n": 5}}}
    assert skus(api.read(stream)) == ALL
    assert skus(api.read(stream, since="17")) == ALL
    assert [request.method for request in api.seen] == ["POST", "POST"]
    assert api.bodies() == [{"filter": {"n": 5}}, {"filter": {"from": "17", "n": 5}}]


@pytest.mark.parametrize(
    ("request_", "place", "param", "at"),
    [
        ({"body": {"filter": {"a": 1}}}, "body", "skip", "/skip"),
        ({"body": {"filter": {"a": 1}, "page": {"sort": "id"}}}, "body", "page.skip", "/page/skip"),
        ({"body": {"page": {"after": {}}}}, "body", "page.after.skip", "/page/after/skip"),
        ({"body": {"params": ["x", {}]}}, "body", "/params/1/off~1set", "/params/1/off~1set"),
        ({"body": {"filter": {"a": 1}}}, "query", "page.skip", ""),
        (
            {"graphql": "query($o: O!) { items }", "variables": {"o": {"sort": "id"}}},
            "variables",
            "o.skip",
            "/variables/o/skip",
        ),
        ({"graphql": "query($skip: Int) { items }"}, "variables", "skip", "/variables/skip"),
    ],
)
def test_paging_parameters_of_a_post_go_where_they_are_declared(
    request_: dict[str, Any], place: str, param: str, at: str
) -> None:
    """A POST has the parameters for pages in its body, its variables or its query, beside what is declared there."""

    def answer(request: httpx.Request) -> Any:
        sent = value_at_pointer_or_missing(json.loads(request.content), at) if at else request.url.params.get(param)
        start = 0 if sent is MISSING or sent is None else int(sent)
        return {"items": ITEMS[start : start + 2]}

    api = Api(answer)
    pagination = {"kind": "offset", "param": param, "in": place}
    assert skus(api.read({**request_, "pagination": pagination})) == ALL
    assert [request.method for request in api.seen] == ["POST"] * 4
    declared = request_.get("body") or {"query": request_["graphql"], "variables": request_.get("variables", {})}
    assert [_without(body, at) for body in api.bodies()] == [declared] * 4


def _without(body: Any, pointer: str) -> Any:
    """*body* without the member at *pointer*."""
    around, _, name = pointer.rpartition("/")
    if pointer:
        del value_at_pointer_or_missing(body, around)[name.replace("~1", "/")]
    return body


# ---- where a stream continues


def test_a_cursor_is_a_parameter() -> None:
    """Without a cursor, its parameter is left out, or has the value ``first``; others are always sent."""
    api = Api(lambda _: {"items": ITEMS})
    stream = {"mode": "incremental", "cursor": {"column": "id"}, "params": {"status": ["a", "b"], "min": "{since}"}}
    api.read(stream)
    api.read(stream | {"first": "1"})
    api.read(stream, since="4")
    assert [query.get("min") for query in api.queries()] == [None, "1", "4"]
    assert [request.url.params.get_list("status") for request in api.seen] == [["a", "b"]] * 3


def test_a_cursor_may_be_a_header() -> None:
    """The requests for all pages have it, and the first run does not; others are always sent."""
    pages = [{"items": ITEMS[:2], "next": 2}, {"items": ITEMS[2:], "next": None}]
    api = Api(lambda request: pages[int(request.url.params.get("cursor", 1)) - 1])
    stream = {"mode": "incremental", "cursor": {"column": "id"}, "headers": {"X-Since": "{since}", "X-Kind": "a"}}
    stream |= {"pagination": {"kind": "cursor_in_body", "path": "next"}}
    api.read(stream)
    api.read(stream, since="4")
    assert [request.headers.get("x-since") for request in api.seen] == [None, None, "4", "4"]
    assert [request.headers["x-kind"] for request in api.seen] == ["a"] * 4


def test_windows_are_read_one_after_the_other() -> None:
    """Each window is one list with its start and end in the request, and ends with a checkpoint at its end.

    It begins a second before that of the one before, in case the API leaves out records at both edges.
    """
    api = Api(lambda _: {"items": ITEMS})
    now = ManualClock().now()
    first = (now - timedelta(days=10)).isoformat()
    stream = {"mode": "incremental", "windows": {"size": "4d"}, "first": first}
    stream |= {"params": {"from": "{start}", "to": "{end}"}}
    bound = bind_checked_stream(CONNECTOR, api.context(stream), "items")
    found = list(pull_checked_batches(bound, None))
    asked = [(query["from"], query["to"]) for query in api.queries()]
    assert len(asked) == 3
    moments = [tuple(map(datetime.fromisoformat, each)) for each in asked]
    assert {end - start for (_, end), (start, _) in pairwise(moments)} == {timedelta(seconds=1)}
    assert [item.cursor for item in found if isinstance(item, Checkpoint)] == [end for _, end in asked]
    assert len({item.source for item in found if isinstance(item, RawBatch)}) == 3
    assert _first_start(api, bound, asked[1][1]) < asked[1][1], "the overlap is not read again"


def test_windows_that_were_empty_are_read_again_once_a_later_one_is_not() -> None:
    """The API may have been out of order: the cursor does not pass them before."""
    starts, down = list[str](), {1, 2, 5}  # requests without records: two windows, and the second of them again

    def answer(request: httpx.Request) -> dict[str, Any]:
        starts.append(request.url.params["from"])
        return {"items": [] if len(starts) - 1 in down else [{**ITEMS[0], "id": len(starts)}]}

    api = Api(answer)
    first = (ManualClock().now() - timedelta(days=4)).isoformat()
    stream = {"mode": "incremental", "windows": {"size": "1d"}, "first": first}
    stream |= {"pagination": {"kind": "single_page"}, "params": {"from": "{start}", "to": "{end}"}}
    found = list(pull_checked_batches(bind_checked_stream(CONNECTOR, api.context(stream), "items"), None))
    days = sorted(set(starts))
    assert starts == [*days, *days[1:3]]
    rows = [item.load().height if isinstance(item, RawBatch) else "until" for item in found]
    assert rows == [1, "until", 0, "until", 0, "until", 1, 0, 1, "until"]


@pytest.mark.parametrize(
    ("layout", "sent"), [("unix", "1772364600"), ("%Y-%m-%d", "2026-03-01"), ("%d.%m.%Y %H:%M", "01.03.2026 11:30")]
)
def test_a_time_is_written_as_the_api_wants_it(layout: str, sent: str) -> None:
    """A time is sent in UTC and never rounded up."""
    api = Api(lambda _: {"items": ITEMS})
    stream = {"mode": "incremental", "params": {"min": "{since}"}, "cursor": {"column": "at", "as": "instant"}}
    api.read(stream | {"time_format": layout}, since="2026-03-01T12:30:00.9+01:00")
    assert api.queries()[0]["min"] == sent


@pytest.mark.parametrize(("layout", "sent"), [("unix", "1772364600"), ("unix_ms", "1772364600900")])
def test_a_cursor_of_numbers_since_1970_is_sent_as_one(layout: str, sent: str) -> None:
    """An instant has an overlap in time, whatever it is written as; time_format may be another one."""
    api = Api(lambda _: {"items": ITEMS})
    cursor = {"column": "at", "as": "instant", "format": layout}
    stream = {"mode": "incremental", "params": {"min": "{since}"}, "cursor": cursor}
    api.read(stream, since="2026-03-01T12:30:00.9+01:00")
    api.read(stream | {"time_format": "%Y"}, since="2026-03-01T12:30:00.9+01:00")
    assert [each["min"] for each in api.queries()] == [sent, "2026"]


@pytest.mark.parametrize(
    ("layout", "sent"),
    [("%Y-%m-%d", "0001-01-02"), ("%F", "0001-01-02"), ("%Y%m%d", "00010102"), ("%%Y %Y", "%Y 0001")],
)
def test_a_year_has_four_digits(layout: str, sent: str) -> None:
    """A first run that begins in the year 1, as some APIs write the beginning of time, asks for a valid date."""
    api = Api(lambda _: {"items": ITEMS})
    stream = {"mode": "incremental", "params": {"min": "{since}"}, "cursor": {"column": "at", "as": "instant"}}
    api.read(stream | {"time_format": layout, "first": "0001-01-02T00:00:00Z"})
    assert api.queries()[0]["min"] == sent


@pytest.mark.parametrize(("layout", "before"), [("unix", 1), ("%Y-%m-%d", 0)])
def test_windows_that_are_written_less_exactly_leave_no_gap(layout: str, before: int) -> None:
    """Each window begins where the one before it ended, or a second before if its time has seconds."""
    api = Api(lambda _: {"items": ITEMS})
    first = (ManualClock().now() - timedelta(days=3, seconds=0.7)).isoformat()
    stream = {"mode": "incremental", "windows": {"size": "31h"}, "first": first, "time_format": layout}
    api.read(stream | {"params": {"from": "{start}", "to": "{end}"}})
    assert len(api.seen) == 3
    edges = [(first["to"], second["from"]) for first, second in pairwise(api.queries())]
    assert all(end == start for end, start in edges) if not before else {int(a) - int(b) for a, b in edges} == {before}


def _first_start(api: Api, bound: BoundStream, since: str) -> str:
    api.seen.clear()
    list(pull_checked_batches(bound, since))
    return api.queries()[0]["from"]


@given(
    st.recursive(
        st.text() | st.integers() | st.none() | st.booleans(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_request_without_templates_is_sent_as_it_is(value: Any) -> None:
    """Only texts with {since}, {start} or {end} change."""
    if not list(request_templates.since_start_end_placeholders_in(value)):
        assert request_templates.fill_or_remove_placeholders(value, {}) == value


@given(st.lists(st.text(min_size=1).filter(lambda name: "." not in name and not name.startswith("/")), min_size=1))
def test_a_dotted_path_and_a_json_pointer_are_the_same_place(names: list[str]) -> None:
    """A dotted path names the members that its pointer names."""
    document: Any = "found"
    for name in reversed(names):
        document = {name: document}
    assert ApiAnswer("", document).at(json_pointer_of_dotted_path(".".join(names))) == "found"
    assert json_pointer_of_dotted_path(json_pointer_of_dotted_path(".".join(names))) == json_pointer_of_dotted_path(
        ".".join(names)
    )


# ---- credentials and throttling


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ({"kind": "header", "name": "X-Key", "value": "env:T"}, "x-key", TOKEN),
        ({"kind": "bearer", "token": "env:T"}, "authorization", f"Bearer {TOKEN}"),
        ({"kind": "bearer", "token": "env:T", "scheme": "ShippoToken"}, "authorization", f"ShippoToken {TOKEN}"),
        ({"kind": "basic", "user": "env:T"}, "authorization", "Basic dG9rZW4tb2YtdGhlLXNob3A6"),
        ({"kind": "basic", "user": "me", "password": "env:T"}, "authorization", "Basic bWU6dG9rZW4tb2YtdGhlLXNob3A="),
    ],
)
def test_a_credential_is_sent(monkeypatch: pytest.MonkeyPatch, auth: Any, header: str, value: str) -> None:
    """Each kind of credential is read from its reference and sent as its standard says; headers and parameters too."""
    monkeypatch.setenv("T", TOKEN)
    api = Api(lambda _: {"items": ITEMS})
    sent: Any = {"headers": {"Accept-Language": "en", "X-Second-Token": "env:T"}, "params": {"organization": "7"}}
    assert skus(api.read(auth=auth, **sent)) == ALL
    assert api.seen[0].url.params["organization"] == "7"
    assert api.seen[0].headers[header] == value
    assert api.seen[0].headers["accept-language"] == "en"
    assert api.seen[0].headers["x-second-token"] == TOKEN


@pytest.mark.parametrize(
    ("auth", "sent"),
    [
        (
            {"kind": "client_credentials", "client_id": "me", "client_secret": "env:T", "scopes": ["read"]},
            {"grant_type": "client_credentials", "scope": "read"},
        ),
        (
            {"kind": "refresh_token", "refresh_token": "env:T", "client_id": "me"},
            {"grant_type": "refresh_token", "refresh_token": TOKEN, "client_id": "me"},
        ),
    ],
)
def test_a_token_is_requested(monkeypatch: pytest.MonkeyPatch, auth: Any, sent: dict[str, str]) -> None:
    """A grant is exchanged for a token at its own address."""
    monkeypatch.setenv("T", TOKEN)
    api = Api(lambda request: {"access_token": "granted"} if request.method == "POST" else {"items": ITEMS})
    assert skus(api.read(auth=auth | {"token_url": "https://login.example/token"})) == ALL
    assert dict(parse_qsl(api.seen[0].content.decode())) == sent
    assert api.seen[1].headers["authorization"] == "Bearer granted"


def test_a_token_is_requested_with_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an API that accepts no form, with the client in HTTP Basic, as Extensiv wants it."""
    monkeypatch.setenv("T", TOKEN)
    api = Api(lambda request: {"access_token": "granted"} if request.method == "POST" else {"items": ITEMS})
    auth = {"kind": "client_credentials", "token_url": "https://login.example/token", "client_id": "me"}
    assert skus(api.read(auth=auth | {"client_secret": "env:T", "body": "json", "extra": {"user_login": "ann"}})) == ALL
    assert json.loads(api.seen[0].content) == {"grant_type": "client_credentials", "user_login": "ann"}
    assert api.seen[0].headers["content-type"] == "application/json"
    assert api.seen[0].headers["authorization"] == "Basic bWU6dG9rZW4tb2YtdGhlLXNob3A="


@pytest.mark.parametrize(("member", "answer"), [("jwt", {"jwt": "granted"}), ("", "granted")])
def test_a_login_returns_the_token(monkeypatch: pytest.MonkeyPatch, member: str, answer: Any) -> None:
    """The credentials are posted as JSON; what the config names is the token: a member of the answer, or all of it."""
    monkeypatch.setenv("T", TOKEN)
    api = Api(lambda request: httpx.Response(200, json=answer) if request.method == "POST" else {"items": ITEMS})
    auth = {"kind": "login", "login_url": "https://shop.example/login", "token_member": member}
    assert skus(api.read(auth=auth | {"credentials": {"user": "me", "password": "env:T"}})) == ALL
    assert json.loads(api.seen[0].content) == {"user": "me", "password": TOKEN}
    assert api.seen[1].headers["authorization"] == "Bearer granted"


def test_an_answer_that_throttles_in_another_way_is_waited_for() -> None:
    """A 403 with the configured text is sent again; another 403 ends the stream."""
    api = Api(
        lambda _: {"items": ITEMS} if len(api.seen) > 2 else httpx.Response(403, json={"error": "Rate Limit hit"})
    )
    assert skus(api.read(throttled=[{"status": 403, "text": "rate limit"}])) == ALL
    assert len(api.seen) == 3
    refused = Api(lambda _: httpx.Response(403, json={"error": "no scope"})).read(
        throttled=[{"status": 403, "text": "rate limit"}]
    )
    assert "no scope" in str(refused.error)


THROTTLED = {"errors": [{"code": 30, "message": "Not enough credits", "time_remaining": "18 seconds"}], "data": None}
CREDITS = {"status": 200, "text": "not enough credits", "wait": "errors.0.time_remaining"}


@pytest.mark.parametrize(("rule", "wait_s"), [(CREDITS, 18), (CREDITS | {"wait": "errors.0.code"}, 30)])
def test_an_answer_of_success_may_throttle_and_state_the_wait(rule: dict[str, Any], wait_s: float) -> None:
    """The member that the rule names says for how long nothing is sent, as a text or a number of seconds."""
    clock, sent = ManualClock(), list[float]()

    def answer(_: httpx.Request) -> Any:
        sent.append(clock.monotonic())
        return {"items": ITEMS} if len(sent) > 1 else THROTTLED

    api = Api(answer)
    transport = httpx.MockTransport(api._respond)
    ctx = context(CONNECTOR, settings(throttled=[rule]), transport=transport, clock=clock)
    assert skus(read(CONNECTOR, ctx, "items")) == ALL
    assert wait_s <= sent[1] - sent[0] < wait_s + 2


def test_data_with_the_text_of_a_refusal_does_not_throttle() -> None:
    """In an answer of success, the text counts in its errors only."""
    api = Api(lambda _: {"items": [ITEMS[0] | {"title": "Not enough credits"}]})
    assert skus(api.read(throttled=[CREDITS])) == ALL[:1]
    assert len(api.seen) == 1


# ---- records


NUMBERS = ["a", "b", "c", "d", "e"]
REST: dict[str, Any] = {"path": "/g", "graphql": "order $id $after", "variables": {"id": "{id}"}, "numbers": ["id"]}
REST |= {"connection": "data.order.parcels"}


def _parcels(after: str | None, form: str) -> dict[str, Any]:
    """Two of the parcels, as a GraphQL connection."""
    start = 0 if after is None else NUMBERS.index(after) + 1
    cut, more = NUMBERS[start : start + 2], start + 2 < len(NUMBERS)
    elements = [{"node": {"number": each}} if form == "edges" else {"number": each} for each in cut]
    return {form: elements, "pageInfo": {"hasNextPage": more, "endCursor": cut[-1] if more else None}}


def _with_parcels(request: httpx.Request, form: str) -> Any:
    sent = json.loads(request.content)
    if sent["query"] == "list":
        return {"data": {"items": [{"id": 1, "parcels": _parcels(None, form)}, {"id": 2}]}}
    assert sent["variables"]["id"] == 1
    return {"data": {"order": {"parcels": _parcels(sent["variables"]["after"], form)}}}


@pytest.mark.parametrize("form", ["edges", "nodes"])
def test_the_rest_of_a_nested_connection_is_requested(form: str) -> None:
    """Page by page, for the record that has more; without ``rest`` this record is rejected."""
    api = Api(lambda request: _with_parcels(request, form))
    number = "node.number" if form == "edges" else "number"
    parcels = {"of": f"parcels.{form}", "each": {"carrier": {"const": "DHL"}, "number": number}}
    stream = {"path": "/g", "graphql": "list", "records": "data.items", "map": {"tracking": parcels}}
    stream |= {"resource": "order", "contributes": ["tracking"]}
    cut, whole = api.read(stream), api.read(stream | {"rest": {"parcels": REST}})
    assert [each.problem and each.problem.code for each in cut.records] == ["bad_value", None]
    members = whole.records[0].members or {}
    assert [each["number"] for each in members["tracking"]] == NUMBERS
    assert [body["variables"].get("after") for body in api.bodies()] == [None, None, "b", "d"]


ALIKE = [{"number": "a"}] * 3
LATER = [{"number": each} for each in "def"]


@pytest.mark.parametrize(
    ("pages", "numbers"),
    [
        pytest.param([("c", LATER[:2], True), ("f", LATER[2:], False)], "abcdef", id="whole"),
        pytest.param([("f", [*LATER[:2], {"number": "a"}], False)], "abcdea", id="an equal element later"),
        pytest.param([("f", [{"number": each} for each in "abcdef"], False)], None, id="begins again"),
        pytest.param([("b", [{"number": each} for each in "ab"], True)], None, id="begins again in smaller pages"),
        pytest.param([("e", LATER[:2], True), ("c", LATER[:2], True)], None, id="repeats a page"),
        pytest.param([("c", LATER[:2], True), ("c", LATER[2:], True), ("c", ALIKE, True)], None, id="the same cursor"),
        pytest.param(
            [("c", [{"number": "d"}], True), ("c", [{"number": "e"}], True)], None, id="the same cursor twice"
        ),
        pytest.param([("f", [], False)], None, id="nothing more"),
    ],
)
def test_a_rest_without_progress_is_no_rest(pages: list[tuple[str, list[Any], bool]], numbers: str | None) -> None:
    """An API that ignores the cursor gives elements again: the record is a dead letter, and no element is doubled."""
    held = {"nodes": [{"number": each} for each in "abc"], "pageInfo": {"hasNextPage": True, "endCursor": "c"}}
    left = iter(pages)

    def answer(request: httpx.Request) -> Any:
        if json.loads(request.content)["query"] == "list":
            return {"data": {"items": [{"id": 1, "parcels": held}, {"id": 2}]}}
        cursor, nodes, more = next(left)
        return {
            "data": {"order": {"parcels": {"nodes": nodes, "pageInfo": {"hasNextPage": more, "endCursor": cursor}}}}
        }

    parcels = {"of": "parcels.nodes", "each": {"carrier": {"const": "DHL"}, "number": "number"}}
    stream = {"path": "/g", "graphql": "list", "records": "data.items", "map": {"tracking": parcels}}
    stream |= {"resource": "order", "contributes": ["tracking"], "rest": {"parcels": REST}}
    first, second = Api(answer).read(stream).records
    assert second.problem is None
    assert (first.problem and first.problem.code) == (None if numbers else "bad_value")
    assert "".join(each["number"] for each in (first.members or {}).get("tracking", [])) == (numbers or "")


def by_number(sent: Any, lines: Sequence[str]) -> dict[str, Any]:
    """Two of the lines, as a connection whose cursor is the number of lines before."""
    start = int(sent.get("variables", {}).get("after") or 0)
    info = {"hasNextPage": start + 2 < len(lines), "endCursor": str(min(start + 2, len(lines)))}
    return {"nodes": [{"number": each} for each in lines[start : start + 2]], "pageInfo": info}


@pytest.mark.parametrize(("after", "numbers"), [(1, "xabcd"), (2, None), (9, "abcd")])
def test_a_rest_by_position_has_each_element_once(after: int, numbers: str | None) -> None:
    """An element that is added meanwhile moves others to another page: two readings agree, or it is a dead letter."""
    asked = list[Any]()

    def answer(request: httpx.Request) -> Any:
        sent, lines = json.loads(request.content), "abcd" if len(asked) < after else "xabcd"
        asked.append(sent)
        made = by_number(sent, lines)
        return {"data": {"items": [{"id": 1, "parcels": made}], "order": {"parcels": made}}}

    parcels = {"of": "parcels.nodes", "each": {"carrier": {"const": "DHL"}, "number": "number"}}
    stream = {"path": "/g", "graphql": "list", "records": "data.items", "map": {"tracking": parcels}}
    stream |= {"resource": "order", "contributes": ["tracking"], "rest": {"parcels": REST}}
    (found,) = Api(answer).read(stream).records
    assert (found.problem is None) == (numbers is not None)
    assert "".join(each["number"] for each in (found.members or {}).get("tracking", [])) == (numbers or "")


@pytest.mark.parametrize(
    ("selected", "variables", "sizes"),
    [
        ("lines(first: 3) { nodes { sku } }", {}, {"lines": 3}),
        ("rows: lines(after: $a, first: 3) { edges { node { sku } } }", {}, {"rows": 3}),
        ("lines(first: $size) { nodes { sku } }", {"size": 3}, {"lines": 3}),
        ("lines(first: $size) { nodes { sku } }", {}, {}),
        ("parcels(limit: 2) { number } lines(filter: {first: 9}) { sku }", {}, {"parcels": 2}),
        ("lines(first: 3) { nodes { sku images(first: 1) { url } } pageInfo { hasNextPage } }", {}, {}),
        ("lines(first: 3) { ...Lines }", {}, {}),
        ("node { lines(last: 3) { nodes { sku } } }", {}, {"lines": 3}),
    ],
)
def test_the_lists_that_a_query_cuts_without_a_word(
    selected: str, variables: dict[str, Any], sizes: dict[str, int]
) -> None:
    """Those of whose length only the query knows; one element is asked for by who wants no other."""
    query = f"query ($first: Int = 7) {{ orders(first: $first) {{ nodes {{ id {selected} }} pageInfo {{ x }} }} }}"
    assert sizes_of_uncounted_lists(query, variables) == sizes


@pytest.mark.parametrize(("number", "ignore", "is_told"), [(2, [], False), (3, [], True), (3, ["parcels"], False)])
def test_a_nested_list_as_long_as_was_asked_for_is_a_warning(number: int, ignore: list[str], *, is_told: bool) -> None:
    """A query that selects no pageInfo gets the first elements, and nothing tells of others."""
    query = "query { items { id parcels(first: 3) { nodes { number } } } }"
    parcels = {"nodes": [{"number": str(each)} for each in range(number)]}
    api = Api(lambda _: {"data": {"items": [{"id": 1, "parcels": parcels}, {"id": 2, "parcels": parcels}]}})
    stream: dict[str, Any] = {"path": "/g", "graphql": query, "records": "data.items"}
    stream |= {"resource": "order", "contributes": ["tracking"]}
    stream |= {"map": {"tracking": {"of": "parcels.nodes", "each": {"carrier": {"const": "D"}, "number": "number"}}}}
    ctx = api.context(stream, pagination={"kind": "single_page", "ignore": ignore})
    assert read(CONNECTOR, ctx, "items").error is None
    told = "2 lists parcels of a page have exactly the 3 elements that the query asks for"
    assert any(told in each for each in ctx.run.warnings) == is_told


GONE = {"data": {"order": None}}
REFUSED = {"errors": [{"message": "ACCESS_DENIED", "extensions": {"code": "ACCESS_DENIED"}}], "data": {"order": None}}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (GONE, "has no list at /data/order/parcels"),
        (REFUSED, "ACCESS_DENIED"),
        (404, "HTTP 404"),
        (500, "HTTP 500"),
        (403, "HTTP 403"),
    ],
)
def test_a_rest_that_the_api_refuses_stops_its_record_only(answer: Any, says: str) -> None:
    """Such as that of an order that was deleted meanwhile: its dead letter names the reason."""
    held = {"nodes": [{"number": "a"}], "pageInfo": {"hasNextPage": True, "endCursor": "a"}}
    rest = {"nodes": [{"number": "b"}], "pageInfo": {"hasNextPage": False, "endCursor": "b"}}

    def respond(request: httpx.Request) -> Any:
        sent = json.loads(request.content)
        if sent["query"] == "list":
            return {"data": {"items": [{"id": number, "parcels": held} for number in (1, 2, 3)]}}
        if sent["variables"]["id"] != 2:
            return {"data": {"order": {"parcels": rest}}}
        return httpx.Response(answer) if isinstance(answer, int) else answer

    parcels = {"of": "parcels.nodes", "each": {"carrier": {"const": "DHL"}, "number": "number"}}
    stream = {"path": "/g", "graphql": "list", "records": "data.items", "map": {"tracking": parcels}}
    stream |= {"resource": "order", "contributes": ["tracking"], "rest": {"parcels": REST}}
    trial = Api(respond).read(stream)
    assert trial.error is None
    assert [each.problem and (each.problem.code, each.problem.pointer) for each in trial.records] == [
        None,
        ("unmatched", "parcels"),
        None,
    ]
    assert says in str(trial.records[1].problem)


def test_a_rest_asks_for_one_record() -> None:
    """Otherwise each record would get the same."""
    wrong = REST | {"variables": {"id": 7}}
    with pytest.raises(ValueError, match="name no member of the record"):
        HttpJsonSettings.model_validate({"kind": "http_json", **settings({"rest": {"parcels": wrong}})})


def test_a_text_with_half_of_a_character_stops_its_record_only() -> None:
    """Its dead letter names the member, also one that the map does not use, and all others are read."""
    texts = ['"a"', r'"canary \ud83d"', r'"whole \ud83d\ude00"']
    rows = ",".join(f'{{"id": {number}, "sku": "S", "title": {text}}}' for number, text in enumerate(texts))
    api = Api(lambda _: httpx.Response(200, content=f'{{"items": [{rows}, {{"id": "\\udc00", "sku": "S"}}]}}'))
    found = api.read({"map": {"sku": "sku", "name": "sku"}}).records
    problems = [each.problem and (each.problem.code, each.problem.pointer) for each in found]
    assert problems == [None, ("bad_value", "/title"), None, ("bad_value", "/id")]
    assert "half of a character" in str(found[1].problem)
    assert "canary" not in str(found[1].problem)


def test_an_element_with_half_of_a_character_stops_its_row_only() -> None:
    """The pointer has its index in the list."""
    lines = r'[{"sku": "A"}, {"sku": "B", "note": "\ud83d"}]'
    api = Api(lambda _: httpx.Response(200, content=f'{{"items": [{{"id": 1, "lines": {lines}}}]}}'))
    mapped = {"sku": "lines.sku", "name": "lines.sku"}
    found = api.read({"explode": "lines", "key": ["lines.sku"], "map": mapped}).records
    assert [each.problem and each.problem.pointer for each in found] == [None, "/lines/1/note"]


def test_lists_in_records_are_items_or_rows() -> None:
    """``of`` makes an item of each element of a list, ``explode`` a row; numbers stay exact."""
    order = {
        "id": 7,
        "customer": {"id": "0017"},
        "at": "2026-01-01T00:00:00-05:00",
        "lines": [
            {"sku": {"id": 1}, "n": 2, "price": "0.10"},
            {"sku": {"id": 2}, "n": 1, "price": 12345678901234.5678},
        ],
    }
    form = {
        "customerId": {"ref": "customer", "key": "customer.id"},
        "currency": {"const": "EUR"},
        "placedAt": {"from": "at", "as": "instant"},
        "items": {
            "of": "lines",
            "each": {
                "productId": {"ref": "product", "key": "sku.id"},
                "quantity": {"from": "n", "as": "decimal"},
                "unitPrice": {"from": "price", "as": "decimal"},
            },
        },
    }
    text = json.dumps({"items": [order]}).replace("12345678901234.568", "12345678901234.5678")
    api = Api(lambda _: httpx.Response(200, text=text))
    (tried,) = api.read({"resource": "order", "map": form}).records
    assert tried.members is not None, tried.problem
    assert [item["unitPrice"] for item in tried.members["items"]] == [Decimal("0.1"), Decimal("12345678901234.5678")]
    exploded = {"explode": "lines", "key": ["lines.sku.id"], "map": {"sku": "lines.sku.id", "name": "customer.id"}}
    assert skus(api.read(exploded)) == ["1", "2"]


@pytest.mark.parametrize("lines", [None, []])
def test_a_group_without_rows_is_a_dead_letter(lines: Any) -> None:
    """An order whose lines are empty or null leaves a trace; a filter may leave out such records, and counts them."""
    grouped: dict[str, Any] = {"explode": "lines", "key": ["id"], "group_by": ["id"], "mode": "snapshot"}
    grouped |= {"map": {"sku": "id", "name": {"const": "Order"}}}
    api = Api(lambda _: {"items": [{"id": 1, "lines": lines}, {"id": 2, "lines": [None, {"sku": 1}]}]})
    first, second = api.read(grouped).records
    assert first.problem is not None
    assert str(first.problem).startswith(
        "lines: has no elements, of which the record is made; skip: {none: {field: lines"
    )
    assert second.problem is None
    for field in ("lines", "lines.sku"):
        trial = api.read(grouped | {"skip": {"none": {"field": field, "empty": True}}})
        assert [each.record.row["id"] for each in trial.records] == ["2"]


class TestContract(HttpStreamContract):
    """The contract of every stream of a JSON API holds for one that a config declares."""

    connector = CONNECTOR
    environment = {"T": TOKEN}
    stream = "items"
    settings = settings(
        {
            "mode": "incremental",
            "cursor": {"column": "id"},
            "params": {"since": "{since}"},
            "map": ITEM_MAP | {"active": {"from": "status", "table": {"A": True, "D": False}, "default": True}},
        },
        auth={"kind": "bearer", "token": "env:T"},
        pagination={"kind": "link_header"},
    )
    pages = [{"items": ITEMS[:3]}, {"items": ITEMS[3:]}]

    def transport(self, pages: Sequence[Any]) -> httpx.MockTransport:
        def answer(request: httpx.Request) -> httpx.Response:
            number = int(request.url.params.get("page", "1"))
            link = f'<{request.url.copy_set_param("page", number + 1)}>; rel="next"'
            headers = {"link": link} if number < len(pages) else {}
            return httpx.Response(200, text=json.dumps(pages[number - 1]), headers=headers)

        return httpx.MockTransport(answer)


# ---- what goes wrong


@pytest.mark.parametrize(
    ("records", "body", "hint"),
    [
        ("/items", {"data": {"items": []}, "next": None}, "the answer has data, next"),
        ("data.rows", {"data": {"items": []}}, "/data has items"),
        ("data.items", {"data": None}, "/data is null"),
        ("items", {"items": None}, "/items is null"),
        ("items", {"items": {}}, "/items has no members"),
        ("items", [], "the answer is a list"),
        ("", {"items": []}, "the answer has items"),
        ("items", "text", "the answer is no object"),
        ("items", {"ann@example.com": 1, "id": 2}, "the answer has id, 1 whose names may be data"),
    ],
)
def test_a_wrong_place_of_the_records_is_explained(records: str, body: Any, hint: str) -> None:
    """The error names the page, the key of the config, and what the answer has instead."""
    error = Api(lambda _: body).read({"records": records}).error
    assert error is not None
    assert error.where == "https://shop.example/api/items"
    assert "connections.http_json.streams.items.records" in error.message
    assert error.hint == hint


def findings(api: Api, stream: Mapping[str, Any] | None = None) -> list[tuple[bool, str]]:
    assert CONNECTOR.check is not None
    return [(found.ok, found.text) for found in CONNECTOR.check(api.context(stream))]


def test_check_of_a_list_without_content() -> None:
    """An API that answers 204 if it has nothing is in order."""
    pages = {"kind": "page_number", "param": "page", "stop": {"statuses": [204]}}
    found = findings(Api(lambda _: httpx.Response(204)), {"pagination": pages})
    assert found == [(True, "items: /items responds that there are no records")]


def test_check_requests_two_pages_of_each_stream() -> None:
    """It says how many records they have; a key that no record has, and a refusal, are failures."""
    api = Api(by_url)
    assert findings(api, {"pagination": {"kind": "next_url", "path": "links.next"}}) == [
        (True, "items: https://shop.example/api/items responds, with 2 records and a second page with 2")
    ]
    assert len(api.seen) == 2
    ((ok, text),) = findings(Api(by_url), {"key": ["number"]})
    assert (ok, text) == (
        False,
        "items: no record of https://shop.example/api/items has the key 'number'; the first has id, price, sku, title",
    )
    future = {"mode": "incremental", "windows": {"size": "1d"}, "first": "9999-12-31T00:00:00Z"}
    future |= {"params": {"from": "{start}", "to": "{end}"}}
    assert findings(Api(by_url), future) == [(True, "items: nothing to read before 9999-12-31T00:00:00Z")]
    ((ok, text),) = findings(Api(lambda _: httpx.Response(404, json={"error": "no such list"})))
    assert not ok
    assert "no such list" in text


@pytest.mark.parametrize(
    ("pagination", "says"),
    [
        ({"kind": "cursor_in_body", "path": "paging.cursor"}, "no next page: /paging has other, last"),
        ({"kind": "next_url", "path": "paging.last"}, "no next page: /paging/last is null"),
        ({"kind": "page_number", "size": 3}, "a second page with 2; the API ignores limit: 3"),
        ({"kind": "page_number", "size": 5}, "a second page with 2"),
        (
            {"kind": "page_number", "size": 9, "size_param": "per_page"},
            "a second page with 2; the API gives fewer than per_page: 9, or ignores it",
        ),
    ],
)
def test_check_says_whether_there_is_a_next_page(pagination: Mapping[str, Any], says: str) -> None:
    """A pagination that the API does not have would read the first page only, so the finding shows it."""

    def answer(request: httpx.Request) -> Any:
        items = [{"id": 6}, {"id": 7}] if request.url.params.get("page") == "2" else ITEMS
        return {"items": items, "paging": {"other": "c2", "last": None}}

    ((ok, text),) = findings(Api(answer), {"pagination": pagination})
    assert ok
    assert text.startswith("items: https://shop.example/api/items")
    assert text.endswith(f" responds, with {len(ITEMS)} records and {says}")


@pytest.mark.parametrize(
    "pagination",
    [
        {"kind": "cursor_in_body", "path": "paging.cursor"},
        {"kind": "next_url", "path": "paging.last"},
        {"kind": "link_header"},
        {"kind": "single_page"},
    ],
)
def test_an_answer_that_tells_of_more_shows_a_wrong_pagination(pagination: Mapping[str, Any]) -> None:
    """`check` fails, unless the config says that the member is something else."""

    def answer(_: httpx.Request) -> Any:
        return {"items": ITEMS, "paging": {"next": "c2", "last": None}}

    ((ok, text),) = findings(Api(answer), {"pagination": pagination})
    assert not ok
    assert "the list ended here, although /paging/next tells of a next page" in text
    assert "check how the API splits the list into pages" in text
    ((ok, _),) = findings(Api(answer), {"pagination": {**pagination, "ignore": ["paging.next"]}})
    assert ok


@pytest.mark.parametrize(
    ("pagination", "says"),
    [
        ({"kind": "cursor_in_body", "path": "paging.next"}, "has only records that earlier pages had"),
        ({"kind": "page_number"}, "has only records that earlier pages had"),
        ({"kind": "page_number", "pages": "pages"}, "has only records that earlier pages had"),
        ({"kind": "offset", "total": "total"}, "has only records that earlier pages had"),
        ({"kind": "offset", "total": "count"}, "has only records that earlier pages had"),
        ({"kind": "cursor_in_header", "header": "X-Next", "total": "total"}, "the list ended after 5 of 99 records"),
    ],
)
def test_check_finds_a_parameter_that_the_api_ignores(pagination: Mapping[str, Any], says: str) -> None:
    """The second page is the first one once more, whatever the API says about the end of the list."""
    times = iter(range(9))

    def answer(_: httpx.Request) -> Any:
        items = [{**item, "seen_at": next(times)} for item in ITEMS[:1]] + ITEMS[1:]
        return {"items": items, "paging": {"next": f"c{len(items)}"}, "total": 99, "pages": 2, "count": len(items)}

    ((ok, text),) = findings(Api(answer), {"pagination": pagination})
    assert not ok
    assert says in text


def test_check_finds_a_cursor_that_no_record_has() -> None:
    """Such a stream would read everything in each run."""
    stream = {"mode": "incremental", "cursor": {"column": "changed.at"}, "params": {"since": "{since}"}}
    ((ok, text),) = findings(Api(lambda _: {"items": ITEMS}), stream)
    assert not ok
    assert "no record of https://shop.example/api/items has the cursor 'changed.at'; the first has id, " in text


@pytest.mark.parametrize(
    ("kind", "shift", "is_excluded", "ok"),
    [
        ("link_header", timedelta(), False, True),
        ("link_header", timedelta(), True, False),
        ("link_header", timedelta(hours=6), False, False),
        ("link_header", timedelta(hours=-6), False, True),  # more than what was asked for
        ("page_number", timedelta(), True, True),
        ("page_number", timedelta(hours=6), True, False),
    ],
)
def test_check_finds_a_time_that_the_api_reads_in_another_way(
    kind: str, shift: timedelta, is_excluded: bool, ok: bool
) -> None:
    """The record at which a run ends must be in the list that the next run asks for; else changes would be missed."""
    items = [{"id": number, "at": f"2026-11-0{number}T08:00:00Z"} for number in (1, 2, 3)]

    def answer(request: httpx.Request) -> Any:
        if request.url.params.get("page", "1") != "1":
            return {"items": []}
        since = datetime.fromisoformat(request.url.params.get("since", "1970-01-01T00:00:00Z")) + shift
        times = [datetime.fromisoformat(str(each["at"])) for each in items]
        found = [each for each, at in zip(items, times, strict=True) if at > since or (at == since and not is_excluded)]
        return {"items": found}

    stream = {"mode": "incremental", "cursor": {"column": "at", "as": "instant"}, "params": {"since": "{since}"}}
    ((is_ok, text),) = findings(Api(answer), {**stream, "key": ["id"], "pagination": {"kind": kind}})
    assert is_ok == ok
    assert ok or "lacks the record whose 'at' is 2026-11-03T08:00:00Z" in text


@pytest.mark.parametrize(
    ("asks", "first", "says"),
    [
        ('project = A AND updated >= "{since}"', None, True),
        ('project = A AND updated >= "{since}"', "2026-01-01T00:00:00Z", False),
        ("gt:{since}", None, False),
        ("updated_at:>='{since}' financial_status:paid", None, True),
        ("updated_at:>='{since}'", None, False),
        ("modified ge {since}T00:00:00Z", None, False),
        ("status eq 'paid', modified ge {since}", None, True),
        ('{"updated": {"gte": "{since}"}}', None, False),
        ('{"updated": {"gte": "{since}"}, "status": "paid"}', None, True),
    ],
)
def test_check_tells_of_conditions_that_the_first_run_leaves_out(asks: str, first: str | None, says: bool) -> None:
    """A parameter without a value is not sent, whatever else it asks for."""
    given = {"params": {"q": asks}} | ({"first": first} if first else {})
    stream = {"mode": "incremental", "cursor": {"column": "at", "as": "instant"}, "key": ["id"], **given}
    ((ok, text),) = findings(Api(lambda _: {"items": [{"id": 1, "at": "2026-11-01T08:00:00Z"}]}), stream)
    assert ok
    assert ("leaves params.q out, with the other conditions in it: declare first" in text) is says


@pytest.mark.parametrize("place", ["params", "body", "variables"])
def test_a_run_warns_of_conditions_that_it_leaves_out(place: str) -> None:
    """The first run reads everything, and so does each full list: records that later ones leave out, too."""
    asked: dict[str, Any] = {place: {"q": "updated_at:>='{since}' financial_status:paid"}}
    asked |= {"graphql": "query($q: String) {a(q: $q)}"} if place == "variables" else {}
    stream = {"mode": "incremental", "cursor": {"column": "at", "as": "instant"}, "key": ["id"], **asked}
    api = Api(lambda _: {"items": [{"id": 1, "sku": "S", "title": "T", "price": "1", "at": "2026-11-01T08:00:00Z"}]})
    for since, is_told in ((None, True), ("2026-11-01T00:00:00Z", False)):
        ctx = api.context(stream)
        trial = read(CONNECTOR, ctx, "items", since=since)
        assert trial.error is None
        told = [each for each in ctx.run.warnings if f"everything is read, and {place}.q left out" in each]
        assert len(told) == is_told


@pytest.mark.parametrize(("value", "says"), [("2026-11-01T08:00:00Z", True), ("20261101", False), ("17", False)])
def test_check_tells_of_a_cursor_of_times_that_are_texts(value: str, says: bool) -> None:
    """Only instants are read again for changes that an API shows late."""
    stream = {"mode": "incremental", "cursor": {"column": "at"}, "params": {"since": "{since}"}, "key": ["id"]}
    ((ok, text),) = findings(Api(lambda _: {"items": [{"id": 1, "at": value}]}), stream)
    assert ok
    assert ("with as: instant, changes that the API shows late are read" in text) is says


@pytest.mark.parametrize("kind", ["text", "integer"])
@pytest.mark.parametrize(
    ("value", "says"), [("1772364600", "format: unix,"), ("1772364600900", "format: unix_ms,"), ("1772", "")]
)
def test_check_tells_of_a_cursor_of_times_that_are_numbers(kind: str, value: str, says: str) -> None:
    """Its overlap would be a thousand seconds or milliseconds, or nothing."""
    cursor = {"column": "at", "as": kind}
    stream = {"mode": "incremental", "cursor": cursor, "params": {"since": "{since}"}, "key": ["id"]}
    ((ok, text),) = findings(Api(lambda _: {"items": [{"id": 1, "at": value}]}), stream)
    assert ok
    assert says in text
    assert ("times as numbers" in text) is bool(says)


# ---- failures inside of 200


@pytest.mark.parametrize(
    "declared",
    [
        {"ok": {"field": "success", "equals": "true"}},
        {"failed": {"when": {"field": "success", "equals": "false"}}},
        {"failed": {"when": {"field": "error.code", "equals": "busy"}, "statuses": {"BUSY": 422}}},
    ],
)
def test_a_failure_inside_of_200_is_an_error(declared: dict[str, Any]) -> None:
    """Whether or not it has records."""
    body = {"success": False, "error": {"code": "busy", "message": "come back"}, "items": ITEMS}
    trial = Api(lambda _: body).read(**declared)
    assert "HTTP 200, which means 422 here: come back" in str(trial.error)
    assert skus(Api(lambda _: {"success": True, "items": ITEMS}).read(**declared)) == ALL


def test_a_failure_inside_of_200_is_tried_again() -> None:
    """If it stands for a status with which that may help."""
    answers = [{"error": "Too busy", "items": []}, {"items": ITEMS}]
    failed = {"when": {"field": "error", "empty": False}, "statuses": {"too busy": 503}}
    assert skus(Api(lambda _: answers.pop(0)).read(failed=failed)) == ALL


# ---- ends of lists


@pytest.mark.parametrize(
    "stop",
    [
        {"when": {"field": "more", "equals": "no"}},
        {"statuses": [404, 204]},
        {"repeated": True},
    ],
)
def test_ends_of_lists_are_declared(stop: dict[str, Any]) -> None:
    """A page that is the last one, a status after it, or the last one once more."""
    key = next(iter(stop))

    def answer(request: httpx.Request) -> Any:
        number = int(request.url.params["page"])
        if number > 3:
            assert key != "when"
            if key == "statuses":
                return httpx.Response(404)
        number = min(number, 3)
        told = {"more": "no" if number == 3 else "yes"} if key == "when" else {}
        return {"items": ITEMS[2 * number - 2 : 2 * number], "of": 5, **told}

    stated = {"total": "of"} if key == "repeated" else {"size": 2, "cap": 1_000}
    assert skus(Api(answer).read(pagination={"kind": "page_number", **stated, "stop": stop})) == ALL


# ---- deleted records


EXISTING = {"mode": "incremental", "on_gone": "archive", "existing": {"path": "/items/ids", "records": "ids"}}


@pytest.mark.parametrize("listed", [{"ids": [1, 2]}, {"ids": [{"id": 1}, {"id": 2}]}])
def test_a_list_of_existing_records_has_objects_or_keys(listed: Any) -> None:
    """Each is a record's key; the pages are those of the stream unless the list has others."""
    api = Api(lambda request: listed if request.url.path.endswith("/ids") else {"items": ITEMS})
    ctx = api.context(EXISTING)
    (stream,) = CONNECTOR.streams(ctx.settings)
    assert stream.lists_existing
    rows = [batch.load()["id"].to_list() for batch in stream.existing(ctx)]
    assert rows == [["1", "2"]]
    (plain,) = CONNECTOR.streams(api.context().settings)
    assert not plain.lists_existing


@pytest.mark.parametrize("item", [None, True, [1]])
def test_what_is_no_key_in_a_list_of_existing_records_is_a_row_without_one(item: Any) -> None:
    """Such a list is not believed, and removes nothing."""
    ctx = Api(lambda _: {"ids": [item, 7]}).context(EXISTING)
    (stream,) = CONNECTOR.streams(ctx.settings)
    (batch,) = stream.existing(ctx)
    assert batch.load()["id"].to_list() == [None, "7"]


def test_a_list_of_bare_keys_is_refused_where_a_key_has_several_columns() -> None:
    """The message says which members the objects of the list need."""
    ctx = Api(lambda _: {"ids": [1, 2]}).context(EXISTING | {"key": ["site", "code"]})
    (stream,) = CONNECTOR.streams(ctx.settings)
    with pytest.raises(RefusedError, match="the key of items has 2 columns") as refused:
        list(stream.existing(ctx))
    assert refused.value.hint == "it needs objects with site, code"
