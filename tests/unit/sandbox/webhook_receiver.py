"""A receiver of webhooks on the loopback interface, and a sandbox's subscriptions in tests."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from tests.unit.sandbox.raw import ORDERS, Raw, exact

SUBSCRIPTIONS = "/api/v1/webhooks/subscriptions"


class Received(NamedTuple):
    headers: dict[str, str]
    body: bytes
    at: float  # seconds since the epoch, when the first byte arrived

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


class Receiver(ThreadingHTTPServer):
    """Keeps what it receives; *answer* gives the status for each request, and may wait."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, answer: Callable[[Received], int] = lambda _: 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[Received] = []
        self.answer = answer
        self.url = f"http://127.0.0.1:{self.server_port}/hook"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, *_: object) -> None:
        """The sandbox was killed while it was answered."""

    @property
    def ids(self) -> list[str]:
        return [each.id for each in self.received]


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def handle_one_request(self) -> None:
        if self.rfile.peek(1):  # type: ignore[attr-defined]  # it is a BufferedReader
            self.at = time.time()
        super().handle_one_request()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        received = Received({name.lower(): value for name, value in self.headers.items()}, body, self.at)
        self.server.received.append(received)
        self.send_response(self.server.answer(received))
        self.send_header("location", "/_sandbox/keys")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Webhooks:
    """Subscriptions of a sandbox in this process; attempts are made when a test says so."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self.customer = raw.make("/api/v1/sales/customers", '{"externalId":"buyer","name":"n"}')
        self.product = raw.make("/api/v1/catalog/products", '{"externalId":"sold","sku":"s","name":"n"}')
        self._orders = 0

    def subscribe(self, url: str, *events: str, **more: object) -> dict[str, Any]:
        body = {"url": url, "events": events or ["order.created"], **more}
        response = self.raw("POST", SUBSCRIPTIONS, json.dumps(body))
        assert response.status_code == 201, response.text
        made: dict[str, Any] = response.json()
        return made

    def get(self, subscription: dict[str, Any], below: str = "") -> Any:
        response = self.raw("GET", f"{SUBSCRIPTIONS}/{subscription['id']}{below}")
        assert response.status_code == 200, response.text
        return exact(response)

    def change(self, subscription: dict[str, Any], **members: object) -> Any:
        response = self.raw("PATCH", f"{SUBSCRIPTIONS}/{subscription['id']}", json.dumps(members))
        assert response.status_code == 200, response.text
        return response.json()

    def deliveries(self, subscription: dict[str, Any]) -> list[dict[str, Any]]:
        """Oldest first."""
        listed: list[dict[str, Any]] = self.get(subscription, "/deliveries?limit=1000")["data"]
        return listed[::-1]

    def order(self) -> str:
        self._orders += 1
        body = (
            f'{{"externalId":"o{self._orders}","customerId":"{self.customer}","currency":"EUR","placedAt":'
            f'"2026-11-20T08:15:00Z","items":[{{"productId":"{self.product}","quantity":1,"unitPrice":12.50}}]}}'
        )
        return self.raw.make(ORDERS, body)

    def deliver(self) -> None:
        """Attempt everything that is due."""
        asyncio.run(self.raw.sandbox.webhooks.deliver_due())

    def advance(self, seconds: float) -> None:
        assert self.raw("POST", "/_sandbox/clock", json.dumps({"advance_s": seconds})).status_code == 200
