"""The sample shop's REST API, as a WooCommerce shop has it: ``wc/v3`` and the extension Shipment Tracking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from crossdock.testing.demo.shop.json_server import ApiRequest, ApiResponse
from crossdock.testing.demo.shop.sample_shop import CURRENCY, Article, Buyer, Parcel, SampleShop, ShopOrder

_API, _TRACKING = "/wp-json/wc/v3", "/wp-json/wc-shipment-tracking/v3"


class WooCommerceApi:
    """Answers requests about *shop* with the consumer *key*. Signatures are not checked."""

    def __init__(self, shop: SampleShop, key: str) -> None:
        self._shop, self._key = shop, key

    def respond(self, call: ApiRequest) -> ApiResponse:
        if call.params.get("oauth_consumer_key") != self._key:
            return _refused(401, "Consumer key is invalid.")
        if call.path.startswith(_TRACKING):
            return self._list_or_add_parcels(call, call.path.removeprefix(f"{_TRACKING}/").split("/"))
        path = call.path.removeprefix(f"{_API}/").split("/")
        match path:
            case ["products", number]:
                return self._show_or_restock_product(call, int(number))
            case ["orders", number]:
                return self._show_or_complete_order(call, self._shop.find_order(int(number)))
        records = self._records_of_path(path, call)
        return _refused(404, "No route was found.") if records is None else _page(records, call)

    def _records_of_path(self, path: list[str], call: ApiRequest) -> Iterable[Any] | None:
        match path:
            case ["orders"]:
                return () if call.params.get("status") == "trash" else map(_order, self._shop.orders)
            case ["orders", number, "refunds"]:
                order = self._shop.find_order(int(number))
                return _refunds(order) if order else ()
            case ["products"]:
                wanted = call.params.get("sku")
                found = [article for article in self._shop.articles if wanted in {None, article.sku}]
                return [_product(article, self._shop.opened) for article in found]
            case ["customers"]:
                return map(_customer, self._shop.buyers)
        return None

    def _show_or_restock_product(self, call: ApiRequest, number: int) -> ApiResponse:
        article = next((each for each in self._shop.articles if each.id == number), None)
        if article is None:
            return _refused(404, "Invalid ID.")
        if call.method == "PUT":
            article.stock += int(call.body.get("inventory_delta", 0))
        return ApiResponse(200, _product(article, self._shop.opened))

    def _show_or_complete_order(self, call: ApiRequest, order: ShopOrder | None) -> ApiResponse:
        if order is None:
            return _refused(404, "Invalid ID.")
        if call.method == "PUT" and call.body.get("status") == "completed":
            self._shop.mark_order_completed(order)
        return ApiResponse(200, _order(order))

    def _list_or_add_parcels(self, call: ApiRequest, path: list[str]) -> ApiResponse:
        order = self._shop.find_order(int(path[1])) if path[1:] else None
        if order is None:
            return _refused(404, "Invalid ID.")
        if call.method == "POST":
            sent = call.body
            carrier = str(sent.get("custom_tracking_provider") or sent.get("tracking_provider") or "")
            parcel = self._shop.ship(order, {}, carrier, sent["tracking_number"], sent.get("custom_tracking_link"))
            return ApiResponse(201, _tracking(parcel))
        return ApiResponse(200, [_tracking(parcel) for parcel in order.parcels])


def _refused(status: int, message: str) -> ApiResponse:
    return ApiResponse(status, {"code": "woocommerce_rest_error", "message": message, "data": {"status": status}})


def _page(records: Any, call: ApiRequest) -> ApiResponse:
    """Return the requested part of a list, without records that have not changed since a time."""
    since = call.params.get("modified_after", "")
    found: Sequence[Any] = [each for each in records if each.get("date_modified_gmt", "9") > since]
    start, size = int(call.params.get("offset", 0)), int(call.params.get("per_page", 10))
    return ApiResponse(200, found[start : start + size], {"x-wp-total": str(len(found))})


def _local_and_gmt_times(name: str, moment: datetime | None) -> dict[str, str | None]:
    text = moment.replace(tzinfo=None).isoformat(timespec="seconds") if moment else None
    return {name: text, f"{name}_gmt": text}


def _product(article: Article, opened: datetime) -> dict[str, Any]:
    return {
        "id": article.id,
        "type": "simple",
        "status": "publish",
        "name": article.title,
        "sku": article.sku,
        "price": f"{article.price:f}",
        "description": "",
        "attributes": [],
        "manage_stock": True,
        "stock_quantity": article.stock,
        **_local_and_gmt_times("date_modified", opened),
    }


def _address(buyer: Buyer) -> dict[str, Any]:
    first, _, last = buyer.name.partition(" ")
    place = {"address_1": buyer.street, "city": buyer.city, "country": buyer.country}
    return {"first_name": first, "last_name": last, "email": buyer.email, **place}


def _customer(buyer: Buyer) -> dict[str, Any]:
    return {"id": buyer.id, "email": buyer.email, "username": buyer.name, "billing": _address(buyer)}


def _order(order: ShopOrder) -> dict[str, Any]:
    lines = [
        {
            "id": line.id,
            "product_id": line.article.id,
            "variation_id": 0,
            "sku": line.article.sku,
            "quantity": line.quantity,
            "subtotal": f"{line.amount:f}",
            "total": f"{line.amount - (order.discount if number == 0 else Decimal(0)):f}",
        }
        for number, line in enumerate(order.lines)
    ]
    return {
        "id": order.id,
        "status": "completed" if order.completed else "processing",
        "currency": CURRENCY,
        "customer_id": order.buyer.id or 0,
        "billing": _address(order.buyer),
        "shipping": _address(order.buyer),
        "line_items": lines,
        "shipping_lines": [{"id": order.id, "total": f"{order.shipping:f}"}] if order.shipping else [],
        "fee_lines": [],
        "total_tax": f"{order.tax:f}",
        "total": f"{order.total:f}",
        "refunds": [{"id": each.id} for each in order.refunds],
        **_local_and_gmt_times("date_created", order.placed),
        **_local_and_gmt_times("date_modified", order.changed),
        **_local_and_gmt_times("date_paid", order.placed),
        **_local_and_gmt_times("date_completed", order.completed),
    }


def _refunds(order: ShopOrder) -> list[dict[str, Any]]:
    return [
        {
            "id": each.id,
            "amount": f"{each.amount + each.tax:f}",
            "line_items": [
                {
                    "id": each.id,
                    "product_id": each.line.article.id,
                    "variation_id": 0,
                    "sku": each.line.article.sku,
                    "quantity": -each.units,
                    "total": f"{-each.amount:f}",
                    "total_tax": f"{-each.tax:f}",
                }
            ],
            **_local_and_gmt_times("date_created", order.changed),
        }
        for each in order.refunds
    ]


def _tracking(parcel: Parcel) -> dict[str, Any]:
    return {
        "tracking_id": str(parcel.id),
        "tracking_provider": parcel.carrier,
        "tracking_number": parcel.number,
        "tracking_link": parcel.url or "",
        "date_shipped": "2026-01-01",
    }
