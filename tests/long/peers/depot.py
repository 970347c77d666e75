"""The depot of a live shop, whose stock and shipments are kept on the platform."""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.e2e.project_folder import SandboxProcess


class Depot:
    """Who ships the platform's orders and counts the depot's stock there."""

    def __init__(self, sandbox: SandboxProcess, random: Random) -> None:
        self._sandbox, self._random, self.happened = sandbox, random, Counter[str]()

    def act(self) -> None:
        self.ship()
        self.count()

    def take_over(self, records: dict[str, tuple[str, int]]) -> None:
        """A lot of the platform for each stock record of the shop: its SKU and the quantity, by its id."""
        lots = {each["externalId"] for each in self._sandbox.stored("inventory_lot")}
        products = {each["sku"]: each["id"] for each in self._sandbox.stored("product")}
        for name, (sku, quantity) in records.items():
            if f"depot:{name}" not in lots and sku in products:
                body = {
                    "externalId": f"depot:{name}",
                    "productId": products[sku],
                    "lotNumber": sku,
                    "quantity": quantity,
                }
                self._sandbox.create("/api/v1/inventory/lots", body)

    def count(self) -> None:
        lots = [each for each in self._sandbox.stored("inventory_lot") if each["externalId"].startswith("depot:")]
        if lots:
            path = f"/api/v1/inventory/lots/{self._random.choice(lots)['id']}"
            self._sandbox.patch(path, {"quantity": self._random.randint(0, 900)})
            self.happened["counted"] += 1

    def ship(self) -> None:
        waiting = [each for each in self._sandbox.stored("order") if each.get("status") != "shipped"]
        if waiting:
            order = self._random.choice(waiting)
            tracking = [{"carrier": "PostNL", "number": f"3S{order['externalId'][5:]}"}]
            self._sandbox.patch(f"/api/v1/sales/orders/{order['id']}", {"status": "shipped", "tracking": tracking})
            self.happened["shipped"] += 1
