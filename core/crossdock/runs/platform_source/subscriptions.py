"""The platform's subscriptions to webhooks, at the paths that we assume.

The platform makes the secret of each subscription and shows it once. Requests have an idempotency key if the platform
supports them, so that a repeated request returns the same secret.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from crossdock.config.vendor_subscriptions import created_once, read_subscription
from crossdock.connector import Context
from crossdock.errors import RefusedError
from crossdock.reading.sources.pagination import CursorInBody
from crossdock.reading.sources.retried_requests import NotFoundError
from crossdock.runs.platform_source.settings import PlatformSourceSettings
from crossdock.values.json_values import at_path
from crossdock.webhooks import Subscription, SubscriptionApi

_PATH = "/api/v1/webhooks/subscriptions"

PlatformContext = Context[PlatformSourceSettings]


class PlatformSubscriptions(SubscriptionApi[PlatformSourceSettings]):
    def listed(self, ctx: PlatformContext) -> Iterator[Subscription]:
        paginator = CursorInBody("/nextCursor", size=ctx.settings.page_size)
        for page in ctx.api.pages(_PATH, paginator=paginator, records="/data", key="id"):
            yield from (_read(item, page.address) for item in page.items("/data"))

    def create(self, ctx: PlatformContext, topic: str, address: str) -> Subscription:
        """Subscribe to the events of *topic*, which are sorted and separated by commas."""
        headers = _key(ctx)

        def send() -> Subscription:
            body = {"url": address, "events": topic.split(",")}
            answer = ctx.api.request("POST", _PATH, json=body, headers=headers)
            secret = answer.at("/secret")
            if not isinstance(secret, str):
                raise RefusedError("has no secret of the new subscription", where=answer.address)
            return replace(_read(answer.body, answer.address), secret=secret)

        return created_once(self, ctx, topic, address, send, secret_is_known=False)

    def remove(self, ctx: PlatformContext, subscription: Subscription) -> None:
        try:
            ctx.api.request("DELETE", f"{_PATH}/{subscription.id}", headers=_key(ctx))
        except NotFoundError:
            return  # already removed


def _key(ctx: PlatformContext) -> Mapping[str, str]:
    """Return a header with a new idempotency key, or none if the platform does not support them."""
    idempotency = ctx.settings.profile.idempotency
    return {idempotency.header: str(uuid.uuid4())} if idempotency.enabled else {}


def _read(item: Any, source: str) -> Subscription:
    active = at_path(item, "status") == "enabled"
    found = read_subscription(item, source, topic="events", address="url", active=active)
    return replace(found, topic=",".join(sorted(found.topic.split(","))))
