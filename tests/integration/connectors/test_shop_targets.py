"""The targets of the bundled shops pass the contract tests for targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.targets import Answer
from crossdock.testing.target_contract import TargetContract
from crossdock.testing.target_under_test import TargetUnderTest
from crossdock.values import exact_json
from crossdock_connectors.shop.shopify.queries import VERSION

SKUS, ORDERS = ("LAMP", "CHAIR", "TEA"), ("17", "18", "19")


def sku_of(target_id: str) -> str:
    return SKUS[int(target_id.partition("-")[0]) - 4711]


class WooCommerceExample(TargetUnderTest):
    connector = load_connector("woocommerce")
    settings = {
        "base_url": "https://shop.example",
        "consumer_key": "env:CONSUMER_KEY",
        "consumer_secret": "env:CONSUMER_SECRET",
    }
    environment = {"CONSUMER_KEY": "ck_of_the_tests", "CONSUMER_SECRET": "cs_of_the_tests"}

    def key(self, resource: str, number: int) -> tuple[str, ...]:
        match resource:
            case "fulfillments":
                return ORDERS[number], f"1Z{number}"
            case "order_status":
                return (ORDERS[number],)
        return (SKUS[number],)

    def members(self, resource: str, number: int) -> Mapping[str, Any]:
        match resource:
            case "fulfillments":
                return {"carrier": f"Carrier {number}", "date": "2026-03-01"}
            case "order_status":
                return {"status": ("processing", "completed", "on-hold")[number]}
        return {"quantity": number}

    def operations(self, resource: str) -> Sequence[str]:
        """Orders and products are not created."""
        return ("create",) if resource == "fulfillments" else ("update",)


class TestWooCommerce(WooCommerceExample, TargetContract):
    """Parcels, statuses of orders, and stock."""

    lists_others = ("fulfillments", "stock")

    def target_id(self, resource: str, number: int) -> str:
        match resource:
            case "fulfillments":
                return f"{ORDERS[number]}-t{number}"
            case "order_status":
                return ORDERS[number]
        return str(4711 + number)

    def stored(self, resource: str, target_id: str, payload: Mapping[str, Any]) -> Any:
        match resource:
            case "fulfillments":
                return {"tracking_id": target_id.partition("-")[2], "tracking_number": payload["number"]}
            case "order_status":
                return {"id": int(target_id), **payload}
        stock = {"manage_stock": True, "stock_quantity": payload["quantity"]}
        return {"id": int(target_id), "sku": sku_of(target_id), "parent_id": 0, **stock}

    def listing(self, resource: str, records: Sequence[Any]) -> Any:
        if resource != "order_status":
            return list(records)
        return records[0] if records else self.missing(resource)

    def missing(self, resource: str) -> Answer:
        text = {"code": "woocommerce_rest_shop_order_invalid_id", "message": "Invalid ID."}
        return Answer(404, {"content-type": "application/json"}, exact_json.dumps(text))


class ShopifyExample(TargetUnderTest):
    connector = load_connector("shopify")
    settings = {"base_url": "https://lamps.myshopify.com", "token": "env:SHOP_TOKEN"}
    environment = {"SHOP_TOKEN": "shpat_of_the_tests"}

    def key(self, resource: str, number: int) -> tuple[str, ...]:
        return (SKUS[number], "7") if resource == "stock" else (ORDERS[number], f"1Z{number}")

    def members(self, resource: str, number: int) -> Mapping[str, Any]:
        if resource == "stock":
            return {"quantity": number}
        return {"carrier": f"Carrier {number}", "items": [{"sku": "LAMP", "quantity": 1}]}

    def operations(self, resource: str) -> Sequence[str]:
        """Products are not created."""
        return ("update",) if resource == "stock" else ("create",)


class TestShopify(ShopifyExample, TargetContract):
    """Parcels, and stock at locations."""

    harmless = (f"POST /admin/api/{VERSION}/graphql.json",)
    lists_others = ("fulfillments", "stock")

    def target_id(self, resource: str, number: int) -> str:
        return f"{4711 + number}-7" if resource == "stock" else str(4711 + number)

    def before_create(self, resource: str, number: int) -> dict[str, Any]:
        line = {"id": f"gid://shopify/FulfillmentOrderLineItem/{number}", "sku": "LAMP", "remainingQuantity": 10**19}
        order = {"id": f"gid://shopify/FulfillmentOrder/{number}", "status": "OPEN", "lineItems": {"nodes": [line]}}
        return {"fulfillmentOrders": [order]}

    def stored(self, resource: str, target_id: str, payload: Mapping[str, Any]) -> Any:
        if resource == "stock":
            held = {"name": "on_hand", "quantity": payload["quantity"]}
            level = {"isActive": True, "quantities": [held]}
            gid = f"gid://shopify/InventoryItem/{target_id.partition('-')[0]}"
            return {"id": gid, "sku": sku_of(target_id), "inventoryLevel": level}
        tracking = [{"number": payload["number"]}]
        return {"id": f"gid://shopify/Fulfillment/{target_id}", "status": "SUCCESS", "trackingInfo": tracking}

    def answered(self, resource: str, operation: str, record: Any) -> Any:
        match operation:
            case "create":
                made = {"fulfillment": {"id": record["id"]}, "userErrors": []}
                return Answer(200, {}, exact_json.dumps({"data": {"fulfillmentCreate": made}}))
            case "update":
                return {"data": {"inventorySetQuantities": {"inventoryAdjustmentGroup": None, "userErrors": []}}}
        return {"data": {"inventoryItem": record}}

    def listing(self, resource: str, records: Sequence[Any]) -> Any:
        whole = {"hasNextPage": False}
        if resource == "stock":
            return {"data": {"inventoryItems": {"nodes": list(records), "pageInfo": whole}}}
        order = {"id": f"gid://shopify/Order/{ORDERS[0]}", "fulfillments": list(records)}
        return {"data": {"order": {**order, "fulfillmentOrders": {"nodes": [], "pageInfo": whole}}}}

    def missing(self, resource: str) -> Answer:
        return Answer(200, {}, exact_json.dumps({"data": {"inventoryItem": None}}))
