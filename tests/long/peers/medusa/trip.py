"""People trade at a live shop while its syncs with the platform are killed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.e2e.project_folder import UNPACED, SandboxProcess
from tests.long.peers.live_trip import LiveTrip
from tests.long.peers.medusa import judge
from tests.long.peers.medusa.people import People
from tests.long.peers.medusa.server import HERE
from tests.long.peers.oscar.people import Depot


@dataclass(kw_only=True)
class MedusaTrip(LiveTrip):
    """The shop, the platform, and the project between them."""

    people: People
    depot: Depot = field(init=False)

    def __post_init__(self) -> None:
        self.depot = Depot(self.sandbox, Random(self.random.random()))

    def open_shop(self, *, products: int, customers: int, orders: int) -> None:
        people = self.people
        for act, times in ((people.product, products), (people.customer, customers), (people.order, orders)):
            for _ in range(times):
                act()
        self.run("init")

    def night(self, *, acts: int, kills: int) -> None:
        """People act while so many syncs are killed and one is not."""
        with self.acting(self._act, acts):
            for _ in range(kills):
                self.killed()
            self.hurried()
        self.settled()
        stock = {
            item["id"]: (item["sku"], item["location_levels"][0]["stocked_quantity"])
            for item in self.people.staff.all("/admin/inventory-items", "inventory_items", judge.ITEMS)
            if item["location_levels"][0]["location_id"] == self.people.depot
        }
        self.depot.take_over(stock)

    def finish(self) -> None:
        """Both sides are compared when all is done, and one more sync writes nothing."""
        for _ in range(2):
            self.settled()
        sides = self.sides()
        found = judge.faults(sides, self.letters())
        assert not found, "\n".join([f"{len(found)} faults", *found[:20], self.told()])
        self.settled()
        assert self.sides() == sides

    def told(self) -> str:
        """The figures."""
        sides = self.sides()
        figures = {
            **{f"{name}s on the platform": len(records) for name, records in sides.platform.items()},
            "effects": len(sides.effects),
            "seconds of the syncs": self.seconds,
            "read in part": sorted(self.refused),
            "not delivered": [f"{stream} {key}: {why}" for (stream, key), why in self.letters().items()],
        }
        return json.dumps({**self.happened, **self.people.happened, **self.depot.happened, **figures}, indent=1)

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

    def _act(self) -> None:
        self.people.act()
        if self.random.random() < 1 / 3:
            self.depot.act()


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
