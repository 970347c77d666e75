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
from tests.installed_connector import installed
from tests.long.peers.live_trip import LiveTrip
from tests.long.peers.oscar import judge
from tests.long.peers.oscar.people import DEPOT, Depot, People
from tests.long.peers.oscar.server import HERE, OscarServer


@dataclass(kw_only=True)
class OscarTrip(LiveTrip):
    """The shop, the platform, and the project between them."""

    shop: OscarServer
    people: People = field(init=False)
    depot: Depot = field(init=False)

    def __post_init__(self) -> None:
        self.people = People(self.shop.url, self.shop.token, Random(self.random.random()))
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
        self.depot.take_over(self._depot_stock())

    def finish(self) -> None:
        """Both sides are compared when all is done, and one more sync writes nothing."""
        for _ in range(2):
            self.settled()
        sides = self.sides()
        found = judge.faults(sides, self.letters())
        assert not found, "\n".join([f"{len(found)} faults", *found[:20], self.told()])
        self.settled()
        assert self.sandbox.effects() == sides.effects
        assert self.people.staff.all("/admin/products/") == sides.products

    def told(self) -> str:
        """The figures."""
        sides = self.sides()
        figures = {
            **{f"{name}s on the platform": len(records) for name, records in sides.platform.items()},
            "effects": len(sides.effects),
            "sum of the orders": str(judge.total(sides.orders)),
            "seconds of the syncs": self.seconds,
            "read in part": sorted(self.refused),
            "not delivered": [f"{stream} {key}: {why}" for (stream, key), why in self.letters().items()],
        }
        return json.dumps({**self.happened, **self.people.happened, **self.depot.happened, **figures}, indent=1)

    def sides(self) -> judge.Sides:
        staff = self.people.staff
        orders = staff.all("/admin/orders/")
        lines = {each["number"]: staff.all(each["lines"].partition("/api")[2]) for each in orders}
        products, users = staff.all("/admin/products/"), staff.all("/admin/users/")
        return judge.Sides(products, users, orders, lines, self.platform(), self.sandbox.effects())

    def _act(self) -> None:
        self.people.act()
        if self.random.random() < 1 / 3:
            self.depot.act()

    def _depot_stock(self) -> dict[str, tuple[str, int]]:
        return {
            each["url"].rstrip("/").rpartition("/")[2]: (each["partner_sku"], each["num_in_stock"])
            for product in self.people.staff.all("/admin/products/")
            for each in product["stockrecords"]
            if each["partner"].endswith(f"/{DEPOT}/")
        }


@contextmanager
def opened(folder: Path, shop: OscarServer, random: Random) -> Iterator[OscarTrip]:
    """The project in *folder* between *shop* and a sandbox."""
    shutil.copy(HERE / "config.yaml", folder / "c.yaml")
    (folder / "charges").mkdir()
    (folder / "charges" / "charges.csv").write_text("SKU,NAME\nrest,Discount and shipping\n")
    with SandboxProcess(folder / "sandbox", UNPACED) as sandbox:
        environment = {
            "PLATFORM_URL": sandbox.base_url,
            "PLATFORM_TENANT": sandbox.tenant,
            "CROSSDOCK_API_KEY": sandbox.api_key,
            "SHOP_URL": shop.url,
            "SHOP_TOKEN": f"Token {shop.token}",
            **installed(folder / "installed", "oscar_orders", "tests.long.peers.oscar.orders"),
        }
        yield OscarTrip(folder=folder, environment=environment, random=random, shop=shop, sandbox=sandbox)
