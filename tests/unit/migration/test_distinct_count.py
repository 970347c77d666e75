"""The number of different values: exact while they are few, then an estimate."""

from __future__ import annotations

import polars as pl
import pytest

from crossdock.delta.fingerprint import text_hashes
from crossdock.migration.source_profile import EXACT, DistinctCount


def hashes(numbers: range) -> pl.Series:
    """The hashes of these numbers as text."""
    texts = pl.Series([str(number) for number in numbers], dtype=pl.String)
    return pl.select(text_hashes(pl.lit(texts), "xxh3_64")).to_series()


@pytest.mark.parametrize("number", [0, 1, 2, EXACT - 1, EXACT])
def test_few_values_are_counted_exactly(number: int) -> None:
    """Up to the bound, also if all of them come twice."""
    count = DistinctCount.from_hashes(hashes(range(number)))
    count.merge(DistinctCount.from_hashes(hashes(range(number))))
    assert (count.estimate, count.exceeds_exact_limit) == (number, False)


@pytest.mark.parametrize("number", [EXACT + 1, 3 * EXACT, 200_000])
def test_many_values_are_estimated(number: int) -> None:
    """Within four standard errors, and no matter how they are divided; the memory is that of the bound."""
    count = DistinctCount()
    for start in range(0, number, 7_000):
        count.merge(DistinctCount.from_hashes(hashes(range(start, min(start + 9_000, number)))))
    assert count.exceeds_exact_limit
    assert len(count.smallest) == EXACT
    assert count.estimate == DistinctCount.from_hashes(hashes(range(number))).estimate
    assert abs(count.estimate - number) <= 4 * number // 90  # the standard error is 1 / sqrt(EXACT), about 1 / 90
