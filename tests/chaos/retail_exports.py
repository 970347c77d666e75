"""Retail exports in a folder, and changes to them as a legacy system makes them."""

from __future__ import annotations

import csv
import gzip
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.retail_judge import Expected, Row, of, rows

COLUMNS = ("InvoiceNo", "StockCode", "Description", "Quantity", "InvoiceDate", "UnitPrice", "CustomerID", "Country")


@dataclass
class RetailExports:
    """The exports that the project reads.

    Attributes:
        added: Files that were made here.
    """

    folder: Path
    added: int = field(default=0)

    def serve(self, files: Sequence[Path]) -> None:
        """Add days."""
        self.folder.mkdir(exist_ok=True)
        for file in files:
            shutil.copy2(file, self.folder)

    def expected(self) -> Expected:
        return of(self.folder)

    def add(self, lines: Sequence[Row]) -> None:
        """A file with these lines, which is read last."""
        self.added += 1
        self._write(self.folder / f"2099-01-{self.added:02}.csv.gz", lines)

    def change(self, change: Callable[[Row], Row | None]) -> int:
        """Change lines in their files; returns how many.

        Args:
            change: The line as it is afterwards; None if it stays.
        """
        changed = 0
        for file in sorted(self.folder.glob("*.csv.gz")):
            before = list(rows(file))
            after = [change(row) for row in before]
            number = sum(each is not None for each in after)
            if number:
                self._write(file, [new or old for new, old in zip(after, before, strict=True)])
            changed += number
        return changed

    def correct_newest(self, expected: Expected, customers: Sequence[str], products: Sequence[str]) -> None:
        """Give the newest lines of these customers another country, and of these products another description."""
        countries = {key: expected.countries.values[key][0] for key in customers}
        descriptions = {key: expected.descriptions.values[key][0] for key in products}

        def corrected(row: Row) -> Row | None:
            new = dict(row)
            if countries.get(row["CustomerID"].removesuffix(".0")) == row["InvoiceDate"]:
                new["Country"] = "Corrected"
            if row["Description"] and descriptions.get(row["StockCode"]) == row["InvoiceDate"]:
                new["Description"] = f"CORRECTED {row['StockCode']}"
            return new if new != row else None

        assert self.change(corrected)

    def _write(self, path: Path, lines: Sequence[Row]) -> None:
        with gzip.open(path, "wt", encoding="utf-8", newline="") as text:
            writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
