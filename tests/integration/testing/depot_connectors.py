"""Connectors for a depot: a correct one, and those with seeded bugs, as constants that other processes can import."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from tests.unit.testing.target_connector import OrderTarget, connector, orders

from crossdock.targets import Answer, EndpointProfile, ExpectedRecord, Outcome, RecordShape, Request

_LOOK_UP = EndpointProfile(look_up=True)


class LookingUp(OrderTarget):
    """For a depot that accepts a reference twice."""

    resources = orders(_LOOK_UP)


class ByReference(LookingUp):
    """Looks up by an address with the reference, which answers with the order or with 404."""

    resources = {
        "orders": replace(
            LookingUp.resources["orders"], shape=RecordShape(id="/order_id", record="/order", absent="no such order")
        )
    }

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        return super().look_up(resource, name, target_id) if name is None else Request("GET", by_reference(name))


def by_reference(name: str) -> str:
    return f"/orders/by-reference/{quote(name, safe='')}"


class WrittenOnce(LookingUp):
    resources = orders(_LOOK_UP, write_once=True)


class Resent(LookingUp):
    """Sends again what may have been carried out."""

    resources = orders(EndpointProfile(look_up=True, rules=dict.fromkeys(("create", "update", "delete"), "resend")))


class RefusedByDoubt(LookingUp):
    """Takes an answer that is cut off, or lost, for a refusal by the look-up."""

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().found(resource, answer, expected)
        return Outcome("absent", status=200) if outcome.kind == "found" else outcome


class RandomPayload(LookingUp):
    """Makes another payload each time."""

    def payload(self, resource: str, namespace: str, key: str, members: dict[str, Any]) -> dict[str, Any]:
        return {**super().payload(resource, namespace, key, members), "request": uuid.uuid4().hex}


class RandomPayloadParked(RandomPayload):
    resources = orders(EndpointProfile())


class Parked(OrderTarget):
    """Neither looks up nor sends again."""

    resources = orders(EndpointProfile())


CORRECT = connector(LookingUp)
WRITTEN_ONCE = connector(WrittenOnce)
RESENT = connector(Resent)
REFUSED_BY_DOUBT = connector(RefusedByDoubt)
RANDOM_PAYLOAD = connector(RandomPayload)
PARKED = connector(Parked)
BY_REFERENCE = connector(ByReference)
RANDOM_PAYLOAD_PARKED = connector(RandomPayloadParked)
