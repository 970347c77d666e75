"""Access is checked with few requests, and the clock of this machine is compared with the platform's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.servers import served

from crossdock.errors import ClockError, UnauthorizedError
from crossdock.platform.platform_config import Profile
from crossdock.testing.manual_clock import ManualClock
from crossdock.writing.targets import platform_access_and_clock_checks
from crossdock.writing.targets.platform_access_and_clock_checks import compare_clock_or_raise

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Dated(HTTPServer):
    """Answers with *date* and counts the requests."""

    challenge: str | None = None
    date: str | None = format_datetime(NOON, usegmt=True)
    status = 200
    asked = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.paths: list[str] = []
        self.of_resource: dict[str, int] = {}  # statuses of lists that answer with another one than the others


class _Handler(BaseHTTPRequestHandler):
    server: Dated

    def do_GET(self) -> None:
        self.server.asked += 1
        self.server.paths.append(self.path)
        resource = self.path.partition("?")[0].rpartition("/")[2]
        self.send_response_only(self.server.of_resource.get(resource, self.server.status))
        if self.server.challenge is not None:
            self.send_header("www-authenticate", self.server.challenge)
        if self.server.date is not None:
            self.send_header("date", self.server.date)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@pytest.fixture
def platform() -> Iterator[Dated]:
    with served(Dated()) as server:
        yield server


@pytest.fixture
def profile(platform: Dated, monkeypatch: pytest.MonkeyPatch) -> Profile:
    monkeypatch.setenv("KEY", "k")
    return profile_of(f"http://127.0.0.1:{platform.server_port}")


def profile_of(base_url: str, **settings: Any) -> Profile:
    facts = {"base_url": base_url, "tenant": "acme", "auth": {"kind": "api_key", "token": "env:KEY"}, **settings}
    return Profile.model_validate(facts, context={"folder": Path()})


def test_only_the_given_resources_are_requested(platform: Dated, profile: Profile) -> None:
    """One record of each is listed, and nothing else."""
    assert (
        platform_access_and_clock_checks.read_platform_access_or_raise(profile, ["product"]).text
        == f"{profile.base_url} grants access"
    )
    assert platform.paths == ["/api/v1/catalog/products?limit=1"]


@pytest.mark.parametrize(
    "challenge",
    ['Bearer error="insufficient_scope", scope="products:read"', "Bearer realm=x, error=insufficient_scope"],
)
def test_a_credential_that_may_only_write_is_valid(platform: Dated, profile: Profile, challenge: str) -> None:
    """A 403 that names the scope as the reason proves that the credential is valid (RFC 6750)."""
    platform.status, platform.challenge = 403, challenge
    access = platform_access_and_clock_checks.read_platform_access_or_raise(profile, ["product"])
    assert (access.text, access.unreadable) == (f"{profile.base_url} grants access", ("product",))


def test_one_readable_resource_proves_the_credential(platform: Dated, profile: Profile) -> None:
    """A 403 without a reason is then about one resource, not about the tenant."""
    platform.of_resource = {"customers": 403}
    assert platform_access_and_clock_checks.read_platform_access_or_raise(
        profile, ["product", "customer"]
    ).unreadable == ("customer",)


@pytest.mark.parametrize(
    ("status", "challenge"),
    [
        pytest.param(403, None, id="another tenant"),
        pytest.param(403, 'Bearer error="invalid_token"', id="another reason"),
        pytest.param(401, 'Bearer error="insufficient_scope"', id="unknown"),
    ],
)
def test_a_rejected_credential_is_an_error(
    platform: Dated, profile: Profile, status: int, challenge: str | None
) -> None:
    """The message has the status and says what was requested."""
    platform.status, platform.challenge = status, challenge
    with pytest.raises(UnauthorizedError, match=f"HTTP {status}") as failed:
        platform_access_and_clock_checks.read_platform_access_or_raise(profile, ["product"])
    assert "the request was to list one product" in str(failed.value)


@pytest.mark.parametrize("status", [200, 401, 403, 404, 429, 500])
@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        pytest.param(timedelta(0), None, id="the same time"),
        pytest.param(timedelta(minutes=5), None, id="within the limit"),
        pytest.param(timedelta(days=-31), "31 days, 0:00:00 behind", id="a month behind"),
        pytest.param(timedelta(days=31), "31 days, 0:00:00 ahead", id="a month ahead"),
        pytest.param(timedelta(minutes=6), "0:06:00 ahead", id="a little ahead"),
    ],
)
def test_any_answer_shows_the_time(
    platform: Dated, profile: Profile, status: int, ahead: timedelta, said: str | None
) -> None:
    """A clock that differs by more than the limit is an error with the difference and its direction."""
    platform.status = status
    if said is None:
        assert compare_clock_or_raise(profile, ManualClock(NOON + ahead), "product")
        return
    with pytest.raises(ClockError, match=said) as failed:
        compare_clock_or_raise(profile, ManualClock(NOON + ahead), "product")
    assert failed.value.exit_code == 3
    assert "set the clock" in str(failed.value)


@pytest.mark.parametrize("date", [None, "", "yesterday", "Sun, 99 Foo 2026 25:61:00 GMT"])
def test_an_answer_without_a_date_is_not_compared(platform: Dated, profile: Profile, date: str | None) -> None:
    """Without a readable date there is nothing to compare."""
    platform.date = date
    assert not compare_clock_or_raise(profile, ManualClock(NOON + timedelta(days=31)), "product")


def test_an_unavailable_platform_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run itself will report the failure."""
    monkeypatch.setenv("KEY", "k")
    assert not compare_clock_or_raise(profile_of("http://127.0.0.1:9"), ManualClock(NOON), "product")


def test_the_comparison_can_be_switched_off(platform: Dated, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``max_clock_skew_s: null`` no request is made."""
    monkeypatch.setenv("KEY", "k")
    profile = profile_of(f"http://127.0.0.1:{platform.server_port}", max_clock_skew_s=None)
    assert compare_clock_or_raise(profile, ManualClock(NOON + timedelta(days=31)), "product")
    assert platform.asked == 0


@given(limit_s=st.floats(min_value=1.0, max_value=1e6), ahead_s=st.integers(-2_000_000, 2_000_000))
def test_the_limit_is_the_setting(limit_s: float, ahead_s: int) -> None:
    """Any difference up to the limit is accepted; the header has whole seconds."""
    with served(Dated()) as platform, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEY", "k")
        profile = profile_of(f"http://127.0.0.1:{platform.server_port}", max_clock_skew_s=limit_s)
        clock = ManualClock(NOON + timedelta(seconds=ahead_s))
        if abs(ahead_s) <= limit_s:
            assert compare_clock_or_raise(profile, clock, "product")
        else:
            with pytest.raises(ClockError):
                compare_clock_or_raise(profile, clock, "product")
