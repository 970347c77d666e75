"""A made-up warehouse without an API. It takes files with orders, keeps a book of its own, and answers with files.

``python depot.py FOLDER`` lets it work for a day. It needs nothing but Python.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

SERVED = ("AT", "DE", "NL")
BY_HAND = 20  # an order of more units is looked at by a person, and acknowledged the next day
SUBSTITUTES = {"LAMP-1": "LAMP-2"}
STOCK = {"LAMP-1": 5, "LAMP-2": 20, "OIL-5": 1, "ROPE-10": 60}
Row = dict[str, str]


class Depot:
    """The warehouse in *folder*, which has ``in``, ``in/archive`` and ``out``, and the book in ``book.json``."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._book = folder, folder / "book.json"
        fresh = {"day": 0, "answers": 0, "shipments": 0, "orders": {}, "stock": dict(STOCK)}
        self.book: dict[str, Any] = json.loads(self._book.read_text()) if self._book.exists() else fresh

    def work_for_a_day(self, at: datetime) -> None:
        """Work for a day, which ends *at* a time: take files, acknowledge their orders, ship, and report the stock."""
        self.book["day"] += 1
        acknowledged = [*self._acknowledge_reviewed_orders(), *self._take_files_and_acknowledge()]
        shipped = [row for number, order in self.book["orders"].items() for row in self._ship(number, order)]
        stock = [{"sku": sku, "lot": f"{sku}/A", "on_hand": n, "state": "available"} for sku, n in self._stock.items()]
        self._write_answer_file("ack", acknowledged, at)
        self._write_answer_file("shp", shipped, at)
        self._write_answer_file("inv", stock, at)
        self._book.write_text(json.dumps(self.book, indent=1))

    @property
    def _stock(self) -> dict[str, int]:
        stock: dict[str, int] = self.book["stock"]
        return stock

    def _take_files_and_acknowledge(self) -> Iterable[Row]:
        for path in sorted((self._folder / "in").glob("[!.]*.csv")):
            with path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            for number, lines in groupby(rows, lambda row: row["order_id"]):
                yield from self._process_order_and_acknowledge(path.name, number, list(lines))
            path.rename(path.parent / "archive" / path.name)

    def _process_order_and_acknowledge(self, file: str, number: str, lines: list[Row]) -> Iterable[Row]:
        """Write an order of a file into the book. Yield its acknowledgement, unless a person looks at it first."""
        orders, first = self.book["orders"], lines[0]
        answer, state = {"file": file, "order_id": number}, orders.get(number, {"state": "unknown"})["state"]
        if first["action"] == "CANCEL" and state in {"accepted", "looked at"}:
            orders[number]["state"] = "cancelled"
            yield answer | {"status": "OK", "reason": ""}
            return
        if first["action"] != "NEW" or state not in {"unknown", "refused"}:
            yield answer | {"status": "REJECTED", "reason": f"{first['action']}: the order is {state}"}
            return
        order = {"file": file, "number": first["purchase_order"], "day": self.book["day"], "state": "accepted"}
        order["lines"] = {row["line"]: {"sku": row["sku"], "open": int(row["quantity"])} for row in lines}
        orders[number] = order
        if first["country"] not in SERVED:
            order["state"] = "refused"
            yield answer | {"status": "REJECTED", "reason": f"no carrier to {first['country']}"}
        elif sum(int(row["quantity"]) for row in lines) > BY_HAND:
            order["state"] = "looked at"
        else:
            yield answer | {"status": "OK", "reason": ""}

    def _acknowledge_reviewed_orders(self) -> Iterable[Row]:
        for number, order in self.book["orders"].items():
            if order["state"] == "looked at":
                order["state"] = "accepted"
                yield {"file": order["file"], "order_id": number, "status": "OK", "reason": ""}

    def _ship(self, number: str, order: dict[str, Any]) -> Iterable[Row]:
        """Yield the lines of a shipment: what is in stock on the first day; on the next, substitutes, and no more."""
        if order["state"] != "accepted":
            return
        is_last = order["day"] < self.book["day"]
        picked = [
            (line, *pick) for line in order["lines"] for pick in self._pick_units_by_sku(order["lines"][line], is_last)
        ]
        is_open = any(line["open"] for line in order["lines"].values())
        order["state"] = "accepted" if is_open and not is_last else "shipped"
        status = "COMPLETE" if not is_open else "SHORT" if is_last else "PARTIAL"
        self.book["shipments"] += bool(picked)
        shipment = self.book["shipments"]
        tracking = {"carrier": "Sample Parcel", "tracking_code": f"SP{shipment:06}", "order_status": status}
        for line, sku, units in picked or [("1", order["lines"]["1"]["sku"], 0)]:
            shown = {"shipment_id": f"S{shipment}", "order_id": number, "line": line, "sku": sku}
            no_parcel = {} if picked else {"shipment_id": "", "carrier": "", "tracking_code": ""}
            yield shown | {"shipped_qty": str(units)} | tracking | no_parcel

    def _pick_units_by_sku(self, line: dict[str, Any], is_last: bool) -> Iterable[tuple[str, int]]:
        for sku in [line["sku"], *([SUBSTITUTES.get(line["sku"], "")] if is_last else [])]:
            units = min(line["open"], self._stock.get(sku, 0))
            if units:
                line["open"] -= units
                self._stock[sku] -= units
                yield sku, units

    def _write_answer_file(self, kind: str, rows: Iterable[Mapping[str, object]], at: datetime) -> None:
        """Write a file under a temporary name, and rename it: nobody reads a part of it."""
        if not (written := list(rows)):
            return
        self.book["answers"] += 1
        path = self._folder / "out" / f"{kind}_{at:%Y%m%d}_{self.book['answers']:06}.csv"
        unfinished = path.with_suffix(".tmp")
        with unfinished.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(written[0]))
            table.writeheader()
            table.writerows(written)
        os.utime(unfinished, (at.timestamp(), at.timestamp()))
        unfinished.rename(path)


if __name__ == "__main__":
    Depot(Path(sys.argv[1])).work_for_a_day(datetime.now(UTC))
