"""Synthetic nights of a warehouse, from a seed, and what must be at the platform after them.

The standard library only and nothing of crossdock, so that one mistake cannot cancel out another.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from urllib.parse import quote

from tests.e2e.retail_truth import Holdings, canonical

NAMESPACE = "wms"
TWINS = 0.15  # share of invoices that have the body of another one, on purpose

_NAMES = ("Amsel & Co", 'Vogel; Söhne "Nord"', "Łukasz, Zażółć", "O'Brien", "株式会社", "Drossel  GmbH")
_ODD_SKUS = ("S/{}", "S {}:x", "Ä-{}", "00{}", "S%2F{}")

Line = tuple[str, str, str]  # product, quantity and price as the file has them


@dataclass(frozen=True, slots=True)
class Invoice:
    number: str
    customer: str
    currency: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """What one night's files hold.

    Attributes:
        customers: (key, name).
        products: (key, name, price).
        refused: Numbers of the invoices that no mapping can take.
    """

    customers: Sequence[tuple[str, str]]
    products: Sequence[tuple[str, str, str]]
    invoices: Sequence[Invoice]
    refused: Sequence[str] = ()

    def files(self) -> dict[str, str]:
        """The text of each file that has rows, by the beginning of its name."""
        rows = [
            (each.number, each.customer, sku, quantity, price, each.currency)
            for each in self.invoices
            for sku, quantity, price in each.lines
        ]
        tables: dict[str, tuple[tuple[str, ...], Sequence[tuple[str, ...]]]] = {
            "CUST": (("CUSTNO", "NAME"), self.customers),
            "PROD": (("SKU", "NAME", "PRICE"), self.products),
            "INV": (("INVNO", "CUSTNO", "SKU", "QTY", "PRICE", "CURRENCY"), rows),
        }
        return {name: _delimited([header, *lines]) for name, (header, lines) in tables.items() if lines}

    def shuffled(self, random: Random) -> ScheduledRun:
        """The same records in another order; the lines of an invoice keep theirs, since it matters."""
        return ScheduledRun(
            random.sample(self.customers, len(self.customers)),
            random.sample(self.products, len(self.products)),
            random.sample(self.invoices, len(self.invoices)),
            self.refused,
        )


@dataclass
class Exports:
    """Makes nights that refer to each other.

    Attributes:
        expected: What must be at the platform once all nights that were made are delivered.
        refused: Numbers of all invoices that must be dead letters.
    """

    random: Random
    expected: Holdings = field(default_factory=Holdings)
    refused: list[str] = field(default_factory=list)
    _customers: list[str] = field(default_factory=list)
    _products: list[str] = field(default_factory=list)
    _promised: list[str] = field(default_factory=list)
    _numbers: int = 0

    def night(
        self, customers: int, products: int, invoices: int, *, waiting: int = 0, refused: int = 0
    ) -> ScheduledRun:
        """A night with so many new records of each kind.

        Args:
            waiting: So many of its invoices are of a customer who comes with the next night.
            refused: So many more invoices have a price that is none.
        """
        keys = [*self._promised, *(f"C{self._next():05}" for _ in range(customers - len(self._promised)))]
        self._customers += keys
        self._promised = [f"C{self._next():05}"] if waiting else []
        named = [(key, f"{self.random.choice(_NAMES)} {key}") for key in keys]
        goods = [(self._sku(), self.random.choice(_NAMES), self._price()) for _ in range(products)]
        self._products += [sku for sku, _, _ in goods]
        made = [self._invoice(self.random.choice(self._customers)) for _ in range(invoices - waiting)]
        made = self._with_twins(made) + [self._invoice(self._promised[0]) for _ in range(waiting)]
        bad = [self._spoilt(self._invoice(self._customers[-1])) for _ in range(refused)]
        night = ScheduledRun(named, goods, [*made, *bad], [each.number for each in bad])
        self.expect(night)
        return night

    def expect(self, night: ScheduledRun) -> None:
        held, refused = self.expected, set(night.refused)
        held.customers.update(
            canonical({"externalId": external_id(key), "name": name}) for key, name in night.customers
        )
        held.products.update(product_body(*each) for each in night.products)
        for each in night.invoices:
            if each.number not in refused:
                held.add_invoice(_invoice_body(each))
        self.refused += night.refused

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    def _sku(self) -> str:
        number = self._next()
        return self.random.choice(_ODD_SKUS).format(number) if self.random.random() < 0.2 else f"S{number}"

    def _price(self) -> str:
        """From 0 to 99,999 with no to four decimals, trailing zeros among them."""
        decimals = self.random.randrange(5)
        whole, part = self.random.choice([0, 1, 19, 99_999, self.random.randrange(500)]), self.random.randrange(10**4)
        return f"{whole}.{part:04}"[: len(str(whole)) + 1 + decimals] if decimals else str(whole)

    def _quantity(self) -> str:
        return self.random.choice(["1", "2", "-1", "12.5", "0.001", str(self.random.randrange(1, 500))])

    def _invoice(self, customer: str) -> Invoice:
        lines = range(self.random.randint(1, 5))
        goods = [(self.random.choice(self._products), self._quantity(), self._price()) for _ in lines]
        return Invoice(f"{self._next():06}", customer, self.random.choice(["EUR", "GBP", "KWD"]), tuple(goods))

    def _with_twins(self, invoices: list[Invoice]) -> list[Invoice]:
        """Some get the body of the first, which stands for a standing order."""
        return [
            Invoice(each.number, invoices[0].customer, invoices[0].currency, invoices[0].lines)
            if self.random.random() < TWINS
            else each
            for each in invoices
        ]

    def _spoilt(self, invoice: Invoice) -> Invoice:
        (sku, quantity, _), *others = invoice.lines
        return Invoice(invoice.number, invoice.customer, invoice.currency, ((sku, quantity, "1.x"), *others))


def external_id(key: str) -> str:
    return f"{NAMESPACE}:{quote(key, safe='')}"


def exact(text: str) -> Decimal:
    """The number, where zero has no sign, as JSON has it."""
    return Decimal(text) or Decimal(0)


def product_body(sku: str, name: str, price: str) -> str:
    facts = {"externalId": external_id(sku), "sku": sku, "name": name, "unitPrice": exact(price), "active": True}
    return canonical(facts)


def _invoice_body(invoice: Invoice) -> dict[str, object]:
    items = [
        {"productId": external_id(sku), "quantity": exact(quantity), "unitPrice": exact(price)}
        for sku, quantity, price in invoice.lines
    ]
    return {"customerId": external_id(invoice.customer), "currency": invoice.currency, "items": items}


def _delimited(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="\n").writerows(rows)
    return text.getvalue()
