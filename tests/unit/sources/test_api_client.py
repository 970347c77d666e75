"""One request to an API: what is sent, what is sent again, and what each answer means."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest

from crossdock.errors import ConfigError, RefusedError, RemoteError, StoppedError, UnauthorizedError, UnavailableError
from crossdock.reading.sources.api_request_sender import ApiRequestSender
from crossdock.reading.sources.retried_requests import NotFoundError
from crossdock.reading.sources.run_context import SourceContext
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.sources import Api, ApiClient, ClientCredentialsAuth, CursorInBody, HeaderAuth, HttpSettings
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.author_code_errors import AuthorCodeError
from crossdock.values.config_base_types import SecretRef
from crossdock.values.run_progress_and_messages import SilentProgress

BASE = "https://shop.example/api"


class _ShopSettings(HttpSettings):
    kind: Literal["shop"]
    client_secret: SecretRef


class Shop:
    """An API that gives *answers* in turn, and repeats the last one."""

    def __init__(self, *answers: httpx.Response | Exception, **options: Any) -> None:
        self.answers, self.requests, self.clock = list(answers), list[httpx.Request](), ManualClock()
        self.run = SourceContext(
            self.clock,
            SilentProgress(),
            EmptyIntakeLog(),
            Path(),
            Path(),
            Path(),
            transport=httpx.MockTransport(self._handle),
        )
        self.api = ApiClient(Api(BASE, **options), self.run)
        self.sender = ApiRequestSender(Api(BASE, **options), self.clock, self.run.transport)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


def test_numbers_of_an_answer_are_exact() -> None:
    """No number is ever a float, in answers and in requests."""
    shop = Shop(httpx.Response(200, text='{"price": 0.10000000000000000001}', headers={"X-Total": "7"}))
    answer = shop.api.post("/search", json={"price": Decimal("0.30000000000000000001")})
    assert answer.at("/price") == Decimal("0.10000000000000000001")
    assert (answer.status, answer.headers["x-total"], answer.at("/none/0")) == (200, "7", None)
    assert shop.requests[0].content == b'{"price":0.30000000000000000001}'
    assert shop.requests[0].headers["content-type"] == "application/json"


def test_forms_queries_and_other_methods() -> None:
    """Any method and the three kinds of bodies."""
    shop = Shop(httpx.Response(200, json={"data": {}}))
    shop.api.post("/search", form={"q": "a b"})
    shop.api.request("POST", "/graphql", graphql="{ shop }", variables={"n": 1})
    shop.api.request("QUERY", "/x", headers={"x-version": "2"})
    assert [request.content for request in shop.requests] == [
        b"q=a+b",
        b'{"query":"{ shop }","variables":{"n":1}}',
        b"",
    ]
    assert (shop.requests[2].method, shop.requests[2].headers["x-version"]) == ("QUERY", "2")


def test_parameters_of_each_request_are_added_where_an_address_lacks_them() -> None:
    """Also to the address of a following page, which the API may give without them, and to what is delivered.

    What the request itself had is not replaced there.
    """
    link = {"link": f'<{BASE}/orders?page=2>; rel="next"'}
    shop = Shop(
        httpx.Response(200, json=[{"id": 1}], headers=link),
        httpx.Response(200, json=[{"id": 2}]),
        httpx.Response(200, json={}),
        params={"organization": "a b", "lang": "en"},
    )
    list(shop.api.pages("/orders", {"lang": "de"}))
    shop.sender.send_operation_once("POST", "/orders", body=b"{}")
    shop.sender.send_operation_once("GET", "/orders?name=x")
    assert [request.url.query.decode() for request in shop.requests] == [
        "lang=de&organization=a+b",
        "page=2&lang=de&organization=a+b",
        "organization=a+b&lang=en",
        "name=x&organization=a+b&lang=en",
    ]


def test_throttling_costs_time_and_no_attempt() -> None:
    """However often a request is refused, it is answered in the end."""
    refusals = [httpx.Response(429, headers={"retry-after": "5"})] * 12
    shop = Shop(*refusals, httpx.Response(200, json={}))
    shop.api.get("/items")
    assert shop.clock.monotonic() >= 60.0
    usage = shop.api.allowance.usage
    assert (usage.requests, usage.throttled) == (13, 12)
    assert 0 < usage.waited_s <= shop.clock.monotonic()


def test_throttling_has_an_end() -> None:
    """An API that refuses for half an hour is unavailable."""
    shop = Shop(httpx.Response(429))
    with pytest.raises(UnavailableError, match="throttled .* times in 30 minutes") as failed:
        shop.api.get("/items")
    assert failed.value.where == f"{BASE}/items"
    assert 1800 <= shop.clock.monotonic() < 3600


@pytest.mark.parametrize(
    "answer",
    [httpx.Response(200, json={"error": "slow down"}), httpx.Response(403, json={"error": "slow down"})],
)
def test_a_connector_names_other_forms_of_throttling(answer: httpx.Response) -> None:
    """Inside a 200 or a 403."""
    shop = Shop(answer, httpx.Response(200, json={}), throttled=lambda answer: answer.at("/error") == "slow down")
    assert shop.api.get("/items").body == {}
    assert shop.api.allowance.usage.throttled == 1


@pytest.mark.parametrize(
    ("said", "least_s", "most_s"),
    [
        pytest.param(17.5, 17.5, 18.5, id="seconds"),
        pytest.param(Decimal("17.5"), 17.5, 18.5, id="an exact number of the body"),
        pytest.param(0, 0.0, 10.0, id="at once"),
        pytest.param(True, 40.0, 41.0, id="as the header says"),
        pytest.param(86_400, 900.0, 901.0, id="no longer than Retry-After may be"),
    ],
)
@pytest.mark.parametrize("status", [200, 429])
def test_a_connector_reads_off_an_answer_how_long_to_wait(
    status: int, said: Any, least_s: float, most_s: float
) -> None:
    """The next request is sent after these seconds. They go before ``Retry-After``, also of a 429."""
    refused = httpx.Response(status, json={"busy": True}, headers={"retry-after": "40"})
    shop = Shop(refused, httpx.Response(200, json={}), throttled=lambda answer: said if answer.at("/busy") else False)
    assert shop.api.get("/items").body == {}
    assert least_s <= shop.clock.monotonic() <= most_s
    assert shop.api.allowance.usage.throttled == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"throttled": lambda _: "17 seconds"}, "throttled returned str instead of True, False or a number of seconds"),
        ({"throttled": lambda _: float("nan")}, "throttled returned float instead of True, False or a number"),
        ({"failed": lambda _: True}, "failed returned True instead of None or a status from 400 to 599"),
        ({"failed": lambda _: 302}, "failed returned 302 instead of None or a status from 400 to 599"),
    ],
)
def test_what_a_connector_must_not_say_about_an_answer_names_its_function(options: Any, message: str) -> None:
    """With its file and line."""
    shop = Shop(httpx.Response(200, json={}), **options)
    with pytest.raises(AuthorCodeError, match=message) as failed:
        shop.api.get("/items")
    assert "test_api_client.py" in str(failed.value)


def cost(left: int, requested: int = 60) -> dict[str, Any]:
    status = {"maximumAvailable": 100.0, "currentlyAvailable": left, "restoreRate": 10.0}
    return {"cost": {"requestedQueryCost": requested, "throttleStatus": status}}


def test_the_cost_of_queries_is_waited_for() -> None:
    """A query is sent once its cost is available, so it is not refused."""
    shop = Shop(httpx.Response(200, json={"data": {}, "extensions": cost(20)}))
    shop.api.request("POST", "/graphql", graphql="{ shop }")
    before = shop.clock.monotonic()
    shop.api.request("POST", "/graphql", graphql="{ shop }")
    assert shop.clock.monotonic() - before == pytest.approx(4.0)


def test_a_query_that_was_too_expensive_is_sent_again() -> None:
    """``THROTTLED`` among the errors of a 200 is no failure."""
    errors = [{"message": "Throttled", "extensions": {"code": "THROTTLED"}}]
    shop = Shop(
        httpx.Response(200, json={"errors": errors, "extensions": cost(30)}), httpx.Response(200, json={"data": 1})
    )
    assert shop.api.request("POST", "/graphql", graphql="{ shop }").at("/data") == 1
    assert shop.clock.monotonic() == pytest.approx(3.0)


@pytest.mark.parametrize("extensions", [None, [], {"cost": 1}, {"cost": {"throttleStatus": {"restoreRate": -1}}}])
def test_a_cost_that_makes_no_sense_is_ignored(extensions: object) -> None:
    """It comes from another system."""
    shop = Shop(httpx.Response(200, json={"data": {}, "extensions": extensions}))
    assert shop.api.request("POST", "/graphql", graphql="{ shop }").at("/data") == {}


def test_graphql_errors_are_errors() -> None:
    """Data beside errors is incomplete."""
    shop = Shop(httpx.Response(200, json={"data": {"a": None}, "errors": [{"message": "no access to a"}]}))
    with pytest.raises(RemoteError, match="GraphQL errors: no access to a"):
        shop.api.request("POST", "/graphql", graphql="{ a }")


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({"title": "Bad", "detail": "limit is above 250"}, "HTTP 422: limit is above 250"),
        ({"errors": {"message": "no such field"}}, "HTTP 422: no such field"),
        ({"errors": [{"detail": "a"}, {"message": "b"}]}, "HTTP 422: a; b"),
        ({"error": {"message": "key canary-key-1 may not"}}, r"HTTP 422: key \(secret\) may not"),
        ({"message": "no jane@doe.example or +49 40 123 45 67"}, r"HTTP 422: no \(personal\) or \(personal\)"),
        ({"message": "x" * 900}, "HTTP 422: x{300}$"),
        ({"data": "canary"}, "HTTP 422$"),
        ("", "HTTP 422$"),
    ],
)
def test_the_reason_of_a_refusal_is_shown(body: object, shown: str) -> None:
    """Without credentials and personal data."""
    shop = Shop(httpx.Response(422, json=body), auth=HeaderAuth("X-Key", "canary-key-1"))
    with pytest.raises(RemoteError, match=shown) as failed:
        shop.api.get("/items")
    assert "canary" not in str(failed.value)
    assert len(shop.requests) == 1


def test_a_missing_scope_is_an_error_of_credentials() -> None:
    """With the reason that the API gives."""
    shop = Shop(httpx.Response(403, json={"errors": "requires the scope read_orders"}))
    with pytest.raises(UnauthorizedError, match="HTTP 403.: requires the scope read_orders"):
        shop.api.get("/orders")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (httpx.Response(200, html="<html>canary"), "it is an HTML page"),
        (httpx.Response(200, content=b'{"a": "\xff canary"}'), "cannot be read as JSON"),
        (httpx.Response(200, content=b"{"), "cannot be read as JSON"),
    ],
)
def test_a_success_that_is_not_json_is_refused(answer: httpx.Response, message: str) -> None:
    """It is never read as an empty page."""
    with pytest.raises(RefusedError, match=message) as failed:
        Shop(answer).api.get("/items")
    assert "canary" not in str(failed.value)


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("https://evil.example/in?token=canary", "redirects to https://evil.example .HTTP 302"),
        ("http://canary:canary@shop.example:8080/x", "redirects to http://shop.example:8080 "),
        ("//other.example/x", "redirects to https://other.example "),
        ("/canary", "redirects to another path of the same host"),
        ("http://[canary", "responded with HTTP 302"),
        ("", "responded with HTTP 302"),
    ],
)
def test_a_redirect_is_named_and_not_followed(location: str, says: str) -> None:
    """By its host alone, since the rest may contain a secret."""
    shop = Shop(httpx.Response(302, headers={"location": location}))
    with pytest.raises(RemoteError, match=says) as failed:
        shop.api.get("/items")
    assert "canary" not in str(failed.value)
    assert len(shop.requests) == 1


def test_a_part_of_an_answer_is_refused() -> None:
    """It was not asked for, and is no whole page."""
    with pytest.raises(RefusedError, match="HTTP 206"):
        Shop(httpx.Response(206, json=[])).api.get("/items")


@pytest.mark.parametrize(
    "sent",
    [
        {"params": {"key": "canary +1 of the shop"}},
        {"json": {"login": [{"pin": "canary +1 of the shop"}]}},
        {"form": {"pin": "canary +1 of the shop"}},
        {"graphql": "{ shop }", "variables": {"pin": "canary +1 of the shop"}},
        {"headers": {"x-pin": "canary +1 of the shop"}},
    ],
)
@pytest.mark.parametrize(
    "said", ["canary +1 of the shop", "canary%20%2B1%20of%20the%20shop", "canary+%2B1+of+the+shop"]
)
def test_what_was_sent_is_not_shown(sent: dict[str, Any], said: str) -> None:
    """An API that repeats values of the request in its reason."""
    shop = Shop(httpx.Response(400, json={"error": f"{said} is not known"}))
    with pytest.raises(RemoteError, match=r"\(secret\) is not known") as failed:
        shop.api.request("POST", "/search", **sent)
    assert "canary" not in str(failed.value)


def test_another_host_that_cannot_be_reached_is_named() -> None:
    """The address of the page is not the one that fails, where a token is to be granted."""

    def fail(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("canary", request=request)

    auth = ClientCredentialsAuth("https://login.example/token", "app", "secret")
    api = Api(BASE, auth, transport=httpx.MockTransport(fail))
    with pytest.raises(UnavailableError, match=r"last error: login\.example: request failed"):
        ApiClient(api, Shop(httpx.Response(200)).run).get("/orders")


def test_a_secret_that_only_token_requests_contain_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API that repeats the client's secret, which was sent to another address before."""
    monkeypatch.setenv("SHOP_SECRET", "canary of+the client")
    section = {"kind": "shop", "base_url": BASE, "client_secret": "env:SHOP_SECRET"}
    settings = _ShopSettings.model_validate(section)
    auth = ClientCredentialsAuth("https://login.example/token", "acme", settings.client_secret, client_auth="post")
    refusal = {"error": "canary of+the client or canary%20of%2Bthe%20client"}
    shop = Shop(httpx.Response(200, json={"access_token": "t"}), httpx.Response(403, json=refusal))
    shop.api = ApiClient(settings.api(auth=auth), shop.run)
    with pytest.raises(UnauthorizedError, match=r": \(secret\) or \(secret\)") as failed:
        shop.api.get("/items")
    assert "canary" not in str(failed.value)


@pytest.mark.parametrize("status", [404, 410])
def test_a_missing_path_is_explained(status: int) -> None:
    """The error says what to check, and is told from others: a record that is asked for may be gone."""
    with pytest.raises(NotFoundError, match=f"HTTP {status}") as failed:
        Shop(httpx.Response(status)).api.get("/itms")
    assert "check the base URL" in (failed.value.hint or "")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("null", "the answer is empty or null"),
        ("[]", "the answer is a list"),
        ("{}", "it is missing"),
        ('{"items": null}', "it is null"),
        ('{"items": {}}', "it is an object"),
    ],
)
def test_a_page_without_its_list_is_refused(body: str, says: str) -> None:
    """The error says what is there instead."""
    answer = Shop(httpx.Response(200, text=body)).api.get("/items")
    with pytest.raises(RefusedError, match=f"has no list at /items: {says}"):
        answer.items("/items")


@pytest.mark.parametrize("body", [{}, {"cursor": "x"}])
def test_a_list_that_the_api_leaves_out_is_the_default(body: object) -> None:
    """Some APIs leave out empty lists; another value in its place is still refused."""
    shop = Shop(
        httpx.Response(200, json=body), httpx.Response(200, json={"orders": None}), httpx.Response(200, text="[]")
    )
    assert shop.api.get("/orders").items("/orders", default=()) == []
    for _ in range(2):
        with pytest.raises(RefusedError, match="has no list"):
            shop.api.get("/orders").items("/orders", default=())


def test_a_record_of_a_list_is_replaced_by_its_own_answer() -> None:
    """One that has no id is kept without a request, so that its mapping says so."""
    shop = Shop(httpx.Response(200, json={"order": {"id": "a/b", "lines": []}}))
    items: list[Any] = [{"id": "a/b"}, {"id": None}, {"no": 7}, {"id": ".."}, {"id": {}}, 5]
    assert shop.api.expand(items, "/orders/{id}", record="/order") == [{"id": "a/b", "lines": []}, *items[1:]]
    assert [request.url.raw_path for request in shop.requests] == [b"/api/orders/a%2Fb"]


def test_a_list_below_a_record_is_read_to_its_end() -> None:
    """Twice if it has several pages. It becomes a member of the record, null where that lacks what the path names."""
    pages = (
        httpx.Response(200, json={"lines": [1], "next": "x"}),
        httpx.Response(200, json={"lines": [2], "next": None}),
    )
    shop = Shop(*pages, *pages)
    found = shop.api.expand(
        [{"id": 7, "shop": {"no": 1}}, {"id": 8}],
        "/shops/{shop.no}/orders/{id}/lines",
        into="lines",
        records="/lines",
        params={"all": "yes"},
        paginator=CursorInBody("/next"),
    )
    assert found == [{"id": 7, "shop": {"no": 1}, "lines": [1, 2]}, {"id": 8, "lines": None}]
    requested = ["/shops/1/orders/7/lines?all=yes", "/shops/1/orders/7/lines?all=yes&cursor=x"]
    assert [str(request.url).removeprefix(BASE) for request in shop.requests] == 2 * requested


def test_a_list_below_a_record_that_changes_is_read_until_it_is_whole() -> None:
    """A line that moves to another page meanwhile would be there twice; one that never settles is refused."""

    def reading(*pages: list[int]) -> list[httpx.Response]:
        return [
            httpx.Response(200, json={"lines": lines, "next": "x" if number < len(pages) else None})
            for number, lines in enumerate(pages, 1)
        ]

    def lines(shop: Shop) -> Any:
        (one,) = shop.api.expand(
            [{"id": 7}], "/orders/{id}/lines", into="lines", records="/lines", paginator=CursorInBody("/next")
        )
        return one["lines"]

    assert lines(Shop(*reading([1, 2], [2, 3]), *reading([2, 3], [4]), *reading([2, 3], [4]))) == [2, 3, 4]
    changing = [answer for number in range(4) for answer in reading([number], [number + 1])]
    with pytest.raises(RefusedError, match="has other elements each time"):
        lines(Shop(*changing))


def test_an_error_beside_a_record_is_none_of_it() -> None:
    """A part of a record would be taken for the whole; a member that only looks like an error is named."""
    answer = {"order": {"id": 7}, "error": "lines could not be read"}
    with pytest.raises(RefusedError, match="has no complete record at /order"):
        Shop(httpx.Response(200, json=answer)).api.expand([{"id": 7}], "/orders/{id}", record="/order")
    shop = Shop(httpx.Response(200, json=answer))
    assert shop.api.expand([{"id": 7}], "/orders/{id}", record="/order", ignore=["/error"]) == [{"id": 7}]


def test_an_answer_without_the_record_is_refused() -> None:
    """It is none of a record without members."""
    shop = Shop(httpx.Response(200, json={"order": None}))
    with pytest.raises(RefusedError, match="has no record at /order"):
        shop.api.expand([{"id": 7}], "/orders/{id}", record="/order")


def test_requests_for_records_end_with_the_run() -> None:
    """A list may have thousands."""
    shop = Shop(httpx.Response(200, json={}))
    shop.run.interrupt.set()
    with pytest.raises(StoppedError, match="between two records"):
        shop.api.expand([{"id": 7}], "/orders/{id}")
    assert not shop.requests


def test_other_hosts_get_no_request() -> None:
    """Credentials would go there."""
    shop = Shop(httpx.Response(200))
    with pytest.raises(RefusedError, match="on another host"):
        shop.api.get("https://evil.example/items")
    assert shop.requests == []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://shop.example", "must be https"),
        ("https://user:canary@shop.example", "must not hold a user"),
        ("https://shop.example/?api_key=canary", "without a query"),
        ("https://shop.example/token=canary/", "must not contain a credential"),
        ("shop.example", "must be an address"),
    ],
)
def test_base_urls_that_are_refused(url: str, message: str) -> None:
    """Plain HTTP, and credentials in a URL."""
    with pytest.raises(ConfigError, match=message) as refused:
        Api(url)
    assert "canary" not in str(refused.value)


def test_a_file_is_downloaded_whole_or_not_at_all(tmp_path: Path) -> None:
    """It is retried as other requests are; without success nothing is left behind."""
    shop = Shop(httpx.Response(503), httpx.Response(200, content=b"a\nb\n"))
    assert shop.api.download("/export", tmp_path / "export.jsonl") == 4
    assert (tmp_path / "export.jsonl").read_bytes() == b"a\nb\n"
    with pytest.raises(RemoteError, match="HTTP 404"):
        Shop(httpx.Response(404)).api.download("/export", tmp_path / "other.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["export.jsonl"]


def test_a_file_on_another_host_is_read_without_credentials(tmp_path: Path) -> None:
    """And only from hosts that the connector names."""
    options: dict[str, Any] = {"auth": HeaderAuth("X-Key", "k"), "headers": {"x-shop": "1"}}
    shop = Shop(httpx.Response(200, content=b"x"), download_hosts=("files.example",), **options)
    shop.api.download("https://files.example/x?signature=canary", tmp_path / "x")
    assert not {"x-key", "x-shop"} & set(shop.requests[0].headers)
    for url in ("https://evil.example/x?signature=canary", "http://files.example/x"):
        with pytest.raises(RefusedError, match="another host") as refused:
            shop.api.download(url, tmp_path / "y")
        assert "canary" not in str(refused.value)


def test_a_file_host_is_known_however_it_is_written(tmp_path: Path) -> None:
    """Its own host with a default port gets the credentials, and a declared one in other letter case gets none."""
    shop = Shop(httpx.Response(200, content=b"x"), download_hosts=("Files.example",), auth=HeaderAuth("X-Key", "k"))
    for url in ("https://SHOP.example:443/x", "https://files.EXAMPLE:443/x"):
        shop.api.download(url, tmp_path / "x")
    assert [request.headers.get("x-key") for request in shop.requests] == ["k", None]
    with pytest.raises(RefusedError, match="the file has the scheme http, and the connection has https") as refused:
        shop.api.download("http://shop.example/x", tmp_path / "y")
    assert "X-Forwarded-Proto" in (refused.value.hint or "")
    assert len(shop.requests) == 2


@pytest.mark.parametrize("failure", [httpx.ConnectError("canary"), httpx.ReadTimeout("canary"), httpx.Response(500)])
def test_failures_end_after_five_attempts(failure: Any) -> None:
    """They are temporary, and then they are not."""
    broken = Shop(failure)
    with pytest.raises(UnavailableError, match="failed 5 times") as failed:
        broken.api.get("/items")
    assert len(broken.requests) == 5
    assert "canary" not in str(failed.value)


@pytest.mark.parametrize("kind", ["TooManyRequestsException", "LimitExceededException"])
def test_an_aws_usage_plan_throttles(kind: str) -> None:
    """Its 429 has an ``x-amzn-ErrorType`` and no ``Retry-After``; it costs time and no attempt."""
    refused = httpx.Response(429, headers={"x-amzn-ErrorType": kind}, json={"message": "Too Many Requests"})
    shop = Shop(*[refused] * 7, httpx.Response(200, json={"items": []}))
    assert shop.api.get("/items").body == {"items": []}
    assert shop.api.allowance.usage.throttled == 7
    assert shop.clock.monotonic() > 0


def test_throttling_in_a_403() -> None:
    """The rule of the connector tells it from refused credentials, which are still an error."""
    slow_down = httpx.Response(403, headers={"retry-after": "2.5"}, json={"error": "rate limit"})
    refused = httpx.Response(403, json={"error": "no access"})
    shop = Shop(
        slow_down,
        httpx.Response(200, json={}),
        refused,
        throttled=lambda answer: answer.status == 403 and answer.at("/error") == "rate limit",
    )
    assert shop.api.get("/items").body == {}
    assert shop.clock.monotonic() >= 2.5
    with pytest.raises(UnauthorizedError, match="no access"):
        shop.api.get("/items")


def test_the_freshest_answer_shows_how_far_the_clock_of_an_api_is_behind() -> None:
    """An answer from a cache has an older time, and one of another API says nothing of this one."""
    shop = Shop(httpx.Response(200, json={}))
    for ago_s in (7_200, 3_602, 9_000):
        shop.answers = [httpx.Response(200, json={}, headers={"Date": _http_date(shop.clock.now(), ago_s)})]
        shop.api.get("/items")
    now = shop.clock.now()
    assert shop.run.by_clock_of("api", now) == now - timedelta(hours=1)
    assert shop.run.by_clock_of("other", now) == now


def _http_date(now: datetime, ago_s: int) -> str:
    return format_datetime(now - timedelta(seconds=ago_s), usegmt=True)


def test_an_answer_of_success_may_stand_for_a_failure() -> None:
    """It is tried again, throttled or refused as one with that status; an answer without a body is none."""
    said = [{"code": 503}, {"code": 429}, {"code": 0}]
    shop = Shop(
        *(httpx.Response(200, json=body) for body in said),
        httpx.Response(200, json={"code": 404, "message": "no such list"}),
        httpx.Response(204),
        failed=lambda answer: answer.at("/code") or None,
    )
    assert shop.api.get("/items").body == {"code": 0}
    assert shop.api.allowance.usage.throttled == 1
    with pytest.raises(RemoteError, match=r"responded with HTTP 200, which means 404 here: no such list"):
        shop.api.get("/items")
    assert shop.api.get("/items").status == 204
