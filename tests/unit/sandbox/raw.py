"""Raw requests to a sandbox in this process, without the models and clients of crossdock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import httpx

from crossdock.sandbox import Sandbox

CUSTOMERS = "/api/v1/sales/customers"
PRODUCTS = "/api/v1/catalog/products"
INVOICES = "/api/v1/finance/invoices"
ORDERS = "/api/v1/sales/orders"
ACCOUNTS = "/api/v1/finance/ledger-accounts"
LOTS = "/api/v1/inventory/lots"
BINS = "/api/v1/warehouse/bins"
BASE_URL = "http://127.0.0.1:8080"
METHODS = ("get", "post", "patch", "delete")  # as keys of a path item in the OpenAPI document
OPTIONAL_HEADERS = {
    "retry-after",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
}


class ManualTime:
    """Seconds since the epoch that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Raw:
    """Sends HTTP requests to *sandbox* with one credential; a header set to None is not sent."""

    def __init__(self, sandbox: Sandbox, *, key: str | None = None, peer: str = "127.0.0.1") -> None:
        self.sandbox = sandbox
        self.key = key or sandbox.new_key()
        self._transport = httpx.ASGITransport(app=sandbox.app, client=(peer, 4711))

    def request(self, method: str, path: str, body: str | bytes | None = None, **headers: str | None) -> httpx.Request:
        content = body.encode() if isinstance(body, str) else body
        given: dict[str, str | None] = {
            "authorization": f"Bearer {self.key}",
            "x-tenant-slug": "sandbox",
            "content-type": "application/json" if body is not None else None,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        sent = {name: value for name, value in given.items() if value is not None}
        return httpx.Request(method, BASE_URL + path, content=content, headers=sent)

    def __call__(
        self, method: str, path: str, body: str | bytes | None = None, **headers: str | None
    ) -> httpx.Response:
        return self.together([self.request(method, path, body, **headers)])[0]

    def together(self, requests: Iterable[httpx.Request]) -> list[httpx.Response]:
        """Send all at once, on one event loop."""

        async def every() -> list[httpx.Response]:
            return await asyncio.gather(*(self.send(request) for request in requests))

        return asyncio.run(every())

    async def send(self, request: httpx.Request) -> httpx.Response:
        response = await self._transport.handle_async_request(request)
        await response.aread()
        return response

    def make(self, path: str, body: str) -> str:
        """Create a resource and return its id."""
        response = self("POST", path, body)
        assert response.status_code == 201, response.text
        return str(exact(response)["id"])

    def effects(self, query: str = "") -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = exact(self("GET", f"/_sandbox/effects{query}", authorization=None))["data"]
        return listed

    def invoice(self, **changes: str) -> str:
        """The JSON text of a valid invoice, its members replaced by the given JSON texts."""
        if not hasattr(self, "_parents"):
            customer = self.make(CUSTOMERS, '{"externalId":"c","name":"n"}')
            product = self.make(PRODUCTS, '{"externalId":"p","sku":"s","name":"n"}')
            self._parents = customer, product
        customer, product = self._parents
        members = {
            "customerId": f'"{customer}"',
            "currency": '"EUR"',
            "items": f'[{{"productId":"{product}","quantity":{changes.pop("quantity", "2")},'
            f'"unitPrice":{changes.pop("price", "12.5")}}}]',
            **changes,
        }
        return "{" + ",".join(f'"{name}":{text}' for name, text in members.items()) + "}"


def exact(response: httpx.Response) -> Any:
    return json.loads(response.content, parse_float=Decimal)


def assert_problem(response: httpx.Response, status: int) -> dict[str, Any]:
    """Check the shape of RFC 9457 and return the document."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document["status"] == status
    assert all(isinstance(document[name], str) and document[name] for name in ("type", "title", "detail"))
    return document
