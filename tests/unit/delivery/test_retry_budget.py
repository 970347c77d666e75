"""How long and how often a run may send again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.writing.delivery.send_queue_and_threads import RetryBudget


@pytest.mark.parametrize(
    ("firsts", "seconds", "left"),
    [
        pytest.param(0, 0.0, 10, id="a floor of ten"),
        pytest.param(9, 0.0, 10, id="nine first attempts earn nothing"),
        pytest.param(10, 0.0, 11, id="ten earn one"),
        pytest.param(1000, 0.0, 110, id="a tenth of a thousand"),
        pytest.param(0, 0.09, 10, id="less than a tenth of a second earns nothing"),
        pytest.param(0, 60.0, 610, id="ten a second"),
        pytest.param(1000, 60.0, 710, id="both"),
    ],
)
def test_what_a_run_may_afford(firsts: int, seconds: float, left: int) -> None:
    """A tenth of the first attempts, ten a second, and ten in any case."""
    budget = RetryBudget(1000.0)
    budget.add_first_attempts(firsts)
    assert budget.remaining(1000.0 + seconds) == left


def test_what_is_spent_is_gone() -> None:
    """Retries are taken off, and only time and first attempts bring new ones."""
    budget = RetryBudget(0.0)
    budget.spend(10)
    assert (budget.remaining(0.0), budget.remaining(3.0)) == (0, 30)
    budget.add_first_attempts(20)
    assert budget.remaining(3.0) == 32


@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.integers(0, 50), st.floats(0, 1000, allow_nan=False)),
        max_size=50,
    )
)
def test_it_is_never_negative_and_never_generous(story: list[tuple[int, int, float]]) -> None:
    """It never tells less than none, and all that was ever spent within it stays within what was earned."""
    budget, now, firsts, spent = RetryBudget(0.0), 0.0, 0, 0
    for first, wanted, seconds in story:
        now += seconds
        budget.add_first_attempts(first)
        firsts += first
        left = budget.remaining(now)
        assert left >= 0
        taken = min(left, wanted)
        budget.spend(taken)
        spent += taken
        assert spent <= 10 + firsts / 10 + 10 * now
        assert budget.remaining(now) == left - taken


def test_overspending_is_paid_back() -> None:
    """More spent than earned leaves none, not less than none."""
    budget = RetryBudget(0.0)
    budget.spend(25)
    assert (budget.remaining(0.0), budget.remaining(1.5), budget.remaining(1.6)) == (0, 0, 1)
