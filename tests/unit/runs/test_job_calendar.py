"""The calendar of jobs: how each business date ended, which were missed, and which files came late."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from tests.report_page import sqlite_state

from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.runs import job_run_calendar as job_calendar_module
from crossdock.runs.job_run_calendar import CalendarDay, LateFile, job_calendar
from crossdock.state import DueRun, FileFacts, RunResult, State, Transaction
from crossdock.state.tables.scheduled_runs import SkippedRun, Status
from crossdock.values.run_progress_and_messages import RunMessage

FIRST = date(2026, 11, 2)
NIGHTLY = JobConfig.model_validate({"schedule": {"cron": "15 2 * * *", "time_zone": "UTC"}})
MORNING = datetime(2026, 11, 8, 6, tzinfo=UTC)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[State]:
    with sqlite_state(tmp_path) as state:
        yield state


def due(day: int) -> datetime:
    return datetime(2026, 11, day, 2, 15, tzinfo=UTC)


def scheduled(tx: Transaction, day: int, status: Status = "done", *, after: timedelta = timedelta()) -> int:
    """A run of the job for one day of the month that begins *after* it was due, and takes an hour."""
    run = DueRun("nightly", due(day), date(2026, 11, day))
    began = run.due + after
    tx.scheduled_runs.get_or_register_first_seen("nightly", due(2) - timedelta(hours=1))
    assert tx.scheduled_runs.begin_unless_finished(run, at=began)
    run_id = tx.runs.start(business_date=run.business_date.isoformat(), at=began, job="nightly")
    at = began + timedelta(hours=1)
    tx.runs.finish(run_id, RunResult(status, duration_ms=3_600_000), at=at)
    tx.scheduled_runs.finish(run, status, run_id, None, at=at)
    return run_id


def shown(tx: Transaction, jobs: dict[str, JobConfig] | None = None) -> dict[str | None, dict[int, CalendarDay]]:
    found = job_calendar(tx, {"nightly": NIGHTLY} if jobs is None else jobs, FIRST, date(2026, 11, 8), MORNING)
    assert [day.day for day in found.dates] == [2, 3, 4, 5, 6, 7, 8]
    return {row.job: {day.day: of for day, of in row.days.items()} for row in found.rows}


def test_each_date_has_how_its_runs_ended(kept: State) -> None:
    """What was skipped, caught up with and missed as well; a date before the job was first seen is none of these."""
    with kept.begin() as tx:
        done, late = scheduled(tx, 2), scheduled(tx, 4, after=timedelta(hours=6))
        failed = scheduled(tx, 5, "failed")
        tx.scheduled_runs.skip(
            [SkippedRun("nightly", due(6), date(2026, 11, 6), "skipped", "catch_up: latest")], at=due(7)
        )
        days = shown(tx)["nightly"]
    assert [(day, of.status, of.newest) for day, of in sorted(days.items())] == [
        (2, "done", done),
        (3, "missed", None),
        (4, "done", late),
        (5, "failed", failed),
        (6, "skipped", None),
        (7, "missed", None),
        (8, "missed", None),
    ]
    assert [day for day, of in days.items() if of.is_caught_up] == [4]
    assert days[4].text == "done; caught up 6 h after it was due"
    assert days[6].text == "skipped; catch_up: latest"


def test_without_the_config_nothing_is_called_missed(kept: State) -> None:
    """Which dates a job should have is in its schedule."""
    with kept.begin() as tx:
        scheduled(tx, 3)
        assert list(shown(tx, {})["nightly"]) == [3]


def test_runs_that_no_schedule_has_started_are_counted(kept: State) -> None:
    """Those of people in a row of their own, with the worst status and the newest run."""
    with kept.begin() as tx:
        for status in ("done", "incomplete", "done"):
            newest = tx.runs.start(business_date="2026-11-03", at=due(3), command="sync")
            tx.runs.finish(newest, RunResult(status), at=due(3))
        tx.runs.start(business_date="2026-11-09", at=due(9), command="sync")
        rows = shown(tx, {})
    assert rows == {None: {3: CalendarDay(rows[None][3].status, 3, newest)}}
    assert rows[None][3].text == "3 runs, worst incomplete"


def test_files_that_came_late_are_known(kept: State) -> None:
    """By their time at the source, after the run was due; and those that a run did without."""
    with kept.begin() as tx:
        run = scheduled(tx, 3)
        for name, minutes in (("in_time.csv", -5), ("late.csv", 20)):
            at = due(3) + timedelta(minutes=minutes)
            facts = FileFacts(name, name, 1, at, name)
            tx.intake.accept("wms.items", "v", [facts], at=due(3) + timedelta(minutes=30))
        other = scheduled(tx, 4)
        note = RunMessage("note", "wms.lots", "no new file LOT_* until 03:00; continued without it")
        tx.runs.finish(other, RunResult("done", messages=[note]), at=due(4) + timedelta(hours=1))
        found = job_calendar(tx, {}, FIRST, date(2026, 11, 8), MORNING)
    night = date(2026, 11, 3)
    assert found.late_files == [
        LateFile("nightly", night, run, "wms.items", "late.csv", due(3), due(3) + timedelta(minutes=20)),
        LateFile("nightly", date(2026, 11, 4), other, "wms.lots", note.message, due(4), None),
    ]
    assert found.rows[0].days[night].text == "done; wms.items: late.csv came 20 min 0 s late"
    assert found.rows[0].days[night].has_late_files
    assert found.late_files_since is None


def test_of_too_many_files_the_newest_are_looked_at(kept: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told since when; a file that was read between two runs belongs to none."""
    monkeypatch.setattr(job_calendar_module, "_FILES", 2)
    with kept.begin() as tx:
        for day in (3, 4):
            scheduled(tx, day)
            late = FileFacts(f"{day}.csv", f"{day}", 1, due(day) + timedelta(minutes=1), "s")
            tx.intake.accept("wms.items", "v", [late], at=due(day) + timedelta(minutes=30))
        between = FileFacts("b.csv", "b", 1, due(4), "s")
        tx.intake.accept("wms.items", "v", [between], at=due(3) + timedelta(hours=9))
        found = job_calendar(tx, {}, FIRST, date(2026, 11, 8), MORNING)
    assert [each.name for each in found.late_files] == ["4.csv"]
    assert found.late_files_since == due(3) + timedelta(hours=9)
