"""The sample shop's Admin API, as a Shopify shop has it, with only the queries that crossdock sends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from crossdock.testing.demo.shop import shopify_views as views
from crossdock.testing.demo.shop.json_server import ApiRequest, ApiResponse
from crossdock.testing.demo.shop.sample_shop import SampleShop
from crossdock.values import exact_json

_OPERATION = re.compile(r"\s*(?:query|mutation)\s+(\w+)")
_SINCE = re.compile(r"updated_at:>='([^']+)'")
_BULK_LIST = re.compile(r"(?:#.*\n)?\s*\{\s*(\w+)")
_SKU = re.compile(r'sku:"([^"]*)"')
Variables = Mapping[str, Any]


class ShopifyApi:
    """Answers GraphQL requests about *shop* with *token*."""

    def __init__(self, shop: SampleShop, token: str) -> None:
        self._shop, self._token = shop, token
        self._fields: Mapping[str, Callable[[Variables], Any]] = {
            "shop": lambda _: {"shop": views.SHOP, "currentAppInstallation": views.INSTALLATION},
            "counts": self._counts,
            "products": self._products,
            "customers": lambda asked: self._list("customers", asked, map(views.customer, self._shop.buyers)),
            "orders": lambda asked: self._list("orders", asked, map(views.order, self._shop.orders)),
            "refunds": self._refunds,
            "events": lambda asked: self._list("events", asked, ()),
            "locations": lambda asked: self._list("locations", asked, [views.LOCATION]),
            "productVariants": lambda asked: self._list(
                "productVariants", asked, map(views.variant_with_stock, self._shop.articles)
            ),
            "stockOfSku": self._stock_of_sku,
            "stockOfItem": self._stock_of_item,
            "inventorySetQuantities": self._set_stock,
            "shipments": self._order_with_shipments,
            "fulfillmentCreate": self._ship,
            "ping": lambda _: {"shop": views.SHOP},
            "bulkOperations": lambda asked: self._list("bulkOperations", asked, ()),
            "bulkOperationRunQuery": self._begin_bulk,
            "bulkOperation": lambda asked: {"bulkOperation": self._bulk[asked["id"]]},
        }
        self._bulk: dict[str, dict[str, Any]] = {}
        self._files: dict[str, bytes] = {}

    def respond(self, call: ApiRequest) -> ApiResponse:
        if call.method == "GET":
            content = self._files.get(call.path)
            return ApiResponse(404, {"errors": "Not Found"}) if content is None else ApiResponse(200, content)
        if call.headers.get("x-shopify-access-token") != self._token:
            return ApiResponse(401, {"errors": "[API] Invalid API key or access token"})
        body = call.body if isinstance(call.body, dict) else {}
        found = _OPERATION.match(str(body.get("query", "")))
        field = self._fields.get(found[1]) if found else None
        if field is None:
            return ApiResponse(200, {"errors": [{"message": "the sample shop does not know this query"}]})
        return ApiResponse(200, {"data": field(body.get("variables") or {})})

    # ---- reading

    def _list(self, name: str, asked: Variables, nodes: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """Return all of a list on one page, or what has changed since a time."""
        since = _SINCE.search(asked.get("query") or "")
        start = datetime.fromisoformat(since[1]) if since else None
        wanted = [node for node in nodes if start is None or datetime.fromisoformat(node["updatedAt"]) >= start]
        return {name: views.page(wanted)}

    def _counts(self, _: Variables) -> dict[str, Any]:
        numbers = {
            "ordersCount": len(self._shop.orders),
            "productVariantsCount": len(self._shop.articles),
            "customersCount": len(self._shop.buyers),
        }
        return {name: {"count": number} for name, number in numbers.items()}

    def _products(self, asked: Variables) -> dict[str, Any]:
        return self._list("products", asked, (views.product(each, self._shop.opened) for each in self._shop.articles))

    def _refunds(self, asked: Variables) -> dict[str, Any]:
        refunds = {f"gid://shopify/Refund/{each.id}": each for order in self._shop.orders for each in order.refunds}
        nodes = [
            {
                "id": gid,
                "createdAt": views.time(self._shop.opened),
                "totalRefundedSet": views.money(each.amount + each.tax),
                "refundLineItems": views.page(
                    [
                        {
                            "quantity": each.units,
                            "subtotalSet": views.money(each.amount),
                            "totalTaxSet": views.money(each.tax),
                            "lineItem": views.line(each.line, Decimal(0)),
                        }
                    ]
                ),
                "refundShippingLines": views.page([]),
                "orderAdjustments": views.page([]),
                "transactions": views.page([{"kind": "REFUND", "status": "SUCCESS"}]),
            }
            for gid, each in refunds.items()
            if gid in asked["ids"]
        ]
        return {"nodes": nodes}

    def _begin_bulk(self, asked: Variables) -> dict[str, Any]:
        """Begin a bulk operation, which ends at once."""
        found = _BULK_LIST.match(asked["query"])
        name, number = found[1] if found else "", len(self._bulk) + 1
        lines = list(views.flattened_bulk_records(self._fields[name]({})[name]["nodes"]))
        gid, path = f"gid://shopify/BulkOperation/{number}", f"/{number}.jsonl"
        content = b"\n".join(map(exact_json.dumps, lines))
        self._files[path] = content
        self._bulk[gid] = {
            "id": gid,
            "status": "COMPLETED",
            "createdAt": views.time(datetime.now(UTC)),
            "objectCount": str(len(lines)),
            "rootObjectCount": str(sum("__parentId" not in line for line in lines)),
            "fileSize": str(len(content)),
            "url": path if lines else None,
            "query": asked["query"],
        }
        return {"bulkOperationRunQuery": {"bulkOperation": self._bulk[gid], "userErrors": []}}

    # ---- stock

    def _stock_of_sku(self, asked: Variables) -> dict[str, Any]:
        found = _SKU.search(asked["found"])
        article = self._shop.find_article(found[1]) if found else None
        return {"inventoryItems": views.page([views.inventory_item(article)] if article else [])}

    def _stock_of_item(self, asked: Variables) -> dict[str, Any]:
        articles = {f"gid://shopify/InventoryItem/{each.id}": each for each in self._shop.articles}
        article = articles.get(asked["item"])
        return {"inventoryItem": views.inventory_item(article) if article else None}

    def _set_stock(self, asked: Variables) -> dict[str, Any]:
        errors = []
        for row in asked["input"]["quantities"]:
            article = next(a for a in self._shop.articles if row["inventoryItemId"].endswith(f"/{a.id}"))
            if row["changeFromQuantity"] != article.stock:
                message = "The changeFromQuantity argument no longer matches the persisted quantity."
                errors.append({"field": None, "message": message, "code": "CHANGE_FROM_QUANTITY_STALE"})
            else:
                article.stock = int(row["quantity"])
        group = None if errors else {"id": "gid://shopify/InventoryAdjustmentGroup/1"}
        return {"inventorySetQuantities": {"inventoryAdjustmentGroup": group, "userErrors": errors}}

    # ---- shipments

    def _order_with_shipments(self, asked: Variables) -> dict[str, Any]:
        order = self._shop.find_order(int(asked["id"].rpartition("/")[2]))
        return {"order": views.order_to_ship(order) if order else None}

    def _ship(self, asked: Variables) -> dict[str, Any]:
        wanted, tracking = asked["fulfillment"], asked["fulfillment"]["trackingInfo"]
        [group] = wanted["lineItemsByFulfillmentOrder"]
        order = self._shop.find_order(int(group["fulfillmentOrderId"].rpartition("/")[2]))
        assert order is not None
        units = {int(row["id"].rpartition("/")[2]): int(row["quantity"]) for row in group["fulfillmentOrderLineItems"]}
        parcel = self._shop.ship(order, units, tracking.get("company", ""), tracking["number"], tracking.get("url"))
        made = {"id": f"gid://shopify/Fulfillment/{parcel.id}"}
        return {"fulfillmentCreate": {"fulfillment": made, "userErrors": []}}
