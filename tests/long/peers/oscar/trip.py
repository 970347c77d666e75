"""People trade at a live shop while its syncs with the platform are killed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.e2e.project_folder import UNPACED, SandboxProcess
from tests.installed_connector import installed
from tests.long.peers.live_trip import LiveTrip
from tests.long.peers.oscar import judge
from tests.long.peers.oscar.people import DEPOT, People
from tests.long.peers.oscar.server import HERE, OscarServer


@dataclass(kw_only=True)
class OscarTrip(LiveTrip):
    """The shop, the platform, and the project between them."""

    shop: OscarServer
    people: People

    def finish(self) -> None:
        """Both sides are compared when all is done, and one more sync writes nothing."""
        for _ in range(2):
            self.settled()
        sides = self.sides()
        self.checked(judge.faults(sides, self.letters()))
        self.settled()
        assert self.sandbox.effects() == sides.effects
        assert self.people.staff.all("/admin/products/") == sides.products

    def figures(self) -> Mapping[str, object]:
        return {**super().figures(), "sum of the orders": str(judge.total(self.people.staff.all("/admin/orders/")))}

    def sides(self) -> judge.Sides:
        staff = self.people.staff
        orders = staff.all("/admin/orders/")
        lines = {each["number"]: staff.all(each["lines"].partition("/api")[2]) for each in orders}
        products, users = staff.all("/admin/products/"), staff.all("/admin/users/")
        return judge.Sides(products, users, orders, lines, self.platform(), self.sandbox.effects())

    def depot_stock(self) -> dict[str, tuple[str, int]]:
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
        people = People(shop.url, shop.token, Random(random.random()))
        yield OscarTrip(
            folder=folder, environment=environment, random=random, sandbox=sandbox, people=people, shop=shop
        )
