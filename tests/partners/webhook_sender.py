"""Sends the webhooks of a fake to the addresses that are subscribed, as its vendor does, with faults on request.

The fake queues a delivery at each change. A test calls `WebhookSender.send_all`, or a thread does (`sending`). Each
call is one round: what fails is sent again in the next, without a pause between. Only this machine is called.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

import httpx

WebhookFault = Literal["lost", "doubled", "delayed", "reordered", "replayed", "forged"]
"""``lost``: never sent. ``doubled``: sent twice in the round. ``delayed``: sent in the next round. ``reordered``: sent
after all others of the round. ``replayed``: an earlier request follows it, byte for byte. ``forged``: before it comes a
request with its headers and another body."""
_PAUSE_S = 0.02  # between rounds of a thread
_TIMEOUT_S = 30.0


@dataclass(slots=True)
class Delivery:
    """One webhook to one address.

    Attributes:
        subscription: The id of the subscription at the fake.
        event: What the deliveries of one change to several addresses have in common.
        attempts: How often it was sent.
        waited: Whether it was delayed already.
    """

    id: str
    topic: str
    body: bytes
    address: str
    subscription: str
    queued: datetime
    event: str = ""
    attempts: int = 0
    waited: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """One request, or with the fault ``lost`` one that was not made.

    Attributes:
        status: Of the answer; None if there was none.
        fault: That of this request; None for an attempt as the vendor makes it.
    """

    delivery: Delivery
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    fault: WebhookFault | None
    status: int | None

    @property
    def topic(self) -> str:
        return self.delivery.topic

    @property
    def accepted(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class WebhookSender:
    """The deliveries of one fake.

    Args:
        headers: Makes the headers of one request, with its signature; the time is that of the request.
        now: Says the time; aware.
        attempts: How often the vendor sends a delivery that fails.
        ended: Called after each delivery that needs no further request, with whether it was accepted. It may change
            the fake's subscriptions.
        transport: In place of the network.

    Attributes:
        faults: Share of deliveries with each fault, drawn when a delivery is sent for the first time.
        pending: What is queued, oldest first.
        sent: Every request, oldest first.
    """

    def __init__(
        self,
        headers: Callable[[Delivery, datetime], Mapping[str, str]],
        now: Callable[[], datetime],
        *,
        attempts: int,
        ended: Callable[[Delivery, bool], None] = lambda _delivery, _accepted: None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._headers, self._now, self._attempts, self._ended = headers, now, attempts, ended
        self.faults: Mapping[WebhookFault, float] = {}
        self.pending: list[Delivery] = []
        self.sent: list[Sent] = []
        self._lock, self._dropped = threading.Lock(), set[str]()
        # Without connections that stay open, there is nothing to close.
        single = httpx.Limits(max_keepalive_connections=0)
        self._http = httpx.Client(transport=transport, trust_env=False, timeout=_TIMEOUT_S, limits=single)

    def add(self, delivery: Delivery) -> None:
        with self._lock:
            self.pending.append(delivery)

    def drop(self, subscription: str) -> None:
        """Send nothing more for a subscription that has ended."""
        with self._lock:
            self._dropped.add(subscription)
            self.pending = [each for each in self.pending if each.subscription != subscription]

    def send_all(self, rng: random.Random) -> None:
        """Send what is pending, in one round. Deliveries that are queued meanwhile are left for the next."""
        with self._lock:
            round_, self.pending = self.pending, []
        for delivery, fault in self._planned(round_, rng):
            if delivery.subscription not in self._dropped:
                self._carry_out(delivery, fault, rng)

    def send_until_empty(self, rng: random.Random) -> None:
        """Send rounds until nothing is pending."""
        while self.pending:
            self.send_all(rng)

    def _planned(self, deliveries: list[Delivery], rng: random.Random) -> list[tuple[Delivery, WebhookFault | None]]:
        now: list[tuple[Delivery, WebhookFault | None]] = []
        late: list[tuple[Delivery, WebhookFault | None]] = []
        for each in deliveries:
            fault = None if each.attempts or each.waited else self._drawn(rng)
            (late if fault == "reordered" else now).append((each, fault))
        rng.shuffle(late)
        return now + late

    def _drawn(self, rng: random.Random) -> WebhookFault | None:
        drawn = rng.random()
        for fault, share in self.faults.items():
            if drawn < share:
                return fault
            drawn -= share
        return None

    def _carry_out(self, delivery: Delivery, fault: WebhookFault | None, rng: random.Random) -> None:
        if fault == "delayed":
            delivery.waited = True
            self.add(delivery)
            return
        if fault == "lost":
            self.sent.append(Sent(delivery, {}, delivery.body, "lost", None))
            return
        headers = self._headers(delivery, self._now())
        if fault == "forged":
            self._request(delivery, headers, delivery.body + b" ", "forged")
        accepted = self._request(delivery, headers, delivery.body, "reordered" if fault == "reordered" else None)
        delivery.attempts += 1
        if fault == "doubled":
            self._request(delivery, headers, delivery.body, "doubled")
        if fault == "replayed":
            earlier = rng.choice([each for each in self.sent if each.fault not in {"lost", "forged"}])
            self._request(earlier.delivery, earlier.headers, earlier.body, "replayed")
        if not accepted and delivery.attempts < self._attempts:
            self.add(delivery)
        else:
            self._ended(delivery, accepted)

    def _request(self, delivery: Delivery, headers: Mapping[str, str], body: bytes, fault: WebhookFault | None) -> bool:
        assert _is_this_machine(delivery.address), delivery.address
        try:
            status: int | None = self._http.post(delivery.address, content=body, headers=dict(headers)).status_code
        except httpx.HTTPError:
            status = None
        made = Sent(delivery, headers, body, fault, status)
        self.sent.append(made)
        return made.accepted


@contextmanager
def sending(sender: WebhookSender, rng: random.Random) -> Iterator[WebhookSender]:
    """A thread that sends what is pending. At the end it sends what is left, until nothing is."""
    ending = threading.Event()

    def work() -> None:
        while not ending.wait(_PAUSE_S):
            sender.send_all(rng)
        sender.send_until_empty(rng)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield sender
    finally:
        ending.set()
        thread.join()


def signature(key: bytes, content: bytes) -> str:
    """HMAC-SHA256 in base64, which all vendors here use."""
    return base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


def _is_this_machine(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    return host == "localhost" or ip_address(host).is_loopback
