from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.sandbox.raw import CUSTOMERS, OPTIONAL_HEADERS, ManualTime, Raw

from crossdock.sandbox import Sandbox, SandboxSettings
from crossdock.sandbox.rate_limiter import RateLimitHeaderDialect


@pytest.mark.parametrize(
    ("dialect", "first", "refused"),
    [
        pytest.param(
            "draft10",
            {"ratelimit-policy": '"default";q=3;w=30', "ratelimit": '"default";r=2;t=10'},
            {"ratelimit-policy": '"default";q=3;w=30', "ratelimit": '"default";r=0;t=8', "retry-after": "8"},
        ),
        pytest.param(
            "draft07",
            {"ratelimit-policy": "3;w=30", "ratelimit": "limit=3, remaining=2, reset=10"},
            {"ratelimit-policy": "3;w=30", "ratelimit": "limit=3, remaining=0, reset=28", "retry-after": "8"},
        ),
        pytest.param(
            "triple",
            {"ratelimit-limit": "3", "ratelimit-remaining": "2", "ratelimit-reset": "10"},
            {"ratelimit-limit": "3", "ratelimit-remaining": "0", "ratelimit-reset": "28", "retry-after": "8"},
        ),
        pytest.param(
            "x-ratelimit",
            {"x-ratelimit-limit": "3", "x-ratelimit-remaining": "2", "x-ratelimit-reset": "1800000010"},
            {
                "x-ratelimit-limit": "3",
                "x-ratelimit-remaining": "0",
                "x-ratelimit-reset": "1800000030",
                "retry-after": "8",
            },
        ),
        pytest.param("none", {}, {}),
    ],
)
def test_headers_of_each_dialect(
    tmp_path: Path, clock: ManualTime, dialect: RateLimitHeaderDialect, first: dict[str, str], refused: dict[str, str]
) -> None:
    """Six a minute, three at once: the headers after the first request, and two seconds later when none is left."""
    with Sandbox(tmp_path, SandboxSettings(rate_per_min=6, burst=3, rate_headers=dialect), clock) as sandbox:
        raw = Raw(sandbox)
        answers = [raw("GET", CUSTOMERS) for _ in range(3)]
        clock.now += 2
        answers.append(raw("GET", CUSTOMERS))
        assert [each.status_code for each in answers] == [200, 200, 200, 429]
        headers = [
            {k: v for k, v in each.headers.items() if k in OPTIONAL_HEADERS} for each in (answers[0], answers[-1])
        ]
        assert headers == [first, refused]


@pytest.mark.parametrize("dialect", ["draft07", "triple", "x-ratelimit"])
def test_lying_headers_use_the_dialect(tmp_path: Path, clock: ManualTime, dialect: RateLimitHeaderDialect) -> None:
    """lying_headers shows three left, or none, in the fields of the dialect after the first of three requests."""
    with Sandbox(tmp_path, SandboxSettings(burst=3, rate_headers=dialect), clock) as sandbox:
        raw = Raw(sandbox)
        raw("POST", "/_sandbox/faults", '{"faults":[{"name":"lying_headers","probability":1}]}')
        headers = raw("GET", CUSTOMERS).headers
        left = headers.get("ratelimit", "").partition("remaining=")[2].partition(",")[0]
        assert {left, headers.get("ratelimit-remaining"), headers.get("x-ratelimit-remaining")} & {"0", "3"}
