"""GraphQL and JSON-RPC APIs whose sessions end, as ``http_json`` reads them: modelled on published documentation."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from tests.partners import fetched_rows
from tests.unit.connectors.test_http_json import Api

from crossdock.errors import RefusedError, RemoteError, UnauthorizedError, UnavailableError
from crossdock_connectors.http_json import CONNECTOR, request_templates
from crossdock_connectors.http_json.settings import HttpJsonSettings

PASSWORD = "correct horse"
LOGIN = "mutation($username: String!, $password: String!) { login(username: $username, password: $password) { id } }"
ORDERS = "query($options: OrderListOptions) { orders(options: $options) { items { id code } totalItems } }"
ORDER = "query($id: ID!) { order(id: $id) { id code } }"
IDS = "query($options: OrderListOptions) { orders(options: $options) { items { id } totalItems } }"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_PASSWORD", PASSWORD)


class Vendure:
    """A shop as Vendure: the token comes in a header, errors in answers of 200, lists by skip and take in options.

    Attributes:
        orders: By id.
        logins: How often somebody has logged in.
        lives: How many requests a session lives.
    """

    def __init__(self, lives: int = 99) -> None:
        self.orders: dict[str, dict[str, Any]] = {
            str(n): {"id": str(n), "code": f"O{n}", "updatedAt": n} for n in range(1, 6)
        }
        self.logins, self.lives, self._left, self.bodies = 0, lives, 0, list[Any]()

    def __call__(self, request: httpx.Request) -> Any:
        body = json.loads(request.content)
        query, variables = body["query"], body["variables"]
        if query == LOGIN:
            if variables != {"username": "sync", "password": PASSWORD}:
                refusal = {"errorCode": "INVALID_CREDENTIALS_ERROR", "message": f"wrong: {variables['password']}"}
                return {"data": {"login": refusal}}
            self.logins, self._left = self.logins + 1, self.lives
            return httpx.Response(200, json={"data": {"login": {}}}, headers={"vendure-auth-token": f"t{self.logins}"})
        self._left -= 1
        if request.headers.get("authorization") != f"Bearer t{self.logins}" or self._left < 0:
            error: dict[str, Any] = {"message": "You are not currently authorized", "extensions": {"code": "FORBIDDEN"}}
            return {"errors": [error], "data": None}
        self.bodies.append(body)
        if query == ORDER:
            return {"data": {"order": self.orders.get(variables["id"])}}
        options = variables["options"]
        after = options.get("filter", {}).get("updatedAt", {}).get("after", "0")
        found = [order for order in self.orders.values() if order["updatedAt"] >= int(after)]
        items = found[options.get("skip", 0) :][: options["take"]]
        return {"data": {"orders": {"items": items, "totalItems": len(found)}}}


def vendure(**login: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The stream and the connection."""
    auth = {
        "kind": "login",
        "login_url": "https://shop.example/admin-api",
        "graphql": LOGIN,
        "credentials": {"username": "sync", "password": "env:API_PASSWORD"},
        "token_header": "vendure-auth-token",
        "expired": [{"status": 200, "text": "FORBIDDEN"}],
    }
    options = {"take": 2, "filter": {"updatedAt": {"after": "{since}"}}}
    paging = {"kind": "offset", "param": "options.skip", "in": "variables", "total": "data.orders.totalItems"}
    stream = {
        "path": "/admin-api",
        "graphql": ORDERS,
        "variables": {"options": options},
        "records": "data.orders.items",
        "mode": "incremental",
        "cursor": {"column": "updatedAt", "as": "integer"},
        "key": ["id"],
        "fetch": {"path": "/admin-api", "graphql": ORDER, "variables": {"id": "{id}"}, "record": "data.order"},
        "existing": {
            "path": "/admin-api", "graphql": IDS, "variables": {"options": {"take": 2}}, "records": "data.orders.items",
        },
        "on_gone": "archive",
        "pagination": paging,
        "map": {"sku": "code", "name": "code"},
    }  # fmt: skip
    return stream, {"base_url": "https://shop.example", "auth": auth | login}


def test_a_graphql_shop_with_a_login_is_read_by_a_config() -> None:
    """A mutation logs in, its header has the token, an error inside a 200 renews it, and options have ``skip``."""
    stream, connection = vendure()
    shop = Vendure(lives=2)
    api = Api(shop)
    trial = api.read(stream, **connection)
    assert trial.error is None
    assert [record.members and record.members["sku"] for record in trial.records] == ["O1", "O2", "O3", "O4", "O5"]
    assert shop.logins == 2
    sent = [body["variables"]["options"] for body in shop.bodies]
    assert sent[:2] == [{"take": 2, "skip": 0}, {"take": 2, "skip": 2}], "without a cursor there is no filter"
    api.read(stream, since="4", **connection)
    assert shop.bodies[-1]["variables"]["options"]["filter"] == {"updatedAt": {"after": "4"}}


def test_one_record_and_those_that_exist_are_read_by_post() -> None:
    """Null instead of a record says that it does not exist."""
    stream, connection = vendure()
    api = Api(Vendure())
    rows = fetched_rows.fetched(CONNECTOR, api.context(stream, **connection), "items", ["3", "9"])
    assert list(rows.by_key) == [("3",)]
    context = api.context(stream, **connection)
    (listing,) = CONNECTOR.streams(context.settings)
    keys = [row for batch in listing.existing(context) for row in batch.load()["id"]]
    assert keys == ["1", "2", "3", "4", "5"]


def test_an_answer_without_the_member_says_nothing_about_the_record() -> None:
    """It is refused, since a wrong ``record`` would have every record that is fetched look deleted."""
    stream, connection = vendure()
    stream = {**stream, "fetch": stream["fetch"] | {"record": "data.product"}}
    with pytest.raises(RefusedError, match="has no record at /data/product"):
        fetched_rows.fetched(CONNECTOR, Api(Vendure()).context(stream, **connection), "items", ["3"])


def test_a_refused_login_says_why_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not tried five times, and the message has no password."""
    monkeypatch.setenv("API_PASSWORD", "not the right one")
    stream, connection = vendure()
    api = Api(Vendure())
    error = api.read(stream, **connection).error
    assert isinstance(error, UnauthorizedError)
    assert "INVALID" not in str(error) or "wrong" in str(error)
    assert "wrong: (secret)" in str(error)
    assert len(api.seen) == 1


class Tryton:
    """An ERP as Tryton: JSON-RPC, a session in the answer's body, errors inside of a 200."""

    def __init__(self, failure: Any = None) -> None:
        self.sessions, self.failure, self.calls = 0, failure, list[Any]()

    def __call__(self, request: httpx.Request) -> Any:
        call = json.loads(request.content)
        if call["method"] == "common.db.login":
            is_right = call["params"] == ["sync", {"password": PASSWORD}]
            self.sessions += 1
            return {"id": call["id"], "result": [7, f"s{self.sessions}"] if is_right else None}
        session = b64encode(f"sync:7:s{self.sessions}".encode()).decode()
        if request.headers["authorization"] != f"Session {session}":
            return httpx.Response(401)
        self.calls.append(call)
        if self.failure is not None:
            return self.failure if isinstance(self.failure, httpx.Response) else {"id": 1, "error": self.failure}
        (ids, *_) = call["params"]
        rows = [{"id": 17, "code": "A", "fields": {"com.acme.sku": "S17"}}]
        return {"id": 1, "result": [row for row in rows if ids in ([], [17])]}


def tryton() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    login = {"method": "common.db.login", "id": 1, "params": ["sync", {"password": "env:API_PASSWORD"}]}
    auth = {
        "kind": "login",
        "login_url": "https://erp.example/db/",
        "credentials": login,
        "token_member": "sync:{result.0}:{result.1}",
        "base64": True,
        "value": "Session {token}",
    }
    read = {"jsonrpc": "2.0", "method": "model.product.product.read", "id": 1}
    stream = {
        "path": "/db/",
        "body": read | {"params": [[], ["code"], {}]},
        "records": "result",
        "mode": "snapshot",
        "key": ["id"],
        "fetch": {
            "path": "/db/", "body": read | {"params": [["{id}"], ["code"], {}]}, "record": "result", "numbers": ["id"],
        },
        "map": {"sku": "/fields/com.acme.sku", "name": "code"},
    }  # fmt: skip
    return stream, {"base_url": "https://erp.example", "auth": auth}


def test_a_json_rpc_erp_with_a_session_is_read_by_a_config() -> None:
    """The session is made of several members and encoded, ids are numbers, and a pointer names a member with dots."""
    stream, connection = tryton()
    erp = Tryton()
    trial = Api(erp).read(stream, **connection)
    assert trial.error is None
    assert [record.members and record.members["sku"] for record in trial.records] == ["S17"]
    rows = fetched_rows.fetched(CONNECTOR, Api(erp).context(stream, **connection), "items", ["17", "18", "x", "017"])
    assert list(rows.by_key) == [("17",)]
    assert [call["params"][0] for call in erp.calls[1:]] == [[17], [18]]


@pytest.mark.parametrize(
    ("failure", "shown"),
    [
        (["UserError", ["The product is locked.", ""]], "UserError; The product is locked."),
        ({"code": -32601, "message": "Method not found"}, "JSON-RPC error -32601: Method not found"),
        (
            {"code": 200, "message": "Odoo Server Error", "data": {"message": "Access denied", "debug": "Traceback"}},
            "JSON-RPC error 200: Odoo Server Error; Access denied",
        ),
    ],
)
def test_an_error_inside_a_200_is_shown_and_not_tried_again(failure: Any, shown: str) -> None:
    """With its own words."""
    stream, connection = tryton()
    erp = Tryton(failure)
    error = Api(erp).read(stream, **connection).error
    assert isinstance(error, RemoteError)
    assert shown in str(error)
    assert len(erp.calls) == 1


@pytest.mark.parametrize(
    ("status", "body", "attempts"),
    [
        (400, {"error": {"message": "no"}}, 1),
        (404, {}, 1),
        (405, {}, 1),
        (410, {}, 1),
        (422, {}, 1),
        (501, {}, 1),
        (500, {"jsonrpc": "2.0", "error": {"code": -32602, "message": "Invalid params"}}, 1),
        (500, {"errors": [{"message": "no field", "extensions": {"code": "GRAPHQL_VALIDATION_FAILED"}}]}, 1),
        (500, {"errors": [{"message": "failed", "extensions": {"code": "INTERNAL_SERVER_ERROR"}}]}, 5),
        (500, {"jsonrpc": "2.0", "error": {"code": -32603, "message": "Internal error"}}, 5),
        (503, {}, 5),
    ],
)
def test_a_permanent_error_is_tried_once(status: int, body: Any, attempts: int) -> None:
    """An answer that another attempt cannot change ends the reading at once; others are tried five times."""
    stream, connection = tryton()
    erp = Tryton(httpx.Response(status, json=body))
    error = Api(erp).read(stream, **connection).error
    assert isinstance(error, UnavailableError) is (attempts > 1)
    assert len(erp.calls) == attempts


def test_an_odoo_session_is_a_cookie() -> None:
    """That of the answer to a login is sent with each request, and renewed when an error says that it has expired."""
    valid = list[str]()

    def odoo(request: httpx.Request) -> Any:
        if request.url.path == "/web/session/authenticate":
            valid.append(f"session{len(valid)}")
            cookie = f"session_id={valid[-1]}; Expires=Thu, 26 Nov 2026 00:00:00 GMT; HttpOnly; Path=/"
            return httpx.Response(
                200, json={"result": {"uid": 2}}, headers=[("set-cookie", "a=b"), ("set-cookie", cookie)]
            )
        if f"session_id={valid[-1]}" not in request.headers["cookie"] or len(valid) == 1:
            return {"error": {"code": 100, "message": "Odoo Session Expired"}}
        return {"result": [{"id": 1, "code": "A"}]}

    stream, _ = tryton()
    auth = {
        "kind": "login",
        "login_url": "https://erp.example/web/session/authenticate",
        "credentials": {"params": {"db": "main", "login": "sync", "password": "env:API_PASSWORD"}},
        "token_cookie": "session_id",
        "header": "Cookie",
        "value": "session_id={token}",
        "expired": [{"status": 200, "text": "Session Expired"}],
    }
    trial = Api(odoo).read(
        {**stream, "map": {"sku": "code", "name": "code"}}, base_url="https://erp.example", auth=auth
    )
    assert (trial.error, len(trial.records), valid) == (None, 1, ["session0", "session1"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"credentials": {"a": {"password": "plain"}}}, "a secret is never written here"),
        ({"token_header": "X-Token", "token_member": "result.token"}, "the token is in one place"),
        ({"expired": [{"status": 200}]}, "each answer of success would need a new token"),
        ({"value": "Bearer"}, "value"),
    ],
)
def test_a_login_that_cannot_work_is_refused(change: Mapping[str, Any], message: str) -> None:
    """The message names the key."""
    stream, connection = vendure(**change)
    data = {"kind": "http_json", **connection, "streams": {"items": {"resource": "product", **stream}}}
    with pytest.raises(ValidationError, match=message):
        HttpJsonSettings.model_validate(data)


def test_what_needs_a_missing_time_is_left_out_as_a_whole() -> None:
    """An object without members, and a list that compares with it; a list of conditions stays."""
    domain = [[["write_date", ">=", "{since}"], ["active", "=", True]], 0, 80]
    value = {"params": domain, "filter": {"updatedAt": {"after": "{since}"}, "state": {"in": ["open"]}}, "empty": {}}
    assert request_templates.fill_or_remove_placeholders(value, {}) == {
        "params": [[["active", "=", True]], 0, 80],
        "filter": {"state": {"in": ["open"]}},
        "empty": {},
    }
    assert request_templates.fill_or_remove_placeholders(value, {"since": "1"})["params"][0][0] == [
        "write_date",
        ">=",
        "1",
    ]


def test_a_cursor_is_sent_as_a_number_where_the_api_needs_one() -> None:
    """Text with other characters is no number: the request is refused before it is sent."""
    body = {"after": "{since}", "text": "from {since}"}
    assert request_templates.fill_or_remove_placeholders(body, {"since": "0042"}, ["since"]) == {
        "after": 42,
        "text": "from 0042",
    }
    assert request_templates.fill_or_remove_placeholders(body, {"since": None}, ["since"]) is None
    for value in ("4x", "NaN", ""):
        with pytest.raises(RefusedError, match="is no number"):
            request_templates.fill_or_remove_placeholders(body, {"since": value}, ["since"])
