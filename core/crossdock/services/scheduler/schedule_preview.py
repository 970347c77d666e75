"""The runs of the next days, with what their last runs let expect."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Any

from msgspec import Struct

from crossdock.config.schedules.due_times import Due, due_between
from crossdock.config.schedules.job_and_schedule_config import JobConfig, Schedule
from crossdock.services.scheduler.due_and_skipped_runs import DueJobs
from crossdock.state import Transaction
from crossdock.values.time_zones import first_instant_showing

MOST_COUNTED = 1_500  # runs of a day: one a minute
_INSTANT, _ONE_DAY = timedelta.resolution, timedelta(days=1)


class PreviewedDay(Struct, frozen=True):
    """The runs of one job on one local day: the first ones, how many there are, and when the last one begins.

    Attributes:
        number: None if they were not counted, because they are more than `MOST_COUNTED`.
    """

    first: Sequence[Mapping[str, Any]]
    number: int | None
    last_begins: datetime


def preview_rows(tx: Transaction, jobs: Mapping[str, JobConfig], now: datetime, days: int) -> list[dict[str, Any]]:
    """Return the runs that are due in the next *days*, in their order. Times are in the zone of each job."""
    rows = {name: _JobRows(tx, name, job) for name, job in jobs.items()}
    return [rows[name].row_of_due_run(due) for name, due in DueJobs(jobs).due_between(now, now + timedelta(days=days))]


def previewed_runs_by_day(
    tx: Transaction, name: str, job: JobConfig, now: datetime, days: int, *, listed: int
) -> dict[date, PreviewedDay]:
    """Return the days of *job* on which runs begin from *now* on. At most *listed* are in `PreviewedDay.first`."""
    schedule, rows, until = job.schedule, _JobRows(tx, name, job), now + timedelta(days=days)
    today, found = now.astimezone(schedule.zone).date(), dict[date, PreviewedDay]()
    for day in (today + timedelta(days=number) for number in range(days + 1)):
        begin, end = (
            first_instant_showing(datetime.combine(each, time()), schedule.zone) for each in (day, day + _ONE_DAY)
        )
        since, before = max(now, begin - _INSTANT), min(until, end - _INSTANT)
        due = list(islice(due_between(schedule, since, before), MOST_COUNTED + 1))
        if due:
            is_counted = len(due) <= MOST_COUNTED
            last = due[-1] if is_counted else _last_due_in_span(schedule, since, before)
            number = len(due) if is_counted else None
            found[day] = PreviewedDay(
                [rows.row_of_due_run(each) for each in due[:listed]], number, last.instant.astimezone(schedule.zone)
            )
    return found


def _last_due_in_span(schedule: Schedule, since: datetime, until: datetime) -> Due:
    """Return the last run of a span with some, without looking at all."""
    back = 2 * (schedule.step or _ONE_DAY)
    while not (found := deque(due_between(schedule, max(since, until - back), until), maxlen=1)):
        back *= 2
    return found[0]


class _JobRows:
    def __init__(self, tx: Transaction, name: str, job: JobConfig) -> None:
        self._name, self._zone = name, job.schedule.zone
        self._expected = tx.scheduled_runs.expected_seconds_and_requests(name)

    def row_of_due_run(self, due: Due) -> dict[str, Any]:
        seconds, requests = self._expected or (None, None)
        ends = None if seconds is None else due.instant + timedelta(seconds=seconds)
        return {
            "job": self._name,
            "business_date": due.business_date,
            "begins": due.instant.astimezone(self._zone),
            "expected_end": None if ends is None else ends.astimezone(self._zone),
            "expected_requests": requests,
        }
