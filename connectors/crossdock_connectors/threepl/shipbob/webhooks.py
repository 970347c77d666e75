"""ShipBob's webhooks: Standard Webhooks, with the topic in a header.

Source: developer.shipbob.com/webhooks (headers, topics, retries). It has no schemas of the bodies, which are assumed to
be the shipments and receiving orders of the API, version 2026-01. No stream reads returns or single charges. Departures
need all receiving orders, so the next run reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from crossdock.webhooks import Hint, Webhook, Webhooks, WebhookScheme
from crossdock_connectors.threepl.record_values import key_of_external_id
from crossdock_connectors.threepl.shipbob.settings import ShipBobSettings
from crossdock_connectors.threepl.shipbob.subscriptions import ShipBobSubscriptions

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
        partial(hints, settings),
        topic_headers=("x-webhook-topic",),
        subscriptions=ShipBobSubscriptions(settings.webhooks.secrets[0]),
        topics=[topic for topic in _OF_TOPIC if settings.receipts != "nothing" or not topic.startswith("wro.")],
    )


def hints(settings: ShipBobSettings, webhook: Webhook) -> _Hints:
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
