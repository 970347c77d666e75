"""The platform's webhooks as hints: Standard Webhooks, whose body has the type of the event and the resource."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from crossdock.connector import Context
from crossdock.errors import RefusedError
from crossdock.reading.sources.pagination import CursorInBody
from crossdock.reading.sources.retried_requests import NotFoundError
from crossdock.resources import ResourceName
from crossdock.runs.platform_source.settings import PlatformSourceSettings
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

SCHEME = WebhookScheme()
RESOURCES: Mapping[str, ResourceName] = {
    "order.created": "order",
    "inventory.lot_moved": "inventory_lot",
    "invoice.approved": "invoice",
}
"""The resource by the type of the event, as ``webhooks`` of the sandbox's OpenAPI document has them."""


def platform_webhooks(settings: PlatformSourceSettings) -> Webhooks[PlatformSourceSettings] | None:
    if settings.webhooks is None:
        return None
    read = {stream.read for stream in settings.streams.values()}
    events = sorted(event for event, resource in RESOURCES.items() if resource in read)
    return Webhooks(
        [SCHEME],
        settings.webhooks.secrets,
        partial(hints, settings),
        topic_member="/type",
        subscriptions=PlatformSubscriptions(),
        topics=[",".join(events)] if events else [],  # one subscription, because each has a secret of its own
    )


def hints(settings: PlatformSourceSettings, webhook: Webhook) -> Iterator[Hint]:
    """Yield the record of an event for each stream that reads the resource by its id."""
    for name, stream in settings.streams.items():
        if stream.read == RESOURCES.get(webhook.topic) and tuple(stream.key) == ("id",):
            yield Hint(name, (webhook.identifier("/data/id"),))


_PATH = "/api/v1/webhooks/subscriptions"

PlatformContext = Context[PlatformSourceSettings]


class PlatformSubscriptions(SubscriptionApi[PlatformSourceSettings]):
    def listed(self, ctx: PlatformContext) -> Iterator[Subscription]:
        paginator = CursorInBody("/nextCursor", size=ctx.settings.page_size)
        for page in ctx.api.pages(_PATH, paginator=paginator, records="/data", key="id"):
            yield from (_read_subscription(item, page.address) for item in page.items("/data"))

    def create(self, ctx: PlatformContext, topic: str, address: str) -> Subscription:
        """Subscribe to the events of *topic*, which are sorted and separated by commas."""
        headers = _new_idempotency_header(ctx)

        def send() -> Subscription:
            body = {"url": address, "events": topic.split(",")}
            answer = ctx.api.request("POST", _PATH, json=body, headers=headers)
            secret = answer.at("/secret")
            if not isinstance(secret, str):
                raise RefusedError(
                    "has no secret of the new subscription", where=answer.address, code="subscription_failed"
                )
            return replace(_read_subscription(answer.body, answer.address), secret=secret)

        return created_once(self, ctx, topic, address, send, secret_is_known=False)

    def remove(self, ctx: PlatformContext, subscription: Subscription) -> None:
        try:
            ctx.api.request("DELETE", f"{_PATH}/{subscription.id}", headers=_new_idempotency_header(ctx))
        except NotFoundError:
            return  # already removed


def _new_idempotency_header(ctx: PlatformContext) -> Mapping[str, str]:
    """Return a header with a new idempotency key, or none if the platform does not support them."""
    idempotency = ctx.settings.profile.idempotency
    return {idempotency.header: str(uuid.uuid4())} if idempotency.enabled else {}


def _read_subscription(item: Any, source: str) -> Subscription:
    active = value_at_path_or_missing(item, "status") == "enabled"
    found = read_subscription(item, source, topic="events", address="url", active=active)
    return replace(found, topic=",".join(sorted(found.topic.split(","))))
