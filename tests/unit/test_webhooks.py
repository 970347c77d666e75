"""What connectors declare about webhooks."""

from __future__ import annotations

import re
from typing import Any

from crossdock.webhooks import Webhook, Webhooks, WebhookScheme


def declared(ping: re.Pattern[bytes] | None) -> Webhooks[Any]:
    return Webhooks([WebhookScheme()], [], lambda _: (), ping=ping)


def test_a_ping_is_a_whole_body() -> None:
    """A vendor without pings sends none, whatever a body looks like."""
    found = declared(re.compile(b"ping=[0-9]+"))
    assert found.is_ping(b"ping=12")
    assert not found.is_ping(b"ping=12\n")
    assert not found.is_ping(b'{"a": "ping=12"}')
    assert not declared(None).is_ping(b"ping=12")


def test_a_webhook_is_read_like_a_record() -> None:
    """By pointers into the body; identifiers are text."""
    webhook = Webhook("order.created", {}, {"order": {"id": 17, "lines": [{"sku": "0017"}]}})
    assert webhook.identifier("/order/id") == "17"
    assert [line.identifier("/sku") for line in webhook.each("/order/lines")] == ["0017"]
    assert webhook.place("/order/id") == "/order/id"
