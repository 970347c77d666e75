"""Where the fake WooCommerce shop registers webhooks. It does not send any.

Source: the section "Webhooks" of woocommerce.github.io/woocommerce-rest-api-docs. The secret is never shown.
"""

from __future__ import annotations

from typing import Any

from tests.partners.woocommerce.shop_errors import RefusedError
from tests.partners.woocommerce.shop_records import Record, Shelf


class Webhooks:
    """All webhooks, by id."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.webhooks: dict[int, Record] = {}

    def create(self, sent: dict[str, Any]) -> Record:
        if len(str(sent.get("topic", "")).split(".")) != 2:
            raise RefusedError(400, "woocommerce_rest_webhook_invalid_topic", "Webhook topic must be valid.")
        if not str(sent.get("delivery_url", "")).startswith(("http://", "https://")):
            message = "Webhook delivery URL must be a valid URL starting with http:// or https://."
            raise RefusedError(400, "woocommerce_rest_webhook_invalid_delivery_url", message)
        now = self._shelf.now()
        members = {"name": f"Webhook for {sent['topic']}", "status": "active", "secret": ""}
        webhook = Record(next(self._shelf.post_ids), now, now, members)
        self.change(webhook, sent)
        self.webhooks[webhook.id] = webhook
        return webhook

    def change(self, webhook: Record, sent: dict[str, Any]) -> None:
        names = ("name", "status", "secret", "topic", "delivery_url")
        webhook.members |= {name: sent[name] for name in names if name in sent}
        webhook.modified = self._shelf.now()

    def delete(self, webhook: Record) -> None:
        del self.webhooks[webhook.id]

    def view(self, webhook: Record) -> dict[str, Any]:
        resource, _, event = webhook.members["topic"].partition(".")
        shown = {name: value for name, value in webhook.members.items() if name != "secret"}
        times = self._shelf.settings.times
        return {
            "id": webhook.id,
            **shown,
            "resource": resource,
            "event": event,
            **times("date_created", webhook.created),
            **times("date_modified", webhook.modified),
        }
