"""The warehouse behind a fake 3PL: its records, and what its people do without being asked by a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from crossdock.testing import ManualClock

Table = Literal["products", "locations", "stock", "orders", "shipments", "receipts", "bills"]
StockState = Literal["available", "hold", "damaged"]
Number = int | Decimal


@dataclass(slots=True)
class Stored:
    """A record; times in *members* are instants, quantities and prices exact numbers."""

    members: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    version: int = 1


@dataclass(frozen=True, slots=True)
class _Pick:
    stock_id: str
    line: int
    sku: str
    quantity: Number


class Warehouse:
    """The records of all owners. Whoever calls its methods while a server is at work does so in `Plain3pl.meanwhile`.

    Every method raises ValueError, and changes nothing, if what it should do is impossible.
    """

    def __init__(self, clock: ManualClock, *, negative_stock: bool = False) -> None:
        self._clock, self._negative_stock, self._last_id = clock, negative_stock, 0
        self.tables: dict[Table, dict[str, Stored]] = {
            "products": {},
            "locations": {},
            "stock": {},
            "orders": {},
            "shipments": {},
            "receipts": {},
            "bills": {},
        }

    # ---- records

    def add(self, table: Table, members: dict[str, Any]) -> str:
        """Store a record; its id is of six digits, and unique among the records of all tables."""
        self._last_id += 1
        record_id, now = f"{self._last_id:06}", self._clock.now()
        self.tables[table][record_id] = Stored(members, now, now)
        return record_id

    def touch(self, stored: Stored) -> None:
        """Note that a record has changed."""
        stored.updated_at = self._clock.now()
        stored.version += 1

    def add_product(self, owner: str, sku: str, **members: Any) -> str:
        """Register a product, counted in pieces unless *members* say otherwise."""
        if self.has_product(owner, sku):
            raise ValueError(f"{owner} has a product {sku!r}")
        usual = {"name": sku, "unit": "each", "active": True}
        return self.add("products", usual | members | {"owner": owner, "sku": sku})

    def has_product(self, owner: str, sku: object) -> bool:
        return self._product(owner, sku) is not None

    def add_location(self, owner: str, code: str) -> str:
        return self.add("locations", {"owner": owner, "code": code, "warehouse": "W1", "active": True})

    def _product(self, owner: str, sku: object) -> dict[str, Any] | None:
        products = (stored.members for stored in self.tables["products"].values())
        return next((each for each in products if (each["owner"], each["sku"]) == (owner, sku)), None)

    # ---- stock

    def receive(
        self,
        owner: str,
        sku: str,
        lot: str,
        location: str,
        quantity: Number,
        *,
        expected: Number | None = None,
        state: StockState = "available",
    ) -> str:
        """Put goods away, and return the id of the receipt."""
        product = self._product(owner, sku)
        if quantity <= 0 or product is None:
            raise ValueError(f"cannot receive {quantity} of {sku!r} for {owner}")
        place = {"owner": owner, "sku": sku, "lot": lot, "location": location, "state": state, "unit": product["unit"]}
        self._put_away(place, quantity)
        line = {"sku": sku, "lot": lot, "location": location, "state": state, "received": quantity}
        line["expected"] = quantity if expected is None else expected
        return self.add("receipts", {"owner": owner, "received_at": self._clock.now(), "lines": [line]})

    def _put_away(self, place: dict[str, Any], quantity: Number) -> None:
        for stored in self.tables["stock"].values():
            if place.items() <= stored.members.items():
                stored.members["quantity"] += quantity
                return self.touch(stored)
        self.add("stock", place | {"quantity": quantity})
        return None

    def adjust(self, stock_id: str, delta: Number) -> None:
        """Correct a quantity by *delta*."""
        stored = self.tables["stock"][stock_id]
        present = stored.members["quantity"] + delta
        if present < 0 and not self._negative_stock:
            raise ValueError(f"stock {stock_id} would be {present}")
        stored.members["quantity"] = present
        self.touch(stored)

    def lose(self, stock_id: str) -> None:
        """Lose all goods of a stock record, and the record with them: no list has it any more."""
        del self.tables["stock"][stock_id]

    # ---- orders

    def add_order(self, members: dict[str, Any]) -> str:
        """Accept an order."""
        return self.add("orders", members | {"status": "new", "lines": _fresh_lines(members["lines"])})

    def replace_order(self, order_id: str, members: dict[str, Any]) -> None:
        """Replace the content of an order of which nothing is shipped or short."""
        stored = self._open_order(order_id)
        stored.members = members | {"status": stored.members["status"], "lines": _fresh_lines(members["lines"])}
        self.touch(stored)

    def is_untouched(self, order_id: str) -> bool:
        """Whether an order is not cancelled, and nothing of it is shipped or short."""
        order = self.tables["orders"][order_id].members
        return order["status"] != "cancelled" and not any(line["shipped"] + line["short"] for line in order["lines"])

    def ship(self, order_id: str, quantities: Mapping[int, Number]) -> str:
        """Ship a part of an order, by line number, from its oldest stock; returns the id of the shipment."""
        skus = {line["line"]: line["sku"] for line in self._open_order(order_id).members["lines"]}
        return self._ship(order_id, [(line, skus.get(line, ""), quantity) for line, quantity in quantities.items()])

    def substitute(self, order_id: str, line: int, quantity: Number, sku: str) -> str:
        """Ship *sku* in place of what a line asks for; returns the id of the shipment."""
        return self._ship(order_id, [(line, sku, quantity)])

    def short(self, order_id: str, line: int, quantity: Number) -> None:
        """Give up a quantity of a line."""
        stored = self._open_order(order_id)
        _remaining_line(stored, line, quantity)["short"] += quantity
        self._settle(stored)

    def cancel(self, order_id: str) -> None:
        """Cancel an order of which nothing is shipped or short."""
        if not self.is_untouched(order_id):
            raise ValueError(f"order {order_id} cannot be cancelled any more")
        self.mark(order_id, "cancelled")

    def mark(self, order_id: str, status: str) -> None:
        """Give an open order a status, which may be one that no manual lists."""
        stored = self._open_order(order_id)
        stored.members["status"] = status
        self.touch(stored)

    def bill(self, owner: str, currency: str, amounts: Mapping[str, Decimal]) -> str:
        """Bill an owner for services, each with its amount."""
        lines = [{"service": service, "amount": amount} for service, amount in amounts.items()]
        total = sum(amounts.values(), Decimal())
        return self.add("bills", {"owner": owner, "currency": currency, "lines": lines, "total": total})

    def _open_order(self, order_id: str) -> Stored:
        stored = self.tables["orders"][order_id]
        if stored.members["status"] == "cancelled":
            raise ValueError(f"order {order_id} is cancelled")
        return stored

    def _ship(self, order_id: str, wanted: list[tuple[int, str, Number]]) -> str:
        stored = self._open_order(order_id)
        order = stored.members
        lines = {line: _remaining_line(stored, line, quantity) for line, _, quantity in wanted}
        shipped = []
        for pick in self._picks(order["owner"], wanted):
            line, taken = lines[pick.line], self.tables["stock"][pick.stock_id].members
            self.adjust(pick.stock_id, -pick.quantity)
            line["shipped"] += pick.quantity
            what = {
                "line": pick.line,
                "sku": pick.sku,
                "ordered_sku": line["sku"],
                "unit_price": line.get("unit_price"),
            }
            shipped.append({**what, "lot": taken["lot"], "location": taken["location"], "quantity": pick.quantity})
        self._settle(stored)
        copied = {name: order.get(name) for name in ("owner", "reference", "customer", "currency")}
        tracking = {"carrier": "UPS", "tracking": f"1Z{len(self.tables['shipments']) + 1:08}"}
        about = {"order_id": order_id, "shipped_at": self._clock.now(), "lines": shipped}
        return self.add("shipments", copied | tracking | about)

    def _picks(self, owner: str, wanted: Iterable[tuple[int, str, Number]]) -> list[_Pick]:
        """What to take from where; if stock may be negative, the newest record of a product gives what is missing."""
        left = {
            stock_id: stored.members["quantity"]
            for stock_id, stored in self.tables["stock"].items()
            if (stored.members["owner"], stored.members["state"]) == (owner, "available")
        }
        picks = []
        for line, sku, quantity in wanted:
            missing = quantity
            places = [each for each in left if self.tables["stock"][each].members["sku"] == sku]
            for stock_id in places:
                overdraws = self._negative_stock and stock_id == places[-1]
                taken = missing if overdraws else min(missing, max(left[stock_id], 0))
                left[stock_id] -= taken
                missing -= taken
                if taken:
                    picks.append(_Pick(stock_id, line, sku, taken))
            if missing:
                raise ValueError(f"{owner} lacks {missing} of {sku!r}")
        return picks

    def _settle(self, stored: Stored) -> None:
        """The status that follows from what is shipped and short."""
        lines = stored.members["lines"]
        shipped, short = (any(line[name] for line in lines) for name in ("shipped", "short"))
        if any(line["quantity"] > line["shipped"] + line["short"] for line in lines):
            stored.members["status"] = "part_shipped" if shipped else "new"
        else:
            stored.members["status"] = "short" if short else "shipped"
        self.touch(stored)


def _fresh_lines(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The lines of an order, numbered from 1, of which nothing is shipped or short."""
    return [{**line, "line": number, "shipped": 0, "short": 0} for number, line in enumerate(lines, 1)]


def _remaining_line(stored: Stored, number: int, quantity: Number) -> dict[str, Any]:
    """A line of which *quantity* is neither shipped nor short yet."""
    line: dict[str, Any] = next((each for each in stored.members["lines"] if each["line"] == number), {})
    if not line or not 0 < quantity <= line["quantity"] - line["shipped"] - line["short"]:
        raise ValueError(f"line {number} has no {quantity} left")
    return line
