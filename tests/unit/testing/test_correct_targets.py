"""The contract of targets accepts correct targets of many kinds, with a description of the API's answers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unittest import SkipTest
from urllib.parse import quote

import pytest
from tests.unit.testing.parcels_target import ParcelsContract, ParcelsOfOneOrderContract
from tests.unit.testing.target_connector import (
    DepotSettings,
    Order,
    OrdersContract,
    OrderTarget,
    connector,
    failure,
    orders,
)

from crossdock import Connector, Filter
from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.errors import CrossdockError, RecordError
from crossdock.sources import Api, ApiAnswer
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
from crossdock.testing import ManualClock
from crossdock.testing.target_acceptance import TargetAcceptance
from crossdock.testing.target_contract import TargetContract
from crossdock.values import exact_json
from crossdock.values.record_keys import key_parts_of

ONE = RecordShape(id="/order_id", record="/order", absent="no such order")


def shaped(shape: RecordShape, **facts: Any) -> dict[str, TargetResource]:
    """The orders of a depot whose answers have *shape*."""
    (resource,) = orders(EndpointProfile(look_up=True)).values()
    made = {"shape": shape, "endpoint": resource.endpoint, "name_member": "reference", "name_limit": 40, **facts}
    return {"orders": TargetResource("orders", resource.draft, **made)}


class LinesStay(OrderTarget):
    """Lines cannot be changed once an order was sent."""

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        if "lines" in update.changes:
            raise RecordError("changed_after_delivery", "lines cannot be changed", pointer="/lines")
        return super().update(resource, target_id, update)


def test_an_update_may_refuse_a_member() -> None:
    """The record is a dead letter; its numbers are tested in the create."""
    case = type("Case", (OrdersContract,), {"connector": connector(LinesStay)})
    case().test_numbers_are_exact()


class OneByReference(OrderTarget):
    resources = shaped(ONE)

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        if target_id is not None:
            return super().look_up(resource, name, target_id)
        return Request("GET", f"/orders/by-reference/{quote(name or '', safe='')}")


class OneByReferenceContract(OrdersContract):
    """A look-up by name answers with the record itself, or with 404."""

    connector = connector(OneByReference)


class DeclaredOneContract(OneByReferenceContract):
    """The same without code."""

    connector = load_connector("http_json")
    throttling = ()
    environment = {}
    settings = {
        "base_url": "https://depot.example",
        "target": {
            "resources": {
                "orders": {
                    "members": {
                        "note": "text",
                        "lines": {"type": "list", "members": {"sku": "text", "quantity": "number"}},
                    },
                    "name": "reference",
                    "id": "/order_id",
                    "record": "order",
                    "body": "order",
                    "create": "POST /orders",
                    "update": "PATCH /orders/{id}",
                    "delete": "DELETE /orders/{id}",
                    "read": "GET /orders/{id}",
                    "look_up": {"path": "/orders/by-reference/{name}", "absent": "no such order"},
                    "repeated": {"status": 409, "text": "taken"},
                    "deleted": {"field": "status", "equals": "void"},
                }
            }
        },
    }


class WithoutBodiesContract(OrdersContract):
    """A create answers with an address, an update with 204, and a delete that it was done."""

    def answered(self, resource: str, operation: str, record: Any) -> Any:
        if operation == "create":
            return Answer(201, {"location": f"/orders/{record['order_id']}"}, b"")
        done = {"update": Answer(204, {}, b""), "delete": {"success": True}}
        return done.get(operation) or super().answered(resource, operation, record)


class NullForMissingContract(OrdersContract):
    """The look-up of a missing record answers with the envelope of a found one."""

    class Target(OrderTarget):
        def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Any:
            if answer.status == 404:  # the path of all requests is wrong
                return super().found(resource, Answer(502, {}, b""), expected)
            is_missing = answer.body == b'{"order":null}'
            return super().found(resource, Answer(404, {}, b"") if is_missing else answer, expected)

    connector = connector(Target)

    def missing(self, resource: str) -> Answer:
        return Answer(200, {}, b'{"order":null}')


class NameIsTheIdContract(OrdersContract):
    """The API assigns no id, and answers with something else than the record."""

    class Target(OrderTarget):
        resources = shaped(RecordShape(id=None, record="/order", listed="/orders"))

    connector = connector(Target)

    def stored(self, resource: str, target_id: str, payload: Mapping[str, Any]) -> Any:
        return payload

    def answered(self, resource: str, operation: str, record: Any) -> Any:
        return {"order": record} if operation == "look_up" else {"stock": 7}


class NameWithoutNamespaceContract(OrdersContract):
    """The account has no records of others, so that the resource declares the key alone as the name."""

    class Target(OrderTarget):
        resources = shaped(RecordShape(id="/order_id", record="/order", listed="/orders"), name_form="{key}")

    connector = connector(Target)


class OnlyCompletedContract(OrdersContract):
    """Records exist at the partner, and are only completed."""

    class Target(OrderTarget):
        resources = shaped(ONE, creates=False, deletes=False, name_member=None, endpoint=EndpointProfile())
        create, delete = OrderTarget.__base__.create, OrderTarget.__base__.delete  # type: ignore[union-attr]  # none

    connector = connector(Target)


class OnlyCreatedContract(OrdersContract):
    """Records are written once, and looked up by name alone."""

    class Target(OneByReference):
        resources = shaped(ONE, write_once=True, deletes=False)
        update, delete = OrderTarget.__base__.update, OrderTarget.__base__.delete  # type: ignore[union-attr]  # none

    connector = connector(Target)


class KeysOfThePartnerContract(OrdersContract):
    """A parcel is created below the order that its key names, which is looked up first."""

    class Target(OneByReference):
        resources = shaped(
            ONE, write_once=True, deletes=False,
            endpoint=EndpointProfile(look_up=True, looks_up_first=frozenset({"create"})),
        )  # fmt: skip
        create = update = delete = OrderTarget.__base__.update  # type: ignore[union-attr]  # it has none of them

        def name_of(self, resource: str, namespace: str, key: str) -> str:
            order, number = key_parts_of(key)
            if not order.isdecimal():
                raise RecordError("invalid_draft", "the key must be the id of an order and a number")
            return f"{order}/{number}"

        def create_from(self, resource: str, payload: dict[str, Any], held: dict[str, Any]) -> Request:
            return Request.json("POST", f"/orders/{held['order_id']}/parcels", {"order": payload})

    connector = connector(Target)

    def key(self, resource: str, number: int) -> tuple[str, ...]:
        return str(100 + number), f"1Z{number}"

    def before_create(self, resource: str, number: int) -> dict[str, Any]:
        return {"order_id": 100 + number}


class VersionedContract(OrdersContract):
    """An update needs the version that only a look-up shows."""

    class Target(OrderTarget):
        resources = orders(EndpointProfile(idempotent=True, look_up=True, looks_up_first=frozenset({"update"})))

        def update(self, resource: str, target_id: str, update: Update) -> Request:
            made = {"order": update.after, "version": update.before["version"]}
            return Request.json("PUT", f"/orders/{quote(target_id, safe='')}", made)

    connector = connector(Target)

    def stored(self, resource: str, target_id: str, payload: Mapping[str, Any]) -> Any:
        return {**super().stored(resource, target_id, payload), "version": 3}


class MutationsContract(OrdersContract):
    """A GraphQL API, which refuses in answers with HTTP 200."""

    class Target(OrderTarget):
        def create(self, resource: str, payload: dict[str, Any]) -> Request:
            return Request.json("POST", "/graphql", {"query": "mutation { create }", "variables": payload})

        def failed(self, resource: str, answer: ApiAnswer) -> int | None:
            return 422 if answer.at("/errors") and answer.at("/order/order_id") is None else None

    connector = connector(Target)
    refusals = ((Answer(200, {}, b'{"order": null, "errors": [{"message": "bad SKU"}]}'), "bad SKU"),)


def by_path(resource: TargetResource) -> Connector[DepotSettings]:
    """A connector whose target has no methods."""
    target = type("ByPath", (ApiTarget,), {"resources": {"orders": resource}})
    return replace(connector(OrderTarget), target=lambda _: target())


class ByPathContract(OrdersContract):
    """The path of the resource gives all requests, and cancelled orders are shown."""

    resource = TargetResource(
        "orders",
        Order,
        endpoint=EndpointProfile(look_up=True),
        shape=RecordShape(listed="/orders"),
        path="/orders",
        name_member="reference",
        name_limit=40,
        look_up_filter="ref",
        deleted=Filter(field="status", equals="void"),
    )
    expects = {
        ("orders", "create"): ("POST", "/orders", {"reference": "examples:0000", "note": "note 0"}),
        ("orders", "update"): ("PATCH", "/orders/4711", {"note": "note 1"}),
        ("orders", "delete"): ("DELETE", "/orders/4711", None),
        ("orders", "look_up by id"): ("GET", "/orders/4711", None),
        ("orders", "look_up by name"): ("GET", "/orders?ref=examples%3A0000", None),
    }

    connector = by_path(resource)

    def stored(self, resource: str, target_id: str, payload: Mapping[str, Any]) -> Any:
        return {"id": target_id, **payload, "status": "new"}

    def answered(self, resource: str, operation: str, record: Any) -> Any:
        return record

    def repeated(self, resource: str) -> Any:
        return None


class DividedNameContract(ByPathContract):
    """The API has our name in two members, lists orders by one of them, and answers with 204 for an empty list."""

    resource = replace(
        ByPathContract.resource,
        shape=RecordShape(listed="/orders", no_content_is_absent=True),
        name_member="number",
        name_parts={"source": "{namespace}", "number": "{key}"},
        look_up_filter=None,
    )
    connector = by_path(resource)
    expects = {
        ("orders", "create"): ("POST", "/orders", {"source": "examples", "number": "0000"}),
        ("orders", "look_up by name"): ("GET", "/orders?number=0000", None),
    }

    def listing(self, resource: str, records: Sequence[Any]) -> Any:
        return {"orders": list(records)} if records else Answer(204, {}, b"")


class ReplacedContract(OrdersContract):
    """A create of a known name replaces the record, and so do updates."""

    class Target(OrderTarget):
        resources = orders(EndpointProfile(idempotent=True))

        def update(self, resource: str, target_id: str, update: Update) -> Request:
            return self.create(resource, update.after)

    connector = connector(Target)

    def repeated(self, resource: str) -> Answer:
        return Answer(200, {}, b'{"order": {"order_id": 4711}}')


CORRECT: Sequence[type[TargetContract]] = [
    OneByReferenceContract,
    DeclaredOneContract,
    WithoutBodiesContract,
    NullForMissingContract,
    NameIsTheIdContract,
    NameWithoutNamespaceContract,
    OnlyCompletedContract,
    OnlyCreatedContract,
    KeysOfThePartnerContract,
    VersionedContract,
    MutationsContract,
    ByPathContract,
    DividedNameContract,
    ReplacedContract,
    ParcelsContract,
    ParcelsOfOneOrderContract,
]
TESTS = [name for name in dir(TargetContract) if name.startswith("test_")]


def refusals(case: type[TargetContract]) -> Mapping[str, str]:
    """Why tests of the contract refuse a case, by test."""
    found = {}
    for name in TESTS:
        try:
            with suppress(SkipTest):  # what follows is tested all the same
                getattr(case(), name)()
        except (AssertionError, RecordError, NotImplementedError, TypeError) as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


@pytest.mark.parametrize("case", CORRECT, ids=lambda case: case.__name__)
def test_a_correct_target_is_accepted(case: type[TargetContract]) -> None:
    """By every test of the contract."""
    assert refusals(case) == {}


class OnlyCompletedAcceptance(TargetAcceptance):
    connector, settings = OnlyCompletedContract.connector, OnlyCompletedContract.settings
    environment = OnlyCompletedContract.environment

    def partner(self) -> Any:
        raise NotImplementedError


def test_whole_syncs_of_a_target_that_is_only_completed_are_skipped() -> None:
    """No stream can create its records; the reason is shown."""
    with pytest.raises(SkipTest, match="no stream creates records of this target"):
        OnlyCompletedAcceptance().test_each_record_is_there_once_in_spite_of_faults_and_kills()


class AnyMissingIsAbsent(OneByReference):
    """A bug: a 404 of a wrong path shows every record to be absent."""

    resources = shaped(ONE)

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Any:
        if answer.status == 404:
            answer = Answer(404, {}, b"no such order")
        return super().found(resource, answer, expected)


def test_a_target_that_believes_any_404_is_refused() -> None:
    """Only the declared one is the API's own."""
    case = type("Case", (OneByReferenceContract,), {"connector": connector(AnyMissingIsAbsent)})
    assert [*refusals(case)] == ["test_a_look_up_believes_no_other_answer"]


class Answering:
    """A client whose target answers every look-up in one way, and every ping in another."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        self.body, self.status = body, status

    def send(self, method: str, path: str, **_: Any) -> Answer:
        return Answer(404, {}, self.body) if "by-reference" in path else Answer(self.status, {}, b"{}")

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("body", "says"), [(b"No such order", "answers; can be written"), (b"no route", "by-reference/crossdock")]
)
def test_check_looks_up_a_name_that_no_record_has(body: bytes, says: str) -> None:
    """The declared 404 is an answer, and any other one shows that the path is wrong."""
    found = reached(OneByReference, Answering(body))
    assert says in found
    assert ("check connections.depot.base_url" in found) == (body == b"no route")


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (200, "https://depot.example answers; can be written: orders"),
        (401, "https://depot.example: rejected the credential (HTTP 401)"),
        (403, "https://depot.example: rejected the credential (HTTP 403)"),
        (404, "https://depot.example answers HTTP 404 to GET /orders?limit=1; can be written: orders; check "),
        (503, "https://depot.example: responded with HTTP 503"),
    ],
)
def test_check_says_what_a_ping_shows(status: int, says: str) -> None:
    """Any answer is enough but a refused credential, and one that only a target in trouble gives."""
    assert reached(OrderTarget, Answering(b"", status)).startswith(says)


def reached(target: type[OrderTarget], client: Answering) -> str:
    """What a check of the target says."""
    connected = type("Reached", (target,), {"client": lambda _: client})()
    connected.connect("depot", "acme", lambda: Api("https://depot.example"), ManualClock())
    try:
        return str(connected.reach())
    except CrossdockError as error:
        return str(error)


def looked_up(
    case: type[ByPathContract], *records: Mapping[str, Any], name: str = "examples:0000", **members: int
) -> Outcome:
    """What a look-up by name, of the first example unless another one is given, finds in a list of these orders."""
    answer = Answer(200, {}, exact_json.dumps({"orders": records, **members}))
    return case().new_target().found("orders", answer, ExpectedRecord(name=name))


def test_an_order_of_another_source_with_our_number_is_not_ours() -> None:
    """A look-up by one of two members of the name lists it, too. One of another number shows nothing."""
    own, other = ({"id": each, "source": each, "number": "0000"} for each in ("examples", "elsewhere"))
    assert looked_up(DividedNameContract, other, own).target_id == "examples"
    assert looked_up(DividedNameContract, other).kind == "absent"
    assert looked_up(DividedNameContract, {**own, "number": "0001"}).kind == "unavailable"


@pytest.mark.parametrize("shown", [{}, {"source": None}, {"source": "Examples"}, {"source": 7}])
def test_an_order_may_be_ours_if_its_source_is_not_shown_as_sent(shown: Mapping[str, Any]) -> None:
    """So it is not absent, and no second one is created."""
    assert looked_up(DividedNameContract, {"id": "1", "number": "0000", **shown}).kind == "unavailable"


def test_orders_of_another_source_do_not_hide_that_ours_was_cancelled() -> None:
    """Whether they are cancelled, too, or not."""
    own, other = (
        {"id": each, "source": each, "number": "0000", "status": "void"} for each in ("examples", "elsewhere")
    )
    assert looked_up(DividedNameContract, own, other).kind == "removed"
    assert looked_up(DividedNameContract, own, {**other, "status": "new"}).kind == "removed"


def test_orders_of_another_source_count_for_the_total_of_the_list() -> None:
    """With more of them than a page has, ours may be on the next page."""
    other = {"id": "2", "source": "elsewhere", "number": "0000"}
    assert looked_up(DividedNameContract, other, total=1).kind == "absent"
    assert looked_up(DividedNameContract, other, total=2).kind == "unavailable"
    empty = Answer(204, {"x-total-count": "2"}, b"")
    found = DividedNameContract().new_target().found("orders", empty, ExpectedRecord(name="examples:0000"))
    assert found.kind == "unavailable"


class PartsContract(DividedNameContract):
    """The members hold the parts of a key, and orders are listed by the first one."""

    resource = replace(
        DividedNameContract.resource,
        name_member="reference",
        name_parts={"reference": "{namespace}/{key.0}", "part": "{key.1}"},
    )
    connector = by_path(resource)


def test_other_parts_of_the_order_are_not_the_one_that_is_looked_up() -> None:
    """The look-up lists all parts."""
    second = {"id": "2", "reference": "examples/0000", "part": "2"}
    name = "examples:0000|1"
    assert looked_up(PartsContract, {**second, "id": "1", "part": "1"}, second, name=name).target_id == "1"
    assert looked_up(PartsContract, second, name=name).kind == "absent"


@pytest.mark.parametrize(
    ("deleted", "shown"),
    [
        ({"field": "status", "equals": "void"}, {"id": "999", "status": "void"}),
        ({"not": {"field": "status", "equals": "new"}}, {"message": "try again later"}),
        ({"field": "active", "empty": True}, None),
    ],
)
def test_an_answer_about_nothing_or_another_record_shows_no_deleted_record(
    deleted: dict[str, Any], shown: Mapping[str, Any] | None
) -> None:
    """It has another id, or no member that says that the record was deleted."""
    resource = replace(ByPathContract.resource, deleted=Filter.model_validate(deleted))
    target = type("Case", (ByPathContract,), {"connector": by_path(resource)})().new_target()
    body = b"<html>" if shown is None else exact_json.dumps(shown)
    assert target.found("orders", Answer(200, {}, body), ExpectedRecord(target_id="4711")).kind == "unavailable"


def test_a_cancelled_order_is_removed_unless_another_one_has_its_name() -> None:
    """By its name: nobody knows whether it was created and cancelled meanwhile."""
    void = {"id": "1", "reference": "examples:0000", "status": "void"}
    assert looked_up(ByPathContract, void).kind == "removed"
    assert looked_up(ByPathContract, void, {**void, "id": "2", "status": "new"}).target_id == "2"


def test_an_update_without_the_id_is_refused_where_a_create_replaces_nothing() -> None:
    """The name of the record in it does not help: the API would create another one."""
    case = type("Case", (ReplacedContract,), {"repeated": OrdersContract.repeated})
    assert "does not contain the id" in failure(case, "requests_are_well_formed")
