"""What the retail exports must become, computed from the files alone.

The standard library only and nothing of crossdock, so that one mistake cannot cancel out another.

    python -m tests.e2e.retail_truth FOLDER DAYS

Which row of a product is its newest is decided by ``InvoiceDate``. Three times in 305 days rows of one product and one
minute disagree, and each time a later row of the same day decides; a tie that would matter is an error here, since the
files do not say what is right. No invoice stands in two files or names two customers, which is checked as well.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

NAMESPACE = "shop"


@dataclass
class Holdings:
    """What a platform holds: multisets of canonical bodies in which external ids stand for ids, and the money in them.

    Attributes:
        total: The sum of quantity x unitPrice over all invoices.
    """

    customers: Counter[str] = field(default_factory=Counter)
    products: Counter[str] = field(default_factory=Counter)
    invoices: Counter[str] = field(default_factory=Counter)
    total: Decimal = Decimal(0)

    def add_invoice(self, body: dict[str, Any]) -> None:
        self.invoices[canonical(body)] += 1
        self.total += sum((item["quantity"] * item["unitPrice"] for item in body["items"]), Decimal(0))

    @property
    def size(self) -> int:
        return self.customers.total() + self.products.total() + self.invoices.total()

    def differences(self, other: Holdings) -> dict[str, Any]:
        """What one has and the other has not, empty when they are equal; short enough to be read in a failure."""
        found: dict[str, Any] = {}
        for name in ("customers", "products", "invoices"):
            mine, theirs = getattr(self, name), getattr(other, name)
            for label, odd in ((f"{name} too many", mine - theirs), (f"{name} missing", theirs - mine)):
                if odd:
                    found[label] = (odd.total(), odd.most_common(3))
        if self.total != other.total:
            found["total"] = (self.total, other.total)
        return found


@dataclass
class Truth:
    """What some files hold.

    Attributes:
        rows: Of all files, without their headers.
        cancelled: Rows of invoices whose number begins with C; they are left out.
        no_customer: Rows left out of the others because they name no customer.
    """

    rows: int = 0
    cancelled: int = 0
    no_customer: int = 0
    holdings: Holdings = field(default_factory=Holdings)

    @property
    def kept(self) -> int:
        return self.rows - self.cancelled - self.no_customer

    @property
    def requests(self) -> int:
        """What it takes to bring everything to an empty platform, one request each."""
        return self.holdings.size

    @property
    def look_alikes(self) -> tuple[int, int]:
        """How many invoices share their body with another one, and how many such bodies there are."""
        shared = [number for number in self.holdings.invoices.values() if number > 1]
        return sum(shared), len(shared)


def canonical(body: dict[str, Any]) -> str:
    """One text for a body: 6 and 6.0 are one number, and no number is a text. The order of items counts."""
    return json.dumps(body, sort_keys=True, ensure_ascii=False, default=_number)


def _number(value: object) -> dict[str, str]:
    if not isinstance(value, Decimal):
        raise TypeError(f"{type(value).__name__} is no exact value")
    return {"number": format(value.normalize(), "f")}


def external_id(key: str) -> str:
    return f"{NAMESPACE}:{quote(key, safe='')}"


def rows(file: Path) -> Iterator[dict[str, str]]:
    """The rows of one export as text."""
    with gzip.open(file, "rt", encoding="utf-8", newline="") as text:
        yield from csv.DictReader(text, strict=True)


def of(files: Iterable[Path]) -> Truth:
    """Read *files*, one export each.

    Raises:
        ValueError: If the files do not say which product is the newest or whose an invoice is.
    """
    truth = Truth()
    customers: set[str] = set()
    newest: dict[str, tuple[str, set[str]]] = {}
    invoices: dict[str, dict[str, Any]] = {}
    for file in files:
        of_file: dict[str, dict[str, Any]] = {}
        for row in _kept(truth, file):
            customer = row["CustomerID"].removesuffix(".0")
            customers.add(customer)
            _compete(newest, row)
            _add_line(of_file.setdefault(row["InvoiceNo"], _invoice(customer)), customer, row)
        if twice := of_file.keys() & invoices.keys():
            raise ValueError(f"{file.name}: invoices {sorted(twice)} stand in another file too")
        invoices.update(of_file)
    held = truth.holdings
    held.customers.update(canonical({"externalId": external_id(key), "name": f"Customer {key}"}) for key in customers)
    held.products.update(_product(code, *newest[code]) for code in newest)
    for body in invoices.values():
        held.add_invoice(body)
    return truth


def _kept(truth: Truth, file: Path) -> Iterator[dict[str, str]]:
    for row in rows(file):
        truth.rows += 1
        if row["InvoiceNo"].startswith("C"):
            truth.cancelled += 1
        elif not row["CustomerID"]:
            truth.no_customer += 1
        else:
            yield row


def _compete(newest: dict[str, tuple[str, set[str]]], row: dict[str, str]) -> None:
    at, names = newest.get(row["StockCode"], ("", set()))
    if row["InvoiceDate"] > at:
        newest[row["StockCode"]] = (row["InvoiceDate"], {row["Description"]})
    elif row["InvoiceDate"] == at:
        names.add(row["Description"])


def _product(code: str, at: str, names: set[str]) -> str:
    if len(names) > 1:
        raise ValueError(f"product {code} has {len(names)} names at {at}, and the files do not say which is newer")
    return canonical({"externalId": external_id(code), "sku": code, "name": names.pop(), "active": True})


def _invoice(customer: str) -> dict[str, Any]:
    return {"customerId": external_id(customer), "currency": "GBP", "items": []}


def _add_line(body: dict[str, Any], customer: str, row: dict[str, str]) -> None:
    if body["customerId"] != external_id(customer):
        raise ValueError(f"invoice {row['InvoiceNo']} names two customers")
    price = Decimal(row["UnitPrice"])
    item = {"productId": external_id(row["StockCode"]), "quantity": Decimal(row["Quantity"]), "unitPrice": price}
    body["items"].append(item)


def main() -> None:
    """Print the figures of the first days of a folder of exports."""
    folder, days = Path(sys.argv[1]), int(sys.argv[2])
    truth = of(sorted(folder.glob("*.csv.gz"))[:days])
    held = truth.holdings
    counts = held.invoices.total(), held.customers.total(), held.products.total()
    print(
        f"first {days} days: {truth.rows:,} rows, {truth.cancelled:,} cancelled, {truth.no_customer:,} no_customer,",
        "{:,} invoices, {:,} customers, {:,} products,".format(*counts),
        f"{truth.requests:,} requests, sum {held.total:,}",
    )
    print("{} invoices share their body with another one, in {} groups".format(*truth.look_alikes))


if __name__ == "__main__":
    main()
