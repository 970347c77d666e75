"""Reported levels are trusted until they contradict what is observed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crossdock.pacing.header_trust import BAN_S, MAX_EMPTY, HeaderTrust
from crossdock.pacing.samples import Sample

RATE_PER_S, LATENCY_S = 10.0, 0.05


def check(trust: HeaderTrust, at: float, level: float, accepted: int = 0) -> bool:
    return trust.check(Sample(at, accepted, level), RATE_PER_S, LATENCY_S, at)


@given(st.lists(st.tuples(st.floats(0.01, 5.0), st.integers(0, 20)), max_size=80))
def test_a_real_bucket_is_always_trusted(steps: list[tuple[float, int]]) -> None:
    """A level that rises at the rate and falls with each request never looks wrong."""
    trust, at, level, accepted = HeaderTrust(), 0.0, 50.0, 0
    for seconds, wanted in steps:
        at += seconds
        level = min(50.0, level + seconds * RATE_PER_S)
        taken = min(wanted, int(level) - 1)
        accepted, level = accepted + taken, level - taken
        assert check(trust, at, level, accepted)
        assert trust.fresh(at)


def test_leaps_are_banned_for_a_while_and_longer_the_next_time() -> None:
    """A level that jumps between 0 and 1,000 is not trusted for a minute, then for two."""
    trust, at, bans = HeaderTrust(), 0.0, list[float]()
    while len(bans) < 2:
        at += 1.0
        check(trust, at, 1000.0 if at % 2 else 1.0)
        if not trust.trusted(at):
            banned_at = at
            while not trust.trusted(at):
                at += 1.0
            bans.append(at - banned_at)
    assert bans == [BAN_S, 2 * BAN_S]


def test_an_empty_bucket_that_refuses_nothing_is_wrong() -> None:
    """Thirty reports of an empty bucket without a refusal end the trust; a refusal starts the count again."""
    trust = HeaderTrust()
    assert all(check(trust, float(n), 0.0) for n in range(MAX_EMPTY - 1))
    trust.refused()
    assert check(trust, 50.0, 0.0)
    assert [check(trust, 51.0 + n, 0.0) for n in range(MAX_EMPTY - 1)] == [True] * (MAX_EMPTY - 2) + [False]


def test_an_answer_that_was_overtaken_is_not_news() -> None:
    """A level older than the latest is ignored."""
    trust = HeaderTrust()
    assert check(trust, 2.0, 40.0)
    assert not check(trust, 1.0, 45.0)
    assert trust.trusted(2.0)
