"""A sample bounds the share of records that differ."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.runs.reconciliation.reconciliation_result import highest_differing_share


@pytest.mark.parametrize(
    ("sampled", "differing", "share"),
    [(100, 0, 0.029513), (3000, 0, 0.000998), (10, 1, 0.394163), (50, 5, 0.198833), (20, 20, 1.0), (1, 0, 0.95)],
)
def test_known_bounds(sampled: int, differing: int, share: float) -> None:
    """1 - 0.05 ** (1 / n) without a difference; else what tables of Clopper and Pearson say."""
    assert highest_differing_share(sampled, differing) == pytest.approx(share, abs=1e-6)


@given(sampled=st.integers(1, 300), data=st.data())
def test_at_the_bound_so_few_are_unlikely(sampled: int, data: st.DataObject) -> None:
    """If the bound were the true share, so few differences would be found in one of twenty samples."""
    differing = data.draw(st.integers(0, sampled - 1))
    share = highest_differing_share(sampled, differing)
    few = sum(comb(sampled, each) * share**each * (1 - share) ** (sampled - each) for each in range(differing + 1))
    assert differing / sampled < share <= 1
    assert few == pytest.approx(0.05, abs=1e-6)
