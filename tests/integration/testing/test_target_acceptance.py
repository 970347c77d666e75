"""Acceptance passes a correct target, and finds those that lose, repeat or change records when they are disturbed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.integration.testing import depot_connectors
from tests.unit.testing.target_connector import TOKEN, OrdersContract

from crossdock.testing.target_acceptance import TargetAcceptance
from crossdock.testing.target_under_test import TargetUnderTest
from crossdock.values import exact_json

pytestmark = pytest.mark.usefixtures("commands_are_forked")


class Depot:
    """Accepts every order, also one with a reference that it has; orders by id."""

    def __init__(self) -> None:
        self.orders: dict[str, Any] = {}

    def answer(self, request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == f"Bearer {TOKEN}"
        order_id = request.url.path.removeprefix("/orders").strip("/")
        if order_id.startswith("by-reference/"):
            name = order_id.removeprefix("by-reference/")
            named = [each for each, order in self.orders.items() if order["reference"] == name]
            return _json(200, {"order": self.shown(named[0])}) if named else _json(404, {"message": "No such order"})
        if request.method == "GET" and not order_id:
            name = request.url.params.get("reference")
            found = [self.shown(each) for each, order in self.orders.items() if order["reference"] == name]
            return _json(200, {"orders": found})
        if request.method == "DELETE":
            return _json(200, {"order": {"order_id": int(order_id), **self.orders.pop(order_id)}})
        if request.method == "GET" and order_id not in self.orders:
            return _json(404, {"message": "No such order"})
        if request.method == "POST":
            order_id = str(len(self.orders) + 1)
        if request.method in {"POST", "PUT"}:
            self.orders[order_id] = exact_json.loads(request.content)["order"]
        return _json(200, {"order": self.shown(order_id)})

    def shown(self, order_id: str) -> Any:
        return {"order_id": int(order_id), **self.orders[order_id]}


def _json(status: int, body: Any) -> httpx.Response:
    return httpx.Response(status, content=exact_json.dumps(body))


class _Orders(TargetAcceptance):
    records = 6
    connector = depot_connectors.CORRECT
    settings = OrdersContract.settings
    environment = OrdersContract.environment
    members = OrdersContract.members

    def partner(self) -> tuple[httpx.BaseTransport, Callable[[], list[Any]]]:
        depot = Depot()
        return httpx.MockTransport(depot.answer), lambda: list(depot.orders.values())


class TestLookedUp(_Orders):
    """Acceptance itself, inherited as authors do."""


@pytest.mark.nightly
class TestByReference(_Orders):
    """A look-up answers with one record or 404."""

    connector = depot_connectors.BY_REFERENCE


@pytest.mark.nightly
class TestWrittenOnce(_Orders):
    """A record that has changed becomes a dead letter."""

    connector = depot_connectors.WRITTEN_ONCE


@pytest.mark.nightly
class TestLeftToAPerson(_Orders):
    """Creates can neither be repeated nor looked up by name, and the author says so."""

    connector = depot_connectors.PARKED
    left_to_a_person = ("orders",)


class _Resent(_Orders):
    connector = depot_connectors.RESENT


class _RefusedByDoubt(_Orders):
    connector = depot_connectors.REFUSED_BY_DOUBT


class _RandomPayload(_Orders):
    connector = depot_connectors.RANDOM_PAYLOAD


class _Parked(_Orders):
    connector = depot_connectors.PARKED


class _LookedUpLeft(_Orders):
    left_to_a_person = ("orders",)


class _ParkedRandomPayload(TestLeftToAPerson):
    __test__ = False
    connector = depot_connectors.RANDOM_PAYLOAD_PARKED


class _ParkedAndLost(TestLeftToAPerson):
    """The depot keeps no order of the second delivery on."""

    __test__ = False
    records = 12

    def __init__(self) -> None:
        self._partners = 0

    def partner(self) -> tuple[httpx.BaseTransport, Callable[[], list[Any]]]:
        self._partners += 1
        transport, held = super().partner()
        return transport, held if self._partners == 1 else list


class _Forgetful(_Orders):
    def partner(self) -> tuple[httpx.BaseTransport, Callable[[], list[Any]]]:
        return httpx.MockTransport(Depot().answer), list


@pytest.mark.nightly(but=["_Parked", "_LookedUpLeft"])
@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (_Resent, "delivered more than once"),
        (_RefusedByDoubt, "delivered more than once"),
        (_RandomPayload, "after disturbed syncs the partner holds something else"),
        (_Forgetful, "the partner holds 0 of 6 records"),
        (_Parked, "orders: a create whose answer is lost is left to a person.* state left_to_a_person in the test"),
        (_LookedUpLeft, "orders: left_to_a_person names it"),
        (_ParkedRandomPayload, "the partner holds what a calm one does not make"),
        (_ParkedAndLost, "the partner lacks 12 records, of which"),
    ],
)
def test_a_seeded_bug_is_found(case: type[TargetAcceptance], reason: str) -> None:
    """The failure says what is wrong."""
    with pytest.raises(AssertionError, match=reason):
        case().test_each_record_is_there_once_in_spite_of_faults_and_kills()


def test_an_example_is_needed() -> None:
    """A target without example members says so."""
    with pytest.raises(NotImplementedError, match="TargetUnderTest has no method members"):
        TargetUnderTest().members("orders", 0)
