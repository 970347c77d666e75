"""A console of two tenants with people who sign in, served on loopback, and browsers that visit it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from crossdock.config.project import project
from crossdock.console import tenant_configs_and_states, web_server
from crossdock.console.tls_proxy_and_sign_in import Protection
from crossdock.state import create_or_upgrade_state
from crossdock.testing.manual_clock import ManualClock

PASSWORD = "correct horse battery"
CONFIG = """\
platform: {{base_url: "http://127.0.0.1:9", tenant: {name}, auth: {{kind: api_key, token: env:CROSSDOCK_API_KEY}}}}
state: sqlite:///{name}.db
jobs: {{nightly: {{schedule: {{time_zone: UTC, at: "02:30"}}}}}}
connections:
  wms:
    kind: folder_warehouse
    path: .
    streams:
      products: {{mode: append, files: "*.csv", key: [SKU], resource: product, map: {{sku: SKU, name: NAME}}}}
"""


@dataclass(frozen=True)
class Browser:
    """Keeps cookies, and follows no redirects."""

    client: httpx.Client

    def get(self, address: str, **headers: str) -> httpx.Response:
        return self.client.get(address, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def token(self, address: str = "/sign-in") -> str:
        found = re.search(r'name="csrf_token" value="([^"]+)"', self.get(address).text)
        assert found, address
        return found[1]

    def send(self, address: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        return self.client.post(address, data=fields, headers=headers)

    def sign_in(self, name: str, password: str = PASSWORD, **fields: str) -> httpx.Response:
        return self.send("/sign-in", {"csrf_token": self.token(), "name": name, "password": password, **fields})

    @property
    def is_signed_in(self) -> bool:
        return self.get("/").status_code == 200


@dataclass(frozen=True)
class ServedConsole:
    url: str
    clock: ManualClock
    opened: list[httpx.Client] = field(default_factory=list)

    def browser(self, **headers: str) -> Browser:
        self.opened.append(httpx.Client(base_url=self.url, headers=headers))
        return Browser(self.opened[-1])


def make_fleet(folder: Path) -> None:
    """The configs of the tenants "a" and "b", with empty states."""
    folder.mkdir()
    for name in "ab":
        (folder / f"{name}.yaml").write_text(CONFIG.format(name=name), encoding="utf-8")
        loaded = project.load(folder / f"{name}.yaml")
        create_or_upgrade_state(loaded.state_url, loaded.pinned_tenant)


@contextmanager
def served(fleet: Path, protection: Protection, clock: ManualClock | None = None) -> Iterator[ServedConsole]:
    clock = clock or ManualClock()
    with web_server.serve_console_in_thread(
        tenant_configs_and_states.fleet_tenants(str(fleet), ()), clock, protection=protection
    ) as url:
        console = ServedConsole(url, clock)
        try:
            yield console
        finally:
            for each in console.opened:
                each.close()
