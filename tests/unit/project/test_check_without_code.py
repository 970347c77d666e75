"""``crossdock check`` of a connector that has no function for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar, cast

import httpx
import pytest
from tests.unit.testing.reference_connector import PAGES, TOKEN, Orders, OrdersContract, ShopSettings

from crossdock import Connector, Finding
from crossdock.config.project.connections_and_bound_streams import Connection
from crossdock.errors import UnavailableError
from crossdock.services.system_check.tests_of_state_platform_and_connections import findings_of_connection
from crossdock.sources import BearerAuth


class Listed(Orders):
    mode: Any = "snapshot"


class Returns(Listed):
    name = "returns"

    def pull(self, ctx: Any, since: str | None) -> Any:
        for page in ctx.api.pages("/returns"):
            raise KeyError(page.address)
        yield from ()


class Down(Listed):
    name = "down"

    def pull(self, ctx: Any, since: str | None) -> Any:
        raise UnavailableError("does not respond", where="shop.example")


class Yielding(Listed):
    """Yields records in place of batches."""

    closed: ClassVar[list[int]] = []

    def pull(self, ctx: Any, since: str | None) -> Any:
        number = 0
        try:
            for number in (1, 2):
                yield {"id": number}
        finally:
            self.closed.append(number)


def findings(transport: httpx.MockTransport, *streams: Orders, api: bool = True) -> list[Finding]:
    connector = Connector(
        name="shop",
        title="A shop",
        settings=ShopSettings,
        streams=lambda _: streams,
        api=(lambda own: own.api(auth=BearerAuth(own.token), transport=transport)) if api else None,
    )
    settings = ShopSettings.model_validate({"kind": "shop", "base_url": "https://shop.example", "token": "env:TOKEN"})
    loaded: Any = SimpleNamespace(scope_by_stream={}, platform=SimpleNamespace(tenant="acme"))
    return list(findings_of_connection(loaded, Connection("shop", cast("Any", connector), settings, streams)))


def test_the_first_page_of_each_stream_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of one stream is a finding, and the next stream is read."""
    monkeypatch.setenv("TOKEN", TOKEN)
    asked = list[str]()

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url.copy_with(query=None)))
        return OrdersContract().transport(PAGES).handle_request(request)

    returns, orders = findings(httpx.MockTransport(answer), Returns(), Listed())
    assert not returns.ok
    assert "pull raised KeyError" in returns.text
    assert (orders.ok, orders.text) == (True, "orders: https://shop.example/orders responds, with 2 rows")
    assert asked == ["https://shop.example/returns", "https://shop.example/orders"]


def test_an_api_that_does_not_respond_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One finding says so. Without an API nothing is read."""
    monkeypatch.setenv("TOKEN", TOKEN)
    transport = httpx.MockTransport(lambda _: httpx.Response(404))
    (down,) = findings(transport, Down(), Listed())
    assert (down.ok, down.text) == (False, "down: shop.example: does not respond")
    assert findings(transport, Listed(), api=False) == []


def test_a_refused_list_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The finding names the stream."""
    monkeypatch.setenv("TOKEN", TOKEN)

    def answer(request: httpx.Request) -> httpx.Response:
        is_returns = request.url.path == "/returns"
        return httpx.Response(404) if is_returns else OrdersContract().transport(PAGES).handle_request(request)

    returns, orders = findings(httpx.MockTransport(answer), Returns(), Listed())
    assert (returns.ok, orders.ok) == (False, True)
    assert returns.text.startswith("returns: https://shop.example/returns")


def test_a_first_page_is_a_batch_and_closes_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise all of a list that yields something else would be read."""
    monkeypatch.setenv("TOKEN", TOKEN)
    Yielding.closed = []
    (objects,) = findings(httpx.MockTransport(lambda _: httpx.Response(500)), Yielding())
    assert not objects.ok
    assert "yielded a dict instead of a RawBatch" in objects.text
    assert Yielding.closed == [1]
