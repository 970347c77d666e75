"""What the platform must hold after a migration of retail exports, computed from the files alone.

The standard library only and nothing of crossdock, so that one mistake cannot cancel out another:

    python -I retail_judge.py EXPORTS DUMP.json

Numbers of the dump are texts. Its records are of the migration, or of others: those are listed by id under ``others``.
Customers are those of all lines with a CustomerID; their country is that of their newest line. Products are those of
all lines that are not cancelled and have a description, which is that of the newest line. If lines of one minute
disagree, each of them may be the newest. Invoices are those that are not cancelled and have a customer. Prints a line
for each fault.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

Row = dict[str, str]
_SHOWN = 5


@dataclass
class Newest:
    """The values of the newest line of each key."""

    values: dict[str, tuple[str, set[str]]] = field(default_factory=dict)

    def take(self, key: str, at: str, value: str) -> None:
        known, values = self.values.get(key, ("", set()))
        if at > known:
            self.values[key] = at, {value}
        elif at == known:
            values.add(value)


@dataclass
class Expected:
    """What some exports must become.

    Attributes:
        lines: By what became of them as invoice lines.
    """

    countries: Newest = field(default_factory=Newest)
    descriptions: Newest = field(default_factory=Newest)
    invoices: dict[str, dict[str, Any]] = field(default_factory=dict)
    lines: Counter[str] = field(default_factory=Counter)

    def take(self, row: Row) -> None:
        """Add a line of an export."""
        customer, at = row["CustomerID"].removesuffix(".0"), row["InvoiceDate"]
        is_cancelled = row["InvoiceNo"].startswith("C")
        if customer:
            self.countries.take(customer, at, row["Country"])
        if row["Description"] and not is_cancelled:
            self.descriptions.take(row["StockCode"], at, row["Description"])
        self.lines["cancelled" if is_cancelled else "kept" if customer else "no customer"] += 1
        if customer and not is_cancelled:
            empty = {"customerId": _name(customer), "currency": "GBP", "items": []}
            invoice = self.invoices.setdefault(row["InvoiceNo"], empty)
            numbers = {"quantity": Decimal(row["Quantity"]), "unitPrice": Decimal(row["UnitPrice"])}
            invoice["items"].append({"productId": _name(row["StockCode"]), **numbers})


def of(folder: Path) -> Expected:
    """Read all exports in *folder*."""
    expected = Expected()
    for file in sorted(folder.glob("*.csv.gz")):
        for row in rows(file):
            expected.take(row)
    return expected


def rows(file: Path) -> Iterator[Row]:
    with gzip.open(file, "rt", encoding="utf-8", newline="") as text:
        yield from csv.DictReader(text, strict=True)


def faults(expected: Expected, dump: Mapping[str, list[dict[str, Any]]], others: set[str]) -> list[str]:
    """What is wrong with the platform's records, without those of *others*; empty if nothing is."""
    held = {name: [each for each in records if each["id"] not in others] for name, records in dump.items()}
    odd = [f"{len(held[name])} records of {name}" for name in held if name not in _OURS and held[name]]
    countries = {key: {f"Customer {key} ({each})" for each in of} for key, (_, of) in expected.countries.values.items()}
    descriptions = {key: of for key, (_, of) in expected.descriptions.values.items()}
    names = {each["id"]: each["externalId"] for name in ("customer", "product") for each in held[name]}
    bodies = Counter(_canonical(_named(each, names)) for each in held["invoice"])
    wanted = Counter(map(_canonical, expected.invoices.values()))
    return [
        *odd,
        *_differing("customer", countries, held["customer"], lambda _: {}),
        *_differing("product", descriptions, held["product"], lambda key: {"sku": key, "active": True}),
        *(f"invoices missing: {_some(wanted - bodies)}" for _ in range(bool(wanted - bodies))),
        *(f"invoices too many: {_some(bodies - wanted)}" for _ in range(bool(bodies - wanted))),
    ]


_OURS = ("customer", "product", "invoice")


def _differing(resource: str, names: Mapping[str, set[str]], held: list[dict[str, Any]], members: Any) -> Iterator[str]:
    found = Counter(each["externalId"] for each in held)
    wanted = {_name(key): (names[key], members(key)) for key in names}
    if twice := [name for name, number in found.items() if number > 1]:
        yield f"{resource}: twice {twice[:_SHOWN]}"
    if missing := sorted(wanted.keys() - found.keys()):
        yield f"{resource}: {len(missing)} missing: {missing[:_SHOWN]}"
    if extra := sorted(found.keys() - wanted.keys()):
        yield f"{resource}: {len(extra)} too many: {extra[:_SHOWN]}"
    for each in held:
        allowed, fixed = wanted.get(each["externalId"], ({each["name"]}, {}))
        if each["name"] not in allowed or any(each.get(name) != value for name, value in fixed.items()):
            yield f"{resource} {each['externalId']}: {each}, expected {sorted(allowed)} {fixed}"


def _named(invoice: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """What was sent of an invoice, with names in place of ids."""
    items = [
        {name: names.get(value, value) if name == "productId" else Decimal(value) for name, value in item.items()}
        for item in invoice["items"]
    ]
    customer = names.get(invoice["customerId"], invoice["customerId"])
    return {"customerId": customer, "currency": invoice["currency"], "items": items}


def _canonical(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, ensure_ascii=False, default=lambda number: f"{number.normalize():f}")


def _name(key: str) -> str:
    return f"shop:{quote(key, safe='')}"


def _some(records: Counter[str]) -> str:
    return f"{records.total()}, such as {list(records)[:_SHOWN]}"


def main() -> int:
    folder, dump = map(Path, sys.argv[1:])
    document = json.loads(dump.read_text())
    found = faults(of(folder), document["records"], set(document["others"]))
    sys.stdout.writelines(f"{each}\n" for each in found)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
