"""The platform's webhooks: each event is a record of the streams that read its resource."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook as Reference
from tests.unit.connectors.webhook_judge import bodies, declared, hints_of, judge, settings_of

from crossdock.errors import RecordError
from crossdock.runs.platform_source import CONNECTOR
from crossdock.runs.platform_source.webhooks import RESOURCES, SCHEME
from crossdock.sandbox import webhook_events
from crossdock.sandbox.webhook_subscriptions import new_signing_secret, signed_headers
from crossdock.testing.manual_clock import ManualClock
from crossdock.webhooks import WebhookVerifier

MAP = {"resource": "product", "map": {"sku": "id", "name": "id"}}
STREAMS = {
    "orders": {"read": "order", **MAP},
    "shipped": {"read": "order", "mode": "snapshot", **MAP},
    "by_number": {"read": "order", "key": ["externalId"], **MAP},
    "lots": {"read": "inventory_lot", **MAP},
}
SETTINGS = settings_of(CONNECTOR, {"streams": STREAMS})


def of(topic: str, body: Any) -> list[tuple[str, ...]]:
    return hints_of(CONNECTOR, SETTINGS, topic, body)


def event(topic: str) -> dict[str, Any]:
    return {"type": topic, "timestamp": "2026-03-01T12:00:00Z", "data": {"id": "ord_1", "externalId": "0017"}}


def test_an_event_is_a_record_of_each_stream_that_reads_it_by_its_id() -> None:
    """A stream with another key cannot be told which record it is."""
    assert of("order.created", event("order.created")) == [("orders", "ord_1"), ("shipped", "ord_1")]
    assert of("inventory.lot_moved", event("inventory.lot_moved")) == [("lots", "ord_1")]


@pytest.mark.parametrize("topic", ["invoice.approved", "order.deleted", ""])
def test_other_events_give_nothing(topic: str) -> None:
    """No stream reads what they are about, or their types are not known."""
    assert of(topic, event(topic)) == []


def test_an_event_without_an_id_is_a_record_error() -> None:
    """With its place."""
    with pytest.raises(RecordError, match="/data/id: is missing"):
        of("order.created", {"type": "order.created", "data": {}})


@given(bodies(("type", "data", "id")), st.sampled_from([*RESOURCES, ""]))
def test_any_body_gives_hints_or_a_record_error(body: Any, topic: str) -> None:
    """Hints name streams of the connection, by whole keys."""
    judge(CONNECTOR, SETTINGS, topic, body)


def test_the_events_are_those_of_the_sandbox() -> None:
    """Each with its resource; those that no stream reads are not subscribed to."""
    assert dict(RESOURCES) == dict(webhook_events.RESOURCE_OF)
    found = declared(CONNECTOR, SETTINGS)
    assert (found.topic_member, found.topics) == ("/type", ["inventory.lot_moved,order.created"])


def test_what_the_sandbox_signs_is_verified() -> None:
    """By the declared scheme, and by PyPI's ``standardwebhooks``."""
    now, secret, body = datetime.now(UTC), new_signing_secret(), b'{"type":"order.created"}'
    headers = signed_headers("evt_1", int(now.timestamp()), body, [new_signing_secret(), secret])
    assert WebhookVerifier(SCHEME, [secret], ManualClock(now)).verify(body, headers).key == "evt_1"
    Reference(secret).verify(body, headers)


def test_without_the_section_nothing_is_accepted() -> None:
    """By default."""
    assert CONNECTOR.webhooks is not None
    assert CONNECTOR.webhooks(settings_of(CONNECTOR, {"streams": STREAMS}, webhooks=None)) is None
