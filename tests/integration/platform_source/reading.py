"""A sandbox with records, and a config whose connection ``erp`` reads it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx

from crossdock.client import Client, Customer, Line, Order, Product, StoredOrder
from crossdock.config.project import project
from crossdock.runs import sync_and_replay
from crossdock.runs.run_report import Report
from crossdock.runs.stream_trial import Trial, try_stream
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import ManualClock
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values import exact_json
from crossdock.values.run_progress_and_messages import SilentProgress

UNPACED = {"per_minute": 600_000, "burst": 100_000}
COPIES = {
    "read": "product",
    "resource": "product",
    "namespace": "copies",
    "skip": {"ours": {"field": "externalId", "starts_with": "copies:"}},
    "map": {"sku": "sku", "name": "name"},
}
"""A stream that writes what it reads to the same platform, under other names."""


class Reading:
    """A config in *folder* that reads *server*; syncs happen days after the records changed, so that none is young.

    The clocks differ by more than what is believed of an answer.
    """

    def __init__(self, server: SandboxServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.clock = ManualClock(datetime.now(UTC) + timedelta(days=7))
        self.client = Client(server.base_url, server.tenant, server.api_key)
        self._key = write_private_file(folder / "platform-key", server.api_key)

    @property
    def config(self) -> Path:
        return self.folder / "c.yaml"

    def configure(
        self, streams: Mapping[str, Any], more: Mapping[str, Any] = {}, platform: Mapping[str, Any] = {}, **others: Any
    ) -> project.Project:
        """Write the config with these streams; the state is created with the first one."""
        auth = {"kind": "api_key", "token": self._key}
        facts: dict[str, Any] = {
            "base_url": self.server.base_url,
            "tenant": self.server.tenant,
            "auth": auth,
            "rate": UNPACED,
        }
        connections = {"erp": {"kind": "platform", "streams": streams, **more}, **others}
        document = {"platform": {**facts, **platform}, "state": "sqlite:///state.db", "connections": connections}
        self.config.write_bytes(exact_json.dumps(document))
        loaded = project.load(self.config)
        loaded.create_or_upgrade_state()
        self.project = loaded
        return loaded

    def sync(self) -> Report:
        """A sync that delivers everything, an hour after the last one."""
        self.clock.advance(3600)
        report = sync_and_replay.sync(
            self.project, [], clock=self.clock, progress=SilentProgress(), interrupt=threading.Event()
        )
        assert (report.exit_code, report.balanced) == (0, True), report.errors
        return report

    def tried(self, stream: str = "erp.products", most: int = 1000) -> Trial:
        return try_stream(self.project, stream, most, clock=self.clock, progress=SilentProgress())

    # ---- the sandbox

    def products(self, number: int, name: str = "P") -> list[str]:
        """Create products; their ids."""
        made = (
            Product(external_id=f"{name}{each}", sku=f"{name}{each}", name=f"Part {each}") for each in range(number)
        )
        return [self.client.products.create(each).id for each in made]

    def order(self, products: list[str], customer: str = "Ada", key: str = "o1") -> StoredOrder:
        buyer = self.client.customers.create(Customer(external_id=f"c-{key}", name=customer))
        lines = tuple(Line(product_id=each, quantity=Decimal(2), unit_price=Decimal("9.5")) for each in products)
        about: Any = {"external_id": key, "currency": "EUR", "placed_at": datetime(2026, 1, 1, tzinfo=UTC)}
        return self.client.orders.create(Order(customer_id=buyer.id, items=lines, **about))

    def requested(self, path: str) -> list[dict[str, Any]]:
        """The requests to read *path*, or what is below it, oldest first."""
        answer = httpx.get(
            f"{self.server.base_url}/_sandbox/requests", params={"limit": "10000", "path": path}, trust_env=False
        )
        return [each for each in answer.json()["data"] if each["method"] == "GET"]

    def copies(self) -> dict[str, str]:
        """The names of the products that the stream `COPIES` wrote, by the id they were read under."""
        stored = (each for each in self.client.products.list(page_size=1000) if each.external_id)
        own = ((each.external_id.partition(":"), each.name) for each in stored)
        return {key: name for (namespace, _, key), name in own if namespace == "copies"}


@contextmanager
def reading(folder: Path, settings: SandboxSettings | None = None) -> Iterator[Reading]:
    limits = settings or SandboxSettings(rate_per_min=UNPACED["per_minute"], burst=UNPACED["burst"])
    with SandboxServer(folder / "sandbox", limits) as server:
        made = Reading(server, folder)
        with made.client:
            yield made
