"""The trigger that offers a schedule to APScheduler."""

from __future__ import annotations

import doctest
import pickle
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scheduling.wallclock import schedule, utc
from tests.waiting import WITHIN_S

from crossdock.config.schedules.due_times import due_times_between
from crossdock.services.scheduler import apscheduler_daemon
from crossdock.services.scheduler.apscheduler_daemon import ScheduleTrigger

NOW = utc(2026, 3, 28)


def fire_times(until: datetime, now: datetime = NOW, **said: Any) -> list[datetime]:
    """When an APScheduler with a schedule in Berlin fires after *now*."""
    found, asked, previous = list[datetime](), ScheduleTrigger(schedule(**said)), None
    while (previous := asked.get_next_fire_time(previous, now)) is not None and previous <= until:
        found.append(previous)
    return found


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param({"at": "02:30"}, [utc(2026, 3, 28, 1, 30), utc(2026, 3, 29, 1), utc(2026, 3, 30, 0, 30)], id="at"),
        pytest.param(
            {"cron": "30 2 * * *"}, [utc(2026, 3, 28, 1, 30), utc(2026, 3, 29, 1), utc(2026, 3, 30, 0, 30)], id="cron"
        ),
        pytest.param(
            {"at": "12:00", "holidays": ["2026-03-29"]}, [utc(2026, 3, 28, 11), utc(2026, 3, 30, 10)], id="holiday"
        ),
        pytest.param(
            {"at": "02:30", "days": "sun", "blackouts": [{"from": "02:00", "to": "06:00"}]},
            [utc(2026, 3, 29, 4)],
            id="blackout",
        ),
    ],
)
def test_it_fires_over_a_clock_change(said: dict[str, Any], expected: list[datetime]) -> None:
    """Berlin skips 02:00 to 03:00 on 29 March 2026."""
    assert fire_times(utc(2026, 3, 30, 12), **said) == expected


@given(minutes=st.integers(0, 3 * 24 * 60), every=st.sampled_from(["1h", "7h", "24h"]))
def test_it_fires_at_what_is_due(minutes: int, every: str) -> None:
    """The trigger and the scheduler agree, in the autumn of Berlin."""
    now = utc(2026, 10, 24) + timedelta(minutes=minutes)
    until = now + timedelta(days=2)
    assert fire_times(until, now, every=every) == [
        one.instant for one in due_times_between(schedule(every=every), now, until)
    ]


def test_a_schedule_that_is_never_due_again_does_not_fire() -> None:
    """A blackout that is longer than the horizon."""
    blackout = {"from": "2026-01-01T00:00:00Z", "to": "2200-01-01T00:00:00Z"}
    assert fire_times(utc(2300, 1, 1), at="02:30", blackouts=[blackout]) == []


def test_apscheduler_fires_it() -> None:
    """A real scheduler computes the DST-correct fire time, and calls the function."""
    called = threading.Event()
    scheduler = BackgroundScheduler(timezone=UTC, jobstores={"default": MemoryJobStore()})
    scheduler.start()
    try:
        scheduler.add_job(called.set, ScheduleTrigger(schedule(every="1s")))
        nightly = scheduler.add_job(print, ScheduleTrigger(schedule(at="02:30")))
        assert (
            nightly.next_run_time
            == next(due_times_between(schedule(at="02:30"), datetime.now(UTC), utc(2100, 1, 1))).instant
        )
        assert called.wait(WITHIN_S)
    finally:
        scheduler.shutdown()


def test_it_can_be_stored() -> None:
    """Job stores of APScheduler pickle triggers."""
    asked = ScheduleTrigger(schedule(cron="30 2 * * mon-fri"))
    assert pickle.loads(pickle.dumps(asked)).get_next_fire_time(None, NOW) == utc(2026, 3, 30, 0, 30)
    assert str(asked) == "ScheduleTrigger({'time_zone': 'Europe/Berlin', 'cron': '30 2 * * mon-fri'})"


def test_its_example_runs() -> None:
    """The docstring shows how it is used."""
    result = doctest.testmod(apscheduler_daemon)
    assert (result.failed, result.attempted) == (0, 5)


def test_schedules_cost_no_scheduler() -> None:
    """`crossdock.config.schedules` does not import APScheduler."""
    script = "import sys, crossdock.config.schedules; sys.exit('apscheduler' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
