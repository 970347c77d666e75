"""A connector whose target is the fake 3PL with a plain API, for the promises of `tests.chaos.promises`."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import quote, urlencode

from pydantic import ConfigDict

from crossdock import Connector, SecretRef
from crossdock.pacing.rate_limit_and_retry_settings import Retry
from crossdock.resources import ResourceModel
from crossdock.sources import HeaderAuth, HttpSettings, RateLimit
from crossdock.targets import ApiTarget, EndpointProfile, RecordShape, Request, TargetResource, Update
from crossdock.values.field_types import Exact, Text


class _Member(ResourceModel):
    model_config = ConfigDict(alias_generator=None)


class OrderLine(_Member):
    sku: Text
    quantity: Exact
    unit_price: Exact


class Customer(_Member):
    code: Text


class Order(_Member):
    owner: Text
    currency: Text
    customer: Customer
    lines: tuple[OrderLine, ...]


class OrderTargetSettings(HttpSettings):
    kind: Literal["chaos_orders"]
    key: SecretRef
    in_flight: int


class OrderTarget(ApiTarget):
    """Orders, protected by idempotency keys."""

    resources = {
        "orders": TargetResource(
            "orders",
            Order,
            write_once=True,
            endpoint=EndpointProfile(idempotent=True, look_up=True, header="idempotency-key"),
            shape=RecordShape(listed="/items"),
            name_member="reference",
        )
    }
    retry = Retry(attempts=20, base_s=0.02, cap_s=0.2)
    settle_s = 0.05

    def __init__(self, in_flight: int) -> None:
        self.in_flight = in_flight

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return Request.json("POST", "/v1/orders", payload)

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        return Request.json("PATCH", f"/v1/orders/{quote(target_id, safe='')}", update.changes)

    def delete(self, resource: str, target_id: str) -> Request:
        return Request("POST", f"/v1/orders/{quote(target_id, safe='')}/cancel")

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        if target_id is not None:
            return Request("GET", f"/v1/orders/{quote(target_id, safe='')}")
        return Request("GET", f"/v1/orders?{urlencode({'reference': name})}")

    def ping(self, resource: str) -> Request:
        return Request("GET", "/v1/orders?limit=1")


CONNECTOR = Connector(
    name="chaos_orders",
    title="Orders",
    settings=OrderTargetSettings,
    streams=lambda _: (),
    api=lambda own: own.api(auth=HeaderAuth("Api-Key", own.key), rate=RateLimit(per_minute=600_000, burst=100_000)),
    target=lambda own: OrderTarget(own.in_flight),
)
