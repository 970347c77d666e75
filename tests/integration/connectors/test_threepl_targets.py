"""The targets of the bundled 3PLs, and one that a config declares, pass the contract tests for targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest
from tests.partners import threepl_vendors
from tests.partners.plain_3pl import API_KEY

from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.runs.refusals_to_send_records_twice import current_address_of_target
from crossdock.state import Scope
from crossdock.targets import Answer, ExpectedRecord
from crossdock.testing.target_contract import TargetContract
from crossdock.testing.target_under_test import TargetUnderTest
from crossdock.values import exact_json


def refused(status: int, body: Any) -> Answer:
    return Answer(status, {"content-type": "application/json"}, exact_json.dumps(body))


class ShipBobExample(TargetUnderTest):
    connector = load_connector("shipbob")
    settings = {**threepl_vendors.shipbob("https://api.shipbob.example"), "token": "env:SHIPBOB_TOKEN"}
    environment = {"SHIPBOB_TOKEN": "token-of-ours"}

    def members(self, resource: str, number: int) -> Mapping[str, Any]:
        address = {"address1": "1 Main St", "city": "Chicago", "country": "US", "zip_code": "01"}
        product = {"reference_id": "LAMP", "quantity": number + 1, "unit_price": Decimal("9.50")}
        return {
            "recipient": {"name": "Ada", "address": address},
            "products": [product],
            "shipping_method": "Standard",
        }

    def removed(self, resource: str, record: Any) -> Any:
        return {**record, "status": "Cancelled"}

    def listing(self, resource: str, records: Sequence[Any]) -> Any:
        return list(records)

    def repeated(self, resource: str) -> Answer:
        return refused(422, {"reference_id": ["An order with reference id examples:0000 already exists."]})


class TestShipBob(ShipBobExample, TargetContract):
    """Orders, by the reference that a channel accepts once."""


@pytest.mark.parametrize(
    ("status", "kind"), [("Success", "delivered"), ("PartialSuccess", "rejected"), ("Failure", "rejected")]
)
def test_shipbob_cancels_an_order_as_a_whole_or_not(monkeypatch: pytest.MonkeyPatch, status: str, kind: str) -> None:
    """An answer of success that leaves a shipment is the refusal of the cancellation, with ShipBob's reason."""
    monkeypatch.setenv("SHIPBOB_TOKEN", "token-of-ours")
    results = [{"shipment_id": 1, "is_success": kind == "delivered", "reason": "The shipment is Completed."}]
    answer = refused(200, {"order_id": 7, "status": status, "canceled_shipment_results": results})
    outcome = ShipBobExample().new_target().outcome("orders", answer, ExpectedRecord("/order/7:cancel", "7", "a:1"))
    assert outcome.kind == kind
    assert outcome.message == ("The shipment is Completed." if kind == "rejected" else "")


def test_another_channel_of_shipbob_does_not_have_the_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """A channel belongs to one merchant, and the address is that of all. The version of the API does not matter."""
    monkeypatch.setenv("SHIPBOB_TOKEN", "token-of-ours")

    class Other(ShipBobExample):
        settings = {**ShipBobExample.settings, "channel": 77, "base_url": "https://192.168.0.9"}

    scope = Scope("shipbob", "orders", "erp")
    first, other = (
        current_address_of_target({"shipbob": each.new_target()}, scope) for each in (ShipBobExample(), Other())
    )
    assert (first, other) == ("https://api.shipbob.example, channel 1", "https://192.168.0.9, channel 77")


class AmazonExample(TargetUnderTest):
    connector = load_connector("amazon_mcf")
    settings = {
        **threepl_vendors.amazon("https://sellingpartnerapi.example"),
        "refresh_token": "env:AMAZON_REFRESH_TOKEN",
        "client_id": "env:AMAZON_CLIENT_ID",
        "client_secret": "env:AMAZON_CLIENT_SECRET",
    }
    environment = {
        "AMAZON_REFRESH_TOKEN": "Atzr|SELLER-A",
        "AMAZON_CLIENT_ID": "amzn1.client-of-the-tests",
        "AMAZON_CLIENT_SECRET": "secret-of-the-tests",
    }

    def members(self, resource: str, number: int) -> Mapping[str, Any]:
        place = {
            "name": "Ada",
            "addressLine1": "1 Main St",
            "city": "Chicago",
            "postalCode": "60601",
            "countryCode": "US",
        }
        price = {"currencyCode": "USD", "value": Decimal("9.50")}
        line = {"sellerSku": "LAMP", "sellerFulfillmentOrderItemId": "1", "quantity": number + 1}
        return {
            "displayableOrderId": f"SO-{number}",
            "displayableOrderDate": "2026-03-01T08:00:00Z",
            "displayableOrderComment": "Thank you",
            "shippingSpeedCategory": "Standard",
            "destinationAddress": place,
            "items": [{**line, "perUnitPrice": price}],
        }

    def target_id(self, resource: str, number: int) -> str:
        return f"examples:{number:04}"

    def stored(self, resource: str, target_id: str, payload: Mapping[str, Any]) -> Any:
        return dict(payload)

    def answered(self, resource: str, operation: str, record: Any) -> Any:
        return {"payload": {"fulfillmentOrder": record}} if operation == "look_up" else Answer(200, {}, b"")

    def removed(self, resource: str, record: Any) -> Any:
        return {**record, "fulfillmentOrderStatus": "CANCELLED"}

    def listing(self, resource: str, records: Sequence[Any]) -> Any:
        """Looked up by its external id, an order is shown as by its id."""
        return self.answered(resource, "look_up", records[0]) if records else self.missing(resource)

    def repeated(self, resource: str) -> Answer:
        text = "A create request already exists for merchantFulfillmentOrderId: examples:0000"
        return refused(400, {"errors": [{"code": "InvalidInput", "message": text}]})


class TestAmazon(AmazonExample, TargetContract):
    """Orders, whose external id is their id."""


class DeclaredExample(TargetUnderTest):
    """The orders of a 3PL with a plain API, which refuses a second one with the same reference."""

    connector = load_connector("http_json")
    settings = {
        "base_url": "https://depot.example",
        "auth": {"kind": "header", "name": "Api-Key", "value": "env:DEPOT_KEY"},
        "target": {
            "resources": {
                "orders": {
                    "members": {
                        "owner": {"type": "text", "required": True},
                        "lines": {"type": "list", "members": {"sku": "text", "quantity": "number"}},
                    },
                    "name": "reference",
                    "create": "POST /v1/orders",
                    "update": "PATCH /v1/orders/{id}",
                    "delete": "POST /v1/orders/{id}/cancel",
                    "deleted": {"field": "status", "equals": "Void"},
                    "read": "GET /v1/orders/{id}",
                    "look_up": {
                        "path": "/v1/orders",
                        "params": {"owner": "acme", "reference": "{name}"},
                        "records": "items",
                    },
                    "repeated": {"status": 422, "text": "duplicate_reference"},
                }
            }
        },
    }
    environment = {"DEPOT_KEY": API_KEY}

    def members(self, resource: str, number: int) -> Mapping[str, Any]:
        return {"owner": "acme", "lines": [{"sku": "0017", "quantity": number + 1}]}

    def stored(self, resource: str, target_id: str, payload: Mapping[str, Any]) -> Any:
        return {"id": target_id, **payload, "status": "Awaiting"}

    def removed(self, resource: str, record: Any) -> Any:
        return {**record, "status": "Void"}

    def listing(self, resource: str, records: Sequence[Any]) -> Any:
        return {"items": list(records), "next_cursor": None}

    def repeated(self, resource: str) -> Answer:
        return refused(422, {"code": "duplicate_reference"})


class TestDeclared(DeclaredExample, TargetContract):
    """Orders, which are changed and cancelled."""
