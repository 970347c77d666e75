"""Good deliveries of three legacy layouts, and many ways to damage them, each with the reason that must be given."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.unit.formats.layouts import ORDERS

ZONES = "{ABCDEFGHI", "}JKLMNOPQR"
STOCK: dict[str, Any] = {
    "kind": "fixed_width",
    "encoding": "cp037",
    "line_end": "none",
    "length": 40,
    "columns": {
        "SKU": {"at": 1, "length": 8},
        "NAME": {"at": 9, "length": 20},
        "QTY": {"at": 30, "length": 6, "decimals": 0, "sign": "overpunch"},
        "DAY": {"at": 36, "length": 5, "decimals": 0},
    },
}
MOVES: dict[str, Any] = {
    "delimiter": "|",
    "encoding": "cp1252",
    "record_types": {
        "HDR": {"once": "first", "names": ["TYPE", "SENT"]},
        "MOV": {"names": ["TYPE", "SKU", "NAME", "QTY"]},
        "TRL": {
            "once": "last",
            "names": ["TYPE", "ROWS", "TOTAL"],
            "counts": {"ROWS": ["MOV"]},
            "sums": {"TOTAL": "MOV.QTY"},
        },
    },
    "records": "MOV",
}
LAYOUTS = {"orders": ORDERS, "stock": STOCK, "moves": MOVES}


@dataclass(frozen=True, slots=True)
class Damage:
    """A delivery that must be refused.

    Attributes:
        says: A pattern of the reason.
    """

    stream: str
    kind: str
    content: bytes
    says: str


def punched(number: int, width: int) -> str:
    text = f"{abs(number):0{width}d}"
    return text[:-1] + ZONES[number < 0][int(text[-1])]


def orders(random: Random) -> list[str]:
    """Lines of orders, with counts of each order and of the file, and the sum of all amounts."""
    rows, lines, total = ["HDR20261101"], 0, 0
    for order in range(6):
        rows.append(f"ORDA{order:05d}")
        count = random.randint(2, 5)
        for _ in range(count):
            amount = random.randint(-99_999, 99_999)
            rows.append(f"LINP{random.randint(0, 99_999):05d}{random.randint(0, 9999):4d}{punched(amount, 7)}")
            total += amount
        rows.append(f"END{count:03d}")
        lines += count
    return [*rows, f"TRL{lines:06d}{abs(total):08d}{'-' if total < 0 else ' '}"]


def stock(random: Random) -> list[str]:
    """Records of 40 characters."""
    sku = random.sample(range(10_000), 30)
    return [f"P{n:07d}{f'Thing {n}':20} {punched(random.randint(-99, 99_999), 6)}26001" for n in sku]


def moves(random: Random) -> list[str]:
    numbers = [random.randint(-999, 999) for _ in range(30)]
    rows = [f"MOV|P{n}|Thing {n}|{number}" for n, number in enumerate(numbers)]
    return ["HDR|2026-11-01", *rows, f"TRL|{len(rows)}|{sum(numbers)}"]


def text(rows: list[str]) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


def block(rows: list[str]) -> bytes:
    return "".join(rows).encode("cp037")


def damages(random: Random, many: int) -> Iterator[Damage]:
    """All kinds of damage; *many* of each that depends on chance."""
    for make in (_orders, _stock, _moves):
        yield from (Damage(make.__name__[1:], *each) for each in make(random, many))


def _orders(random: Random, many: int) -> Iterator[tuple[str, bytes, str]]:
    rows = orders(random)
    good, ends = text(rows), [number for number, row in enumerate(rows) if row.startswith("END")]
    details = [number for number, row in enumerate(rows) if row.startswith("LIN")]
    yield "empty", b"", "the file is empty"
    yield "without its header", text(rows[1:]), "the first record is not of the type file_header"
    yield "without its trailer", text(rows[:-1]), "the last record is not of the type trailer"
    yield "twice in one file", good + good, "a second record of the type file_header|after that of the type trailer"
    yield "detail before its header", text([rows[0], *rows[2:]]), "a record of the type line before any order"
    yield "UTF-16", good.decode().encode("utf-16"), "byte order mark of utf-16"
    yield "EBCDIC", good.decode().encode("cp037"), "control character|is not UTF-8|no declared type"
    yield "wrong number of lines", text([*rows[:-1], f"TRL999999{rows[-1][9:]}"]), "trailer.ALL_LINES states"
    yield "wrong sum", text([*rows[:-1], f"{rows[-1][:9]}00000000 "]), "trailer.TOTAL states the sum 0"
    yield "header twice", text([rows[0], *rows]), "a second record of the type file_header"
    for _ in range(many):
        at = random.choice([n for n in range(20, len(good) - 1) if good[n] != 10 and good[n - 1] != 10])
        yield "cut in a line", good[:at], "characters? instead of|of no declared type"
        end = random.randrange(3, len(rows) - 1)
        yield "cut at a line", text(rows[:end]), "the last record is not of the type trailer"
        yield "cut gzip", gzip.compress(good)[: -random.randint(1, 60)], "gzip data ends before"
        one, each = random.choice(details), random.choice(ends)
        yield "line lost", text([*rows[:one], *rows[one + 1 :]]), "order_end.LINES states the number of records"
        yield "line twice", text([*rows[:one], rows[one], *rows[one:]]), "order_end.LINES states the number of records"
        yield (
            "end of an order lost",
            text([*rows[:each], *rows[each + 1 :]]),
            "no record of the type order_end|the number",
        )
        for kind, row, says in _damaged_lines(rows[one], random):
            yield kind, text([*rows[:one], *row, *rows[one + 1 :]]), says
    yield "not UTF-8", good.replace(b"LINP", b"LIN\xe4", 1), "byte 0xE4 is not UTF-8"
    yield "CRLF in one line", good.replace(b"\n", b"\r\n", 2).replace(b"\r\n", b"\n", 1), "the line ends with CRLF"


def _damaged_lines(row: str, random: Random) -> Iterator[tuple[str, list[str], str]]:
    place = random.randrange(4, 9)
    yield "line too short", [row[:place] + row[place + 1 :]], "19 characters instead of 20"
    yield "line too long", [row[:place] + "0" + row[place:]], "21 characters instead of 20"
    yield "NUL byte", [f"{row[:place]}\0{row[place + 1 :]}"], r"control character U\+0000"
    yield "unknown type", [f"XYZ{row[3:]}"], "a record of no declared type"
    yield "bad overpunch", [f"{row[:-1]}{random.choice('STUVWXYZ*$')}"], "'AMOUNT', positions 14 to 20, is not digits"
    yield "letters in a number", [f"{row[:9]}12O4{row[13:]}"], "'QTY', positions 10 to 13, is not digits"
    yield "blank line", [row, ""], "of no declared type|the line is blank"


def _stock(random: Random, many: int) -> Iterator[tuple[str, bytes, str]]:
    rows = stock(random)
    good = block(rows)
    yield "in ASCII", "".join(rows).encode(), "control character|is not digits"
    yield "with line breaks", "\n".join(rows).encode("cp037"), "a line break inside a record"
    for _ in range(many):
        one = random.randrange(1, len(rows))
        cut = random.choice([n for n in range(40, len(good)) if n % 40])
        yield "cut in a record", good[:cut], "characters? instead of 40"
        at = one * 40 + random.randrange(10)
        yield "byte lost", good[:at] + good[at + 1 :], "is not digits|instead of 40"
        yield "byte added", good[:at] + b"\xf1" + good[at:], "is not digits|instead of 40"
        packed = good[: one * 40 + 29] + b"\x00\x00\x12\x34\x5c\x40" + good[one * 40 + 35 :]
        yield "packed number", packed, "control character|is not digits"


def _moves(random: Random, many: int) -> Iterator[tuple[str, bytes, str]]:
    rows = moves(random)
    yield "detail first", text([*rows[1:3], rows[0], *rows[3:]]), "the first record is not of the type HDR"
    yield "not in cp1252", text(rows).replace(b"Thing", b"Th\x81ng", 1), "is not cp1252"
    for _ in range(many):
        one = random.randrange(1, len(rows) - 1)
        for kind, row, says in (
            ("field lost", rows[one].rpartition("|")[0], "3 fields instead of 4 in a record of MOV"),
            ("field added", f"{rows[one]}|", "5 fields instead of 4 in a record of MOV"),
            ("quote", rows[one].replace("|T", '|"T', 1), "never closed|text follows the closing quote"),
            ("other sum", f"{rows[one]}1", "TRL.TOTAL states the sum"),
            ("no number", f"{rows[one]},5", "'QTY' is not a number"),
            ("other type", f"X{rows[one]}", "a record of no declared type in field 0"),
        ):
            yield kind, text([*rows[:one], row, *rows[one + 1 :]]), says
