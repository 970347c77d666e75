"""Webhooks of the fake of ShipBob: subscriptions, and a delivery for each change of a shipment or receiving order.

Source: developer.shipbob.com, pages Webhooks and Create, Get and Delete Subscription of version 2026-01, and Standard
Webhooks 1.0. Where they leave something open or disagree:

- ``order.shipped`` comes once, with the whole order, when no shipment of it is open any more; earlier versions had one
  for each shipment. The others carry the shipment or the receiving order. ShipBob publishes no schema of bodies.
- Subscriptions belong to what the token sees. Several with the same topics and address are accepted.
- ShipBob makes a secret if none is given, and tells it only in the answer to the creation.
- Topics of receiving orders are in the guide, and not in each list of the reference.
- Addresses on this machine may be http.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field
from tests.partners.shipbob_answers import moment, order_view, shipment_view
from tests.partners.shipbob_requests import Body, Text
from tests.partners.shipbob_state import Order, Shipment, ShipmentStatus, Wro
from tests.partners.shipbob_stock_answers import wro_view
from tests.partners.shipbob_warehouse import Warehouse
from tests.partners.webhook_sender import Delivery, WebhookSender, signature

from crossdock.values import exact_json

Topic = Literal[
    "order.shipped", "order.shipment.delivered", "order.shipment.exception", "order.shipment.on_hold",
    "order.shipment.cancelled", "return.created", "return.updated", "return.completed", "wro.created", "wro.updated",
    "wro.completed",
]  # fmt: skip
_ATTEMPTS = 8  # at once, and after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h
_OF_STATUS: dict[ShipmentStatus, Topic] = {
    "Exception": "order.shipment.exception",
    "OnHold": "order.shipment.on_hold",
    "Cancelled": "order.shipment.cancelled",
}
Told = tuple[Topic, int, Any]
"""A topic, the channel that it is about, and the body."""


class CreateSubscription(Body):
    topics: Annotated[list[Topic], Field(min_length=1)]
    url: Annotated[Text, Field(pattern=r"^(https://|http://(127\.0\.0\.1|localhost)[:/])")]
    description: str | None = None
    secret: Annotated[str, Field(pattern=r"^whsec_[a-zA-Z0-9+/]{32}$")] | None = None


@dataclass(slots=True)
class Subscription:
    """One subscription; *seen* are the channels of the token that created it."""

    id: int
    seen: frozenset[int]
    body: dict[str, Any]
    secret: str
    created: datetime
    enabled: bool = True

    def view(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "topics": self.body["topics"],
            "url": self.body["url"],
            "description": self.body.get("description"),
            "created_at": moment(self.created),
        }


class Webhooks:
    """All subscriptions, and what they have been told of *warehouse*."""

    def __init__(self, warehouse: Warehouse, now: Callable[[], datetime]) -> None:
        self._warehouse, self._now = warehouse, now
        self.subscriptions: dict[int, Subscription] = {}
        self.sender = WebhookSender(self._headers, now, attempts=_ATTEMPTS, ended=self._ended)
        self._open, self._statuses = set[int](), dict[int, ShipmentStatus]()
        self._wros: dict[int, tuple[int, ...]] = {}
        warehouse.watchers.append(self._changed)

    def of(self, seen: frozenset[int]) -> list[Subscription]:
        """Those of tokens that see the same channels, oldest first."""
        return [each for each in self.subscriptions.values() if each.seen == seen]

    def create(self, seen: frozenset[int], body: dict[str, Any]) -> Subscription:
        if not self.subscriptions:
            list(self._news())  # what happened earlier is not told
        number = self._warehouse.next_id(900_000)
        secret = (
            body.get("secret") or f"whsec_{base64.b64encode(hashlib.sha256(b'%d' % number).digest()[:24]).decode()}"
        )
        made = self.subscriptions[number] = Subscription(number, seen, body, secret, self._warehouse.now())
        return made

    def delete(self, seen: frozenset[int], number: int) -> bool:
        """Whether there was such a subscription."""
        if number not in {each.id for each in self.of(seen)}:
            return False
        del self.subscriptions[number]
        self.sender.drop(str(number))
        return True

    # ---- what happened

    def _changed(self) -> None:
        """Queue what is new since the last change."""
        if not self.subscriptions:
            return
        for topic, channel, view in list(self._news()):
            body = exact_json.dumps(view)
            for each in self.subscriptions.values():
                if each.enabled and channel in each.seen and topic in each.body["topics"]:
                    name = f"msg_{self._warehouse.next_id(0):012}"
                    self.sender.add(Delivery(name, topic, body, each.body["url"], str(each.id), self._now()))

    def _news(self) -> Iterator[Told]:
        room = self._warehouse
        for number in sorted(self._open | room.open_orders.keys()):
            yield from self._of_order(room.orders[number])
        self._open = set(room.open_orders)
        for wro in room.wros.values():
            yield from self._of_wro(wro)

    def _of_order(self, order: Order) -> Iterator[Told]:
        for shipment in order.shipments:
            if self._statuses.get(shipment.id) != shipment.status:
                self._statuses[shipment.id] = shipment.status
                yield from self._of_shipment(order, shipment)
        if order.status == "Fulfilled":
            yield "order.shipped", order.channel.id, order_view(order, self._warehouse)

    def _of_shipment(self, order: Order, shipment: Shipment) -> Iterator[Told]:
        if topic := _OF_STATUS.get(shipment.status):
            yield topic, order.channel.id, shipment_view(shipment, order, self._warehouse)

    def _of_wro(self, wro: Wro) -> Iterator[Told]:
        units = (len(wro.history), *(each for item in wro.items for each in (item.received, item.stowed)))
        before, self._wros[wro.id] = self._wros.get(wro.id), units
        if before != units:
            topic: Topic = "wro.completed" if wro.status == "Completed" else "wro.updated"
            yield topic if before else "wro.created", wro.channel.id, wro_view(wro, self._warehouse)

    # ---- deliveries

    def _headers(self, delivery: Delivery, at: datetime) -> dict[str, str]:
        secret = self.subscriptions[int(delivery.subscription)].secret
        sent_at = str(int(at.astimezone(UTC).timestamp()))
        signed = f"{delivery.id}.{sent_at}.".encode() + delivery.body
        key = base64.b64decode(secret.removeprefix("whsec_"))
        return {
            "content-type": "application/json",
            "webhook-id": delivery.id,
            "webhook-timestamp": sent_at,
            "webhook-signature": f"v1,{signature(key, signed)}",
            "x-webhook-topic": delivery.topic,
        }

    def _ended(self, delivery: Delivery, accepted: bool) -> None:
        subscription = self.subscriptions.get(int(delivery.subscription))
        if not accepted and subscription is not None:
            subscription.enabled = False
