"""What the application does with requests, whatever their page is."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path

import httpx
from starlette.responses import PlainTextResponse, Response
from tests.consoles import make_fleet
from tests.unit.console.visitor import HOST, Visitor

from crossdock.console import tenant_configs_and_states
from crossdock.console.page_request_context import Console, PageRequest
from crossdock.console.tenant_overviews import TenantOverviewCache
from crossdock.console.visitors_and_roles import local_user_as_administrator
from crossdock.console.web_server import PAGE_ROUTES, PageRoute, build_web_app
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.serving import AllowedHostNames


def test_browsers_keep_a_style_sheet_until_it_changes(tmp_path: Path) -> None:
    """Its address names its content; what another version of the console has named is asked for each time."""
    make_fleet(tmp_path / "tenants")
    found, clock = tenant_configs_and_states.fleet_tenants(str(tmp_path / "tenants"), ()), ManualClock()
    console = Console(found, TenantOverviewCache(found, clock), clock)
    visitor = Visitor(
        build_web_app(console, PAGE_ROUTES, AllowedHostNames((), ""), lambda *_: local_user_as_administrator())
    )
    addresses = re.findall(r'(?:href|src)="(/[a-z]+\.(?:css|js)[^"]*)"', visitor.html("/"))
    assert len(addresses) == 3
    try:
        for address in addresses:
            kept = visitor.answer("GET", address).headers["cache-control"]
            assert kept == "max-age=31536000, immutable"
            assert visitor.answer("GET", f"{address}0").headers["cache-control"] == "no-cache"
    finally:
        found.close_open_states()


def test_who_has_not_signed_in_keeps_out_nobody(tmp_path: Path) -> None:
    """A hundred requests for an open page that takes long, as at a slow provider, leave room for people's pages."""
    make_fleet(tmp_path / "tenants")
    found, clock, go = (
        tenant_configs_and_states.fleet_tenants(str(tmp_path / "tenants"), ()),
        ManualClock(),
        threading.Event(),
    )

    def slow(_: PageRequest) -> Response:
        go.wait()
        return PlainTextResponse("slow")

    pages = (PageRoute("/slow", slow, role=None), PageRoute("/quick", lambda _: PlainTextResponse("quick")))
    console = Console(found, TenantOverviewCache(found, clock), clock)
    served = build_web_app(console, pages, AllowedHostNames((), ""), lambda *_: local_user_as_administrator())

    async def visit() -> tuple[str, set[int]]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url=f"http://{HOST}") as client:
            slow_ones = [asyncio.create_task(client.get("/slow")) for _ in range(100)]
            await asyncio.sleep(0)  # they begin
            quick = (await client.get("/quick")).text
            go.set()
            return quick, {(await each).status_code for each in slow_ones}

    try:
        assert asyncio.run(visit()) == ("quick", {200})
    finally:
        go.set()
        found.close_open_states()
