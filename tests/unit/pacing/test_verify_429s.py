"""An unexpected 429 is verified by the next requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.pacing.request_allowance import CHECKS, FAILING_CHECKS, REMEMBERED, Unexpected429s


def verified(found: Unexpected429s, first: int, refused: int) -> None:
    """Verify after *first* tokens, with so many of the checks *refused*."""
    found.begin_verification_by_next_requests(first)
    for n in range(CHECKS):
        found.record_answer(first + 1 + n, accepted=n >= refused)


@pytest.mark.parametrize("refused", range(CHECKS + 1))
def test_most_checks_decide(refused: int) -> None:
    """Three refused checks of four confirm an empty bucket."""
    found = Unexpected429s()
    verified(found, 10, refused)
    assert found.is_refusal_credible(expected=False) == (refused >= FAILING_CHECKS)


def test_checks_borrow_tokens() -> None:
    """Four requests may exceed the level, and none without a doubt."""
    found = Unexpected429s()
    assert found.tokens_left_for_checks(10) == 0
    found.begin_verification_by_next_requests(10)
    assert [found.tokens_left_for_checks(spent) for spent in (10, 12, 14, 20)] == [4, 2, 0, 0]
    found.clear()
    assert found.tokens_left_for_checks(10) == 0


def test_an_expected_429_needs_no_check_unless_false_alarms_are_frequent() -> None:
    """After two false alarms in a few answers, even an expected 429 is verified."""
    found = Unexpected429s()
    assert found.is_refusal_credible(expected=True)
    for first in (0, 10):
        verified(found, first, 1)
    assert not found.is_refusal_credible(expected=True)
    for number in range(100, 100 + REMEMBERED):
        found.record_answer(number, accepted=True)
    assert found.is_refusal_credible(expected=True)


@given(st.lists(st.booleans(), max_size=40))
def test_among_many_refusals_no_check_is_needed(answers: list[bool]) -> None:
    """Five of the latest six answers refused confirm an empty bucket."""
    found = Unexpected429s()
    for number, accepted in enumerate(answers):
        found.record_answer(number, accepted=accepted)
    assert found.is_refusal_credible(expected=False) == (answers[-6:].count(False) >= 5)
