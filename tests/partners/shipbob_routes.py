"""Resources of the fake of ShipBob's API: what each method and path answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.partners import shipbob_answers as answers
from tests.partners import shipbob_stock_answers as stock
from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.shipbob_pages import Parameters, cursor_page, numbered_page, page_of, parameters
from tests.partners.shipbob_requests import CreateOrder, CreateWro, UpdateAddress, body_of
from tests.partners.shipbob_state import Channel, Invoice, Order, Product, Shipment, Wro
from tests.partners.shipbob_stockroom import RefusedError
from tests.partners.shipbob_warehouse import Warehouse
from tests.partners.shipbob_webhooks import CreateSubscription, Webhooks

VERSION = "2026-01"


@dataclass(frozen=True, slots=True)
class Call:
    """A request, the channels that its token sees, the one that its header names, and the id in its path."""

    request: PartnerRequest
    seen: frozenset[int]
    channel: Channel | None
    id: int = 0

    def required_channel(self) -> Channel:
        if self.channel is None:
            raise RefusedError(400, {"shipbob_channel_id": ["The header shipbob_channel_id is required."]})
        return self.channel


class Routes:
    """The resources that *warehouse* has, and subscriptions to *webhooks*."""

    def __init__(self, warehouse: Warehouse, webhooks: Webhooks) -> None:
        self.warehouse, self._webhooks = warehouse, webhooks
        self._routes: list[tuple[str, re.Pattern[str], Callable[[Call], Any]]] = [
            (method, re.compile(f"/{VERSION}{path}"), route)
            for method, path, route in (
                ("GET", "/channel", self._channels),
                ("GET", "/location", self._locations),
                ("GET", "/product", self._products),
                ("GET", "/inventory", self._inventory),
                ("GET", "/inventory-level", self._levels),
                ("GET", "/inventory-level/lots", self._lots),
                ("GET", "/order", self._list_orders),
                ("POST", "/order", self._create_order),
                ("GET", r"/order/(\d+)", self._get_order),
                ("POST", r"/order/(\d+):cancel", self._cancel_order),
                ("PUT", r"/shipment/(\d+):updateAddress", self._update_address),
                ("GET", "/receiving", self._list_wros),
                ("POST", "/receiving", self._create_wro),
                ("GET", r"/receiving/(\d+)", self._get_wro),
                ("GET", r"/receiving/(\d+)/boxes", self._get_boxes),
                ("POST", r"/receiving/(\d+):cancel", self._cancel_wro),
                ("GET", "/invoices", self._invoices),
                ("GET", r"/invoices/(\d+)/transactions", self._transactions),
                ("GET", "/webhook", self._list_webhooks),
                ("POST", "/webhook", self._create_webhook),
                ("DELETE", r"/webhook/(\d+)", self._delete_webhook),
            )
        ]

    def answer(self, request: PartnerRequest, seen: frozenset[int], channel: Channel | None) -> PartnerAnswer:
        """Carry out *request*.

        Raises:
            RefusedError: If ShipBob would refuse it, 404 for a path that the fake does not have.
        """
        for method, path, route in self._routes:
            if method == request.method and (found := path.fullmatch(request.path)):
                body = route(Call(request, seen, channel, int(found[1]) if found.groups() else 0))
                return body if isinstance(body, PartnerAnswer) else PartnerAnswer(200, body)
        raise _missing("resource", request.path)

    def _list_webhooks(self, call: Call) -> Any:
        rows, links = cursor_page(call.request, lambda _: self._webhooks.of(call.seen), size_name="RecordsPerPage")
        items = [{**each.view(), "enabled": each.enabled} for each in rows]
        return {"items": items, "next": links["next"], "prev": links["prev"]}

    def _create_webhook(self, call: Call) -> Any:
        made = self._webhooks.create(call.seen, body_of(call.request, CreateSubscription))
        return {**made.view(), "secret": made.secret}

    def _delete_webhook(self, call: Call) -> Any:
        if not self._webhooks.delete(call.seen, call.id):
            raise _missing("webhook", call.id)
        return PartnerAnswer(204)

    def _channels(self, call: Call) -> Any:
        scopes = ["orders_read", "orders_write", "products_read", "inventory_read", "receiving_read", "receiving_write"]
        channels = [self.warehouse.channels[number] for number in sorted(call.seen)]
        items = [{"id": c.id, "name": c.name, "application_name": "API", "scopes": scopes} for c in channels]
        return {"items": items, "next": None, "prev": None}

    def _locations(self, call: Call) -> Any:
        return [stock.location_view(location) for location in self.warehouse.locations.values()]

    def _own_products(self, seen: frozenset[int], asked: Parameters) -> list[Product]:
        """By inventory id. One parameter may narrow them each: ``SKU``, ``ChannelIds``, ``InventoryIds``."""
        skus, channels, ids = asked.texts("SKU"), asked.texts("ChannelIds"), asked.texts("InventoryIds")
        return [
            product
            for product in self.warehouse.products.values()
            if product.channel.id in seen
            and (not skus or product.sku in skus)
            and (not channels or str(product.channel.id) in channels)
            and (not ids or str(product.inventory_id) in ids)
        ]

    def _products(self, call: Call) -> Any:
        rows, links = cursor_page(call.request, lambda asked: self._own_products(call.seen, asked))
        return page_of([stock.product_view(product, self.warehouse) for product in rows], links)

    def _inventory(self, call: Call) -> Any:
        rows, links = cursor_page(call.request, lambda asked: self._own_products(call.seen, asked))
        return page_of([stock.inventory_view(product) for product in rows], links)

    def _levels(self, call: Call) -> Any:
        rows, links = cursor_page(call.request, lambda asked: self._own_products(call.seen, asked))
        numbers = (stock.awaited(self.warehouse), stock.lacked(self.warehouse))
        return page_of([stock.level_view(product, self.warehouse, *numbers) for product in rows], links)

    def _lots(self, call: Call) -> Any:
        rows, links = cursor_page(call.request, lambda asked: self._own_products(call.seen, asked))
        awaiting = stock.awaited(self.warehouse)
        return page_of([stock.lots_view(product, self.warehouse, awaiting) for product in rows], links)

    def _list_orders(self, call: Call) -> Any:
        asked = parameters(call.request)
        ids, references = asked.texts("IDs"), asked.texts("ReferenceIds")
        created = asked.between("StartDate", "EndDate")
        updated = asked.between("LastUpdateStartDate", "LastUpdateEndDate")
        found = [
            order
            for order in self.warehouse.orders.values()
            if order.channel.id in call.seen
            and call.channel in {None, order.channel}
            and (not ids or str(order.id) in ids)
            and (not references or order.body["reference_id"] in references)
            and created(order.created)
            and updated(order.updated)
        ]
        if asked.text("SortOrder") != "Oldest":
            found.reverse()
        return [answers.order_view(order, self.warehouse) for order in numbered_page(call.request, found)]

    def _create_order(self, call: Call) -> Any:
        channel = call.required_channel()
        order = self.warehouse.create_order(channel, body_of(call.request, CreateOrder))
        return PartnerAnswer(201, answers.order_view(order, self.warehouse))

    def _order(self, call: Call) -> Order:
        order = self.warehouse.orders.get(call.id)
        if order is None or order.channel.id not in call.seen:
            raise _missing("order", call.id)
        return order

    def _get_order(self, call: Call) -> Any:
        return answers.order_view(self._order(call), self.warehouse)

    def _cancel_order(self, call: Call) -> Any:
        channel, order = call.required_channel(), self._order(call)
        if order.channel != channel:
            raise _missing("order", call.id)
        cancelled = self.warehouse.cancel(order.id)
        results = [
            {
                "shipment_id": shipment.id,
                "action": "Cancel",
                "is_success": shipment in cancelled,
                "reason": None if shipment in cancelled else f"The shipment is {shipment.status}.",
            }
            for shipment in order.shipments
        ]
        return {
            "order_id": order.id,
            "order": answers.order_view(order, self.warehouse),
            "status": "Success" if len(cancelled) == len(order.shipments) else "PartialSuccess",
            "canceled_shipment_results": results,
        }

    def _update_address(self, call: Call) -> Any:
        shipment = self._shipment(call)
        self.warehouse.update_address(shipment, body_of(call.request, UpdateAddress))
        return {"id": shipment.id, "is_success": True}

    def _shipment(self, call: Call) -> Shipment:
        for order in self.warehouse.orders.values():
            for shipment in order.shipments:
                if shipment.id == call.id and order.channel.id in call.seen:
                    return shipment
        raise RefusedError(400, {"code": "NOT_FOUND", "message": f"There is no shipment {call.id}."})

    def _list_wros(self, call: Call) -> Any:
        asked = parameters(call.request)
        ids, statuses, numbers = asked.texts("IDs"), asked.texts("Statuses"), asked.texts("PurchaseOrderNumbers")
        created = asked.between("InsertStartDate", "InsertEndDate")
        found = [
            wro
            for wro in self.warehouse.wros.values()
            if wro.channel.id in call.seen
            and (not ids or str(wro.id) in ids)
            and (not statuses or wro.status in statuses)
            and (not numbers or wro.body.get("purchase_order_number") in numbers)
            and created(wro.created)
        ]
        return [stock.wro_view(wro, self.warehouse) for wro in numbered_page(call.request, found[::-1])]

    def _create_wro(self, call: Call) -> Any:
        body = body_of(call.request, CreateWro)
        for item in (item for box in body["boxes"] for item in box["box_items"]):
            product = self.warehouse.products.get(item["inventory_id"])
            if product is None or product.channel.id not in call.seen:
                raise _missing("inventory item", item["inventory_id"])
        return PartnerAnswer(201, stock.wro_view(self.warehouse.create_wro(body), self.warehouse))

    def _wro(self, call: Call) -> Wro:
        wro = self.warehouse.wros.get(call.id)
        if wro is None or wro.channel.id not in call.seen:
            raise _missing("receiving order", call.id)
        return wro

    def _get_wro(self, call: Call) -> Any:
        return stock.wro_view(self._wro(call), self.warehouse)

    def _get_boxes(self, call: Call) -> Any:
        return stock.boxes_view(self._wro(call), self.warehouse)

    def _cancel_wro(self, call: Call) -> Any:
        wro = self._wro(call)
        self.warehouse.cancel_wro(wro)
        return stock.wro_view(wro, self.warehouse)

    def _invoices(self, call: Call) -> Any:
        def rows(asked: Parameters) -> list[Invoice]:
            today = self.warehouse.now()
            start, end = asked.time("FromDate") or today - timedelta(days=30), asked.time("ToDate") or today
            types = asked.texts("InvoiceTypes")
            found = [
                invoice
                for invoice in self.warehouse.invoices.values()
                if invoice.channel.id in call.seen
                and start.date() <= invoice.day <= end.date()
                and (not types or invoice.type in types)
            ]
            newest_first = asked.text("SortOrder") != "Ascending"
            return sorted(found, key=lambda invoice: (invoice.day, invoice.id), reverse=newest_first)

        found, links = cursor_page(call.request, rows, size=100, most=1000)
        return page_of([answers.invoice_view(invoice) for invoice in found], links)

    def _transactions(self, call: Call) -> Any:
        invoice = self.warehouse.invoices.get(call.id)
        if invoice is None or invoice.channel.id not in call.seen:
            raise _missing("invoice", call.id)
        rows, links = cursor_page(call.request, lambda _: invoice.transactions, size=100, most=1000)
        return page_of([answers.transaction_view(transaction, invoice) for transaction in rows], links)


def _missing(what: str, name: Any) -> RefusedError:
    return RefusedError(404, {"title": "Not Found", "status": 404, "detail": f"There is no {what} {name}."})
