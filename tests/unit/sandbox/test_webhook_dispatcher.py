from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sandbox.raw import INVOICES, ORDERS, ManualTime, Raw, exact
from tests.unit.sandbox.stock import Stock
from tests.unit.sandbox.webhook_receiver import Receiver, Webhooks

from crossdock.sandbox import Sandbox
from crossdock.sandbox.webhook_deliveries import JITTER, RETRY_DELAYS_S


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.fixture
def webhooks(raw: Raw) -> Webhooks:
    return Webhooks(raw)


def test_each_event_is_sent_with_the_resource_as_it_was_stored(
    raw: Raw, webhooks: Webhooks, receiver: Receiver
) -> None:
    """A created order, a moved lot and an approved invoice are sent once each, with exact numbers and their time."""
    webhooks.subscribe(receiver.url, "order.created", "inventory.lot_moved", "invoice.approved", concurrency=1)
    stock = Stock(raw)
    order = webhooks.order()
    movement = exact(stock.move("2.5"))
    invoice = raw.make(INVOICES, raw.invoice())
    approved = exact(raw("POST", f"{INVOICES}/{invoice}/approve"))
    assert raw("POST", f"{INVOICES}/{invoice}/approve").status_code == 200
    webhooks.deliver()
    expected = [
        ("order.created", exact(raw("GET", f"{ORDERS}/{order}"))),
        ("inventory.lot_moved", movement),
        ("invoice.approved", approved),
    ]
    bodies = [json.loads(each.body, parse_float=type(movement["quantity"])) for each in receiver.received]
    assert [(each["type"], each["data"]) for each in bodies] == expected
    assert {each["timestamp"] for each in bodies} == {"2027-01-15T08:00:00.000000Z"}
    assert all(list(each) == ["type", "timestamp", "data"] for each in bodies)
    webhooks.deliver()
    assert len(set(receiver.ids)) == len(receiver.ids) == 3


def test_a_subscription_begins_at_the_present_and_gets_its_events_only(webhooks: Webhooks, receiver: Receiver) -> None:
    """Neither earlier events nor those of other types are sent."""
    webhooks.order()
    webhooks.subscribe(receiver.url, "invoice.approved")
    webhooks.subscribe(receiver.url)
    webhooks.order()
    webhooks.deliver()
    assert len(receiver.received) == 1


def test_events_of_another_tenant_are_not_sent(webhooks: Webhooks, receiver: Receiver, sandbox: Sandbox) -> None:
    """A subscription gets the events of its own tenant."""
    webhooks.subscribe(receiver.url)
    key = sandbox.new_key("other")
    other = Webhooks(_Tenant(sandbox, key))
    other.order()
    other.deliver()
    assert receiver.received == []


class _Tenant(Raw):
    def __init__(self, sandbox: Sandbox, key: str) -> None:
        super().__init__(sandbox, key=key)

    def request(self, method: str, path: str, body: str | bytes | None = None, **headers: str | None) -> Any:
        return super().request(method, path, body, **{"x_tenant_slug": "other", **headers})


def test_a_refused_change_has_no_event(webhooks: Webhooks, receiver: Receiver, raw: Raw) -> None:
    """An order that is refused after it was stored in its transaction, or replayed under its key, sends nothing."""
    webhooks.subscribe(receiver.url)
    webhooks.order()
    refused = raw("POST", ORDERS, '{"externalId":"o1"}')
    assert refused.status_code == 422
    webhooks.deliver()
    assert len(receiver.received) == 1


def test_attempts_follow_the_schedule_within_their_jitter(
    webhooks: Webhooks, clock: ManualTime, receiver: Receiver
) -> None:
    """Ten attempts, each when its delay has passed and at most a tenth later; then the subscription is disabled."""
    receiver.answer = lambda _: 500
    subscription = webhooks.subscribe(receiver.url)
    webhooks.order()
    webhooks.deliver()
    for number, delay_s in enumerate(RETRY_DELAYS_S[1:], 1):
        assert len(receiver.received) == number
        webhooks.advance(delay_s - 0.001)
        webhooks.deliver()
        assert len(receiver.received) == number
        webhooks.advance(delay_s * JITTER + 0.001)
        webhooks.deliver()
    assert len(receiver.received) == 10
    assert len(set(receiver.ids)) == 1
    stopped = webhooks.get(subscription)
    assert stopped["status"] == "disabled"
    assert stopped["disabledReason"].endswith("the last one: response 500.")
    (delivery,) = webhooks.deliveries(subscription)
    assert (delivery["status"], delivery["attemptCount"]) == ("failed", 10)
    webhooks.advance(10**6)
    webhooks.deliver()
    assert len(receiver.received) == 10


def test_a_failing_delivery_does_not_disable_a_subscription_that_works(webhooks: Webhooks, receiver: Receiver) -> None:
    """One event that the receiver never accepts is given up; the others are delivered."""
    subscription = webhooks.subscribe(receiver.url, concurrency=1)
    webhooks.order()
    receiver.answer = lambda each: 500 if each.id == receiver.received[0].id else 200
    for delay_s in RETRY_DELAYS_S:
        webhooks.advance(delay_s * (1 + JITTER))
        webhooks.deliver()
        webhooks.order()
    webhooks.deliver()
    assert webhooks.get(subscription)["status"] == "enabled"
    assert [each["status"] for each in webhooks.deliveries(subscription)] == ["failed"] + ["delivered"] * 10


def test_gone_ends_a_subscription(webhooks: Webhooks, receiver: Receiver) -> None:
    """After 410 nothing more is sent, and the subscription says why; enabled again it continues where it was."""
    receiver.answer = lambda _: 410
    subscription = webhooks.subscribe(receiver.url)
    webhooks.order()
    webhooks.deliver()
    webhooks.order()
    webhooks.advance(10**6)
    webhooks.deliver()
    assert len(receiver.received) == 1
    assert webhooks.get(subscription)["disabledReason"] == "The receiver answered 410 Gone."
    receiver.answer = lambda _: 204
    assert "disabledReason" not in webhooks.change(subscription, status="enabled")
    webhooks.deliver()
    assert [each["status"] for each in webhooks.deliveries(subscription)] == ["failed", "delivered"]


def test_redirects_are_failures_and_not_followed(webhooks: Webhooks, receiver: Receiver) -> None:
    """307 to another path of the same receiver is one request, and is tried again later."""
    receiver.answer = lambda _: 307
    subscription = webhooks.subscribe(receiver.url)
    webhooks.order()
    webhooks.deliver()
    assert len(receiver.received) == 1
    (delivery,) = webhooks.deliveries(subscription)
    (attempt,) = webhooks.get(subscription, f"/deliveries/{delivery['id']}")["attempts"]
    assert (attempt["status"], attempt["problem"]) == (307, "response 307, a redirect is not followed")


def test_a_restart_loses_no_event(tmp_path: Path, clock: ManualTime, receiver: Receiver) -> None:
    """Events committed before a stop, and deliveries whose attempt was not stored, are sent after the next start."""
    with Sandbox(tmp_path, clock=clock) as sandbox:
        webhooks = Webhooks(Raw(sandbox))
        webhooks.subscribe(receiver.url)
        webhooks.order()
        key = webhooks.raw.key
    with Sandbox(tmp_path, clock=clock) as sandbox:
        webhooks.raw = Raw(sandbox, key=key)
        webhooks.deliver()
    assert len(receiver.received) == 1


def test_a_receiver_that_is_down_delays_no_other(webhooks: Webhooks, receiver: Receiver) -> None:
    """Three orders reach a receiver although another one refuses connections."""
    with Receiver() as stopped:
        pass
    dead = webhooks.subscribe(stopped.url)
    webhooks.subscribe(receiver.url)
    for _ in range(3):
        webhooks.order()
    webhooks.deliver()
    assert len(receiver.received) == 3
    (attempt,) = webhooks.get(dead, f"/deliveries/{webhooks.deliveries(dead)[0]['id']}")["attempts"]
    assert (attempt["status"], attempt["problem"]) == (None, "the receiver cannot be reached")


def test_a_stop_at_the_moment_of_an_event_is_not_lost(webhooks: Webhooks) -> None:
    """The sandbox ends at once, although something was committed right before."""

    async def stop_as_it_wakes() -> bool:
        dispatcher = webhooks.raw.sandbox.webhooks
        running = asyncio.create_task(dispatcher.run())
        for _ in range(10):
            await asyncio.sleep(0)
        dispatcher.wake()
        await asyncio.sleep(0)
        running.cancel()
        done, _ = await asyncio.wait([running], timeout=10)
        return bool(done)

    assert asyncio.run(stop_as_it_wakes())
