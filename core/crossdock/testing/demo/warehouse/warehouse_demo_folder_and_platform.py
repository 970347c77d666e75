"""``crossdock demo --warehouse`` as it runs: its folder with config, state and exchanged files, and the platform."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from crossdock.config.project.project import Project
from crossdock.sandbox import SandboxServer
from crossdock.testing.demo.demo_folder_and_servers import (
    create_empty_demo_folder,
    free_port_below_ephemeral,
    write_and_set_environment_variables,
)
from crossdock.testing.demo.warehouse import warehouse_working_on_order_files
from crossdock.values import exact_json
from crossdock.values.clock import SystemClock
from crossdock.writing.targets.platform_target import PlatformTarget

CONFIG = "crossdock.yaml"
HOURS_TO_SHIP = 10
_ARTICLES = {
    "LAMP-1": "Storm lantern",
    "LAMP-2": "Storm lantern, brass",
    "OIL-5": "Lamp oil, 5 l",
    "ROPE-10": "Rope, 10 m",
}
_ORDERS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "1001": ("DE", {"LAMP-1": 2, "ROPE-10": 1}),
    "1002": ("DE", {"LAMP-1": 4, "ROPE-10": 2}),  # more lamps than are left: the last one is sent as a substitute
    "1003": ("CH", {"ROPE-10": 3}),  # no carrier of the warehouse goes there
    "1004": ("AT", {"ROPE-10": 1, "OIL-5": 2}),  # one unit too few, and no substitute
    "1005": ("NL", {"ROPE-10": 30}),  # so many that a person looks at it
}


class SimulatedNightClock(SystemClock):
    """The time some days ago. It waits for nothing, so that a few nights pass in seconds."""

    def __init__(self, days_ago: int) -> None:
        self._ago, self._waited_s = timedelta(days=days_ago), 0.0

    def now(self) -> datetime:
        return super().now() - self._ago + timedelta(seconds=self._waited_s)

    def monotonic(self) -> float:
        return super().monotonic() + self._waited_s

    def sleep(self, seconds: float) -> None:
        self._waited_s += max(seconds, 0.0)


class WarehouseDemo(Struct):
    """The running demo.

    Attributes:
        ids: The platform's id of each order, by its number.
    """

    folder: Path
    variables: Mapping[str, str]
    ids: dict[str, str] = field(default_factory=dict)

    def place_orders(self, project: Project) -> None:
        """Put released orders on the platform, which other systems made."""
        customer = _create_or_update_platform_record(
            project, "customer", {"externalId": "shop:17", "name": "Harbour Lights"}
        )
        products = {
            sku: _create_or_update_platform_record(
                project, "product", {"externalId": f"erp:{sku}", "sku": sku, "name": name}
            )
            for sku, name in _ARTICLES.items()
        }
        for number, (country, units) in _ORDERS.items():
            items = [{"productId": products[sku], "quantity": n, "unitPrice": 10} for sku, n in units.items()]
            about = {"externalId": f"shop:{number}", "customerId": customer, "currency": "EUR", "status": "released"}
            address = {"name": "Harbour Lights", "line1": "1 Harbour Street", "city": "Port", "country": country}
            placed = {"placedAt": "2026-01-05T08:15:00Z", "items": items, "shippingAddress": address}
            self.ids[number] = _create_or_update_platform_record(project, "order", about | placed)

    def correct_order_country_on_platform(self, project: Project, number: str) -> None:
        """Correct the country of an order on the platform."""
        address = {"country": "DE"}
        _create_or_update_platform_record(project, "order", {"shippingAddress": address}, self.ids[number])

    def let_warehouse_work_next_day(self, night: SimulatedNightClock) -> None:
        """Let the warehouse work for the day after a *night*."""
        warehouse_working_on_order_files.Depot(self.folder / "depot").work_for_a_day(
            night.now() + timedelta(hours=HOURS_TO_SHIP)
        )


@contextmanager
def create_and_serve_warehouse_demo(folder: Path) -> Iterator[WarehouseDemo]:
    """Create a demo folder, and run the platform on it.

    Raises:
        ConfigError: If the folder is not empty, or cannot be created.
    """
    create_empty_demo_folder(folder)
    for name in ("in/archive", "out"):
        (folder / "depot" / name).mkdir(parents=True)
    own = files("crossdock.testing.demo.warehouse")
    (folder / CONFIG).write_text(own.joinpath("warehouse_exchange.yaml").read_text("utf-8"), "utf-8")
    shutil.copyfile(warehouse_working_on_order_files.__file__, folder / "depot.py")
    with SandboxServer(folder / "sandbox", port=free_port_below_ephemeral()) as platform:
        variables = {"PLATFORM_URL": platform.base_url, "CROSSDOCK_API_KEY": platform.api_key}
        write_and_set_environment_variables(folder, variables)
        yield WarehouseDemo(folder, variables)


def _create_or_update_platform_record(
    project: Project, resource: str, body: Mapping[str, Any], record_id: str | None = None
) -> str:
    """Create a record of the platform, or change one, and return its id."""
    path = project.platform.resource_path(resource) + (f"/{record_id}" if record_id else "")
    headers = {"content-type": "application/merge-patch+json" if record_id else "application/json"}
    with closing(PlatformTarget(project.platform).client()) as client:
        answer = client.send("PATCH" if record_id else "POST", path, body=exact_json.dumps(body), headers=headers)
    return str(exact_json.loads(answer.body)["id"])
