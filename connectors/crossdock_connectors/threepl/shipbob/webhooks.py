"""ShipBob's webhooks: Standard Webhooks, with the topic in a header.

Sources: developer.shipbob.com/webhooks (headers, topics, retries); the bodies are as the shipments, orders and
receiving orders of the API, version 2026-01. No stream reads returns or single charges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from crossdock.webhooks import Hint, Webhook, Webhooks, WebhookScheme
from crossdock_connectors.threepl.record_values import key_in
from crossdock_connectors.threepl.shipbob.settings import ShipBobSettings

SCHEME = WebhookScheme()
ANY = ""
"""In a key, in place of the item and of the lot: all rows of the shipment or of the receiving order."""
_Hints = Iterator[Hint]


def received(settings: ShipBobSettings) -> Webhooks[ShipBobSettings] | None:
    """The webhooks of a connection; ShipBob makes the secret when a subscription is created."""
    if settings.webhooks is None:
        return None
    return Webhooks(
        [SCHEME],
        settings.webhooks.secrets,
        partial(hints, settings),
        topic_headers=("x-webhook-topic",),
        topics=[topic for topic in _OF_TOPIC if settings.receipts != "nothing" or not topic.startswith("wro.")],
    )


def hints(settings: ShipBobSettings, webhook: Webhook) -> _Hints:
    """The records that a webhook is about."""
    if webhook.topic in _OF_TOPIC:
        yield from _OF_TOPIC[webhook.topic](settings, webhook)


def _shipment(settings: ShipBobSettings, webhook: Webhook) -> _Hints:
    """The order, if crossdock has sent it, and what left the stock; the body is a shipment, or the order with all."""
    key = key_in(webhook.at("/reference_id", str, default=None), settings.orders.namespace)
    if key is not None:
        yield Hint("shipments", (key,))
    if settings.stock_leaves == "movement":
        is_order = webhook.at("/shipments", list, default=None) is not None
        for shipment in webhook.each("/shipments") if is_order else (webhook,):
            yield Hint("departures", (settings.owner, shipment.identifier("/id"), ANY, ANY))


def _receiving_order(settings: ShipBobSettings, webhook: Webhook) -> _Hints:
    if settings.receipts != "nothing":
        yield Hint("receipts", (settings.owner, webhook.identifier("/id"), ANY, ANY))


_OF_TOPIC: Mapping[str, Callable[[ShipBobSettings, Webhook], _Hints]] = {
    "order.shipped": _shipment,
    "order.shipment.delivered": _shipment,
    "order.shipment.exception": _shipment,
    "order.shipment.on_hold": _shipment,
    "order.shipment.cancelled": _shipment,
    "order.shipment.tracking.updated": _shipment,
    "wro.completed": _receiving_order,
}
