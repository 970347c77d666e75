"""Webhooks of the fake Shopify shop: subscriptions of the app, and a delivery for each change of a record.

Sources: shopify.dev/docs/apps/build/webhooks (headers, signature, eight more attempts within four hours, after which a
subscription that was made by the API is removed) and the descriptions of topics in the published schema. Where they
leave something open:

- The text of a refusal for want of a scope is that of the REST API.
- A change that touches a record several times sends several webhooks, as shops do.
- Never sent are topics of a single kind of change, such as ``orders/paid``: ``orders/updated`` comes with each.
- Addresses on this machine may be http.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from tests.partners.shopify.access import TOPICS
from tests.partners.shopify.catalog import InventoryItem, InventoryLevel, Location, Product
from tests.partners.shopify.customers import Customer
from tests.partners.shopify.execution import Info
from tests.partners.shopify.fulfillments import Fulfillment
from tests.partners.shopify.orders import Order
from tests.partners.shopify.payments import Refund
from tests.partners.shopify.records import Change, Record, Records
from tests.partners.shopify.schema import VERSION
from tests.partners.shopify.webhook_bodies import Bodies
from tests.partners.webhook_sender import Delivery, WebhookSender, signature

DOMAIN = "lampen.myshopify.com"
_ATTEMPTS = 9
_TOPICS: Mapping[type[Record], Mapping[Change, str]] = {
    Customer: {"create": "customers/create", "update": "customers/update", "delete": "customers/delete"},
    Fulfillment: {"create": "fulfillments/create", "update": "fulfillments/update"},
    InventoryItem: {
        "create": "inventory_items/create",
        "update": "inventory_items/update",
        "delete": "inventory_items/delete",
    },
    InventoryLevel: {
        "create": "inventory_levels/connect",
        "update": "inventory_levels/update",
        "delete": "inventory_levels/disconnect",
    },
    Location: {"create": "locations/create", "update": "locations/update", "delete": "locations/delete"},
    Order: {"create": "orders/create", "update": "orders/updated", "delete": "orders/delete"},
    Product: {"create": "products/create", "update": "products/update", "delete": "products/delete"},
    Refund: {"create": "refunds/create"},
}
_TAKEN = "Address for this topic has already been taken"


@dataclass(eq=False, kw_only=True)
class WebhookSubscription(Record):
    topic: str
    uri: str
    name: str | None = None
    filter: str | None = None
    format: str = "JSON"
    include_fields: list[str] = field(default_factory=list)


class Webhooks:
    """The app's subscriptions and their deliveries.

    Args:
        secret: The app's client secret.
        zone: Of the shop; times in bodies have its offset.
    """

    def __init__(self, records: Records, secret: str, zone: ZoneInfo) -> None:
        self._records, self._secret, self._bodies, self._events = records, secret, Bodies(zone), count(1)
        self.sender = WebhookSender(self._headers, records.now, attempts=_ATTEMPTS, ended=self._ended)
        records.watchers.append(self._changed)

    def create(self, info: Info, topic: str, **options: Any) -> dict[str, Any]:
        """``webhookSubscriptionCreate``"""
        sent = options["webhookSubscription"]
        uri, header = str(sent.get("uri") or ""), _header_topic(topic)
        needed = TOPICS.get(topic.partition("_")[0], ())
        known = [one for one in self._records.all(WebhookSubscription) if (one.topic, one.uri) == (topic, uri)]
        if needed and not info.context.scopes.intersection(needed):
            return _refused("topic", f"You do not have permission to create or update webhooks with {header} topic.")
        if not _is_deliverable(uri):
            return _refused("uri", "Address is invalid")
        if known:
            return _refused("uri", _TAKEN)
        made = self._records.add(WebhookSubscription(topic=topic, uri=uri, name=sent.get("name")))
        self._records.log("webhook_created", subscription=made.id, topic=header, address=uri)
        return {"webhookSubscription": made, "userErrors": []}

    def delete(self, _: Info, id: str) -> dict[str, Any]:  # noqa: A002  the argument's name
        """``webhookSubscriptionDelete``"""
        found = self._records.find(WebhookSubscription, id)
        if found is None:
            errors = [{"field": ["id"], "message": "Webhook subscription does not exist"}]
            return {"deletedWebhookSubscriptionId": None, "userErrors": errors}
        self._remove(found)
        return {"deletedWebhookSubscriptionId": id, "userErrors": []}

    def _remove(self, subscription: WebhookSubscription) -> None:
        self._records.remove(subscription)
        self.sender.drop(subscription.id)
        self._records.log("webhook_deleted", subscription=subscription.id)

    def _changed(self, record: Record, change: Change) -> None:
        topic = _TOPICS.get(type(record), {}).get(change)
        wanted = [one for one in self._records.all(WebhookSubscription) if topic and _header_topic(one.topic) == topic]
        if topic is None or not wanted:
            return
        body = json.dumps(self._bodies.of(record, change), ensure_ascii=False).encode()
        event = str(uuid.UUID(int=next(self._events), version=4))
        for each in wanted:
            name = str(uuid.UUID(int=next(self._events) << 64, version=4))
            self.sender.add(Delivery(name, topic, body, each.uri, each.id, self._records.now(), event))

    def _headers(self, delivery: Delivery, _: datetime) -> dict[str, str]:
        return {
            "content-type": "application/json",
            "x-shopify-topic": delivery.topic,
            "x-shopify-hmac-sha256": signature(self._secret.encode(), delivery.body),
            "x-shopify-shop-domain": DOMAIN,
            "x-shopify-api-version": VERSION,
            "x-shopify-webhook-id": delivery.id,
            "x-shopify-event-id": delivery.event,
            "x-shopify-triggered-at": delivery.queued.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }

    def _ended(self, delivery: Delivery, accepted: bool) -> None:
        subscription = self._records.find(WebhookSubscription, delivery.subscription)
        if not accepted and subscription is not None:
            self._remove(subscription)


def _header_topic(name: str) -> str:
    return next((topic for topics in _TOPICS.values() for topic in topics.values() if _schema_topic(topic) == name), "")


def _schema_topic(topic: str) -> str:
    return topic.replace("/", "_").upper()


def _is_deliverable(uri: str) -> bool:
    parts = urlsplit(uri)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in {"127.0.0.1", "localhost"})


def _refused(member: str, message: str) -> dict[str, Any]:
    place = ["topic"] if member == "topic" else ["webhookSubscription", member]
    return {"webhookSubscription": None, "userErrors": [{"field": place, "message": message}]}
