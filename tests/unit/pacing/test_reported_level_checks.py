"""Reported levels tell the rate, and are trusted until they contradict what is observed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.pacing.rate_limit_learner import AnsweredRequest, BucketSample
from crossdock.pacing.request_allowance import BAN_S, MAX_EMPTY, SHORTEST_S, ReportedLevels

RATE_PER_S, LATENCY_S = 10.0, 0.05


def check(levels: ReportedLevels, at: float, level: float, accepted: int = 0) -> bool:
    return levels.record_level_if_new_and_trusted(BucketSample(at, accepted, level), RATE_PER_S, LATENCY_S, at)


@given(st.lists(st.tuples(st.floats(0.01, 5.0), st.integers(0, 20)), max_size=80))
def test_a_real_bucket_is_always_trusted(steps: list[tuple[float, int]]) -> None:
    """A level that rises at the rate and falls with each request never looks wrong."""
    levels, at, level, accepted = ReportedLevels(), 0.0, 50.0, 0
    for seconds, wanted in steps:
        at += seconds
        level = min(50.0, level + seconds * RATE_PER_S)
        taken = min(wanted, int(level) - 1)
        accepted, level = accepted + taken, level - taken
        assert check(levels, at, level, accepted)
        assert levels.were_trusted_recently(at)


def test_leaps_are_banned_for_a_while_and_longer_the_next_time() -> None:
    """A level that jumps between 0 and 1,000 is not trusted for a minute, then for two."""
    levels, at, bans = ReportedLevels(), 0.0, list[float]()
    while len(bans) < 2:
        at += 1.0
        check(levels, at, 1000.0 if at % 2 else 1.0)
        if not levels.are_trusted(at):
            banned_at = at
            while not levels.are_trusted(at):
                at += 1.0
            bans.append(at - banned_at)
    assert bans == [BAN_S, 2 * BAN_S]


def test_an_empty_bucket_that_refuses_nothing_is_wrong() -> None:
    """Thirty reports of an empty bucket without a refusal are misleading; a refusal starts the count again."""
    levels = ReportedLevels()
    assert all(check(levels, float(n), 0.0) for n in range(MAX_EMPTY - 1))
    levels.detect_misleading_level_at_refusal(0.0)
    assert check(levels, 50.0, 0.0)
    assert [check(levels, 51.0 + n, 0.0) for n in range(MAX_EMPTY - 1)] == [True] * (MAX_EMPTY - 2) + [False]
    assert levels.misleading


def test_an_answer_that_was_overtaken_is_not_news() -> None:
    """A level older than the latest is ignored."""
    levels = ReportedLevels()
    assert check(levels, 2.0, 40.0)
    assert not check(levels, 1.0, 45.0)
    assert levels.are_trusted(2.0)


def test_tokens_beside_refused_requests_are_misleading() -> None:
    """Two in a row: another limit is reported than the one that refuses."""
    levels = ReportedLevels()
    for remaining in (5.0, 0.0, 5.0):
        levels.detect_misleading_level_at_refusal(remaining)
        assert levels.are_trusted(0.0)
    levels.detect_misleading_level_at_refusal(5.0)
    assert levels.misleading
    assert not levels.are_trusted(1e9)


def request(sample: BucketSample, others: int = 0) -> AnsweredRequest:
    return AnsweredRequest(sample.accepted, sample.at, sample.at, LATENCY_S, sample, others=others)


@given(rate=st.floats(0.1, 100), steps=st.lists(st.floats(0.01, 20), min_size=1, max_size=60))
def test_a_rate_is_never_too_high(rate: float, steps: list[float]) -> None:
    """However the level is rounded, and whether or not the bucket is full at times."""
    levels, now, level, accepted = ReportedLevels(), 0.0, 40.0, 0
    for step in steps:
        now, level = now + step, min(40.0, level + rate * step)
        if level < 1:
            continue
        level, accepted = level - 1, accepted + 1
        sample = BucketSample(now, accepted, float(int(level)))
        found = levels.record_level_and_measure_rate(request(sample), sample, 40)
        assert found is None or found <= rate * 1.001


def test_a_rate_is_shown_by_levels() -> None:
    """A level that falls from 90 to 60 while 100 requests are accepted in five seconds: 14 tokens per second."""
    levels, found = ReportedLevels(), None
    for second in range(6):
        sample = BucketSample(second, 20 * second, 90 - 6 * second)
        found = levels.record_level_and_measure_rate(request(sample), sample, 100)
    assert found == pytest.approx(14, abs=1 / 5)


def test_overlapping_requests_show_a_lower_rate_and_only_after_a_while() -> None:
    """They arrive in any order, so that a level may be that after some more or fewer of them."""
    levels = ReportedLevels()
    for at, expected in ((0.0, None), (SHORTEST_S / 2, None), (10.0, 13.5)):
        sample = BucketSample(at, round(14 * at), 50.0)
        assert levels.record_level_and_measure_rate(request(sample, others=10), sample, 100) == expected
