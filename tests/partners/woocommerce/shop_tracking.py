"""The extension Shipment Tracking of the fake WooCommerce shop.

Source: "Create a tracking item with the Shipment Tracking REST API" and the pages beside it, at
woocommerce.com/document/shipment-tracking. They do not say how an unknown carrier or a missing number is answered:
assumed are a tracking item without a link, and WordPress's refusal of a missing parameter.
"""

from __future__ import annotations

import hashlib
from typing import Any

from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.woocommerce.shop_errors import RefusedError, no_route
from tests.partners.woocommerce.shop_orders import Order, Orders
from tests.partners.woocommerce.shop_records import Shelf
from tests.partners.woocommerce.shop_resources import Writes, sent_body

TRACKING = "/wp-json/wc-shipment-tracking/v3"


class Tracking:
    """The tracking items of orders, which change the order's ``date_modified``, as all its meta data does."""

    def __init__(self, shelf: Shelf, orders: Orders, writes: Writes) -> None:
        self._shelf, self._orders, self._writes = shelf, orders, writes

    def is_public(self, request: PartnerRequest) -> bool:
        """Whether the request needs no keys."""
        return request.path == f"{TRACKING}/shipment-trackings/providers"

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        providers = self._shelf.settings.tracking
        match [request.method, *request.path.removeprefix(f"{TRACKING}/").split("/")]:
            case _ if providers is None:
                raise no_route()
            case ["GET", "shipment-trackings", "providers"]:
                return PartnerAnswer(200, {"Global": dict(providers)})
            case ["GET", "orders", number, "shipment-trackings"]:
                return PartnerAnswer(200, self._orders.numbered(number).tracking)
            case ["POST", "orders", number, "shipment-trackings"]:
                item = self._create(self._orders.numbered(number), sent_body(request))
                return PartnerAnswer(201, item, {"location": f"{request.path}/{item['tracking_id']}"})
            case ["GET", "orders", number, "shipment-trackings", tracking_id]:
                return PartnerAnswer(200, _found(self._orders.numbered(number), tracking_id))
            case ["DELETE", "orders", number, "shipment-trackings", tracking_id]:
                return PartnerAnswer(200, self._delete(self._orders.numbered(number), tracking_id))
        raise no_route()

    def _delete(self, order: Order, tracking_id: str) -> dict[str, str]:
        item = _found(order, tracking_id)
        order.tracking.remove(item)
        self._shelf.saved(order)
        self._writes.note("tracking_deleted", order.id, item)
        return item

    def _create(self, order: Order, sent: dict[str, Any]) -> dict[str, str]:
        number = str(sent.get("tracking_number", ""))
        if not number:
            message = "Missing parameter(s): tracking_number"
            raise RefusedError(400, "rest_missing_callback_param", message, params=["tracking_number"])
        provider = str(sent.get("tracking_provider") or sent.get("custom_tracking_provider") or "")
        link = (self._shelf.settings.tracking or {}).get(provider, str(sent.get("custom_tracking_link", "")))
        name = f"{order.id}-{provider}-{number}-{self._shelf.item_id()}"
        item = {
            "tracking_id": hashlib.md5(name.encode()).hexdigest(),
            "tracking_provider": provider,
            "tracking_link": link.replace("%1$s", number),
            "tracking_number": number,
            "date_shipped": str(sent.get("date_shipped") or self._shelf.settings.local(self._shelf.now()).date()),
        }
        order.tracking.append(item)
        self._shelf.saved(order)
        self._writes.note("tracking_created", order.id, sent)
        return item


def _found(order: Order, tracking_id: str) -> dict[str, str]:
    for item in order.tracking:
        if item["tracking_id"] == tracking_id:
            return item
    raise RefusedError(404, "woocommerce_rest_shipment_tracking_invalid_id", "Invalid shipment tracking ID.")
