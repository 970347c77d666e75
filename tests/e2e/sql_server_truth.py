"""What the exports of `tests.e2e.sql_server_exports` must become, computed from the files alone.

The standard library only and nothing of crossdock or of the generator, so that one mistake cannot cancel out another.

    python -m tests.e2e.sql_server_truth FOLDER [NIGHTS]

Products, customers, bins, lots and accounts are what the newest files list; the platform keeps what was delivered
before and is not listed any more. An order is the newest row of its header with the newest row of each of its lines,
whichever file and night they came in. A record that breaks a rule is a dead letter, and one that refers to a record
that is not on the platform waits; the platform keeps its older version.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

NAMESPACE = "erp"
ZONE = ZoneInfo("America/Los_Angeles")
ACCOUNT_TYPES = {
    "Assets": "asset",
    "Liabilities": "liability",
    "Balances": "equity",
    "Revenue": "revenue",
    "Expenditures": "expense",
}
STATUSES = {"1": "in_process", "2": "approved", "3": "backordered", "4": "rejected", "5": "shipped", "6": "cancelled"}
REFERENCES = {"customerId": "customer", "productId": "product", "binId": "warehouse_bin", "parentId": "ledger_account"}
GIVEN = ("id", "createdAt", "updatedAt")  # by the platform

Row = list[str]
Body = dict[str, Any]
Bodies = dict[str, Body]  # by external id


@dataclass
class Truth:
    """What the platform holds after some nights, and what it does not hold.

    Attributes:
        held: The bodies of each resource by external id; references in them are external ids.
        dead: (resource, external id) of each dead letter after the last night, and its cause.
        waiting: (resource, external id) of each record that waits, and the external ids that it waits for.
        skipped: Statistical accounts, which are left out.
    """

    held: dict[str, Bodies] = field(default_factory=lambda: defaultdict(dict))
    dead: dict[tuple[str, str], str] = field(default_factory=dict)
    waiting: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    skipped: int = 0

    @property
    def counts(self) -> dict[str, int]:
        return {resource: len(bodies) for resource, bodies in self.held.items()}

    def canonical(self) -> dict[str, dict[str, str]]:
        """`held` as texts that are equal for equal bodies."""
        return {
            resource: {key: canonical(body) for key, body in bodies.items()} for resource, bodies in self.held.items()
        }


def canonical(body: Body) -> str:
    """One text for a body: 6 and 6.0 are one number, and no number is a text. The order of items counts."""
    return json.dumps(body, sort_keys=True, ensure_ascii=False, default=_number)


def _number(value: object) -> dict[str, str]:
    if not isinstance(value, Decimal):
        raise TypeError(f"{type(value).__name__} is not an exact value")
    return {"number": format(value.normalize(), "f")}


def held_by(stored: Mapping[str, Iterable[Body]]) -> dict[str, dict[str, str]]:
    """What a platform holds of our namespace, in the form of `Truth.canonical`.

    Args:
        stored: The bodies of each resource as the platform lists them, numbers as `Decimal`.
    """
    bodies = {resource: list(listed) for resource, listed in stored.items()}
    names = {body["id"]: body["externalId"] for listed in bodies.values() for body in listed}
    return {
        resource: {
            body["externalId"]: canonical(_with_names(body, names))
            for body in listed
            if body["externalId"].startswith(f"{NAMESPACE}:")
        }
        for resource, listed in bodies.items()
    }


def _with_names(body: Body, names: Mapping[str, str]) -> Body:
    """*body* with external ids for ids, without the members that the platform adds."""
    own: Body = {
        name: names[value] if name in REFERENCES else value for name, value in body.items() if name not in GIVEN
    }
    if "items" in own:
        own["items"] = [_with_names(item, names) for item in own["items"]]
    return own


def external_id(*parts: str) -> str:
    """The namespace and the parts of a key, each percent-encoded."""
    return f"{NAMESPACE}:{'|'.join(quote(part, safe='') for part in parts)}"


def of(folder: Path, nights: int | None = None) -> Truth:
    """What the exports of the first *nights* in *folder* come to; all of them without a number."""
    dates = sorted({match[0] for file in folder.glob("*.csv") if (match := re.search(r"20\d{6}", file.name))})
    truth, headers = Truth(), dict[str, Row]()
    lines: dict[str, dict[str, Row]] = defaultdict(dict)
    for date in dates[:nights]:
        for row in _rows(folder, "SalesOrderHeader", date, 16):
            headers[row[0]] = row
        for row in _rows(folder, "SalesOrderDetail", date, 10):
            lines[row[0]][row[1]] = row
        truth.dead, truth.waiting, truth.skipped = {}, {}, 0
        _deliver(truth, "ledger_account", _accounts(truth, folder, date))
        _deliver(truth, "customer", _customers(truth, folder, date))
        _deliver(truth, "product", _products(folder, date))
        _deliver(truth, "warehouse_bin", _bins(truth, folder, date))
        _deliver(truth, "inventory_lot", _lots(folder, date))
        _deliver(truth, "order", _orders(truth, headers, lines, _currencies(folder, date)))
    return truth


def _rows(folder: Path, table: str, date: str, width: int) -> Iterator[Row]:
    """The cells of all files of a table and a date; three tables have line ends in their cells or bars in between."""
    delimiter, row_end = {"Person": ("+|", "&|\n"), "Store": ("+|", "&|\n"), "Account": ("|", "\r\n")}.get(
        table, ("\t", "\r\n")
    )
    for file in sorted(folder.glob(f"{table}_{date}*.csv")):
        data = file.read_bytes()
        text = data.decode("utf-16" if data.startswith(b"\xff\xfe") else "cp1252")
        *rows, rest = text.split(row_end)
        if rest:
            raise ValueError(f"{file.name} does not end with a row end")
        for number, row in enumerate(rows, 1):
            cells = row.split(delimiter)
            if len(cells) != width:
                raise ValueError(f"{file.name}: row {number} has {len(cells)} cells instead of {width}")
            yield cells


def _deliver(truth: Truth, resource: str, bodies: Bodies) -> None:
    """Hold those of *bodies* whose references are held, again and again, since accounts refer to accounts."""
    held, left = truth.held[resource], dict(bodies)
    while ready := [key for key, body in left.items() if not _missing(truth, body)]:
        held.update({key: left.pop(key) for key in ready})
    truth.waiting.update({(resource, key): _missing(truth, body) for key, body in left.items()})


def _missing(truth: Truth, body: Body) -> tuple[str, ...]:
    items: Iterable[Body] = [body, *body.get("items", ())]
    found = ((REFERENCES[name], item[name]) for item in items for name in REFERENCES.keys() & item.keys())
    return tuple(sorted({key for resource, key in found if key not in truth.held[resource]}))


def _accounts(truth: Truth, folder: Path, date: str) -> Bodies:
    bodies: Bodies = {}
    for key, parent, code, name, kind, _operator, _value_type in _rows(folder, "Account", date, 7):
        own = external_id(key)
        if kind == "Statistical":
            truth.skipped += 1
        elif kind not in ACCOUNT_TYPES:
            truth.dead["ledger_account", own] = "unknown type"
        else:
            bodies[own] = {"externalId": own, "code": code, "name": name, "type": ACCOUNT_TYPES[kind]}
            if parent:
                bodies[own]["parentId"] = external_id(parent)
    return bodies


def _customers(truth: Truth, folder: Path, date: str) -> Bodies:
    people = {row[0]: f"{row[3]} {row[5]}" for row in _rows(folder, "Person", date, 9)}
    stores = {row[0]: row[1] for row in _rows(folder, "Store", date, 6)}
    bodies: Bodies = {}
    for key, person, store, *_rest in _rows(folder, "Customer", date, 7):
        own = external_id(key)
        if store or person:
            bodies[own] = {"externalId": own, "name": stores[store] if store else people[person]}
        else:
            truth.dead["customer", own] = "neither person nor store"
    return bodies


def _products(folder: Path, date: str) -> Bodies:
    bodies: Bodies = {}
    for row in _rows(folder, "Product", date, 13):
        key, name, number, price, unit, ended = row[0], row[1], row[2], row[6], row[7].strip(), row[9]
        own = external_id(key)
        body = {"externalId": own, "sku": number, "name": name, "currency": "USD", "active": not ended}
        if price:
            body["unitPrice"] = Decimal(price)
        if unit:
            body["unitOfMeasure"] = unit
        bodies[own] = body
    return bodies


def _bins(truth: Truth, folder: Path, date: str) -> Bodies:
    places = {row[0]: row[1] for row in _rows(folder, "Location", date, 4)}
    bodies: Bodies = {}
    for place, shelf, number, capacity, _modified in _rows(folder, "Bin", date, 5):
        own = external_id(place, shelf, number)
        if place not in places:
            truth.dead["warehouse_bin", own] = "unknown location"
            continue
        bodies[own] = {"externalId": own, "code": f"{shelf}-{number}", "warehouse": places[place], "zone": shelf}
        bodies[own]["active"] = True
        if capacity:
            bodies[own]["capacity"] = Decimal(capacity)
    return bodies


def _lots(folder: Path, date: str) -> Bodies:
    bodies: Bodies = {}
    for product, place, shelf, number, quantity, _guid, _modified in _rows(folder, "ProductInventory", date, 7):
        own = external_id(product, place, shelf, number)
        bodies[own] = {
            "externalId": own,
            "productId": external_id(product),
            "lotNumber": f"{product}-{place}",
            "binId": external_id(place, shelf, number),
            "quantity": Decimal(quantity),
        }
    return bodies


def _currencies(folder: Path, date: str) -> dict[str, str]:
    return {row[0]: row[3] for row in _rows(folder, "CurrencyRate", date, 6)}


def _orders(
    truth: Truth, headers: Mapping[str, Row], lines: Mapping[str, Mapping[str, Row]], currencies: Mapping[str, str]
) -> Bodies:
    bodies: Bodies = {}
    for key in sorted(headers.keys() | lines.keys(), key=int):
        own = external_id(key)
        if key not in headers:
            truth.dead["order", own] = "lines without an order"
        elif not lines.get(key):
            truth.dead["order", own] = "no lines"
        else:
            bodies[own] = _order(own, headers[key], lines[key], currencies)
    return bodies


def _order(own: str, header: Row, lines: Mapping[str, Row], currencies: Mapping[str, str]) -> Body:
    placed = datetime.strptime(header[2], "%Y-%m-%d %H:%M:%S").replace(tzinfo=ZONE).astimezone(UTC)
    return {
        "externalId": own,
        "customerId": external_id(header[8]),
        "currency": currencies[header[9]] if header[9] else "USD",
        "placedAt": placed.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "status": STATUSES[header[5]],
        "items": [
            {"productId": external_id(line[4]), "quantity": Decimal(line[3]), "unitPrice": Decimal(line[5])}
            for _, line in sorted(lines.items(), key=lambda item: int(item[0]))
        ],
    }


def main() -> None:
    """Print the records as JSON lines, then what is dead and what waits."""
    truth = of(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else None)
    for resource, bodies in truth.canonical().items():
        for body in bodies.values():
            print(resource, body)
    for (resource, key), cause in truth.dead.items():
        print("dead letter:", resource, key, cause)
    for (resource, key), missing in truth.waiting.items():
        print("waiting:", resource, key, "for", *missing)
    print(truth.counts, f"{truth.skipped} skipped")


if __name__ == "__main__":
    main()
