"""ShipBob's webhooks: signatures, topics, and the records that each is about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook as Reference
from tests.unit.connectors.webhook_judge import bodies, declared, hints_of, judge, settings_of

from crossdock.errors import RecordError
from crossdock.testing.manual_clock import ManualClock
from crossdock.webhooks import WebhookVerifier, signed_headers
from crossdock_connectors.threepl.shipbob import CONNECTOR
from crossdock_connectors.threepl.shipbob.webhooks import SCHEME

BASE = {"token": "env:TOKEN", "owner": "4711", "channel": 100102}
MOVED = {"stock_leaves": "movement", "receipts": "lot"}
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MEMBERS = ("id", "reference_id", "order_id", "status")
TOPICS = declared(CONNECTOR, settings_of(CONNECTOR, BASE, **MOVED)).topics
SHIPMENT = {"id": 67890, "order_id": 12345, "reference_id": "platform:ord_1%2F2", "status": "Completed"}


def of(topic: str, body: Any, **settings: Any) -> list[tuple[str, ...]]:
    return hints_of(CONNECTOR, settings_of(CONNECTOR, BASE, **settings), topic, body)


@pytest.mark.parametrize("topic", [topic for topic in TOPICS if topic.startswith("order.")])
def test_a_shipment_is_the_order_that_crossdock_has_sent(topic: str) -> None:
    """By the key in its external id; orders of others have none."""
    assert of(topic, SHIPMENT) == [("shipments", "ord_1/2")]
    assert of(topic, {**SHIPMENT, "reference_id": "ORD-001"}) == []
    assert of(topic, {"id": 67890}) == []


def test_a_completed_receiving_order_is_its_receipts() -> None:
    """Where they are read."""
    body = {"id": 987654, "status": "Completed", "inventory_quantities": [{"inventory_id": 1, "sku": "a"}]}
    assert of("wro.completed", body, **MOVED) == [("receipts", "4711", "987654", "", "")]
    assert of("wro.completed", body) == []


@pytest.mark.parametrize("topic", ["return.completed", "wro.created", "billing.charge.created", "order_shipped", ""])
def test_other_topics_give_nothing(topic: str) -> None:
    """Whatever their bodies have."""
    assert of(topic, SHIPMENT, **MOVED) == []


def test_an_id_that_is_missing_is_named() -> None:
    """The error has the place, not the body."""
    with pytest.raises(RecordError, match="/id: is missing"):
        of("wro.completed", {"status": "Completed"}, **MOVED)
    with pytest.raises(RecordError, match="/reference_id: is a whole number"):
        of("order.shipped", {"reference_id": 7})


@given(bodies(MEMBERS), st.sampled_from([*TOPICS, "return.created"]), st.sampled_from([{}, MOVED]))
def test_any_body_gives_hints_or_a_record_error(body: Any, topic: str, choice: dict[str, Any]) -> None:
    """Hints name streams of the connection; a key of receipts stands for several records."""
    settings = settings_of(CONNECTOR, BASE, **choice)
    judge(CONNECTOR, settings, topic, body, empty=("receipts",))


@given(st.binary(max_size=50).map(lambda raw: raw.hex()))
def test_the_reference_library_signs_and_verifies_the_same(text: str) -> None:
    """PyPI's ``standardwebhooks``, in both directions."""
    now, body = datetime.now(UTC).replace(microsecond=0), f'{{"id":"{text}"}}'
    at = int(now.timestamp())
    Reference(SECRET).verify(body, signed_headers(SCHEME, SECRET, body.encode(), delivery_id="msg_1", timestamp=at))
    sent = {"webhook-id": "msg_1", "webhook-timestamp": str(at)}
    signed = {**sent, "webhook-signature": Reference(SECRET).sign("msg_1", now, body)}
    assert WebhookVerifier(SCHEME, [SECRET], ManualClock(now)).verify(body.encode(), signed).key == "msg_1"


def test_the_declaration_is_that_of_the_settings() -> None:
    """Without the section nothing is accepted; receiving orders that are not read are not subscribed to."""
    found = declared(CONNECTOR, settings_of(CONNECTOR, BASE))
    assert set(TOPICS) - set(found.topics) == {"wro.completed"}
    assert found.topic_headers == ("x-webhook-topic",)
    assert CONNECTOR.webhooks is not None
    assert CONNECTOR.webhooks(settings_of(CONNECTOR, BASE, webhooks=None)) is None
