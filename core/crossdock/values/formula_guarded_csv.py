"""CSV for spreadsheets: cells that would be read as formulas begin with an apostrophe.

A spreadsheet evaluates a cell of CSV that begins with one of ``=+-@``, and such a formula may start programs or send
cells elsewhere. Which character separates cells depends on the country that the spreadsheet is set to, so the part of a
cell after a comma, a semicolon, a tab, a quote or a line break counts as well. Numbers such as -5 are not formulas.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import TextIO

_FORMULA = "(?=[' ]*[=+\\-@\uff1d\uff0b\uff0d\uff20])"
_BEGINS = '(?:^|(?<=[,;\t\r\n"]))'
_UNGUARDED = re.compile(_BEGINS + _FORMULA)
_GUARDED = re.compile(f"{_BEGINS}'{_FORMULA}")
_NUMBER = re.compile(r"-[0-9]+(?:\.[0-9]+)?", re.ASCII)


def write_csv_rows_guarding_formulas(out: TextIO, rows: Iterable[Iterable[str]], *, raw: bool = False) -> int:
    """Write *rows* as CSV, with apostrophes before formulas unless *raw*. Return their number."""
    writer, number = csv.writer(out, lineterminator="\n"), 0
    for row in rows:
        writer.writerow(row if raw else map(guard_formulas, row))
        number += 1
    return number


def guard_formulas(cell: str) -> str:
    """Add an apostrophe before each formula; `unguard_formulas` reverts it."""
    return cell if _NUMBER.fullmatch(cell) else _UNGUARDED.sub("'", cell)


def unguard_formulas(cell: str) -> str:
    return _GUARDED.sub("", cell)
