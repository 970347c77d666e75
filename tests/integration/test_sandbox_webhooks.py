"""Webhooks of a real sandbox process: SIGKILL, signatures, and the clock."""

from __future__ import annotations

import json
import threading
import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from itertools import count
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from standardwebhooks import Webhook
from tests.sandbox_load import Platform, forked, process
from tests.unit.sandbox.webhook_receiver import SUBSCRIPTIONS, Received, Receiver

ORDERS = "/api/v1/sales/orders"
SENDERS = 4
DEADLINE_S = 120.0


class Orders:
    """Creates orders of one customer and product, each with its own externalId."""

    def __init__(self, platform: Platform) -> None:
        self._platform, self._numbers = platform, count()
        self._customer = platform.call("POST", "/api/v1/sales/customers", '{"externalId":"c","name":"n"}')["id"]
        product = '{"externalId":"p","sku":"s","name":"n"}'
        self._product = platform.call("POST", "/api/v1/catalog/products", product)["id"]

    def create(self) -> str:
        items = [{"productId": self._product, "quantity": 1, "unitPrice": 1}]
        members = {"externalId": f"o{next(self._numbers)}", "customerId": self._customer, "currency": "EUR"}
        body = json.dumps({**members, "placedAt": "2026-11-20T08:15:00Z", "items": items})
        return str(self._platform.call("POST", ORDERS, body)["id"])

    def create_until_killed(self) -> None:
        try:
            while True:
                self.create()
        except urllib.error.HTTPError:
            raise
        except (HTTPException, OSError):
            return

    def stored(self) -> Iterator[str]:
        """The ids of the orders whose creation was committed, by the effects log."""
        after = 0
        while page := self._platform.call("GET", f"/_sandbox/effects?resource=order&after={after}")["data"]:
            yield from (each["id"] for each in page)
            after = page[-1]["seq"]


@pytest.mark.nightly
def test_kills_lose_no_event_and_invent_none(tmp_path: Path) -> None:
    """SIGKILL three times amid creations and deliveries: every order of the effects log is reported, and no other."""
    lose_no_event_and_invent_none(tmp_path, kills=3)


def lose_no_event_and_invent_none(folder: Path, kills: int) -> None:
    random, running = Random(7), list[ForkServerProcess]()
    kill_at = 0
    told: set[str] = set()
    changed = threading.Condition()

    def answer(received: Received) -> int:
        with changed:
            told.add(json.loads(received.body)["data"]["id"])
            changed.notify_all()
            if kill_at and len(told) >= kill_at:
                running[-1].kill()
        return 200

    with Receiver(answer) as receiver:
        with forked(folder) as (_, facts):
            platform = Platform(**facts)
            orders = Orders(platform)
            subscription = {"url": receiver.url, "events": ["order.created"]}
            platform.call("POST", SUBSCRIPTIONS, json.dumps(subscription))
        for _ in range(kills):
            with forked(folder) as (sandbox, _):
                running.append(sandbox)
                with changed:
                    kill_at = len(told) + random.randint(5, 40)
                with ThreadPoolExecutor(SENDERS) as senders:
                    for each in [senders.submit(orders.create_until_killed) for _ in range(SENDERS)]:
                        each.result()
                sandbox.join()
        kill_at = 0
        with forked(folder):
            stored = set(orders.stored())
            with changed:
                assert changed.wait_for(lambda: stored <= told, DEADLINE_S)
    assert len(stored) >= kills * 5
    assert told == stored


def test_the_reference_library_verifies_deliveries_after_the_clock_was_moved(tmp_path: Path) -> None:
    """A retry that the moved clock makes due carries the real time, which a receiver accepts, and both signatures."""
    arrived = threading.Semaphore(0)
    statuses = iter([503, 200])

    def answer(_: Received) -> int:
        arrived.release()
        return next(statuses)

    with Receiver(answer) as receiver, process(tmp_path) as (_, facts):
        platform = Platform(**facts)
        orders = Orders(platform)
        body = json.dumps({"url": receiver.url, "events": ["order.created"]})
        subscription = platform.call("POST", SUBSCRIPTIONS, body)
        path = f"{SUBSCRIPTIONS}/{subscription['id']}"
        rotated = platform.call("POST", f"{path}/rotate-secret", "{}")
        order = orders.create()
        assert arrived.acquire(timeout=DEADLINE_S)
        first = delivery(platform, path, attempts=1)
        assert first["status"] == "pending"
        platform.call("POST", "/_sandbox/clock", '{"advance_s": 3600}')
        assert arrived.acquire(timeout=DEADLINE_S)
        assert delivery(platform, path, attempts=2)["status"] == "delivered"
    for received in receiver.received:
        for secret in (subscription["secret"], rotated["secret"]):
            event: Any = Webhook(secret).verify(received.body, received.headers)
            assert (event["type"], event["data"]["id"]) == ("order.created", order)


def delivery(platform: Platform, path: str, *, attempts: int) -> dict[str, Any]:
    """The only delivery, once the end of an attempt is stored: requests are repeated until then."""
    while True:
        (found,) = platform.call("GET", f"{path}/deliveries")["data"]
        if found["attemptCount"] >= attempts:
            return dict(found)
