"""CSV for spreadsheets: no cell is a formula, whichever separator they use, and all come back exactly."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.values.formula_guarded_csv import guard_formulas, unguard_formulas, write_csv_rows_guarding_formulas

CELLS = st.text(st.sampled_from("=+-@',;\"\t\r\n 5a.\uff1d"), max_size=8)


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=cmd|'/c'!A4", "'=cmd|'/c'!A4"),
        ("@x", "'@x"),
        (" =1", "' =1"),
        ("\t=1", "\t'=1"),
        ("a;=1", "a;'=1"),
        ("'=1", "''=1"),
        ("\uff1d1", "'\uff1d1"),
        ("-5", "-5"),
        ("-5.25", "-5.25"),
        ("-5+1", "'-5+1"),
        ("a=b", "a=b"),
        ("x-1@y", "x-1@y"),
        ("O'Neil", "O'Neil"),
    ],
)
def test_formulas_begin_with_an_apostrophe(cell: str, written: str) -> None:
    """Formulas do, also after a separator; numbers and signs within a text do not."""
    assert guard_formulas(cell) == written


@given(CELLS)
def test_each_cell_comes_back_exactly(cell: str) -> None:
    """Also those with apostrophes of their own."""
    assert unguard_formulas(guard_formulas(cell)) == cell


@given(st.lists(CELLS, min_size=1, max_size=3), st.sampled_from(",;\t"))
def test_no_separator_makes_a_formula(row: list[str], separator: str) -> None:
    """A file read with any separator has no cell that is a formula."""
    out = io.StringIO(newline="")
    assert write_csv_rows_guarding_formulas(out, [row]) == 1
    for cells in csv.reader(io.StringIO(out.getvalue(), newline=""), delimiter=separator):
        for cell in cells:
            parts = cell.strip(" \t\r\n")
            assert parts[:1] not in {"=", "+", "@", "\uff1d"}, (out.getvalue(), cell)
