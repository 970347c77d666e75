"""People trade at a live shop while its syncs with the platform are killed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.e2e.project_folder import UNPACED, SandboxProcess
from tests.long.peers.live_trip import LiveTrip
from tests.long.peers.medusa import judge
from tests.long.peers.medusa.people import People
from tests.long.peers.medusa.server import HERE


@dataclass(kw_only=True)
class MedusaTrip(LiveTrip):
    """The shop, the platform, and the project between them."""

    people: People

    def finish(self) -> None:
        """Both sides are compared when all is done, and one more sync writes nothing."""
        for _ in range(2):
            self.settled()
        sides = self.sides()
        self.checked(judge.faults(sides, self.letters()))
        self.settled()
        assert self.sides() == sides

    def sides(self) -> judge.Sides:
        all_of = self.people.staff.all
        return judge.Sides(
            products=all_of("/admin/products", "products", judge.PRODUCTS),
            customers=all_of("/admin/customers", "customers", "id,email,first_name,last_name"),
            items=all_of("/admin/inventory-items", "inventory_items", judge.ITEMS),
            orders=all_of("/admin/orders", "orders", judge.ORDERS),
            depot=self.people.depot,
            platform=self.platform(),
            effects=self.sandbox.effects(),
        )

    def depot_stock(self) -> dict[str, tuple[str, int]]:
        return {
            item["id"]: (item["sku"], item["location_levels"][0]["stocked_quantity"])
            for item in self.people.staff.all("/admin/inventory-items", "inventory_items", judge.ITEMS)
            if item["location_levels"][0]["location_id"] == self.people.depot
        }


@contextmanager
def opened(folder: Path, url: str, random: Random) -> Iterator[MedusaTrip]:
    """The project in *folder* between the shop at *url*, which the merchant opens, and a sandbox."""
    shutil.copy(HERE / "config.yaml", folder / "c.yaml")
    people = People(url, Random(random.random()))
    with SandboxProcess(folder / "sandbox", UNPACED) as sandbox:
        environment = {
            "PLATFORM_URL": sandbox.base_url,
            "PLATFORM_TENANT": sandbox.tenant,
            "CROSSDOCK_API_KEY": sandbox.api_key,
            "SHOP_URL": url,
            "SHOP_KEY": people.key,
            "DEPOT": people.depot,
        }
        yield MedusaTrip(folder=folder, environment=environment, random=random, sandbox=sandbox, people=people)
