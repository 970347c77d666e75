from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.unit.sandbox.raw import Raw, assert_problem
from tests.unit.sandbox.webhook_receiver import SUBSCRIPTIONS, Receiver, Webhooks


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.fixture
def webhooks(raw: Raw) -> Webhooks:
    return Webhooks(raw)


def inject(raw: Raw, *faults: dict[str, object], seed: int = 0) -> None:
    assert raw("POST", "/_sandbox/faults", json.dumps({"faults": faults, "seed": seed})).status_code == 200


def test_a_delivery_shows_its_attempts(webhooks: Webhooks, receiver: Receiver) -> None:
    """A failed and a successful attempt, oldest first, and when the next one is due in between."""
    receiver.answer = lambda _: 503
    subscription = webhooks.subscribe(receiver.url)
    webhooks.order()
    webhooks.deliver()
    (pending,) = webhooks.deliveries(subscription)
    assert (pending["status"], pending["attemptCount"], pending["type"]) == ("pending", 1, "order.created")
    assert "2027-01-15T08:00:05.0" <= pending["nextAttemptAt"] <= "2027-01-15T08:00:05.6"
    receiver.answer = lambda _: 200
    webhooks.advance(5.5)
    webhooks.deliver()
    delivery = webhooks.get(subscription, f"/deliveries/{pending['id']}")
    assert delivery["eventId"] == receiver.received[0].id == receiver.received[1].id
    shown = [(each["status"], each["problem"]) for each in delivery["attempts"]]
    assert shown == [(503, "response 503"), (200, None)]
    assert (delivery["status"], "nextAttemptAt" in delivery) == ("delivered", False)


def test_a_delivery_can_be_repeated(raw: Raw, webhooks: Webhooks, receiver: Receiver) -> None:
    """It is sent again under the same id, with retries; 409 for a disabled subscription, 404 for an unknown id."""
    subscription = webhooks.subscribe(receiver.url)
    webhooks.order()
    webhooks.deliver()
    (delivery,) = webhooks.deliveries(subscription)
    path = f"{SUBSCRIPTIONS}/{subscription['id']}/deliveries/{delivery['id']}/redeliver"
    receiver.answer = lambda _: 500
    assert raw("POST", path).status_code == 202
    webhooks.deliver()
    assert webhooks.deliveries(subscription)[0]["status"] == "pending"
    receiver.answer = lambda _: 200
    webhooks.advance(5.5)
    webhooks.deliver()
    assert webhooks.deliveries(subscription)[0]["status"] == "delivered"
    assert receiver.ids == [delivery["eventId"]] * 3
    webhooks.change(subscription, status="disabled")
    assert_problem(raw("POST", path), 409)
    assert_problem(raw("POST", path.replace("dlv_", "dlv_0")), 404)
    assert_problem(raw("POST", path, '{"now":true}'), 422)


def test_deliveries_are_listed_in_pages(webhooks: Webhooks, receiver: Receiver) -> None:
    """The newest first, each once."""
    subscription = webhooks.subscribe(receiver.url)
    for _ in range(3):
        webhooks.order()
    webhooks.deliver()
    first = webhooks.get(subscription, "/deliveries?limit=2")
    second = webhooks.get(subscription, f"/deliveries?limit=2&cursor={first['nextCursor']}")
    found = [each["eventId"] for each in (*first["data"], *second["data"])]
    assert sorted(found) == sorted(receiver.ids)
    assert second["nextCursor"] is None


def test_a_duplicate_has_the_same_id(raw: Raw, webhooks: Webhooks, receiver: Receiver) -> None:
    """webhook_duplicate sends a delivery that succeeded once more; both attempts are shown."""
    inject(raw, {"name": "webhook_duplicate", "probability": 1})
    subscription = webhooks.subscribe(receiver.url)
    webhooks.order()
    webhooks.deliver()
    assert len(receiver.ids) == 2
    assert len(set(receiver.ids)) == 1
    assert [(each["status"], each["attemptCount"]) for each in webhooks.deliveries(subscription)] == [("delivered", 2)]


def test_a_late_delivery_waits(raw: Raw, webhooks: Webhooks, receiver: Receiver) -> None:
    """webhook_late holds a delivery back for its milliseconds by the sandbox's clock."""
    inject(raw, {"name": "webhook_late", "probability": 1, "ms": 60_000})
    webhooks.subscribe(receiver.url)
    webhooks.order()
    webhooks.advance(59)
    webhooks.deliver()
    webhooks.advance(59.9)
    webhooks.deliver()
    assert receiver.received == []
    webhooks.advance(0.1)
    webhooks.deliver()
    assert len(receiver.received) == 1


@pytest.mark.parametrize("followed", [True, False])
def test_a_reordered_delivery_is_sent_after_the_next(
    raw: Raw, webhooks: Webhooks, receiver: Receiver, followed: bool
) -> None:
    """webhook_reorder sends it at once after a later delivery, or after its milliseconds if there is none."""
    inject(raw, {"name": "webhook_reorder", "probability": 1, "ms": 60_000})
    subscription = webhooks.subscribe(receiver.url)
    webhooks.order()
    webhooks.deliver()
    assert receiver.received == []
    raw("DELETE", "/_sandbox/faults")
    if followed:
        webhooks.order()
    else:
        webhooks.advance(60)
    webhooks.deliver()
    ids = [each["eventId"] for each in webhooks.deliveries(subscription)]
    assert receiver.ids == ids[::-1]


def test_a_fault_can_be_for_one_subscription(raw: Raw, webhooks: Webhooks, receiver: Receiver) -> None:
    """Its route is the path of the subscription."""
    struck, spared = webhooks.subscribe(receiver.url), webhooks.subscribe(receiver.url)
    inject(raw, {"name": "webhook_late", "probability": 1, "route": f"{SUBSCRIPTIONS}/{struck['id']}"})
    webhooks.order()
    webhooks.deliver()
    assert [webhooks.deliveries(each)[0]["status"] for each in (struck, spared)] == ["pending", "delivered"]


def test_a_deleted_subscription_leaves_nothing(raw: Raw, webhooks: Webhooks, receiver: Receiver) -> None:
    """Its deliveries are gone, and those that were due are not sent."""
    subscription = webhooks.subscribe(receiver.url)
    webhooks.order()
    assert raw("DELETE", f"{SUBSCRIPTIONS}/{subscription['id']}").status_code == 204
    webhooks.deliver()
    assert receiver.received == []
    assert_problem(raw("GET", f"{SUBSCRIPTIONS}/{subscription['id']}/deliveries"), 404)
