"""Which missed runs are caught up with."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from tests.unit.scheduling.wallclock import schedule, utc

from crossdock.config.schedules.due_times import DueTime, due_times_after, runs_to_catch_up
from crossdock.config.schedules.job_and_schedule_config import Schedule

NIGHTLY = {"at": "02:30", "time_zone": "UTC"}
NOW = utc(2026, 6, 10, 9)


def missed(plan: Schedule, last: DueTime | datetime, now: datetime) -> list[DueTime]:
    return runs_to_catch_up(plan, due_times_after(plan, last, now), now)


def run_of(day: int) -> DueTime:
    return DueTime(utc(2026, 6, day, 2, 30), date(2026, 6, day))


@pytest.mark.parametrize(
    ("catch_up", "within", "last", "expected"),
    [
        pytest.param("all", "7d", run_of(7), [8, 9, 10], id="all of three days"),
        pytest.param("latest", "7d", run_of(7), [10], id="the latest of three days"),
        pytest.param("none", "7d", run_of(7), [], id="none"),
        pytest.param("latest", "99999d", run_of(7), [10], id="without a bound to speak of"),
        pytest.param("all", "2d", run_of(5), [9, 10], id="no more than is allowed"),
        pytest.param("latest", "6h", run_of(5), [], id="too late for the latest"),
        pytest.param("all", "390m", run_of(5), [], id="just too late"),
        pytest.param("all", "391m", run_of(5), [10], id="just not too late"),
        pytest.param("all", "7d", run_of(10), [], id="nothing was missed"),
        pytest.param("all", "7d", run_of(11), [], id="a clock that was set back"),
        pytest.param("all", "7d", utc(2026, 6, 8, 12), [9, 10], id="a job that never ran counts from when it was made"),
        pytest.param("all", "2d", utc(2026, 6, 1), [9, 10], id="a job that never ran, for as long as is allowed"),
        pytest.param("all", "7d", utc(2026, 6, 10, 2, 30), [], id="made when it was due"),
    ],
)
def test_what_was_missed_is_asked_for_by_setting(
    catch_up: str, within: str, last: DueTime | datetime, expected: list[int]
) -> None:
    """At nine on the tenth of June."""
    plan = schedule(**NIGHTLY, catch_up=catch_up, catch_up_within=within)
    assert missed(plan, last, NOW) == [run_of(day) for day in expected]


def test_of_several_dates_at_one_instant_the_finished_ones_stay_finished() -> None:
    """A host that failed after the first of the runs that a freeze held back catches up with the others."""
    freeze = {"from": "2026-06-07T00:00Z", "to": "2026-06-10T08:00Z"}
    plan = schedule(**NIGHTLY, blackouts=[freeze], catch_up="all")
    held = [DueTime(utc(2026, 6, 10, 8), date(2026, 6, day)) for day in (7, 8, 9, 10)]
    assert missed(plan, run_of(6), NOW) == held
    assert missed(plan, held[1], NOW) == held[2:]
    assert missed(plan, held[-1], NOW) == []
    assert missed(plan, run_of(6), utc(2026, 6, 10, 7, 59)) == []


def test_a_host_down_for_three_days_over_the_change_of_clocks() -> None:
    """The run whose hour was skipped is caught up with, too."""
    plan = schedule(at="02:30", catch_up="all", business_date="previous_day")
    found = missed(plan, DueTime(utc(2026, 3, 27, 1, 30), date(2026, 3, 26)), utc(2026, 3, 30, 8))
    assert found == [
        DueTime(utc(2026, 3, 28, 1, 30), date(2026, 3, 27)),
        DueTime(utc(2026, 3, 29, 1), date(2026, 3, 28)),
        DueTime(utc(2026, 3, 30, 0, 30), date(2026, 3, 29)),
    ]


def test_instants_without_a_zone_are_refused() -> None:
    """The machine's own time zone is never assumed."""
    plan = schedule(**NIGHTLY)
    with pytest.raises(ValueError, match="no time zone"):
        missed(plan, run_of(7), NOW.replace(tzinfo=None))
    with pytest.raises(ValueError, match="no time zone"):
        missed(plan, utc(2026, 6, 7).replace(tzinfo=None), NOW)
