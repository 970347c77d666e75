"""Shopify's webhooks.

Sources: shopify.dev/docs/apps/build/webhooks/verify-deliveries (the signature; ``X-Shopify-Webhook-Id`` is the same in
each attempt, while one ``X-Shopify-Event-Id`` is that of several webhooks), shopify.dev/docs/api/webhooks (the topics
and their bodies), shopify.dev/docs/apps/build/events/delivery-structure (deliveries of Events: the topic is a type, the
headers may have no ``X-``, and the body names records by ``query_variables``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from crossdock import RecordError
from crossdock.values.json_access import JsonAccess
from crossdock.webhooks import Hint, Webhook, Webhooks
from crossdock_connectors.shop.shopify.pages import number_in_gid_or_empty
from crossdock_connectors.shop.shopify.settings import ShopifySettings
from crossdock_connectors.shop.shopify.subscriptions import ShopifySubscriptions
from crossdock_connectors.shop.streams import CREDIT_NOTE
from crossdock_connectors.shop.webhooks import body_signature_scheme, guest_hint, order_and_invoice_hints

SCHEMES = tuple(body_signature_scheme(f"{x}Shopify-Hmac-SHA256", f"{x}Shopify-Webhook-Id") for x in ("X-", ""))
_GID = "gid://shopify/"
_Hints = Iterator[Hint]


def webhook_declaration(settings: ShopifySettings) -> Webhooks[ShopifySettings] | None:
    if settings.webhooks is None:
        return None
    return Webhooks(
        SCHEMES,
        settings.webhooks.secrets,
        partial(hints, settings),
        topic_headers=("X-Shopify-Topic", "Shopify-Topic"),
        subscriptions=ShopifySubscriptions(),
        topics=[topic for topic in TOPICS if settings.product_namespace is None or not topic.startswith("products/")],
    )


def hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    if "/" not in webhook.topic:
        yield from _hints_from_query_variables(settings, webhook)
    elif webhook.topic in _OF_TOPIC:
        yield from _OF_TOPIC[webhook.topic](settings, webhook)


def _order_hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    if webhook.at("/test", bool, default=False) and not settings.test_orders:
        return
    key = webhook.identifier("/id")
    if webhook.at("/customer", dict, default=None) is None:
        yield guest_hint(key)
    yield from order_and_invoice_hints(settings, key)


def _deleted_order_hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    return order_and_invoice_hints(settings, webhook.identifier("/id"))


def _edited_order_hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    return order_and_invoice_hints(settings, webhook.identifier("/order_edit/order_id"))


def _order_and_invoice_hints_of_fulfillment(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    return order_and_invoice_hints(settings, webhook.identifier("/order_id"))


def _refund_hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    yield from order_and_invoice_hints(settings, webhook.identifier("/order_id"))
    if settings.invoices != "never" and settings.refunds == "credit_note":
        yield Hint("invoices", (f"{CREDIT_NOTE}-{webhook.identifier('/id')}",))


def _customer_hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:  # noqa: ARG001  one of several
    yield Hint("customers", (webhook.identifier("/id"),))


def _hints_of_customer_merge(settings: ShopifySettings, webhook: Webhook) -> _Hints:  # noqa: ARG001  one of several
    for which in ("kept", "deleted"):
        yield Hint("customers", (_number_in_gid_or_error(webhook, f"/admin_graphql_api_customer_{which}_id"),))


def _product_hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    """Yield the variants. Beyond the first hundred, Shopify only names their ids."""
    if settings.product_namespace is not None:
        return
    if settings.product_key == "sku":
        for variant in webhook.each("/variants", default=()):
            if sku := variant.at("/sku", str, default=None):
                yield Hint("products", (sku,))
        return
    for variant in webhook.each("/variants", default=()):
        yield Hint("products", (variant.identifier("/id"),))
    for variant in webhook.each("/variant_gids", default=()):
        yield Hint("products", (_number_in_gid_or_error(variant, "/admin_graphql_api_id"),))


def _stock_hints(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    item, location = webhook.identifier("/inventory_item_id"), webhook.identifier("/location_id")
    if not settings.locations or location in settings.locations:
        yield Hint("stock", (f"{item}-{location}",))


def _number_in_gid_or_error(part: JsonAccess, pointer: str) -> str:
    if number := number_in_gid_or_empty(part.at(pointer, str)):
        return number
    raise RecordError("bad_value", "is no global id", pointer=part.place(pointer))


def _hints_from_query_variables(settings: ShopifySettings, webhook: Webhook) -> _Hints:
    for gid in webhook.at("/query_variables", dict, default={}).values():
        if not isinstance(gid, str) or not gid.startswith(_GID) or not (number := number_in_gid_or_empty(gid)):
            continue
        kind = gid.removeprefix(_GID).partition("/")[0]
        if kind == "Order":
            yield from order_and_invoice_hints(settings, number)
        elif kind == "ProductVariant" and settings.product_namespace is None and settings.product_key == "id":
            yield Hint("products", (number,))
        elif kind == "Customer":
            yield Hint("customers", (number,))


_OF_TOPIC: Mapping[str, Callable[[ShopifySettings, Webhook], _Hints]] = {
    "orders/create": _order_hints,
    "orders/updated": _order_hints,
    "orders/paid": _order_hints,
    "orders/cancelled": _order_hints,
    "orders/fulfilled": _order_hints,
    "orders/partially_fulfilled": _order_hints,
    "orders/delete": _deleted_order_hints,
    "orders/edited": _edited_order_hints,
    "refunds/create": _refund_hints,
    "fulfillments/create": _order_and_invoice_hints_of_fulfillment,
    "fulfillments/update": _order_and_invoice_hints_of_fulfillment,
    "customers/create": _customer_hints,
    "customers/update": _customer_hints,
    "customers/enable": _customer_hints,
    "customers/disable": _customer_hints,
    "customers/delete": _customer_hints,
    "customers/merge": _hints_of_customer_merge,
    "products/create": _product_hints,
    "products/update": _product_hints,
    "inventory_levels/connect": _stock_hints,
    "inventory_levels/update": _stock_hints,
    "inventory_levels/disconnect": _stock_hints,
}
_REPEATED = frozenset(  # orders/updated, customers/update and customers/delete tell the same
    {
        "customers/merge",  # and it needs a scope of its own
        "orders/paid",
        "orders/cancelled",
        "orders/fulfilled",
        "orders/partially_fulfilled",
        "orders/edited",
        "customers/enable",
        "customers/disable",
    }
)
TOPICS = tuple(topic for topic in _OF_TOPIC if topic not in _REPEATED)
"""The topics to subscribe to. ``products/delete`` is not one of them: it names no variant."""
