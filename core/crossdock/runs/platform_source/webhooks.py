"""The platform's webhooks as hints. They follow Standard Webhooks; the body has the type of the event and the
resource.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from crossdock.resources import ResourceName
from crossdock.runs.platform_source.settings import PlatformSourceSettings
from crossdock.runs.platform_source.subscriptions import PlatformSubscriptions
from crossdock.webhooks import Hint, Webhook, Webhooks, WebhookScheme

SCHEME = WebhookScheme()
RESOURCES: Mapping[str, ResourceName] = {
    "order.created": "order",
    "inventory.lot_moved": "inventory_lot",
    "invoice.approved": "invoice",
}
"""The resource by the type of the event, as ``webhooks`` of the sandbox's OpenAPI document has them."""


def received(settings: PlatformSourceSettings) -> Webhooks[PlatformSourceSettings] | None:
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
