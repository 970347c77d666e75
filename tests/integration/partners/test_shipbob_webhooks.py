"""The fake of ShipBob sends webhooks as ShipBob documents it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import standardwebhooks
from tests.partners import shipbob_schema as schema
from tests.partners.partner_transport import transport
from tests.partners.shipbob import ShipBob
from tests.partners.shipbob_client import CHANNELS, LOCATIONS, conforms, order, placed, stocked
from tests.unit.sandbox.webhook_receiver import Receiver

from crossdock.testing import ManualClock

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SHIPMENTS = ("order.shipment.exception", "order.shipment.on_hold", "order.shipment.cancelled")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime.now(UTC))  # the verifier below compares with the time of this machine


@pytest.fixture
def fake(clock: ManualClock) -> ShipBob:
    return ShipBob({"ours": [1, 2], "rival": [3]}, CHANNELS, LOCATIONS, limit=100_000, now=clock.now)


@pytest.fixture
def http(fake: ShipBob) -> httpx.Client:
    headers = {"Authorization": "Bearer ours"}
    return httpx.Client(transport=transport(fake), base_url="http://shipbob.example/2026-01", headers=headers)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def subscribed(http: httpx.Client, receiver: Receiver, *topics: str) -> Any:
    answer = http.post("/webhook", json={"topics": topics, "url": receiver.url, "secret": SECRET})
    assert answer.status_code == 200, answer.text
    return answer.json()


def delivered(fake: ShipBob, receiver: Receiver) -> list[tuple[str, Any]]:
    """Topic and body of each webhook that has arrived since the last call."""
    receiver.received.clear()
    fake.sender.send_until_empty(random.Random(1))
    return [(each.headers["x-webhook-topic"], json.loads(each.body)) for each in receiver.received]


def test_an_order_is_told_of_once_when_all_of_it_is_shipped(
    fake: ShipBob, http: httpx.Client, receiver: Receiver
) -> None:
    """A part that is shipped is not told of; the body is the order."""
    subscribed(http, receiver, "order.shipped")
    stocked(fake, "LAMP", 5)
    made = placed(http, order("R1", LAMP=3))
    assert delivered(fake, receiver) == []
    fake.warehouse.ship(made["id"], {"LAMP": 1})
    assert delivered(fake, receiver) == []
    fake.warehouse.ship(made["id"])
    [(topic, body)] = delivered(fake, receiver)
    assert topic == "order.shipped"
    conforms(body, schema.ORDER)
    assert (body["reference_id"], body["status"], len(body["shipments"])) == ("R1", "Fulfilled", 2)
    fake.warehouse.adjust_stock(fake.warehouse.product(1, "LAMP").inventory_id, 8, 1)
    assert delivered(fake, receiver) == []


def test_a_shipment_that_cannot_be_sent(fake: ShipBob, http: httpx.Client, receiver: Receiver) -> None:
    """Missing stock, a hold and a cancellation; the body is the shipment."""
    subscribed(http, receiver, *SHIPMENTS)
    item = stocked(fake, "LAMP", 1)
    made = placed(http, order("R1", LAMP=3))
    [(topic, body)] = delivered(fake, receiver)
    assert (topic, body["order_id"], body["status"]) == ("order.shipment.exception", made["id"], "Exception")
    fake.warehouse.adjust_stock(item, 8, 2)
    assert delivered(fake, receiver) == []
    fake.warehouse.put_on_hold(made["id"])
    fake.warehouse.cancel(made["id"])
    assert [topic for topic, _ in delivered(fake, receiver)] == ["order.shipment.on_hold", "order.shipment.cancelled"]


def test_a_receiving_order(fake: ShipBob, http: httpx.Client, receiver: Receiver) -> None:
    """It is announced, received in part, and completed."""
    item = stocked(fake, "LAMP", 1)
    subscribed(http, receiver, "wro.created", "wro.updated", "wro.completed")
    box = {"tracking_number": "1Z", "box_items": [{"inventory_id": item, "quantity": 5}]}
    body = {
        "fulfillment_center": {"id": 8},
        "boxes": [box],
        "expected_arrival_date": "2026-03-10T00:00:00Z",
        "package_type": "Package",
        "box_packaging_type": "EverythingInOneBox",
    }
    made = http.post("/receiving", json=body)
    assert made.is_success, made.text
    number = made.json()["id"]
    fake.warehouse.receive(number, {(item, None): 2}, final=False)
    fake.warehouse.receive(number, {(item, None): 3})
    found = delivered(fake, receiver)
    assert [(topic, body["id"]) for topic, body in found] == [
        ("wro.created", number),
        ("wro.updated", number),
        ("wro.completed", number),
    ]
    assert [body["inventory_quantities"][0]["received_quantity"] for _, body in found] == [0, 2, 5]


def test_the_signature_is_that_of_standard_webhooks(
    fake: ShipBob, http: httpx.Client, receiver: Receiver, clock: ManualClock
) -> None:
    """The reference implementation accepts it; a retry has the same id and the time of its own."""
    subscribed(http, receiver, *SHIPMENTS)
    stocked(fake, "LAMP", 0)
    placed(http, order("R1", LAMP=1))
    receiver.answer = lambda _: 503 if len(receiver.received) < 2 else 200
    fake.sender.send_all(random.Random(1))
    clock.advance(timedelta(seconds=5).total_seconds())
    fake.sender.send_all(random.Random(1))
    first, second = receiver.received
    for each in (first, second):
        standardwebhooks.Webhook(SECRET).verify(each.body.decode(), each.headers)
    assert first.id == second.id
    assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) == 5


def test_an_address_that_fails_is_disabled(fake: ShipBob, http: httpx.Client, receiver: Receiver) -> None:
    """After eight attempts; what happens then is not sent."""
    subscribed(http, receiver, *SHIPMENTS)
    receiver.answer = lambda _: 500
    stocked(fake, "LAMP", 0)
    placed(http, order("R1", LAMP=1))
    assert len(delivered(fake, receiver)) == 8
    assert [each["enabled"] for each in http.get("/webhook").json()["items"]] == [False]
    placed(http, order("R2", LAMP=1))
    assert delivered(fake, receiver) == []


def test_only_new_events_of_own_channels_are_told(fake: ShipBob, http: httpx.Client, receiver: Receiver) -> None:
    """Neither what happened before the subscription, nor what happens to another merchant."""
    stocked(fake, "LAMP", 0)
    placed(http, order("R1", LAMP=1))
    subscribed(http, receiver, *SHIPMENTS)
    rival = {"Authorization": "Bearer rival", "shipbob_channel_id": "3"}
    assert http.post("/order", json=order("R2", LAMP=1), headers=rival).status_code == 201
    assert delivered(fake, receiver) == []
    assert http.get("/webhook", headers=rival).json()["items"] == []


def test_subscriptions_are_created_listed_and_deleted(http: httpx.Client, receiver: Receiver) -> None:
    """The secret is in the answer to the creation alone; one is made if none is given; duplicates are accepted."""
    first = subscribed(http, receiver, "order.shipped")
    second = http.post("/webhook", json={"topics": ["order.shipped"], "url": receiver.url}).json()
    assert (first["secret"], second["secret"][:6]) == (SECRET, "whsec_")
    listed = http.get("/webhook").json()["items"]
    assert [each["id"] for each in listed] == [first["id"], second["id"]]
    assert not any("secret" in each for each in listed)
    assert http.delete(f"/webhook/{first['id']}").status_code == 204
    assert http.delete(f"/webhook/{first['id']}").status_code == 404
    assert len(http.get("/webhook").json()["items"]) == 1


@pytest.mark.parametrize(
    "change", [{"topics": ["order.eaten"]}, {"topics": []}, {"url": "http://hooks.example"}, {"secret": "s"}], ids=str
)
def test_what_shipbob_refuses(http: httpx.Client, change: dict[str, Any]) -> None:
    """Unknown topics, an address that is not https, a secret of another form."""
    body = {"topics": ["order.shipped"], "url": "https://hooks.example", "secret": SECRET, **change}
    assert http.post("/webhook", json=body).status_code == 400
