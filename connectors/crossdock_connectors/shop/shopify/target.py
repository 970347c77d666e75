"""A Shopify shop as a target: shipments, and stock at locations.

Both are looked up before they are written: Shopify requires the units of its own fulfillment orders, and the quantity
that a new one replaces. After an ambiguous answer they are looked up again, so nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from crossdock import RecordError
from crossdock.targets import (
    Answer,
    ApiTarget,
    EndpointProfile,
    ExpectedRecord,
    Outcome,
    RateHeaders,
    Request,
    TargetResource,
    Update,
    body_of,
    key_text,
)
from crossdock.values import exact_json
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.record_mapping_in_code import unreadable_look_up_outcome
from crossdock_connectors.shop.shopify import fulfillment_writes_and_look_ups, stock_writes_and_look_ups, target_answers
from crossdock_connectors.shop.shopify.requests_and_complete_lists import number_in_gid_or_empty
from crossdock_connectors.shop.shopify.settings import ShopifySettings
from crossdock_connectors.shop.written_back_record_models import Fulfillment, StockLevel, split_key_in_two

_OF_FULFILLMENT = "the id of the shop's order and the tracking number"
_OF_STOCK = "the SKU and the location, by the shop's id or by its code in the setting locations"
_RESOURCES = {
    "fulfillments": TargetResource(
        "fulfillments",
        Fulfillment,
        write_once=True,
        deletes=False,
        endpoint=EndpointProfile(look_up=True, looks_up_first=frozenset({"create"})),
        name_limit=200,
    ),
    "stock": TargetResource(
        "stock",
        StockLevel,
        deletes=False,
        endpoint=EndpointProfile(look_up=True, looks_up_first=frozenset({"create", "update"})),
        name_limit=200,
    ),
}
_PING = "query ping { shop { id } }"


class ShopifyTarget(ApiTarget):
    resources = _RESOURCES
    in_flight = 4

    def __init__(self, settings: ShopifySettings) -> None:
        self._path, self._quantity = settings.endpoint, settings.stock_quantity
        self._location_ids = {code: location for location, code in settings.locations.items()}

    # ---- names: the record key, which says all that a look-up needs

    def check_key(self, resource: str, namespace: str, key: str) -> None:
        super().check_key(resource, namespace, key)
        split_key_in_two(key, _OF_FULFILLMENT if resource == "fulfillments" else _OF_STOCK)

    def name_of(self, resource: str, namespace: str, key: str) -> str:  # noqa: ARG002
        return key

    def payload(self, resource: str, namespace: str, key: str, members: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        if resource == "stock":
            return members
        order, number = split_key_in_two(key, _OF_FULFILLMENT)
        return {"order": order, "number": number, **members}

    # ---- requests

    def create_from(self, resource: str, payload: dict[str, Any], held: dict[str, Any]) -> Request:
        assert resource == "fulfillments"  # stock is never absent
        return self._graphql_request(
            fulfillment_writes_and_look_ups.CREATE,
            fulfillment=fulfillment_writes_and_look_ups.fulfillment_input(payload, held),
        )

    def update(self, resource: str, target_id: str, update: Update) -> Request:  # noqa: ARG002
        quantity = int(update.after["quantity"])
        return self._graphql_request(
            stock_writes_and_look_ups.SET,
            input=stock_writes_and_look_ups.set_quantity_input(target_id, quantity, update.before, self._quantity),
        )

    def with_key(self, resource: str, request: Request, idempotency_key: str) -> Request:
        if resource != "stock" or request.body is None:
            return request
        body = exact_json.loads(request.body)
        body["variables"]["key"] = idempotency_key
        return replace(request, body=exact_json.dumps(body))

    def also_changes(self, resource: str, payload: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Return the stock at the assigned location, from which the shop takes the units of a parcel."""
        if resource == "fulfillments":
            items = payload.get("items") or ()
            yield from (("stock", key_text((item["sku"], ""))) for item in items)
            if not items:
                yield "stock", ""

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        if resource == "stock" and target_id is not None:
            item, _, location = target_id.partition("-")
            gids = {
                "item": stock_writes_and_look_ups.item_gid(item),
                "location": stock_writes_and_look_ups.location_gid(location),
            }
            return self._graphql_request(stock_writes_and_look_ups.LOOK_UP_ITEM, **gids)
        if "|" not in (name or ""):  # the name of no record, by which the engine tests look-ups
            return self._graphql_request(_PING)
        first, second = split_key_in_two(name or "", _OF_STOCK)
        if resource == "stock":
            found, location = (
                stock_writes_and_look_ups.sku_search(first),
                stock_writes_and_look_ups.location_gid(self._location_id(second)),
            )
            return self._graphql_request(stock_writes_and_look_ups.LOOK_UP_SKU, found=found, location=location)
        return self._graphql_request(fulfillment_writes_and_look_ups.LOOK_UP, id=f"gid://shopify/Order/{first}")

    def _location_id(self, named: str) -> str:
        return self._location_ids.get(named, named)

    def ping(self, resource: str) -> Request:  # noqa: ARG002
        return self._graphql_request(_PING)

    def _graphql_request(self, query: str, **variables: Any) -> Request:
        return Request.json("POST", self._path, {"query": query, "variables": variables})

    # ---- answers

    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        if answer.status != 200:
            return target_answers.outcome_if_answer_lacks_data(answer) or super().outcome(resource, answer, expected)
        if failed := target_answers.outcome_if_answer_lacks_data(answer):
            return failed
        mutation = "fulfillmentCreate" if resource == "fulfillments" else "inventorySetQuantities"
        payload = value_at_path_or_missing(body_of(answer), f"data.{mutation}")
        if refused := target_answers.outcome_of_user_errors(payload):
            return (
                fulfillment_writes_and_look_ups.changed_outcome_if_units_taken(refused)
                if resource == "fulfillments"
                else refused
            )
        if resource == "stock":
            return Outcome("delivered", status=200, target_id=expected.target_id)
        gid = value_at_path_or_missing(payload, "fulfillment.id")
        if not isinstance(gid, str):
            return Outcome("in_doubt", "the answer names no fulfillment", 200)
        return Outcome("delivered", status=200, target_id=number_in_gid_or_empty(gid))

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        failed = target_answers.outcome_if_answer_lacks_data(answer)
        if answer.status != 200:
            failed = failed or super().outcome(resource, answer, expected)
            return failed if failed.kind in {"throttled", "unauthorized"} else replace(failed, kind="unavailable")
        if failed is not None:
            return replace(failed, kind="unavailable") if failed.kind == "in_doubt" else failed
        try:
            return self._outcome_of_look_up(resource, body_of(answer), expected)
        except RecordError as error:
            return unreadable_look_up_outcome(error)

    def _outcome_of_look_up(self, resource: str, body: Any, expected: ExpectedRecord) -> Outcome:
        if resource == "stock" and expected.target_id is not None:
            return stock_writes_and_look_ups.outcome_of_id_look_up(
                value_at_path_or_missing(body, "data.inventoryItem"), expected.target_id, self._quantity
            )
        if "|" not in (expected.name or ""):
            return Outcome("absent", status=200)
        first, second = split_key_in_two(expected.name or "", _OF_STOCK)
        if resource == "fulfillments":
            return fulfillment_writes_and_look_ups.outcome_of_order_look_up(
                value_at_path_or_missing(body, "data.order"), first, second
            )
        found = value_at_path_or_missing(body, "data.inventoryItems")
        return stock_writes_and_look_ups.outcome_of_sku_look_up(found, first, self._location_id(second), self._quantity)

    def throttled(self, answer: Answer) -> Outcome | None:
        failed = target_answers.outcome_if_answer_lacks_data(answer)
        return failed if failed is not None and failed.kind == "throttled" else None

    def limit(self, answer: Answer) -> RateHeaders | None:
        return target_answers.rate_headers_from_points(answer)

    def advice(self, resource: str, status: int | None) -> str:  # noqa: ARG002
        match status:
            case 401:
                return f"check the credentials of {self.place}"
            case 403:
                return f"check the scopes of the app of {self.place} with 'crossdock check'"
            case 404:
                return f"check {self.place}.base_url"
        return f"check {self.place}"
