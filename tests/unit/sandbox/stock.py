"""A lot of stock and three bins in a sandbox in this process."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tests.unit.sandbox.raw import BINS, LOTS, PRODUCTS, Raw, exact


class Stock:
    """One lot of 10 in bin A, and two more bins."""

    def __init__(self, raw: Raw, quantity: str = "10") -> None:
        self.raw = raw
        bodies = [f'{{"externalId":"wms:{code}","code":"{code}","warehouse":"W"}}' for code in ("A", "B", "C")]
        requests = [raw.request("POST", BINS, body) for body in bodies]
        product = '{"externalId":"stocked","sku":"s","name":"n"}'
        made = [exact(each)["id"] for each in raw.together([raw.request("POST", PRODUCTS, product), *requests])]
        self.product, self.bins = made[0], made[1:]
        self.lot = self.make("L", quantity, self.bins[0], '"expiresOn":"2028-02-29","unitOfMeasure":"EA"')

    def make(self, name: str, quantity: str, bin_id: str | None, *more: str) -> str:
        place = [f'"binId":"{bin_id}"'] if bin_id else []
        members = f'"externalId":"{name}","productId":"{self.product}","lotNumber":"0017","quantity":{quantity}'
        return self.raw.make(LOTS, "{" + ",".join([members, *place, *more]) + "}")

    def path(self, lot: str | None = None) -> str:
        return f"{LOTS}/{lot or self.lot}/movements"

    def move(self, quantity: str, to: int = 1, lot: str | None = None, **headers: str) -> Any:
        return self.raw("POST", self.path(lot), f'{{"toBinId":"{self.bins[to]}","quantity":{quantity}}}', **headers)

    def held(self) -> dict[str, tuple[str | None, Decimal]]:
        """Bin and quantity of every lot, by its externalId."""
        listed = exact(self.raw("GET", f"{LOTS}?limit=1000"))["data"]
        return {each["externalId"]: (each.get("binId"), Decimal(each["quantity"])) for each in listed}
