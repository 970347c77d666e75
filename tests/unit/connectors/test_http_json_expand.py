"""Streams of ``http_json`` whose records have members that further requests read."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from tests.partners import fetched_rows
from tests.unit.connectors.test_http_json import Api, settings, skus

from crossdock.errors import RefusedError, RemoteError, StoppedError, UnauthorizedError
from crossdock.sources import UnavailableError
from crossdock.testing import context, read
from crossdock_connectors.http_json import CONNECTOR

LINES = {"path": "/items/{id}/lines", "records": ""}
LISTED = [{"id": 1, "maker": 7}, {"id": 2, "maker": None}]
LINES_OF = {"1": [{"sku": "A"}, {"sku": "B"}, {"sku": "C"}], "2": [{"sku": "D"}]}
PAGED = {"kind": "page_number", "size": 2, "stop": {"statuses": [204]}}
ROWS = {"explode": "lines", "key": ["id", "lines.sku"], "map": {"sku": "lines.sku", "name": "lines.sku"}}


def answered(request: httpx.Request) -> Any:
    """Two items; their lines in pages of two, and 204 after the last one; and makers."""
    match request.url.path.removeprefix("/api/").split("/"):
        case ["items"] if int(request.url.params.get("page", "1")) == 1:
            return {"items": LISTED}
        case ["items", number, "lines"]:
            end = 2 * int(request.url.params["page"])
            return LINES_OF[number][end - 2 : end] or httpx.Response(204)
        case ["makers", number]:
            return {"maker": {"name": f"Maker {number}"}}
    return httpx.Response(204)


def paths(api: Api) -> list[str]:
    return [request.url.path.removeprefix("/api") for request in api.seen]


def test_a_list_below_each_record_is_read_to_its_end() -> None:
    """Page after page, as the pagination of the connection says; `explode` then makes rows of its elements."""
    api = Api(answered)
    assert skus(api.read(ROWS | {"expand": {"lines": LINES}}, pagination=PAGED)) == ["A", "B", "C", "D"]
    assert paths(api) == ["/items", *["/items/1/lines"] * 6, *["/items/2/lines"] * 2, "/items"]


@pytest.mark.parametrize("is_still", [True, False])
def test_a_line_that_moves_while_the_lines_are_read_is_not_there_twice(is_still: bool) -> None:
    """Lines in several pages are read until two readings agree, and an order of which none do is a dead letter."""
    moved, requests = {"sku": "A2"}, list[int]()

    def answer(request: httpx.Request) -> Any:
        if not request.url.path.endswith("/items/1/lines"):
            return answered(request)
        requests.append(int(request.url.params["page"]))
        if not is_still:
            moved["sku"] = f"A{len(requests)}"
        lines = LINES_OF["1"] if len(requests) == 1 else [*LINES_OF["1"][1:], moved]
        return lines[2 * requests[-1] - 2 : 2 * requests[-1]] or httpx.Response(204)

    form = {"expand": {"lines": LINES}, "map": {"sku": "id", "name": "lines.0.sku"}}
    first, second = Api(answer).read(form, pagination=PAGED).records
    assert (second.members or {})["name"] == "D"
    if is_still:
        assert (first.members or {})["name"] == "B", "and not A, which has moved"
    else:
        assert first.problem is not None
        assert "has other elements each time that it is read" in first.problem.message


def test_another_record_is_read_where_the_record_names_one() -> None:
    """Without a name there is no request, and the member is null."""
    api = Api(answered)
    maker = {"path": "/makers/{maker}", "record": "maker"}
    named = {"expand": {"made": maker}, "map": {"sku": "id", "name": {"from": "made.name", "default": "nobody"}}}
    trial = api.read(named, pagination={"kind": "single_page"})
    assert [(each.members or {})["name"] for each in trial.records] == ["Maker 7", "nobody"]
    assert paths(api) == ["/items", "/makers/7"]


def test_a_request_that_fails_for_a_later_row_of_a_record_rejects_it() -> None:
    """Rows of a group are read by requests of their own: what one of them lacks is not left out of the record."""

    def answer(request: httpx.Request) -> Any:
        if request.url.path == "/api/makers/8":
            return httpx.Response(404)
        lines = [
            {"id": 1, "order": 5, "maker": 7},
            {"id": 2, "order": 5, "maker": 8},
            {"id": 3, "order": 6, "maker": 7},
        ]
        return {"items": lines} if request.url.path == "/api/items" else answered(request)

    grouped = {"key": ["order"], "group_by": ["order"], "mode": "snapshot", "map": {"sku": "order", "name": "order"}}
    expanded = {"expand": {"made": {"path": "/makers/{maker}", "record": "maker"}}}
    first, second = Api(answer).read(grouped | expanded, pagination={"kind": "single_page"}).records
    assert first.problem is not None
    assert (first.problem.pointer, first.problem.line) == ("made", 2)
    assert second.problem is None


def filtered(answer: Any, name: str) -> Any:
    """Answers with *answer* for the value of the parameter *name*, as an API does that ignores all others."""

    def respond(request: httpx.Request) -> Any:
        if request.url.path == "/api/items":
            return {"items": [{"id": number} for number in (1, 2, 3)]}
        return answer(request.url.params.get(name)) if request.method == "GET" else answer(request.content.decode())

    return respond


OF_ITEM = [{"path": "/lines", "params": {"item": "{id}"}}, {"path": "/lines", "body": {"item": "{id}"}}]


@pytest.mark.parametrize("request_", OF_ITEM)
@pytest.mark.parametrize("place", [{"records": ""}, {"record": "0"}])
def test_a_parameter_that_the_api_ignores_gives_no_record_the_lines_of_others(
    request_: dict[str, Any], place: dict[str, str]
) -> None:
    """Each item would get the same: the list is refused, before any of its records is delivered."""
    api = Api(filtered(lambda _: [{"sku": "A", "item": 1}, {"sku": "B", "item": 2}], "item_id"))
    form = {"expand": {"lines": {**request_, **place}}, "map": {"sku": "id", "name": {"const": "n"}}}
    trial = api.read(form, pagination={"kind": "single_page"})
    assert isinstance(trial.error, RefusedError)
    assert trial.error.code == "filter_ignored"
    assert "streams.items.expand.lines: item is ignored" in str(trial.error)
    assert not trial.records


@pytest.mark.parametrize("none", [[], 404, 400])
@pytest.mark.parametrize("place", [{"records": ""}, {"record": "0"}])
def test_two_records_may_have_the_same_lines(none: Any, place: dict[str, str]) -> None:
    """An API that has nothing for a value that no record has does not ignore the parameter; it is asked once."""
    lines = {number: [{"sku": "A"}] for number in "123"}

    def answer(value: str | None) -> Any:
        return lines.get(value or "") or (none if none == [] else httpx.Response(none))

    api = Api(filtered(answer, "item"))
    form = {"expand": {"lines": {**OF_ITEM[0], **place}}, "map": {"sku": "id", "name": {"const": "n"}}}
    assert skus(api.read(form, pagination={"kind": "single_page"})) == ["1", "2", "3"]
    asked = [query.get("item") for query in api.queries() if "item" in query]
    assert asked == ["1", "2", "2147483647", "3"]


@pytest.mark.parametrize("status", [401, 403, 429, 500])
def test_an_api_that_fails_for_a_value_that_no_record_has_does_not_ignore_the_parameter(status: int) -> None:
    """Some answer 403 or 500 in place of 404; two records with the same lines would end each run at the same place."""
    api = Api(filtered(lambda value: [{"sku": "A"}] if value in {"1", "2", "3"} else httpx.Response(status), "item"))
    form = {"expand": {"lines": OF_ITEM[0] | {"records": ""}}, "map": {"sku": "id", "name": {"const": "n"}}}
    assert skus(api.read(form, pagination={"kind": "single_page"})) == ["1", "2", "3"]


def test_a_later_member_may_use_an_earlier_one() -> None:
    """They are read in the order of the config."""
    api = Api(lambda request: {"items": LISTED[:1]} if request.url.path == "/api/items" else {"next": "9", "name": "N"})
    members = {"first": {"path": "/a/{id}"}, "second": {"path": "/b/{first.next}"}}
    assert skus(api.read({"expand": members, "map": {"sku": "second.next", "name": "second.name"}})) == ["9"]
    assert paths(api) == ["/items", "/a/1", "/b/9"]


@pytest.mark.parametrize(
    ("stream", "expanded"),
    [
        ({}, ["/items/1/lines"]),
        ({"columns": {"maker": {"null": "7"}}}, ["/items/1/lines", "/items/2/lines"]),
        ({"skip": {"no lines": {"field": "lines.0.sku", "empty": True}}}, ["/items/1/lines", "/items/2/lines"]),
    ],
)
def test_a_record_that_is_left_out_is_not_expanded(stream: dict[str, Any], expanded: list[str]) -> None:
    """Where its own members decide, as they are in the list."""
    api = Api(answered)
    form = {"expand": {"lines": LINES}, "skip": {"unmade": {"field": "maker", "empty": True}}}
    trial = api.read(form | {"map": {"sku": "id", "name": "lines.0.sku"}} | stream, pagination=PAGED)
    assert trial.error is None
    assert sorted({path for path in paths(api) if path != "/items"}) == expanded


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(httpx.Response(404), "HTTP 404", id="the record is gone"),
        pytest.param({"error": "none"}, "has no list at the top", id="another form"),
        pytest.param(httpx.Response(200, text="<html>"), "cannot be read as JSON", id="no JSON"),
    ],
)
def test_a_list_that_cannot_be_read_is_a_dead_letter_of_its_record(answer: Any, message: str) -> None:
    """The error says why and where; the other records are delivered."""
    api = Api(lambda request: answer if request.url.path == "/api/items/1/lines" else answered(request))
    form = {"expand": {"lines": LINES}, "map": {"sku": "id", "name": "lines.0.sku"}}
    first, second = api.read(form, pagination=PAGED).records
    assert (second.members or {})["name"] == "D"
    assert first.problem is not None
    assert (first.problem.code, first.problem.pointer) == ("unmatched", "lines")
    assert message in first.problem.message
    assert "/items/1/lines" in first.problem.message


ERRORS: list[dict[str, Any]] = [
    {"error": "rate limit"},
    {"errors": ["x"]},
    {"success": False, "message": "busy"},
    {"code": 429, "message": "too many"},
    {"status": "error", "message": "Rate limit exceeded"},
    {"timestamp": "2026-03-01", "status": 500, "error": "Internal Server Error", "path": "/makers/7"},
    {"type": "about:blank", "title": "Busy", "status": 503, "detail": "come back", "instance": "/makers/7"},
    {"success": False, "data": None, "error": {"code": "E1"}},
]


@pytest.mark.parametrize("place", ["", "maker"])
@pytest.mark.parametrize("error", ERRORS, ids=str)
def test_an_error_in_place_of_a_record_is_no_record(error: dict[str, Any], place: str) -> None:
    """Its members would be emptied at the platform. What has this meaning in a record is named in ``ignore``."""
    body = {**error, "maker": {}} if place else error
    api = Api(lambda request: body if "makers" in request.url.path else answered(request))
    named = {"sku": "id", "name": {"from": "made.name", "default": "nobody"}}
    form = {"expand": {"made": {"path": "/makers/{maker}", "record": place}}, "map": named}
    first, second = api.read(form, pagination={"kind": "single_page"}).records
    assert first.problem is not None
    assert (first.problem.code, first.problem.pointer) == ("unmatched", "made")
    assert " reports an error" in first.problem.message
    assert (second.members or {})["name"] == "nobody"  # which names none
    trial = api.read(form, pagination={"kind": "single_page", "ignore": [*error, "error/code"]})
    assert [each.problem for each in trial.records] == [None, None]


@pytest.mark.parametrize("error", [{"success": False}, {"errors": ["the address cannot be read"]}], ids=str)
def test_an_error_beside_a_record_is_one_of_the_answer(error: dict[str, Any]) -> None:
    """The record in it may be a part of what was asked for."""
    body = {"maker": {"name": "ACME"}, **error}
    api = Api(lambda request: body if "makers" in request.url.path else answered(request))
    form = {
        "expand": {"made": {"path": "/makers/{maker}", "record": "maker"}},
        "map": {"sku": "id", "name": "made.name"},
    }
    first, _ = api.read(form, pagination={"kind": "single_page"}).records
    assert first.problem is not None
    assert " reports an error" in first.problem.message


@pytest.mark.parametrize(
    "record",
    [
        {"name": "ACME", "error": "payment refused", "status": "failed"},
        {"id": 7, "status": "failed", "message": "declined"},
        {"status": "failed"},
        {"message": "Sorry that I failed to come"},
        {"code": "M7", "message": "limited edition"},
        {"errors": [], "success": True},
    ],
    ids=str,
)
def test_a_record_may_have_an_error_of_its_own(record: dict[str, Any]) -> None:
    """Beside other members, or where an error has more to say."""
    api = Api(lambda request: record if "makers" in request.url.path else answered(request))
    form = {"expand": {"made": {"path": "/makers/{maker}"}}, "map": {"sku": "id", "name": {"const": "n"}}}
    assert [each.problem for each in api.read(form, pagination={"kind": "single_page"}).records] == [None, None]


def test_a_record_has_the_members_of_another_one() -> None:
    """The state of a payment is a record, although it says what an error says."""
    states = {"7": {"status": "paid", "message": ""}, "8": {"status": "error", "message": "declined"}}

    def answer(request: httpx.Request) -> Any:
        listed = {"items": [{"id": 1, "maker": 7}, {"id": 2, "maker": 8}]}
        return states[request.url.path.rpartition("/")[2]] if "makers" in request.url.path else listed

    form = {"expand": {"made": {"path": "/makers/{maker}"}}, "map": {"sku": "id", "name": "made.status"}}
    assert skus(Api(answer).read(form, pagination={"kind": "single_page"})) == ["1", "2"]


@pytest.mark.parametrize(("status", "error"), [(401, RemoteError), (500, UnavailableError)])
def test_an_api_that_fails_ends_the_reading(status: int, error: type[Exception]) -> None:
    """It would fail for each record, so none of them is blamed."""
    failing = Api(lambda request: httpx.Response(status) if "lines" in request.url.path else answered(request))
    assert isinstance(failing.read({"expand": {"lines": LINES}}, pagination=PAGED).error, error)


class Failing:
    """An API whose lines of some items fail with a status, or all from a request on."""

    def __init__(self, items: int, failing: set[int], status: int = 500, down_from: int = 10**6) -> None:
        self.items, self.failing, self.status, self.down_from = items, failing, status, down_from
        self.asked = 0

    def __call__(self, request: httpx.Request) -> Any:
        if request.url.path == "/api/items":
            return {"items": [{"id": number, "maker": None} for number in range(1, self.items + 1)]}
        self.asked += 1
        number = int(request.url.path.split("/")[3])
        fails = number in self.failing or self.asked >= self.down_from
        return httpx.Response(self.status) if fails else [{"sku": f"S{number}"}]

    def read(self) -> tuple[list[str], BaseException | None]:
        """The names of the items, or the codes of their errors, and the error of the list."""
        form = {"expand": {"lines": LINES}, "map": {"sku": "id", "name": "lines.0.sku"}}
        trial = Api(self).read(form, pagination={"kind": "single_page"})
        found = [each.problem.code if each.problem else (each.members or {})["name"] for each in trial.records]
        return found, trial.error


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
@pytest.mark.parametrize("failing", [1, 2, 4])
def test_a_record_for_which_the_api_always_fails_is_a_dead_letter(status: int, failing: int) -> None:
    """The members of others are read before and after it, so that it keeps none of them from delivery."""
    found, error = Failing(4, {failing}, status).read()
    assert error is None
    assert found == ["unmatched" if number == failing else f"S{number}" for number in range(1, 5)]


@pytest.mark.parametrize(
    ("status", "down_from"), [(401, 1), (401, 3), (429, 1), (429, 3), (500, 1), (500, 3), (404, 3), (410, 3)]
)
def test_an_api_that_is_down_makes_no_dead_letters(status: int, down_from: int) -> None:
    """From the beginning or in the middle of a list, it fails for the records that it answered for, too."""
    found, error = Failing(6, set(), status, down_from).read()
    assert isinstance(error, RemoteError)
    assert not found


def test_a_record_that_is_always_answered_429_slows_no_others() -> None:
    """The rate that was learned from its refusals is not that of the API: other requests go on as before."""
    api = Api(Failing(300, {5}, 429))
    form = {"expand": {"lines": LINES}, "map": {"sku": "id", "name": "lines.0.sku"}}
    ctx = api.context(form, pagination={"kind": "single_page"})
    began, rate = ctx.run.clock.now(), ctx.api.allowance.bucket_state.estimate
    trial = read(CONNECTOR, ctx, "items")
    assert trial.error is None
    assert len(trial.records) == 300
    assert ctx.run.clock.now() - began < timedelta(hours=2), "twice half an hour, and the wait before another record"
    assert ctx.api.allowance.bucket_state.estimate == rate


def test_a_record_that_is_set_aside_has_none_of_its_members() -> None:
    """A filter that tests another one than that whose request failed does not take it for an empty one."""
    expand = {"lines": LINES, "made": {"path": "/items/{id}/makers", "records": ""}}
    skip = {"none": {"not": {"field": "made.0.sku", "empty": False}}}
    form = {"expand": expand, "skip": skip, "map": {"sku": "id", "name": "lines.0.sku"}}
    trial = Api(Failing(3, {2})).read(form, pagination={"kind": "single_page"})
    assert [each.problem and each.problem.code for each in trial.records] == [None, "unmatched", None]


def test_an_api_that_fails_for_many_records_ends_the_reading() -> None:
    """A part of it is out of order, and no record is to blame."""
    assert Failing(40, {*range(2, 12)}, 401).read()[1] is None
    assert isinstance(Failing(40, {*range(2, 13)}, 401).read()[1], UnauthorizedError)


@pytest.mark.parametrize("status", [403, 404])
def test_many_records_may_have_nothing_below_them(status: int) -> None:
    """As long as the API answers for another record, one that is not there, or hidden, says nothing about the API."""
    found, error = Failing(40, {*range(2, 40)}, status).read()
    assert error is None
    assert [each for each in found if each != "unmatched"] == ["S1", "S40"]


@pytest.mark.parametrize("status", [404, 410])
def test_an_api_that_finds_nothing_for_many_records_from_the_beginning_ends_the_reading(status: int) -> None:
    """A gateway that is out of order answers so, and no record is to blame; a few records may have nothing."""
    found, error = Failing(10, set(), status, 1).read()
    assert (found, error) == (["unmatched"] * 10, None)
    found, error = Failing(11, set(), status, 1).read()
    assert not found
    assert isinstance(error, UnavailableError)
    assert "none was found in the run" in str(error)


def test_a_record_without_a_request_proves_nothing() -> None:
    """Nothing is requested for an item without a maker, so that it does not show that the API answers."""
    maker = {"expand": {"made": {"path": "/items/{maker}/x"}}, "map": {"sku": "id", "name": {"const": "n"}}}

    def answer(request: httpx.Request) -> Any:
        listed = {"items": [{"id": 1, "maker": None}, {"id": 2, "maker": 7}, {"id": 3, "maker": None}]}
        return listed if request.url.path == "/api/items" else httpx.Response(500)

    assert isinstance(Api(answer).read(maker, pagination={"kind": "single_page"}).error, UnavailableError)


def test_an_interrupted_run_requests_no_more_members() -> None:
    """A page may have hundreds of records."""

    def interrupting(request: httpx.Request) -> Any:
        if request.url.path.endswith("/1/lines"):
            ctx.run.interrupt.set()
        return answered(request)

    api = Api(interrupting)
    ctx = api.context({"expand": {"lines": LINES}}, pagination=PAGED)
    (stream,) = CONNECTOR.streams(ctx.settings)
    with pytest.raises(StoppedError, match="between two records"):
        list(stream.pull(ctx, None))
    assert "/items/2/lines" not in paths(api)


def test_a_member_may_be_read_by_a_graphql_query() -> None:
    """Its variables have members of the record as numbers, and the pages of its list have a place of their own."""

    def graphql(request: httpx.Request) -> Any:
        if request.method == "GET":
            return {"items": LISTED}
        variables = json.loads(request.content)["variables"]
        start, lines = variables["skip"], LINES_OF[str(variables["id"])]
        return {"data": {"lines": lines[start : start + 2], "count": len(lines)}}

    pagination = {"kind": "offset", "in": "variables", "param": "skip", "total": "data.count"}
    query = {"graphql": "query Q $id $skip", "variables": {"id": "{id}"}, "numbers": ["id"], "pagination": pagination}
    api = Api(graphql)
    member = {"path": "/graphql", "records": "data.lines", **query}
    assert skus(api.read(ROWS | {"expand": {"lines": member}})) == ["A", "B", "C", "D"]
    sent = [json.loads(request.content)["variables"] for request in api.seen if request.method == "POST"]
    assert {"id": 1, "skip": 2} in sent


def test_a_record_without_a_whole_number_is_a_dead_letter() -> None:
    """The API has its ids as numbers."""
    body = {"path": "/lines", "body": {"id": "{sku}"}, "numbers": ["sku"]}
    api = Api(lambda request: {"items": [{"id": 1, "sku": "A"}]} if request.method == "GET" else {})
    (tried,) = api.read({"expand": {"lines": body}}).records
    assert tried.problem is not None
    assert "has no whole number for the request" in tried.problem.message


def test_a_fetched_record_has_its_members() -> None:
    """As in the list, so that a webhook changes nothing by itself."""
    api = Api(lambda request: LISTED[0] if request.url.path == "/api/items/1" else answered(request))
    ctx = api.context({"expand": {"lines": LINES}, "fetch": {"path": "/items/{id}"}}, pagination=PAGED)
    pulled = fetched_rows.pulled(CONNECTOR, ctx, "items").by_key[("1",)]
    assert fetched_rows.fetched(CONNECTOR, ctx, "items", ["1"]).by_key[("1",)] == pulled


def test_a_check_expands_one_record() -> None:
    """It says which member cannot be read."""
    api = Api(lambda request: httpx.Response(404) if "lines" in request.url.path else answered(request))
    ctx = api.context({"expand": {"lines": LINES}}, pagination=PAGED)
    assert CONNECTOR.check is not None
    (finding,) = CONNECTOR.check(ctx)
    assert not finding.ok
    assert "items: expand.lines of the first record could not be read" in finding.text
    assert paths(api) == ["/items", "/items/1/lines"]


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ({"path": "/lines", "records": ""}, "names no member of the record"),
        (LINES | {"record": "x"}, "cannot be used with records"),
        ({"path": "/x/{id}", "pagination": PAGED}, "needs records"),
        (LINES | {"body": {}}, "the request is a POST"),
    ],
)
def test_a_wrong_member_is_an_error_of_the_config(member: dict[str, Any], message: str) -> None:
    """The error says what a request of a member needs."""
    with pytest.raises(ValidationError, match=message):
        context(CONNECTOR, settings({"expand": {"lines": member}}, pagination=PAGED))
