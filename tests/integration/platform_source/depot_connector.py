"""A connection to the fake 3PL with a plain API that takes orders."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict
from tests.partners.plain_3pl import API_KEY

from crossdock.config.http_api_connector_settings import HttpSettings
from crossdock.connector import Connector
from crossdock.reading.transport.http_auth import HeaderAuth
from crossdock.resources import ResourceModel
from crossdock.targets import ApiTarget, EndpointProfile, RecordShape, Request, TargetResource, Update
from crossdock.values.field_types import Code, Currency, Exact, Text


class DepotSettings(HttpSettings):
    kind: Literal["depot"]


class _Model(ResourceModel):
    model_config = ConfigDict(alias_generator=None)


class DepotCustomer(_Model):
    name: Text


class DepotLine(_Model):
    sku: Code
    quantity: Exact
    unit_price: Exact


class DepotOrder(_Model):
    owner: Text
    currency: Currency
    customer: DepotCustomer | None = None
    lines: tuple[DepotLine, ...]


class DepotTarget(ApiTarget):
    resources = {
        "orders": TargetResource(
            "orders",
            DepotOrder,
            endpoint=EndpointProfile(True, True, header="Idempotency-Key"),
            shape=RecordShape(listed="/items"),
            name_member="reference",
        )
    }

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return Request.json("POST", "/v1/orders", payload)

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        return Request.json("PATCH", f"/v1/orders/{target_id}", update.changes)

    def delete(self, resource: str, target_id: str) -> Request:
        return Request.json("POST", f"/v1/orders/{target_id}/cancel", {})

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        return Request("GET", f"/v1/orders/{target_id}" if target_id else f"/v1/orders?owner=acme&reference={name}")

    def ping(self, resource: str) -> Request:
        return Request("GET", "/v1/orders?limit=1")


CONNECTOR = Connector(
    "depot",
    "Fake 3PL",
    DepotSettings,
    lambda _settings: (),
    api=lambda settings: settings.api(auth=HeaderAuth("api-key", API_KEY)),
    target=lambda _settings: DepotTarget(),
)
