"""A target that passes the contract, as the base of targets with seeded bugs: orders with unique references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal
from urllib.parse import quote, urlencode

from pydantic import ConfigDict

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
from crossdock.testing.target_contract import TargetContract
from crossdock.values.field_types import Exact, Text

TOKEN = "canary-of-the-target"


class Line(ResourceModel):
    sku: Text
    quantity: Exact


class Order(ResourceModel):
    model_config = ConfigDict(alias_generator=None)

    note: Text
    lines: tuple[Line, ...]


def orders(endpoint: EndpointProfile, *, write_once: bool = False) -> dict[str, TargetResource]:
    """The only resource, with this promise of its endpoint."""
    shape = RecordShape(id="/order_id", record="/order", listed="/orders")
    named = {"endpoint": endpoint, "shape": shape, "name_member": "reference", "name_limit": 40}
    return {"orders": TargetResource("orders", Order, write_once, **named)}  # type: ignore[arg-type]  # its own members


class OrderTarget(ApiTarget):
    """Orders: a second one of the same reference is refused, and one can be looked up by it."""

    resources = orders(EndpointProfile(idempotent=True, look_up=True, conditional=True))

    def __init__(self, token: str = "") -> None:
        self.token = token

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return Request.json("POST", "/orders", {"order": payload})

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        return Request.json("PUT", f"/orders/{quote(target_id, safe='')}", {"order": update.after})

    def delete(self, resource: str, target_id: str) -> Request:
        return Request("DELETE", f"/orders/{quote(target_id, safe='')}")

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        if target_id is not None:
            return Request("GET", f"/orders/{quote(target_id, safe='')}")
        return Request("GET", f"/orders?{urlencode({'reference': name})}")

    def ping(self, resource: str) -> Request:
        return Request("GET", "/orders?limit=1")

    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        if answer.status == 409 and b"taken" in answer.body:
            return Outcome(
                "rejected",
                "the reference is taken",
                409,
                reason="conflict",
                pointer=self.resources[resource].name_pointer,
            )
        return super().outcome(resource, answer, expected)

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().found(resource, answer, expected)
        is_void = expected.target_id is not None and (outcome.held or {}).get("status") == "void"
        return Outcome("absent", status=answer.status) if is_void else outcome


class DepotSettings(HttpSettings):
    kind: Literal["depot"]
    token: SecretRef


def connector(target: type[OrderTarget]) -> Connector[DepotSettings]:
    return Connector(
        name="depot",
        title="A depot",
        settings=DepotSettings,
        streams=lambda _: (),
        api=lambda own: own.api(auth=BearerAuth(own.token), throttled=lambda answer: answer.status == 403),
        target=lambda own: target(own.token.reveal()),
    )


class OrdersContract(TargetContract):
    connector = connector(OrderTarget)
    settings = {"base_url": "https://depot.example", "token": "env:DEPOT_TOKEN"}
    environment = {"DEPOT_TOKEN": TOKEN}
    throttling: Sequence[tuple[Answer, float | None]] = ((Answer(403, {"retry-after": "3"}, b"{}"), 3.0),)

    def members(self, resource: str, number: int) -> Mapping[str, Any]:
        return {"note": f"note {number}", "lines": [{"sku": "0017", "quantity": Decimal("1.5") + number}]}

    def stored(self, resource: str, target_id: str, payload: Mapping[str, Any]) -> Any:
        return {"order_id": int(target_id), **payload, "status": "new"}

    def answered(self, resource: str, operation: str, record: Any) -> Any:
        return {"order": record}

    def removed(self, resource: str, record: Any) -> Any:
        return {**record, "status": "void"}

    def listing(self, resource: str, records: Sequence[Any]) -> Any:
        return {"orders": list(records)}

    def repeated(self, resource: str) -> Answer:
        return Answer(409, {}, b'{"error":"taken"}')


def failure(case: type[TargetContract], test: str) -> str:
    """Why *case* does not pass this test of the contract; empty if it passes."""
    try:
        getattr(case(), f"test_{test}")()
    except AssertionError as error:
        return str(error) or "failed"
    return ""
