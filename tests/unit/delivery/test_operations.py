"""Intents: idempotency keys, and creates that are made of what a look-up has found."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from msgspec import structs
from tests.unit.state.samples import AT, binding, intent

from crossdock import Record, RecordError
from crossdock.resources import ResourceModel
from crossdock.state import Scope
from crossdock.targets import ApiTarget, EndpointProfile, Request, TargetResource, Update
from crossdock.values import exact_json
from crossdock.writing.delivery.operations_and_intents import (
    Operation,
    create_intent_from_look_up,
    make_idempotency_key,
    make_intent_of_operation,
    member_changed_by_others_with_message,
    payload_after_intent,
    successor_intent_if_record_differs,
)


def test_no_two_operations_share_a_key() -> None:
    """Tenant, target, resource, namespace, key, operation, counter and salt each make another key."""
    keys = {
        make_idempotency_key(tenant, Scope(target, resource, namespace), key, kind, counter, salt)
        for tenant, target, resource, namespace, key, kind, counter, salt in product(
            "AB", "AB", "AB", "AB", "AB", "AB", (1, 2), ("", "A")
        )
    }
    assert len(keys) == 2**8
    assert all(len(key) == 40 and key.isalnum() and key.isascii() for key in keys)


def test_a_key_stays_what_it_was() -> None:
    """A newer version mints the same key for the same operation."""
    text = b'["acme","platform","invoice","wms","17","create",1]'
    minted = make_idempotency_key("acme", Scope("platform", "invoice", "wms"), "17", "create", 1)
    assert minted == hashlib.sha256(text).hexdigest()[:40] == "25e01b7a403da3a617b11e2e005ec72921b5256c"


class Parcels(ApiTarget):
    """A target that takes its key in the body, and creates parcels of what a look-up has found."""

    resources = {"parcels": TargetResource("parcels", ResourceModel, write_once=True)}
    account = "acme"

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        raise NotImplementedError

    delete = look_up = ping = create  # type: ignore[assignment]  # not called here

    def create_from(self, resource: str, payload: dict[str, Any], held: dict[str, Any]) -> Request:
        if not held["left"]:
            raise RecordError("conflict", "nothing is left", pointer="/items")
        return Request.json("POST", "/parcels", {**payload, "of": held["left"]})

    def with_key(self, resource: str, request: Request, idempotency_key: str) -> Request:
        return replace(
            request, body=exact_json.dumps({**exact_json.loads(request.body or b""), "key": idempotency_key})
        )


def test_a_create_is_made_of_what_was_found() -> None:
    """It has the found facts and a key of its own, which no earlier attempt had; its payload stays the record's."""
    first = intent(1, scope=Scope("shop", "parcels", "depot"), after={"number": "N1"}, attempts=2, first_sent_at=AT)
    made = create_intent_from_look_up(first, Parcels(), {"left": ["L1"]})
    assert exact_json.loads(made.body or b"") == {"number": "N1", "of": ["L1"], "key": made.idempotency_key}
    assert made.idempotency_key == make_idempotency_key("acme", first.scope, "K1", "create", 2, first.idempotency_key)
    assert (made.operation, made.counter, made.status, made.attempts, made.first_sent_at) == (
        "create",
        2,
        "pending",
        0,
        None,
    )
    assert payload_after_intent(made) == payload_after_intent(first) == {"number": "N1"}
    again = create_intent_from_look_up(made, Parcels(), {"left": ["L2"]})
    assert (again.counter, payload_after_intent(again)) == (3, {"number": "N1"})


def test_a_create_that_nothing_can_be_made_of_is_refused() -> None:
    """The target says why."""
    with pytest.raises(RecordError, match="nothing is left"):
        create_intent_from_look_up(intent(1, after={}), Parcels(), {"left": []})


class Versioned(Parcels):
    """A target whose updates need the version that only a look-up shows, and that takes its key in the body."""

    resources = {
        "parcels": TargetResource(
            "parcels",
            ResourceModel,
            endpoint=EndpointProfile(look_up=True, looks_up_first=frozenset({"create", "update"})),
        )
    }

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        body = {"version": update.before["version"], **update.changes}
        return Request.json("PUT", f"/parcels/{target_id}", body)


class Compared(Versioned):
    """A target that looks a record up before its first update."""

    resources = {"parcels": TargetResource("parcels", ResourceModel, endpoint=EndpointProfile(compares=True))}


@pytest.mark.parametrize(
    ("target", "known", "taken_over"),
    [
        pytest.param(Versioned(), {"number": "N1"}, None, id="looks_up_first"),
        pytest.param(Compared(), {}, None, id="the first update of a target that compares"),
        pytest.param(Compared(), None, "7", id="a record that is taken over"),
    ],
)
def test_an_update_of_a_record_that_is_looked_up_first_is_made_after_that(
    target: Parcels, known: dict[str, Any] | None, taken_over: str | None
) -> None:
    """The method `update` is called once, with all members that were found; before, there is no request."""
    scope, held = Scope("shop", "parcels", "depot"), {"number": "N1", "version": 3}
    operation = Operation(
        "update", intent(1).identity, scope, Record("K1", ({},), "f.csv", (2,)), {"number": "N2"}, {"number": "N2"},
        None if known is None else binding(1, target_id="7", payload=known), taken_over=taken_over,
    )  # fmt: skip
    planned = make_intent_of_operation(operation, target, 1)
    assert (planned.path, planned.body, payload_after_intent(planned)) == ("", None, {"number": "N2"})
    made = successor_intent_if_record_differs(planned, target, held, None)
    assert made is not None
    assert made.path == "/parcels/7"
    assert exact_json.loads(made.body or b"") == {"version": 3, "number": "N2", "key": made.idempotency_key}


class Partly(Parcels):
    """A target whose look-ups show the country as an object."""

    resources = {"parcels": TargetResource("parcels", ResourceModel, shown=frozenset({"number"}))}

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        return Request.json("PATCH", f"/parcels/{target_id}", update.changes)


@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [
        pytest.param({"number": "N1", "country": "GB"}, {"number": "N2", "country": "GB"}, None, id="it is there"),
        pytest.param(
            {"number": "N2", "country": "GB"}, {"number": "N2", "country": "DE"}, {"country": "DE"}, id="hidden"
        ),
        pytest.param(None, {"number": "N2", "country": "GB"}, {"country": "GB"}, id="taken over"),
    ],
)
def test_what_a_look_up_does_not_show_is_sent_again(
    before: dict[str, Any] | None, after: dict[str, Any], sent: dict[str, Any] | None
) -> None:
    """It cannot be compared; and it is no change that others have made."""
    held = {"number": "N2", "country": {"code": "GB"}}
    scope = Scope("shop", "parcels", "depot")
    made = structs.replace(intent(1), scope=scope, operation="update", target_id="7", before=before, after=after)
    found = successor_intent_if_record_differs(made, Partly(), held, None)
    assert (found and exact_json.loads(found.body or b"")) == (
        sent and {**sent, "key": found and found.idempotency_key}
    )
    assert member_changed_by_others_with_message(made, held, Partly()) is None


def test_a_create_of_a_record_that_is_looked_up_first_gets_its_key_after_that() -> None:
    """There is no body yet to put it into."""
    operation = Operation(
        "create", intent(1).identity, Scope("shop", "parcels", "depot"), Record("K1", ({},), "f.csv", (2,)),
        {"number": "N1"}, {"number": "N1"}, None,
    )  # fmt: skip
    assert make_intent_of_operation(operation, Versioned(), 1).body is None
