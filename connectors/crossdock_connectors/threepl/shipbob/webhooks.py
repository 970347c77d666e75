"""ShipBob's webhooks: Standard Webhooks, with the topic in a header; and subscriptions to them.

Source: developer.shipbob.com/webhooks (headers, topics, retries). It has no schemas of the bodies, which are assumed to
be the shipments and receiving orders of the API, version 2026-01. No stream reads returns or single charges. Departures
need all receiving orders, so the next run reads them. A subscription may be created with a given secret. The
documentation does not say whether ShipBob refuses duplicates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from crossdock import SecretRef
from crossdock.errors import ConfigError
from crossdock.sources import NextUrl, NotFoundError
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock.webhooks import (
    Hint,
    Subscription,
    SubscriptionApi,
    Webhook,
    Webhooks,
    WebhookScheme,
    created_once,
    read_subscription,
)
from crossdock_connectors.threepl.record_values import key_of_external_id
from crossdock_connectors.threepl.shipbob.settings import ShipBobSettings
from crossdock_connectors.threepl.shipbob.stream_base_and_list_pages import PAGE_SIZE, ShipBobContext

_PATH = "/webhook"
_SECRET = re.compile(r"whsec_[a-zA-Z0-9+/]{32}")
_NOT_A_SECRET = "ShipBob accepts only webhook secrets of whsec_ and 32 characters of base64"  # noqa: S105  a message
_NEW_SECRET = "make one: echo whsec_$(openssl rand -base64 24)"  # noqa: S105  a hint


class ShipBobSubscriptions(SubscriptionApi[ShipBobSettings]):
    """Subscriptions that the token sees. *secret* signs the webhooks of new ones."""

    def __init__(self, secret: SecretRef) -> None:
        self._secret = secret

    def listed(self, ctx: ShipBobContext) -> Iterator[Subscription]:
        for page in ctx.api.pages(_PATH, {"RecordsPerPage": PAGE_SIZE}, paginator=NextUrl("/next"), key="id"):
            yield from (_parse_subscription(item, page.address) for item in page.items("/items"))

    def create(self, ctx: ShipBobContext, topic: str, address: str) -> Subscription:
        """Subscribe to *topic* with the connection's secret. If ShipBob returns another one, it signs with that."""
        secret = self._secret.reveal()
        if not _SECRET.fullmatch(secret):
            raise ConfigError(
                _NOT_A_SECRET, where=f"{ctx.connection}.webhooks.secrets", hint=_NEW_SECRET, code="secret_invalid"
            )

        def send() -> Subscription:
            body = {"topics": [topic], "url": address, "description": "crossdock", "secret": secret}
            answer = ctx.api.post(_PATH, json=body)
            told = answer.at("/secret")
            made = told if isinstance(told, str) and told != secret else None
            return replace(_parse_subscription(answer.body, answer.address), secret=made)

        return created_once(self, ctx, topic, address, send, secret_is_known=True)

    def remove(self, ctx: ShipBobContext, subscription: Subscription) -> None:
        try:
            ctx.api.request("DELETE", f"{_PATH}/{subscription.id}")
        except NotFoundError:
            return  # it is removed already


def _parse_subscription(item: Any, source: str) -> Subscription:
    """Parse a subscription. ``enabled`` is absent from the answer to a creation."""
    active = value_at_path_or_missing(item, "enabled") is not False
    return read_subscription(item, source, topic="topics", address="url", active=active)


SCHEME = WebhookScheme()
ANY = ""
"""A key part in place of the item and of the lot: all that the receiving order has brought."""
_Hints = Iterator[Hint]


def webhook_declaration(settings: ShipBobSettings) -> Webhooks[ShipBobSettings] | None:
    if settings.webhooks is None:
        return None
    return Webhooks(
        [SCHEME],
        settings.webhooks.secrets,
        partial(hints_of_webhook, settings),
        topic_headers=("x-webhook-topic",),
        subscriptions=ShipBobSubscriptions(settings.webhooks.secrets[0]),
        topics=[topic for topic in _OF_TOPIC if settings.receipts != "nothing" or not topic.startswith("wro.")],
    )


def hints_of_webhook(settings: ShipBobSettings, webhook: Webhook) -> _Hints:
    if webhook.topic in _OF_TOPIC:
        yield from _OF_TOPIC[webhook.topic](settings, webhook)


def _shipment_hints(settings: ShipBobSettings, webhook: Webhook) -> _Hints:
    """Yield the order if crossdock has sent it. A shipment has the name of its order as well."""
    key = key_of_external_id(webhook.at("/reference_id", str, default=None), settings.orders.namespace)
    if key is not None:
        yield Hint("shipments", (key,))


def _receiving_order_hints(settings: ShipBobSettings, webhook: Webhook) -> _Hints:
    if settings.receipts != "nothing":
        yield Hint("receipts", (settings.owner, webhook.identifier("/id"), ANY, ANY))


_OF_TOPIC: Mapping[str, Callable[[ShipBobSettings, Webhook], _Hints]] = {
    "order.shipped": _shipment_hints,
    "order.shipment.delivered": _shipment_hints,
    "order.shipment.exception": _shipment_hints,
    "order.shipment.on_hold": _shipment_hints,
    "order.shipment.cancelled": _shipment_hints,
    "order.shipment.tracking.updated": _shipment_hints,
    "wro.completed": _receiving_order_hints,
}
