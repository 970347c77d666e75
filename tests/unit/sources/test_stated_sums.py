"""Sums that a manifest states are compared with the rows, exactly."""

from __future__ import annotations

import re

import polars as pl
import pytest

from crossdock.errors import RefusedError
from crossdock.reading.sources.file_source import ColumnSumsStatedByManifest


def rows(*amounts: str) -> pl.DataFrame:
    return pl.DataFrame(
        {"AMOUNT": amounts, "_line": range(2, 2 + len(amounts))}, schema_overrides={"AMOUNT": pl.String}
    )


def test_sums_are_exact() -> None:
    """Ten times 0.1 is 1, over several frames; an empty cell adds nothing."""
    sums = ColumnSumsStatedByManifest("f", "m:2", {"AMOUNT": "1.00"})
    for _ in range(5):
        sums.add_rows(rows("0.1", "", "0.10"))
    sums.add_rows(rows())
    sums.check()


@pytest.mark.parametrize(
    ("column", "amounts", "expected"),
    [
        ("AMOUNT", ["0.5"], "f: the sum of column 'AMOUNT' is 0.5, but m:2 states 1$"),
        ("AMOUNT", ["0.5", "1,5"], "f:3: column 'AMOUNT' is not a number"),
        ("PRICE", ["0.5"], "f: missing column 'PRICE'"),
    ],
)
def test_a_sum_that_differs_refuses_the_file(column: str, amounts: list[str], expected: str) -> None:
    """So does a cell that cannot be summed."""
    sums = ColumnSumsStatedByManifest("f", "m:2", {column: "1"})
    with pytest.raises(RefusedError) as refused:
        sums.add_rows(rows(*amounts))
        sums.check()
    assert re.search(expected, str(refused.value).split("\n")[0])
