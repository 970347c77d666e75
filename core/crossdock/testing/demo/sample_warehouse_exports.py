"""The exports of a made-up warehouse: the same in every demo, and as untidy as real exports."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from decimal import Decimal

Row = tuple[object, ...]

ITEMS, CUSTOMERS, BINS, LOTS = 60, 40, 30, 200
LATE_ITEM = 60  # exported from day 2
LATE_CUSTOMER = 20041  # exported on day 3, which the demo leaves to the user
INVOICES = {1: range(70001, 70046), 2: range(70046, 70061), 3: range(70061, 70069)}
MISTYPED = 70013  # has a price with a letter O on day 1, and is exported again, corrected, on day 2
ALTERED = 70030  # exported again on day 2 with another quantity, after it was delivered
CANCELLED = {70007, 70052}

_THINGS = ("Haken", "Käfig", "Kiste", "Lüfter", "Schlüssel", "Waage", "Crème brûlée set", "Voucher £10")
_LOOKS = ("blau", "grün", "groß", "klein", "faltbar", "rostfrei", "für außen")
_NAMES = ("Böttcher", "Café Zoë", "Harbour & Sons", "Jürgens", "Müller", "O'Hara", "Señor Díaz", "Übersee")
_CITIES = (("Köln", "DE"), ("Lübeck", "DE"), ("Leeds", "GB"), ("Zürich", "CH"), ("Málaga", "ES"))


def sample_exports_of_day(day: int) -> dict[str, bytes]:
    """The files of a day, from 1: name -> content."""
    date = f"202611{day:02}"
    customers = "CUSTNO|NAME|EMAIL|STREET|CITY|CC|CHANGED"
    return {
        f"CUSTOMERS_{date}.txt": _export_content(customers, _customers(day), "|"),
        f"ITEMS_{date}.txt": _export_content("SKU|NAME|UNIT|PRICE", _shuffled(day, _items(day)), "|", trailer=True),
        f"BINS_{date}.csv": _export_content("BIN;AREA;CAPACITY", _shuffled(day, _bins()), ";"),
        f"LOTS_{date}.txt": _export_content("LOTNO|BIN|SKU|QTY|EXPIRY", _shuffled(day, _lots(day)), "|", trailer=True),
        f"INVOICES_{date}.csv": _export_content("INVNO;CUSTNO;SKU;QTY;PRICE;STATE", _invoices(day), ";"),
    }


def _export_content(header: str, rows: Iterable[Row], delimiter: str, *, trailer: bool = False) -> bytes:
    lines = [delimiter.join(map(str, row)) for row in rows]
    end = [f"TRL{delimiter}{len(lines)}"] if trailer else []
    return "".join(f"{line}\r\n" for line in (header, *lines, *end)).encode("cp1252")


def _seeded_random(*seed: object) -> random.Random:
    return random.Random(repr(seed))  # noqa: S311  nothing here is secret


def _shuffled(day: int, rows: Iterable[Row]) -> list[Row]:
    """In another order each day, as rows of a table without an order are."""
    listed = list(rows)
    _seeded_random("order", day).shuffle(listed)
    return listed


def _sku(number: int) -> str:
    return f"{number:04}"


def _price(item: int, day: int) -> Decimal:
    """With two to four decimals; every twentieth item costs more from day 2."""
    rng = _seeded_random("price", item)
    raised = 150 if day > 1 and item % 20 == 5 else 0
    return Decimal(rng.randint(500, 99_999) + raised).scaleb(-rng.choice((2, 2, 3, 4)))


def _customers(day: int) -> Iterator[Row]:
    if day == 1:
        yield from map(_customer, range(20001, 20001 + CUSTOMERS))
        yield *_customer(20007)[:3], "Neuer Wall 1", "Hamburg", "DE", "2026-11-01"  # moved: listed twice
    if day == 2:
        yield *_customer(20003)[:2], "orders@harbour.example", *_customer(20003)[3:6], "2026-11-02"
    if day == 3:
        yield _customer(LATE_CUSTOMER)


def _customer(number: int) -> Row:
    rng = _seeded_random("customer", number)
    email = f"buyer{number}@example.com" if rng.random() < 0.7 else "NULL"
    name, (city, country) = f"{rng.choice(_NAMES)} {number % 100}  ", rng.choice(_CITIES)
    return number, name, email, f"Dock {rng.randint(1, 90)}", city, country, "2026-10-01"


def _items(day: int) -> Iterator[Row]:
    for number in range(1, ITEMS + (day > 1)):
        rng = _seeded_random("item", number)
        name = f"{rng.choice(_THINGS)} {rng.choice(_LOOKS)}"
        yield _sku(number), f"{name:32}", rng.choice(("PCE", "BOX")), _price(number, day)


def _bins() -> Iterator[Row]:
    for number in range(BINS):
        yield f"{'ABC'[number // 10]}-{number % 10 + 1:02}", f'"{("Halle; links", "Halle; rechts")[number % 2]}"', 500


def _lots(day: int) -> Iterator[Row]:
    for number in range(1, LOTS + 1):
        rng = _seeded_random("lot", number)
        sold = 5 * (day - 1) if number % 50 == 0 else 0  # two lots in a hundred lose stock each day
        bin_code, item = f"{rng.choice('ABC')}-{rng.randint(1, 10):02}", rng.randint(1, ITEMS - 1)
        expiry = "00000000" if rng.random() < 0.5 else f"2027{rng.randint(1, 12):02}28"
        yield f"L{number:05}", bin_code, _sku(item), f"{rng.randint(20, 900) - sold}.000", expiry


def _invoices(day: int) -> Iterator[Row]:
    again = (MISTYPED, ALTERED) if day == 2 else ()
    for number in (*INVOICES[day], *again):
        yield from _invoice_lines(number, day)


def _invoice_lines(number: int, day: int) -> Iterator[Row]:
    rng = _seeded_random("invoice", number)
    customer = LATE_CUSTOMER if number == 70050 else 20000 + rng.randint(1, CUSTOMERS)
    state = "CANCELLED" if number in CANCELLED else "OPEN"
    for line in range(rng.randint(1, 4)):
        item = LATE_ITEM if number == 70021 and line == 0 else rng.randint(1, ITEMS - 1)
        quantity = rng.randint(1, 24) + (day > 1 and number == ALTERED)
        price = str(_price(item, 1)).replace(".", ",")
        mistyped = number == MISTYPED and day == 1 and line == 0
        yield number, customer, _sku(item), quantity, f"1O{price}" if mistyped else price, state
