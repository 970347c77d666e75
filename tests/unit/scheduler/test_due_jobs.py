"""Which scheduled runs may start, by the rows of a state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import PIN
from tests.unit.scheduling.wallclock import utc

from crossdock.config.schedules.due_times import DueTime
from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.services.scheduler.due_run_decisions_and_preview import DueRunPlanner, DueRunsOfJob
from crossdock.state import DueRun, State, Transaction, create_or_upgrade_state, parse_database_url

BEGIN = utc(2026, 6, 1)
NOW = utc(2026, 6, 4, 3)
RUNS = [DueTime(utc(2026, 6, day, 2), date(2026, 6, day)) for day in (1, 2, 3, 4)]


def jobs(**settings: dict[str, Any]) -> DueRunPlanner:
    """Jobs that are due at 02:00 UTC."""
    return DueRunPlanner(
        {
            name: JobConfig.model_validate(
                {**more, "schedule": {"time_zone": "UTC", "at": "02:00", **more.pop("schedule", {})}}
            )
            for name, more in settings.items()
        }
    )


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    """A state that has counted the jobs *a* and *b* since *BEGIN*."""
    url = parse_database_url("sqlite:///state.db", tmp_path)
    create_or_upgrade_state(url, PIN)
    with closing(State(url, PIN)) as opened:
        with opened.begin() as tx:
            for name in "ab":
                tx.scheduled_runs.get_or_register_first_seen(name, BEGIN)
        yield opened


@pytest.mark.parametrize(
    ("catch_up", "starts"), [("all", RUNS), ("latest", RUNS[-1:]), ("none", [])], ids=["all", "latest", "none"]
)
def test_missed_runs_are_started_or_skipped(state: State, catch_up: str, starts: list[DueTime]) -> None:
    """Each due run is one or the other."""
    due_jobs = jobs(a={"schedule": {"catch_up": catch_up}})
    with state.begin() as tx:
        (plan,) = due_jobs.plan_due_runs_of_all_jobs(tx.scheduled_runs, NOW, {"a": NOW})
    assert plan.starts == starts
    assert [(one.due, one.note) for one in plan.skipped] == [
        (one.instant, f"catch_up: {catch_up}") for one in RUNS if one not in starts
    ]
    assert plan.on_time_since == NOW


def test_a_run_that_had_to_wait_stays_on_time(state: State) -> None:
    """The next plans, made later, still start it, although nothing is caught up with."""
    due_jobs, on_time_since = jobs(a={"schedule": {"catch_up": "none"}}), utc(2026, 6, 4, 1)
    for hours in range(3):
        with state.begin() as tx:
            (plan,) = due_jobs.plan_due_runs_of_all_jobs(
                tx.scheduled_runs, NOW + timedelta(hours=hours), {"a": on_time_since}
            )
        assert plan.starts == RUNS[-1:]
        on_time_since = plan.on_time_since


def test_a_paused_job_has_nothing_to_do(state: State) -> None:
    """Its runs are neither started nor skipped."""
    with state.begin() as tx:
        tx.scheduled_runs.set_paused("a", NOW, paused=True)
        (plan,) = jobs(a={}).plan_due_runs_of_all_jobs(tx.scheduled_runs, NOW, {"a": BEGIN})
    assert (plan.starts, plan.skipped) == ([], [])


@pytest.mark.parametrize(
    ("settings", "may_start"),
    [
        pytest.param({"a": {}, "b": {}}, ["a", "b"], id="independent"),
        pytest.param({"b": {"after": ["a"]}, "a": {}}, ["a"], id="after another"),
        pytest.param(
            {"a": {"schedule": {"blackouts": [{"from": "02:30", "to": "04:00"}]}}, "b": {}}, ["b"], id="blackout"
        ),
    ],
)
def test_a_run_may_be_held_back(state: State, settings: dict[str, Any], may_start: list[str]) -> None:
    """By a job that it comes after, and by a blackout that has begun since."""
    due_jobs = jobs(**settings)
    with state.begin() as tx:
        plans = due_jobs.plan_due_runs_of_all_jobs(tx.scheduled_runs, NOW, dict.fromkeys("ab", utc(2026, 6, 4, 1)))
        assert [
            plan.job for plan in plans if due_jobs.first_run_unless_held_back(tx.scheduled_runs, plan, plans, NOW)
        ] == may_start


@pytest.mark.parametrize("pauses", [True, False], ids=["paused", "due at another time"])
def test_a_killed_run_that_nobody_will_finish_holds_back_no_job(state: State, *, pauses: bool) -> None:
    """Its job is paused, or has another schedule; while a process executes it, the job after it waits."""
    due_jobs, killed = (
        jobs(a={}, b={"after": ["a"]}),
        DueRun("a", RUNS[-1].instant - timedelta(hours=1), date(2026, 6, 4)),
    )

    def may_start(tx: Transaction) -> bool:
        plans = due_jobs.plan_due_runs_of_all_jobs(tx.scheduled_runs, NOW, dict.fromkeys("ab", utc(2026, 6, 4, 1)))
        (plan,) = (each for each in plans if each.job == "b")
        plan.starts = plan.starts[-1:]
        others = [DueRunsOfJob("a", NOW) if each.job == "a" else each for each in plans]
        return due_jobs.first_run_unless_held_back(tx.scheduled_runs, plan, others, NOW) is not None

    with state.hold_run_lease("test"), state.begin() as tx:
        assert tx.scheduled_runs.begin_unless_finished(killed, at=killed.due)
        if pauses:
            tx.scheduled_runs.set_paused("a", NOW, paused=True)
        assert not may_start(tx)
    with state.begin() as tx:
        assert may_start(tx)


def test_the_preview_is_in_order() -> None:
    """Of all jobs together; what is due next is its first line for each."""
    due_jobs = jobs(a={}, b={"schedule": {"at": "01:00"}}, leap={"schedule": {"at": None, "cron": "0 0 29 2 *"}})
    found = list(due_jobs.due_between(BEGIN, BEGIN + timedelta(days=2)))
    assert [(name, one.instant.day, one.instant.hour) for name, one in found] == [
        ("b", 1, 1), ("a", 1, 2), ("b", 2, 1), ("a", 2, 2),
    ]  # fmt: skip
    assert due_jobs.next_due_by_job(BEGIN) == {"a": RUNS[0].instant, "b": utc(2026, 6, 1, 1)}


def test_a_job_waits_for_a_run_of_its_date_that_is_due_later(state: State) -> None:
    """As for the night that counts as the day before: it begins after the day's other jobs are due."""
    due_jobs = jobs(
        a={"schedule": {"at": "03:00", "business_date": "previous_day"}},
        b={"after": ["a"], "schedule": {"catch_up": "latest"}},
    )
    since = {"a": BEGIN, "b": BEGIN}

    def starts(tx: Transaction, now: datetime) -> DueTime | None:
        plans = due_jobs.plan_due_runs_of_all_jobs(tx.scheduled_runs, now, since)
        (plan,) = (each for each in plans if each.job == "b")
        plan.starts = plan.starts[-1:]
        return due_jobs.first_run_unless_held_back(tx.scheduled_runs, plan, plans, now)

    with state.begin() as tx:
        assert starts(tx, utc(2026, 6, 4, 2)) is None
        assert starts(tx, utc(2026, 6, 5, 1)) is None
        night = DueRun("a", utc(2026, 6, 5, 3), date(2026, 6, 4))
        tx.scheduled_runs.begin_unless_finished(night, at=night.due)
        tx.scheduled_runs.finish(night, "done", None, None, at=night.due)
        plans = due_jobs.plan_due_runs_of_all_jobs(tx.scheduled_runs, utc(2026, 6, 5, 1), since)
        (plan,) = (each for each in plans if each.job == "b")
        plan.starts = [RUNS[-1]]
        assert due_jobs.first_run_unless_held_back(tx.scheduled_runs, plan, plans, night.due) == RUNS[-1]
