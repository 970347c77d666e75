"""A made-up warehouse, and what it exports each night: the same at every run, and as untidy as real exports are."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from decimal import Decimal

Row = tuple[object, ...]

ITEMS, CUSTOMERS, BINS, LOTS = 60, 40, 30, 200
LATE_ITEM = 60  # exported from the second night on
LATE_CUSTOMER = 20041  # exported in the third night, which the demo leaves to the reader
INVOICES = {1: range(70001, 70046), 2: range(70046, 70061), 3: range(70061, 70069)}
MISTYPED = 70013  # a price with a letter O in the first night, sent again corrected in the second
ALTERED = 70030  # sent again in the second night with another quantity, long after it was delivered
CANCELLED = {70007, 70052}

_THINGS = ("Haken", "Käfig", "Kiste", "Lüfter", "Schlüssel", "Waage", "Crème brûlée set", "Voucher £10")
_LOOKS = ("blau", "grün", "groß", "klein", "faltbar", "rostfrei", "für außen")
_NAMES = ("Böttcher", "Café Zoë", "Harbour & Sons", "Jürgens", "Müller", "O'Hara", "Señor Díaz", "Übersee")
_CITIES = (("Köln", "DE"), ("Lübeck", "DE"), ("Leeds", "GB"), ("Zürich", "CH"), ("Málaga", "ES"))


def night(number: int) -> dict[str, bytes]:
    """The files exported in a night, from 1: name -> content."""
    day = f"202611{number:02}"
    customers = "CUSTNO|NAME|EMAIL|STREET|CITY|CC|CHANGED"
    return {
        f"CUSTOMERS_{day}.txt": _file(customers, _customers(number), "|"),
        f"ITEMS_{day}.txt": _file("SKU|NAME|UNIT|PRICE", _shuffled(number, _items(number)), "|", trailer=True),
        f"BINS_{day}.csv": _file("BIN;AREA;CAPACITY", _shuffled(number, _bins()), ";"),
        f"LOTS_{day}.txt": _file("LOTNO|BIN|SKU|QTY|EXPIRY", _shuffled(number, _lots(number)), "|", trailer=True),
        f"INVOICES_{day}.csv": _file("INVNO;CUSTNO;SKU;QTY;PRICE;STATE", _invoices(number), ";"),
    }


def _file(header: str, rows: Iterable[Row], delimiter: str, *, trailer: bool = False) -> bytes:
    lines = [delimiter.join(map(str, row)) for row in rows]
    end = [f"TRL{delimiter}{len(lines)}"] if trailer else []
    return "".join(f"{line}\r\n" for line in (header, *lines, *end)).encode("cp1252")


def _dice(*about: object) -> random.Random:
    """The same throws every time for the same thing."""
    return random.Random(repr(about))  # noqa: S311  nothing here is secret


def _shuffled(number: int, rows: Iterable[Row]) -> list[Row]:
    """In an order of its own each night, as tables without an order come."""
    listed = list(rows)
    _dice("order", number).shuffle(listed)
    return listed


def _sku(number: int) -> str:
    return f"{number:04}"


def _price(item: int, night: int) -> Decimal:
    """With two to four decimals; every twentieth item costs more from the second night on."""
    dice = _dice("price", item)
    raised = 150 if night > 1 and item % 20 == 5 else 0
    return Decimal(dice.randint(500, 99_999) + raised).scaleb(-dice.choice((2, 2, 3, 4)))


def _customers(night: int) -> Iterator[Row]:
    if night == 1:
        yield from map(_customer, range(20001, 20001 + CUSTOMERS))
        yield *_customer(20007)[:3], "Neuer Wall 1", "Hamburg", "DE", "2026-11-01"  # moved: listed twice
    if night == 2:
        yield *_customer(20003)[:2], "orders@harbour.example", *_customer(20003)[3:6], "2026-11-02"
    if night == 3:
        yield _customer(LATE_CUSTOMER)


def _customer(number: int) -> Row:
    dice = _dice("customer", number)
    email = f"buyer{number}@example.com" if dice.random() < 0.7 else "NULL"
    name, (city, country) = f"{dice.choice(_NAMES)} {number % 100}  ", dice.choice(_CITIES)
    return number, name, email, f"Dock {dice.randint(1, 90)}", city, country, "2026-10-01"


def _items(night: int) -> Iterator[Row]:
    for number in range(1, ITEMS + (night > 1)):
        dice = _dice("item", number)
        name = f"{dice.choice(_THINGS)} {dice.choice(_LOOKS)}"
        yield _sku(number), f"{name:32}", dice.choice(("PCE", "BOX")), _price(number, night)


def _bins() -> Iterator[Row]:
    for number in range(BINS):
        yield f"{'ABC'[number // 10]}-{number % 10 + 1:02}", f'"{("Halle; links", "Halle; rechts")[number % 2]}"', 500


def _lots(night: int) -> Iterator[Row]:
    for number in range(1, LOTS + 1):
        dice = _dice("lot", number)
        moved = 5 * (night - 1) if number % 50 == 0 else 0  # two lots in a hundred lose stock each night
        bin_code, item = f"{dice.choice('ABC')}-{dice.randint(1, 10):02}", dice.randint(1, ITEMS - 1)
        expiry = "00000000" if dice.random() < 0.5 else f"2027{dice.randint(1, 12):02}28"
        yield f"L{number:05}", bin_code, _sku(item), f"{dice.randint(20, 900) - moved}.000", expiry


def _invoices(night: int) -> Iterator[Row]:
    for number in INVOICES[night]:
        yield from _invoice(number, night)
    if night == 2:
        yield from _invoice(MISTYPED, night)
        yield from _invoice(ALTERED, night)


def _invoice(number: int, night: int) -> Iterator[Row]:
    dice = _dice("invoice", number)
    customer = LATE_CUSTOMER if number == 70050 else 20000 + dice.randint(1, CUSTOMERS)
    state = "CANCELLED" if number in CANCELLED else "OPEN"
    for line in range(dice.randint(1, 4)):
        item = LATE_ITEM if number == 70021 and line == 0 else dice.randint(1, ITEMS - 1)
        quantity = dice.randint(1, 24) + (night > 1 and number == ALTERED)
        price = str(_price(item, 1)).replace(".", ",")
        mistyped = number == MISTYPED and night == 1 and line == 0
        yield number, customer, _sku(item), quantity, f"1O{price}" if mistyped else price, state
