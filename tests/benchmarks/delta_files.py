"""A made-up warehouse's nightly list of items: 12 columns, some 136 bytes a row, the same for everybody.

One row in twenty has a quoted cell with a delimiter in it, one in a thousand a line end. Every night carries another
export date, in a column that nobody maps, so that no two nights have the same bytes. It runs as a process of its own,
so that whoever measures stays small: a child's peak memory begins with its parent's.
"""

from __future__ import annotations

import argparse
import os
import time
import zlib
from datetime import date, timedelta
from pathlib import Path

import polars as pl

COLUMNS = (
    "SKU", "NAME", "DESCRIPTION", "UNIT", "BARCODE", "PRICE", "CURRENCY", "ACTIVE",
    "SUPPLIER", "STOCK", "CREATED", "EXPORTED",
)  # fmt: skip
SEED = 6
CHANGED_EACH = 100  # one row in so many has another price, spread evenly: no stretch of the file is without
BATCH = 500_000
_PRIME = 2**31 - 1
_THINGS = ("Haken", "Käfig", "Kiste", "Lüfter", "Schlüssel", "Waage", "Bracket", "Conveyor belt", "Pallet", "Voucher")
_LOOKS = ("blau", "grün", "groß", "klein", "faltbar", "rostfrei", "large", "for outdoor use", "spare", "refurbished")
_TEXTS = (
    "", "Lagerware, ab Werk geprüft", "Shelf 12, keep upright and dry", "Ersatzteil, nur in ganzen Kartons",
    "Fragile: two people to lift", "Sold in pairs since last spring", "Nicht stapeln", "Replaces the model of 2019",
)  # fmt: skip


def write(path: Path, rows: int, *, night: int, changes: bool, seed: int) -> int:
    """Write the list of a *night*, from 1; how many rows differ from nights without *changes*."""
    exported = (date(2026, 11, 1) + timedelta(days=night - 1)).isoformat()
    with path.open("wb") as file:
        file.write(f"{'|'.join(COLUMNS)}\n".encode())
        for start in range(0, rows, BATCH):
            numbers = pl.select(row=pl.int_range(start, min(start + BATCH, rows), dtype=pl.UInt64))
            numbers.select(**_cells(exported, seed, changes=changes)).write_csv(
                file, include_header=False, separator="|"
            )
        file.write(f"TRL|{rows}\n".encode())
    a_while_ago = time.time() - 300  # so that nobody waits to see whether it still grows
    os.utime(path, (a_while_ago, a_while_ago))
    return len(range(CHANGED_EACH // 2, rows, CHANGED_EACH)) if changes else 0


def _cells(exported: str, seed: int, *, changes: bool) -> dict[str, pl.Expr]:
    row = pl.col("row")

    def throw(about: str, sides: int) -> pl.Expr:
        """A number from 0, by squares modulo a prime: the same in every release, as no library's generator is."""
        salt = zlib.crc32(f"{seed} {about}".encode()) % _PRIME
        spread = (row * 1_103_515_245 + salt) % _PRIME
        return (spread * spread + salt) % _PRIME % sides

    def number(of: pl.Expr, width: int) -> pl.Expr:
        return of.cast(pl.String).str.zfill(width)

    def one_of(texts: tuple[str, ...], about: str) -> pl.Expr:
        return pl.lit(pl.Series(texts)).gather(throw(about, len(texts)))

    day = pl.lit(date(2015, 1, 1)) + pl.duration(days=throw("created", 4000))
    cents = throw("price", 99_900) + 100
    if changes:
        cents += (row % CHANGED_EACH == CHANGED_EACH // 2).cast(pl.UInt64)
    special = pl.when(row % 1000 == 7).then(pl.lit("\nsee sheet 2")).when(row % 20 == 3).then(pl.lit(" | see sheet 2"))
    return {
        "SKU": pl.concat_str(pl.lit("S"), number(row, 8)),
        "NAME": pl.concat_str(
            one_of(_THINGS, "thing"), one_of(_LOOKS, "look"), number(throw("model", 10_000), 4), separator=" "
        ),
        "DESCRIPTION": pl.concat_str(one_of(_TEXTS, "text"), special.otherwise(pl.lit(""))),
        "UNIT": one_of(("PCE", "BOX", "KGM", "MTR"), "unit"),
        "BARCODE": number(throw("barcode", 10**9) + 4_000_000_000_000, 13),
        "PRICE": pl.concat_str(cents // 100, number(cents % 100, 2), separator="."),
        "CURRENCY": one_of(("EUR", "EUR", "GBP", "USD"), "currency"),
        "ACTIVE": one_of(("Y", "Y", "Y", "Y", "N"), "active"),
        "SUPPLIER": pl.concat_str(pl.lit("SUPPLIER NO-"), number(throw("supplier", 3000), 4)),
        "STOCK": pl.concat_str(throw("stock", 20_000), pl.lit(".000")),
        "CREATED": day.dt.to_string("%Y-%m-%d"),
        "EXPORTED": pl.lit(exported),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("rows", type=int)
    parser.add_argument("night", type=int)
    parser.add_argument("--changes", action="store_true", help=f"another price in one row of {CHANGED_EACH}")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    print(write(given.path, given.rows, night=given.night, changes=given.changes, seed=given.seed))


if __name__ == "__main__":
    main()
