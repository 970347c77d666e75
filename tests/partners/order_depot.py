"""A warehouse that takes orders in CSV, fixed width, XML or X12, by the standard library alone, with its own book.

It answers with acknowledgements (CSV, or 997 for X12), shipments in parts and stock. The book is what tests judge by.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

Kind = Literal["csv", "fixed", "xml", "x12"]
Lines = dict[str, Decimal]
ACTIONS = {"A": "NEW", "C": "CHANGE", "D": "CANCEL", "N": "NEW", "R": "CHANGE", "F": "CANCEL"}


@dataclass(frozen=True)
class Version:
    """One version of an order in a file: *place* counts the orders of the file, from 1."""

    file: str
    place: int
    action: str
    order: str
    lines: Lines


@dataclass
class OrderDepot:
    """The warehouse of *folder*.

    Attributes:
        book: All versions of orders in the order in which they were taken.
        refuses: Orders that it refuses once, with a reason.
    """

    folder: Path
    kind: Kind
    book: list[Version] = field(default_factory=list)
    refuses: set[str] = field(default_factory=set)
    _told: int = 0
    _answers: int = 0
    _shipments: int = 0

    def __post_init__(self) -> None:
        for name in ("in/archive", "out"):
            (self.folder / name).mkdir(parents=True)

    def take(self) -> int:
        """Take all files, and return how many."""
        paths = sorted(path for path in (self.folder / "in").iterdir() if path.is_file() and path.name[0] != ".")
        for path in paths:
            read = {"csv": _csv, "fixed": _fixed, "xml": _xml, "x12": _x12}[self.kind]
            for place, (action, order, lines) in enumerate(read(path), 1):
                self.book.append(Version(path.name, place, action, order, lines))
            path.rename(path.parent / "archive" / path.name)
        return len(paths)

    def orders(self) -> dict[str, list[tuple[str, Lines]]]:
        """The versions of each order that were accepted, in their order."""
        found: dict[str, list[tuple[str, Lines]]] = {}
        for each in self.book:
            found.setdefault(each.order, []).append((each.action, each.lines))
        return found

    def acknowledge(self) -> None:
        """Acknowledge what was taken since the last time. An order of `refuses` is refused, and leaves the book."""
        said, self._told = self.book[self._told :], len(self.book)
        if not said:
            return
        refused = {each.order for each in said if each.order in self.refuses}
        self.refuses -= refused
        if self.kind == "x12":
            self._write("ack", "edi", _functional_acknowledgements(said, refused))
        else:
            rows = (
                [each.file, each.order, *(("REJECTED", "no such article") if each.order in refused else ("OK", ""))]
                for each in said
            )
            self._write_rows("ack", ["file", "order_id", "status", "reason"], rows)
        self.book = [*self.book[: -len(said)], *(each for each in said if each.order not in refused)]
        self._told = len(self.book)

    def ship(self, orders: dict[str, Lines], status: str) -> dict[str, str]:
        """Confirm shipments of these quantities, a parcel for each order, and return the tracking code of each."""
        codes, rows = dict[str, str](), list[list[str]]()
        for order, lines in orders.items():
            self._shipments += 1
            codes[order] = f"SP{self._shipments:06}"
            rows += [
                [f"S{self._shipments}", order, str(number), sku, str(qty), "Parcels", codes[order], status]
                for number, (sku, qty) in enumerate(lines.items(), 1)
            ]
        columns = ["shipment_id", "order_id", "line", "sku", "shipped_qty", "carrier", "tracking_code", "order_status"]
        self._write_rows("shp", columns, rows)
        return codes

    def stock(self, stock: Lines) -> None:
        """Report all stock."""
        rows = [[sku, f"{sku}/A", str(qty), "available"] for sku, qty in stock.items()]
        self._write_rows("inv", ["sku", "lot", "on_hand", "state"], rows)

    def _write_rows(self, kind: str, columns: list[str], rows: Iterable[list[str]]) -> None:
        text = "\n".join(",".join(row) for row in [columns, *rows]) + "\n"
        self._write(kind, "csv", text)

    def _write(self, kind: str, ending: str, text: str) -> None:
        self._answers += 1
        path = self.folder / "out" / f".{kind}_20260101_{self._answers:06}.{ending}"
        path.write_text(text)
        path.rename(path.with_name(path.name[1:]))


def _csv(path: Path) -> Iterator[tuple[str, str, Lines]]:
    found: dict[str, tuple[str, Lines]] = {}
    with path.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            found.setdefault(row["order_id"], (row["action"], {}))[1][row["sku"]] = Decimal(row["quantity"])
    yield from ((action, order, lines) for order, (action, lines) in found.items())


def _fixed(path: Path) -> Iterator[tuple[str, str, Lines]]:
    rows = path.read_text("ascii").splitlines()
    *body, trailer = rows
    assert trailer[0] == "T"
    found: list[tuple[str, str, Lines]] = []
    for row in body:
        if row[0] == "O":
            found.append((ACTIONS[row[41]], row[1:41].strip(), {}))
        else:
            found[-1][2][row[1:21].strip()] = Decimal(int(row[21:30])).scaleb(-3)
    assert int(trailer[1:7]) == len(found)
    assert Decimal(int(trailer[7:19])).scaleb(-3) == sum(qty for *_, lines in found for qty in lines.values())
    yield from found


def _xml(path: Path) -> Iterator[tuple[str, str, Lines]]:
    for order in ET.parse(path).getroot().iter("Order"):
        lines = {line.findtext("Sku", ""): Decimal(line.findtext("Quantity", "")) for line in order.iter("Line")}
        yield order.get("action", ""), order.findtext("Number", ""), lines


def _x12(path: Path) -> Iterator[tuple[str, str, Lines]]:
    text = path.read_text("ascii")
    assert text.startswith("ISA")
    element, end = text[3], text[105]
    action = order = sku = ""
    lines: Lines = {}
    sets = 0
    for segment in text.split(end):
        tag, *elements = segment.strip().split(element)
        if tag == "W05":
            action, order, lines = ACTIONS[elements[0]], elements[1], {}
        elif tag == "W01":
            sku = elements[4]
            lines[sku] = Decimal(elements[0])
        elif tag == "W76":
            assert Decimal(elements[0]) == sum(lines.values())
        elif tag == "SE":
            sets += 1
            assert int(elements[1]) == sets
            yield action, order, lines
        elif tag == "GE":
            assert int(elements[0]) == sets


def _functional_acknowledgements(said: list[Version], refused: set[str]) -> str:
    """A 997 for each file: its group is the number of the file, and its sets are counted in the file."""
    made = []
    for number, name in enumerate(dict.fromkeys(each.file for each in said), 1):
        of_file = [each for each in said if each.file == name]
        group = int("".join(filter(str.isdigit, name.rpartition("_")[2])))
        answers = [f"AK2*940*{each.place:04}~AK5*{'R*5' if each.order in refused else 'A'}~" for each in of_file]
        bad = sum(each.order in refused for each in of_file)
        counts = f"{len(of_file)}*{len(of_file)}*{len(of_file) - bad}"
        body = f"ST*997*0001~AK1*OW*{group}~{''.join(answers)}AK9*{'P' if bad else 'A'}*{counts}~"
        made.append(
            f"ISA*00*{'':10}*00*{'':10}*ZZ*{'DEPOT':15}*ZZ*{'ACME':15}*260101*0800*U*00401*{group:09}*0*P*>~"
            f"GS*FA*DEPOT*ACME*20260101*0800*{number}*X*004010~{body}SE*{body.count('~') + 1}*0001~GE*1*{number}~"
            f"IEA*1*{group:09}~"
        )
    return "\n".join(made) + "\n"
