"""Webhooks of the fake WooCommerce shop.

Sources: the section "Webhooks" of woocommerce.github.io/woocommerce-rest-api-docs, and ``WC_Webhook`` and
``WC_REST_Webhooks_V1_Controller`` in github.com/woocommerce/woocommerce:

- The secret is never shown. A webhook that is created by the API is pinged: a form with its id, without a signature.
- A delivery is not repeated. After six failures in a row the next one disables the webhook.
- The delivery id is a hash of the webhook's id and the second of the request, so two deliveries may have the same.
- ``order.deleted`` and ``product.deleted`` come with the trash. A record that is deleted for ever at once sends none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from itertools import count
from typing import Any

from tests.partners.webhook_sender import Delivery, WebhookSender, signature
from tests.partners.woocommerce.shop_errors import RefusedError
from tests.partners.woocommerce.shop_records import Record, Shelf

from crossdock.values import exact_json

_MOST_FAILURES = 5
_AGENT = "WooCommerce/10.3.0 Hookshot (WordPress/6.8)"
_PING = ""  # the topic of a ping


class Webhooks:
    """All webhooks, by id.

    Args:
        now: Says the time; aware.
        site: The address of the site.
    """

    def __init__(self, shelf: Shelf, now: Callable[[], datetime], site: Callable[[], str]) -> None:
        self._shelf, self._now, self._site, self._deliveries = shelf, now, site, count(1)
        self.webhooks: dict[int, Record] = {}
        self.sender = WebhookSender(self._headers, now, attempts=1, ended=self._ended)

    def create(self, sent: dict[str, Any]) -> Record:
        if len(str(sent.get("topic", "")).split(".")) != 2:
            raise RefusedError(400, "woocommerce_rest_webhook_invalid_topic", "Webhook topic must be valid.")
        if not str(sent.get("delivery_url", "")).startswith(("http://", "https://")):
            message = "Webhook delivery URL must be a valid URL starting with http:// or https://."
            raise RefusedError(400, "woocommerce_rest_webhook_invalid_delivery_url", message)
        now, number = self._shelf.now(), next(self._shelf.post_ids)
        members = {"name": f"Webhook for {sent['topic']}", "status": "active", "secret": f"made-for-{number}"}
        webhook = Record(number, now, now, {**members, "failures": 0})
        self.change(webhook, sent)
        self.webhooks[webhook.id] = webhook
        self._add(webhook, _PING, f"webhook_id={webhook.id}".encode())
        return webhook

    def change(self, webhook: Record, sent: dict[str, Any]) -> None:
        names = ("name", "status", "secret", "topic", "delivery_url")
        webhook.members |= {name: sent[name] for name in names if name in sent}
        webhook.modified = self._shelf.now()

    def delete(self, webhook: Record) -> None:
        del self.webhooks[webhook.id]
        self.sender.drop(str(webhook.id))

    def view(self, webhook: Record) -> dict[str, Any]:
        resource, _, event = webhook.members["topic"].partition(".")
        shown = {name: value for name, value in webhook.members.items() if name not in {"secret", "failures"}}
        times = self._shelf.settings.times
        return {
            "id": webhook.id,
            **shown,
            "resource": resource,
            "event": event,
            **times("date_created", webhook.created),
            **times("date_modified", webhook.modified),
        }

    # ---- deliveries

    def is_wanted(self, topic: str) -> bool:
        """Whether an active webhook has this topic."""
        return any(self._of(topic))

    def queue(self, topic: str, shown: dict[str, Any]) -> None:
        """Queue a delivery to each active webhook of a topic; *shown* is the body, in which PHP escapes slashes."""
        body = exact_json.dumps(shown).replace(b"/", b"\\/")
        for webhook in self._of(topic):
            self._add(webhook, topic, body)

    def _of(self, topic: str) -> list[Record]:
        wanted = {"topic": topic, "status": "active"}
        return [each for each in self.webhooks.values() if wanted.items() <= each.members.items()]

    def _add(self, webhook: Record, topic: str, body: bytes) -> None:
        name, address = str(next(self._deliveries)), webhook.members["delivery_url"]
        self.sender.add(Delivery(name, topic, body, address, str(webhook.id), self._now()))

    def _headers(self, delivery: Delivery, at: datetime) -> dict[str, str]:
        if delivery.topic == _PING:
            return {"user-agent": _AGENT, "content-type": "application/x-www-form-urlencoded"}
        webhook = self.webhooks[int(delivery.subscription)]
        resource, _, event = delivery.topic.partition(".")
        second = f"{webhook.id}{int(at.timestamp())}"
        return {
            "user-agent": _AGENT,
            "content-type": "application/json",
            "x-wc-webhook-source": f"{self._site()}/",
            "x-wc-webhook-topic": delivery.topic,
            "x-wc-webhook-resource": resource,
            "x-wc-webhook-event": event,
            "x-wc-webhook-signature": signature(webhook.members["secret"].encode(), delivery.body),
            "x-wc-webhook-id": str(webhook.id),
            "x-wc-webhook-delivery-id": hashlib.md5(second.encode()).hexdigest(),
        }

    def _ended(self, delivery: Delivery, accepted: bool) -> None:
        webhook = self.webhooks.get(int(delivery.subscription))
        if webhook is None or delivery.topic == _PING:
            return
        if accepted:
            webhook.members["failures"] = 0
        elif webhook.members["failures"] > _MOST_FAILURES:
            webhook.members["status"] = "disabled"
        else:
            webhook.members["failures"] += 1
