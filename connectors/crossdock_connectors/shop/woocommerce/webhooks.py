"""WooCommerce's webhooks, and subscriptions to them by the resource ``webhooks`` of its REST API.

Source: ``WC_Webhook`` and ``WC_REST_Webhooks_V1_Controller`` in github.com/woocommerce/woocommerce. A webhook is sent
once. Its ``X-WC-Webhook-Delivery-ID`` is made of the webhook's id and the second: two changes in one second have the
same, so it is no id of a delivery. When a webhook is created, an unsigned form with its id tests the address; an answer
other than 200 is an error there. The shop allows duplicates, and shows no secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from crossdock import SecretRef
from crossdock.sources import NotFoundError
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock.webhooks import Hint, Subscription, SubscriptionApi, Webhook, Webhooks, created_once, read_subscription
from crossdock_connectors.shop.webhooks import body_signature_scheme, guest_hint, order_and_invoice_hints
from crossdock_connectors.shop.woocommerce.lists_and_records_by_id import API, WooContext, request_list_pages
from crossdock_connectors.shop.woocommerce.settings import WooCommerceSettings


class WooCommerceSubscriptions(SubscriptionApi[WooCommerceSettings]):
    """Webhooks of the shop, whichever user created them. *secret* signs those of new subscriptions."""

    def __init__(self, secret: SecretRef) -> None:
        self._secret = secret

    def listed(self, ctx: WooContext) -> Iterator[Subscription]:
        seen = set[str]()  # pages overlap
        for webhooks, source in request_list_pages(ctx, "webhooks", status="all"):
            for found in (_parse_webhook_subscription(webhook, source) for webhook in webhooks):
                if found.id not in seen:
                    seen.add(found.id)
                    yield found

    def create(self, ctx: WooContext, topic: str, address: str) -> Subscription:
        def send() -> Subscription:
            body = {
                "name": f"crossdock: {topic}",
                "topic": topic,
                "delivery_url": address,
                "secret": self._secret.reveal(),
                "status": "active",
            }
            answer = ctx.api.post(f"{API}/webhooks", json=body)
            return _parse_webhook_subscription(answer.body, answer.address)

        return created_once(self, ctx, topic, address, send, secret_is_known=True)

    def remove(self, ctx: WooContext, subscription: Subscription) -> None:
        try:
            ctx.api.request("DELETE", f"{API}/webhooks/{subscription.id}", params={"force": "true"})
        except NotFoundError:
            return  # it is removed already


def _parse_webhook_subscription(webhook: Any, source: str) -> Subscription:
    """Parse a webhook. ``paused`` by the merchant and ``disabled`` after failures in a row are both not active."""
    active = value_at_path_or_missing(webhook, "status") == "active"
    return read_subscription(webhook, source, topic="topic", address="delivery_url", active=active)


SCHEME = body_signature_scheme("X-WC-Webhook-Signature")
PING = re.compile(rb"webhook_id=[0-9]{1,20}")
_Hints = Iterator[Hint]


def webhook_declaration(settings: WooCommerceSettings) -> Webhooks[WooCommerceSettings] | None:
    if settings.webhooks is None:
        return None
    return Webhooks(
        [SCHEME],
        settings.webhooks.secrets,
        partial(hints_of_webhook, settings),
        topic_headers=("X-WC-Webhook-Topic",),
        topics=tuple(_OF_TOPIC),
        ping=PING,
        subscriptions=WooCommerceSubscriptions(settings.webhooks.secrets[0]),
    )


def hints_of_webhook(settings: WooCommerceSettings, webhook: Webhook) -> _Hints:
    if webhook.topic in _OF_TOPIC:
        yield from _OF_TOPIC[webhook.topic](settings, webhook)


def _order_hints(settings: WooCommerceSettings, webhook: Webhook) -> _Hints:
    """Yield the order: a refund and its deletion are updates of it. The body of a deleted order is only its id."""
    key = webhook.identifier("/id")
    if webhook.at("/customer_id", int, default=None) == 0:
        yield guest_hint(key)
    yield from order_and_invoice_hints(settings, key)


def _customer_hints(settings: WooCommerceSettings, webhook: Webhook) -> _Hints:  # noqa: ARG001  one of several
    yield Hint("customers", (webhook.identifier("/id"),))


def _product_hints(settings: WooCommerceSettings, webhook: Webhook) -> _Hints:
    """Yield a product or a variation. A variable product stands for its variations, which are fetched with it."""
    key = webhook.identifier("/id")
    product = key if settings.product_key == "id" else webhook.at("/sku", str, default=None)
    if product and settings.product_namespace is None:
        yield Hint("products", (product,))
    yield Hint("stock", (key,))


_OF_TOPIC: Mapping[str, Callable[[WooCommerceSettings, Webhook], _Hints]] = {
    "order.created": _order_hints,
    "order.updated": _order_hints,
    "order.deleted": _order_hints,
    "order.restored": _order_hints,
    "customer.created": _customer_hints,
    "customer.updated": _customer_hints,
    "product.created": _product_hints,
    "product.updated": _product_hints,
    "product.restored": _product_hints,
}
"""Without deleted customers and products, which cannot be fetched: the next run finds that they are gone. A deleted
order is read in the trash."""
