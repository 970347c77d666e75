"""``crossdock check`` of a connector that has no function for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from tests.unit.testing.reference_connector import PAGES, TOKEN, Orders, OrdersContract, ShopSettings

from crossdock import Connector, Finding
from crossdock.config.project.connections import Connection
from crossdock.services.system_check.findings import findings_of_connection
from crossdock.sources import BearerAuth


class Listed(Orders):
    mode: Any = "snapshot"


class Returns(Listed):
    name = "returns"

    def pull(self, ctx: Any, since: str | None) -> Any:
        for page in ctx.api.pages("/returns"):
            raise KeyError(page.address)
        yield from ()


def findings(transport: httpx.MockTransport, *streams: Orders, api: bool = True) -> list[Finding]:
    connector = Connector(
        name="shop",
        title="A shop",
        settings=ShopSettings,
        streams=lambda _: streams,
        api=(lambda own: own.api(auth=BearerAuth(own.token), transport=transport)) if api else None,
    )
    settings = ShopSettings.model_validate({"kind": "shop", "base_url": "https://shop.example", "token": "env:TOKEN"})
    loaded: Any = SimpleNamespace(scopes={}, platform=SimpleNamespace(tenant="acme"))
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
    assert (orders.ok, orders.text) == (True, "orders: https://shop.example/orders responds")
    assert asked == ["https://shop.example/returns", "https://shop.example/orders"]


def test_an_api_that_does_not_respond_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One finding says so. Without an API nothing is read."""
    monkeypatch.setenv("TOKEN", TOKEN)
    transport = httpx.MockTransport(lambda _: httpx.Response(403))
    assert [each.ok for each in findings(transport, Listed(), Returns())] == [False]
    assert findings(transport, Listed(), api=False) == []
