"""A target of parcels, which only their order shows: a look-up requests the order, and has all of its parcels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from tests.unit.testing.target_connector import TOKEN, DepotSettings

from crossdock import Connector
from crossdock.resources import ResourceModel
from crossdock.sources import BearerAuth
from crossdock.targets import (
    Answer,
    ApiTarget,
    EndpointProfile,
    ExpectedRecord,
    Outcome,
    RecordShape,
    Request,
    TargetResource,
    body_of,
    key_parts_of,
    key_text,
)
from crossdock.testing.target_contract import TargetContract
from crossdock.values.field_types import Text


class Parcel(ResourceModel):
    carrier: Text


class ParcelTarget(ApiTarget):
    """Parcels, whose key is the id of their order and a number. It is also their name, and their id."""

    resources: Mapping[str, TargetResource] = {
        "parcels": TargetResource(
            "parcels",
            Parcel,
            write_once=True,
            deletes=False,
            endpoint=EndpointProfile(look_up=True),
            shape=RecordShape(id=None),
        )
    }

    def name_of(self, resource: str, namespace: str, key: str) -> str:
        return key

    def name_in(self, resource: str, payload: Mapping[str, Any]) -> str:
        return key_text((payload["order"], payload["number"]))

    def payload(self, resource: str, namespace: str, key: str, members: dict[str, Any]) -> dict[str, Any]:
        order, number = key_parts_of(key)
        return {"order": order, "number": number, **members}

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return Request.json("POST", f"/orders/{quote(payload.pop('order'), safe='')}/parcels", payload)

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        return Request("GET", f"/orders/{quote(key_parts_of(name or '')[0], safe='')}")

    def ping(self, resource: str) -> Request:
        return Request("GET", "/orders")

    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        if answer.status == 204:
            return Outcome("delivered", status=204, target_id=expected.name)
        return super().outcome(resource, answer, expected)

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        order, number = key_parts_of(expected.name or "")
        body = body_of(answer)
        if answer.status != 200 or not isinstance(body, dict) or body.get("id") != order:
            return super().found(resource, answer, expected)
        for parcel in body["parcels"]:
            if self.is_it(parcel, number):
                held = {"order": order, **parcel}
                return Outcome("found", status=200, target_id=key_text((order, parcel["number"])), held=held)
        return Outcome("absent", status=200)

    def is_it(self, parcel: Any, number: str) -> bool:
        return bool(parcel["number"] == number)


def parcels(target: type[ParcelTarget]) -> Connector[DepotSettings]:
    return Connector(
        name="depot",
        title="A depot",
        settings=DepotSettings,
        streams=lambda _: (),
        api=lambda own: own.api(auth=BearerAuth(own.token)),
        target=lambda _: target(),
    )


class ParcelsContract(TargetContract):
    """Parcels of several orders."""

    connector = parcels(ParcelTarget)
    settings = {"base_url": "https://depot.example", "token": "env:DEPOT_TOKEN"}
    environment = {"DEPOT_TOKEN": TOKEN}

    def key(self, resource: str, number: int) -> tuple[str, ...]:
        return f"A/{number}", f"1Z|{number}"

    def members(self, resource: str, number: int) -> Mapping[str, Any]:
        return {"carrier": f"carrier {number}"}

    def stored(self, resource: str, target_id: str, payload: Mapping[str, Any]) -> Any:
        return dict(payload)

    def answered(self, resource: str, operation: str, record: Any) -> Any:
        return Answer(204, {}, b"")

    def listing(self, resource: str, records: Sequence[Any]) -> Any:
        """The order of the first record, with all parcels."""
        order = records[0]["order"] if records else self.key(resource, 0)[0]
        return {"id": order, "parcels": [{k: v for k, v in each.items() if k != "order"} for each in records]}


class ParcelsOfOneOrderContract(ParcelsContract):
    """All parcels are of one order, which is looked up for each."""

    def key(self, resource: str, number: int) -> tuple[str, ...]:
        return "A/0", f"1Z|{number}"
