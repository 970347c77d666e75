"""Visits the pages of a console as a browser does, without a server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
from starlette.types import ASGIApp
from tests.report_page import Page

from crossdock.console import tenant_configs_and_states
from crossdock.console.page_request_context import Console
from crossdock.console.tenant_overviews import TenantOverviewCache
from crossdock.console.visitors_and_roles import ALL_TENANTS, Person, Role
from crossdock.console.web_server import PAGE_ROUTES, build_web_app
from crossdock.values.clock import Clock, SystemClock
from crossdock.values.serving import AllowedHostNames

HOST = "127.0.0.1:8400"


class Visitor:
    """One person with a browser, whose cookies are kept."""

    def __init__(self, served: ASGIApp) -> None:
        self._served, self._cookies = served, httpx.Cookies()

    def html(self, path: str, status: int = 200) -> str:
        answer = self.answer("GET", path)
        assert answer.status_code == status, answer.text
        return answer.text

    def page(self, path: str, status: int = 200) -> Page:
        return Page(self.html(path, status))

    def redirected(self, path: str) -> str:
        """The address to which the page leads at once."""
        answer = self.answer("GET", path)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def send(self, path: str, fields: dict[str, str], *, at: str, status: int = 200) -> Page:
        """Send a form of the page *at*, with its token."""
        (token, *_) = re.findall(r'name="csrf_token" value="([^"]+)"', self.html(at))
        answer = self.answer("POST", path, data={"csrf_token": token, **fields})
        assert answer.status_code == status, answer.text
        return Page(answer.text)

    def answer(self, method: str, path: str, data: Mapping[str, str] | None = None) -> httpx.Response:
        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(self._served)
            async with httpx.AsyncClient(
                transport=transport, base_url=f"http://{HOST}", cookies=self._cookies
            ) as client:
                found = await client.request(method, path, data=data, headers={"origin": f"http://{HOST}"})
                self._cookies.update(client.cookies)
                return found

        return asyncio.run(sent())


@contextmanager
def visiting(*files: Path, role: Role = Role.ADMINISTRATOR, clock: Clock | None = None) -> Iterator[Visitor]:
    """Let a person with *role* visit the tenant of a config, which has a state."""
    found, now = tenant_configs_and_states.single_tenant(files), clock or SystemClock()
    person = Person("ann", {ALL_TENANTS: role})
    console = Console(found, TenantOverviewCache(found, now), now)
    served = build_web_app(console, PAGE_ROUTES, AllowedHostNames((), "crossdock console"), lambda *_: person)
    try:
        yield Visitor(served)
    finally:
        found.close_open_states()
