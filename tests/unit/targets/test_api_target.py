"""The target of a connection: what it derives from the endpoints that a connector declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.unit.testing.target_connector import Order, OrderTarget, orders

from crossdock.errors import ConfigError, UnauthorizedError
from crossdock.sources import Api, ApiAnswer
from crossdock.targets import (
    Answer,
    ApiTarget,
    EndpointProfile,
    ExpectedRecord,
    Outcome,
    RecordShape,
    Rule,
    Target,
    TargetResource,
    Update,
)
from crossdock.testing import ManualClock
from crossdock.values import exact_json
from crossdock.writing.targets.target_code_guard import defect_of_target_class


@pytest.mark.parametrize(
    ("endpoint", "rules"),
    [
        pytest.param(EndpointProfile(idempotent=True, header="key"), ("resend", "resend"), id="idempotency keys"),
        pytest.param(EndpointProfile(idempotent=True), ("resend", "verify"), id="unique names"),
        pytest.param(EndpointProfile(look_up=True), ("verify", "verify"), id="look-up"),
        pytest.param(EndpointProfile(), ("park", "verify"), id="neither"),
    ],
)
def test_the_rule_after_an_ambiguous_answer(endpoint: EndpointProfile, rules: tuple[Rule, Rule]) -> None:
    """A name that the target accepts once makes the repeat of a create harmless, and that of nothing else."""
    assert (endpoint.rule("create"), endpoint.rule("update")) == rules
    assert endpoint.rule("delete") == rules[1]


def test_a_key_in_the_body_is_that_of_requests_with_a_body() -> None:
    """A deletion has none, and is looked up."""
    endpoint = EndpointProfile(key_member="/idempotency_key")
    assert [endpoint.rule(each) for each in ("create", "update", "delete")] == ["resend", "resend", "verify"]
    target = type("Keyed", (OrderTarget,), {"resources": orders(endpoint)})()
    create = target.with_key("orders", target.create("orders", {"price": Decimal("9.50")}), "k1")
    assert create.body == b'{"idempotency_key":"k1","order":{"price":9.5}}'
    delete = target.delete("orders", "7")
    assert target.with_key("orders", delete, "k1") == delete


def test_the_body_with_a_key_is_not_the_payload_alone() -> None:
    """The state would otherwise restore it from the payload, without the key."""
    endpoint = EndpointProfile(key_member="/key")
    kind = TargetResource("orders", Order, endpoint=endpoint, path="/orders", name_member="reference")
    target = type("Plain", (ApiTarget,), {"resources": {"orders": kind}})()
    assert target.create("orders", {"note": "x"}).holds_payload
    made = target.with_key("orders", target.create("orders", {"note": "x"}), "k1")
    assert (made.body, made.holds_payload) == (b'{"key":"k1","note":"x"}', False)


class WithoutDeletes(OrderTarget):
    delete = Target.delete


@pytest.mark.parametrize(
    ("declared", "sent"),
    [
        pytest.param({}, ("PATCH", {"note": "y"}), id="usual"),
        pytest.param({"body": "order"}, ("PATCH", {"order": {"note": "y"}}), id="body"),
        pytest.param({"update_method": "PUT"}, ("PUT", {"note": "y", "reference": "a:1"}), id="PUT"),
        pytest.param(
            {"update_method": "POST", "body": "order"},
            ("POST", {"order": {"note": "y", "reference": "a:1"}}),
            id="POST",
        ),
    ],
)
def test_a_resource_says_how_its_records_are_sent(declared: Any, sent: tuple[str, Any]) -> None:
    """PATCH sends the changed members, other methods the whole record; a create is stored once if it is the payload."""
    kind = TargetResource("orders", Order, path="/orders", name_member="reference", **declared)
    target = type("Plain", (ApiTarget,), {"resources": {"orders": kind}})()
    after = {"note": "y", "reference": "a:1"}
    made = target.update("orders", "17", Update({}, {"note": "y"}, after))
    assert (made.method, made.path, exact_json.loads(made.body or b"")) == (sent[0], "/orders/17", sent[1])
    created = target.create("orders", after)
    assert exact_json.loads(created.body or b"") == ({"order": after} if "body" in declared else after)
    assert created.holds_payload is ("body" not in declared)


def test_a_method_that_a_resource_needs() -> None:
    """A resource with deletes needs the method `delete`, and one that is looked up first needs `create_from`."""
    needed = "it has no method delete, which its resource orders needs; see class WithoutDeletes, line"
    assert (defect_of_target_class(WithoutDeletes()) or "").startswith(needed)
    target = OrderTarget()
    assert defect_of_target_class(target) is None
    target.resources = orders(EndpointProfile(look_up=True, looks_up_first=frozenset({"create"})))
    assert "no method create_from" in (defect_of_target_class(target) or "")


def test_a_target_without_a_connection_says_so() -> None:
    """As a test of an author makes it; what needs no API works."""
    alone = OrderTarget()
    assert alone.create("orders", {"note": "x"}).path == "/orders"
    with pytest.raises(ConfigError, match="OrderTarget is not connected") as failed:
        alone.found("orders", Answer(200, {}, b"{}"), ExpectedRecord(target_id="7"))
    assert "new_target() of a TargetUnderTest" in str(failed.value.hint)


def refused(answer: ApiAnswer) -> int | None:
    """The depot's rule: an order that is there was made, whatever else the answer says."""
    if answer.at("/order/order_id") is not None:
        return None
    if answer.at("/errors/0/code") == 30:
        return 429
    return 422 if answer.at("/errors") or answer.at("/data/made/userErrors") else None


def connected(target: OrderTarget, **api: Any) -> OrderTarget:
    target.connect("depot", "acme", lambda: Api("https://depot.example", **api), ManualClock())
    return target


def written(target: OrderTarget, body: Any, headers: Mapping[str, str] | None = None) -> Outcome:
    """What an answer of success to a create means."""
    answer = Answer(200, headers or {}, exact_json.dumps(body))
    return target.outcome("orders", answer, ExpectedRecord("/orders", None, "wms:1"))


class JudgingTarget(OrderTarget):
    """It judges by itself, for one resource."""

    def failed(self, resource: str, answer: ApiAnswer) -> int | None:
        return refused(answer) if resource == "orders" else None


@pytest.mark.parametrize(
    "target",
    [connected(OrderTarget(), failed=refused), connected(JudgingTarget())],
    ids=["Api.failed", "the target's own"],
)
def test_a_refusal_in_a_200_is_what_the_author_says(target: OrderTarget) -> None:
    """Its text is the partner's, wherever the answer has it. An order that was made all the same is delivered."""
    errors = [{"message": "bad SKU"}]
    for body in (
        {"errors": errors},
        {"data": {"made": None}, "errors": errors},
        {"data": {"made": {"order": None, "userErrors": errors}}},
        {"data": {"made": {"order": None, "userErrors": [{"field": ["sku"], "message": "bad SKU"}]}}},
    ):
        outcome = written(target, body)
        assert (outcome.kind, outcome.message, outcome.status) == ("rejected", "bad SKU", 422)
    assert written(target, {"data": {"made": {"userErrors": [{}]}}}).message.endswith("gives no reason")
    made = written(target, {"order": {"order_id": 7, "reference": "wms:1"}, "errors": errors})
    assert (made.kind, made.target_id) == ("delivered", "7")
    assert written(target, {"data": {"made": None}}).kind == "in_doubt"


def test_an_error_beside_a_record_is_in_doubt_where_the_author_says_nothing() -> None:
    """Nobody knows whether the order was made."""
    body = {"order": {"order_id": 7, "reference": "wms:1"}, "errors": [{"message": "bad SKU"}]}
    made = written(connected(OrderTarget()), body)
    assert (made.kind, made.message) == ("in_doubt", "answered success with an error: bad SKU")


def test_throttling_in_a_200_is_waited_for() -> None:
    """By the status that it stands for, a GraphQL code, or the seconds that the connector reads off the answer."""
    target = connected(OrderTarget(), failed=refused)
    slow = {"errors": [{"code": 30, "message": "not enough credits; retry after 17 seconds"}]}
    assert (written(target, slow).kind, written(target, slow).retry_after_s) == ("throttled", 17.0)
    coded = written(target, {"errors": [{"message": "slow down", "extensions": {"code": "THROTTLED"}}]})
    assert (coded.kind, coded.retry_after_s) == ("throttled", None)
    target = connected(OrderTarget(), throttled=lambda answer: answer.at("/errors/0/wait") or False)
    waits = written(target, {"errors": [{"wait": Decimal("2.5")}]}, {"retry-after": "40"})
    assert (waits.kind, waits.retry_after_s) == ("throttled", 2.5)
    plain = Answer(429, {}, b'{"message": "retry after 1500 milliseconds"}')
    assert target.outcome("orders", plain, ExpectedRecord("/orders", None, "wms:1")).retry_after_s == 1.5


def test_null_in_place_of_a_record_says_that_it_does_not_exist() -> None:
    """Not beside an error, and not in place of the whole answer: these say nothing of the record."""
    target, by_id = connected(OrderTarget()), ExpectedRecord(target_id="7", name="wms:1")

    def found(body: bytes) -> str:
        return target.found("orders", Answer(200, {}, body), by_id).kind

    assert found(b'{"order": null}') == "absent"
    told_nothing = (b'{"order": null, "errors": [{"message": "no access"}]}', b"null", b"{}")
    assert [found(each) for each in told_nothing] == ["unavailable"] * 3


class OneOfQuery(OrderTarget):
    """Look-ups answer with one record elsewhere than writes, and with null where there is none."""

    resources = {
        "orders": replace(
            OrderTarget.resources["orders"],
            shape=RecordShape(
                id="/order_id", record="/saved/order", looked_up="/order", listed=None, null_is_absent=True
            ),
        )
    }

    def failed(self, resource: str, answer: ApiAnswer) -> int | None:
        return 404 if answer.at("/errors/0/code") == "NOT_FOUND" else None


@pytest.mark.parametrize("target_id", ["7", None], ids=["by id", "by name"])
def test_null_alone_can_say_that_a_record_does_not_exist(target_id: str | None) -> None:
    """Then no 404 is believed, of a proxy or of a wrong path, but that of a rule of the target."""
    target, expected = connected(OneOfQuery()), ExpectedRecord(target_id=target_id, name="wms:1")

    def found(body: bytes, status: int = 200) -> Outcome:
        return target.found("orders", Answer(status, {}, body), expected)

    assert found(b'{"order": null}').kind == "absent"
    assert found(b'{"order": null, "errors": [{"code": "NOT_FOUND"}]}').kind == "absent"
    assert [found(b"<html>", status).kind for status in (404, 410)] == ["unavailable"] * 2
    assert found(b'{"saved": {"order": {"order_id": 7, "reference": "wms:1"}}}').kind == "unavailable"
    there = found(b'{"order": {"order_id": 7, "reference": "wms:1"}}')
    assert (there.kind, there.target_id) == ("found", "7")
    made = target.outcome(
        "orders", Answer(200, {}, b'{"saved": {"order": {"order_id": 7}}}'), ExpectedRecord("/orders", None, "wms:1")
    )
    assert (made.kind, made.target_id) == ("delivered", "7")


def test_a_shape_says_what_shows_that_there_is_no_record() -> None:
    """Without a list, nothing else does."""
    with pytest.raises(ValueError, match="say what shows that there is no record"):
        RecordShape(listed=None)
    with pytest.raises(ValueError, match="choose absent, for a 404, or null_is_absent"):
        RecordShape(absent="no such order", null_is_absent=True)


def test_a_ping_that_is_refused_in_a_200_shows_a_wrong_credential() -> None:
    """``crossdock check`` says so."""

    class Refusing(OrderTarget):
        def send(self, *_: Any, **__: Any) -> Answer:
            return Answer(200, {}, b'{"errors": [{"message": "no such key"}]}')

    target = connected(Refusing(), failed=lambda answer: 401 if answer.at("/errors") else None)
    with pytest.raises(UnauthorizedError, match="rejected the credential"):
        target.reach()


@pytest.mark.parametrize("status", [302, 308])
def test_a_ping_that_is_redirected_doubts_the_address(status: int) -> None:
    """``crossdock check`` says so; the API may have no such list, and its other paths may be right."""

    class Moved(OrderTarget):
        def send(self, *_: Any, **__: Any) -> Answer:
            return Answer(status, {"location": "https://new.example/orders"}, b"")

    told = connected(Moved()).reach()
    assert f"answers HTTP {status} to GET /orders" in told
    assert ".base_url unless the API has no such list" in told


PAGE = Path(__file__).parents[3] / "docs" / "how_to" / "targets" / "answers_in_python.md"
TABLE = PAGE.read_text(encoding="utf-8").partition("\n## What answers mean\n")[2].partition("\n#")[0].splitlines()
IN_PROGRESS = b'{"type": "https://depot.example/idempotency-key-in-use"}'
OTHER, GIVEN = {"order": {"order_id": 8, "reference": "other"}}, {"order": {"order_id": 7, "reference": "n"}}
ANSWERS: Mapping[str, list[Answer]] = {  # by the first cell of a row in the table of the guide
    "2xx with the record": [Answer(200, {}, exact_json.dumps({**GIVEN, "orders": [GIVEN["order"]]}))],
    "2xx with an empty list, or null": [Answer(200, {}, b'{"order": null, "orders": []}')],
    "2xx with another record": [
        Answer(200, {}, exact_json.dumps({**OTHER, "orders": [OTHER["order"]]})),
        Answer(200, {}, exact_json.dumps({"errors": ["failed"], "order": None, "orders": []})),
        Answer(200, {}, b'{"order": {'),
    ],
    "2xx without a body": [Answer(204, {"location": "https://depot.example/orders/7"}, b"")],
    "401": [Answer(401, {}, b"{}")],
    "403": [Answer(403, {}, b"{}")],
    "409 with `Retry-After`": [
        Answer(409, {"retry-after": "3"}, b"{}"), Answer(409, {}, IN_PROGRESS), Answer(408, {}, b"{}"),
    ],
    "409 |": [Answer(409, {}, b"{}")],
    "412": [Answer(412, {}, b"{}")],
    "429": [Answer(429, {}, b"{}")],
    "any other 4xx": [Answer(status, {}, b"{}") for status in (400, 402, 405, 406, 415, 422, 423, 428)],
    "503 with `Retry-After`": [Answer(503, {"retry-after": "3"}, b"{}")],
    "301, 307, 308": [Answer(status, {"location": "/v2/orders"}, b"{}") for status in (301, 307, 308)],
    "any other 3xx or 5xx": [Answer(status, {}, b"{}") for status in (300, 302, 303, 304, 500, 502, 503, 504, 520)],
}  # fmt: skip


@pytest.mark.parametrize("row", ANSWERS)
def test_answers_mean_what_the_guide_says(row: str) -> None:
    """Of a create, and of a look-up by the external id."""
    line = next(line for line in TABLE if line.startswith(f"| {row}"))
    _, _, written, found, _ = (cell.strip() for cell in line.split("|"))
    target = connected(OrderTarget())
    expected = ExpectedRecord("/orders", None, "n")
    for answer in ANSWERS[row]:
        outcome = ApiTarget.outcome(target, "orders", answer, expected)
        assert written.startswith(f"`{outcome.kind}`"), answer
        assert outcome.reason is None or "reason" not in written or f"`{outcome.reason}`" in written
        assert found.startswith(f"`{ApiTarget.found(target, 'orders', answer, expected).kind}`"), answer
