"""Refunds and notes of the fake WooCommerce shop: ``orders/{id}/refunds``, ``refunds`` and ``orders/{id}/notes``.

Sources: ``WC_REST_Order_Refunds_Controller``, and the section "Order notes" of
woocommerce.github.io/woocommerce-rest-api-docs. The list of notes has no pages.
"""

from __future__ import annotations

from typing import Any

from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.woocommerce.shop_errors import RefusedError, invalid_id, no_route
from tests.partners.woocommerce.shop_order_views import refund_view
from tests.partners.woocommerce.shop_orders import Order, Orders
from tests.partners.woocommerce.shop_queries import Query, narrowed, paged
from tests.partners.woocommerce.shop_resources import Writes, sent_body


def refunds_answer(
    order: Order, orders: Orders, writes: Writes, rest: list[str], request: PartnerRequest, query: Query, url: str
) -> PartnerAnswer:
    """*rest* is what follows *url*, the address of the list."""

    def view(refund: Any) -> dict[str, Any]:
        return refund_view(refund, query.settings, query.number("dp", query.settings.decimals))

    match [request.method, *rest]:
        case ["GET"]:
            return paged(query, order.refunds, url, view)
        case ["POST"]:
            sent = sent_body(request)
            refund = orders.create_refund(order, sent)
            writes.note("refund_created", order.id, sent)
            return PartnerAnswer(201, narrowed(view(refund), query))
        case ["GET", number]:
            for refund in order.refunds:
                if str(refund.id) == number:
                    return PartnerAnswer(200, narrowed(view(refund), query))
            raise invalid_id("shop_order_refund")
    raise no_route()


def all_refunds_answer(orders: Orders, request: PartnerRequest, query: Query, url: str) -> PartnerAnswer:
    """The refunds of all orders, each with the id of its order. Source: ``WC_REST_Refunds_Controller``, as of 9.0."""
    if request.method != "GET" or not query.settings.lists_refunds:
        raise no_route()
    found = [(order, refund) for order in orders.orders.values() for refund in order.refunds if query.chosen(refund.id)]
    found.sort(key=lambda each: each[1].id)
    return paged(
        query,
        found,
        url,
        lambda each: {
            **refund_view(each[1], query.settings, query.number("dp", query.settings.decimals)),
            "parent_id": each[0].id,
        },
    )


def notes_answer(
    order: Order, orders: Orders, writes: Writes, rest: list[str], request: PartnerRequest, query: Query
) -> PartnerAnswer:
    """*rest* is what follows the address of the list."""
    match [request.method, *rest]:
        case ["GET"]:
            return PartnerAnswer(200, [narrowed(note, query) for note in order.notes])
        case ["POST"]:
            sent = sent_body(request)
            if not sent.get("note"):
                raise RefusedError(400, "rest_missing_callback_param", "Missing parameter(s): note", params=["note"])
            note = orders.add_note(order, sent)
            writes.note("note_created", order.id, sent)
            return PartnerAnswer(201, note)
        case ["GET", number]:
            for note in order.notes:
                if str(note["id"]) == number:
                    return PartnerAnswer(200, narrowed(note, query))
            raise RefusedError(404, "woocommerce_rest_invalid_id", "Invalid resource ID.")
    raise no_route()
