"""An example of ``configs/`` at work: its shop and its 3PL are fakes with one clock, and its platform is a sandbox."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.project_folder import in_process
from tests.partners.partner_server import Partner, PartnerAnswer, PartnerRequest, PartnerServer, serving
from tests.partners.stage import Project

from crossdock.config.project import project
from crossdock.runs import sync_and_replay
from crossdock.runs.run_report import Report
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.testing import ManualClock
from crossdock.values.run_progress_and_messages import SilentProgress

CONFIGS = Path(__file__).parents[2] / "configs"


class Depot:
    """A 3PL that takes orders, and lists what it has shipped and has in stock: ``/orders``, ``/shipments``, ``/stock``.

    Attributes:
        effects: The orders that it accepted, oldest first.
        cancelled: The references of the orders that were cancelled, oldest first.
        packed: Ids of orders that it cancels no more.
    """

    def __init__(self) -> None:
        self.effects: list[dict[str, Any]] = []
        self.cancelled, self.packed = list[str](), set[int]()
        self.lists: dict[str, list[dict[str, Any]]] = {"shipments": [], "stock": []}

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        if request.path.startswith("/orders/"):
            return self._one(request.method, int(request.path.rpartition("/")[2]))
        if request.path != "/orders":
            return PartnerAnswer(200, {"items": self.lists[request.path.strip("/")]})
        name = request.param("reference") if request.method == "GET" else request.json()["reference"]
        known = [each for each in self.effects if each["reference"] == name]
        if request.method == "GET":
            return PartnerAnswer(200, {"items": known})
        if known:
            return PartnerAnswer(409, {"message": "duplicate reference"})
        self.effects.append({**request.json(), "id": len(self.effects) + 1})
        return PartnerAnswer(201, self.effects[-1])

    def _one(self, method: str, number: int) -> PartnerAnswer:
        order = self.effects[number - 1]
        if order["reference"] in self.cancelled:
            return PartnerAnswer(404, {"message": "no such order"})
        if method == "GET":
            return PartnerAnswer(200, order)
        if number in self.packed:
            return PartnerAnswer(409, {"message": "the order is packed"})
        self.cancelled.append(order["reference"])
        return PartnerAnswer(204)

    def throttled(self) -> PartnerAnswer:
        return PartnerAnswer(429)


class Recipe(Project):
    """The example *name*, whose variables are set.

    Attributes:
        interrupt: Ends a sync early.
    """

    def __init__(self, folder: Path, name: str, shop: PartnerServer, depot: Depot, clock: ManualClock) -> None:
        self.folder, self.clock, self.shop, self.depot, self._advance = folder, clock, shop, depot, clock.advance
        self.interrupt = threading.Event()
        self.config = folder / f"{name}.yaml"
        shutil.copy2(CONFIGS / self.config.name, self.config)
        self._project = project.load(self.config)
        self._project.create_or_upgrade_state()

    def sync(self, *streams: str) -> Report:
        """The report of a sync, an hour after the last one."""
        self._advance(3600)
        self.interrupt.clear()
        return sync_and_replay.sync(
            self._project, list(streams), clock=self.clock, progress=SilentProgress(), interrupt=self.interrupt
        )

    def delivered(self) -> int:
        """Sync without an error; returns the number of effects at the platform, at the shop and at the 3PL."""
        before = self.count()
        report = self.sync()
        assert (report.exit_code, report.balanced) == (0, True), (report.errors, self.dead_letters(), self.waiting())
        return self.count() - before

    def planned(self) -> int:
        """Check the config, which must find nothing wrong; returns the number of operations that a plan announces."""
        checked = in_process(self.config, "check", environment={})
        assert checked.exit_code == 0, checked.stdout
        plan = in_process(self.config, "plan", "--json", environment={})
        assert plan.exit_code == 0, plan.stderr
        return sum(plan.document["operations"].values())

    def count(self) -> int:
        resources = ("product", "customer", "inventory_lot", "order", "invoice")
        return sum(len(self.effects(name)) for name in resources) + len(self.shop.partner.effects + self.depot.effects)

    def shown(self, path: str) -> list[str]:
        """The requests of the shop whose path ends so."""
        return [request.path for request, _ in self.shop.requests if request.path.endswith(path)]


def charge(sandbox: SandboxServer, kind: str) -> str:
    """The id of a product of the platform for the charge *kind*, made before the first sync."""
    headers = {"authorization": f"Bearer {sandbox.api_key}", "x-tenant-slug": sandbox.tenant}
    product = {"externalId": f"charges:{kind}", "sku": kind.upper(), "name": kind}
    url = f"{sandbox.base_url}/api/v1/catalog/products"
    answer = httpx.post(url, json=product, headers=headers, trust_env=False)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


@contextmanager
def recipe(
    name: str, folder: Path, patch: pytest.MonkeyPatch, made: Callable[[ManualClock], Partner], base: str, token: str
) -> Iterator[Recipe]:
    """The example *name*, with a shop as *made* makes it, whose API is below *base*."""
    clock, depot = ManualClock(), Depot()
    limits = SandboxSettings(rate_per_min=600_000, burst=100_000)
    with (
        SandboxServer(folder / "sandbox", limits) as sandbox,
        serving(PartnerServer(made(clock))) as shop,
        serving(PartnerServer(depot)) as stock,
    ):
        kinds = ("shipping", "discount", "tax", "other", "rounding")
        ids = {f"{kind.upper()}_PRODUCT": charge(sandbox, kind) for kind in kinds}
        urls = {"PLATFORM_URL": sandbox.base_url, "SHOP_URL": f"{shop.url}{base}", "DEPOT_URL": stock.url}
        secrets = {"CROSSDOCK_API_KEY": sandbox.api_key, "SHOP_TOKEN": token, "DEPOT_KEY": "depot-key"}
        for variable, value in (ids | urls | secrets).items():
            patch.setenv(variable, value)
        yield Recipe(folder, name, shop, depot, clock)
