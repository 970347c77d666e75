from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.sandbox.raw import CUSTOMERS, ManualTime, Raw, assert_problem

from crossdock.sandbox import Sandbox, SandboxSettings
from crossdock.sandbox.rate_limiter import TokenBucket


@pytest.mark.parametrize(
    ("tokens", "elapsed", "wait", "left"),
    [
        pytest.param(5, 0.0, 0.0, 4.0, id="a token is there"),
        pytest.param(0, 0.0, 0.5, 0.0, id="empty: one token takes half a second"),
        pytest.param(0, 0.25, 0.25, 0.5, id="half a token stays, nothing is taken"),
        pytest.param(0, 0.5, 0.0, 0.0, id="exactly long enough"),
        pytest.param(3, 1000.0, 0.0, 4.0, id="never more than the burst"),
        pytest.param(0, -9.0, 0.5, 0.0, id="a clock that goes back gives nothing"),
    ],
)
def test_bucket(tokens: float, elapsed: float, wait: float, left: float) -> None:
    """Two tokens a second up to five; a refused request takes none."""
    bucket = TokenBucket(rate=2.0, burst=5, tokens=tokens, filled_at=100.0)
    assert bucket.take(100.0 + elapsed) == pytest.approx(wait)
    assert bucket.tokens == pytest.approx(left)


@pytest.fixture
def slow(tmp_path: Path, clock: ManualTime) -> Sandbox:
    return Sandbox(tmp_path, SandboxSettings(rate_per_min=6, burst=3), clock)


def test_an_exhausted_quota_is_429_with_retry_after(slow: Sandbox, clock: ManualTime) -> None:
    """After the burst a request is 429 with Retry-After, and after exactly that time one more is accepted."""
    with slow:
        raw = Raw(slow)
        remaining = [raw("GET", CUSTOMERS).headers["ratelimit"] for _ in range(3)]
        assert remaining == ['"default";r=2;t=10', '"default";r=1;t=10', '"default";r=0;t=10']
        for _ in range(2):
            refused = raw("POST", CUSTOMERS, '{"externalId":"c","name":"n"}')
            problem = assert_problem(refused, 429)
            assert problem["type"] == "https://iana.org/assignments/http-problem-types#quota-exceeded"
            assert refused.headers["retry-after"] == "10"
            assert refused.headers["ratelimit"] == '"default";r=0;t=10'
            assert refused.headers["ratelimit-policy"] == '"default";q=3;w=30'
        clock.now += 10
        assert raw("GET", CUSTOMERS).status_code == 200
        assert_problem(raw("GET", CUSTOMERS), 429)
        assert raw.effects() == []


def test_each_credential_has_its_own_bucket(slow: Sandbox) -> None:
    """One key's burst does not affect another's, and the sandbox's own endpoints cost no token."""
    with slow:
        one, other = Raw(slow), Raw(slow)
        assert [one("GET", CUSTOMERS).status_code for _ in range(4)] == [200, 200, 200, 429]
        assert other("GET", CUSTOMERS).status_code == 200
        assert [one("GET", "/_sandbox/health").status_code for _ in range(9)] == [200] * 9


def test_default_limits_are_the_documented_rate_and_the_assumed_burst(raw: Raw) -> None:
    """10,000 a minute with a burst of 2,000; refusals have the headers too."""
    response = raw("GET", "/api/v1/nothing")
    assert response.headers["ratelimit-policy"] == '"default";q=2000;w=12'
    assert response.headers["ratelimit"] == '"default";r=1999;t=1'
    assert "ratelimit-policy" in raw("GET", CUSTOMERS, authorization=None).headers
