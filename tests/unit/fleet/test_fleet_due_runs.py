"""What is due in a fleet, without looking into a state."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.config.schedules.due_times import DueTime
from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.services.fleet.fleet_due_runs import DECIDE_AGAIN_AFTER, DueCall, FleetSchedule
from crossdock.state import ScheduledRun
from crossdock.state.fleet_leadership_and_jobs import JobFacts

NOW = datetime(2026, 6, 4, 3, tzinfo=UTC)
TODAY = DueTime(datetime(2026, 6, 4, 2, tzinfo=UTC), date(2026, 6, 4))
SINCE = datetime(2026, 6, 1, tzinfo=UTC)


def job(**schedule: Any) -> JobConfig:
    """Due at 02:00 UTC."""
    more = {name: schedule.pop(name) for name in ("after",) if name in schedule}
    return JobConfig.model_validate({"schedule": {"time_zone": "UTC", "at": "02:00", **schedule}, **more})


def ended(name: str, at: DueTime, status: Any = "done") -> JobFacts:
    run = ScheduledRun(name, at.instant, at.business_date, status, 1, 7, at.instant, at.instant, None)
    return JobFacts(name, SINCE, paused=False, expected_s=3.0, last=run)


def unended(name: str = "a", *, paused: bool = False) -> JobFacts:
    return JobFacts(name, SINCE, paused=paused)


def decided(schedule: FleetSchedule, now: datetime) -> list[DueCall]:
    """What is to be done about the tenants that are due."""
    return [
        call
        for name in list(schedule.pop_tenants_to_decide_about(now))
        if (call := schedule.decide_due_call(name, now)) is not None
    ]


def test_a_tenant_of_which_nothing_is_known_is_looked_at() -> None:
    """Once its state has been read, its jobs run when they are due."""
    schedule = FleetSchedule()
    schedule.add_or_replace_tenant("acme", {"a": job()}, [], NOW)
    assert decided(schedule, NOW) == [DueCall("acme")]
    schedule.update_job_facts("acme", [unended()], NOW)
    (call,) = decided(schedule, NOW)
    assert (call.job, call.at) == ("a", TODAY)
    assert [each.business_date.day for each in call.skipped] == [1, 2, 3], "catch_up: latest"


def test_what_has_ended_is_due_again_at_its_next_time() -> None:
    """And not before."""
    schedule = FleetSchedule()
    schedule.add_or_replace_tenant("acme", {"a": job()}, [ended("a", TODAY)], NOW)
    assert decided(schedule, NOW) == []
    assert decided(schedule, NOW + timedelta(hours=22, minutes=59)) == []
    (call,) = decided(schedule, NOW + timedelta(hours=23))
    assert call == DueCall("acme", "a", DueTime(TODAY.instant + timedelta(days=1), date(2026, 6, 5)), (), 3.0)


@pytest.mark.parametrize("status", ["failed", "incomplete"])
def test_a_run_that_did_not_complete_is_noticed(status: str) -> None:
    """The next one counts as slow."""
    schedule = FleetSchedule()
    schedule.add_or_replace_tenant("acme", {"a": job()}, [ended("a", TODAY, status)], NOW)
    (call,) = decided(schedule, NOW + timedelta(hours=23))
    assert call.failed_before


def test_a_pause_is_looked_at_again() -> None:
    """Only the state knows when a paused job is resumed; meanwhile nothing of it runs, and other jobs do."""
    schedule = FleetSchedule()
    schedule.add_or_replace_tenant("acme", {"a": job(), "b": job()}, [unended(paused=True), unended("b")], NOW)
    (call,) = decided(schedule, NOW)
    assert call.job == "b"
    schedule.update_job_facts("acme", [ended("b", TODAY)], NOW)
    assert decided(schedule, NOW) == []
    assert decided(schedule, NOW + DECIDE_AGAIN_AFTER) == [DueCall("acme")]
    schedule.update_job_facts("acme", [unended(paused=False)], NOW + DECIDE_AGAIN_AFTER)
    assert [each.job for each in decided(schedule, NOW + DECIDE_AGAIN_AFTER)] == ["a"]


def test_a_job_that_was_first_seen_when_the_clock_was_ahead_is_looked_at() -> None:
    """Once a minute, until a look at its state has corrected the time."""
    schedule, ahead = FleetSchedule(), JobFacts("a", NOW + timedelta(days=31), paused=False)
    schedule.add_or_replace_tenant("acme", {"a": job()}, [ahead], NOW)
    assert decided(schedule, NOW) == []
    assert decided(schedule, NOW + DECIDE_AGAIN_AFTER) == [DueCall("acme")]
    schedule.update_job_facts("acme", [replace(ahead, since=NOW)], NOW + DECIDE_AGAIN_AFTER)
    assert decided(schedule, NOW + 2 * DECIDE_AGAIN_AFTER) == []
    (call,) = decided(schedule, NOW + timedelta(days=1))
    assert call.job == "a"


def test_a_blackout_is_waited_for() -> None:
    """The run is not lost, and starts at its end."""
    schedule = FleetSchedule()
    schedule.add_or_replace_tenant("acme", {"a": job(blackouts=[{"from": "01:00", "to": "03:30"}])}, [unended()], NOW)
    assert decided(schedule, NOW) == []
    (call,) = decided(schedule, NOW + timedelta(minutes=30))
    assert (call.job, call.at and call.at.business_date) == ("a", TODAY.business_date)


def test_a_job_after_another_comes_second() -> None:
    """A tenant has one run at a time, so the second is decided about when the first has ended."""
    schedule = FleetSchedule()
    schedule.add_or_replace_tenant("acme", {"z": job(), "a": job(after=["z"])}, [unended("z"), unended("a")], NOW)
    assert [each.job for each in decided(schedule, NOW)] == ["z"]
    schedule.update_job_facts("acme", [ended("z", TODAY)], NOW)
    assert [each.job for each in decided(schedule, NOW)] == ["a"]


def test_what_is_only_skipped_is_recorded() -> None:
    """Without a run."""
    schedule = FleetSchedule()
    schedule.add_or_replace_tenant("acme", {"a": job(catch_up="none")}, [unended()], NOW)
    (call,) = decided(schedule, NOW)
    assert (call.job, [each.business_date.day for each in call.skipped]) == (None, [1, 2, 3, 4])


def test_a_tenant_that_was_removed_or_replaced_is_decided_about_by_its_last_config() -> None:
    """Older entries of the queue are void."""
    schedule = FleetSchedule()
    schedule.add_or_replace_tenant("acme", {"a": job()}, [unended()], NOW)
    schedule.add_or_replace_tenant("acme", {"b": job()}, [unended("b")], NOW)
    assert [each.job for each in decided(schedule, NOW)] == ["b"]
    schedule.remove_tenant("acme")
    schedule.schedule_next_decision("acme", NOW)
    assert decided(schedule, NOW + timedelta(days=9)) == []
    assert len(schedule) == 0


@given(
    hours=st.lists(st.integers(0, 23), min_size=1, max_size=6),
    steps=st.lists(st.integers(1, 30 * 60), min_size=1, max_size=40),
)
def test_each_run_is_due_once_and_none_is_forgotten(hours: list[int], steps: list[int]) -> None:
    """Whenever the schedule is asked, each tenant has run for each time that has come, in order."""
    schedule, now, runs = FleetSchedule(), NOW, list[tuple[str, DueTime]]()
    for number, hour in enumerate(hours):
        config = job(at=f"{hour:02}:30", catch_up="all")
        schedule.add_or_replace_tenant(f"t{number}", {"a": config}, [replace(unended(), since=NOW)], NOW)
    for minutes in steps:
        now += timedelta(minutes=minutes)
        while calls := decided(schedule, now):
            for call in calls:
                assert call.at is not None
                runs.append((call.tenant, call.at))
                schedule.update_job_facts(call.tenant, [ended("a", call.at)], now)
    assert len(runs) == len(set(runs))
    for number, hour in enumerate(hours):
        mine = [at.instant for tenant, at in runs if tenant == f"t{number}"]
        days = (NOW.replace(hour=hour, minute=30) + timedelta(days=day) for day in range((now - NOW).days + 2))
        assert mine == [instant for instant in days if NOW < instant <= now]
