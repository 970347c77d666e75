"""The webhooks of a WooCommerce shop, by the resource ``webhooks`` of its REST API.

Source: ``WC_REST_Webhooks_V1_Controller`` in github.com/woocommerce/woocommerce. The shop allows duplicates, and shows
no secret. It calls the address as soon as a webhook is created, without a signature; that may fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crossdock import SecretRef
from crossdock.sources import NotFoundError
from crossdock.values.json_paths import at_path
from crossdock.webhooks import Subscription, SubscriptionApi, created_once, read_subscription
from crossdock_connectors.shop.woocommerce.lists import API, WooContext, pages
from crossdock_connectors.shop.woocommerce.settings import WooCommerceSettings


class WooCommerceSubscriptions(SubscriptionApi[WooCommerceSettings]):
    """Webhooks of the shop, whichever user created them. *secret* signs those of new subscriptions."""

    def __init__(self, secret: SecretRef) -> None:
        self._secret = secret

    def listed(self, ctx: WooContext) -> Iterator[Subscription]:
        seen = set[str]()  # pages overlap
        for webhooks, source in pages(ctx, "webhooks", status="all"):
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
    active = at_path(webhook, "status") == "active"
    return read_subscription(webhook, source, topic="topic", address="delivery_url", active=active)
