"""ShipBob's subscriptions to webhooks.

Source: developer.shipbob.com, pages Webhooks and Create, Get and Delete Subscription of version 2026-01. A subscription
may be created with a given secret. The documentation does not say whether ShipBob refuses duplicates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from crossdock import SecretRef
from crossdock.errors import ConfigError
from crossdock.sources import NextUrl, NotFoundError
from crossdock.values.json_paths import at_path
from crossdock.webhooks import Subscription, SubscriptionApi, created_once, read_subscription
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
    active = at_path(item, "enabled") is not False
    return read_subscription(item, source, topic="topics", address="url", active=active)
