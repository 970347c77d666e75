"""A time of day that is set in the middle of a run, and between runs: nothing pauses, and no old key is trusted."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, update
from tests.conftest import PIN
from tests.integration.delivery.harness import Answer, Bench, Platform, Seen, created, invoice
from tests.unit.state.samples import intent
from tests.unit.targets.test_platform_access import profile_of

from crossdock.errors import StateBusyError
from crossdock.state import State, StateUrl, create_or_upgrade_state
from crossdock.state.db import schema
from crossdock.testing.manual_clock import ManualClock
from crossdock.writing.delivery import in_doubt_and_refusal_rules
from crossdock.writing.targets.platform_target import PlatformTarget

DAY_S = 86_400.0
STEPS_S = (-30 * DAY_S, -7_200.0, -60.0, 60.0, 7_200.0, 30 * DAY_S)


@pytest.mark.nightly(but=["sqlite-2592000.0", "sqlite--60.0"])
@pytest.mark.parametrize("step", STEPS_S)
def test_a_clock_that_is_set_in_mid_run_pauses_nothing(bench: Bench, platform: Platform, step: float) -> None:
    """As many seconds pass as the bucket and the retries need, whatever the clock shows meanwhile."""
    clock = bench.clock = ManualClock()
    sent = 0

    def script(seen: Seen) -> Answer:
        nonlocal sent
        sent += 1
        if sent == 10:
            clock.step(step)
        return (503, {"retry-after": "1"}, b"") if sent in {5, 15} else created(seen)

    platform.script = script
    bench.carry_out([invoice(number) for number in range(30)])
    assert bench.statuses() == {"delivered": 30}
    assert clock.monotonic() < 60.0, "seconds of the manual clock"


@given(age_s=st.floats(-40 * DAY_S, 40 * DAY_S), kept_s=st.integers(1, 200_000))
def test_a_key_is_used_while_it_is_surely_kept(age_s: float, kept_s: int) -> None:
    """Well before the platform forgets it, and not where the age is unknown since the clock was set back."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    profile = profile_of("https://platform.example", idempotency={"kept_s": kept_s})
    one = intent(1, resource="invoice", attempts=1, first_sent_at=now - timedelta(seconds=age_s))
    rule = in_doubt_and_refusal_rules.rule_for_sent_intent(one, PlatformTarget(profile), now)
    if 0 <= age_s <= kept_s / 2 and age_s <= kept_s - 2 * in_doubt_and_refusal_rules.MARGIN_S:
        assert rule == "resend"
    if age_s >= kept_s or age_s < -in_doubt_and_refusal_rules.MARGIN_S:
        assert rule == "park"


@pytest.fixture
def taken(state_url: StateUrl) -> StateUrl:
    create_or_upgrade_state(state_url, PIN)
    with closing(State(state_url, PIN)) as state, state.hold_run_lease("first"):
        pass
    return state_url


def _until(url: StateUrl, until: datetime) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(update(schema.leases).values(until=until))
    engine.dispose()


@pytest.mark.parametrize("ahead", [timedelta(minutes=2), timedelta(hours=2), timedelta(days=30)])
def test_a_lease_of_before_the_clock_was_set_back_keeps_nobody_out(taken: StateUrl, ahead: timedelta) -> None:
    """A lease that seems to end later than any lease can is one of another time."""
    _until(taken, datetime.now(UTC) + ahead)
    with closing(State(taken, PIN)) as state, state.hold_run_lease("next"):
        assert state.fence_number == 2


def test_who_holds_a_lease_still_keeps_others_out(state_url: StateUrl) -> None:
    """Two at once are two too many, as ever."""
    create_or_upgrade_state(state_url, PIN)
    with (
        closing(State(state_url, PIN)) as one,
        closing(State(state_url, PIN)) as other,
        one.hold_run_lease("one"),
        pytest.raises(StateBusyError),
        other.hold_run_lease("other"),
    ):
        pass
