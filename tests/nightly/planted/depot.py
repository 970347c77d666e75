"""A depot that takes orders, and its bugs. It refuses a second order of a reference, and lists orders by it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal
from urllib.parse import quote, urlencode

import httpx
from pydantic import ConfigDict
from tests.nightly.planted.bugs import Bug

from crossdock import Connector, SecretRef
from crossdock.resources import ResourceModel
from crossdock.sources import BearerAuth, HttpSettings
from crossdock.targets import (
    Answer,
    ApiTarget,
    EndpointProfile,
    ExpectedRecord,
    Outcome,
    RecordShape,
    Request,
    TargetResource,
    Update,
)
from crossdock.testing.target_acceptance import TargetAcceptance
from crossdock.testing.target_contract import TargetContract
from crossdock.testing.target_under_test import TargetUnderTest
from crossdock.values import exact_json
from crossdock.values.field_types import Exact, Instant, Personal, Text


class DepotLine(ResourceModel):
    model_config = ConfigDict(alias_generator=None)

    sku: Text
    quantity: Exact
    price: Exact


class DepotAddress(ResourceModel):
    street: Personal
    city: Personal
    region: Personal | None = None


class DepotOrder(ResourceModel):
    model_config = ConfigDict(alias_generator=None)

    placed_at: Instant
    address: DepotAddress
    lines: tuple[DepotLine, ...]


class DepotSettings(HttpSettings):
    """One account at the depot."""

    kind: Literal["depot"]
    token: SecretRef


class Depot(ApiTarget):
    """Orders. The body of a create and an update comes from `body`."""

    resources: Mapping[str, TargetResource] = {
        "orders": TargetResource(
            "orders",
            DepotOrder,
            endpoint=EndpointProfile(idempotent=True, look_up=True),
            shape=RecordShape(listed="/orders"),
            name_member="reference",
            name_limit=40,
        )
    }

    def body(self, payload: dict[str, Any]) -> dict[str, Any]:
        return payload

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return Request.json("POST", "/orders", self.body(payload))

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        return Request.json("PUT", f"/orders/{quote(target_id, safe='')}", self.body(update.after))

    def delete(self, resource: str, target_id: str) -> Request:
        return Request("DELETE", f"/orders/{quote(target_id, safe='')}")

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        if target_id is not None:
            return Request("GET", f"/orders/{quote(target_id, safe='')}")
        return Request("GET", f"/orders?{urlencode({'reference': name})}")

    def ping(self, resource: str) -> Request:
        return Request("GET", "/orders?limit=1")

    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        if answer.status == 409:
            return Outcome("rejected", "the reference is taken", 409, reason="conflict", pointer="/reference")
        return super().outcome(resource, answer, expected)

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().found(resource, answer, expected)
        is_cancelled = expected.target_id and (outcome.held or {}).get("state") == "cancelled"
        return Outcome("absent", status=answer.status) if is_cancelled else outcome


def depot(target: type[Depot]) -> Connector[DepotSettings]:
    return Connector(
        name="depot",
        title="A depot",
        settings=DepotSettings,
        streams=lambda _: (),
        api=lambda own: own.api(auth=BearerAuth(own.token)),
        target=lambda _: target(),
    )


BODY = {
    "reference": "examples:0000",
    "placed_at": "2026-11-19T23:30:00Z",
    "address": {"street": "Gasse 1", "city": "Bern", "region": "BE"},
    "lines": [
        {"sku": "0017", "quantity": 1, "price": Decimal("24.95")},
        {"sku": "0018", "quantity": 2, "price": Decimal("0.25")},
    ],
}


class DepotExample(TargetUnderTest):
    """Orders with two lines."""

    connector = depot(Depot)
    settings = {"base_url": "https://depot.example", "token": "env:DEPOT_TOKEN"}
    environment = {"DEPOT_TOKEN": "token-of-the-tests"}
    expects = {
        ("orders", "create"): ("POST", "/orders", BODY),
        ("orders", "update"): ("PUT", "/orders/4711", {"lines": [{"quantity": 2}, {}]}),
        ("orders", "delete"): ("DELETE", "/orders/4711", None),
    }

    def members(self, resource: str, number: int) -> Mapping[str, Any]:
        lines = [
            {"sku": "0017", "quantity": number + 1, "price": Decimal("24.95")},
            {"sku": "0018", "quantity": 2, "price": Decimal("0.25")},
        ]
        address = {"street": "Gasse 1", "city": "Bern", "region": "BE"}
        return {"placed_at": datetime(2026, 11, 19, 23, 30, tzinfo=UTC), "address": address, "lines": lines}

    def removed(self, resource: str, record: Any) -> Any:
        return {**record, "state": "cancelled"}

    def listing(self, resource: str, records: Sequence[Any]) -> Any:
        return {"orders": list(records)}

    def repeated(self, resource: str) -> Answer:
        return Answer(409, {}, b'{"error": "taken"}')


class DepotCase(DepotExample, TargetContract):
    """Requests and answers."""


class FakeDepot:
    """The orders of a depot, by id."""

    def __init__(self) -> None:
        self.orders: dict[str, dict[str, Any]] = {}

    def answer(self, request: httpx.Request) -> httpx.Response:
        order_id = request.url.path.removeprefix("/orders").strip("/")
        if request.method == "GET" and not order_id:
            name = request.url.params.get("reference")
            found = [self.shown(each) for each, order in self.orders.items() if order["reference"] == name]
            return httpx.Response(200, json={"orders": found})
        if request.method == "POST":
            order = json.loads(request.content)
            if order["reference"] in [each["reference"] for each in self.orders.values()]:
                return httpx.Response(409, json={"error": "taken"})
            order_id = str(len(self.orders) + 1)
            self.orders[order_id] = order
        if request.method == "PUT":
            self.orders[order_id] = json.loads(request.content)
        return httpx.Response(200, json=self.shown(order_id))

    def shown(self, order_id: str) -> dict[str, Any]:
        return {"id": order_id, **self.orders[order_id]}


# ---- bugs


class InPart(Depot):
    """An update that changes the time alone, and leaves the lines as they were."""

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        changed = {**update.after, "lines": update.before["lines"]}
        return Request.json("PUT", f"/orders/{quote(target_id, safe='')}", changed)


IN_PART = depot(InPart)


class InPartCase(DepotExample, TargetAcceptance):
    """Whole syncs to a fake."""

    connector = IN_PART
    records = 6

    def members(self, resource: str, number: int) -> Mapping[str, Any]:
        later = datetime(2026, 11, 20, number, tzinfo=UTC)
        return {**super().members(resource, number), "placed_at": later}

    def partner(self) -> tuple[httpx.BaseTransport, Callable[[], list[Any]]]:
        fake = FakeDepot()
        return httpx.MockTransport(fake.answer), lambda: list(fake.orders.values())


def bodied(change: Any) -> type[DepotCase]:
    return case(body=lambda self, payload: change(payload))


def case(**methods: Any) -> type[DepotCase]:
    return type("Case", (DepotCase,), {"connector": depot(type("Bug", (Depot,), methods))})


def _priced(change: Any) -> Any:
    return lambda body: {**body, "lines": [{**line, "price": change(line["price"])} for line in body["lines"]]}


def _believing(self: Any, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
    """The first order of the list, whatever its reference is."""
    outcome = ApiTarget.found(self, resource, answer, expected)
    if outcome.kind == "unavailable" and answer.status == 200 and answer.body.endswith(b"]}"):
        record = exact_json.loads(answer.body)["orders"][0]
        return Outcome("found", status=200, target_id=str(record["id"]), held=record)
    return outcome


def _only_delivered(self: Any, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
    found = Depot.outcome(self, resource, answer, expected)
    return Outcome("rejected", "refused", answer.status) if answer.status >= 500 else found


def _conflict_delivered(self: Any, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
    done = Outcome("delivered", status=409, target_id=expected.target_id or "4711")
    is_other = answer.status == 409 and b"taken" not in answer.body
    return done if is_other else Depot.outcome(self, resource, answer, expected)


def _refused_is_missing(self: Any, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
    is_refusal = 400 <= answer.status < 429
    return Outcome("absent", status=404) if is_refusal else ApiTarget.found(self, resource, answer, expected)


def _half_the_pause(self: Any, answer: Answer) -> Outcome | None:
    return Outcome("throttled", "slow down", 429, 3.5) if answer.status == 429 else None


class InProgressCase(DepotCase):
    """The depot says that an earlier request is in progress, which `Depot` takes for a taken reference."""

    ambiguous = (Answer(409, {}, b'{"error": "in progress"}'),)


def _never_throttled(self: Any, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
    found = Depot.outcome(self, resource, answer, expected)
    return Outcome("rejected", "refused", 429) if answer.status == 429 else found


def _any_success(self: Any, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
    found = Depot.outcome(self, resource, answer, expected)
    is_done = found.kind == "in_doubt" and answer.status < 300
    return Outcome("delivered", status=answer.status, target_id="1") if is_done else found


def _as_float(self: Any, resource: str, payload: dict[str, Any]) -> Request:
    return Request("POST", "/orders", json.dumps(payload, sort_keys=True, default=float).encode())


FIRST_LINES, LATE = 1, "2026-11-20T04:30:00Z"
FORM, STATED = "requests_are_well_formed", "requests_are_as_expected"
FOUND: Sequence[tuple[str, type[DepotExample], str, str]] = [
    ("a create that is another one each time", bodied(lambda body: {**body, "request": uuid.uuid4().hex}),
     "equal_payloads_have_equal_requests", "Bug.create"),
    ("a create without the external id",
     bodied(lambda body: {name: value for name, value in body.items() if name != "reference"}), FORM, "Bug.create"),
    ("a name that is cut", case(
        name_of=lambda self, resource, namespace, key: f"{namespace}:{key}"[:40], check_key=lambda *_: None
    ), "names_tell_records_apart", "Bug.check_key"),
    ("DELETE without an id", case(delete=lambda *_: Request("DELETE", "/orders")), FORM, "Bug.delete"),
    ("an update without an id", case(update=lambda self, resource, target_id, update: Request.json(
        "PUT", "/orders", update.after)), FORM, "Bug.update"),
    ("an update that sends the old record", case(update=lambda self, resource, target_id, update: Request.json(
        "PUT", f"/orders/{quote(target_id, safe='')}", update.before)), "an_update_says_what_changes", "Bug.update"),
    ("an amount rounded", bodied(_priced(lambda price: round(price, 1))), "numbers_are_exact", "Bug.create"),
    ("decimals lost in a float", case(create=_as_float), "numbers_are_exact", "Bug.create"),
    ("a foreign record believed", case(found=_believing), "a_look_up_believes_no_other_answer", "Bug.found"),
    ("a cancelled record taken for one that exists", case(found=ApiTarget.found), "a_removed_record_is_absent",
     "Bug.found"),
    ("429 taken for a refusal", case(outcome=_never_throttled), "throttling_is_recognized", "Bug.outcome"),
    ("an error of the API taken for a refusal", case(outcome=_only_delivered), "an_ambiguous_answer_is_in_doubt",
     "Bug.outcome"),
    ("a request in progress taken for a refusal", InProgressCase, "an_ambiguous_answer_is_in_doubt", "Depot.outcome"),
    ("an error of the API taken for a success", case(outcome=_conflict_delivered), "a_failure_is_no_delivery",
     "Bug.outcome, orders, create: any HTTP 409"),
    ("a failed look-up taken for a missing record", case(found=_refused_is_missing), "a_failed_look_up_shows_nothing",
     "Bug.found"),
    ("a wait that is shorter than the answer asks for", case(throttled=_half_the_pause), "throttling_is_recognized",
     "Bug.outcome"),
    ("a broken answer taken for a success", case(outcome=_any_success), "a_false_success_is_in_doubt", "Bug.outcome"),
    ("an exception in the target", bodied(lambda body: {**body, "note": body["note"]}),
     "equal_payloads_have_equal_requests", "create"),
    ("an update that sends a part of the changes", InPartCase,
     "each_record_is_there_once_in_spite_of_faults_and_kills", "shows the old value of lines"),
]  # fmt: skip
NEED_A_STATEMENT: Sequence[tuple[str, type[DepotCase], str]] = [
    ("a price divided by 100", bodied(_priced(lambda price: price / 100)), "price"),
    ("a time in another zone", bodied(lambda body: {**body, "placed_at": LATE}), "placed_at"),
    ("part of an address left out", bodied(
        lambda body: {**body, "address": {**body["address"], "region": None}}), "region"),
    ("a list that is cut", bodied(lambda body: {**body, "lines": body["lines"][:FIRST_LINES]}), "/lines"),
    ("a request to another path", case(create=lambda self, resource, payload: Request.json(
        "POST", "/drafts", payload)), "Bug.create"),
]  # fmt: skip
BUGS = [
    *(Bug(what, "target", made, test, says) for what, made, test, says in FOUND),
    *(Bug(what, "target", made, STATED, says, True) for what, made, says in NEED_A_STATEMENT),
]
CORRECT = (DepotCase,)
