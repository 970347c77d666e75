"""The webhooks that a config declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from crossdock.webhooks import Hint, Webhook, Webhooks
from crossdock_connectors.http_json.settings import HttpJsonSettings
from crossdock_connectors.http_json.webhook_settings import HintRule


def webhook_declaration(settings: HttpJsonSettings) -> Webhooks[HttpJsonSettings] | None:
    declared = settings.webhooks
    if declared is None:
        return None
    return Webhooks(
        [declared.scheme],
        declared.secrets,
        partial(_hints, declared.hints),
        topic_headers=() if declared.topic_header is None else (declared.topic_header,),
        topic_member=declared.topic_member or "",
        topics=tuple(dict.fromkeys(topic for rule in declared.hints for topic in rule.topics)),
    )


def _hints(rules: Sequence[HintRule], webhook: Webhook) -> Iterator[Hint]:
    for rule in rules:
        if not rule.topics or webhook.topic in rule.topics:
            yield from rule.hints(webhook)
